"""The consumer's reaction to each error code, request by request: one table, looked up by the parts.

`reaction` answers for every code. A row names the codes that are special to its request; the rest follow from whether
the code is retriable. `docs/consumer-tables.md` is printed from here. (Kafka: the response handlers of
AbstractCoordinator, ConsumerCoordinator and AbstractFetch; consumer.md 15.3.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from partita.protocol.error_codes import ErrorCode


class Reaction(Enum):
    """The verbs of the table. The value describes the verb."""

    TAKE = "use the answer"
    IGNORE = "do nothing"
    RETRY = "ask again after the back-off"
    REFRESH = "refresh the metadata, and ask again after the back-off"
    LOOK_UP = "look the coordinator up again, then ask again"
    ADOPT_ID = "join again at once with the member id that came"
    REJOIN = "join the group again as the same member"
    FORGET_GENERATION = "the generation is lost: join again with the same member id"
    FORGET_MEMBER = "the membership is lost: join again as a new member"
    NEWER_EPOCH = "ask again as soon as a newer member epoch is known, else raise"
    FENCED = "another consumer took over the group instance id: raise"
    RESET = "go where auto_offset_reset says, or raise if it is none"
    NEW_SESSION = "open a new fetch session with the next request"
    LEAVE_OUT = "return nothing for this partition"
    COLLECT = "go on with the other partitions, then raise one error with the names of all such topics"
    RAISE = "raise the error once; what was asked for is not repeated by itself"
    TELL = "raise the error once, and ask again after the back-off"
    FATAL = "raise the error once, give all partitions up and take no further part in the group"


@dataclass(frozen=True, slots=True)
class Row:
    """One request: the codes it names, then what any other retriable and any other final code lead to."""

    named: Mapping[ErrorCode, Reaction]
    retriable: Reaction
    final: Reaction

    def of(self, code: ErrorCode) -> Reaction:
        """The reaction to one code."""
        if code is ErrorCode.NONE and code not in self.named:
            return Reaction.TAKE
        return self.named.get(code) or (self.retriable if code.retriable else self.final)


_MOVED = {ErrorCode.NOT_COORDINATOR: Reaction.LOOK_UP, ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.LOOK_UP}

# fmt: off
REACTIONS: Mapping[str, Row] = {
    "FindCoordinator": Row({}, retriable=Reaction.REFRESH, final=Reaction.RAISE),
    "JoinGroup": Row({
        **_MOVED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
        ErrorCode.MEMBER_ID_REQUIRED: Reaction.ADOPT_ID,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBER,
        ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    }, retriable=Reaction.RAISE, final=Reaction.RAISE),
    "SyncGroup": Row({
        **_MOVED,
        ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
        ErrorCode.ILLEGAL_GENERATION: Reaction.FORGET_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBER,
    }, retriable=Reaction.RAISE, final=Reaction.RAISE),
    "Heartbeat": Row({
        **_MOVED,
        ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
        ErrorCode.ILLEGAL_GENERATION: Reaction.FORGET_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBER,
        ErrorCode.FENCED_INSTANCE_ID: Reaction.FENCED,
    }, retriable=Reaction.RETRY, final=Reaction.RETRY),
    "ConsumerGroupHeartbeat": Row({
        **_MOVED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
        ErrorCode.FENCED_MEMBER_EPOCH: Reaction.FORGET_MEMBER,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBER,
        # Deviation: Partita's consumer joins again after GROUP_ID_NOT_FOUND in a heartbeat, since its group may have
        # expired or been deleted while it was cut off, where Kafka's consumer ends.
        ErrorCode.GROUP_ID_NOT_FOUND: Reaction.FORGET_MEMBER,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.TELL,
    }, retriable=Reaction.FATAL, final=Reaction.FATAL),
    "LeaveGroup": Row({}, retriable=Reaction.IGNORE, final=Reaction.IGNORE),
    "OffsetCommit": Row({
        **_MOVED,
        ErrorCode.REQUEST_TIMED_OUT: Reaction.LOOK_UP,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RETRY,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.COLLECT,
        ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
        ErrorCode.ILLEGAL_GENERATION: Reaction.FORGET_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBER,
        ErrorCode.STALE_MEMBER_EPOCH: Reaction.NEWER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID: Reaction.FENCED,
    }, retriable=Reaction.RAISE, final=Reaction.RAISE),
    "OffsetFetch": Row({
        **_MOVED,
        ErrorCode.STALE_MEMBER_EPOCH: Reaction.RETRY,
        # Deviation: Partita's consumer repeats OffsetFetch after UNKNOWN_MEMBER_ID, since its next heartbeat makes it a
        # member again, where Kafka's consumer raises.
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.RETRY,
    }, retriable=Reaction.RETRY, final=Reaction.RAISE),
    "OffsetFetch, each partition": Row({
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.COLLECT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.RAISE,
    }, retriable=Reaction.RETRY, final=Reaction.RAISE),
    "Fetch": Row({
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: Reaction.REFRESH,
        ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
    }, retriable=Reaction.NEW_SESSION, final=Reaction.NEW_SESSION),
    "Fetch, each partition": Row({
        ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
        ErrorCode.REPLICA_NOT_AVAILABLE: Reaction.REFRESH,
        ErrorCode.KAFKA_STORAGE_ERROR: Reaction.REFRESH,
        ErrorCode.FENCED_LEADER_EPOCH: Reaction.REFRESH,
        ErrorCode.OFFSET_NOT_AVAILABLE: Reaction.REFRESH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
        ErrorCode.UNKNOWN_TOPIC_ID: Reaction.REFRESH,
        ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
        ErrorCode.UNKNOWN_LEADER_EPOCH: Reaction.RETRY,
        ErrorCode.UNKNOWN_SERVER_ERROR: Reaction.RETRY,
        ErrorCode.OFFSET_OUT_OF_RANGE: Reaction.RESET,
    }, retriable=Reaction.RAISE, final=Reaction.RAISE),
    "ShareGroupHeartbeat": Row({
        **_MOVED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
        ErrorCode.FENCED_MEMBER_EPOCH: Reaction.FORGET_MEMBER,
        ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FORGET_MEMBER,
        ErrorCode.GROUP_ID_NOT_FOUND: Reaction.FORGET_MEMBER,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.TELL,
    }, retriable=Reaction.RETRY, final=Reaction.FATAL),
    "ShareFetch": Row({}, retriable=Reaction.NEW_SESSION, final=Reaction.TELL),
    "ShareFetch, each partition": Row({
        ErrorCode.NOT_LEADER_OR_FOLLOWER: Reaction.REFRESH,
        ErrorCode.FENCED_LEADER_EPOCH: Reaction.REFRESH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.REFRESH,
        ErrorCode.UNKNOWN_TOPIC_ID: Reaction.REFRESH,
        ErrorCode.INCONSISTENT_TOPIC_ID: Reaction.REFRESH,
        ErrorCode.UNKNOWN_SERVER_ERROR: Reaction.RETRY,
    }, retriable=Reaction.RETRY, final=Reaction.RAISE),
    "ListOffsets": Row({
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Reaction.LEAVE_OUT,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE,
    }, retriable=Reaction.REFRESH, final=Reaction.REFRESH),
    "OffsetForLeaderEpoch": Row({
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE,
    }, retriable=Reaction.REFRESH, final=Reaction.REFRESH),
    "Metadata, each topic": Row({
        ErrorCode.INVALID_TOPIC_EXCEPTION: Reaction.RAISE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.RAISE,
    }, retriable=Reaction.REFRESH, final=Reaction.IGNORE),
}
# fmt: on


@cache
def reaction(request: str, number: int) -> Reaction:
    """Return the reaction to the code with this number; a number this release does not know counts as a final code."""
    row, code = REACTIONS[request], ErrorCode(number)
    return row.of(code) if code == number else row.final
