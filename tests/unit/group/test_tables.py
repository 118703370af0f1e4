"""Every cell of every decision table is reached, and answers; IMPOSSIBLE is what cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from runpy import run_path

import pytest

from partita.group.classic import join
from partita.group.classic.heartbeat import HEARTBEAT, HeartbeatCase
from partita.group.classic.join import JOIN, JoinCase
from partita.group.classic.leave import LEAVE, LeaveCase
from partita.group.classic.rebalance import ALLOWED_MOVES
from partita.group.classic.sync import SYNC, SyncCase
from partita.group.guards import IMPOSSIBLE
from partita.group.offsets.commit import COMMIT, CommitCase
from partita.group.offsets.transactional import TXN_COMMIT
from partita.group.state.model import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, GroupState
from support.group.world import World

LIVE = (EMPTY, PREPARING, COMPLETING, STABLE)
SETUP = {
    EMPTY: ["P join v=5", "Z join type=connect p= v=5"],
    PREPARING: ["stable A B C/three", "P join", "B join p=range,x"],
    COMPLETING: ["A join", "A join", "B join", "B join", "C join i=three", "+9000", "P join"],
    STABLE: ["stable A B C/three", "P join"],
}
JOINS = {
    JoinCase.NEEDS_ID: "N join v=4",
    JoinCase.NEW: "N join v=3",
    JoinCase.RETURNING: "C join new",
    JoinCase.PENDING: "P join",
    JoinCase.LEADER: "A join",
    JoinCase.CHANGED: "B join p=range,y",
    JoinCase.UNCHANGED: "B join",
}


def world(state: GroupState) -> World:
    made = World()
    made.run(SETUP[state])
    group = made.shell.shard.groups["g"]
    assert group.state is state, f"set-up gives {group.state}"
    return made


TABLES: list[tuple[Mapping[GroupState, tuple[object, ...]], type[IntEnum]]] = [
    (JOIN, JoinCase), (SYNC, SyncCase), (HEARTBEAT, HeartbeatCase), (LEAVE, LeaveCase),
    (COMMIT, CommitCase), (TXN_COMMIT, CommitCase),
]  # fmt: skip


@pytest.mark.parametrize(("table", "cases"), TABLES, ids=["join", "sync", "heartbeat", "leave", "commit", "txn"])
def test_tables_are_whole(table: Mapping[GroupState, tuple[object, ...]], cases: type[IntEnum]) -> None:
    assert tuple(table) == LIVE
    assert all(len(row) == len(cases) for row in table.values())


def test_every_state_can_move_to_dead() -> None:
    assert set(ALLOWED_MOVES) == set(GroupState)
    assert all(DEAD in moves for moves in ALLOWED_MOVES.values())


def join_cells() -> Iterator[tuple[GroupState, JoinCase]]:
    for state in LIVE:
        for case in JoinCase:
            known_member_needed = case in (JoinCase.RETURNING, JoinCase.LEADER, JoinCase.CHANGED, JoinCase.UNCHANGED)
            if state is not EMPTY or not known_member_needed:
                yield state, case


@pytest.mark.parametrize(("state", "case"), list(join_cells()))
def test_every_join_is_recognised_and_answered_or_parked(
    state: GroupState, case: JoinCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[JoinCase] = []

    def spy(asked: join.Join) -> JoinCase:
        seen.append(original(asked))
        return seen[-1]

    original = join.classify
    made = world(state)
    if state is PREPARING and case is JoinCase.UNCHANGED:
        made.run(["B join"])
    monkeypatch.setattr(join, "classify", spy)
    output = made.run([JOINS[case]])
    assert seen == [case]
    assert output, "neither an answer nor a wait"


def test_an_empty_group_has_no_members_to_meet() -> None:
    """RETURNING raises, the others answer: their cells of EMPTY are beyond what requests can reach."""
    assert JOIN[EMPTY][JoinCase.RETURNING] is IMPOSSIBLE
    assert {JOIN[EMPTY][case] for case in (JoinCase.LEADER, JoinCase.CHANGED, JoinCase.UNCHANGED)} == {join.UNKNOWN}
    assert set(SYNC[EMPTY]) == {IMPOSSIBLE}


@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
@pytest.mark.parametrize(("case", "who"), [(SyncCase.LEADER, "A"), (SyncCase.FOLLOWER, "B")])
def test_every_sync_is_answered_or_parked(state: GroupState, case: SyncCase, who: str) -> None:
    made = world(state)
    if state is PREPARING:
        who = "A" if case is SyncCase.LEADER else "C"
    assert made.run([f"{who} sync v=4"])


@pytest.mark.parametrize("state", LIVE)
@pytest.mark.parametrize("how", ["id= g=-1", "id=x g=-1", "g=1", "id=x g=1"])
def test_every_commit_is_answered(state: GroupState, how: str) -> None:
    made = world(state)
    for request in (f"A commit {how} t-0=1", f"A txn pid=7 {how} t-0=1"):
        (line,) = made.run([request])
        accepted = line.endswith(":NONE")
        nobody = how.startswith("id=")
        if "txn" in request:
            expected = how == "id= g=-1" or (how == "id=x g=-1" and state is EMPTY)
        else:
            expected = (how.endswith("g=-1") and state is EMPTY) or (not nobody and state in (PREPARING, STABLE))
        assert accepted == expected, f"{request} in {state}: {line}"


@pytest.mark.parametrize("state", LIVE)
def test_every_leave_entry_is_answered(state: GroupState) -> None:
    """Guards and cases of LeaveGroup; (member id, instance id) as GC-L lists them."""
    made = world(state)
    entries = {
        "X leave nobody": "UNKNOWN_MEMBER_ID",
        "X leave nobody/zoo": "UNKNOWN_MEMBER_ID",
        "X leave /zoo": "UNKNOWN_MEMBER_ID",
        "X leave P/zoo": "NONE",
    }
    if state is not EMPTY:
        entries |= {
            "X leave old/three": "FENCED_INSTANCE_ID",
            "X leave A/three": "FENCED_INSTANCE_ID",
            "X leave /three": "NONE",
            "X leave A": "NONE",
        }
    for command, error in entries.items():
        answer = next(line for line in made.run([command]) if line.startswith("X <- "))
        assert answer.endswith(error), f"{command}: {answer}"


@pytest.mark.parametrize("state", LIVE)
def test_every_heartbeat_is_answered(state: GroupState) -> None:
    made = world(state)
    expected = {EMPTY: "UNKNOWN_MEMBER_ID", PREPARING: "REBALANCE_IN_PROGRESS"}.get(state, "NONE")
    assert made.run(["A heartbeat" if state is not EMPTY else "A heartbeat id=a g=0"]) == [f"A <- Heartbeat {expected}"]


def test_the_documents_show_the_tables_of_the_code() -> None:
    root = Path(__file__).parents[3]
    printed = run_path(str(root / "tools" / "group_tables.py"))["text"]()
    written = (root / "docs" / "group-tables.md").read_text()
    assert written == printed, "run: python tools/group_tables.py > docs/group-tables.md"
