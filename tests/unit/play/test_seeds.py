"""A seed's run as a story: playing it does the same again. (Issue 30, item 5)"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita.cli.sim import sim
from partita.cli.stories.play import play
from partita.play import text
from partita.play.player import ExpectationFailed, Player
from partita.play.seeds import Seeded
from partita.play.words import StoryError
from partita.sim.run import simulate
from support.every_case import every_case

STANDS_STILL = (8, "mixed", "safety")
"""A run in which everything stands still, also amid what is late because everything stood still."""
RUNS = [*product((7,), ("classic", "consumer", "mixed"), ("safety", "liveness")), STANDS_STILL]


def written(seed: int, protocol: str, mode: str) -> str:
    options = ["--seed", str(seed), "--protocol", protocol, "--mode", mode, "--minutes", "0.3", "--story"]
    done = CliRunner().invoke(sim, options, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def player(content: str) -> Player:
    """The player of a seed's story, before it begins."""
    (story,) = text.read(content)
    stage = Seeded.of_story(Player.sentences_of(story))
    assert stage is not None
    return Player(story, stage)


@every_case("seed, protocol, mode", RUNS)
def test_a_seed_as_a_story_does_the_same_again(seed: int, protocol: str, mode: str) -> None:
    story = written(seed, protocol, mode)
    assert ("everything stands still" in story) or (seed, protocol, mode) != STANDS_STILL
    verdict = simulate(seed, protocol=protocol, liveness=mode == "liveness", minutes=0.3)
    playing = player(story)
    for _ in playing.play():
        pass
    assert playing.stage.digest() == f"{verdict.digest:08x}"
    assert playing.stage.now_ms == verdict.virtual_ms


def test_without_one_of_its_faults_it_is_another_history() -> None:
    story = written(7, "classic", "safety").splitlines()
    fault = next(line for line in story if line.startswith("fault 2 "))
    playing = player("\n".join(line for line in story if line != fault))
    with pytest.raises(ExpectationFailed, match="expected digest"):
        for _ in playing.play():
            pass


def test_several_runs_are_several_stories_of_one_file() -> None:
    options = ["--seed", "3", "--runs", "2", "--minutes", "0.05", "--mode", "safety", "--story"]
    assert len(text.read(CliRunner().invoke(sim, options).output)) == 2 * 3, "two seeds, three protocols"


WRONG = {
    "seed 7": "expected a number, a protocol and a mode",
    "seed 7 clasic safety": "did you mean classic?",
    "seed 7 classic safty": "did you mean safety?",
    "seed 7 classic safety\ntopic T 4": "line 3: expected a verb for seed 7 of the simulator, came 'topic'",
    "topic T 4\nfault 3": "line 3: expected a verb for the simulator, came 'fault'",
}


@every_case("content", list(WRONG))
def test_a_wrong_sentence_about_a_seed_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "story.txt"
    file.write_text(f"# Wrong.\n{content}\n")
    done = CliRunner().invoke(play, [str(file)])
    assert done.exit_code == 1
    assert WRONG[content] in done.output


def test_a_fault_needs_its_number() -> None:
    with pytest.raises(StoryError, match="line 3: expected the number of a fault, came 'three'"):
        player("# Wrong.\nseed 7 classic safety\nfault three\n")
