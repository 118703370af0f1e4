"""Programs printed in the documents, ended at any of their statements, and what became of every record.

A program's syntax tree is given a stop before each statement and behind each block. A stop does nothing, or ends the
program there: by an exception, by `break`, by a cancelled task, or as if the process were killed.
"""

from __future__ import annotations

import ast
import asyncio
import re
import textwrap
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from partita import Admin, Broker
from partita.consumer.errors import ProcessingError
from partita.consumer.shell import client_driver

ROOT = Path(__file__).resolve().parents[3]
WITHIN_S = 60
BLOCK = re.compile(r"```python\n(.*?)```", re.S)


class End(Enum):
    """How a program ends at a stop."""

    NOT = "goes on"
    RAISE = "an exception"
    BREAK = "break"
    CANCEL = "cancellation"
    KILL = "kill"


@dataclass(frozen=True)
class Program:
    """One consume loop of a page.

    `block` is text that only its block has; `before` are texts of blocks that run first. `work` maps the
    beginning of the statement that processes records to the expression for what is processed then. `again` records are
    read again although nothing failed, as the page says.
    """

    page: str
    block: str
    group: str
    topic: str
    work: tuple[str, str]
    before: tuple[str, ...] = ()
    again: int = 0
    is_long: bool = True
    """Do its loops go around three times?"""

    def __str__(self) -> str:
        return f"{self.page}: {self.block}"


def _block(page: str, part: str) -> str:
    found = [block[1] for block in BLOCK.finditer((ROOT / page).read_text()) if part in block[1]]
    assert len(found) == 1, f"{page} has {len(found)} blocks with {part!r}"
    return textwrap.dedent(found[0])


@dataclass
class Fate:
    """What became of the records of a topic."""

    processed: Counter[tuple[int, int]]
    lost: set[tuple[int, int]]
    again: set[tuple[int, int]]
    """Processed, and still to be read by the group."""


class Stopped(Exception):
    """The exception that ends a program."""


class Killed(BaseException):
    """Unwinds a program whose process is gone; nothing of it is heard any more."""


class Stops(ast.NodeTransformer):
    """Adds the calls. `count` is their number; `in_loops` and `in_tasks` say where one can break and be cancelled."""

    def __init__(self, work: tuple[str, str]) -> None:
        self._work = work
        self._loops = 0
        self._is_task = False
        self._has_stops = True
        self.count = 0
        self.in_loops: set[int] = set()
        self.in_tasks: set[int] = set()

    def visit_Module(self, node: ast.Module) -> ast.Module:
        body = [each for part in node.body for each in self._part(part)]
        first = next(place for place, each in enumerate(body) if getattr(each, "is_program", False))
        node.body = [*body[:first], *ast.parse("__begin__()").body, *body[first:]]
        return node

    def _part(self, node: ast.stmt) -> list[ast.stmt]:
        """Stops are in what consumes and in the work; a producer's part is another story."""
        is_program = getattr(node, "is_program", False) and "Consumer(" in ast.unparse(node)
        self._has_stops = is_program or getattr(node, "name", "") == "process"
        return self._stopped([node]) if is_program else [self.visit(node)]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.stmt) and hasattr(node, "body"):
            is_loop = isinstance(node, ast.For | ast.AsyncFor | ast.While)
            before = self._loops, self._is_task
            self._loops += is_loop
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._loops, self._is_task = 0, isinstance(node, ast.AsyncFunctionDef)
            node.body = self._stopped(node.body)
            self._loops, self._is_task = before
        return node

    def _stopped(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            is_work = ast.unparse(statement).startswith(self._work[0])
            out += [*(self._stop() if self._has_stops else ()), self.visit(statement)]
            if is_work:
                out += ast.parse(f"__processed__({self._work[1]})").body
        if not self._has_stops:
            return out
        ends = isinstance(body[-1], ast.Return | ast.Break | ast.Raise)
        return out if ends else [*out, *self._stop()]

    def _stop(self) -> list[ast.stmt]:
        self.count += 1
        if self._is_task:
            self.in_tasks.add(self.count)
        if self._loops:
            self.in_loops.add(self.count)
            return ast.parse(f"while __stop__({self.count}): break\nif __breaks__({self.count}): break").body
        return ast.parse(f"__stop__({self.count})").body


def instrumented(program: Program) -> tuple[ast.Module, Stops]:
    """The program with stops, its own Broker taken away, and what the stops are."""
    tree = ast.Module([], [])
    for part in (*program.before, program.block):
        some = ast.parse(_block(program.page, part)).body
        for statement in some:
            statement.is_program = part == program.block  # type: ignore[attr-defined]  # for Stops
        tree.body += some
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "partita":
            node.names = [name for name in node.names if name.name != "Broker"] or [ast.alias("Admin")]
    stops = Stops(program.work)
    return ast.fix_missing_locations(stops.visit(tree)), stops


class Run:
    """One run of a program, which ends when `stop` is passed for the `times`-th time."""

    def __init__(self, stop: int, times: int, end: End) -> None:
        self.processed: Counter[tuple[int, int]] = Counter()
        self.before: dict[tuple[str, int], int] = {}
        self.has_ended = False
        self._stop, self._left, self._end = stop, times, end

    def _is_reached(self, number: int) -> bool:
        if number != self._stop or self.has_ended:
            return False
        self._left -= 1
        self.has_ended = self._left == 0
        return self.has_ended

    def begin(self, committed: Mapping[tuple[str, int], int]) -> None:
        """Called before the program's own block: what blocks before it did is not counted."""
        self.processed.clear()
        self.before = dict(committed)

    def at_stop(self, number: int) -> None:
        """Called before each statement and behind each block."""
        if self._end in (End.NOT, End.BREAK) or not self._is_reached(number):
            return
        if self._end is End.RAISE:
            raise Stopped
        if self._end is End.CANCEL:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        else:
            _silence()
            raise Killed

    def at_break(self, number: int) -> bool:
        """Called in loops: leave the loop here?"""
        return self._end is End.BREAK and self._is_reached(number)

    def at_work(self, records: Any) -> None:
        """Called when the program has processed a record, or those of a poll."""
        some = [records] if hasattr(records, "offset") else records
        self.processed.update((record.partition, record.offset) for record in some)


def play(program: Program, stop: int = 0, times: int = 1, end: End = End.NOT) -> Fate | None:
    """Run the program until `stop` is passed for the `times`-th time and end it there; None if it never is."""
    tree, _ = instrumented(program)
    run = Run(stop, times, end)
    expected: list[type[BaseException]] = [Stopped, Killed, asyncio.CancelledError]
    if end is not End.NOT:  # what a page says after its loop, assertions included, need not hold for half a run
        expected += [AssertionError, LookupError, ProcessingError]
    with Broker(num_partitions=4) as broker:
        namespace: dict[str, Any] = {
            "__name__": "page", "__stop__": run.at_stop, "__breaks__": run.at_break, "__processed__": run.at_work,
            "__begin__": lambda: run.begin(broker.committed(program.group)),
            "bootstrap": broker.bootstrap, "Broker": lambda: nullcontext(broker), "print": lambda *_: None,
        }  # fmt: skip
        watchdog = threading.Timer(WITHIN_S, _wake_up)
        watchdog.start()
        try:
            with suppress(*expected):
                exec(compile(tree, program.page, "exec"), namespace)
        finally:
            watchdog.cancel()
        if end is not End.NOT and not run.has_ended:
            return None
        return fate(broker, program, run)


def _silence() -> None:
    """Cut every consumer off from the world, as the end of its process would: no commit, no goodbye."""
    for each in list(client_driver._DRIVERS):
        each.is_forked = True
        each.io.stop()


def _wake_up() -> None:
    """A program that hangs ends with WakeupError."""
    for each in list(client_driver._DRIVERS):
        each.wakeup()


def fate(broker: Broker, program: Program, run: Run) -> Fate:
    """What became of every record of the program's topic."""

    def behind(committed: Mapping[tuple[str, int], int]) -> set[tuple[int, int]]:
        return {(p, offset) for p, offset in there if offset < committed.get((program.topic, p), 0)}

    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        is_there = program.topic in {topic.name for topic in admin.list_topics()}
    records = broker.records(program.topic) if is_there else []
    there = {(record.partition, record.offset) for record in records}
    read = behind(broker.committed(program.group))
    return Fate(run.processed, read - set(run.processed) - behind(run.before), set(run.processed) - read)
