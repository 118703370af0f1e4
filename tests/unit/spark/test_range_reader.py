"""Reading exactly one range: gaps, markers, losses, and brokers that make it hard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import KafkaError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import AbortedTransaction
from partita.records.batch import ABORT, COMMIT, build_batch, build_marker
from partita.records.to_arrow import FetchedPart, to_arrow
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import DataLossError, SourceError
from partita.spark.reading.portions import Portions
from partita.spark.reading.range_reader import FetchSettings, RangeReader
from partita.spark.settings.options import TopicSelection
from support.spark.scripted_broker import TOPIC_ID, ScriptedBroker, scripted_broker


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedBroker, BrokerLink]]:
    with scripted_broker() as pair:
        yield pair


def batch(base: int, count: int, **more: Any) -> bytes:
    return build_batch([(base + i, None, str(base + i).encode(), ()) for i in range(count)], base_offset=base, **more)


def read(link: BrokerLink, begin: int, end: int, topic_id: bytes = TOPIC_ID, **settings: Any) -> list[int]:
    task = RangeTask("t", 0, begin, end, 0, topic_id)
    batches = RangeReader(link, task, FetchSettings(max_wait_ms=0, **settings)).batches()
    rows = [row for found in batches for row in found.to_pylist()]
    assert all(row["value"] == str(row["offset"]).encode() and row["topic"] == "t" for row in rows)
    return [row["offset"] for row in rows]


@pytest.mark.parametrize("topic_id", [TOPIC_ID, bytes(16)])
def test_exactly_the_range_is_read_over_several_fetches(
    scripted: tuple[ScriptedBroker, BrokerLink], topic_id: bytes
) -> None:
    broker, link = scripted
    broker.fetches = {7: batch(5, 5), 10: batch(10, 5) + batch(15, 5)}
    assert read(link, 7, 17, topic_id) == list(range(7, 17))


@pytest.mark.case("BM-172")
def test_holes_and_markers_are_normal(scripted: tuple[ScriptedBroker, BrokerLink]) -> None:
    broker, link = scripted
    marker = build_marker(ABORT, timestamp=0, producer_id=9, producer_epoch=0, coordinator_epoch=0, base_offset=13)
    aborted = batch(11, 2, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    broker.aborted = [AbortedTransaction(producer_id=9, first_offset=11)]
    broker.fetches = {0: batch(0, 2) + batch(6, 1), 7: batch(10, 1) + aborted + marker, 14: batch(20, 2)}
    assert read(link, 0, 20, read_committed=True) == [0, 1, 6, 10]
    assert read(link, 0, 20) == [0, 1, 6, 10, 11, 12]


def test_a_range_may_end_in_a_hole(scripted: tuple[ScriptedBroker, BrokerLink]) -> None:
    broker, link = scripted
    broker.fetches = {0: batch(0, 1), 1: batch(9, 3)}
    assert read(link, 0, 5) == [0]


@pytest.mark.case("BM-173")
def test_what_was_removed_meanwhile_is_a_loss_and_nothing_is_read_twice(
    scripted: tuple[ScriptedBroker, BrokerLink],
) -> None:
    broker, link = scripted
    broker.log_start = 6
    broker.fetches = {0: batch(0, 2), 2: int(ErrorCode.OFFSET_OUT_OF_RANGE), 6: batch(6, 4)}
    with pytest.raises(DataLossError, match="t-0 lost offsets 2 to 6"):
        read(link, 0, 10)
    assert read(link, 0, 10, fail_on_data_loss=False) == [0, 1, 6, 7, 8, 9]
    broker.log_start = 50
    assert read(link, 0, 10, fail_on_data_loss=False) == [0, 1]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (int(ErrorCode.OFFSET_OUT_OF_RANGE), "was truncated below offset 2"),
        (b"", "ends at 1, before the planned 10"),
    ],
)
def test_a_truncated_log_is_a_loss(scripted: tuple[ScriptedBroker, BrokerLink], answer: bytes | int, said: str) -> None:
    broker, link = scripted
    broker.high_watermark = 1
    broker.fetches = {0: batch(0, 2), 2: answer}
    with pytest.raises(DataLossError, match=said):
        read(link, 0, 10)
    assert read(link, 0, 10, fail_on_data_loss=False) == [0, 1]


def test_a_topic_made_again_is_not_read_in_place_of_the_old_one(scripted: tuple[ScriptedBroker, BrokerLink]) -> None:
    broker, link = scripted
    broker.fetches = {0: int(ErrorCode.UNKNOWN_TOPIC_ID)}
    broker.topic_id = bytes(reversed(TOPIC_ID))
    with pytest.raises(DataLossError, match="deleted and recreated"):
        read(link, 0, 10)


def test_a_failure_that_the_broker_does_not_explain_is_waited_out() -> None:
    with scripted_broker({"default.api.timeout.ms": "2000"}) as (broker, link):
        broker.fetches = {0: [int(ErrorCode.UNKNOWN_SERVER_ERROR), batch(0, 3)], 3: int(ErrorCode.UNKNOWN_SERVER_ERROR)}
        assert read(link, 0, 3) == [0, 1, 2]
        with pytest.raises(KafkaError, match="t-0: UNKNOWN_SERVER_ERROR, the broker's log says why"):
            read(link, 3, 6)


def test_a_leader_that_moved_is_looked_up_again(scripted: tuple[ScriptedBroker, BrokerLink]) -> None:
    broker, link = scripted
    broker.fetches = {0: [int(ErrorCode.NOT_LEADER_OR_FOLLOWER), batch(0, 3)]}
    assert read(link, 0, 3) == [0, 1, 2]


@pytest.mark.case("BM-177")
def test_a_broker_that_is_gone_ends_in_an_error() -> None:
    link = BrokerLink({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": "200"})
    with pytest.raises(KafkaError):
        read(link, 0, 3)
    with pytest.raises(KafkaError):
        ClusterLookups(link).view(TopicSelection(names=("t",)))


@pytest.mark.case("BM-177")
def test_a_broker_that_goes_away_while_it_is_read_ends_in_an_error() -> None:
    with scripted_broker({"default.api.timeout.ms": "200"}) as (broker, link):
        broker.fetches = {0: batch(0, 2)}
        broker.high_watermark = 10
        with pytest.raises(KafkaError, match="no records at offset 2"):
            read(link, 0, 10)


def test_a_damaged_batch_names_partition_and_offset(scripted: tuple[ScriptedBroker, BrokerLink]) -> None:
    broker, link = scripted
    damaged = bytearray(batch(3, 2))
    damaged[-2] ^= 1
    broker.fetches = {0: batch(0, 3) + bytes(damaged)}
    with pytest.raises(SourceError, match="t-0 cannot be read at offset 3"):
        read(link, 0, 5)


def test_a_task_holds_little_of_what_inflates_much(scripted: tuple[ScriptedBroker, BrokerLink]) -> None:
    """findings/spark.md 8: 490 KB of compressed documents became one Arrow batch of 779 MB."""
    broker, link = scripted
    document = b"x" * 50_000
    batches = [build_batch([(0, None, document, ())] * 10, base_offset=10 * i, codec=4) for i in range(20)]
    broker.fetches = {3: b"".join(batches)}
    settings = FetchSettings(max_wait_ms=0, batch_bytes=1_000_000)
    found = list(RangeReader(link, RangeTask("t", 0, 3, 197, 0, TOPIC_ID), settings).batches())
    assert [offset for batch in found for offset in batch.column("offset").to_pylist()] == list(range(3, 197))
    assert max(batch.nbytes for batch in found) <= 1_000_000
    assert max(batch.column("value").buffers()[2].size for batch in found) <= 2_000_000, "what was inflated at once"


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.booleans()), max_size=12))
def test_portions_leave_out_what_was_aborted_and_nothing_else(plan: list[tuple[int, bool, bool]]) -> None:
    """Each step: records of a transaction, whether it is aborted, and whether another producer writes in between."""
    data, offset = b"", 0
    aborted: list[tuple[int, int]] = []
    expected: list[int] = []
    for count, is_aborted, is_mixed in plan:
        data += batch(offset, count, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True, codec=4)
        aborted += [(7, offset)] * is_aborted
        expected += [] if is_aborted else range(offset, offset + count)
        offset += count
        if is_mixed:
            data += batch(offset, 1)
            expected.append(offset)
            offset += 1
        kind = ABORT if is_aborted else COMMIT
        data += build_marker(
            kind, timestamp=0, producer_id=7, producer_epoch=0, coordinator_epoch=0, base_offset=offset
        )
        offset += 1
    portions = Portions(bytes_max=1)
    found = []
    for portion in portions.of(data, tuple(aborted)):
        read = to_arrow([FetchedPart("t", 0, portion.data, 0, aborted=portion.aborted)])
        portions.inflated(portion, read.batch.nbytes)
        found += read.batch.column("offset").to_pylist()
        assert portion.next_offset == read.next_offsets[0]
    assert found == expected
