"""Prints the coordinator's decision tables from the code: `python tools/group_tables.py > docs/group-tables.md`.

A test compares the file with what this prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from partita.group.classic import join, sync
from partita.group.classic.heartbeat import HEARTBEAT
from partita.group.classic.join import GUARDS, JOIN, JoinCase
from partita.group.classic.leave import LEAVE
from partita.group.classic.rebalance import ALLOWED_MOVES
from partita.group.classic.sync import SYNC, SyncCase
from partita.group.offsets.commit import COMMIT, CommitCase
from partita.group.offsets.transactional import TXN_COMMIT
from partita.group.state.model import GroupState

INTRO = """# Decisions of the group coordinator

Printed from the code by `tools/group_tables.py`; do not edit. Guards come first, the first that holds answers; then the
table, states down and cases across. A verb in capitals is a function of that name, which says what it does.
"""


def rows(table: dict[GroupState, tuple[object, ...]], cases: type[Enum]) -> Iterable[str]:
    yield "| state | " + " | ".join(case.name for case in cases) + " |"
    yield "|---" * (len(cases) + 1) + "|"
    for state, cells in table.items():
        yield f"| {state.value} | " + " | ".join(cell_name(cell) for cell in cells) + " |"


def cell_name(cell: object) -> str:
    if cell is None:
        return "IDENTIFY"
    return cell.name if isinstance(cell, Enum) else getattr(cell, "__name__", str(cell))


def first_line(function: Callable[..., object]) -> str:
    return (function.__doc__ or "").strip().split("\n")[0]


def verbs(table: dict[GroupState, tuple[Callable[..., object], ...]]) -> Iterable[str]:
    for verb in dict.fromkeys(cell for cells in table.values() for cell in cells):
        if verb.__doc__:
            yield f"- **{verb.__name__}**: {first_line(verb)}"


def lines() -> Iterable[str]:
    yield INTRO
    yield "## Moves between states\n"
    for state, targets in ALLOWED_MOVES.items():
        yield f"- {state.value} → {', '.join(target.value for target in targets)}"
    yield "\n## JoinGroup\n\nAn absent group: with an id UNKNOWN_MEMBER_ID, without one it is made. Then the guards:\n"
    for guard, error in GUARDS:
        yield f"1. {guard.__name__.strip('_').replace('_', ' ')} → {error.name}"
    yield ""
    yield from rows(JOIN, JoinCase)
    yield ""
    yield from verbs(JOIN)
    yield "\n## SyncGroup\n"
    yield from rows(SYNC, SyncCase)
    yield ""
    yield from verbs(SYNC)
    yield "\n## Heartbeat\n"
    for state, error in HEARTBEAT.items():
        yield f"- {state.value}: {error.name}"
    yield "\n## LeaveGroup, each entry\n"
    for case, error in LEAVE.items():
        yield f"- {case.value} → {'removed' if not error else error.name}"
    yield "\n## OffsetCommit\n"
    yield from rows(COMMIT, CommitCase)
    yield "\n## TxnOffsetCommit\n"
    yield from rows(TXN_COMMIT, CommitCase)
    yield "\nIDENTIFY: instance id unknown or another's, member id unknown, generation not the current one, in this"
    yield "order; a member of the current generation may commit, but plainly not while the assignment is awaited."


def text() -> str:
    assert join.JOIN is JOIN
    assert sync.SYNC is SYNC
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    print(text(), end="")
