"""Produce: what is written, what is refused, what is answered."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.broker.api import context
from partita.broker.storage.data_dir import DiskStore
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.log.log_config import Durability
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from partita.records.batch import build_marker, iter_batches, iter_records
from partita.records.builder import build_batch
from partita.records.header import CODEC_NAMES, HEADER_SIZE, seal
from partita.records.opened import inspect, recompress
from support.broker.data_plane import DataPlane, data_plane
from support.log.logs import batch, pairs


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as made:
        yield made


def test_a_batch_is_appended_and_its_offset_answered(plane: DataPlane) -> None:
    topic = plane.topic()
    first, second = plane.produce(batch("a", "b")), plane.produce(batch("c"))
    assert [(p.error_code, p.base_offset, p.log_append_time_ms) for p in (first, second)] == [(0, 0, -1), (0, 2, -1)]
    assert topic.partitions[0].log.high_watermark == 3


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_only_acks_zero_has_no_answer(plane: DataPlane, acks: int) -> None:
    topic = plane.topic()
    data = [PartitionProduceData(index=0, records=batch("a"))]
    request = ProduceRequest(acks=acks, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    assert (plane.ask("produce", 12, request) is None) == (acks == 0)
    assert topic.partitions[0].log.log_end_offset == 1


@pytest.mark.parametrize("partition", [0, 1])
def test_with_acks_zero_a_refusal_closes_the_connection(plane: DataPlane, partition: int) -> None:
    plane.topic()
    data = [PartitionProduceData(index=index, records=batch("a")) for index in (0, partition)]
    request = ProduceRequest(acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    assert plane.ask("produce", 12, request) is None
    assert plane.connection.closed is (partition == 1)


def test_a_request_for_one_partition_is_not_parked_half_done(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine every megabyte outlived its slice: its buffer was held meanwhile, and the next one was new."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    plane.topic()
    data = [PartitionProduceData(index=0, records=batch("a"))]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    assert isinstance(plane.begin("produce", 12, request), ProduceResponse)


def test_a_topic_deleted_between_two_slices_does_not_come_back(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5: a request to many partitions leaves others their turn, and one of them deletes its topic."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    topic = plane.topic(partitions=20)
    data = [PartitionProduceData(index=index, records=batch("a")) for index in range(20)]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    waiting = plane.begin("produce", 12, request)
    task = asyncio.ensure_future(waiting, loop=plane.loop)
    while topic.partitions[1].opened_log is None:
        plane.turn()
    plane.cluster.catalogue.delete([topic])
    response = plane.loop.run_until_complete(task)
    codes = [part.error_code for part in response.responses[0].partition_responses]
    assert codes == sorted(codes)
    assert (codes[0], codes[-1]) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert not plane.store.logs


def test_topics_are_named_by_id_from_version_13(plane: DataPlane) -> None:
    topic = plane.topic()
    for topic_id, code in ((topic.topic_id, 0), (b"\x01" * 16, ErrorCode.UNKNOWN_TOPIC_ID)):
        data = [PartitionProduceData(index=0, records=batch("a"))]
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=data)])
        response = plane.ask("produce", 13, request).responses[0]
        assert (response.topic_id, response.partition_responses[0].error_code) == (topic_id, code)


@pytest.mark.parametrize(
    ("topic", "partition", "acks", "code"),
    [
        ("nobody", 0, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, 2, ErrorCode.INVALID_REQUIRED_ACKS),
        ("__consumer_offsets", 0, 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_wrong_addresses_are_refused(plane: DataPlane, topic: str, partition: int, acks: int, code: ErrorCode) -> None:
    plane.topic()
    plane.cluster.ensure_state_topic(OFFSETS_TOPIC)
    answer = plane.produce(batch("a"), topic, partition, acks=acks)
    assert (answer.error_code, answer.base_offset) == (code, -1)


def flipped(data: bytes, at: int) -> bytes:
    copy = bytearray(data)
    copy[at] ^= 1
    return bytes(copy)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (flipped(batch("a"), 40), ErrorCode.CORRUPT_MESSAGE),
        (flipped(batch("a"), 18), ErrorCode.CORRUPT_MESSAGE),
        (batch("a") + batch("b"), ErrorCode.INVALID_RECORD),
        (build_marker(1, timestamp=0, producer_id=1, producer_epoch=0, coordinator_epoch=0), ErrorCode.INVALID_RECORD),
        (batch("x" * 2000), ErrorCode.MESSAGE_TOO_LARGE),
        (
            batch("a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_bad_batches_are_refused_and_nothing_is_written(plane: DataPlane, records: bytes | None, code: int) -> None:
    """H24."""
    topic = plane.topic(max_message_bytes=1000)
    assert plane.produce(records).error_code == code
    assert topic.partitions[0].log.log_end_offset == 0


def test_a_bad_partition_does_not_harm_its_neighbours(plane: DataPlane) -> None:
    plane.topic(partitions=3)
    data = [PartitionProduceData(index=i, records=r) for i, r in enumerate((batch("a"), b"junk", batch("c")))]
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    parts = plane.ask("produce", 12, request).responses[0].partition_responses
    assert [part.error_code == 0 for part in parts] == [True, False, True]


def test_an_idempotent_retry_is_answered_with_the_first_offset(plane: DataPlane) -> None:
    plane.topic()
    fields: dict[str, Any] = {"producer_id": 4, "producer_epoch": 0}
    plane.produce(batch("x"))
    answers = [plane.produce(batch("a", base_sequence=s, **fields)) for s in (0, 0, 2, 1)]
    assert [(a.error_code, a.base_offset) for a in answers] == [
        (0, 1),
        (0, 1),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (0, 2),
    ]


def test_compacted_topics_want_keys(plane: DataPlane) -> None:
    plane.topic(cleanup_policy=("compact",))
    refused = plane.produce(batch("no key"))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [0]
    assert plane.produce(pairs(("k", "v"))).error_code == 0


@pytest.mark.parametrize("sent", CODEC_NAMES)
@pytest.mark.parametrize("wanted", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_stored_in_the_codec_the_topic_wants(plane: DataPlane, sent: str, wanted: str) -> None:
    plane.topic(compression_type=wanted)
    fields: dict[str, Any] = {"codec": CODEC_NAMES.index(sent), "producer_id": 4, "producer_epoch": 0}
    answers = [plane.produce(batch("a" * 99, "b", base_sequence=sequence, **fields)) for sequence in (0, 0, 2)]
    assert [(a.error_code, a.base_offset) for a in answers] == [(0, 0), (0, 0), (0, 2)]
    stored = list(iter_batches(plane.fetch(0).records or b""))
    name = {"producer": sent, "uncompressed": "none"}.get(wanted, wanted)
    assert [CODEC_NAMES[header.codec] for header, _ in stored] == [name, name]
    records = [record for _, view in stored for record in iter_records(view)]
    assert [(r.offset, r.value) for r in records] == [(0, b"a" * 99), (1, b"b"), (2, b"a" * 99), (3, b"b")]


def test_a_batch_that_grew_too_large_in_the_topics_codec_is_refused(plane: DataPlane) -> None:
    topic = plane.topic(compression_type="uncompressed", max_message_bytes=1000)
    refused = plane.produce(batch("a" * 2000, codec=CODEC_NAMES.index("gzip")))
    assert (refused.error_code, topic.partitions[0].log.log_end_offset) == (ErrorCode.MESSAGE_TOO_LARGE, 0)


def test_a_batch_that_does_not_inflate_cannot_change_its_codec(plane: DataPlane) -> None:
    topic = plane.topic(compression_type="zstd")
    damaged = bytearray(batch("a" * 99, codec=CODEC_NAMES.index("gzip")))
    damaged[HEADER_SIZE:] = bytes(len(damaged) - HEADER_SIZE)
    seal(damaged)
    refused = plane.produce(bytes(damaged))
    assert (refused.error_code, topic.partitions[0].log.log_end_offset) == (ErrorCode.CORRUPT_MESSAGE, 0)


def test_log_append_time_is_answered(plane: DataPlane) -> None:
    plane.topic(message_timestamp_type="LogAppendTime")
    assert plane.produce(batch("a")).log_append_time_ms > 1_600_000_000_000


def test_timestamps_far_ahead_are_refused(plane: DataPlane) -> None:
    plane.topic()
    answer = plane.produce(batch("a", ms=10**13))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP


def test_an_answer_names_the_records_with_wrong_timestamps_and_those_without_keys(plane: DataPlane) -> None:
    """As Apache Kafka 4.3.1: a wrong timestamp decides the code, and a header that lies costs no good record."""
    now_ms, late_ms = int(time.time() * 1000), 10**13
    records: list[Any] = [(now_ms, b"k", b"a", ()), (late_ms, b"k", b"b", ()), (now_ms, None, b"c", ())]
    plane.topic(cleanup_policy=("compact",))
    refused = plane.produce(bytes(build_batch(records)))
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    told = {error.batch_index: error.batch_index_error_message or "" for error in refused.record_errors}
    assert [(index, text.partition(" ")[0]) for index, text in told.items()] == [(1, "Timestamp"), (2, "Compacted")]
    refused = plane.produce(bytes(build_batch([(late_ms, None, b"a", ())])))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    lying = bytearray(build_batch(records[:1]))
    lying[35:43] = late_ms.to_bytes(8, "big")
    seal(lying)
    assert plane.produce(bytes(lying)).error_code == 0
    ((header, _),) = iter_batches(plane.fetch(0).records or b"")
    assert header.max_timestamp == now_ms


def test_another_leader_is_named(plane: DataPlane) -> None:
    with data_plane(nodes=2) as two:
        topic = two.topic()
        first, second = two.cluster.nodes.values()
        other = second if topic.partitions[0].leader == first.node_id else first
        data = [PartitionProduceData(index=0, records=batch("a"))]
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
        response = two.ask("produce", 12, request, node=other)
        part = response.responses[0].partition_responses[0]
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader.leader_id == topic.partitions[0].leader
        assert [node.node_id for node in response.node_endpoints] == [topic.partitions[0].leader]


def test_with_sync_the_answer_waits_for_the_disk(tmp_path: Path) -> None:
    """D1, D3 under `sync`: acknowledged means durable."""
    with data_plane(DiskStore(str(tmp_path), Durability.SYNC)) as plane:
        topic = plane.topic()
        log = topic.partitions[0].log
        data = [PartitionProduceData(index=0, records=batch("a"))]
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name="t", partition_data=data)])
        waiting = plane.begin("produce", 12, request)
        assert (waiting.done(), log.high_watermark) == (False, 0)
        response = plane.loop.run_until_complete(waiting)
        assert response.responses[0].partition_responses[0].error_code == 0
        assert (log.high_watermark, log.durable_offset) == (1, 1)


@pytest.mark.parametrize("acks", [1, -1])
def test_with_sync_a_repetition_of_what_is_durable_is_answered_at_once(tmp_path: Path, acks: int) -> None:
    with data_plane(DiskStore(str(tmp_path), Durability.SYNC)) as plane:
        plane.topic()
        sent = batch("a", producer_id=7, producer_epoch=0, base_sequence=0)
        assert plane.produce(sent, acks=acks).base_offset == 0
        data = [PartitionProduceData(index=0, records=sent)]
        request = ProduceRequest(
            acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name="t", partition_data=data)]
        )
        again = plane.begin("produce", 12, request)
        assert isinstance(again, ProduceResponse), "nothing is left to wait for"
        part = again.responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (0, 0)


def test_an_acknowledgement_that_comes_too_late_is_a_timeout(tmp_path: Path) -> None:
    with data_plane(DiskStore(str(tmp_path), Durability.SYNC)) as plane:
        log = plane.topic().partitions[0].log
        plane.loop.run_until_complete(plane.running.upkeep.stop())
        assert log.on_unsynced is None
        data = [PartitionProduceData(index=0, records=batch("a"))]
        request = ProduceRequest(acks=-1, timeout_ms=10, topic_data=[TopicProduceData(name="t", partition_data=data)])
        part = plane.ask("produce", 12, request).responses[0].partition_responses[0]
        assert part.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_disk_that_failed_is_answered_as_a_storage_error(plane: DataPlane) -> None:
    topic = plane.topic()
    topic.partitions[0].log.fail("injected")
    assert plane.produce(batch("a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_changed_setting_holds_for_the_next_batch(plane: DataPlane) -> None:
    topic = plane.topic()
    assert plane.produce(batch("a")).log_append_time_ms == -1
    plane.cluster.catalogue.configure(topic, {"message.timestamp.type": "LogAppendTime"})
    assert plane.produce(batch("a")).log_append_time_ms > 0


# -- records that are looked at (A1, A3, H25) --------------------------------------------------------------------------


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that looked at records."""
    threads: list[str] = []
    for module, function in ((inspect, "check_records"), (recompress, "recompress")):
        original = getattr(module, function)

        def noted(*args: Any, original: Any = original, **more: Any) -> Any:
            threads.append(threading.current_thread().name)
            return original(*args, **more)

        monkeypatch.setattr(module, function, noted)
    return threads


LARGE = ["v" * 100] * 2_000
SETTINGS: list[dict[str, Any]] = [{"cleanup_policy": ("compact",)}, {"compression_type": "gzip"}]


@pytest.mark.parametrize("settings", SETTINGS)
def test_long_work_on_records_leaves_the_loop(plane: DataPlane, beside: list[str], settings: dict[str, Any]) -> None:
    """A1, A3: a large batch is walked, inflated and compressed by a thread, a small one at once."""
    plane.topic(**settings)
    assert plane.produce(pairs(("k", "v"))).error_code == 0
    assert beside == [threading.current_thread().name]
    answer = plane.produce(pairs(*(("k", value) for value in LARGE)))
    assert (answer.error_code, answer.base_offset) == (0, 1)
    assert beside[1].startswith("partita-records")


def test_a_large_keyless_batch_is_refused_with_its_first_hundred_records(plane: DataPlane, beside: list[str]) -> None:
    """A1."""
    plane.topic(cleanup_policy=("compact",))
    refused = plane.produce(batch(*LARGE))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == list(range(100))
    assert beside[0].startswith("partita-records")


def test_the_look_up_of_a_time_in_a_large_batch_leaves_the_loop(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2."""
    threads: list[str] = []
    look = inspect.first_at_or_after

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return look(*args)

    monkeypatch.setattr(inspect, "first_at_or_after", noted)
    plane.topic(partitions=2)
    for partition, values in ((0, ["v"]), (1, LARGE)):
        assert plane.produce(batch(*values), partition=partition).error_code == 0
        asked = [ListOffsetsPartition(partition_index=partition, timestamp=0)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])
        found = plane.ask("list_offsets", 5, request).topics[0].partitions[0]
        assert (found.error_code, found.offset) == (0, 0)
    assert threads[0] == threading.current_thread().name
    assert threads[1].startswith("partita-records")


def test_full_validation_checks_every_record_and_corrects_the_largest_timestamp() -> None:
    """`partita.validate.records=full`."""
    now_ms = int(time.time() * 1000)
    good = bytes(build_batch([(now_ms, None, b"a", ()), (now_ms + 5, None, b"b", ())]))
    wrong_max = bytearray(good)
    wrong_max[35:43] = (now_ms + 1).to_bytes(8, "big")
    seal(wrong_max)
    damaged = bytearray(good)
    damaged[HEADER_SIZE] ^= 2
    seal(damaged)
    late = bytes(build_batch([(now_ms, None, b"a", ()), (now_ms + 7_200_000, None, b"b", ())]))
    for mode, codes in (("header", [0, 0, 0]), ("full", [0, 0, ErrorCode.INVALID_RECORD])):
        with data_plane(partita_validate_records=mode) as plane:
            topic = plane.topic()
            answers = [plane.produce(bytes(sent)) for sent in (good, wrong_max, damaged)]
            assert [answer.error_code for answer in answers] == codes
            stored = [header for header, _ in iter_batches(topic.partitions[0].log.read(0, 1 << 20))]
            assert stored[1].max_timestamp == now_ms + (1 if mode == "header" else 5)
            refused = plane.produce(late)
            assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
            assert [error.batch_index for error in refused.record_errors] == [1]
