"""Transaction markers at a group's shard: who may end a transaction, also after a load. (transactions.md 10.2, 14.3)"""

from __future__ import annotations

import pytest

from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest
from partita.group.coordinator import GroupCoordinator
from partita.group.requests import EndTransaction, TransactionEnded
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from partita.records.builder import build_marker
from partita.records.control import COMMIT

NOW = Now(0, 1_700_000_000_000)
FENCED = ErrorCode.TRANSACTION_COORDINATOR_FENCED


def ended(
    coordinator: GroupCoordinator, producer_epoch: int, coordinator_epoch: int, version: int = 0
) -> tuple[int, bool]:
    """The code of a marker, and whether one is to be written."""
    ask = EndTransaction(7, producer_epoch, committed=True, coordinator_epoch=coordinator_epoch, version=version)
    step = coordinator.handle(object(), GroupRequest(ask, 0), NOW)
    (reply,) = step.replies
    assert isinstance(reply.message, TransactionEnded)
    return int(reply.message.error_code), step.marker is not None


def commit(coordinator: GroupCoordinator, producer_epoch: int, offset: int) -> None:
    """Commit an offset of group g within the producer's transaction."""
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = TxnOffsetCommitRequest(
        group_id="g",
        producer_id=7,
        producer_epoch=producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    coordinator.handle(object(), GroupRequest(request, 5), NOW)


@pytest.fixture
def coordinator() -> GroupCoordinator:
    made = GroupCoordinator(GroupConfig(), lambda prefix: prefix)
    made.resume(NOW)
    return made


@pytest.mark.case("TX-H06", "TX-H03")
def test_a_marker_of_an_older_coordinator_is_refused_and_not_written(coordinator: GroupCoordinator) -> None:
    assert ended(coordinator, 3, 5) == (0, True)
    assert ended(coordinator, 3, 4) == (FENCED, False)
    assert ended(coordinator, 2, 4) == (ErrorCode.INVALID_PRODUCER_EPOCH, False)
    assert ended(coordinator, 4, 5) == (0, True)


def test_after_a_load_the_last_coordinators_epoch_is_known() -> None:
    """The log's own check would refuse the batch, and the shard would be replayed for nothing."""
    loaded = GroupCoordinator(GroupConfig(), lambda prefix: prefix)
    loaded.replay_batch(build_marker(COMMIT, timestamp=0, producer_id=7, producer_epoch=3, coordinator_epoch=5))
    loaded.resume(NOW)
    assert ended(loaded, 3, 4) == (FENCED, False)
    assert ended(loaded, 3, 5) == (0, True)


@pytest.mark.case("TX-H05", "TX-E06")
def test_a_late_copy_of_a_marker_does_not_end_the_next_transaction(coordinator: GroupCoordinator) -> None:
    """Under version 2 the next transaction has the marker's epoch: its offsets must outlive a copy of the marker."""
    assert ended(coordinator, 5, 0, version=2) == (0, True)
    assert ended(coordinator, 5, 0, version=2) == (0, True)
    commit(coordinator, producer_epoch=5, offset=14)
    assert ended(coordinator, 5, 0, version=2) == (ErrorCode.INVALID_PRODUCER_EPOCH, False)
    assert ended(coordinator, 6, 0, version=2) == (0, True)
    committed = coordinator.hard_state.committed("g", ("t", 0))
    assert committed is not None
    assert committed.offset == 14


def test_under_version_1_the_marker_has_the_epoch_of_the_offsets(coordinator: GroupCoordinator) -> None:
    commit(coordinator, producer_epoch=5, offset=14)
    assert ended(coordinator, 5, 0) == (0, True)
    assert coordinator.hard_state.committed("g", ("t", 0)) is not None
