"""OffsetCommit: guards, then a table of state by kind of sender, then one short action.

(Kafka: OffsetMetadataManager.commitOffset, ClassicGroup.validateOffsetCommit; specification section 12.)

Deviation: Partita keeps offsets of an OffsetCommit 2 to 4 with a retention of 0 ms for `offsets.retention.minutes`,
where Kafka expires them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from typing import TYPE_CHECKING

from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Record, Token
from partita.group.guards import MEMBER_GUARDS, Guards, broker_is_full, first_error, group_is_dead
from partita.group.notes import MemberRefused
from partita.group.offsets import expiration
from partita.group.offsets.consumer_groups import CommittedTo, commit_error
from partita.group.records import log_records
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.log_records import CommittedOffset
from partita.group.requests import CommitOffsets, StoredOffsets
from partita.group.state.model import COMPLETING, EMPTY, PREPARING, STABLE, Group, GroupState
from partita.group.state.shard import ShardState
from partita.group.state.turn import Turn
from partita.group.steps import finished
from partita.protocol.error_codes import NONE, ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from partita.group.records.streams_group import StreamsGroup

_TELLS_ABSENT_GROUP = 9
_LAST_WITH_RETENTION = 4


class CommitCase(IntEnum):
    """Kind of sender of a commit; the columns of `COMMIT`."""

    OFFSETS_ONLY = 0
    """No generation, member id or instance id: a client that assigns partitions itself."""
    NAMED = 1
    """A member or instance id, but no generation."""
    MEMBER = 2
    """A generation."""


OFFSETS_ONLY, NAMED, MEMBER = CommitCase


class Commit:
    """One OffsetCommit being decided."""

    __slots__ = ("generation", "group", "instance_id", "member_id", "request", "state", "token", "wire", "worked_out")

    def __init__(
        self,
        state: ShardState,
        group: Group,
        token: Token,
        request: GroupRequest,
        wire: OffsetCommitRequest,
        worked_out: StoredOffsets | None = None,
    ) -> None:
        self.state = state
        self.group = group
        self.token = token
        self.request = request
        self.wire = wire
        self.member_id = wire.member_id
        self.instance_id = wire.group_instance_id
        self.generation = wire.generation_id_or_member_epoch
        self.worked_out = worked_out

    def stored(self, turn: Turn) -> StoredOffsets:
        """Return the records and answer of the commit if no guard refuses it."""
        if self.worked_out is not None:
            return self.worked_out
        return finished(stored_offsets(self.wire, self.request.version, turn.now.wall_ms, self.state.config))


_LAST_MS = 2**63 - 1
"""The largest timestamp a record can hold: an old client may ask for any retention. (H17)"""


def commit_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Store the offsets, all of them or none. An absent group is treated as an empty one."""
    asked = request.message
    stored = asked.stored if isinstance(asked, CommitOffsets) else None
    wire = asked.wire if isinstance(asked, CommitOffsets) else asked
    assert isinstance(wire, OffsetCommitRequest)
    group = turn.state.find(wire.group_id, turn.now.wall_ms)
    commit = Commit(turn.state, group, token, request, wire, stored)
    epochs = turn.state.epoch_group(wire.group_id)
    if epochs is not None:
        _commit_by_epoch(turn, commit, epochs)
        return
    is_absent = turn.state.is_absent(group)
    if is_absent and not names_generation(commit) and turn.state.is_full:
        expiration.make_room(turn, wire.group_id)
    error = first_error(COMMIT_ABSENT_GUARDS if is_absent else COMMIT_GUARDS, commit)
    if error:
        turn.refuse(commit.token, commit.request, error)
    else:
        case = classify(commit.generation, commit.member_id, commit.instance_id)
        COMMIT[group.state][case](turn, commit)


def _commit_by_epoch(turn: Turn, commit: Commit, group: ConsumerGroup | StreamsGroup) -> None:
    """Store the offsets of a KIP-848 or streams group in any state; no session restarts."""
    wire = commit.wire
    partitions = [CommittedTo(t.name, t.topic_id, p.partition_index) for t in wire.topics for p in t.partitions]
    error = commit_error(group, commit.member_id, commit.generation, commit.request.version, partitions)
    if error:
        turn.refuse(commit.token, commit.request, error)
        return
    stored = commit.stored(turn)
    if stored.size_in_bytes <= turn.state.config.max_message_bytes:
        turn.write_offsets(wire.group_id, stored)
        turn.out.answer(commit.token, stored.response)
    else:
        turn.refuse(commit.token, commit.request, ErrorCode.UNKNOWN_SERVER_ERROR)


def names_generation_and_is_told(commit: Commit) -> bool:
    """It names a generation, and its version has an error for absent groups."""
    return commit.generation >= 0 and commit.request.version >= _TELLS_ABSENT_GROUP


def names_generation(commit: Commit) -> bool:
    """It names a generation."""
    return commit.generation >= 0


COMMIT_ABSENT_GUARDS: Guards[Commit] = (
    (names_generation_and_is_told, ErrorCode.GROUP_ID_NOT_FOUND),
    (names_generation, ErrorCode.ILLEGAL_GENERATION),
    (broker_is_full, ErrorCode.GROUP_MAX_SIZE_REACHED),
)
"""Guards for an absent group, instead of `COMMIT_GUARDS`."""

COMMIT_GUARDS: Guards[Commit] = ((group_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),)


def classify(generation: int, member_id: str, instance_id: str | None) -> CommitCase:
    """Return the column of `COMMIT` and of the table of transactional commits."""
    if generation >= 0:
        return MEMBER
    return NAMED if member_id or instance_id is not None else OFFSETS_ONLY


def UNKNOWN(turn: Turn, commit: Commit) -> None:
    """Answer UNKNOWN_MEMBER_ID: the group has members, and the sender is not one of them."""
    turn.refuse(commit.token, commit.request, ErrorCode.UNKNOWN_MEMBER_ID)


def STORE(turn: Turn, commit: Commit) -> None:
    """Store the offsets; a member's session restarts."""
    group = commit.group
    stored = commit.stored(turn)
    if stored.size_in_bytes > turn.state.config.max_message_bytes:
        turn.refuse(commit.token, commit.request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    member = group.members.get(commit.member_id)
    if member is not None:
        turn.start_session(group, member)
    if stored.records and turn.state.is_absent(group):
        # Deviation: Partita creates no group for a commit of which every partition is refused, where Kafka creates one
        # that can be deleted and joined, but not described or listed until something is written for it.
        turn.state.add(group)
    turn.write_offsets(group.group_id, stored)
    turn.out.answer(commit.token, stored.response)


def IDENTIFY(turn: Turn, commit: Commit) -> None:
    """Store for a member of the current generation; the member guards refuse all others."""
    error = first_error(MEMBER_GUARDS, commit)
    if not error:
        STORE(turn, commit)
        return
    if error is ErrorCode.FENCED_INSTANCE_ID:
        twin = (commit.group.group_id, commit.member_id, commit.instance_id, commit.request.client_id)
        turn.out.note(MemberRefused(*twin, error.name, "", turn.now.wall_ms))
    turn.refuse(commit.token, commit.request, error)


def SYNC_FIRST(turn: Turn, commit: Commit) -> None:
    """Answer REBALANCE_IN_PROGRESS to a member: it does not know its assignment yet. Others as in IDENTIFY."""
    turn.refuse(commit.token, commit.request, first_error(MEMBER_GUARDS, commit) or ErrorCode.REBALANCE_IN_PROGRESS)


Action = Callable[[Turn, Commit], None]
# fmt: off
COMMIT: dict[GroupState, tuple[Action, ...]] = {
    #            OFFSETS_ONLY NAMED       MEMBER
    EMPTY:      (STORE,       STORE,      IDENTIFY),
    PREPARING:  (UNKNOWN,     IDENTIFY,   IDENTIFY),
    COMPLETING: (UNKNOWN,     SYNC_FIRST, SYNC_FIRST),
    STABLE:     (UNKNOWN,     IDENTIFY,   IDENTIFY),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
# fmt: on


def stored_offsets(
    wire: OffsetCommitRequest, version: int, wall_ms: int, config: GroupConfig
) -> Generator[None, None, StoredOffsets]:
    """Build the commit: one record for each partition whose metadata is short enough. Yields after each one."""
    expire_ms = log_records.NO_EXPIRY
    if wire.retention_time_ms > 0 and version <= _LAST_WITH_RETENTION:
        expire_ms = min(wall_ms + wire.retention_time_ms, _LAST_MS)
    records: list[Record] = []
    offsets: dict[tuple[str, int], bytes] = {}
    size = log_records.BATCH_HEADER_BYTES
    response = OffsetCommitResponse()
    for topic in wire.topics:
        answers: list[OffsetCommitResponsePartition] = []
        response.topics.append(OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name, partitions=answers))
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            is_refused = is_too_long(metadata, config.offset_metadata_max_bytes)
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE if is_refused else NONE
            answers.append(OffsetCommitResponsePartition(partition_index=index, error_code=error))
            if not is_refused and size <= config.max_message_bytes:
                committed = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, wall_ms, expire_ms,
                    topic.topic_id,
                )  # fmt: skip
                value = log_records.offset_value(committed)
                record = Record(log_records.offset_key(wire.group_id, topic.name, index), value)
                size += log_records.record_bytes(len(records), record)
                records.append(record)
                offsets[topic.name, index] = value
            yield
    return StoredOffsets(records, offsets, response, size)


def is_too_long(metadata: str, limit: int) -> bool:
    """Whether it is longer than `limit` UTF-16 code units."""
    if len(metadata) > limit:
        return True
    return 2 * len(metadata) > limit and len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * limit
