"""The faults of tools/mutants.txt fit the code as it is, so that they can be planted."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).parents[2]
MUTANTS: list[Any] = run_path(str(ROOT / "tools" / "mutants.py"))["mutants"]()


def test_every_fault_can_be_planted() -> None:
    misfits = [
        f"{mutant.row} {mutant.what}: {name}"
        for mutant in MUTANTS
        for name, old, _ in mutant.edits
        if (ROOT / "src" / "partita" / name).read_text().count(old) != 1
    ]
    assert misfits == []


def test_a_fault_that_no_history_can_show_says_why() -> None:
    unseen = [mutant for mutant in MUTANTS if mutant.unseen]
    assert 0 < len(unseen) < len(MUTANTS) / 3
    assert all(mutant.unseen[-1] != "." and mutant.edits for mutant in unseen)


def test_there_are_enough_of_them_and_each_changes_something() -> None:
    assert len(MUTANTS) >= 60
    assert len({(mutant.row, mutant.what) for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.edits and all(old != new for _, old, new in mutant.edits) for mutant in MUTANTS)
