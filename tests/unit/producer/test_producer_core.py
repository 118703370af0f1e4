"""The producer's rules against a broker that answers what the test says."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from partita.errors import KafkaError
from partita.net.errors import Disconnected
from partita.producer.batch import NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.core import Poll, ProducerCore, Sending
from partita.producer.delivery import Delivery
from partita.producer.errors import (
    BufferExhaustedError,
    DeliveryTimeoutError,
    NoMetadataError,
    ProducerClosedError,
    PurgedError,
    RecordTooLargeError,
)
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from partita.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from partita.protocol.metadata_view import MetadataView, Node
from partita.records.batch import BatchHeader, iter_records, read_header


def told_metadata(leaders: Iterable[int], *, error: int = 0, topic: str = "t") -> MetadataResponse:
    parts = [
        MetadataResponsePartition(partition_index=p, leader_id=leader, leader_epoch=1, replica_nodes=[1], isr_nodes=[1])
        for p, leader in enumerate(leaders)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)],
        topics=[MetadataResponseTopic(name=topic, error_code=error, partitions=parts)],
    )


class World:
    """One core, its clock, and everything it has sent."""

    def __init__(
        self, leaders: Iterable[int] = (1,), *, draw: Callable[[int], int] = lambda bound: 0, **options: Any
    ) -> None:
        self.view = MetadataView()
        if leaders:
            self.view.update(told_metadata(leaders), 12)
        config = ProducerConfig.of(bootstrap_servers="b:1", **{"linger_ms": 0, **options})
        self.core = ProducerCore(config, self.view, draw)
        self.core.on_producer_id(7, 0)
        self.now = 0

    def send(
        self, value: bytes = b"v", partition: int | None = 0, key: bytes | None = None, topic: str = "t"
    ) -> Delivery:
        delivery = Delivery(NewRecord(topic, key, value, (), 1, partition))
        self.core.add(delivery, self.now)
        return delivery

    def chosen(self, value: bytes = b"v", key: bytes | None = None) -> int:
        """The partition that the producer itself chooses."""
        batch = self.send(value, None, key).batch
        assert batch is not None
        return batch.partition

    def poll(self, later: int = 0) -> Poll:
        self.now += later
        return self.core.poll(self.now)

    def sent(self, later: int = 0) -> Sequence[Sending]:
        return self.poll(later).sendings

    def headers(self, sending: Sending) -> list[BatchHeader]:
        request = self.core.request_for(sending)
        parts = [part for topic in request.topic_data for part in topic.partition_data]
        return [read_header(part.records or b"") for part in parts]

    def answer(self, sending: Sending, code: int = 0, base_offset: int = 0, **fields: Any) -> None:
        parts = [
            PartitionProduceResponse(index=b.partition, error_code=code, base_offset=base_offset, **fields)
            for b in sending.batches
        ]
        endpoints = [NodeEndpoint(node_id=2, host="h", port=2)]
        response = ProduceResponse(
            responses=[TopicProduceResponse(name="t", partition_responses=parts)], node_endpoints=endpoints
        )
        self.core.on_response(sending, response, self.now)

    def begin(self, partition: int = 0) -> None:
        """Deliver one batch, so that the broker knows the epoch: before, only one is under way."""
        self.send(b"first", partition)
        for sending in self.sent(later=self.core.config.linger_ms):
            self.answer(sending)


def sequences(world: World, sendings: Iterable[Sending]) -> list[tuple[int, int]]:
    return [(h.producer_epoch, h.base_sequence) for sending in sendings for h in world.headers(sending)]


# Batches


def test_records_of_one_batch_get_offsets_in_order() -> None:
    world = World(linger_ms=10)
    deliveries = [world.send(b"%d" % number) for number in range(3)]
    assert world.sent() == []
    (sending,) = world.sent(later=10)
    request = world.core.request_for(sending)
    batch = request.topic_data[0].partition_data[0].records or b""
    assert [record.value for record in iter_records(batch)] == [b"0", b"1", b"2"]
    world.answer(sending, base_offset=40)
    assert [delivery.metadata().offset for delivery in deliveries] == [40, 41, 42]


def test_a_full_batch_does_not_linger() -> None:
    world = World(linger_ms=1000, batch_size=200)
    world.send(b"x" * 120)
    assert world.sent() == []
    world.send(b"x" * 120)
    assert len(world.sent()) == 1


def test_a_flush_does_not_linger() -> None:
    world = World(linger_ms=1000)
    world.send()
    world.core.accumulator.flushes += 1
    assert len(world.sent()) == 1


def test_the_wait_is_the_rest_of_the_linger_time() -> None:
    world = World(linger_ms=30)
    world.send()
    assert world.poll(later=10).wait_ms == 20


def test_partitions_of_one_node_travel_together_within_max_request_size() -> None:
    world = World(leaders=(1, 1, 2), max_request_size=400, batch_size=250)
    for partition in (0, 1, 2):
        world.send(b"x" * 90, partition)
    sendings = world.sent()
    assert [(s.node_id, [b.partition for b in s.batches]) for s in sendings] == [(1, [0, 1]), (2, [2])]
    world = World(leaders=(1, 1), max_request_size=200, batch_size=150)
    for partition in (0, 1):
        world.send(b"x" * 90, partition)
    assert [[b.partition for b in s.batches] for s in world.sent()] == [[0], [1]]


def test_no_more_than_five_requests_are_in_flight_to_a_node() -> None:
    world = World(batch_size=1)
    world.begin()
    deliveries = [world.send() for _ in range(7)]
    sendings = world.sent()
    assert len(sendings) == 5
    world.answer(sendings[0])
    assert len(world.sent()) == 1
    assert deliveries[0].done()
    assert not deliveries[1].done()


def test_as_many_requests_are_in_flight_as_the_option_says() -> None:
    world = World(batch_size=1, max_in_flight_requests_per_connection=2)
    world.begin()
    for _ in range(7):
        world.send()
    assert len(world.sent()) == 2


def test_with_acks_0_sending_is_all() -> None:
    world = World(acks="0")
    delivery = world.send()
    (sending,) = world.sent()
    world.core.on_response(sending, None, 0)
    assert delivery.metadata().offset == -1


def test_log_append_time_replaces_the_timestamp() -> None:
    world = World()
    delivery = world.send()
    (sending,) = world.sent()
    world.answer(sending, log_append_time_ms=99)
    assert delivery.metadata().timestamp == 99


# Idempotence


def test_batches_are_numbered_through_per_partition() -> None:
    world = World(leaders=(1, 1), batch_size=1)
    for partition in (0, 1):
        world.begin(partition)
    for partition in (0, 0, 1):
        world.send(partition=partition)
    assert sorted(sequences(world, world.sent())) == [(0, 1), (0, 1), (0, 2)]


def test_the_first_batch_of_an_epoch_leaves_alone() -> None:
    """A broker takes any batch as the first one: were a later one taken before it, it could never be sent."""
    world = World(batch_size=1)
    deliveries = [world.send() for _ in range(3)]
    (first,) = world.sent()
    assert world.sent(later=50) == []
    world.answer(first, ErrorCode.NOT_ENOUGH_REPLICAS)
    (again,) = world.sent(later=100)
    assert sequences(world, [again]) == [(0, 0)]
    world.answer(again)
    assert sequences(world, world.sent()) == [(0, 1), (0, 2)]
    assert deliveries[0].failure() is None


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    world = World()
    world.core._producer = None
    world.send()
    poll = world.poll()
    assert poll.wants_producer_id
    assert poll.sendings == []
    world.core.on_producer_id(8, 0)
    assert len(world.sent()) == 1


def test_a_batch_sent_again_keeps_its_number_and_its_place() -> None:
    world = World(batch_size=1)
    world.begin()
    first, second = world.send(b"1"), world.send(b"2")
    sendings = world.sent()
    world.core.on_failure(sendings[0], Disconnected("gone"), world.now)
    world.answer(sendings[1], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert world.sent() == []
    again = world.sent(later=100)
    assert sequences(world, again) == [(0, 1), (0, 2)]
    for sending in again:
        world.answer(sending)
    assert first.done()
    assert second.done()
    assert second.failure() is None


def test_a_batch_that_keeps_failing_is_not_overtaken_by_more_than_the_broker_remembers() -> None:
    world = World(batch_size=1)
    world.begin()
    for number in range(12):
        world.send(b"%d" % number)
    first, *others = world.sent()
    for _ in range(3):
        world.answer(first, ErrorCode.REQUEST_TIMED_OUT)
        for sending in others:
            world.answer(sending)
        first, *others = world.sent(later=1000)
    assert sequences(world, [first]) == [(0, 1)]
    assert others == []
    world.answer(first)
    assert sequences(world, world.sent()) == [(0, number) for number in range(6, 11)]


def test_a_duplicate_counts_as_delivered() -> None:
    world = World()
    delivery = world.send()
    (sending,) = world.sent()
    world.answer(sending, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, base_offset=-1)
    assert delivery.metadata().offset == -1


def test_a_gap_that_nothing_explains_is_cured_by_a_new_epoch() -> None:
    """TransactionManager.canRetry: the broker has lost what it knew, which is no reason to lose records."""
    world = World(batch_size=1)
    world.begin()
    deliveries = [world.send(b"1"), world.send(b"2")]
    first, second = world.sent()
    world.answer(first, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    deliveries.append(world.send(b"3"))
    assert world.sent(later=100) == []
    world.answer(second, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    (again,) = world.sent(later=100)
    assert sequences(world, [again]) == [(1, 0)]
    world.answer(again)
    rest = world.sent(later=100)
    assert sequences(world, rest) == [(1, 1), (1, 2)]
    for sending in rest:
        world.answer(sending)
    assert [delivery.failure() for delivery in deliveries] == [None] * 3


def test_an_unknown_producer_id_is_cured_by_a_new_epoch() -> None:
    world = World()
    delivery = world.send()
    (sending,) = world.sent()
    world.answer(sending, ErrorCode.UNKNOWN_PRODUCER_ID)
    (again,) = world.sent(later=100)
    assert sequences(world, [again]) == [(1, 0)]
    world.answer(again)
    assert delivery.failure() is None


def test_when_epochs_run_out_a_new_producer_id_is_asked_for() -> None:
    world = World()
    world.core.on_producer_id(7, 32_767)
    world.send()
    (sending,) = world.sent()
    world.answer(sending, ErrorCode.UNKNOWN_PRODUCER_ID)
    assert world.poll(later=100).wants_producer_id
    world.core.on_producer_id(9, 0)
    (again,) = world.sent()
    (header,) = world.headers(again)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 0, 0)


# Failures


def test_a_moved_leader_is_followed_where_the_answer_names_it() -> None:
    world = World()
    world.send()
    (sending,) = world.sent()
    leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=5)
    world.answer(sending, ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=leader)
    assert world.poll().topics_wanted == {"t"}
    (again,) = world.sent(later=100)
    assert again.node_id == 2


def test_a_final_error_fails_the_batch_and_frees_its_memory() -> None:
    world = World()
    delivery = world.send()
    (sending,) = world.sent()
    world.answer(sending, ErrorCode.INVALID_TIMESTAMP, error_message="not you")
    assert "t-0: not you" in str(delivery.failure())
    assert world.core.accumulator.used_bytes == 0


def test_back_off_doubles_up_to_its_limit() -> None:
    world = World(retry_backoff_ms=100, retry_backoff_max_ms=300)
    world.send()
    waits = []
    for _ in range(4):
        (sending,) = world.sent()
        world.answer(sending, ErrorCode.REQUEST_TIMED_OUT)
        waits.append(world.poll().wait_ms)
        world.now += waits[-1]
    assert waits == [100, 200, 300, 300]


def test_retries_are_counted() -> None:
    world = World(retries=2, enable_idempotence=False)
    delivery = world.send()
    for _ in range(3):
        assert not delivery.done()
        (sending,) = world.sent(later=1000)
        world.answer(sending, ErrorCode.REQUEST_TIMED_OUT)
    failure = delivery.failure()
    assert isinstance(failure, KafkaError)
    assert failure.code == ErrorCode.REQUEST_TIMED_OUT


def test_the_delivery_timeout_says_how_often_it_was_tried_and_why_it_failed() -> None:
    world = World(request_timeout_ms=10, delivery_timeout_ms=50)
    delivery = world.send()
    (sending,) = world.sent()
    world.core.on_failure(sending, Disconnected("connection refused"), world.now)
    world.poll(later=50)
    failure = delivery.failure()
    assert isinstance(failure, DeliveryTimeoutError)
    assert "within 50 ms, after 1 attempt; the last attempt failed with" in str(failure)
    assert "connection refused" in str(failure)


def test_a_partition_left_out_of_the_answer_is_sent_again() -> None:
    world = World()
    delivery = world.send()
    (sending,) = world.sent()
    world.core.on_response(sending, ProduceResponse(), world.now)
    (again,) = world.sent(later=100)
    world.answer(again)
    assert delivery.failure() is None


# Waiting to get in


def test_records_wait_in_order_for_an_unknown_topic() -> None:
    world = World(leaders=())
    deliveries = [world.send(b"%d" % number, partition=None) for number in range(3)]
    assert world.poll().topics_wanted == {"t"}
    world.view.update(told_metadata((1, 1)), 12)
    (sending,) = world.sent(later=10)
    world.answer(sending)
    assert [delivery.metadata().offset for delivery in deliveries] == [0, 1, 2]


def test_a_topic_that_never_turns_up_fails_after_max_block_ms() -> None:
    world = World(leaders=(), max_block_ms=500)
    delivery = world.send()
    assert world.poll().wait_ms == 500
    world.poll(later=500)
    assert isinstance(delivery.failure(), NoMetadataError)


def test_a_partition_that_does_not_exist_is_named_with_how_many_there_are() -> None:
    world = World(leaders=(1, 1), max_block_ms=500)
    delivery = world.send(partition=5)
    world.poll(later=500)
    assert "partition 5 of 't' did not turn up" in str(delivery.failure())
    assert "the topic has 2 partitions" in str(delivery.failure())


def test_a_partition_that_does_not_exist_holds_up_no_other_record_of_its_topic() -> None:
    world = World(leaders=(1,), max_block_ms=500)
    lost, good = world.send(partition=5), world.send(b"good", None)
    (sending,) = world.sent()
    world.answer(sending)
    assert (lost.done(), good.done()) == (False, True)


def test_records_for_a_partition_that_comes_later_keep_their_order() -> None:
    world = World(leaders=(), linger_ms=10)
    early = [world.send(b"0", 1), world.send(b"other", 0), world.send(b"1", 1)]
    world.view.update(told_metadata((1,)), 12)
    world.poll()
    late = world.send(b"2", 1)
    assert [one.batch is not None for one in [*early, late]] == [False, True, False, False]
    world.view.update(told_metadata((1, 1)), 12)
    last = world.send(b"3", 1)
    world.poll()
    batch = last.batch
    assert batch is not None
    assert [record.value for record in iter_records(batch.build())] == [b"0", b"1", b"2", b"3"]


def test_records_aside_are_counted_purged_and_end_with_their_topic() -> None:
    world = World(leaders=(1,))
    purged = world.send(partition=5)
    assert world.core.count_unfinished() == 1
    assert world.core.purge(in_queue=True, in_flight=True) == 1
    assert isinstance(purged.failure(), PurgedError)
    refused = world.send(partition=5)
    assert world.poll().topics_wanted == {"t"}
    world.view.update(told_metadata((), error=ErrorCode.INVALID_TOPIC_EXCEPTION), 12)
    world.poll()
    assert isinstance(refused.failure(), KafkaError)
    assert world.core.intake.waiting_bytes == 0


def test_a_topic_that_is_refused_fails_at_once() -> None:
    world = World(leaders=())
    delivery = world.send()
    world.view.update(told_metadata((), error=ErrorCode.INVALID_TOPIC_EXCEPTION), 12)
    world.poll()
    failure = delivery.failure()
    assert isinstance(failure, KafkaError)
    assert failure.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_full_buffer_lets_records_in_as_others_are_delivered() -> None:
    world = World(buffer_memory=300, batch_size=150, max_block_ms=500)
    world.begin()
    first, second = world.send(b"x" * 90), world.send(b"x" * 90)
    third, fourth = world.send(b"x" * 90), world.send(b"x" * 90)
    assert not world.core.has_room()
    sendings = world.sent()
    assert third.batch is None
    for sending in sendings:
        world.answer(sending)
    assert first.done()
    assert second.done()
    world.poll()
    assert third.batch is not None
    assert fourth.batch is not None


def test_a_buffer_that_stays_full_fails_after_max_block_ms() -> None:
    world = World(leaders=(-1,), buffer_memory=160, max_block_ms=500)
    world.send(b"x" * 60)
    world.send(b"x" * 60)
    blocked = world.send(b"x" * 60)
    world.poll(later=500)
    assert isinstance(blocked.failure(), BufferExhaustedError)


@pytest.mark.parametrize("options", [{"max_request_size": 1000}, {"buffer_memory": 1000}])
def test_a_record_that_can_never_be_sent_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(RecordTooLargeError, match="more than"):
        World(**options).send(b"x" * 1001)


def test_a_partitioner_of_ones_own_chooses() -> None:
    world = World(leaders=(1, 1, 1), partitioner_class=lambda topic, key, value, count: len(value) % count)
    assert world.chosen(b"xx") == 2
    with pytest.raises(ValueError, match="the partitioner chose 9 for t, which has 3 partitions"):
        World(leaders=(1, 1, 1), partitioner_class=lambda *_: 9).send(partition=None)
    with pytest.raises(TypeError, match=r"returns a whole number, or None for any partition, not 0\.0"):
        World(partitioner_class=lambda *_: 0.0).send(partition=None)
    assert repr(World(partitioner_class=lambda *_: False).chosen()) == "0"


def test_keys_may_be_ignored() -> None:
    world = World(leaders=(1, 1, 1), partitioner_ignore_keys=True)
    assert {world.chosen(key=b"%d" % n) for n in range(9)} == {0}
    world = World(leaders=(1, 1, 1))
    assert len({world.chosen(key=b"%d" % n) for n in range(9)}) == 3


def test_a_partition_with_a_long_queue_is_drawn_less_often_unless_that_is_off() -> None:
    def drawn(**options: Any) -> list[int]:
        """Where records go of which each fills a batch, while none is sent."""
        world = World(leaders=(1, 1, 1), batch_size=1, draw=lambda bound: bound * 2 // 3, **options)
        return [world.chosen() for _ in range(4)]

    assert drawn(partitioner_adaptive_partitioning_enable=False) == [2, 2, 2, 2]
    assert drawn() == [2, 1, 1, 2]


def test_records_without_key_stay_in_the_rack_if_that_is_wanted() -> None:
    def drawn(**options: Any) -> set[int]:
        world = World(leaders=(1, 2, 1), batch_size=1, draw=lambda bound: bound - 1, **options)
        world.view.nodes = {node: Node(node, "h", node, f"rack-{node}") for node in (1, 2)}
        return {world.chosen() for _ in range(6)}

    assert drawn() == drawn(client_rack="rack-2") == {2}
    assert drawn(client_rack="rack-2", partitioner_rack_aware=True) == {1}
    assert drawn(client_rack="rack-9", partitioner_rack_aware=True) == {2}, "no leader stands there"


# Purging


@pytest.mark.parametrize(
    ("options", "purged"),
    [({}, [0, 1, 2, 3]), ({"in_flight": False}, [1, 2, 3]), ({"in_queue": False}, [0]),
     ({"in_queue": False, "in_flight": False}, [])],
)  # fmt: skip
def test_a_purge_fails_what_waits_and_what_is_under_way(options: dict[str, bool], purged: list[int]) -> None:
    world = World(batch_size=1)
    deliveries = [world.send(b"%d" % number) for number in range(3)]
    deliveries.append(world.send(topic="unknown"))
    (sending,) = world.sent()
    assert world.core.purge(**{"in_queue": True, "in_flight": True, **options}) == len(purged)
    assert [n for n, delivery in enumerate(deliveries) if isinstance(delivery.failure(), PurgedError)] == purged
    world.answer(sending)
    assert deliveries[0].done()
    last = world.send(b"last")
    while not last.done():
        for again in world.sent(later=100):
            world.answer(again)
    assert last.failure() is None
    assert world.core.unheard_count == 0
    assert world.core.take_failures() == []


def test_after_a_purge_of_what_was_under_way_numbering_begins_anew() -> None:
    world = World(batch_size=1)
    world.begin()
    world.send(b"1")
    (sending,) = world.sent()
    assert world.core.purge(in_queue=True, in_flight=True) == 1
    world.send(b"2")
    assert sequences(world, world.sent()) == [(1, 0)]
    world.core.on_failure(sending, Disconnected("gone"), world.now)
    assert world.core.count_unfinished() == 1


# The end


def test_what_is_left_at_close_fails_and_nothing_more_is_taken() -> None:
    world = World(leaders=())
    waiting = world.send()
    world.core.is_closed = True
    world.core.abandon(ProducerClosedError("closed"))
    assert isinstance(waiting.failure(), ProducerClosedError)
    with pytest.raises(ProducerClosedError):
        world.send()


def test_whoever_watches_is_told_once_for_each_thing_unfinished() -> None:
    world = World(leaders=(1, 1))
    calls = []
    world.send(partition=0)
    world.send(partition=1)
    world.send(topic="unknown")
    assert world.core.watch_unfinished(lambda: calls.append(1)) == 3
    world.core.abandon(ProducerClosedError("closed"))
    for call in world.core.take_callbacks():
        call()
    assert len(calls) == 3
