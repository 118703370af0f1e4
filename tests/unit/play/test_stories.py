"""Stories play: those of the package, those of the page; and what is wrong with a story is said. (Issue 30, item 5)"""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from partita.cli.stories.play import play
from partita.play import text
from partita.play.player import ExpectationFailed, Player
from partita.play.simulated import Simulator
from partita.play.words import EXPECTATIONS, MEMBER_VERBS, WORLD_VERBS, StoryError, usage
from support.every_case import every_case

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "stories.md").read_text()
SHIPPED = sorted(file.name.removesuffix(".txt") for file in (resources.files("partita.play") / "stories").iterdir())
NEWCOMER = "# A newcomer.\ntopic T 2\none join T\nadvance 5s\ntwo join T\nadvance 5s\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(play, list(arguments), catch_exceptions=False)


def played(content: str) -> Player:
    """The player of a story after its end."""
    (story,) = text.read(content)
    player = Player(story, Simulator.of([]))
    for _ in player.play():
        pass
    return player


@every_case("name", SHIPPED)
def test_every_story_of_the_package_goes_as_it_expects(name: str) -> None:
    done = run(name)
    assert done.exit_code == 0, done.output[-500:]


def test_the_stories_of_the_page_play(tmp_path: Path) -> None:
    stories = [block for block in re.findall(r"```text\n(.*?)```", PAGE, re.S) if block.startswith("# ")]
    assert len(stories) >= 2
    for number, story in enumerate(stories):
        file = tmp_path / f"{number}.txt"
        file.write_text(story)
        done = run(str(file))
        assert done.exit_code == 0, done.output[-500:]


def test_the_page_lists_every_word() -> None:
    sentences = [usage(verb) for verb in (*MEMBER_VERBS, *WORLD_VERBS) if verb != "expect"]
    forms = [f"expect {form}" for form in EXPECTATIONS]
    assert [each for each in (*sentences, *forms) if f"- `{each}`: " not in PAGE] == []


def test_a_story_gives_the_same_events_each_time() -> None:
    first, again = (played(NEWCOMER).stage for _ in range(2))
    assert first.seen.events == again.seen.events
    assert first.notes() == again.notes()


def test_expected_output_is_compared_line_by_line() -> None:
    assert played("# One.\ntopic T 1\none join T\nadvance 5s\n----\n0.000 one starts\n0.011 one assigned T-0\n")
    with pytest.raises(ExpectationFailed, match=r"line 2: expected the lines .* came\n  0\.000 one starts"):
        played("# One.\ntopic T 1\none join T\n----\n0.000 one stands still\n")


WRONG: dict[str, tuple[str, str]] = {
    "one jion T": ("did you mean join?", "NAME join"),
    "jion": ("'jion'", "did you mean join?"),
    "one xyz": ("expected one of the verbs join, poll", "came 'one xyz'"),
    "avance 5s": ("did you mean advance?", "advance TIME"),
    "advance 5": ("expected a time such as 500ms, 10s or 2m", "came '5'"),
    "topic T": ("expected a name and a number", "topic NAME PARTITIONS"),
    "records T-9 5": ("expected a partition below 2", "came 'T-9'"),
    "records X-0 5": ("expected a topic of this story (T)", "came 'X'"),
    "add-partitions T 1": ("expected more than 2 partitions", "came 1"),
    "two crash": ("expected a member of this story (one)", "came 'two'"),
    "onee crash": ("came 'onee'", "did you mean one?"),
    "one poll": ("expected a member that polls by hand", "add polls=by-hand to its join"),
    "one close now": ("expected nothing after close", "came 'now'"),
    "one crash session_timeout_ms=5": ("expected no options after crash", "options belong to join"),
    "two join T sesion_timeout_ms=5000": ("sesion_timeout_ms", "session_timeout_ms"),
    "two join T session_timeout_ms=soon": ("session_timeout_ms", "soon"),
    "expect one own T-0": ("expected a form of expect", "WHO owns PARTITION"),
    "expect one owns T": ("expected a partition such as T-0", "came 'T'"),
    "expect one got JoinGroup": ("expected an API and an error", "came 'JoinGroup'"),
}


@every_case("sentence", list(WRONG))
def test_a_wrong_sentence_says_its_line_and_what_to_write(sentence: str) -> None:
    with pytest.raises(StoryError) as caught:
        played(f"# Wrong.\ntopic T 2\none join T\n\n{sentence}\n")
    said = str(caught.value)
    assert said.startswith("line 5: ")
    assert all(part in said for part in WRONG[sentence]), said


FALSE = {
    "expect one owns T-0": "expected one owns T-0; it is: T-0 T-1",
    "expect one owns nothing": "it is: T-0 T-1",
    "expect members nobody": "it is: one",
    "expect generation 2": "it is: 1",
    "expect rebalances 0": "it is: 1",
    "expect committed T-0 7": "it is: nothing",
    "expect cause session expired": "it is: member joined",
    "expect one ended": "it is: one runs",
    "expect one raised KafkaError": "it is: none",
    "expect one read 5": "it is: 0",
    "expect one got SyncGroup ILLEGAL_GENERATION": "it is: FindCoordinator NONE, JoinGroup MEMBER_ID_REQUIRED",
    "expect one never got SyncGroup NONE": "it is: FindCoordinator NONE",
    "expect one sent SyncGroup before JoinGroup": "it is: FindCoordinator, JoinGroup, SyncGroup",
}


@every_case("sentence", list(FALSE))
def test_an_expectation_that_fails_shows_how_it_is(sentence: str) -> None:
    with pytest.raises(ExpectationFailed) as caught:
        played(f"# False.\ntopic T 2\none join T\nadvance 2s\n{sentence}\n")
    assert str(caught.value).startswith("line 5: ")
    assert FALSE[sentence] in str(caught.value), caught.value


def test_a_broker_that_dies_comes_back_and_the_group_goes_on() -> None:
    end = "crash-broker 3s\nadvance 20s\nexpect one got any NONE\nexpect members one two\n"
    assert played(NEWCOMER + end).stage.seen.owners().keys() == {("T", 0), ("T", 1)}


def test_a_topic_that_is_deleted_is_read_by_nobody() -> None:
    start = (
        "# Gone.\ntopic T 1\ntopic U 1\none join T U metadata_max_age_ms=5000\nadvance 5s\nexpect one owns T-0 U-0\n"
    )
    assert played(f"{start}delete-topic U\nadvance 20s\nexpect one owns T-0\n")


def test_a_story_that_fails_ends_with_1_and_still_shows_who_owned_what(tmp_path: Path) -> None:
    file = tmp_path / "story.txt"
    file.write_text(f"{NEWCOMER}expect one owns T-1\n")
    done = run(str(file))
    assert done.exit_code == 1
    assert "line 7: expected one owns T-1; it is: T-0" in done.output
    assert "(2) 10.0 s two join T" in done.output


def test_a_story_is_shown_as_json_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "story.html"
    found: dict[str, Any] = json.loads(run("newcomer", "--json", "--html", str(page)).stdout)
    assert found["owners"][-1]["owners"] == {"T-0": "one", "T-1": "one", "T-2": "two", "T-3": "two"}
    assert {"line": 3, "text": "one join T", "at_ms": 0}.items() <= found["sentences"][1].items()
    content = page.read_text()
    assert content.count("<svg") == 3, "two widths of the timeline, and the sequence chart"
    assert "http" not in content.replace("http://www.w3.org/2000/svg", ""), "nothing is fetched from elsewhere"


def test_stories_are_listed_and_near_names_are_proposed() -> None:
    listed = run("--list").output
    assert [name for name in SHIPPED if not re.search(rf"^{name} ", listed, re.M)] == []
    assert "did you mean newcomer?" in run("newcommer").output
    assert run("newcomer", "--text").output.startswith("# A newcomer joins")
    assert "NAME join TOPIC ..." in run("--words").output
