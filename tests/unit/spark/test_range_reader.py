"""Reading exactly one range: gaps, markers, losses, and brokers that make it hard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita.errors import KafkaError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import AbortedTransaction
from partita.records.batch import ABORT, build_batch, build_marker
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.options import TopicSelection
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import DataLossError, SourceError
from partita.spark.reading.range_reader import FetchSettings, RangeReader
from support.scripted_broker import TOPIC_ID, ScriptedBroker, scripted_broker


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedBroker, BrokerLink]]:
    with scripted_broker() as pair:
        yield pair


def batch(base: int, count: int, **more: Any) -> bytes:
    return build_batch([(base + i, None, str(base + i).encode(), ()) for i in range(count)], base_offset=base, **more)


def read(link: BrokerLink, begin: int, end: int, topic_id: bytes = TOPIC_ID, **settings: bool) -> list[int]:
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
