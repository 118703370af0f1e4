"""A seed is a history: again, in another process, with other hashes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from partita.sim.run import simulate

_PRINT = "from partita.sim.run import simulate; print([simulate(s, minutes=0.3).digest for s in range(6)])"


@pytest.mark.parametrize("seed", range(8))
def test_a_seed_is_the_same_history_again(seed: int) -> None:
    first, again = (simulate(seed, minutes=0.5, keep_trace=True) for _ in range(2))
    assert list(first.trace.lines()) == list(again.trace.lines())
    assert (first.digest, first.events) == (again.digest, again.events)


def test_seeds_differ() -> None:
    digests = [simulate(seed, minutes=0.3).digest for seed in range(6)]
    assert len(set(digests)) == 6


def test_neither_the_process_nor_its_hashes_matter() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert told[0].strip() == str([simulate(seed, minutes=0.3).digest for seed in range(6)])
