"""Prints the coordinator's decision tables from the code: `python tools/group_tables.py > docs/group-tables.md`.

A test compares the file with what this prints.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from partita.group.classic import heartbeat, join, leave, rebalance, sync
from partita.group.consumer_group import classic_members, reconcile
from partita.group.consumer_group import heartbeat as consumer
from partita.group.guards import MEMBER_GUARDS, Guards
from partita.group.offsets import commit, transactional
from partita.group.records.consumer_group import MemberState
from partita.protocol.error_codes import ErrorCode
from partita.share.partition.model import AFTER, MOVES

INTRO = """# Decisions of the group coordinator

Printed from the code by `tools/group_tables.py`; do not edit. Each request has guards, of which the first that holds
answers; then a table of states by kinds of request; then its verbs, with Kafka 4.4.0's method for the same. Meanings
stand where a name comes first. An absent group counts as an empty one unless it has guards of its own. A group in
state Dead belongs to a shard that was unloaded.
"""
KAFKA = {
    "JoinGroup": "classicGroupJoinToClassicGroup, acceptJoiningMember, classicGroupJoinNewMember, "
    "classicGroupJoinExistingMember",
    "SyncGroup": "classicGroupSyncToClassicGroup, validateSyncGroup",
    "Heartbeat": "classicGroupHeartbeatToClassicGroup, validateClassicGroupHeartbeat",
    "LeaveGroup": "classicGroupLeaveToClassicGroup",
    "OffsetCommit": "commitOffset, ClassicGroup.validateOffsetCommit",
    "TxnOffsetCommit": "commitTransactionalOffset, ClassicGroup.validateOffsetCommit",
    "ConsumerGroupHeartbeat": "consumerGroupHeartbeat, consumerGroupLeave, CurrentAssignmentBuilder",
    "Reconciliation": "CurrentAssignmentBuilder",
}
Table = Mapping[Any, tuple[Callable[..., Any], ...]]
_KAFKA = re.compile(r"\s*\(Kafka: ([^)]*)\)")


def attribute_docs(cases: type[Enum]) -> dict[str, str]:
    """What stands below each member of the enum."""
    (body,) = ast.parse(inspect.getsource(cases)).body
    assert isinstance(body, ast.ClassDef)
    docs, name = {}, ""
    for node in body.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif name and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs[name] = " ".join(str(node.value.value).split())
    return docs


def described(function: Callable[..., Any]) -> str:
    """The promise of the function, and Kafka's name for it where its docstring says one."""
    text = " ".join((function.__doc__ or "").split())
    named = _KAFKA.search(text)
    promise = _KAFKA.sub("", text).strip()
    return f"{promise} (Kafka: {named[1]})" if named else promise


def guards(listed: Iterable[tuple[Callable[..., bool], ErrorCode]]) -> Iterable[str]:
    for guard, error in listed:
        yield f"1. *{guard.__name__.replace('_', ' ')}* → {error.name}: {described(guard)}"


def row_name(row: Enum) -> str:
    """States of the wire by their names there, all others by ours."""
    return row.value if isinstance(row.value, str) else row.name


def table(cells: Table, cases: type[Enum]) -> Iterable[str]:
    yield "| state | " + " | ".join(case.name for case in cases) + " |"
    yield "|---" * (len(cases) + 1) + "|"
    for state, row in cells.items():
        yield f"| {row_name(state)} | " + " | ".join(cell.__name__ for cell in row) + " |"
    yield ""
    yield from (f"- {name}: {doc}" for name, doc in attribute_docs(cases).items())
    yield ""
    for verb in dict.fromkeys(cell for row in cells.values() for cell in row):
        yield f"- **{verb.__name__}**: {described(verb)}"


def request(name: str, listed: Guards[Any], cells: Table, cases: type[Enum]) -> Iterable[str]:
    yield f"\n## {name}\n\nKafka: {KAFKA[name]}.\n"
    found, of_members = list(guards(listed)), list(guards(MEMBER_GUARDS))
    for start in range(len(found)):
        if found[start : start + len(of_members)] == of_members:
            found[start : start + len(of_members)] = ["1. the guards of members"]
    yield from found
    yield ""
    yield from table(cells, cases)


def consumer_groups() -> Iterable[str]:
    """The tables of KIP-848 groups."""
    yield f"\n## ConsumerGroupHeartbeat\n\nKafka: {KAFKA['ConsumerGroupHeartbeat']}.\n"
    yield "Checks, of which the first that finds something answers:\n"
    yield from (f"1. *{check.__name__.replace('_', ' ')}*: {described(check)}" for check in consumer.CHECKS)
    yield "\nThen what there is under the group id, by what is asked:\n"
    yield from rows(consumer.Found)
    yield from table(consumer.GROUP, consumer.Ask)
    yield "\nIn a KIP-848 group, who asks:\n"
    yield from rows(consumer.Who)
    yield from table(consumer.MEMBERS, consumer.Ask)
    yield f"\n## Reconciliation of one member\n\nKafka: {KAFKA['Reconciliation']}.\n"
    yield from rows(MemberState)
    yield from table(reconcile.RECONCILE, reconcile.Reported)
    yield "\n## Members of the classic protocol in a KIP-848 group\n"
    yield "JoinGroup, which is otherwise treated as a heartbeat with what the subscription says:\n"
    yield from guards(classic_members.JOIN_GUARDS)
    yield "\nSyncGroup and Heartbeat:\n"
    yield from guards(classic_members.CLAIM_GUARDS)


def share_groups() -> Iterable[str]:
    """The states of a record in a share group."""
    yield "\n## Records of a share group\n"
    yield "Of each record that a share group has begun with, at its partition's leader. ACQUIRED is never stored.\n"
    yield "| from | to | when |\n|---|---|---|"
    for state, moves in MOVES.items():
        for to, why in moves.items():
            yield f"| {state.name} | {to.name} | {why} |"
    yield "\nAn acknowledgement leads to: " + ", ".join(f"{kind.name} → {to.name}" for kind, to in AFTER.items())
    yield "\nRENEW keeps a record ACQUIRED and begins its lock anew. Each move to ACQUIRED counts as a delivery."


def rows(cases: type[Enum]) -> Iterable[str]:
    """What the rows of the next table mean."""
    yield from (f"- {name}: {doc}" for name, doc in attribute_docs(cases).items())
    yield ""


def lines() -> Iterable[str]:
    yield INTRO
    yield "## Moves between states\n"
    for state, targets in rebalance.ALLOWED_MOVES.items():
        yield f"- {state.value} → {', '.join(target.value for target in targets)}"
    yield "\n## Guards of members\n\nUsed by SyncGroup, Heartbeat and, as IDENTIFY, by commits.\n"
    yield from guards(MEMBER_GUARDS)
    yield from request("JoinGroup", join.JOIN_GUARDS, join.JOIN, join.JoinCase)
    yield "\nFor an absent group these come first, and a request that passes creates it:\n"
    yield from guards(join.JOIN_ABSENT_GUARDS)
    yield from request("SyncGroup", sync.SYNC_GUARDS, sync.SYNC, sync.SyncCase)
    yield from request("Heartbeat", heartbeat.HEARTBEAT_GUARDS, heartbeat.HEARTBEAT, heartbeat.HeartbeatCase)
    yield from request("LeaveGroup", leave.LEAVE_GUARDS, leave.LEAVE, leave.LeaveCase)
    yield from request("OffsetCommit", commit.COMMIT_GUARDS, commit.COMMIT, commit.CommitCase)
    yield "\nFor an absent group, instead of the guards above:\n"
    yield from guards(commit.COMMIT_ABSENT_GUARDS)
    txn = (transactional.TXN_COMMIT_GUARDS, transactional.TXN_COMMIT, commit.CommitCase)
    yield from request("TxnOffsetCommit", *txn)
    yield from consumer_groups()
    yield from share_groups()


def text() -> str:
    """The page; what a guard, a case or a verb means is printed where it comes first."""
    printed: set[str] = set()
    page: list[str] = []
    for line in "\n".join(lines()).split("\n"):
        if line not in printed:
            page.append(line)
        elif line.startswith("1. "):
            page.append(line.partition(": ")[0])
        elif not line.startswith("- "):
            page.append(line)
        if line.startswith(("- ", "1. ")):
            printed.add(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page)) + "\n"


if __name__ == "__main__":
    print(text(), end="")
