"""What becomes of committed offsets when their records are lost (B11, faults.md D4): the rule alone."""

from __future__ import annotations

from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Record
from partita.group.coordinator import GroupCoordinator
from partita.group.notes import OffsetClamped
from partita.group.offsets.clamp import Beyond, beyond_ends
from partita.group.records.hard_state import TopicPartition
from partita.group.records.log_records import CommittedOffset, offset_key, offset_value
from partita.group.requests import EndTransaction
from partita.now import Now

NOW = Now(5, 1000)
ENDS: dict[TopicPartition, int] = {("t", 0): 6, ("t", 1): 3}


def loaded(*commits: tuple[int, CommittedOffset], producer_id: int = -1) -> GroupCoordinator:
    coordinator = GroupCoordinator(GroupConfig(), lambda prefix: prefix)
    for partition, committed in commits:
        coordinator.replay(Record(offset_key("g", "t", partition), offset_value(committed)), producer_id, 0)
    coordinator.resume(NOW)
    return coordinator


def found(coordinator: GroupCoordinator) -> list[Beyond]:
    return [beyond for beyond in beyond_ends(coordinator.hard_state, ENDS.get) if beyond is not None]


def test_the_end_of_the_log_is_committed_with_everything_else_as_it_was() -> None:
    """D4: metadata and times stay; the lost records' leader epoch does not."""
    far = CommittedOffset(10, leader_epoch=4, metadata="mine", commit_ms=77)
    coordinator = loaded((0, far), (1, CommittedOffset(3)), (2, CommittedOffset(99)))
    (beyond,) = found(coordinator)
    step = coordinator.clamp_offset(beyond, NOW)
    assert step.records == (Record(beyond.key, offset_value(far._replace(offset=6, leader_epoch=-1))),)
    assert step.notes == (OffsetClamped("g", "t", 0, 10, 6, 1000),)
    committed = coordinator.hard_state.committed("g", ("t", 0))
    assert committed is not None
    assert committed.offset == 6
    assert found(coordinator) == []


def test_an_offset_of_an_open_transaction_is_clamped_within_it() -> None:
    """D4: it takes effect when the transaction is committed, and not before."""
    coordinator = loaded((0, CommittedOffset(10)), producer_id=7)
    (beyond,) = found(coordinator)
    step = coordinator.clamp_offset(beyond, NOW)
    assert step.producer is not None
    assert step.producer.producer_id == 7
    assert coordinator.hard_state.committed("g", ("t", 0)) is None
    coordinator.handle(object(), GroupRequest(EndTransaction(7, 0, committed=True), 0), NOW)
    committed = coordinator.hard_state.committed("g", ("t", 0))
    assert committed is not None
    assert committed.offset == 6
