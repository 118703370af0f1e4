"""Sessions over requests: what a member fetches, and what its end gives back."""

from __future__ import annotations

from typing import Any

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_fetch import ForgottenShareTopic
from partita.share.partition.model import RecordState, StateBatch
from support.share.plane import ACCEPT, SharePlane, acquired, codes, share_plane

UNKNOWN = bytes(15) + b"\x07"


@pytest.mark.case("SG-D01", "SG-D02", "SG-D03")
def test_a_session_counts_its_requests(plane: SharePlane) -> None:
    plane.put(3)
    m = plane.member()
    first = m.fetch(0)
    assert (first.error_code, first.acquisition_lock_timeout_ms, acquired(first)) == (0, 30_000, [(0, 2, 1)])
    assert m.fetch().responses == [], "nothing new: no partition"
    assert m.fetch(epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert m.acknowledge((0, 2, ACCEPT), epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert plane.member("n").fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.case("SG-D04", "SG-D05", "SG-D08")
def test_a_session_that_begins_anew_releases_nothing(plane: SharePlane) -> None:
    plane.put(3)
    m = plane.member()
    m.open()
    assert m.fetch(epoch=0, acks={0: [(0, 2, ACCEPT)]}).error_code == ErrorCode.INVALID_REQUEST
    assert m.acknowledge((0, 2, ACCEPT), epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert acquired(m.open()) == []
    assert m.ack((0, 2, ACCEPT)) == 0


@pytest.mark.case("SG-D06")
def test_partitions_are_added_and_forgotten(plane: SharePlane) -> None:
    m = plane.member()
    m.open(0)
    assert codes(m.fetch(1)) == {1: 0}
    plane.put(1, partition=0)
    plane.put(1, partition=1)
    answer = m.fetch(forgotten_topics_data=[ForgottenShareTopic(topic_id=plane.t, partitions=[0])])
    assert (acquired(answer, 0), acquired(answer, 1)) == ([], [(0, 0, 1)])


@pytest.mark.case("SG-D07")
@pytest.mark.parametrize("by", ["share_fetch", "share_acknowledge"])
def test_the_end_of_a_session_gives_back_what_was_not_acknowledged(plane: SharePlane, by: str) -> None:
    plane.put(5)
    m, n = plane.member("m"), plane.member("n")
    m.open()
    if by == "share_fetch":
        assert m.fetch(epoch=-1, acks={0: [(0, 1, ACCEPT)]}).error_code == 0
    else:
        assert m.ack((0, 1, ACCEPT), epoch=-1) == 0
    assert plane.state.writes == [(0, 2, [(0, 1, 2, 1)]), (2, 0, [(2, 4, 0, 1)])]
    assert m.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acquired(n.open()) == [(2, 4, 2)]


@pytest.mark.case("SG-D09")
def test_there_are_so_many_sessions() -> None:
    with share_plane(group_share_max_share_sessions=1, group_share_max_size=1) as plane:
        m, n = plane.member("m"), plane.member("n")
        m.open()
        waiting = n.begin(n.request(0, max_wait_ms=30_000))
        assert not waiting.done()
        plane.advance(30_000)
        assert n.settled(waiting).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        m.fetch(epoch=-1)
        n.open()


@pytest.mark.case("SG-D10")
def test_a_closed_connection_ends_its_session_and_the_group_leaves_memory(plane: SharePlane) -> None:
    plane.put(5)
    m, n = plane.member("m"), plane.member("n")
    m.open()
    n.open()
    m.connection.close()
    plane.settle()
    assert plane.state.writes == [(0, 0, [(0, 4, 0, 1)])]
    assert m.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert acquired(n.fetch()) == [(0, 4, 2)]
    node = plane.services.share_nodes[1]
    n.connection.close()
    plane.settle()
    assert not node.led
    assert not node.sessions.sessions
    assert acquired(plane.member("o").open()) == [(0, 4, 3)]


@pytest.mark.case("SG-D10")
def test_a_connection_that_closes_ends_its_waiting_fetch(plane: SharePlane) -> None:
    m = plane.member()
    m.open()
    waiting = m.begin(m.request(max_wait_ms=30_000))
    m.connection.close()
    plane.settle()
    assert waiting.cancelled()
    assert not plane.services.long_polls().waiting


@pytest.mark.case("SG-D11")
@pytest.mark.parametrize("wrong", [{"member_id": None}, {"member_id": ""}, {"member_id": "m" * 37}, {"group": None}])
def test_a_request_names_a_group_and_a_member(plane: SharePlane, wrong: dict[str, Any]) -> None:
    m = plane.member()
    for name, value in wrong.items():
        setattr(m, name, value)
    assert m.fetch(0).error_code == ErrorCode.INVALID_REQUEST
    assert m.acknowledge((0, 0, ACCEPT)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.case("SG-D12", "SG-D15")
def test_a_partition_that_does_not_exist_is_told_each_time(plane: SharePlane) -> None:
    m = plane.member()
    missing = {7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert codes(m.fetch(0, 7)) == {0: 0, **missing}
    assert codes(m.fetch()) == missing


@pytest.mark.case("SG-D16")
def test_each_partition_gets_its_turn(plane: SharePlane) -> None:
    plane.put(1, partition=0)
    plane.put(1, partition=1)
    m = plane.member()
    first = m.open(0, 1, max_records=1)
    second = m.fetch(max_records=1)
    assert (acquired(first, 0), acquired(second, 1)) == ([(0, 0, 1)], [(0, 0, 1)])


@pytest.mark.case("SG-D17")
def test_an_unknown_topic_hinders_no_other(plane: SharePlane) -> None:
    plane.put(1)
    m = plane.member()
    request = m.request(0)
    request.topics.append(type(request.topics[0])(topic_id=UNKNOWN, partitions=request.topics[0].partitions))
    answer = m.settled(m.begin(request))
    assert answer.error_code == 0
    assert [(t.topic_id, t.partitions[0].error_code) for t in answer.responses] == [(plane.t, 0), (UNKNOWN, 100)]
    assert acquired(answer) == [(0, 0, 1)]


@pytest.mark.case("SG-D13")
def test_a_session_does_not_ask_for_a_member_of_the_group(plane: SharePlane) -> None:
    plane.put(1)
    stranger = plane.member("of no group")
    assert acquired(stranger.open(0)) == [(0, 0, 1)]
    assert stranger.ack((0, 0, ACCEPT)) == ErrorCode.NONE


@pytest.mark.case("SG-L04")
def test_a_leader_that_a_newer_one_fenced_drops_its_view(plane: SharePlane) -> None:
    plane.put(2)
    m = plane.member()
    m.open(0)
    plane.state.leader_epoch, plane.state.batches = 1, (StateBatch(0, 0, RecordState.ACKNOWLEDGED, 1),)
    assert m.ack((0, 1, ACCEPT)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert m.ack((1, 1, ACCEPT)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert acquired(m.fetch()) == [(1, 1, 1)]


@pytest.mark.case("SG-D18")
def test_a_group_that_never_subscribed_has_no_state(plane: SharePlane) -> None:
    assert codes(plane.member(group="other").fetch(0)) == {0: ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.case("SG-D20")
def test_a_topic_that_is_deleted_during_a_session_hinders_no_other(plane: SharePlane) -> None:
    plane.put(1)
    m = plane.member()
    m.open(max_records=0)
    u = plane.cluster.catalogue.by_name["u"].topic_id
    m.fetch(1, topic_id=u, max_records=0)
    plane.run(lambda: plane.cluster.catalogue.delete([plane.cluster.catalogue.by_name["u"]]))
    answer = m.fetch()
    assert [(t.topic_id, t.partitions[0].error_code) for t in answer.responses] == [(plane.t, 0), (u, 3)]
    assert acquired(answer) == [(0, 0, 1)]


@pytest.mark.case("SG-A08")
def test_at_level_0_every_request_is_refused() -> None:
    with share_plane(partita_share_version=0) as plane:
        m = plane.member()
        assert m.fetch(0).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert m.acknowledge((0, 0, ACCEPT)).error_code == ErrorCode.UNSUPPORTED_VERSION
