"""What the shell answers around a shard: before it is asked, while it loads, when it is elsewhere."""

from __future__ import annotations

import pytest

from partita.broker.groups.reply_gate import Call, ReplyGate
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Reply, Step
from partita.group.guards import first_check, not_here, while_loading
from partita.group.requests import DeleteGroup, DescribeGroup, EndTransaction, FetchOffsets, ListShardGroups
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_delete import OffsetDeleteRequest
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
)
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from partita.protocol.primitives import Structure

COMMITS = [OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition(partition_index=3)])]
TXN_COMMITS = [TxnOffsetCommitRequestTopic(name="t", partitions=[TxnOffsetCommitRequestPartition(partition_index=3)])]
JOIN = JoinGroupRequest(group_id="g", member_id="m", session_timeout_ms=10_000)
REQUESTS: list[Structure] = [
    JOIN,
    SyncGroupRequest(group_id="g"),
    LeaveGroupRequest(group_id="g"),
    OffsetCommitRequest(group_id="g", topics=COMMITS),
    TxnOffsetCommitRequest(group_id="g", topics=TXN_COMMITS),
    OffsetDeleteRequest(group_id="g"),
    FetchOffsets(OffsetFetchRequestGroup(group_id="g", topics=[])),
    DescribeGroup("g"),
    DeleteGroup("g"),
    ListShardGroups(),
]


def error_of(answer: Structure) -> int:
    """The answer's error, wherever it stands."""
    if hasattr(answer, "error_code"):
        return answer.error_code  # type: ignore[no-any-return]  # an error code
    (partition,) = answer.topics[0].partitions  # type: ignore[attr-defined]  # the answer to what was asked
    return partition.error_code  # type: ignore[no-any-return]  # an error code


@pytest.mark.case("GC-B05", "GC-P05", "GC-P10", "BM-063")
@pytest.mark.parametrize("message", REQUESTS, ids=lambda m: type(m).__name__)
def test_while_a_shard_loads_every_request_is_told_so(message: Structure) -> None:
    assert error_of(while_loading(GroupRequest(message, 5))) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.case("GC-B06")
def test_while_a_shard_loads_heartbeats_are_believed() -> None:
    assert error_of(while_loading(GroupRequest(HeartbeatRequest(group_id="g"), 4))) == ErrorCode.NONE


@pytest.mark.case("GC-O14", "GC-O15")
def test_while_a_shard_loads_transactions_hear_what_they_understand() -> None:
    commit = TxnOffsetCommitRequest(group_id="g", topics=TXN_COMMITS)
    assert error_of(while_loading(GroupRequest(commit, 1))) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(while_loading(GroupRequest(commit, 2))) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    marker = GroupRequest(EndTransaction(7, 0, committed=True), 1)
    assert error_of(while_loading(marker)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error_of(not_here(marker)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.case("GC-B07", "GC-B08")
@pytest.mark.parametrize("message", [*REQUESTS, HeartbeatRequest(group_id="g")], ids=lambda m: type(m).__name__)
def test_elsewhere_every_request_is_sent_on(message: Structure) -> None:
    assert error_of(not_here(GroupRequest(message, 5))) == ErrorCode.NOT_COORDINATOR


@pytest.mark.case("GC-B13")
def test_a_session_timeout_out_of_bounds_is_refused_by_any_broker() -> None:
    short = JoinGroupRequest(group_id="g", member_id="m", session_timeout_ms=5_999)
    answer = first_check(GroupRequest(short, 9), GroupConfig())
    assert answer is not None
    assert error_of(answer) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert answer.member_id == "m"  # type: ignore[attr-defined]  # the answer to what was asked
    assert first_check(GroupRequest(JOIN, 9), GroupConfig()) is None


@pytest.mark.case("BM-039", "BM-061")
def test_a_write_that_takes_too_long_is_answered_with_an_error_that_clients_handle() -> None:
    fetch = FetchOffsets(OffsetFetchRequestGroup(group_id="g"), require_stable=False)
    for message, error in (
        (JOIN, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (fetch, ErrorCode.NOT_COORDINATOR),  # old clients do not retry the other one
    ):
        call, gate = Call(GroupRequest(message, 9)), ReplyGate()
        gate.add(7, Step((), (Reply(call, message),), ()), due_ms=100)
        gate.expire(99)
        assert call.response is None
        gate.expire(100)
        assert call.response is not None
        assert error_of(call.response) == error
