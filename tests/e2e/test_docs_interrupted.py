"""The consume loops of the documents, ended at every statement: nothing is lost, and nothing comes twice without need.

Issue 10.2: a program that a user copies must be right when it is killed, raises, breaks off or is cancelled anywhere.
"""

from __future__ import annotations

from typing import Any

import pytest

from support.docs.interrupted import End, Program, instrumented, play

FIRST, LONG = "docs/first-consumer.md", "docs/long-processing.md"
CONSUMER, MIGRATING = "docs/consumer.md", "docs/migrating.md"
SETUP, CLIENTS, ORDERS = "import threading", "import Consumer, Producer", "customer {number % 3}"
WORK = ("done.append", "record")

BOTH = (ORDERS, "seen.append", "# the work")
PROGRAMS = (
    Program("README.md", "greetings", "readers", "greetings", ("print(", "records[0]"), is_long=False),
    Program(FIRST, "seen.append", "billing", "orders", ("seen.append", "record"), (ORDERS,)),
    Program(FIRST, "# the work", "billing", "orders", ("print(", "records"), (ORDERS, "seen.append"), is_long=False),
    Program(FIRST, "async def count", "report", "orders", ("found += 1", "record"), BOTH),
    Program(CONSUMER, "in range(20)", "orders", "orders", ("print(", "record"), again=1),
    Program(LONG, "for record in consumer:", "loop", "jobs", WORK, (SETUP,)),
    Program(LONG, "consumer.pause()", "paused", "jobs", WORK, (SETUP,)),
    Program(LONG, "consumer.hold", "held", "jobs", WORK, (SETUP,)),
    Program(MIGRATING, "record.timestamp", "moved", "orders", ("print(", "record"), (CLIENTS,), again=1, is_long=False),
)


def cases() -> list[Any]:
    """Every stop of every program; in loops at the third time, when some records are done and some are not."""
    found = []
    for program in PROGRAMS:
        _, stops = instrumented(program)
        for stop in range(1, stops.count + 1):
            is_in_loop = stop in stops.in_loops
            ends = [End.RAISE, *([End.KILL, End.BREAK] if is_in_loop else [])]
            ends += [End.CANCEL] if stop in stops.in_tasks else []
            times = 3 if is_in_loop and program.is_long else 1
            found += [pytest.param(program, stop, times, end, id=f"{program}-{stop}-{end.name}") for end in ends]
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_that_nothing_stops_does_everything_once(program: Program) -> None:
    fate = play(program)
    assert fate is not None
    assert fate.lost == set()
    assert max(fate.processed.values()) == 1
    assert len(fate.again) == program.again


@pytest.mark.parametrize(("program", "stop", "times", "end"), cases())
def test_a_program_that_ends_anywhere_loses_nothing(program: Program, stop: int, times: int, end: End) -> None:
    fate = play(program, stop, times, end)
    assert fate is None or fate.lost == set()
