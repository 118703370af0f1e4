"""`partita play`: play a story of a group, on the simulator or on a real broker, and show what happened."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.address import find_address
from partita.cli.connecting import json_option, named_if_unreachable
from partita.cli.stories import shown
from partita.cli.terminal import complain, print_json, print_table, say
from partita.lazy import later
from partita.options import nearest
from partita.play import words
from partita.play.player import Player
from partita.play.stage import Stage
from partita.play.text import Story, read

if TYPE_CHECKING:
    from partita.play import real, seeds, simulated
    from partita.sim.rules import rule
else:
    real = later("partita.play.real")
    rule = later("partita.sim.rules.rule")
    seeds = later("partita.play.seeds")
    simulated = later("partita.play.simulated")

OWN = "own"


@click.command()
@click.argument("story", required=False)
@click.option("--list", "lists", is_flag=True, help="List the stories that come with the package.")
@click.option("--words", "lists_words", is_flag=True, help="List the words of a story.")
@click.option("--text", "shows_text", is_flag=True, help="Print the story instead of playing it.")
@click.option("--broker", metavar="HOST:PORT|own", help="Play on this broker, in real time; own: one that it starts.")
@click.option("--step", is_flag=True, help="Wait for a key after each sentence.")
@click.option("--html", "page", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write a page with a timeline, a sequence chart and the table of owners.")  # fmt: skip
@json_option
def play(
    story: str | None, lists: bool, lists_words: bool, shows_text: bool, broker: str | None, step: bool,
    page: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Play STORY, a file or the name of a story that comes with the package.

    Without --broker it plays on the simulator: at once, the same each time, with every rule of the simulator watched.
    The exit code is 1 if an expectation of the story does not hold.
    """
    if lists or lists_words:
        _list(lists_words)
        return
    if story is None:
        raise click.UsageError(f"name a story: a file, or one of {', '.join(_shipped())}")
    text = _text_of(story)
    if shows_text:
        say(text.rstrip())
        return
    with contextlib.ExitStack() as stack:
        if broker not in (None, OWN):
            stack.enter_context(named_if_unreachable(find_address(broker, None)))
        for each in read(text):
            _play(each, story, broker, step=step, page=page, as_json=as_json)


def _shipped() -> dict[str, str]:
    """The stories of the package: name and text."""
    folder = resources.files("partita.play") / "stories"
    return {file.name.removesuffix(".txt"): file.read_text() for file in sorted(folder.iterdir(), key=lambda f: f.name)}


def _text_of(story: str) -> str:
    path = Path(story)
    if path.is_file():
        return path.read_text()
    shipped = _shipped()
    if story not in shipped:
        near = nearest(story, shipped, 0.5)
        instead = f"did you mean {near[0]}?" if near else f"stories: {', '.join(shipped)}"
        raise click.ClickException(f"there is no file and no story {story!r}; {instead}")
    return shipped[story]


def _list(lists_words: bool) -> None:
    if lists_words:
        print_table(["sentence", "meaning"], _words())
    else:
        print_table(["story", "plays"], [(name, read(text)[0].name) for name, text in _shipped().items()])


def _words() -> Iterator[tuple[str, str]]:
    for verb, (_, meaning) in {**words.MEMBER_VERBS, **words.WORLD_VERBS}.items():
        yield words.usage(verb), meaning
    for form, meaning in words.EXPECTATIONS.items():
        yield f"expect {form}", meaning


def _stage(story: Story, broker: str | None) -> Stage:
    if broker is not None:
        return real.RealBroker(None if broker == OWN else find_address(broker, None).client_options())
    found = Player.sentences_of(story)
    if (seeded := seeds.Seeded.of_story(found)) is not None:
        return seeded
    return simulated.Simulator.of(each.settings for each in found if each.verb == "join")


def _play(story: Story, name: str, broker: str | None, *, step: bool, page: Path | None, as_json: bool) -> None:
    """Play one story and show it; exit with 1 if it does not go as expected."""
    failed = ""
    try:
        with contextlib.closing(_stage(story, broker)) as stage:
            player = Player(story, stage)
            telling = shown.Telling(stage.began_wall_ms)
            if not as_json:
                say(f"{story.name} (on {stage.name})")
            try:
                for played in player.play():
                    lines = telling.add(played)
                    if not as_json:
                        say("\n".join([played.command.text, *lines]))
                    if step:
                        click.pause()
            except (words.StoryError, rule.RuleBroken) as error:
                failed = f"{name}, {error}"
            if as_json:
                print_json(shown.as_json(story.name, telling, player.columns, failed))
            else:
                _print_end(telling, player)
            if page is not None:
                page.write_text(shown.page(story.name, telling, player.columns, failed), encoding="utf-8")
                say(f"wrote {page}", err=as_json)
    except words.StoryError as error:
        raise click.ClickException(f"{name}, {error}") from error
    if failed:
        complain(failed)
        raise SystemExit(1)


def _print_end(telling: shown.Telling, player: Player) -> None:
    if player.columns:
        say("\n".join(["", *shown.owner_lines(player.columns)]))
    if found := shown.causes(telling.notes):
        say("\n".join(["", "why it rebalanced", *(f"  {cause}" for cause in found)]))
