"""What the application gets: records, Arrow batches, errors about single records (consumer.md 9.7, 10, 2.6)."""

from __future__ import annotations

import json
import struct
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from partita.consumer.arrow import to_pandas
from partita.consumer.errors import ConsumerError, CorruptRecordError, DeadLetterError, RecordDeserializationError
from partita.consumer.reading.completed_fetch import CompletedFetch, end_of_data
from partita.offsets.topic_partition import TopicPartition
from partita.options import ConfigError
from partita.records.batch import ABORT, COMMIT, InvalidBatch, build_batch
from partita.records.control import marker_key, marker_value
from support.consumer.world import World

T0 = ("t", 0)


def reading(world: World, **options: Any) -> Any:
    consumer = world.consumer(**options)
    consumer.assign([T0])
    return consumer


def offsets(records: Any) -> list[int]:
    return [r.offset for r in records]


def all_offsets(consumer: Any, polls: int = 6) -> list[int]:
    return [o for _ in range(polls) for o in offsets(consumer.poll(0.2))]


def txn(world: World, producer: int, count: int) -> None:
    base = world.logs[T0].end
    records = [(0, None, b"%d" % (base + i), ()) for i in range(count)]
    data = build_batch(records, base_offset=base, producer_id=producer, producer_epoch=0, base_sequence=0,
                       is_transactional=True)  # fmt: skip
    world.append_batch("t", 0, data, base, base + count - 1)


def mark(world: World, producer: int, kind: int) -> None:
    base = world.logs[T0].end
    record = (0, marker_key(kind), marker_value(0), ())
    flags: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "is_transactional": True, "is_control": True}
    world.append_batch("t", 0, build_batch([record], base_offset=base, **flags), base, base)


@pytest.mark.case("CC-143", "CC-162")
def test_a_broken_checksum_is_raised_until_a_seek() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    first, last, data = world.logs[T0].batches.pop()
    broken = bytearray(data)
    broken[70] ^= 1
    world.logs[T0].batches.append((first, last, bytes(broken)))
    world.append("t", 0, 2)
    consumer = reading(world)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="t-0 at offset 0"):
            consumer.poll(1)
    consumer.seek(T0, 3)
    assert offsets(consumer.poll(1)) == [3, 4]
    unchecked = reading(world, check_crcs=False)
    assert offsets(unchecked.poll(1))[:1] in ([0], [3])


@pytest.mark.case("CC-145", "CC-146", "CC-147")
def test_a_fetch_in_the_middle_of_a_batch_starts_at_the_record() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer = reading(world)
    consumer.seek(T0, 3)
    assert offsets(consumer.poll(1)) == [3, 4]


@pytest.mark.case("CC-147")
def test_a_poll_that_only_moves_the_position_returns_early_and_empty() -> None:
    world = World({"t": 1})
    mark(world, 5, COMMIT)
    consumer = reading(world)
    start = world.now
    assert len(consumer.poll(5)) == 0
    assert world.now - start < 50
    assert consumer.position(T0) == 1


@pytest.mark.case("CC-148", "CC-153")
@pytest.mark.parametrize(("isolation", "seen"), [("read_committed", []), ("read_uncommitted", [0, 1, 2, 3, 4])])
def test_aborted_records_are_seen_only_by_who_asks_for_everything(isolation: str, seen: list[int]) -> None:
    world = World({"t": 1})
    txn(world, 1, 5)
    mark(world, 1, ABORT)
    world.logs[T0].aborted = [(1, 0)]
    consumer = reading(world, isolation_level=isolation)
    assert all_offsets(consumer) == seen
    assert consumer.position(T0) == 6


@pytest.mark.case("CC-149", "CC-150", "CC-151", "CC-152")
def test_interleaved_transactions() -> None:
    world = World({"t": 1})
    txn(world, 1, 2)
    txn(world, 2, 2)
    world.append("t", 0, 1)
    mark(world, 1, ABORT)
    mark(world, 2, COMMIT)
    txn(world, 1, 1)
    mark(world, 1, COMMIT)
    txn(world, 3, 1)
    mark(world, 3, ABORT)
    mark(world, 9, ABORT)
    world.logs[T0].aborted = [(3, 9), (1, 0)]
    consumer = reading(world, isolation_level="read_committed")
    assert all_offsets(consumer) == [2, 3, 4, 7]
    assert consumer.position(T0) == 12


@pytest.mark.case("CC-155", "CC-156")
def test_headers_and_nulls_come_as_they_are() -> None:
    world = World({"t": 1})
    headers = (("h", b"1"), ("h", None), ("", b""))
    data = build_batch([(5, None, b"", headers), (6, b"", None, ())], base_offset=0)
    world.append_batch("t", 0, data, 0, 1)
    first, second = reading(world).poll(1)
    assert (first.key, first.value, first.headers) == (None, b"", headers)
    assert (second.key, second.value, second.headers) == (b"", None, ())


@pytest.mark.case("CC-157")
@pytest.mark.parametrize("codec", range(5))
def test_records_of_every_codec_are_read(codec: int) -> None:
    world = World({"t": 1})
    world.append("t", 0, 50, codec=codec)
    assert [r.value for r in reading(world).poll(1)] == [b"v%d" % i for i in range(50)]


@pytest.mark.case("CC-161")
def test_only_a_part_of_a_batch_is_an_error_that_says_what_to_do() -> None:
    world = World({"t": 1})
    world.append("t", 0, 50)
    first, last, data = world.logs[T0].batches.pop()
    world.logs[T0].batches.append((first, last, data[:100]))
    with pytest.raises(CorruptRecordError, match="max_partition_fetch_bytes"):
        reading(world).poll(1)


@pytest.mark.case("CC-161")
def test_a_part_at_the_end_is_left_for_the_next_fetch() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    world.append("t", 0, 3)
    first, last, data = world.logs[T0].batches.pop()
    world.logs[T0].batches.append((first, last, data[:60]))
    assert offsets(reading(world).poll(1)) == [0, 1, 2]


@pytest.mark.case("CC-164")
def test_an_unknown_codec_is_named() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    first, last, data = world.logs[T0].batches.pop()
    broken = bytearray(data)
    broken[22] |= 5
    world.logs[T0].batches.append((first, last, bytes(broken)))
    with pytest.raises(CorruptRecordError, match="5"):
        reading(world, check_crcs=False).poll(1)


class FailsOn:
    """A deserializer that fails on some values."""

    def __init__(self, *bad: bytes) -> None:
        self.bad = set(bad)
        self.calls = 0

    def deserialize(self, topic: str, headers: Any, data: bytes | None) -> Any:
        self.calls += 1
        if data in self.bad:
            raise ValueError("on purpose")
        return data


@pytest.mark.case("CC-165")
def test_a_record_that_cannot_be_deserialized_stops_the_poll_before_it() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer = reading(world, value_deserializer=FailsOn(b"v2"))
    first = consumer.poll(1)
    assert offsets(first) == [0, 1]
    assert first.next_offsets[T0].offset == 2
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as caught:
            consumer.poll(1)
        assert (caught.value.origin, caught.value.offset, caught.value.raw_value) == ("VALUE", 2, b"v2")
        assert consumer.position(T0) == 2
    consumer.seek(T0, 3)
    assert offsets(consumer.poll(1)) == [3, 4]


def test_a_deserializer_that_recovers_lets_things_go_on() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    fails = FailsOn(b"v0")
    consumer = reading(world, value_deserializer=fails)
    with pytest.raises(RecordDeserializationError):
        consumer.poll(1)
    fails.bad.clear()
    assert offsets(consumer.poll(1)) == [0, 1, 2]


def test_poison_records_are_skipped_with_a_note_if_wanted() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer = reading(world, value_deserializer=FailsOn(b"v2", b"v4"), poison_policy="skip")
    notes: list[Any] = []
    consumer.on_note(notes.append)
    assert offsets(consumer.poll(1)) == [0, 1, 3]
    consumer.poll(0)
    assert [n.fields["offset"] for n in notes if n.kind == "poison"] == [2, 4]
    assert consumer.position(T0) == 5


def test_records_that_are_well_never_wait_for_a_letter() -> None:
    """With a topic for letters that cannot be written, each poll waited up to max_block_ms before it returned them."""
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer = reading(
        world, value_deserializer=FailsOn(b"v2"), poison_policy="dead_letter", dead_letter_topic="t-dead"
    )

    class Refused:
        asked: ClassVar[list[int]] = []

        async def send(self, error: RecordDeserializationError) -> None:
            self.asked.append(error.offset)
            raise DeadLetterError(error.topic_partition, error.offset, "t-dead", OSError("no such topic"))

        def close(self) -> None: ...

    consumer._calls._delivery._dead_letters = Refused()
    assert (offsets(consumer.poll(1)), Refused.asked, consumer.position(T0)) == ([0, 1], [], 2)
    for _ in range(2):
        with pytest.raises(DeadLetterError, match=r"at offset 2 .* no such topic"):
            consumer.poll(1)
    assert (Refused.asked, consumer.position(T0)) == ([2, 2], 2)
    consumer.seek(T0, 3)
    assert offsets(consumer.poll(1)) == [3, 4]


def test_a_batch_too_short_for_its_header_has_no_end_even_if_bytes_follow() -> None:
    short = struct.pack(">qiib", 0, 20, 0, 2) + bytes(15)
    data = memoryview(short + build_batch([(0, None, b"cut", ())])[:-1])
    with pytest.raises(InvalidBatch, match="61 bytes, 32 are left"):
        end_of_data(CompletedFetch(TopicPartition("t", 0), 0, data))


def test_a_corrupt_batch_is_skipped_whole_if_wanted() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    world.append("t", 0, 3)
    world.append("t", 0, 3)
    first, last, data = world.logs[T0].batches[1]
    world.logs[T0].batches[1] = (first, last, data[:70] + bytes([data[70] ^ 1]) + data[71:])
    consumer = reading(world, poison_policy="skip")
    assert all_offsets(consumer) == [0, 1, 2, 6, 7, 8]


def test_deserializers_by_name_and_by_function() -> None:
    world = World({"t": 1})
    data = build_batch([(0, (7).to_bytes(4, "big"), json.dumps({"a": 1}).encode(), ()), (0, None, None, ())])
    world.append_batch("t", 0, data, 0, 1)
    consumer = reading(world, key_deserializer="int", value_deserializer=json.loads)
    assert [(r.key, r.value) for r in consumer.poll(1)] == [(7, {"a": 1}), (None, None)]
    with pytest.raises(ConfigError, match="str"):
        reading(world, key_deserializer="strng")


@pytest.mark.parametrize(("kind", "value"), [(str, "42"), (bytes, b"42"), (int, 42), (float, 42.0)])
def test_a_deserializer_may_be_a_type(kind: type, value: object) -> None:
    """`str` stands for "str", since str(b"42") is "b'42'"."""
    world = World({"t": 1})
    world.append_batch("t", 0, build_batch([(0, None, b"42", ())]), 0, 0)
    assert [r.value for r in reading(world, value_deserializer=kind).poll(1)] == [value]


def test_iterating_gives_record_after_record() -> None:
    world = World({"t": 1})
    world.append("t", 0, 5)
    consumer = reading(world)
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if len(seen) == 5:
            break
    assert seen == [0, 1, 2, 3, 4]


# Arrow


def test_arrow_takes_everything_fetched_at_once() -> None:
    world = World({"t": 2})
    world.append("t", 0, 30, value=b"x")
    world.append("t", 1, 20, value=b"y")
    consumer = world.consumer(max_poll_records=1)
    consumer.assign([T0, ("t", 1)])
    batch = consumer.poll_arrow(1)
    assert batch is not None
    assert batch.num_rows == 50
    assert batch.schema.names == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "headers",
    ]
    assert consumer.position(T0) == 30
    assert consumer.poll_arrow(0.1) is None


def test_arrow_starts_at_the_position_and_skips_what_records_skip() -> None:
    world = World({"t": 1})
    world.append("t", 0, 10)
    txn(world, 1, 5)
    mark(world, 1, ABORT)
    world.logs[T0].aborted = [(1, 10)]
    world.append("t", 0, 2)
    consumer = reading(world, isolation_level="read_committed")
    consumer.seek(T0, 7)
    batch = consumer.poll_arrow(1)
    assert batch.column("offset").to_pylist() == [7, 8, 9, 16, 17]
    assert consumer.position(T0) == 18


def test_arrow_decodes_text_and_json() -> None:
    world = World({"t": 1})
    rows = [(0, b"k1", b'{"a": 1, "b": "x"}', ()), (0, None, None, ()), (0, b"k2", b'{"a":\n 2}', ())]
    world.append_batch("t", 0, build_batch(rows), 0, 2)
    consumer = reading(world)
    batch = consumer.poll_arrow(1, key="str", value="json")
    assert batch.column("key").to_pylist() == ["k1", None, "k2"]
    assert batch.column("value").to_pylist() == [{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]
    consumer.seek(T0, 0)
    again = consumer.poll_arrow(1, value="str", binary_view=True)
    assert again.schema.field("value").type == pa.string_view()
    assert again.schema.field("key").type == pa.binary_view()
    frame = to_pandas(again)
    assert next(iter(frame["value"])).startswith("{")


def test_arrow_decodes_json_to_named_columns_and_names_the_record_that_does_not_fit() -> None:
    world = World({"t": 1})
    texts = (b'{"a": 1, "b": "x\\n", "more": [1]}', None, b'{"b": "y"}', b'{"a": "one"}')
    world.append_batch("t", 0, build_batch([(0, None, text, ()) for text in texts]), 0, 3)
    consumer = reading(world)
    with pytest.raises(RecordDeserializationError, match="t-0 at offset 3") as caught:
        consumer.poll_arrow(1, value="json", json_schema="a int, b string")
    assert str(caught.value.__cause__) == "a is one, which is no int"
    batch = consumer.poll_arrow(1, value="json", json_schema="b string")
    assert batch.column("value").to_pylist() == [{"b": "x\n"}, None, {"b": "y"}, {"b": None}]
    with pytest.raises(ValueError, match="the column a has the type strng"):
        consumer.poll_arrow(0, value="json", json_schema="a strng")


def test_arrow_says_which_column_is_no_text() -> None:
    world = World({"t": 1})
    world.append_batch("t", 0, build_batch([(0, None, b"\xff", ())]), 0, 0)
    with pytest.raises(ConsumerError, match="value"):
        reading(world).poll_arrow(1, value="str")


def test_arrow_delivers_what_precedes_a_broken_batch_and_then_raises() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    world.append("t", 0, 3)
    first, last, data = world.logs[T0].batches[1]
    world.logs[T0].batches[1] = (first, last, data[:70] + bytes([data[70] ^ 1]) + data[71:])
    consumer = reading(world)
    assert consumer.poll_arrow(1).num_rows == 3
    assert consumer.position(T0) == 3
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="offset 3"):
            consumer.poll_arrow(1)


def test_the_next_fetch_leaves_before_the_batch_is_decoded() -> None:
    world = World({"t": 1})
    world.append("t", 0, 3)
    consumer = reading(world)
    consumer.position(T0)
    world.run(5)
    assert consumer.poll_arrow(1).num_rows == 3
    assert [s.message.topics[0].partitions[0].fetch_offset for s in world.sent("Fetch") if s.message.topics] == [0, 3]


def test_a_standstill_is_noticed() -> None:
    world = World({"t": 1})
    world.append("t", 0, 50)
    consumer = reading(world, max_poll_records=10, progress_timeout_ms=5_000)
    notes: list[Any] = []
    consumer.on_note(notes.append)
    consumer.poll(1)
    world.run(12_000)
    assert consumer.stalled().keys() == {T0}
    consumer.poll(0.1)
    assert [n.kind for n in notes] == ["no_progress"]
    assert consumer.stalled() == {}


def test_metrics_by_kafkas_names() -> None:
    world = World({"t": 1})
    world.append("t", 0, 50)
    consumer = reading(world, max_poll_records=10)
    assert consumer.metrics()["last-poll-seconds-ago"] == -1
    consumer.poll(1)
    metrics = consumer.metrics()
    assert metrics["records-consumed-total"] == 10
    assert metrics["records-lag-max"] == 40
    assert metrics['records-lead{topic="t",partition="0"}'] == 10
    assert metrics["fetch-total"] == 1
    assert metrics['records-consumed-total{topic="t"}'] == 10
    assert metrics["fetch-size-max"] == metrics["bytes-consumed-total"] > 50
    assert metrics["last-heartbeat-seconds-ago"] == -1
    text = consumer.metrics_text()
    assert (
        'kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id="c1",topic="t",partition="0"} 40' in text
    )
