"""Facts from logs and notes: what cannot be read is counted, what is kept is bounded."""

from __future__ import annotations

import pytest

from partita.explain import Sure
from partita.explain.facts import Assigned, Committed, EndSeen
from partita.group.records.log_records import CommittedOffset, group_key, group_value, offset_key, offset_value
from partita.group.records.read_back import LogRecord
from partita.observe.kept import COMMITS_MAX, Kept
from partita.observe.log_facts import LogReader
from partita.observe.note_facts import facts_of_notes
from partita.protocol.messages.group_log import GroupMetadataValue, GroupMetadataValueMember


def commit(at_ms: int, group: str = "g") -> Committed:
    return Committed(group, at_ms, ("t", 0), at_ms)


def test_a_record_that_cannot_be_read_is_counted_and_the_next_one_is_read() -> None:
    reader = LogReader(lambda topic_id: None)
    good = offset_value(CommittedOffset(7))
    records = [
        (b"\0", b""), (b"\0\2\0\5ab", b"x"), (group_key("g"), b"\0\x63junk"), (offset_key("g", "t", 0), b"\0\4"),
        (offset_key("g", "t", 0), good), (None, b""), (b"\0\x63?", b""),
    ]  # fmt: skip
    facts = [f for i, (key, value) in enumerate(records) for f in reader.read(LogRecord(key, value, 0, i, 1_000))]
    assert facts == [Committed("g", 1_000, ("t", 0), 7)]
    assert reader.unreadable == 3, "a key that is none is passed over"


@pytest.mark.parametrize(("assignment", "is_abandoned"), [(b"", True), (b"\0\0", False)])
def test_a_generation_is_abandoned_if_nobody_leads_and_nobody_has_an_assignment(
    assignment: bytes, is_abandoned: bool
) -> None:
    """A group that was downgraded without a rebalance has no leader in its record, and assignments."""
    member = GroupMetadataValueMember(
        member_id="m", client_id="c", client_host="/h", rebalance_timeout=1, session_timeout=1, assignment=assignment
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", leader=None, members=[member])
    record = LogRecord(group_key("g"), group_value(value), 0, 0, 1_000)
    (fact,) = LogReader(lambda topic_id: None).read(record)
    assert isinstance(fact, Assigned)
    assert fact.is_abandoned == is_abandoned


def test_groups_nobody_asked_for_are_left_out() -> None:
    reader = LogReader(lambda topic_id: None, lambda group: group == "mine")
    for group in ("mine", "other"):
        found = list(reader.read(LogRecord(offset_key(group, "t", 0), offset_value(CommittedOffset(1)), 0, 0, 5)))
        assert len(found) == (group == "mine")


def test_of_commits_the_first_and_the_last_are_kept() -> None:
    kept = Kept()
    kept.add(Assigned("g", 0, Sure.SEEN, 1))
    for at_ms in range(1, 100):
        kept.add(commit(at_ms))
    times = [fact.at_ms for fact in kept.of("g") if isinstance(fact, Committed)]
    assert times == [1, 97, 98, 99]
    assert len(times) == COMMITS_MAX


def test_memory_has_bounds() -> None:
    kept = Kept(generations_max=8, groups_max=3)
    for number in range(100):
        kept.add(Assigned("busy", number, Sure.SEEN, number))
    assert len(kept.of("busy")) <= 8
    for name in ("a", "b", "c"):
        kept.add(Assigned(name, 0, Sure.SEEN, 1))
    assert kept.groups == ["a", "b", "c"]
    assert kept.left_out == 1
    kept.add(EndSeen(1, ("t", 0), 5))
    assert kept.of("") == []


def test_a_note_that_lost_its_members_gives_no_fact() -> None:
    note = {
        "note": "Rebalanced", "group_id": "g", "generation": 3, "protocol_name": "range", "leader_id": "a",
        "members": 2, "causes": [], "join_phase_ms": 0, "sync_phase_ms": 0, "wall_ms": 10, "held": None, "seq": 4,
    }  # fmt: skip
    assert facts_of_notes([note]) == []
    assert len(facts_of_notes([{**note, "members": 0}])) == 1


@pytest.mark.parametrize(
    ("request_note", "call"),
    [
        ({"what": "session expired", "group_id": "g", "member": "ana"}, "control.expire_session"),
        ({"what": "session expired", "group_id": "g", "member": None}, "control.expire_session"),
        ({"what": "clock advanced", "ms": 46_000}, "control.advance_clock(46000)"),
        ({"what": "session expired", "group_id": "another", "member": "ana"}, ""),
        ({"what": "clock advanced", "ms": 10_000}, ""),
        ({"what": "member evicted", "group_id": "g", "member": "ana"}, ""),
    ],
    ids=["named", "only member", "clock", "another group", "clock long before", "another verb"],
)
@pytest.mark.parametrize("is_classic", [True, False], ids=["classic", "KIP-848"])
def test_a_session_that_a_test_ended_names_the_call(
    request_note: dict[str, object], call: str, is_classic: bool
) -> None:
    cause = {"what": "session expired", "member_id": "m", "group_instance_id": None, "client_id": "ana", "detail": ""}
    about = {"group_id": "g", "members": 0, "held": [], "wall_ms": 47_000}
    ended: list[dict[str, object]] = [
        {"note": "MemberGone", "cause": cause, **about},
        {
            "note": "Rebalanced", "generation": 2, "protocol_name": None, "leader_id": None, "causes": [cause],
            "join_phase_ms": 0, "sync_phase_ms": 0, **about,
        },
    ] if is_classic else [
        {"note": "GroupEpochBumped", "epoch": 2, "cause": cause, **about},
        {"note": "TargetComputed", "epoch": 2, "assignor": "uniform", **about},
    ]  # fmt: skip
    (fact,) = facts_of_notes([{"note": "Control", "wall_ms": 1_000, **request_note}, *ended])
    assert isinstance(fact, Assigned)
    assert [told.detail for told in fact.causes] == [call]
