"""TxnOffsetCommit and the markers that end transactions.

The offsets stay pending in the hard state until a marker; which offset then wins is decided in
`partita.group.records.hard_state.HardState.end_transaction`. (Kafka:
OffsetMetadataManager.commitTransactionalOffset, completeTransaction; specification section 15.)
"""

from __future__ import annotations

from collections.abc import Callable

from partita.group.contract import GroupRequest, Marker, Producer, Record, Token
from partita.group.guards import MEMBER_GUARDS, Guards, first_error, group_is_dead
from partita.group.offsets.commit import classify, is_too_long
from partita.group.offsets.consumer_groups import CommittedTo, transaction_error
from partita.group.records import log_records
from partita.group.records.log_records import CommittedOffset
from partita.group.requests import EndTransaction, TransactionEnded
from partita.group.state.model import COMPLETING, EMPTY, PREPARING, STABLE, Group, GroupState
from partita.group.state.shard import ShardState
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ABORTABLE_FROM, _ADDS_ITSELF_FROM, _NAMES_EPOCHS_FROM = 4, 5, 6
_VERSION_2 = 2
EPOCH_MAX = 32767


class TxnCommit:
    """One TxnOffsetCommit being decided."""

    __slots__ = ("generation", "group", "instance_id", "member_id", "request", "state", "token", "wire")

    def __init__(
        self, state: ShardState, group: Group, token: Token, request: GroupRequest, wire: TxnOffsetCommitRequest
    ) -> None:
        self.state = state
        self.group = group
        self.token = token
        self.request = request
        self.wire = wire
        self.member_id = wire.member_id
        self.instance_id = wire.group_instance_id
        self.generation = wire.generation_id_or_member_epoch


def commit_offsets(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Store a producer's offsets until its transaction ends. The member's session is not touched."""
    wire = request.message
    assert isinstance(wire, TxnOffsetCommitRequest)
    group = turn.state.find(wire.group_id, turn.now.wall_ms)
    commit = TxnCommit(turn.state, group, token, request, wire)
    epochs = turn.state.epoch_group(wire.group_id)
    error = first_error(TXN_COMMIT_GUARDS if epochs is None else TRANSACTION_GUARDS, commit)
    if not error and epochs is not None and not _names_nobody(commit):
        partitions = [CommittedTo(t.name, t.topic_id, p.partition_index) for t in wire.topics for p in t.partitions]
        names_epochs = request.version >= _NAMES_EPOCHS_FROM
        error = transaction_error(epochs, commit.member_id, commit.generation, partitions, names_epochs=names_epochs)
    if error:
        turn.refuse(commit.token, commit.request, error)
    elif epochs is not None or turn.state.is_absent(group):
        STORE(turn, commit)
    else:
        TXN_COMMIT[group.state][classify(commit.generation, commit.member_id, commit.instance_id)](turn, commit)


def _names_nobody(commit: TxnCommit) -> bool:
    """The commit is of a producer that does not say for which member it speaks: any group takes it."""
    return commit.generation == -1 and not commit.member_id and commit.instance_id is None


def transaction_is_closed(commit: TxnCommit) -> bool:
    """The transaction does not include the group's offsets partition, in a version whose clients add it before."""
    return not commit.request.transaction_open and commit.request.version < _ABORTABLE_FROM


def transaction_is_closed_and_abortable(commit: TxnCommit) -> bool:
    """The same in the version whose clients abort by themselves; later versions add the partition by this request."""
    return not commit.request.transaction_open and commit.request.version < _ADDS_ITSELF_FROM


def group_is_absent_and_epoch_named(commit: TxnCommit) -> bool:
    """The group is absent, the commit names a generation, and its version has an error for that."""
    return commit.request.version >= _NAMES_EPOCHS_FROM and group_is_absent_and_generation_named(commit)


def group_is_absent_and_generation_named(commit: TxnCommit) -> bool:
    """The group is absent, and the commit names a generation."""
    return commit.state.is_absent(commit.group) and commit.generation >= 0


def group_is_absent_and_broker_full(commit: TxnCommit) -> bool:
    """The group is absent, and the number of groups over all shards has reached `partita.groups.max`."""
    return commit.state.is_absent(commit.group) and commit.state.is_full


TRANSACTION_GUARDS: Guards[TxnCommit] = (
    (transaction_is_closed, ErrorCode.INVALID_TXN_STATE),
    (transaction_is_closed_and_abortable, ErrorCode.TRANSACTION_ABORTABLE),
)
"""Guards for groups of either protocol."""

TXN_COMMIT_GUARDS: Guards[TxnCommit] = (
    *TRANSACTION_GUARDS,
    (group_is_absent_and_epoch_named, ErrorCode.GROUP_ID_NOT_FOUND),
    (group_is_absent_and_generation_named, ErrorCode.ILLEGAL_GENERATION),
    (group_is_absent_and_broker_full, ErrorCode.GROUP_MAX_SIZE_REACHED),
    (group_is_dead, ErrorCode.COORDINATOR_NOT_AVAILABLE),
)


def STORE(turn: Turn, commit: TxnCommit) -> None:
    """Store the offsets as pending, unless a newer epoch of the producer is known."""
    wire, group = commit.wire, commit.group
    if wire.producer_epoch < turn.state.hard.producer_epochs.get(wire.producer_id, -1):
        turn.refuse(commit.token, commit.request, ErrorCode.INVALID_PRODUCER_EPOCH)
        return
    response, records = _stored(turn, wire)
    if not turn.state.fits(records):
        turn.refuse(commit.token, commit.request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    if turn.state.is_absent(group) and turn.state.epoch_group(wire.group_id) is None:
        turn.state.add(group)
    if records:
        turn.write(records, Producer(wire.producer_id, wire.producer_epoch))
    turn.out.answer(commit.token, response)


def IDENTIFY(turn: Turn, commit: TxnCommit) -> None:
    """Store for a member of the current generation; the member guards refuse all others."""
    error = first_error(MEMBER_GUARDS, commit)
    if error:
        turn.refuse(commit.token, commit.request, error)
    else:
        STORE(turn, commit)


Action = Callable[[Turn, TxnCommit], None]
# fmt: off
TXN_COMMIT: dict[GroupState, tuple[Action, ...]] = {
    #            OFFSETS_ONLY NAMED     MEMBER
    EMPTY:      (STORE,       STORE,    IDENTIFY),
    PREPARING:  (STORE,       IDENTIFY, IDENTIFY),
    COMPLETING: (STORE,       IDENTIFY, IDENTIFY),
    STABLE:     (STORE,       IDENTIFY, IDENTIFY),
}  # DEAD never gets here: a guard answers COORDINATOR_NOT_AVAILABLE.
# fmt: on
"""Table for existing groups; a commit that passes the guards for an absent group is stored."""


def _stored(turn: Turn, wire: TxnOffsetCommitRequest) -> tuple[TxnOffsetCommitResponse, list[Record]]:
    records: list[Record] = []
    topics = []
    for topic in wire.topics:
        partitions = []
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if is_too_long(partition.committed_metadata or "", turn.state.config.offset_metadata_max_bytes):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                records.append(_record(turn, wire.group_id, topic, partition))
            partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return TxnOffsetCommitResponse(topics=topics), records


def _record(
    turn: Turn, group_id: str, topic: TxnOffsetCommitRequestTopic, partition: TxnOffsetCommitRequestPartition
) -> Record:
    committed = CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_ms=turn.now.wall_ms,
    )
    key = log_records.offset_key(group_id, topic.name, partition.partition_index)
    return Record(key, log_records.offset_value(committed))


def end_transaction(turn: Turn, token: Token, request: GroupRequest) -> None:
    """Write the marker; its effect is immediate, in any state of the groups concerned.

    Refused if a newer epoch of the producer is known, or a newer transaction coordinator has written: its log would
    not accept it either. (§14.3)
    """
    ask = request.message
    assert isinstance(ask, EndTransaction)
    hard, producer = turn.state.hard, Producer(ask.producer_id, ask.producer_epoch)
    if _is_old(turn, ask):
        turn.out.answer(token, TransactionEnded(ErrorCode.INVALID_PRODUCER_EPOCH))
    elif ask.coordinator_epoch < hard.coordinator_epochs.get(ask.producer_id, -1):
        turn.out.answer(token, TransactionEnded(ErrorCode.TRANSACTION_COORDINATOR_FENCED))
    else:
        turn.out.marker = Marker(producer, ask.coordinator_epoch, ask.committed)
        hard.end_transaction(*producer, ask.coordinator_epoch, committed=ask.committed)
        turn.out.answer(token, TransactionEnded())


def _is_old(turn: Turn, ask: EndTransaction) -> bool:
    """Whether this is the marker of an earlier epoch, or a duplicate whose epoch the next transaction uses already."""
    hard = turn.state.hard
    known = hard.producer_epochs.get(ask.producer_id, -1)
    if ask.version >= _VERSION_2 and ask.producer_epoch == known < EPOCH_MAX:
        return ask.producer_id in hard.pending
    return ask.producer_epoch < known
