"""The share coordinator where Kafka's histories say nothing: 4.4.0's stricter rules, replay, timers."""

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.share.coordinator.coordinator import ShareConfig, ShareCoordinator
from partita.share.coordinator.log_records import Record
from partita.share.coordinator.model import ShareKey, StateBatch
from partita.share.coordinator.requests import Initialize, Outcome, Read, StateRequest, Summarize, Write

TOPIC, GONE = b"t" * 16, b"g" * 16
KEY = ShareKey("g", TOPIC, 0)


def partitions_of(topic_id: bytes) -> int:
    return {TOPIC: 2, GONE: 1}.get(topic_id, 0)


class Shard:
    """A coordinator and its log."""

    def __init__(self) -> None:
        self.coordinator = ShareCoordinator(ShareConfig(), partitions_of)
        self.log: list[Record] = []

    def ask(self, request: StateRequest, now_ms: int = 0) -> Outcome:
        decision = self.coordinator.handle(request, now_ms)
        self.append(list(decision.records))
        return decision.outcome

    def append(self, records: list[Record]) -> None:
        for record in records:
            self.coordinator.replay(record, len(self.log))
            self.log.append(record)


@pytest.fixture
def shard() -> Shard:
    made = Shard()
    made.ask(Initialize(KEY, 3, 10))
    return made


def test_a_write_never_moves_the_start_offset_back(shard: Shard) -> None:
    shard.ask(Write(KEY, 3, 0, 20, 4))
    shard.ask(Write(KEY, 3, 0, 15, 9, (StateBatch(12, 22, 2, 1),)))
    state = shard.coordinator.states[KEY]
    assert (state.start_offset, state.completed, state.batches) == (20, 4, (StateBatch(20, 22, 2, 1),))


def test_at_the_same_start_offset_the_greater_count_stands(shard: Shard) -> None:
    shard.ask(Write(KEY, 3, 0, 10, 4))
    shard.ask(Write(KEY, 3, 0, 10, 2))
    assert shard.coordinator.states[KEY].completed == 4


@pytest.mark.case("SG-G04", "SG-G05")
@pytest.mark.parametrize(
    "request_", [Read(KEY, -1), Write(KEY, -1, 0, 10), Write(KEY, 3, -1, 10), Initialize(KEY, -1, 0)]
)
def test_a_negative_epoch_is_refused(shard: Shard, request_: StateRequest) -> None:
    assert shard.ask(request_).code is ErrorCode.INVALID_REQUEST


def test_an_initialization_lowers_no_fence(shard: Shard) -> None:
    shard.ask(Read(KEY, 5))
    shard.ask(Initialize(KEY, 4, 0))
    assert shard.coordinator.states[KEY].leader_epoch == 0
    assert shard.ask(Read(KEY, 4)).code is ErrorCode.FENCED_LEADER_EPOCH
    assert shard.ask(Write(KEY, 3, 5, 0)).code is ErrorCode.FENCED_STATE_EPOCH


def test_a_replayed_log_gives_the_same_state(shard: Shard) -> None:
    for number in range(7):
        shard.ask(Write(KEY, 3, number, 10 + number, number, (StateBatch(20 + number, 30, 0, number + 1),)))
        shard.ask(Read(KEY, number + 1))
    replayed = ShareCoordinator(ShareConfig(), partitions_of)
    for offset, record in enumerate(shard.log):
        replayed.replay(record, offset)
    assert replayed.states == shard.coordinator.states
    assert replayed.prune_below == shard.coordinator.prune_below


def test_an_idle_share_partition_does_not_hold_pruning_back(shard: Shard) -> None:
    busy = ShareKey("g", TOPIC, 1)
    shard.ask(Initialize(busy, 3, 0), now_ms=1_000_000)
    assert shard.coordinator.prune_below is None
    cold = shard.coordinator.cold_snapshots(1_000_000)
    shard.append(cold)
    assert len(cold) == 1
    assert shard.coordinator.prune_below == 1
    assert shard.coordinator.states[KEY].snapshot_epoch == 1


def test_cold_snapshots_of_snapshots_are_not_made(shard: Shard) -> None:
    shard.append(shard.coordinator.cold_snapshots(400_000))
    assert shard.coordinator.cold_snapshots(900_000) == []


def test_share_partitions_of_a_deleted_topic_are_forgotten(shard: Shard) -> None:
    gone = ShareKey("g", GONE, 0)
    shard.ask(Initialize(gone, 3, 0))
    shard.append(shard.coordinator.forget_topics(frozenset([GONE])))
    assert list(shard.coordinator.states) == [KEY]
    summary = shard.ask(Summarize(gone)).state
    assert summary is not None
    assert (summary.state_epoch, summary.leader_epoch, summary.start_offset, summary.completed) == (0, 0, -1, -1)


def test_records_of_another_kind_are_passed_over(shard: Shard) -> None:
    before = dict(shard.coordinator.states)
    shard.append([Record(b"\0\x09rest", b"\0\0"), Record(shard.log[0].key, b"\0\x07rest")])
    assert shard.coordinator.states == before
