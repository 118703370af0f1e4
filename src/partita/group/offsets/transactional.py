"""TxnOffsetCommit and the markers that end transactions.

The offsets wait in the hard state until a marker; see `hard_state.HardState.end_transaction` for what then wins.
(Kafka: OffsetMetadataManager.commitTransactionalOffset, completeTransaction; specification section 15.)
"""

from __future__ import annotations

from partita.group import answers
from partita.group.contract import GroupRequest, Marker, Producer, Record, Token
from partita.group.offsets.commit import IDENTIFY, NONE, CommitCase, classify, identify, is_too_long
from partita.group.records import log_records
from partita.group.records.log_records import CommittedOffset
from partita.group.requests import EndTransaction, TransactionEnded
from partita.group.state.model import COMPLETING, DEAD, EMPTY, PREPARING, STABLE, Group, GroupState
from partita.group.state.shard import Shard
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ABORTABLE_FROM, _ADDS_ITSELF_FROM = 4, 5
# fmt: off
TXN_COMMIT: dict[GroupState, tuple[ErrorCode | None, ...]] = {
    #            OFFSETS_ONLY NAMED     MEMBER
    EMPTY:      (NONE,        IDENTIFY, IDENTIFY),
    PREPARING:  (NONE,        IDENTIFY, IDENTIFY),
    COMPLETING: (NONE,        IDENTIFY, IDENTIFY),
    STABLE:     (NONE,        IDENTIFY, IDENTIFY),
}  # DEAD: a guard answers COORDINATOR_NOT_AVAILABLE. An absent group: ILLEGAL_GENERATION with a generation.
# fmt: on


def commit_offsets(shard: Shard, token: Token, request: GroupRequest) -> None:
    """Store a producer's offsets until its transaction ends. The member's session is not touched."""
    wire = request.message
    assert isinstance(wire, TxnOffsetCommitRequest)
    group = shard.groups.get(wire.group_id)
    error = _refuse(shard, group, wire, request)
    if not error:
        response, records = _store(shard, wire)
        if not shard.fits(records):
            error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error:
        shard.answer(token, answers.txn_offset_commit_error(wire, error))
        return
    if group is None:
        shard.create(wire.group_id)
    if records:
        shard.write(records, Producer(wire.producer_id, wire.producer_epoch))
    shard.answer(token, response)


def _refuse(shard: Shard, group: Group | None, wire: TxnOffsetCommitRequest, request: GroupRequest) -> ErrorCode:
    if not request.transaction_open and request.version < _ADDS_ITSELF_FROM:
        old = request.version < _ABORTABLE_FROM
        return ErrorCode.INVALID_TXN_STATE if old else ErrorCode.TRANSACTION_ABORTABLE
    if group is None:
        error = ErrorCode.ILLEGAL_GENERATION if wire.generation_id >= 0 else NONE
        if not error and len(shard.groups) >= shard.config.partita_groups_max:
            error = ErrorCode.GROUP_MAX_SIZE_REACHED
    elif group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    else:
        verdict = TXN_COMMIT[group.state][classify(wire.generation_id, wire)]
        error = identify(group, wire.generation_id, wire) if verdict is IDENTIFY else verdict
    if not error and wire.producer_epoch < shard.hard.producer_epochs.get(wire.producer_id, -1):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _store(shard: Shard, wire: TxnOffsetCommitRequest) -> tuple[TxnOffsetCommitResponse, list[Record]]:
    records: list[Record] = []
    topics = []
    for topic in wire.topics:
        partitions = []
        for partition in topic.partitions:
            error = NONE
            if is_too_long(partition.committed_metadata or "", shard.config.offset_metadata_max_bytes):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                records.append(_record(shard, wire.group_id, topic.name, partition))
            partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return TxnOffsetCommitResponse(topics=topics), records


def _record(shard: Shard, group_id: str, topic: str, partition: TxnOffsetCommitRequestPartition) -> Record:
    committed = CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        shard.now.wall_ms,
    )
    key = log_records.offset_key(group_id, topic, partition.partition_index)
    return Record(key, log_records.offset_value(committed))


def end_transaction(shard: Shard, token: Token, request: GroupRequest) -> None:
    """Write the marker; its effect is immediate, in any state of the groups concerned."""
    ask = request.message
    assert isinstance(ask, EndTransaction)
    producer = Producer(ask.producer_id, ask.producer_epoch)
    if ask.producer_epoch < shard.hard.producer_epochs.get(ask.producer_id, -1):
        shard.answer(token, TransactionEnded(ErrorCode.INVALID_PRODUCER_EPOCH))
        return
    shard.marker = Marker(producer, ask.coordinator_epoch, ask.committed)
    shard.hard.end_transaction(*producer, committed=ask.committed)
    shard.answer(token, TransactionEnded())


_CASES = tuple(CommitCase)
assert all(len(row) == len(_CASES) for row in TXN_COMMIT.values())
