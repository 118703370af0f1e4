"""Refusals outside the coordinator: before a shard is asked, while it loads, and when its log fails.

The shell uses all of it: `first_check` before it looks for the shard, `while_loading` and `not_here` instead of the
shard, `failed_write` when an append fails. (Kafka: GroupCoordinatorService.)
"""

from __future__ import annotations

from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest
from partita.group.requests import EndTransaction
from partita.group.state.answers import refusal
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_delete import OffsetDeleteRequest
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from partita.protocol.primitives import Structure

__all__ = ["failed_write", "first_check", "not_here", "refusal", "while_loading"]

_NEED_A_GROUP_ID = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    TxnOffsetCommitRequest,
    OffsetDeleteRequest,
)
_NAMES_PROTOCOL = 5
_KNOWS_LOAD_IN_PROGRESS = 2

# Deviation: when a write to `__consumer_offsets` fails, every request that waits for it is answered NOT_COORDINATOR,
# and the shard is reloaded from its log. Kafka undoes the change in memory, and its answer depends on the failure.
# Kafka's table for failures before an append (specification 1.1); errors not listed are passed on unchanged.
FAILED_WRITE: dict[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


def failed_write(error: ErrorCode) -> ErrorCode:
    """Return the error to answer with when a coordinator's write failed with `error`."""
    return FAILED_WRITE.get(error, error)


def first_check(request: GroupRequest, config: GroupConfig) -> Structure | None:
    """Return a refusal that needs no group state: no group id, no protocol, session timeout out of bounds."""
    message = request.message
    if (
        isinstance(message, SyncGroupRequest)
        and request.version >= _NAMES_PROTOCOL
        and (message.protocol_type is None or message.protocol_name is None)
    ):
        return refusal(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if isinstance(message, _NEED_A_GROUP_ID) and not message.group_id:
        return refusal(request, ErrorCode.INVALID_GROUP_ID)
    if isinstance(message, JoinGroupRequest):
        low, high = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not low <= message.session_timeout_ms <= high:
            return refusal(request, ErrorCode.INVALID_SESSION_TIMEOUT)
    return None


def while_loading(request: GroupRequest) -> Structure:
    """Return the answer while the group's shard loads. Heartbeats succeed, so that a failover removes no member."""
    message = request.message
    if isinstance(message, HeartbeatRequest):
        return HeartbeatResponse()
    if isinstance(message, TxnOffsetCommitRequest) and request.version < _KNOWS_LOAD_IN_PROGRESS:
        return refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if isinstance(message, EndTransaction):
        return refusal(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return refusal(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def not_here(request: GroupRequest) -> Structure:
    """Return the answer of a broker that does not own the group's shard, or could not load it."""
    if isinstance(request.message, EndTransaction):
        return refusal(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return refusal(request, ErrorCode.NOT_COORDINATOR)
