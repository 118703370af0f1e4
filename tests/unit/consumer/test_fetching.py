"""Fetching: sessions, what is asked of whom, the buffer (consumer.md 9)."""

from __future__ import annotations

import sys
from itertools import product
from types import FrameType
from typing import Any

import pytest

from partita.consumer.partition_state import AWAIT_VALIDATION
from partita.consumer.reading.fetch_session import FetchSession, FetchSlot
from partita.consumer.reading.fetching import Fetching
from partita.consumer.request import Poll
from partita.consumer.subscription import Subscription
from partita.errors import KafkaError, TopicAuthorizationFailedError
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import fetch
from support.consumer.members import member
from support.consumer.world import DROP, HOLD, Delay, World

T0, T1 = ("t", 0), ("t", 1)


def reading(world: World, *partitions: tuple[str, int], **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign(partitions or [T0])
    return consumer


def offsets(records: Any) -> list[int]:
    return [r.offset for r in records]


def error(world: World, code: int, partition: int = 0, **fields: Any) -> Any:
    """A full answer about t that says `code` for one partition."""

    def answer(message: Any) -> Any:
        listed = [p.partition for t in message.topics for p in t.partitions] or [partition]
        data = [
            fetch.PartitionData(partition_index=p, error_code=code if p == partition else 0, **fields) for p in listed
        ]
        topic = fetch.FetchableTopicResponse(topic="t", topic_id=world.ids["t"], partitions=data)
        return fetch.FetchResponse(responses=[topic], **({"node_endpoints": world_nodes(world)} if fields else {}))

    return answer


def world_nodes(world: World) -> Any:
    return [fetch.NodeEndpoint(node_id=n.id, host=n.host, port=n.port) for n in world.nodes.values()]


@pytest.mark.case("CC-120")
def test_brokers_are_asked_in_parallel_and_a_slow_one_delays_nobody() -> None:
    world = World({"t": 9}, nodes=3)
    for p in range(9):
        world.append("t", p, 2)
    consumer = reading(world, *[("t", p) for p in range(9)])
    world.script("Fetch", Delay(5_000))
    seen = [r for _ in range(6) for r in consumer.poll(0.1)]
    assert {s.node for s in world.sent("Fetch")[:3]} == {1, 2, 3}
    assert len(seen) == 12


@pytest.mark.case("CC-121")
def test_one_fetch_per_broker_at_a_time() -> None:
    world = World({"t": 1})
    consumer = reading(world)
    for _ in range(10):
        consumer.poll(0.02)
    assert len(world.sent("Fetch")) == 1


@pytest.mark.case("CC-122")
def test_a_backlog_is_drained_from_memory() -> None:
    world = World({"t": 3}, nodes=2)
    consumer = reading(world, *[("t", p) for p in range(3)], max_poll_records=500)
    world.append("t", 0, 2_000)
    assert len(consumer.poll(1)) == 500
    world.forget()
    assert [len(consumer.poll(0.2)) for _ in range(2)] == [500, 500]
    assert not [s for s in world.sent("Fetch") if s.node == 1]
    assert len([s for s in world.sent("Fetch") if s.node == 2]) <= 1
    assert len(consumer.poll(0.2)) == 500
    assert [s.node for s in world.sent("Fetch")].count(1) == 1


@pytest.mark.case("CC-122")
def test_a_paused_backlog_does_not_hold_its_broker_back() -> None:
    world = World({"t": 2})
    consumer = reading(world, T0, T1, max_poll_records=10)
    world.append("t", 0, 100)
    consumer.poll(1)
    consumer.pause([T0])
    world.append("t", 1, 5)
    assert offsets(consumer.poll(1)) == [0, 1, 2, 3, 4]


@pytest.mark.case("CC-123")
def test_an_unreadable_answer_does_not_block_its_broker() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    consumer = reading(world)
    world.script("Fetch", DROP)
    assert len(consumer.poll(2)) == 3


@pytest.mark.case("CC-124")
def test_pause_keeps_what_is_buffered() -> None:
    world = World({"t": 1})
    world.append("t", 0, 30)
    consumer = reading(world, max_poll_records=10)
    consumer.poll(1)
    consumer.pause([T0])
    world.forget()
    assert len(consumer.poll(1)) == 0
    consumer.resume([T0])
    assert offsets(consumer.poll(0)) == list(range(10, 20))
    assert not world.sent("Fetch")


@pytest.mark.case("CC-125", "BM-138")
def test_a_seek_while_paused_drops_what_is_buffered() -> None:
    world = World({"t": 1})
    world.append("t", 0, 30)
    consumer = reading(world, max_poll_records=10)
    consumer.poll(1)
    consumer.pause([T0])
    consumer.seek(T0, 0)
    consumer.resume([T0])
    assert offsets(consumer.poll(1))[0] == 0


@pytest.mark.case("CC-126")
def test_revoked_data_is_dropped_and_other_data_kept() -> None:
    world = World({"t": 2}, nodes=2)
    world.append("t", 0, 20)
    world.append("t", 1, 20)
    consumer = reading(world, T0, T1, max_poll_records=5)
    consumer.poll(1)
    world.run(20)
    consumer.assign([T1])
    world.forget()
    seen = [(r.partition, r.offset) for _ in range(6) for r in consumer.poll(0.1)]
    assert seen[:15] == [(1, o) for o in range(20 - len(seen), 20)][:15]
    assert all(p == 1 for p, _ in seen)


@pytest.mark.case("CC-127", "CC-128")
def test_an_incremental_request_lists_changes_only() -> None:
    world = World({"t": 3})
    consumer = reading(world, T0, T1, ("t", 2))
    consumer.poll(0.1)
    world.append("t", 1, 4)
    consumer.poll(1)
    second = world.sent("Fetch")[1].message
    assert second.session_epoch == 1
    assert [(t.topic, p.partition, p.fetch_offset) for t in second.topics for p in t.partitions] == [("t", 1, 4)]
    consumer.assign([T0, T1])
    consumer.poll(1.2)
    gone = [s.message.forgotten_topics_data for s in world.sent("Fetch") if s.message.forgotten_topics_data]
    assert [(t.topic, t.partitions) for g in gone for t in g] == [("t", [2])]


@pytest.mark.case("CC-129", "CC-130", "CC-212")
@pytest.mark.parametrize("code", [70, 71, 106, 100, 103, -1])
def test_a_broken_session_starts_over_at_once(code: int) -> None:
    world = World({"t": 1})
    consumer = reading(world)
    consumer.poll(0.6)
    world.append("t", 0, 3)
    consumer.poll(0.1)
    world.forget()
    world.script("Fetch", fetch.FetchResponse(error_code=code))
    world.append("t", 0, 3)
    seen = offsets(consumer.poll(0)) + offsets(consumer.poll(2)) + offsets(consumer.poll(2))
    assert seen == [3, 4, 5] or seen == []
    full = [s.message for s in world.sent("Fetch") if s.message.session_epoch == 0]
    assert full
    assert (full[0].session_id == 0) == (code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert [p.partition for t in full[0].topics for p in t.partitions] == [0]
    if code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
        assert world.sent("Metadata")


@pytest.mark.case("CC-131")
def test_a_full_answer_that_lacks_a_partition_is_dropped() -> None:
    world = World({"t": 2})
    world.append("t", 0, 3)
    topic = fetch.FetchableTopicResponse(topic_id=world.ids["t"], partitions=[
        fetch.PartitionData(partition_index=0, records=world.logs[T0].read(0, 1 << 20), high_watermark=3)])  # fmt: skip
    world.script("Fetch", fetch.FetchResponse(session_id=9, responses=[topic]))
    consumer = reading(world, T0, T1)
    assert len(consumer.poll(2)) == 3
    assert [(s.message.session_id, s.message.session_epoch) for s in world.sent("Fetch")][:2] == [(0, 0), (0, 0)]


@pytest.mark.case("CC-132")
def test_an_empty_throttled_answer_is_no_session_error() -> None:
    session = FetchSession()
    session.build({TopicPartition(*T0): FetchSlot(0, 1)})
    assert session.accept(ErrorCode.NONE, 0, set(), throttled=True)
    assert (session.session_id, session.epoch) == (0, 0)


@pytest.mark.case("CC-133")
def test_the_session_epoch_wraps_to_one() -> None:
    session = FetchSession()
    wanted = {TopicPartition(*T0): FetchSlot(0, 1)}
    session.build(wanted)
    session.accept(ErrorCode.NONE, 7, set(wanted), throttled=False)
    session.epoch = 2**31 - 1
    session.build(wanted)
    assert session.accept(ErrorCode.NONE, 7, set(), throttled=False)
    assert session.epoch == 1


@pytest.mark.case("CC-134")
def test_a_recreated_topic_is_forgotten_and_added_anew() -> None:
    world = World({"t": 1})
    consumer = reading(world)
    consumer.poll(0.6)
    old = world.ids["t"]
    world.recreate("t")
    world.always["OffsetForLeaderEpoch"] = HOLD
    consumer.poll(3)
    added = [s.message for s in world.sent("Fetch") if s.message.forgotten_topics_data]
    assert added[0].forgotten_topics_data[0].topic_id == old
    assert added[0].topics[0].topic_id == world.ids["t"]


@pytest.mark.case("CC-135")
def test_one_topic_without_an_id_makes_the_request_speak_of_names() -> None:
    world = World({"t": 1, "u": 1})
    world.ids["u"] = bytes(16)
    consumer = reading(world, T0, ("u", 0))
    consumer.poll(0.1)
    assert [s.version for s in world.sent("Fetch")] == [12]


@pytest.mark.case("CC-136")
def test_a_leader_hint_is_followed_at_once() -> None:
    world = World({"t": 1}, nodes=2)
    world.logs[T0].leader = 1
    world.append("t", 0, 3)
    consumer = reading(world)
    consumer.poll(1)
    world.forget()
    world.always["Metadata"] = HOLD
    hint = fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
    world.logs[T0].leader, world.logs[T0].epoch = 2, 7
    world.script("Fetch", error(world, 6, current_leader=hint))
    consumer.seek(T0, OffsetOf(3, 0))
    consumer.poll(1)
    to_new = [s.name for s in world.log if s.node == 2]
    assert to_new[:2] == ["OffsetForLeaderEpoch", "Fetch"]


def OffsetOf(offset: int, epoch: int) -> Any:
    from partita.offsets.topic_partition import OffsetAndMetadata

    return OffsetAndMetadata(offset, epoch)


def prefer(world: World, replica: int) -> Any:
    def answer(message: Any) -> Any:
        data = fetch.PartitionData(partition_index=0, preferred_read_replica=replica, high_watermark=3)
        topic = fetch.FetchableTopicResponse(topic_id=world.ids["t"], topic="t", partitions=[data])
        return fetch.FetchResponse(responses=[topic])

    return answer


@pytest.mark.case("CC-137")
def test_a_preferred_replica_is_used_and_its_out_of_range_means_nothing() -> None:
    world = World({"t": 1}, nodes=3)
    world.append("t", 0, 3)
    world.logs[T0].leader = 1
    consumer = reading(world, client_rack="r")
    world.script("Fetch", prefer(world, 3), error(world, 1))
    assert offsets(consumer.poll(2)) == [0, 1, 2]
    assert [s.node for s in world.sent("Fetch")][:3] == [1, 3, 1]
    assert len(world.sent("ListOffsets")) == 1


@pytest.mark.case("CC-138")
def test_a_preferred_replica_expires() -> None:
    world = World({"t": 1}, nodes=3)
    world.logs[T0].leader = 1
    consumer = reading(world, client_rack="r", metadata_max_age_ms=2_000)
    world.script("Fetch", prefer(world, 3), *[prefer(world, -1)] * 2)
    world.always["Fetch"] = lambda message: Delay(400)
    world.always["Fetch"] = Delay(400, prefer(world, -1))
    consumer.poll(4)
    nodes = [s.node for s in world.sent("Fetch")]
    assert nodes[:2] == [1, 3]
    assert 1 in nodes[2:]


@pytest.mark.case("CC-139")
def test_an_error_of_one_partition_keeps_its_place_among_the_data() -> None:
    world = World({"t": 2})
    world.append("t", 1, 3)
    data = [
        fetch.PartitionData(partition_index=0, error_code=29),
        fetch.PartitionData(partition_index=1, records=world.logs[T1].read(0, 1 << 20), high_watermark=3),
    ]
    topic = fetch.FetchableTopicResponse(topic_id=world.ids["t"], partitions=data)
    world.script("Fetch", fetch.FetchResponse(responses=[topic]))
    consumer = reading(world, T0, T1)
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(1)
    assert offsets(consumer.poll(0)) == [0, 1, 2]
    assert len(consumer.poll(0.05)) == 0


@pytest.mark.case("CC-140", "CC-214")
@pytest.mark.parametrize(("code", "asks_metadata"), [(78, True), (75, False), (-1, False)])
def test_passing_errors_are_silent(code: int, asks_metadata: bool) -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    consumer = reading(world)
    world.script("Fetch", error(world, code))
    consumer.poll(0.05)
    world.forget()
    assert offsets(consumer.poll(2)) == [0, 1, 2]
    assert bool(world.sent("Metadata")) == asks_metadata


@pytest.mark.case("CC-214")
def test_a_corrupt_message_answer_is_raised_once() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    world.script("Fetch", error(world, 2))
    consumer = reading(world)
    with pytest.raises(KafkaError):
        consumer.poll(1)
    assert offsets(consumer.poll(1)) == [0, 1, 2]


@pytest.mark.parametrize("code", [3, 6, 9, 56, 74, 75, 78, 100, 103, -1, 2, 29, 424])
def test_no_fetch_error_spins(code: int) -> None:
    world = World({"t": 1})
    world.always["Fetch"] = error(world, code)
    consumer = reading(world)
    for _ in range(100):
        try:
            consumer.poll(0.1)
        except KafkaError:
            continue
    assert len(world.sent("Fetch")) <= 2 + (world.now - 1_000) // 100
    assert len(world.sent("Metadata")) <= 2 + (world.now - 1_000) // 100


@pytest.mark.parametrize("code", [70, 71, 106, 42])
def test_no_session_error_spins(code: int) -> None:
    world = World({"t": 1})
    world.always["Fetch"] = fetch.FetchResponse(error_code=code)
    reading(world).poll(20)
    assert len(world.sent("Fetch")) <= 30


@pytest.mark.case("CC-141")
def test_no_partition_starves_beside_a_hot_one() -> None:
    world = World({"t": 20})
    for p in range(20):
        world.append("t", p, 3 if p else 5_000)
    consumer = reading(world, *[("t", p) for p in range(20)], max_poll_records=100)
    seen: set[int] = set()
    for _ in range(75):
        seen |= {r.partition for r in consumer.poll(0.1)}
    assert seen == set(range(20))


@pytest.mark.case("CC-211")
def test_an_unanswered_fetch_is_sent_again_after_the_request_timeout() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    world.script("Fetch", HOLD)
    consumer = reading(world, request_timeout_ms=2_000)
    assert len(consumer.poll(5)) == 3
    times = [s.at_ms for s in world.sent("Fetch")]
    assert times[1] - times[0] == 2_000


@pytest.mark.case("CC-196")
def test_no_more_is_fetched_than_the_buffer_may_hold() -> None:
    world = World({"t": 4}, nodes=4)
    for p in range(4):
        for _ in range(20):
            world.append("t", p, 100, value=b"x" * 1_000)
    consumer = reading(
        world, *[("t", p) for p in range(4)], fetch_buffer_max_bytes=300_000, max_partition_fetch_bytes=100_000,
        max_poll_records=10,
    )  # fmt: skip
    highest = 0
    for _ in range(300):
        consumer.poll(0.01)
        highest = max(highest, consumer._calls._core.buffer.size)
    assert highest <= 300_000 + 3 * 110_000


@pytest.mark.case("BM-128")
def test_the_next_offset_comes_from_the_batch_not_from_the_last_record() -> None:
    from partita.records.batch import build_batch

    world = World({"t": 1})
    holey = bytearray(build_batch([(1, b"k", b"v", ())], base_offset=0))
    world.append_batch("t", 0, _with_last_offset(holey, 9), 0, 9)
    consumer = reading(world)
    assert offsets(consumer.poll(1)) == [0]
    assert consumer.position(T0) == 10
    world.append("t", 0, 2)
    assert offsets(consumer.poll(1)) == [10, 11]


def _with_last_offset(batch: bytearray, delta: int) -> bytes:
    import crc32c

    batch[23:27] = delta.to_bytes(4, "big")
    batch[17:21] = crc32c.crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def test_a_member_reads_what_is_appended_later() -> None:
    world = World({"t": 2})
    consumer, _ = member(world)
    world.append("t", 1, 5)
    assert offsets(consumer.poll(1)) == [0, 1, 2, 3, 4]


def lines_of_a_turn(partitions: int) -> int:
    """How many lines of code run when the core is asked for news and there is none: every fetch is at its broker."""
    world = World({"t": partitions})
    consumer = reading(world, *[("t", p) for p in range(partitions)])
    for _ in range(5):
        consumer.poll(0.02)
    core, clock = consumer._driver.core, consumer._driver.clock
    core.poll(clock.now())
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        core.poll(clock.now())
    finally:
        sys.settrace(before)
    return lines


def test_a_turn_without_news_looks_at_no_partition() -> None:
    """Finding 6 of an audit of the clients: an idle consumer of 1,000 partitions took five times librdkafka's CPU."""
    assert lines_of_a_turn(400) == lines_of_a_turn(2)


def test_a_fetch_without_news_makes_no_slot_anew() -> None:
    """The same finding: a position that stands still is asked for with the very slot of the fetch before."""
    world = World({"t": 3})
    consumer = reading(world, ("t", 0), ("t", 1), ("t", 2))
    world.append("t", 0, 1)
    consumer.poll(1)
    before = dict(consumer._driver.core.fetching._places)
    world.append("t", 0, 1)
    consumer.poll(1)
    after = consumer._driver.core.fetching._places
    assert [p for (_, p), place in after.items() if place is before[("t", p)]] == [1, 2]


def test_partitions_at_rest_are_walked_once_and_again_after_each_change() -> None:
    """Issue 35: at 1,000 partitions at rest the walk over them, twice a second, was half of what the consumer took."""
    world = World({"t": 2})
    consumer = reading(world, T0, T1)
    consumer.poll(2)
    core = consumer._driver.core
    before = core.fetching._last_wanted
    consumer.poll(2)
    assert core.fetching._last_wanted is before

    def asked() -> list[tuple[str, int]]:
        """The partitions of the session after some time."""
        consumer.poll(2)
        return sorted(core.fetching._brokers[1].session.slots)

    assert asked() == [T0, T1]
    consumer.pause([T0])
    assert asked() == [T1]
    consumer.resume([T0])
    assert asked() == [T0, T1]
    for name in ("pending_revocation", "awaits_callback"):
        setattr(core.subscription.assignment[T1], name, True)
        assert asked() == [T0], name
        setattr(core.subscription.assignment[T1], name, False)
        assert asked() == [T0, T1], name
    consumer.assign([T1])
    assert asked() == [T1]


def test_whatever_moves_a_partition_has_it_walked_again() -> None:
    world = World({"t": 1}, nodes=2)
    consumer = reading(world)
    world.logs[T0].leader = 1
    consumer.poll(2)
    core = consumer._driver.core
    state = core.subscription.assignment[T0]

    def nodes() -> list[int]:
        """The nodes to ask, if no request were under way."""
        wanted = core.fetching._wanted(set(), Now(0, 0), Poll())
        assert core.fetching._wanted(set(), Now(0, 0), Poll()) == wanted
        return list(wanted)

    assert nodes() == [1]
    state._move(AWAIT_VALIDATION)
    assert nodes() == []
    state.validated()
    assert nodes() == [1]
    state.preferred_replica, state.preferred_until_ms = 2, 1
    assert nodes() == [2]
    state.preferred_until_ms = 0
    assert nodes() == [1]
    core.positions._out_of_range[T0] = state.position.offset
    assert nodes() == []


def test_a_position_that_went_is_asked_for_again_after_a_seek_to_where_it_was() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    consumer = reading(world)
    assert offsets(consumer.poll(1)) == [0, 1, 2]
    consumer.seek(T0, 1)
    assert offsets(consumer.poll(1)) == [1, 2]
    consumer.seek(T0, 0)
    assert offsets(consumer.poll(1)) == [0, 1, 2]


@pytest.mark.parametrize(
    "function", [Fetching._ask, FetchSession.build, Fetching._request, vars(Subscription)["unsettled"].fget]
)
def test_ctrl_c_in_a_turn_skips_no_record_and_ends_no_reading(function: Any) -> None:
    """The session had taken offsets for asked that no request carried, and the leader answered from its own: rows were
    skipped. A walk that was broken off counted as done, and partitions got no position.
    """
    code = function.__code__
    for line, nth in product({line for *_, line in code.co_lines() if line} - {code.co_firstlineno}, (1, 3)):
        world, left = World({"t": 1}), [nth]
        world.append("t", 0, 4)
        consumer, seen = reading(world), list[int]()

        def trace(frame: FrameType, event: str, arg: object, line: int = line, left: list[int] = left) -> Any:
            left[0] -= event == "line" and frame.f_lineno == line
            if event == "line" and frame.f_lineno == line and left[0] == 0:
                raise KeyboardInterrupt
            return trace if frame.f_code is code else None

        def poll(consumer: Any = consumer, trace: Any = trace) -> list[int]:
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                return offsets(consumer.poll(2))
            except KeyboardInterrupt:
                return offsets(consumer.poll(2))
            finally:
                sys.settrace(before)

        for start in (0, 0, 2, 0):
            if seen:
                consumer.seek(T0, start)
            seen += poll()
        assert seen == [0, 1, 2, 3, 0, 1, 2, 3, 2, 3, 0, 1, 2, 3], (line, nth)
