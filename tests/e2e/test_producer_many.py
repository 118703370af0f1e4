"""Many records in one call, by both faces, over real sockets: `send_many` and `send_table`."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.errors import InvalidTopicError
from partita.producer.errors import (
    BufferExhaustedError,
    NoMetadataError,
    ProducerClosedError,
    TransactionMisuseError,
    UndeliveredError,
)
from partita.producer.shell.client import AsyncProducer, SentRecords

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=3) as running:
        yield running


def read(broker: Broker, topic: str, **options: Any) -> list[Any]:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", **options) as consumer:
        consumer.assign([(topic, partition) for partition in consumer.partitions_for(topic)])
        return list(consumer.until_end())


def at(record: Any) -> tuple[int, int]:
    return record.partition, record.offset


@pytest.mark.parametrize("keys", [None, [b"%d" % (number % 50) for number in range(20_000)]])
@pytest.mark.parametrize("face", ["blocking", "asyncio", "table"])
def test_many_records_are_all_there_in_order_and_each_says_where(broker: Broker, face: str, keys: Any) -> None:
    """Issue 25, item 10: batch produce."""
    topic = f"{face}-{keys is None}"
    values: list[Any] = [b"value %d" % number for number in range(20_000)]
    values[7], values[8] = "text", None
    wanted = [b"text" if value == "text" else value for value in values]

    async def run() -> SentRecords:
        async with AsyncProducer(bootstrap_servers=broker.bootstrap) as producer:
            sent = await producer.send_many(topic, values, keys)
            assert (await sent) is sent
            assert (await sent[5]).serialized_value_size == 7
            return sent

    if face == "asyncio":
        sent = asyncio.run(run())
    else:
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            if face == "blocking":
                sent = producer.send_many(topic, iter(values), keys)
            else:
                columns = {"value": pa.array(wanted, pa.binary())}
                sent = producer.send_table(topic, pa.table(columns if keys is None else columns | {"key": keys}))
            assert sent.result(60) is sent
    assert sent.done()
    assert sent.errors() == {}
    assert len(sent) == 20_000
    found = read(broker, topic)
    by_place = {at(record): record for record in found}
    assert len(by_place) == len(found) == 20_000
    told = [sent[index].result(0) for index in range(0, 20_000, 37)]
    for index, metadata in zip(range(0, 20_000, 37), told, strict=True):
        record = by_place[at(metadata)]
        assert record.value == wanted[index]
        assert record.key == (None if keys is None else keys[index])
        assert metadata.timestamp == record.timestamp
        assert metadata.serialized_value_size == len(wanted[index])
    for partition in range(3):
        mine = [wanted.index(record.value) for record in found if record.partition == partition][:200]
        assert mine == sorted(mine), "records of a partition keep their order"


def test_keys_go_where_send_puts_them_and_columns_are_taken(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        keys = [b"key %d" % number for number in range(300)]
        one_by_one = [producer.send("columns", b"v", key).result(60).partition for key in keys]
        many = producer.send_many("columns", [b"v"] * 300, keys).result(60)
        assert [many[index].result().partition for index in range(300)] == one_by_one
        table = pa.table(
            {
                "key": pa.array(["a", None, "c"]),
                "value": pa.array([b"1", None, b"3"], pa.binary()),
                "headers": pa.array([[("h", b"x")], None, [("h", None), ("i", b"")]], HEADERS),
                "partition": pa.array([2, 1, None], pa.int32()),
                "timestamp": pa.array([1_700_000_000_001, 1_700_000_000_003, 1_700_000_000_002], pa.timestamp("ms")),
            }
        )
        sent = producer.send_table("columns", table.slice(0, 3)).result(60)
        stamped = producer.send_many("columns", ["a", "b"], timestamps=[1, 2], headers=[None, {"n": b"1"}], partition=0)
        assert [stamped.result(60)[index].result().timestamp for index in (0, 1)] == [1, 2]
    places = {at(record): record for record in read(broker, "columns")}
    rows = [places[at(sent[index].result())] for index in range(3)]
    assert [(row.key, row.value, row.timestamp - 1_700_000_000_000, row.headers) for row in rows] == [
        (b"a", b"1", 1, (("h", b"x"),)),
        (None, None, 3, ()),
        (b"c", b"3", 2, (("h", None), ("i", b""))),
    ]
    assert [row.partition for row in rows][:2] == [2, 1]
    assert places[at(stamped[1].result())].headers == (("n", b"1"),)


@pytest.mark.parametrize("serializer", [None, "str"])
def test_a_record_that_cannot_be_sent_fails_by_itself(broker: Broker, serializer: Any) -> None:
    topic = f"by-itself-{serializer}"
    with Producer(bootstrap_servers=broker.bootstrap, max_request_size=5000, value_serializer=serializer) as producer:
        sent = producer.send_many(topic, ["good", "x" * 6000, "good", 5, "good"])
        errors = sent.errors(60)
        assert {index: type(error).__name__ for index, error in errors.items()} == {
            1: "RecordTooLargeError",
            3: "TypeError",
        }
        with pytest.raises(UndeliveredError, match=r"2 of 5 records failed; record 1: .*the record takes 6096 bytes"):
            sent.result()
        assert type(sent[3].exception()) is TypeError
        assert sent[4].result().serialized_value_size == 4
    assert [record.value for record in read(broker, topic)] == [b"good"] * 3


def test_failures_that_are_not_looked_at_are_told_at_the_end(broker: Broker) -> None:
    with (
        pytest.raises(UndeliveredError, match="2 records failed earlier"),
        Producer(bootstrap_servers=broker.bootstrap, max_request_size=5000) as producer,
    ):
        producer.send_many("unseen", [b"good", bytes(6000), bytes(6000)])


def test_records_that_the_broker_refuses_are_named_and_others_of_their_batch_are_not(broker: Broker) -> None:
    """A wide batch is larger than this topic takes, so it is divided; what is too large by itself fails alone."""
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic("narrow", 1, configs={"max.message.bytes": 20_000})
    values = [b"%d" % number + bytes(900) for number in range(300)]
    values[200] = bytes(30_000)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        sent = producer.send_many("narrow", values)
        assert list(sent.errors(60)) == [200]
        assert [sent[index].result().offset for index in (0, 199, 201, 299)] == [0, 199, 200, 298]
        assert sent[299].result().serialized_value_size == 903
    assert [record.value for record in read(broker, "narrow")] == values[:200] + values[201:]


@pytest.mark.parametrize("face", ["blocking", "asyncio", "table"])
def test_many_records_take_no_more_than_the_buffer(broker: Broker, face: str) -> None:
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "buffer_memory": 65_536, "linger_ms": 60_000}
    most = 0

    def values(producer: Any) -> Iterator[bytes]:
        nonlocal most
        for _ in range(20_000):
            yield bytes(100)
            most = max(most, producer._driver.core.accumulator.used_bytes)

    async def run() -> int:
        async with AsyncProducer(**options) as producer:
            return len(await producer.send_many("bounded", values(producer)))

    if face == "asyncio":
        assert asyncio.run(run()) == 20_000
    else:
        with Producer(**options) as producer:
            if face == "blocking":
                assert len(producer.send_many("bounded", values(producer._producer))) == 20_000
            else:
                table = pa.table({"value": pa.array([bytes(100)] * 20_000, pa.binary())})
                assert len(producer.send_table("bounded", table)) == 20_000
    assert most < 65_536 + 200


def test_a_transaction_takes_many_records_and_aborts_them(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id="many") as producer:
        producer.init_transactions()
        with pytest.raises(TransactionMisuseError):
            producer.send_many("atomic", [b"outside"])
        with producer.transaction():
            producer.send_many("atomic", [b"%d" % number for number in range(5000)])
            producer.send_table("atomic", pa.table({"value": ["end"]}))
        producer.begin_transaction()
        aborted = producer.send_many("atomic", [b"aborted"] * 5000)
        producer.abort_transaction()
        assert aborted.done()
    found = [record.value for record in read(broker, "atomic", isolation_level="read_committed")]
    assert sorted(found) == sorted([b"%d" % number for number in range(5000)] + [b"end"])


def test_interceptors_and_a_partitioner_see_every_record(broker: Broker) -> None:
    class Counted:
        sent = acknowledged = 0

        def on_send(self, record: Any) -> Any:
            self.sent += 1
            return record

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            self.acknowledged += 1

    counted = Counted()

    def last(topic: str, key: Any, value: Any, partitions: int) -> int:
        return partitions - 1

    options: dict[str, Any] = {"interceptor_classes": [counted], "partitioner_class": last}
    with Producer(bootstrap_servers=broker.bootstrap, **options) as producer:
        sent = producer.send_many("seen", [b"v"] * 100).result(60)
        assert {sent[index].result().partition for index in range(100)} == {2}
        with pytest.raises(ValueError, match="send_table sends columns as they are"):
            producer.send_table("seen", pa.table({"value": ["v"]}))
    assert (counted.sent, counted.acknowledged) == (100, 100)


def test_a_callback_is_called_once_all_records_have_their_end(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        empty = producer.send_many("none", [])
        assert (len(empty), empty.done(), empty.result(0) is empty) == (0, True, True)
        assert producer.send_table("none", pa.table({"value": pa.array([], pa.binary())})).errors() == {}
        sent = producer.send_many("none", [b"v"])
        with pytest.raises(IndexError):
            sent[1]
        assert sent[-1] is sent[0]


WRONG: list[tuple[Any, str]] = [
    (lambda p: p.send_many("", [b"v"]), "topic must be a name"),
    (lambda p: p.send_many("t", b"value"), "values must be a list or another iterable with one for each record"),
    (lambda p: p.send_many("t", [b"v"], "k"), "keys must be a list"),
    (lambda p: p.send_many("t", [b"v", b"w"], [b"k"]), "keys must be as many as values: there are 2 values and 1 keys"),
    (lambda p: p.send_many("t", [], timestamps=[1]), "there are 0 values and 1 timestamps or more"),
    (lambda p: p.send_many("t", [b"v"], partition=-1), "partition must be 0 or more"),
    (lambda p: p.send_table("t", [1]), "a pyarrow Table or RecordBatch was expected"),
    (lambda p: p.send_table("t", pa.table({"key": ["k"]})), "the table has key"),
    (lambda p: p.send_table("t", pa.table({"value": ["v"], "topic": ["t"]})), "the table has value, topic"),
    (lambda p: p.send_table("t", pa.table({"value": ["v"], "partition": [-2]})), "negative partition -2"),
    (
        lambda p: p.send_table("t", pa.table({"value": ["v"], "headers": [["h"]]})),
        "headers are lists of structs of key and value, not list<",
    ),
    (
        lambda p: p.send_table("t", pa.table({"value": ["v"], "timestamp": pa.nulls(1, pa.int64())})),
        "a row has no timestamp",
    ),
]


@pytest.mark.parametrize(("call", "said"), WRONG)
def test_wrong_arguments_are_named(broker: Broker, call: Any, said: str) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer, pytest.raises((TypeError, ValueError), match=said):
        call(producer)


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
        pa.map_(pa.string(), pa.binary()),
        HEADERS,
    ],
    ids=str,
)
def test_headers_may_be_lists_of_any_kind_or_maps(broker: Broker, kind: pa.DataType) -> None:
    """Polars and pandas make large lists, whose headers were left out without a word."""
    column = pa.array([[("h", b"x"), ("i", b"y")], None], kind)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        sent = producer.send_table("kinds", pa.table({"value": ["v", "w"], "headers": column})).result(60)
    places = {at(record): record for record in read(broker, "kinds")}
    assert [places[at(sent[index].result())].headers for index in (0, 1)] == [(("h", b"x"), ("i", b"y")), ()]


def test_a_topic_and_a_partition_that_do_not_exist(broker: Broker) -> None:
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "max_block_ms": 300}
    with Producer(**options) as producer:
        with pytest.raises(InvalidTopicError):
            producer.send_many("no/such", [b"v"])
        sent = producer.send_table("t", pa.table({"value": ["v", "w"], "partition": pa.array([0, 9], pa.int32())}))
        assert [(index, type(error)) for index, error in sent.errors(60).items()] == [(1, NoMetadataError)]
    with pytest.raises(ProducerClosedError):
        producer.send_many("t", [b"v"])


def test_a_buffer_that_stays_full_is_told_and_what_was_taken_arrives() -> None:
    with Broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap, buffer_memory=40_000, max_block_ms=300) as producer:
            producer.send_many("full", [b"first"]).result(60)
            held = broker.control.hold("Produce")
            with pytest.raises(BufferExhaustedError, match="no room in buffer_memory"):
                producer.send_many("full", [bytes(1000)] * 200)
            held.clear()
        assert 30 < len(read(broker, "full")) < 60
