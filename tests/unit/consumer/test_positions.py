"""Where partitions start, resets, validation by leader epoch (consumer.md 8)."""

from __future__ import annotations

from typing import Any

import pytest

from partita.consumer.config import ConsumerConfig, parse_reset
from partita.consumer.errors import (
    ApiTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetsOutOfRangeError,
)
from partita.errors import GroupAuthorizationFailedError, UnknownTopicOrPartitionError
from partita.offsets.topic_partition import OffsetAndMetadata
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import list_offsets, offset_fetch
from partita.protocol.messages import offset_for_leader_epoch as epochs
from support.consumer.members import member
from support.consumer.world import DROP, HOLD, Delay, World

T0, T1 = ("t", 0), ("t", 1)


def offsets(records: Any) -> list[int]:
    return [r.offset for r in records]


def reading(world: World, *partitions: tuple[str, int], **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign(partitions or [T0])
    return consumer


def end_offset(offset: int, epoch: int = 5) -> Any:
    one = epochs.EpochEndOffset(partition=0, leader_epoch=epoch, end_offset=offset)
    return epochs.OffsetForLeaderEpochResponse(topics=[epochs.OffsetForLeaderTopicResult(topic="t", partitions=[one])])


@pytest.mark.case("CC-107")
def test_without_a_commit_earliest_starts_at_the_log_start() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    world.logs[T0].start = 4
    consumer, _ = member(world, poll=0)
    assert offsets(consumer.poll(1))[0] == 4
    assert world.sent("ListOffsets")[0].message.topics[0].partitions[0].timestamp == -2


@pytest.mark.parametrize(
    ("tp", "told"),
    [
        (("t", 7), "partition t-7 does not exist; topic t has 2"),
        (("none", 0), "partition none-0 does not exist: there is no topic none"),
    ],
)
def test_what_is_asked_of_a_partition_that_does_not_exist_names_it(tp: tuple[str, int], told: str) -> None:
    """It was a time-out that named nothing. Until the time is over the partition may come."""
    world = World({"t": 2})
    consumer = reading(world, T0, tp)
    for call, asked in (
        (consumer.end_offsets, [T0, tp]),
        (consumer.beginning_offsets, [tp]),
        (consumer.offsets_for_times, {tp: 0}),
        (consumer.position, tp),
    ):
        start = world.now
        with pytest.raises(UnknownTopicOrPartitionError, match=told):
            call(asked, timeout=2.0)
        assert world.now == start + 2_000
    world.after(1_000, lambda: world.create(tp[0], 8))
    assert consumer.end_offsets([T0, tp], timeout=5.0) == {T0: 0, tp: 0}


@pytest.mark.case("CC-108")
def test_without_a_commit_and_policy_every_poll_raises_until_a_seek() -> None:
    world = World({"t": 2})
    world.append("t", 0, 3)
    consumer, _ = member(world, poll=0, auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError) as caught:
            consumer.poll(1)
        assert caught.value.partitions == [T0, T1]
    consumer.seek(T0, 1)
    consumer.seek(T1, 0)
    assert offsets(consumer.poll(1)) == [1, 2]


@pytest.mark.case("CC-109", "BM-120")
def test_a_committed_offset_is_where_it_starts() -> None:
    world = World({"t": 1})
    world.logs[T0].epoch = 3
    world.append("t", 0, 50)
    first, _ = member(world, enable_auto_commit=False)
    first.commit({T0: OffsetAndMetadata(42, 3, "note")})
    first.close()
    world.forget()
    second, _ = member(world, poll=0, metadata_max_age_ms=200)
    assert offsets(second.poll(2))[0] == 42
    asked = world.sent("OffsetForLeaderEpoch")[0].message.topics[0].partitions[0]
    assert (asked.leader_epoch, asked.current_leader_epoch) == (3, 3)
    for _ in range(20):
        second.poll(0.2)
    assert second.position(T0) == 50


@pytest.mark.case("CC-110", "BM-136")
def test_unsettled_offsets_are_waited_for() -> None:
    world = World({"t": 1})
    part = offset_fetch.OffsetFetchResponsePartitions(committed_offset=-1, metadata="", error_code=88)
    topics = [offset_fetch.OffsetFetchResponseTopics(name="t", partitions=[part])]
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=topics)
    answer = offset_fetch.OffsetFetchResponse(groups=[group])
    world.script("OffsetFetch", answer, answer, answer)
    world.append("t", 0, 3)
    consumer, _ = member(world, poll=0)
    assert len(consumer.poll(3)) == 3
    times = [s.at_ms for s in world.sent("OffsetFetch")]
    assert len(times) == 4
    assert times[1] - times[0] >= 100
    assert world.sent("OffsetFetch")[0].message.require_stable


@pytest.mark.case("CC-111")
def test_out_of_range_resets_by_policy() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    consumer = reading(world, auto_offset_reset="latest")
    consumer.seek(T0, 99)
    consumer.poll(1)
    assert consumer.position(T0) == 10


@pytest.mark.case("CC-111")
def test_out_of_range_without_a_policy_is_raised_until_a_seek() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    consumer = reading(world, auto_offset_reset="none")
    consumer.seek(T0, 99)
    for _ in range(2):
        with pytest.raises(OffsetsOutOfRangeError) as caught:
            consumer.poll(1)
        assert caught.value.offsets == {T0: 99}
    consumer.seek(T0, 8)
    assert offsets(consumer.poll(1)) == [8, 9]


@pytest.mark.case("CC-111")
def test_an_out_of_range_answer_for_an_old_position_is_ignored() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    consumer = reading(world, auto_offset_reset="none")
    consumer.seek(T0, 99)
    world.script("Fetch", Delay(100))
    consumer.poll(0.05)
    consumer.seek(T0, 5)
    assert offsets(consumer.poll(1)) == [5, 6, 7, 8, 9]


@pytest.mark.case("CC-112")
def test_a_leader_that_moved_during_a_reset_is_found_again() -> None:
    world = World({"t": 2}, nodes=2)
    world.append("t", 0, 2)
    world.append("t", 1, 2)
    wrong = list_offsets.ListOffsetsPartitionResponse(partition_index=0, error_code=6)
    answer = list_offsets.ListOffsetsResponse(
        topics=[list_offsets.ListOffsetsTopicResponse(name="t", partitions=[wrong])]
    )
    world.script("ListOffsets", answer)
    consumer = reading(world, T0, T1)
    start = world.now
    first = consumer.poll(1)
    assert first.partitions == [T1]
    assert world.now - start < 50
    assert consumer.poll(1).partitions == [T0]
    times = [s.at_ms for s in world.sent("ListOffsets") if s.node == 1]
    assert times[1] - times[0] >= 100
    assert len(world.sent("Metadata")) >= 2


@pytest.mark.case("CC-113")
def test_a_new_leader_epoch_is_validated_before_the_next_fetch() -> None:
    world = World({"t": 1})
    world.logs[T0].epoch = 5
    world.append("t", 0, 10)
    consumer = reading(world, metadata_max_age_ms=1_000)
    consumer.poll(1)
    world.forget()
    world.logs[T0].epoch = 6
    world.append("t", 0, 1)
    consumer.poll(0.1)
    for _ in range(10):
        consumer.poll(0.3)
    asked = world.sent("OffsetForLeaderEpoch")
    assert len(asked) == 1
    assert asked[0].message.topics[0].partitions[0].current_leader_epoch == 6
    names = world.names()
    assert "Fetch" in names[names.index("OffsetForLeaderEpoch") :]


def truncated(world: World, reply: Any, **options: Any) -> Any:
    """A consumer at position 100 of epoch 5, whose new leader answers `reply` about epoch 5."""
    world.logs[T0].epoch = 5
    world.append("t", 0, 100)
    consumer = reading(world, metadata_max_age_ms=1_000, **options)
    if options.get("auto_offset_reset") == "none":
        consumer.seek(T0, 0)
    consumer.poll(1)
    assert consumer.position(T0) == 100
    world.logs[T0].epoch = 6
    world.script("OffsetForLeaderEpoch", reply)
    return consumer


@pytest.mark.case("CC-114")
def test_a_truncated_log_moves_the_position_back() -> None:
    world = World({"t": 1})
    consumer = truncated(world, end_offset(90))
    world.script("Fetch", HOLD)
    world.always["Fetch"] = HOLD
    consumer.poll(1.3)
    assert consumer.position(T0) == 90
    assert len(world.sent("ListOffsets")) == 1


@pytest.mark.case("CC-114")
def test_a_truncated_log_without_a_policy_is_raised_once() -> None:
    world = World({"t": 1})
    consumer = truncated(world, end_offset(90), auto_offset_reset="none")
    with pytest.raises(LogTruncationError) as caught:
        consumer.poll(3)
    assert (caught.value.offsets, caught.value.divergent) == ({T0: 100}, {T0: 90})
    world.forget()
    assert len(consumer.poll(2)) == 0
    assert not world.sent("OffsetForLeaderEpoch")
    consumer.seek(T0, 90)
    assert offsets(consumer.poll(1))[0] == 90


@pytest.mark.case("CC-115")
def test_an_undefined_end_offset_resets_by_policy() -> None:
    world = World({"t": 1})
    consumer = truncated(world, end_offset(-1, -1))
    assert offsets(consumer.poll(2))[0] == 0


@pytest.mark.case("CC-116")
def test_a_seek_during_validation_wins() -> None:
    world = World({"t": 1})
    consumer = truncated(world, Delay(300, end_offset(90)))
    consumer.poll(1.2)
    consumer.seek(T0, 95)
    assert offsets(consumer.poll(2))[0] == 95


@pytest.mark.case("CC-117")
def test_a_broker_that_cannot_tell_is_believed() -> None:
    world = World({"t": 1})
    world.max_versions["OffsetForLeaderEpoch"] = 0
    consumer = truncated(world, None)
    world.append("t", 0, 5)
    seen = offsets(consumer.poll(1)) + offsets(consumer.poll(2))
    assert seen == [100, 101, 102, 103, 104]


@pytest.mark.case("CC-118")
def test_leader_epochs_of_old_metadata_count_for_nothing() -> None:
    world = World({"t": 1})
    world.max_versions["Metadata"] = 8
    consumer = truncated(world, end_offset(90))
    consumer.poll(3)
    assert not world.sent("OffsetForLeaderEpoch")
    assert consumer.position(T0) == 100


@pytest.mark.case("CC-119")
def test_position_waits_for_validation() -> None:
    world = World({"t": 1})
    consumer = truncated(world, Delay(400, end_offset(90)))
    consumer.poll(1.2)
    with pytest.raises(ApiTimeoutError):
        consumer.position(T0, timeout=0.1)
    assert consumer.position(T0, timeout=5) == 90


@pytest.mark.case("CC-203")
def test_a_reset_by_duration_never_falls_back_to_the_end() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10, at=1)
    consumer = reading(world, auto_offset_reset="by_duration:PT1H", request_timeout_ms=1_000)
    assert len(consumer.poll(3.5)) == 0
    asked = world.sent("ListOffsets")
    assert [s.message.topics[0].partitions[0].timestamp for s in asked] == [
        world.clock.now().wall_ms - (world.now - s.at_ms) - 3_600_000 for s in asked
    ]
    assert len(asked) == 4
    with pytest.raises(ApiTimeoutError):
        consumer.position(T0, timeout=0.5)


@pytest.mark.case("BM-126")
def test_an_offset_fetch_that_times_out_is_no_missing_offset() -> None:
    world = World({"t": 1})
    world.append("t", 0, 50)
    first, _ = member(world, enable_auto_commit=False)
    first.commit({T0: 30})
    first.close()
    world.script("OffsetFetch", HOLD, DROP)
    second, _ = member(world, poll=0, request_timeout_ms=2_000)
    seen = [o for _ in range(10) for o in offsets(second.poll(1))]
    assert seen[0] == 30


@pytest.mark.case("BM-152")
@pytest.mark.case("BM-126")
def test_a_refused_fetch_of_committed_offsets_is_no_missing_offset() -> None:
    """The application hears of it and reads nothing; a reset would read everything again, in silence."""
    world = World({"t": 1})
    world.append("t", 0, 5)
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    world.script("OffsetFetch", offset_fetch.OffsetFetchResponse(groups=[group]))
    consumer = reading(world, T0, group_id="g", auto_offset_reset="earliest")
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.poll(1)
    assert not world.sent("ListOffsets")
    assert offsets(consumer.poll(1)) == [0, 1, 2, 3, 4]


def test_a_partition_added_while_committed_offsets_are_fetched() -> None:
    world = World({"t": 2})
    world.append("t", 0, 3)
    world.append("t", 1, 3)
    consumer = reading(world, T0, group_id="g")
    world.script("OffsetFetch", Delay(300))
    consumer.poll(0.1)
    consumer.assign([T0, T1])
    seen = [(r.partition, r.offset) for _ in range(4) for r in consumer.poll(1)]
    assert sorted(seen) == [(p, o) for p in (0, 1) for o in range(3)]


def test_position_inside_the_assigned_callback() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    found: list[int] = []
    consumer = world.consumer(group_id="g")
    consumer.subscribe(["t"], on_assigned=lambda partitions: found.append(consumer.position(T0, timeout=1)))
    assert offsets(consumer.poll(1)) == [0, 1, 2, 3, 4]
    assert found == [0]


def test_a_reset_policy_is_parsed_or_refused() -> None:
    reset = parse_reset("by_duration:P1DT2H3M4.5S")
    assert reset is not None
    assert reset.duration_ms == ((26 * 60) + 3) * 60_000 + 4_500
    assert parse_reset("NONE") is None
    for wrong in ("by_duration:", "by_duration:P", "sometimes", "by_duration:1h"):
        with pytest.raises(ConfigError, match="auto_offset_reset"):
            ConsumerConfig.of(bootstrap_servers="a", auto_offset_reset=wrong)
