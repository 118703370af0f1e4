"""ShareAcknowledge, and the acknowledgements within ShareFetch."""

from __future__ import annotations

import pytest

from partita.broker.share.calls import PAUSES_SECONDS
from partita.protocol.error_codes import ErrorCode
from support.broker.transactions import wait_for
from support.share.plane import ACCEPT, GAP, REJECT, RELEASE, RENEW, Ack, ShareMember, SharePlane, acquired, codes

UNKNOWN = bytes(15) + b"\x07"


@pytest.fixture
def m(plane: SharePlane) -> ShareMember:
    """A member that holds the records 0 to 9 of t-0."""
    plane.put(10)
    member = plane.member()
    assert acquired(member.open()) == [(0, 9, 1)]
    return member


@pytest.mark.case("SG-F01", "SG-F02")
def test_each_write_says_where_the_partition_started_before_it(plane: SharePlane, m: ShareMember) -> None:
    assert m.ack((0, 4, ACCEPT)) == 0
    assert m.ack((5, 6, RELEASE)) == 0
    assert plane.state.writes == [(0, 5, [(0, 4, 2, 1)]), (5, 0, [(5, 6, 0, 1)])]
    assert acquired(m.fetch()) == [(5, 6, 2)]


@pytest.mark.case("SG-F03", "SG-F04", "SG-F05")
def test_each_record_has_its_own_verdict(plane: SharePlane, m: ShareMember) -> None:
    assert m.ack((0, 4, ACCEPT, RELEASE, REJECT, GAP, RELEASE)) == 0
    states = [(first, last, state) for first, last, state, _ in plane.state.writes[0][2]]
    assert states == [(0, 0, 2), (1, 1, 0), (2, 2, 4), (3, 3, 4), (4, 4, 0)]
    assert acquired(m.fetch()) == [(1, 1, 2), (4, 4, 2)]


@pytest.mark.case("SG-F06")
@pytest.mark.parametrize(
    ("acks", "version"),
    [
        ([(5, 4, ACCEPT)], 2),
        ([(0, 4, ACCEPT), (3, 6, ACCEPT)], 2),
        ([(0, 4)], 2),
        ([(0, 3, ACCEPT, ACCEPT)], 2),
        ([(0, 4, 5)], 2),
        ([(0, 4, -1)], 2),
        ([(0, 4, RENEW)], 2),
        ([(0, 4, RENEW)], 1),
        ([(5, 9, ACCEPT), (0, 4, ACCEPT)], 2),
    ],
)
def test_a_malformed_acknowledgement_is_refused(m: ShareMember, acks: list[Ack], version: int) -> None:
    assert m.ack(*acks, version=version) == ErrorCode.INVALID_REQUEST
    assert m.ack((0, 9, ACCEPT)) == 0


@pytest.mark.case("SG-F07", "SG-F08", "SG-F09", "SG-F10", "SG-F14")
def test_only_what_the_member_holds_can_be_acknowledged(plane: SharePlane, m: ShareMember) -> None:
    n = plane.member("n")
    n.open()
    assert n.ack((0, 4, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert m.ack((3, 12, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert m.ack((3, 3, ACCEPT), (3, 3, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert not plane.state.writes
    assert m.ack((0, 3, ACCEPT)) == 0
    assert m.ack((0, 3, ACCEPT)) == 0, "it lies behind the start"
    assert m.ack((4, 9, ACCEPT)) == 0
    plane.put(3, batches=2)
    assert acquired(m.fetch(batch_size=3)) == [(10, 12, 1), (13, 15, 1)]
    assert m.ack((11, 14, ACCEPT)) == 0, "a part of each"
    assert m.ack((12, 13, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.case("SG-F11")
def test_a_fetch_may_acknowledge(plane: SharePlane, m: ShareMember) -> None:
    plane.put(2)
    answer = m.fetch(acks={0: [(0, 9, ACCEPT)]})
    part = answer.responses[0].partitions[0]
    assert (part.error_code, part.acknowledge_error_code, acquired(answer)) == (0, 0, [(10, 11, 1)])
    part = m.fetch(acks={0: [(0, 40, ACCEPT)]}).responses[0].partitions[0]
    assert (part.error_code, part.acknowledge_error_code) == (0, ErrorCode.INVALID_REQUEST)


@pytest.mark.case("SG-F12")
def test_each_partition_is_answered_for_itself(m: ShareMember) -> None:
    assert m.ack((0, 0, ACCEPT), topic_id=UNKNOWN) == ErrorCode.UNKNOWN_TOPIC_ID
    assert m.ack((0, 0, ACCEPT), partition=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert m.ack((0, 0, ACCEPT), partition=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not in memory"
    assert m.acknowledge().responses == []


@pytest.mark.case("SG-F13")
def test_a_renewal_holds_records_longer(plane: SharePlane, m: ShareMember) -> None:
    refused = m.fetch(epoch=m.epoch, is_renew_ack=True)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    m.epoch -= 1
    plane.advance(20_000)
    nothing = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    answer = m.fetch(acks={0: [(0, 3, RENEW), (4, 5, ACCEPT)]}, is_renew_ack=True, **nothing)
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    plane.advance(10_000)
    assert plane.state.writes[1:] == [(0, 2, [(6, 9, 0, 1)])]
    plane.setting("share.renew.acknowledge.enable", False)
    assert m.ack((0, 3, RENEW), is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.case("SG-F15", "SG-L02")
@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_leader_that_is_fenced_drops_its_view(
    plane: SharePlane, m: ShareMember, stored: ErrorCode, told: ErrorCode
) -> None:
    plane.persister.refusals = [stored]
    assert m.ack((0, 4, ACCEPT)) == told
    assert m.ack((0, 4, ACCEPT)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not in memory"
    assert acquired(m.fetch()) == [(0, 9, 1)], "loaded again, as it was stored"


@pytest.mark.case("SG-F15")
def test_a_refused_write_leaves_the_records_with_the_member(plane: SharePlane, m: ShareMember) -> None:
    plane.persister.refusals = [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert m.ack((0, 4, ACCEPT)) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert m.ack((0, 4, ACCEPT)) == 0


@pytest.mark.case("SG-F15", "SG-L03")
def test_a_coordinator_that_moves_is_asked_again(plane: SharePlane, m: ShareMember) -> None:
    plane.persister.refusals = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert m.ack((0, 4, ACCEPT)) == 0
    assert plane.state.writes == [(0, 5, [(0, 4, 2, 1)])]


@pytest.mark.case("SG-F15", "SG-L03")
def test_a_coordinator_that_stays_away_leaves_the_records_with_the_member(plane: SharePlane, m: ShareMember) -> None:
    plane.persister.refusals = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * (len(PAUSES_SECONDS) + 1)
    assert m.ack((0, 4, ACCEPT)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not plane.state.writes
    assert m.ack((0, 9, ACCEPT)) == 0


@pytest.mark.case("SG-F15")
def test_writes_that_come_while_one_is_slow_go_together_and_in_order(plane: SharePlane, m: ShareMember) -> None:
    plane.run(plane.persister.let_go.clear)
    answers = [m.begin(m.acknowledgement((first, first + 1, ACCEPT)), "share_acknowledge") for first in (0, 2, 4)]
    assert not any(answer.done() for answer in answers)
    plane.advance(30_000)
    plane.run(plane.persister.let_go.set)
    wait_for(plane, lambda: all(answer.done() for answer in answers))
    assert [codes(answer.result()) for answer in answers] == [{0: 0}] * 3
    assert plane.state.writes == [
        (0, 2, [(0, 1, 2, 1)]),
        (0, 6, [(2, 3, 2, 1), (4, 5, 2, 1), (6, 9, 0, 1)]),
    ]


@pytest.mark.case("SG-F16")
def test_without_a_session_nothing_can_be_acknowledged(plane: SharePlane) -> None:
    assert plane.member().acknowledge((0, 0, ACCEPT), epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
