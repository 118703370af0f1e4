"""The short way of plain records and the whole way do the same, and the short way leaves everything else alone."""

from contextlib import nullcontext
from itertools import cycle
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import KafkaError
from partita.producer.batch import Batch, NewRecord
from partita.producer.config import ProducerConfig
from partita.producer.core import ProducerCore
from partita.producer.delivery import Delivery
from partita.producer.direct import DirectSend
from partita.protocol.metadata_view import MetadataView

from .test_producer_core import told_metadata

NOW_MS = 1_750_000_000_000
LEADERS = (1, 2, 1)


class Side:
    """A producer's core; with `is_direct` records take the short way where they can."""

    def __init__(self, *, is_direct: bool = False, leaders: tuple[int, ...] = LEADERS, **options: Any) -> None:
        self.view = MetadataView()
        if leaders:
            self.view.update(told_metadata(leaders), 12)
        config = ProducerConfig.of(bootstrap_servers="b:1", **{"linger_ms": 5, **options})
        self.core = ProducerCore(config, self.view, Random(3).randrange)
        self.core.on_producer_id(7, 0)
        self.looks = 0
        self.shortened = 0
        self.owner = object()
        self._direct = DirectSend(self.core, nullcontext(), Delivery, self.owner, lambda: NOW_MS * 1_000_000, self.look)
        self._is_direct = is_direct

    def look(self) -> None:
        self.looks += 1

    def send(self, value: Any, key: Any = None, topic: str = "t") -> Delivery | str:
        """The delivery, or the name of the error."""
        if self._is_direct:
            direct = self.direct(value, key, topic)
            if direct is not None:
                return direct
        encoded = [one.encode() if isinstance(one, str) else one for one in (key, value)]
        delivery = Delivery(NewRecord(topic, encoded[0], encoded[1], (), NOW_MS, None), self.owner)
        try:
            self.looks += self.core.add(delivery, 0)
        except KafkaError as error:
            return type(error).__name__
        return delivery

    def direct(self, value: Any, key: Any = None, topic: Any = "t") -> Delivery | None:
        delivery = self._direct.add(topic, value, key)
        self.shortened += delivery is not None
        return delivery

    def state(self) -> object:
        """All that is in the buffer, byte for byte."""
        accumulator = self.core.accumulator
        batches = [(b.topic, b.partition, b.is_closed, b.build()) for b in accumulator.unfinished()]
        sticky = {t: (s.partition, s.sent_bytes) for t, s in self.core.intake.sticky.items()}
        return accumulator.used_bytes, self.core.intake.waiting_bytes, batches, sticky, self.looks


def told(delivery: Delivery | str) -> object:
    """All that a delivery says, as if its batch had been delivered at offset 100."""
    if isinstance(delivery, str):
        return delivery
    if delivery.batch is None:
        return delivery.record
    delivery.batch.base_offset = 100
    return delivery.metadata(), delivery.index, delivery.done(), delivery.owner is not None, delivery.is_heard


SIZES = st.sampled_from([0, 1, 10, 100, 400, 5000])
FIELD = st.none() | SIZES.map(bytes) | SIZES.map(lambda size: "é" * size)
RECORD = st.tuples(FIELD, st.none() | st.binary(max_size=9) | st.text(max_size=4), st.sampled_from(["t", "t", "u"]))


@given(
    records=st.lists(RECORD, max_size=60),
    batch_size=st.sampled_from([0, 200, 1000, 16_384]),
    buffer_memory=st.sampled_from([3000, 100_000]),
    ignores_keys=st.booleans(),
)
def test_both_ways_fill_the_same_batches(
    records: list[tuple[Any, Any, str]], batch_size: int, buffer_memory: int, ignores_keys: bool
) -> None:
    options: dict[str, Any] = {
        "batch_size": batch_size, "buffer_memory": buffer_memory, "partitioner_ignore_keys": ignores_keys,
        "max_request_size": 4000,
    }  # fmt: skip
    short, whole = Side(is_direct=True, **options), Side(**options)
    given = [(short.send(*record), whole.send(*record)) for record in records]
    assert short.state() == whole.state()
    assert [told(one) for one, _ in given] == [told(other) for _, other in given]


def test_records_of_a_batch_after_its_first_take_the_short_way_and_the_full_batch_is_told() -> None:
    side = Side(is_direct=True, batch_size=1000)
    for i, key in zip(range(9), cycle([b"key", None])):
        delivery = side.send(b"v" * 100, key)
        assert isinstance(delivery, Delivery)
        assert delivery.record is None, "the batch has its bytes"
        assert delivery.owner is side.owner
        assert (side.shortened > 0) == (i > 1)
    before = side.looks
    while side.looks == before:
        side.send(b"v" * 100, b"key")
    (closed,) = (b for b in side.core.accumulator.unfinished() if b.is_closed)
    assert closed.builder.size_in_bytes <= 1000


def opened(**options: Any) -> tuple[Side, Batch]:
    """A producer with one open batch of partition 0."""
    side = Side(leaders=(1,), **options)
    first = side.send(b"first")
    assert isinstance(first, Delivery)
    assert first.batch is not None
    return side, first.batch


def close(side: Side, batch: Batch) -> None:
    side.core.is_closed = True


def full(side: Side, batch: Batch) -> None:
    batch.is_closed = True


def retried(side: Side, batch: Batch) -> None:
    batch.attempts = 1


def left(side: Side, batch: Batch) -> None:
    side.core.accumulator.queue("t", 0).waiting.clear()


def no_memory(side: Side, batch: Batch) -> None:
    side.core.accumulator.used_bytes = side.core.config.buffer_memory


def others_wait(side: Side, batch: Batch) -> None:
    side.core.intake.blocked["t"] = side.core.intake.blocked["u"] = type(batch.callbacks)()  # type: ignore[assignment]


def another_topic_waits(side: Side, batch: Batch) -> None:
    side.core.intake.blocked["u"] = type(batch.callbacks)()  # type: ignore[assignment]


def new_metadata(side: Side, batch: Batch) -> None:
    side.view.update(told_metadata([2]), 12)


@pytest.mark.parametrize(
    "change", [close, full, retried, left, no_memory, others_wait, another_topic_waits, new_metadata]
)
def test_the_short_way_is_left_alone_when(change: Any) -> None:
    side, batch = opened()
    assert side.direct(b"v") is not None
    change(side, batch)
    before = batch.builder.records_count
    assert side.direct(b"v") is None
    assert batch.builder.records_count == before


NOT_PLAIN: list[tuple[Any, ...]] = [
    (bytearray(b"v"),), (memoryview(b"v"),), (1,), (b"v", 1), (b"v", None, 1), (b"v", None, "u"), (bytes(2_000_000),)
]  # fmt: skip


@pytest.mark.parametrize("record", NOT_PLAIN)
def test_what_is_not_plain_goes_the_whole_way(record: tuple[Any, ...]) -> None:
    assert opened()[0].direct(*record) is None


def test_a_key_of_a_topic_that_is_not_known_goes_the_whole_way() -> None:
    side = Side(leaders=())
    assert side.direct(b"v", b"key") is None


@pytest.mark.parametrize(
    "options", [{"partitioner_class": lambda *_: 0}, {"transactional_id": "one"}], ids=["partitioner", "transactions"]
)
def test_partitioners_and_transactions_see_every_record(options: dict[str, Any]) -> None:
    side = Side(leaders=(1,), **options)
    side.core.accumulator.queue("t", 0)
    side.core.intake.add(Delivery(NewRecord("t", None, b"v", (), NOW_MS, None)), 0)
    assert side.core.accumulator.queue("t", 0).waiting
    assert side.direct(b"v") is None
    assert side.direct(b"v", b"k") is None
