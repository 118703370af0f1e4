"""`partita migrate`: the changes that another group protocol brings to a program or its settings, measured."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from partita.cli.address import settings_of
from partita.cli.connecting import json_option
from partita.cli.terminal import complain, print_json, print_table, say
from partita.cli.variables import NumberRange
from partita.lazy import later
from partita.properties import parse_properties

if TYPE_CHECKING:
    from partita.broker import config as broker_config
    from partita.migrate import asking, lab, reading, settings
else:
    asking = later("partita.migrate.asking")
    broker_config = later("partita.broker.config")
    lab = later("partita.migrate.lab")
    reading = later("partita.migrate.reading")
    settings = later("partita.migrate.settings")

BY_TOPIC = ("migrate", 6)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--settings", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="The consumer's settings, as a properties file.")  # fmt: skip
@click.option(
    "-X", "extra", multiple=True, metavar="NAME=VALUE", help="One of the consumer's settings by its own name."
)
@click.option("--client", type=click.Choice(["java", "confluent", "partita"]), default="java", show_default=True,
              help="Whose settings they are.")  # fmt: skip
@click.option("--to", "targets", multiple=True, type=click.Choice(["consumer", "share"]),
              help="Only this protocol; may be repeated. [default: both; with COMMAND consumer]")  # fmt: skip
@click.option("-t", "--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS]",
              help="A topic that the program reads; 6 partitions unless said.  [default: migrate:6]")  # fmt: skip
@click.option("--members", type=click.IntRange(2, 20), default=2, show_default=True, help="Members of the group.")
@click.option("--rate", type=click.IntRange(1, 200), default=20, show_default=True,
              help="Records a second for each partition.")  # fmt: skip
@click.option("--records", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Values of the records, one a line, over and over. [default: {}]")  # fmt: skip
@click.option(
    "--set", "broker", multiple=True, metavar="NAME=VALUE", help="An option of the broker, as your cluster has it."
)
@click.option("--within", "within_s", type=NumberRange(min=1), default=60.0, show_default=True, metavar="SECONDS",
              help="Time for the group to come to rest.")  # fmt: skip
@click.option("--check", is_flag=True, help="Only say what becomes of the settings; run nothing.")
@json_option
def migrate(
    command: tuple[str, ...], file: Path | None, extra: tuple[str, ...], client: str, targets: tuple[str, ...],
    topics: tuple[str, ...], members: int, rate: int, records: Path | None, broker: tuple[str, ...], within_s: float,
    check: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show what the consumer protocol (KIP-848) and share groups change for a program, or for settings alone.

    COMMAND starts one member of your program; in it {bootstrap}, {protocol} (classic, consumer, share), {config} (a
    properties file with the settings) and {n} (the member's number) are filled in; MIGRATE_BOOTSTRAP and so on are
    variables with the same. Without COMMAND a consumer with these settings takes its place. On an embedded broker a
    member joins, crashes and leaves, in each protocol, and classic members are replaced one by one; the report has
    the pauses of partitions and the records that were read again. The exit code is 1 if something has to be changed
    first, or does not work.
    """
    given = _settings(file, extra)
    protocols = tuple(dict.fromkeys(targets)) or (("consumer",) if command else ("consumer", "share"))
    chosen = _topics(topics)
    try:
        found = [
            each for one in protocols for each in settings.findings(given, one, *asking.of(client, settings_of(broker)))
        ]
        if check:
            runs: list[reading.Measured] = []
            problems: list[str] = []
        else:
            plan = lab.Plan(
                command or (sys.executable, "-m", "partita.migrate.member", client, "{protocol}", "{config}", *chosen),
                chosen, members, rate, _values(records), within_s, settings_of(broker),
            )  # fmt: skip
            runs, problems = _run(plan, given, found, protocols)
    except broker_config.ConfigError as error:
        raise click.UsageError(f"--set: {error}") from error
    except ModuleNotFoundError as error:
        raise click.ClickException(f"--client {client} needs {error.name}; pip install confluent-kafka") from error
    refused = dict.fromkeys(each.option for each in found if each.verdict == settings.REFUSAL)
    if refused:
        problems.insert(0, f"refused, so change first: {', '.join(refused)}")
    if as_json:
        print_json({"settings": [each.as_json() for each in found], "runs": [each.as_json() for each in runs],
                    "problems": problems})  # fmt: skip
    else:
        _print(found, runs, problems)
    if problems:
        raise SystemExit(1)


def _run(
    plan: lab.Plan, given: Mapping[str, str], found: list[settings.Finding], protocols: Iterable[str]
) -> tuple[list[reading.Measured], list[str]]:
    """Run each protocol on a broker of its own; return what was measured, and what did not work."""
    moved = {each: settings.moved(given, found, each) for each in settings.PROTOCOLS}
    of_client = {name: client for name, (client, _) in moved.items()}
    runs: list[reading.Measured] = []
    problems = []
    for protocol in ("classic", *protocols):
        say(f"running: {protocol} ...", err=True)
        try:
            with lab.Lab(plan, of_client, moved[protocol][1]) as one:
                runs += one.run(protocol)
            if protocol == "consumer":
                say("running: from classic to consumer ...", err=True)
                with lab.Lab(plan, of_client, moved[protocol][1]) as one:
                    runs.append(one.upgrade())
        except lab.LabError as error:
            if protocol == "classic":
                raise click.ClickException(str(error)) from error
            problems.append(f"{protocol}: {error}")
    return runs, problems


def _settings(file: Path | None, extra: tuple[str, ...]) -> dict[str, str]:
    try:
        from_file = {} if file is None else parse_properties(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.UsageError(f"{file}: {error}") from None
    given = {**from_file, **settings_of(extra, "-X")}
    given.pop("bootstrap.servers", None)
    return {"group.id": "migrate", **{name.replace("_", "."): value for name, value in given.items()}}


def _topics(given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for each in given:
        name, colon, number = each.partition(":")
        if not name or (colon and not (number.isdigit() and int(number))):
            raise click.UsageError(f"--topic expects NAME or NAME:PARTITIONS such as orders:6, not {each!r}")
        found[name] = int(number) if colon else BY_TOPIC[1]
    return found or dict([BY_TOPIC])


def _values(file: Path | None) -> tuple[bytes, ...]:
    values = (b"{}",) if file is None else tuple(file.read_bytes().splitlines())
    if not values:
        raise click.UsageError(f"--records expects a file with one value a line; {file} is empty")
    return values


def _print(found: list[settings.Finding], runs: list[reading.Measured], problems: list[str]) -> None:
    """The report as text: settings, then what happened by deed, then what stands in the way."""
    if found:
        print_table(["to", "setting", "is", "do"], [
            (each.protocol, f"{each.option}={each.value}" if each.value else each.option, each.verdict, each.instead)
            for each in found
        ])  # fmt: skip
        say()
    if runs:
        deeds = {each.deed: number for number, each in reversed(list(enumerate(runs)))}
        print_table(["what happens", "protocol", "longest pause", "paused", "fetched again", "out of order"], [
            (each.deed, each.protocol, _pause(each), f"{each.paused} of {each.partitions}",
             None if each.protocol == "share" else each.again, each.out_of_order if each.protocol == "share" else None)
            for each in sorted(runs, key=lambda run: deeds[run.deed])
        ])  # fmt: skip
        say()
    for problem in problems:
        complain(problem)
    if not problems:
        say("nothing stands in the way")


def _pause(run: reading.Measured) -> str:
    session = f", {run.session_ms / 1000:.1f} s of it the session" if run.session_ms else ""
    return f"{run.longest_ms / 1000:.2f} s{session}"
