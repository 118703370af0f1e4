"""The programs of docs/transactions.md that read, compute and write, ended at each of their lines, in every way."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from partita import AbortableTransactionError, Admin, Consumer, Producer
from support.producer.transaction_stories import seen

PAGE = Path(__file__).parents[3] / "docs" / "transactions.md"
KILLED = 9
CHILD = """
import os, sys

source, bootstrap, line, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
exec("from partita import Consumer, Producer")
exec(compile(source, "the program", "exec"), globals())


def tracer(frame, event, arg):
    global times
    if frame.f_code.co_filename != "the program":
        return None
    if event == "line" and frame.f_lineno == line:
        times -= 1
        if not times:
            os._exit(9)
    return tracer


sys.settrace(tracer)
copy_totals(bootstrap)
"""


def program(name: str = "copy_totals") -> str:
    """A function of the page with those that it uses, without the call at the end."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (source,) = (block for block in blocks if f"def {name}(" in block)
    source = str(source[: source.rindex("\n\n\n")])
    return source if name == "copy_totals" else f"{program()}\n\n\n{source}"


def lines(source: str) -> list[int]:
    """The numbers of the lines that may run, from the first function on."""
    codes = [compile(source, "the program", "exec")]
    found: set[int] = set()
    while codes:
        code = codes.pop()
        inner = [const for const in code.co_consts if hasattr(const, "co_lines")]
        codes += inner
        if code.co_name != "<module>":
            found |= {line for _, _, line in code.co_lines() if line is not None and line > code.co_firstlineno}
    return sorted(found)


def run(bootstrap: str, line: int = 0, times: int = 1) -> int:
    """Run it; it dies when `line` is reached for the time of this number. Returns its exit code."""
    words = [sys.executable, "-c", CHILD, program(), bootstrap, str(line), str(times)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode


def killed_at_its_lines(bootstrap: str, times: tuple[int, ...] = (1,)) -> None:
    """Kill it at every line, the first, second ... time that the line is reached; then every order has one total."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        for topic in ("orders", "totals"):
            admin.create_topic(topic, 2)
    kills, number = 0, 0
    with Producer(bootstrap_servers=bootstrap) as orders:
        for line in lines(program()):
            for time in times:
                for _ in range(4):
                    orders.send("orders", f"{number:04}", key=f"{number}")
                    number += 1
                orders.flush(60)
                kills += run(bootstrap, line, time) == KILLED
    assert run(bootstrap) == 0
    assert kills >= len(lines(program())), "every line is reached"
    assert seen(bootstrap, "totals", partitions=2) == [f"total of {one:04}" for one in range(number)]


def aborted_at_its_lines(bootstrap: str) -> None:
    """A transaction that has to be aborted at any line: the program goes back as the page says, and goes on."""
    assert "`except AbortableTransactionError: consumer.seek_to_committed()`" in " ".join(PAGE.read_text().split())
    before, _, body = program().partition("                with producer.transaction():\n")
    tries = "".join(f"    {line}\n" for line in body.splitlines())
    caught = "                except AbortableTransactionError:\n                    consumer.seek_to_committed()\n"
    imports = "from partita import AbortableTransactionError\n\n"
    start = f"{imports}{before}                try:\n                    with producer.transaction():\n"
    first = start.count("\n") + 1
    places = list(range(first, first + len(body.splitlines())))
    broken_at_lines(bootstrap, start + tries + caught, "copy_totals", places, lambda done: done, must_abort)


Break = Callable[[], None]
"""What happens when a line is reached."""


def broken_at_its_lines(bootstrap: str, name: str, run: Callable[..., object], happens: Break) -> None:
    """Let it end at every line in this process, start it again each time; then every order has one total."""
    source = program(name)
    before = source[: source.index(f"def {name}(")].count("\n") + 1
    broken_at_lines(bootstrap, source, name, [line for line in lines(source) if line > before], run, happens)


def broken_at_lines(
    bootstrap: str, source: str, name: str, places: list[int], run: Callable[..., object], happens: Break
) -> None:
    """As `broken_at_its_lines`, for these lines of a program."""
    number = broken = 0
    code = compile(source, "the program", "exec")
    names: dict[str, Any] = {"Consumer": Consumer, "Producer": Producer}
    exec(code, names)
    with Admin(bootstrap_servers=bootstrap) as admin:
        for topic in ("orders", "totals"):
            admin.create_topic(topic, 2)
    with Producer(bootstrap_servers=bootstrap) as orders:
        for place in places:
            for _ in range(3):
                orders.send("orders", f"{number:04}", key=f"{number}")
                number += 1
            orders.flush(60)
            with at_line(place, happens) as reached, suppress(Broken, asyncio.CancelledError):
                run(names[name](bootstrap))
            broken += len(reached)
    run(names[name](bootstrap))
    assert broken == len(places), "every line is reached"
    assert seen(bootstrap, "totals", partitions=2) == [f"total of {one:04}" for one in range(number)]


class Broken(Exception):
    """What a line raises."""


def raises() -> None:
    """Break off by an exception."""
    raise Broken


def must_abort() -> None:
    """As a call does whose transaction cannot be committed."""
    raise AbortableTransactionError("a test says so")


def is_cancelled() -> None:
    """The task hears of it where it waits next."""
    task = asyncio.current_task()
    assert task is not None, "the program runs in a task"
    task.cancel()


@contextmanager
def at_line(line: int, happens: Break) -> Iterator[list[int]]:
    """`happens` once, when a line of the program is reached for the first time; the list tells that it was."""
    reached: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != "the program":
            return None
        if event == "line" and frame.f_lineno == line and not reached:
            reached.append(line)
            happens()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield reached
    finally:
        sys.settrace(before)
