"""The producer on a real broker, over real sockets."""

import asyncio
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from partita import Admin, Broker, Producer
from partita.errors import InvalidTopicError
from partita.net.cluster import Cluster
from partita.producer.batch import NewRecord, RecordMetadata
from partita.producer.errors import BufferExhaustedError, NoMetadataError, ProducerClosedError, UndeliveredError
from partita.producer.shell.client import AsyncProducer, DeliveryFuture
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.records.batch import BatchHeader, Record, iter_batches, iter_records
from support.clients.broker import until


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=3) as running:
        yield running


def read(broker: Broker, topic: str, partition: int = 0) -> list[tuple[BatchHeader, list[Record]]]:
    """Every batch of a partition, as (header, records)."""

    async def fetch() -> bytes:
        async with Cluster(broker.bootstrap) as cluster:
            leader = await cluster.leader_for(topic, partition)
            topic_id = cluster.view.topic_id(topic)
            part = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 26)
            request = FetchRequest(
                max_bytes=1 << 26, topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])]
            )
            found = b""
            while True:
                answer = await cluster.request(leader.id, request)
                more = bytes(answer.responses[0].partitions[0].records or b"")
                if not more:
                    return found
                found += more
                part.fetch_offset = [header for header, _ in iter_batches(more)][-1].next_offset

    return [(header, list(iter_records(view))) for header, view in iter_batches(asyncio.run(fetch()))]


def values(broker: Broker, topic: str, partition: int = 0) -> list[Any]:
    return [record.value for _, records in read(broker, topic, partition) for record in records]


def test_a_blocking_send_tells_where_the_record_is(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        first = producer.send("t", b"one", partition=1, headers={"source": "test"}, timestamp=1_700_000_000_000)
        second = producer.send("t", "two", key="k", partition=1)
        assert first.result(60)._asdict() == {
            "topic": "t",
            "partition": 1,
            "offset": 0,
            "timestamp": 1_700_000_000_000,
            "serialized_key_size": -1,
            "serialized_value_size": 3,
        }
        assert second.result(60).offset == 1
    ((header, (record, _)),) = read(broker, "t", 1)
    assert (record.value, record.headers) == (b"one", (("source", b"test"),))
    assert header.producer_id >= 0
    assert header.base_sequence == 0


def test_leaving_the_block_sends_what_is_left(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=60_000, request_timeout_ms=30_000) as producer:
        futures = [producer.send("t", b"%d" % number, partition=0) for number in range(100)]
    assert all(future.done() for future in futures)
    assert values(broker, "t") == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_codec_and_every_acks(broker: Broker, codec: str, acks: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec, acks=acks) as producer:
        for _ in range(50):
            producer.send("t", b"the same again ", partition=2)
        producer.flush(60)
        end = producer.send("t", b"end", partition=2)
        assert end.result(60).offset == (-1 if acks == "0" else 50)
    assert values(broker, "t", 2)[-1] == b"end"


def test_without_acks_records_find_the_topic_that_was_created_again(broker: Broker) -> None:
    """Nothing is answered: only the end of the connection says that the old topic is gone."""
    servers = broker.bootstrap
    with Admin(bootstrap_servers=servers) as admin, Producer(bootstrap_servers=servers, acks="0") as producer:
        producer.send("t", b"old", partition=0).result(60)
        admin.delete_topics("t")
        admin.create_topics("t")

        def arrives() -> bool:
            producer.send("t", b"new", partition=0).result(60)
            return values(broker, "t") != []

        until(arrives, "a record is in the new topic")


def test_many_threads_share_a_producer(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=500) as producer:

        def send_some(name: str) -> None:
            for number in range(200):
                producer.send("t", f"{name}:{number}", partition=0)

        threads = [threading.Thread(target=send_some, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    got = [value.decode().split(":") for value in values(broker, "t") if value is not None]
    assert len(got) == 800
    for name in "abcd":
        assert [int(number) for sender, number in got if sender == name] == list(range(200))


def test_the_asyncio_face_awaits(broker: Broker) -> None:
    async def story() -> tuple[RecordMetadata, list[RecordMetadata]]:
        async with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": "0"}) as producer:
            one = await producer.send("t", "x", key="k")
            many = await asyncio.gather(*(producer.send("t", str(number), key="k") for number in range(500)))
            await producer.room()
            await producer.flush()
            assert await producer.partitions_for("t") == [0, 1, 2]
            return one, many

    one, many = asyncio.run(story())
    assert {metadata.partition for metadata in many} == {one.partition}
    assert [metadata.offset for metadata in many] == list(range(1, 501))


def test_a_leader_that_moves_is_followed_without_loss_or_duplicate() -> None:
    with Broker(nodes=2, num_partitions=1) as broker, Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("t", b"first").result(60)
        for number in range(6):
            broker.control.move_leader("t", 0, 2 if broker.control.leader("t", 0) == 1 else 1)
            futures = [producer.send("t", b"%d-%d" % (number, part)) for part in range(20)]
            for future in futures:
                future.result(60)
        expected = [b"first", *(b"%d-%d" % (number, part) for number in range(6) for part in range(20))]
        assert values(broker, "t") == expected


def test_lost_answers_and_errors_are_survived_in_order(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, batch_size=60, retry_backoff_ms=5) as producer:
        producer.send("t", b"start", partition=0).result(60)
        broker.control.fail("Produce", "NOT_ENOUGH_REPLICAS", 2)
        broker.control.fail("Produce", "REQUEST_TIMED_OUT", 2, executed=True)
        futures = [producer.send("t", b"%d" % number, partition=0) for number in range(50)]
        for future in futures:
            future.result(60)
    assert values(broker, "t") == [b"start", *(b"%d" % number for number in range(50))]


def test_the_producer_outlives_a_restart_of_its_broker() -> None:
    with Broker() as broker, Producer(bootstrap_servers=broker.bootstrap, retry_backoff_ms=10) as producer:
        producer.send("t", b"1", partition=0).result(60)
        broker.control.restart_node(1)
        producer.send("t", b"2", partition=0).result(60)
        assert values(broker, "t") == [b"1", b"2"]


def test_a_topic_nobody_creates_fails_after_max_block_ms() -> None:
    with (
        Broker(auto_create_topics_enable=False) as broker,
        Producer(bootstrap_servers=broker.bootstrap, max_block_ms=150) as producer,
        pytest.raises(NoMetadataError, match="'nowhere' did not turn up"),
    ):
        producer.send("nowhere", b"x").result(60)


def test_a_name_that_is_no_topic_name_fails_at_once(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer, pytest.raises(InvalidTopicError):
        producer.send("no/such name", b"x").result(60)


def test_a_buffer_that_stays_full_makes_send_give_up() -> None:
    options: dict[str, Any] = {"max_block_ms": 100, "buffer_memory": 300, "batch_size": 100}
    with Broker() as broker, Producer(bootstrap_servers=broker.bootstrap, **options) as producer:
        until(lambda: knows_the_topic(producer), "the producer knows the topic")
        held = broker.control.hold("Produce")
        for _ in range(2):
            producer.send("t", b"x" * 100)
        with pytest.raises(BufferExhaustedError, match="no room in buffer_memory 300 within max_block_ms 100"):
            producer.send("t", b"x" * 100)
        held.clear()


def knows_the_topic(producer: Producer) -> bool:
    """A busy machine may need longer than `max_block_ms` for the first connection."""
    try:
        return producer.send("t", b"first").result(60).topic == "t"
    except NoMetadataError:
        return False


def test_closing_in_a_hurry_fails_what_is_left(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap)
    producer.send("t", b"x").result(60)
    broker.control.hold("Produce")
    late = producer.send("t", b"late")
    with pytest.raises(UndeliveredError, match="1 record still waiting"):
        producer.close(timeout=0.05)
    producer.close()
    with pytest.raises(ProducerClosedError):
        late.result(60)
    with pytest.raises(ProducerClosedError):
        producer.send("t", b"x")
    with pytest.raises(ProducerClosedError):
        producer.flush()


def test_result_in_a_callback_is_refused_rather_than_stuck(broker: Broker) -> None:
    seen: list[object] = []
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        other = producer.send("t", b"a", partition=1)

        def ask(future: DeliveryFuture) -> None:
            seen.append(future.result(0).offset)
            with pytest.raises(RuntimeError, match="use `await` here"):
                producer.send("t", b"c").result(1)

        producer.send("t", b"b", partition=0).add_done_callback(ask)
        producer.flush(60)
        other.add_done_callback(lambda future: seen.append(future.exception(0)))
    assert seen == [0, None]


def test_a_callback_that_sends_into_a_full_buffer_does_not_wait_for_itself(broker: Broker) -> None:
    sent: list[DeliveryFuture] = []
    with Producer(bootstrap_servers=broker.bootstrap, buffer_memory=300, batch_size=100) as producer:

        def send_on(_: DeliveryFuture) -> None:
            sent.extend(producer.send("t", b"x" * 100) for _ in range(3))

        producer.send("t", b"first").add_done_callback(send_on)
        until(lambda: len(sent) == 3, "the callback has sent three records")
        assert all(one.result(60).topic == "t" for one in sent)


def test_interceptors_see_every_record_and_its_outcome(broker: Broker) -> None:
    class Interceptor:
        def __init__(self) -> None:
            self.outcomes: list[tuple[int, Exception | None]] = []

        def on_send(self, record: NewRecord) -> NewRecord:
            assert isinstance(record.value, bytes)
            return record._replace(value=record.value.upper())

        def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
            self.outcomes.append((metadata.offset, error))

    interceptor = Interceptor()
    with Producer(bootstrap_servers=broker.bootstrap, interceptor_classes=[interceptor]) as producer:
        producer.send("t", b"quiet", partition=0).result(60)
    assert values(broker, "t") == [b"QUIET"]
    assert interceptor.outcomes == [(0, None)]


def test_an_asyncio_producer_that_was_not_started_says_how() -> None:
    with pytest.raises(RuntimeError, match="use `with Producer"):
        AsyncProducer(bootstrap_servers="localhost:1").send("t", b"x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": ""}, "topic must be a name"),
        ({"topic": "t", "partition": -1}, "partition must be 0 or more"),
        ({"topic": "t", "timestamp": -1}, "timestamp must be 0 or more"),
    ],
)
def test_nonsense_is_refused(broker: Broker, arguments: dict[str, int | str] | dict[str, str], message: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer, pytest.raises(ValueError, match=message):
        producer.send(**arguments)


@pytest.mark.parametrize("seed", [1, 2])
def test_faults_of_all_kinds_cost_no_record_and_no_order(seed: int) -> None:
    """Leaders move, nodes restart, requests fail before and after they took effect: every record is there once."""
    dice = Random(seed)
    errors = ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR"]
    backoff = {"retry_backoff_ms": 2, "retry_backoff_max_ms": 10, "reconnect_backoff_ms": 2}
    options: dict[str, Any] = {"batch_size": dice.choice([60, 300]), "linger_ms": dice.choice([0, 3]), **backoff}
    with (
        Broker(nodes=2, num_partitions=2) as broker,
        Producer(bootstrap_servers=broker.bootstrap, **options) as producer,
    ):
        sent: list[list[bytes]] = [[], []]
        for number in range(60):
            for part in range(dice.randint(1, 40)):
                partition = dice.randrange(2)
                value = b"%d.%d" % (number, part)
                sent[partition].append(value)
                producer.send("t", value, partition=partition)
            fault = dice.random()
            if number == 0 or fault < 0.2:
                producer.flush(60)
            elif fault < 0.6:
                broker.control.fail("Produce", dice.choice(errors), dice.randint(1, 6), executed=dice.random() < 0.5)
            elif fault < 0.8:
                broker.control.move_leader("t", dice.randrange(2), dice.choice([1, 2]))
            elif fault < 0.85:
                broker.control.restart_node(dice.choice([1, 2]))
        producer.flush(60)
        assert [values(broker, "t", partition) for partition in (0, 1)] == sent


def test_batches_keep_their_order_while_the_connection_is_made(broker: Broker) -> None:
    """What is ready just when the connection opens goes behind what waited for it."""

    async def story() -> list[int]:
        options: dict[str, Any] = {
            "linger_ms": 0,
            "enable_idempotence": False,
            "max_in_flight_requests_per_connection": 10_000,
        }
        async with Producer(bootstrap_servers=broker.bootstrap, **options) as producer:
            await producer.partitions_for("ordered")
            sent: list[DeliveryFuture] = []
            while not sent or not sent[0].done():
                sent.append(producer.send("ordered", b"x", partition=0))
                await asyncio.sleep(0)
            await producer.flush()
            return [future.result(0).offset for future in sent]

    offsets = asyncio.run(story())
    assert offsets == list(range(len(offsets)))
