"""What hostile, broken and merely very large clients do to a broker: one function for each attack of `attacks.py`.

Each is a generator: it prepares, yields, and attacks while the canary measures. Names in brackets are those of the
findings that the attacks come from.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from huge_group import huge_group

from partita.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, V3AndBelowTopic
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.end_txn import EndTxnRequest
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.list_transactions import ListTransactionsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.primitives import Message
from partita.records.batch import build_batch
from partita.records.builder import assemble
from partita.records.header import CODEC_NAMES
from support.broker.raw import Raw

SMALLEST_RECORD = b"\x0c\0\0\0\x01\x01\0"
BOMB_RECORDS = 7_000_000
"""As many as inflate to what a batch of the default `max.message.bytes` may."""
WIDE = "wide"
WIDE_PARTITIONS = 5_000
MANY_TOPICS, EACH = 2_000, 4
ATTACK_SECONDS = 3.0
REPEATS = 10
Attack = Iterator[None]


class Stage:
    """The broker under attack, and the connections of the attackers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._raws: list[Raw] = []

    def connect(self, name: str = "attacker") -> Raw:
        """A connection that is closed when the attack is over."""
        raw = Raw(self.port, name)
        raw.socket.settimeout(120)
        self._raws.append(raw)
        return raw

    def warm_up(self) -> None:
        """Ask once of each kind that attacks ask: the first one loads what serves it, which no attack causes twice."""
        raw = self.connect("warm-up")
        for message, version in ((wide_fetch("nowhere", 1), 11), (MetadataRequest(topics=[]), 12)):
            raw.ask(message, version)

    def topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic unless it is there."""
        configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        self.connect().ask(CreateTopicsRequest(timeout_ms=60_000, topics=[topic]), 5)

    def many_topics(self) -> None:
        """So many topics that Metadata of all of them is large."""
        raw = self.connect()
        for start in range(0, MANY_TOPICS, 500):
            topics = [
                CreatableTopic(name=f"many-{n}", num_partitions=EACH, replication_factor=1)
                for n in range(start, start + 500)
            ]
            raw.ask(CreateTopicsRequest(timeout_ms=60_000, topics=topics), 5)

    def close(self) -> None:
        """Close what the attack left open."""
        for raw in self._raws:
            raw.socket.close()
        self._raws.clear()


def repeated(stage: Stage, message: Message, version: int, times: int = REPEATS) -> None:
    """Ask the same again and again; a broker that closes the connection refuses it."""
    raw = stage.connect()
    frame = raw.frame(message, version)
    for _ in range(times):
        raw.socket.sendall(frame)
        with suppress(EOFError, ConnectionError):
            skip_answer(raw)
            continue
        return


def skip_answer(raw: Raw) -> int:
    """Read one answer without decoding it; return its size."""
    start = b""
    while len(start) < 4:
        piece = raw.socket.recv(4 - len(start))
        if not piece:
            raise EOFError("closed")
        start += piece
    size = left = int.from_bytes(start, "big")
    while left:
        piece = raw.socket.recv(min(left, 1 << 20))
        if not piece:
            raise EOFError("closed")
        left -= len(piece)
    return size


# Records


def bomb(codec: str, records: int = BOMB_RECORDS) -> bytes:
    """A batch of the smallest records without keys, which inflates to several hundred times its size."""
    return bytes(assemble(
        SMALLEST_RECORD * records, codec=CODEC_NAMES.index(codec), base_offset=0, leader_epoch=-1,
        attributes=CODEC_NAMES.index(codec), last_offset_delta=records - 1, base_timestamp=0, max_timestamp=0,
        producer_id=-1, producer_epoch=-1, base_sequence=-1, records_count=records,
    ))  # fmt: skip


def produced(topic: str, batch: bytes, partitions: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch) for index in range(partitions)]
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def keyless_bomb(codec: str) -> Callable[[Stage], Attack]:
    def attack(stage: Stage) -> Attack:
        """[A1, H25] A batch of millions of records without keys for a compacted topic."""
        stage.topic("compacted", cleanup_policy="compact")
        request = produced("compacted", bomb(codec))
        yield
        repeated(stage, request, 9)

    return attack


def look_ups_in_a_bomb(stage: Stage) -> Attack:
    """[A2] ListOffsets by time over a batch of millions of records."""
    stage.topic("plain")
    stage.connect().ask(produced("plain", bomb("zstd")), 9)
    asked = [
        ListOffsetsPartition(partition_index=0, timestamp=1),
        ListOffsetsPartition(partition_index=0, timestamp=-3),
    ]
    yield
    for one in asked:
        repeated(stage, ListOffsetsRequest(topics=[ListOffsetsTopic(name="plain", partitions=[one])]), 7)


def recompressed_bomb(stage: Stage) -> Attack:
    """[A3] A batch that the topic wants in another codec."""
    stage.topic("gzip", compression_type="gzip", max_message_bytes="4000000")
    request = produced("gzip", bomb("zstd", 4 * BOMB_RECORDS))
    yield
    repeated(stage, request, 9, 3)


# Floods


def pipelined(message: Message, version: int, in_one_write: int, connections: int = 1) -> Callable[[Stage], Attack]:
    def attack(stage: Stage) -> Attack:
        """[A4, A8, H34] Hundreds of requests in one write, again and again."""
        stage.many_topics()
        raws = [stage.connect(f"pipeline-{number}") for number in range(connections)]
        frames = [b"".join(raw.frame(message, version) for _ in range(in_one_write)) for raw in raws]
        yield
        end = time.monotonic() + ATTACK_SECONDS
        while time.monotonic() < end:
            for raw, frame in zip(raws, frames, strict=True):
                raw.socket.sendall(frame)
            for raw in raws:
                for _ in range(in_one_write):
                    skip_answer(raw)

    return attack


def created_topics(stage: Stage) -> Attack:
    """[A9] CreateTopics and DeleteTopics of a thousand names at once."""
    names = [f"flood-{number}" for number in range(1_000)]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    raw = stage.connect()
    yield
    for _ in range(3):
        raw.ask(CreateTopicsRequest(timeout_ms=60_000, topics=topics), 5)
        raw.ask(DeleteTopicsRequest(timeout_ms=60_000, topic_names=names), 5)


def auto_created_topics(stage: Stage) -> Attack:
    """[A9, H23] Metadata of 19,000 names that do not exist."""
    names = [MetadataRequestTopic(name=f"auto-{number}") for number in range(19_000)]
    yield
    repeated(stage, MetadataRequest(topics=names), 8, 3)


def fetch_sessions(stage: Stage) -> Attack:
    """[A6, H26] Thirty fetch sessions of 49,000 partitions that do not exist, and their connections are closed."""
    request = wide_fetch("nowhere", 49_000, max_wait_ms=0, session_epoch=0)
    frame = stage.connect().frame(request, 12)
    yield
    for _ in range(30):
        raw = Raw(stage.port, "session")
        with raw, suppress(EOFError, ConnectionError):
            raw.socket.sendall(frame)
            skip_answer(raw)


def pending_member_ids(stage: Stage) -> Attack:
    """[H16] Joins without a member id in a loop."""
    from support.broker.raw import join_request

    raw = stage.connect()
    raw.find("pending")
    frames = b"".join(raw.frame(join_request(f"pending-{number % 50}"), 9) for number in range(2_000))
    yield
    for _ in range(3):
        raw.socket.sendall(frames)
        for _ in range(2_000):
            skip_answer(raw)


# Connections


def connection_storm(stage: Stage) -> Attack:
    """[B9, H13] Connections come and go as fast as they can."""
    yield
    end = time.monotonic() + ATTACK_SECONDS
    while time.monotonic() < end:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", stage.port), timeout=10).close()


def thousands_of_connections(stage: Stage) -> Attack:
    """[H13] As many connections as there are descriptors for, each of which asks once."""
    opened: list[Raw] = []
    yield
    with suppress(OSError, EOFError):
        for _ in range(3_000):
            raw = stage.connect()
            opened.append(raw)
            raw.ask(ApiVersionsRequest(), 0)


def half_frames(stage: Stage) -> Attack:
    """[H2, H10] A thousand connections announce 100 MB each and send 10 kB of it."""
    raws = [stage.connect() for _ in range(500)]
    yield
    for raw in raws:
        raw.socket.sendall((100 << 20).to_bytes(4, "big") + bytes(10_000))
    time.sleep(1)


def large_frames(stage: Stage) -> Attack:
    """[H2] Five connections send 60 MB of a frame of 100 MB, one after the other."""
    raws = [stage.connect() for _ in range(5)]
    yield
    for raw in raws:
        raw.socket.sendall((100 << 20).to_bytes(4, "big") + b"\0\x03" + bytes(60 << 20))


def never_reading(stage: Stage) -> Attack:
    """[H11, C6] Fifty connections ask for large answers and read none."""
    stage.many_topics()
    raws = [stage.connect() for _ in range(50)]
    frames = [b"".join(raw.frame(MetadataRequest(topics=None), 1) for _ in range(300)) for raw in raws]
    yield
    for raw, frame in zip(raws, frames, strict=True):
        raw.socket.settimeout(0.05)
        with suppress(OSError):
            raw.socket.sendall(frame)
    time.sleep(ATTACK_SECONDS)


def never_reading_records(stage: Stage) -> Attack:
    """[H11] Fifty connections fetch 8 MB again and again and read nothing."""
    stage.topic("large", 1)
    batch = build_batch([(0, b"k", b"v" * 1000, [])] * 900)
    filler = stage.connect()
    for _ in range(10):
        filler.ask(produced("large", batch), 9)
    raws = [stage.connect() for _ in range(50)]
    frames = [b"".join(raw.frame(wide_fetch("large", 1), 11) for _ in range(50)) for raw in raws]
    yield
    for raw, frame in zip(raws, frames, strict=True):
        raw.socket.sendall(frame)
    time.sleep(ATTACK_SECONDS)


def dying_in_the_answer(stage: Stage) -> Attack:
    """Connections that are reset while a large answer is on its way."""
    stage.many_topics()
    frame = stage.connect().frame(MetadataRequest(topics=None), 1)
    yield
    for _ in range(300):
        raw = Raw(stage.port, "dying")
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        raw.socket.sendall(frame)
        raw.socket.recv(100)
        raw.socket.close()


# Large requests


def wide_fetch(topic: str, partitions: int, **fields: Any) -> FetchRequest:
    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=8 << 20) for index in range(partitions)
    ]
    fields.setdefault("max_wait_ms", 0)
    return FetchRequest(min_bytes=1, max_bytes=8 << 20, topics=[FetchTopic(topic=topic, partitions=wanted)], **fields)


def large(message: Message, version: int, times: int = REPEATS) -> Callable[[Stage], Attack]:
    def attack(stage: Stage) -> Attack:
        """[A7, H6, H34] One request about very much, several times."""
        stage.topic(WIDE, WIDE_PARTITIONS)
        if isinstance(message, MetadataRequest):
            stage.many_topics()
        yield
        repeated(stage, message, version, times)

    return attack


def wide_offsets(partitions: int = WIDE_PARTITIONS) -> ListOffsetsRequest:
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=WIDE, partitions=asked)])


def wide_commit(partitions: int = WIDE_PARTITIONS) -> OffsetCommitRequest:
    given = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(partitions)]
    return OffsetCommitRequest(group_id="wide", topics=[OffsetCommitRequestTopic(name=WIDE, partitions=given)])


def wide_offset_fetch(partitions: int = WIDE_PARTITIONS) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(name=WIDE, partition_indexes=list(range(partitions)))]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="wide", topics=topics)])


def groups(count: int) -> list[str]:
    return [f"group-{number}" for number in range(count)]


def many_wide_polls(stage: Stage) -> Attack:
    """[A5] Twenty long polls of 5,000 partitions that wait for more than comes, while somebody produces."""
    stage.topic(WIDE, WIDE_PARTITIONS)
    polls = [stage.connect(f"poll-{number}") for number in range(20)]
    request = wide_fetch(WIDE, WIDE_PARTITIONS, max_wait_ms=5_000)
    request.min_bytes = 1 << 30
    frames = [raw.frame(request, 11) for raw in polls]
    producer = stage.connect()
    frame = producer.frame(produced(WIDE, build_batch([(0, b"k", b"v", [])])), 9)
    yield
    for raw, poll in zip(polls, frames, strict=True):
        raw.socket.sendall(poll)
    end = time.monotonic() + ATTACK_SECONDS
    while time.monotonic() < end:
        producer.socket.sendall(frame)
        skip_answer(producer)


def keys_after_wide_polls(stage: Stage) -> Attack:
    """FindCoordinator of 19,000 keys behind twenty waiting fetches of 5,000 partitions."""
    stage.topic(WIDE, WIDE_PARTITIONS)
    request = wide_fetch(WIDE, WIDE_PARTITIONS, max_wait_ms=3_000)
    request.min_bytes = 1 << 30
    polls = [stage.connect(f"poll-{number}") for number in range(20)]
    frames = [raw.frame(request, 11) for raw in polls]
    asking = FindCoordinatorRequest(key_type=0, coordinator_keys=groups(19_000))
    yield
    for raw, poll in zip(polls, frames, strict=True):
        raw.socket.sendall(poll)
    repeated(stage, asking, 4, 5)


# Transactions


def ended_at_once(ids: int, partitions: int) -> Callable[[Stage], Attack]:
    def attack(stage: Stage) -> Attack:
        """[F3] The ends of many transactions, or of a wide one, in one instant from as many connections."""
        stage.topic(WIDE, partitions)
        raw, frames = stage.connect(), []
        topics = [V3AndBelowTopic(name=WIDE, partitions=list(range(partitions)))]
        for name in [f"txn-{number}" for number in range(ids)]:
            producer_id, epoch = raw.transactional(name)
            raw.ask(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name, v3_and_below_producer_id=producer_id,
                    v3_and_below_producer_epoch=epoch, v3_and_below_topics=topics,
                ),
                3,
            )  # fmt: skip
            ending = stage.connect(name)
            end = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True)
            frames.append((ending, ending.frame(end, 3)))
        yield
        for ending, frame in frames:
            ending.socket.sendall(frame)
        for ending, _ in frames:
            skip_answer(ending)
        under_way = ListTransactionsRequest(state_filters=["PrepareCommit"])
        while raw.ask(under_way, 0).transaction_states:
            time.sleep(0.1)

    return attack


ATTACKS: dict[str, Callable[[Stage], Attack]] = {
    **{f"keyless bomb, {codec}": keyless_bomb(codec) for codec in CODEC_NAMES[1:]},
    "look-ups in a bomb": look_ups_in_a_bomb,
    "recompressed bomb": recompressed_bomb,
    "Metadata pipelined": pipelined(MetadataRequest(topics=None), 1, 300),
    "ApiVersions pipelined": pipelined(ApiVersionsRequest(), 0, 500, connections=4),
    "topics created": created_topics,
    "topics created by Metadata": auto_created_topics,
    "fetch sessions": fetch_sessions,
    "pending member ids": pending_member_ids,
    "connection storm": connection_storm,
    "3,000 connections": thousands_of_connections,
    "half frames": half_frames,
    "large frames": large_frames,
    "Metadata never read": never_reading,
    "records never read": never_reading_records,
    "reset in the answer": dying_in_the_answer,
    "20 wide polls": many_wide_polls,
    "huge KIP-848 group": huge_group,
    "ends of 200 transactions": ended_at_once(200, 300),
    "end of one over 7,000": ended_at_once(1, 7_000),
    "keys after wide polls": keys_after_wide_polls,
    "Metadata of everything": large(MetadataRequest(topics=None), 12),
    "Metadata of 19,000 names": large(
        MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in groups(19_000)], allow_auto_topic_creation=False
        ),
        12,
    ),
    "FindCoordinator of 19,000": large(FindCoordinatorRequest(key_type=0, coordinator_keys=groups(19_000)), 4),
    "FindCoordinator of a million": large(FindCoordinatorRequest(key_type=0, coordinator_keys=groups(1_000_000)), 4),
    "DescribeGroups of 19,000": large(DescribeGroupsRequest(groups=groups(19_000)), 5),
    "Fetch of 5,000": large(wide_fetch(WIDE, WIDE_PARTITIONS), 11),
    "Fetch of 49,000": large(wide_fetch("nowhere", 49_000), 11),
    "Produce to 5,000": large(produced(WIDE, build_batch([(0, b"k", b"v", [])]), WIDE_PARTITIONS), 9),
    "ListOffsets of 5,000": large(wide_offsets(), 7),
    "ListOffsets of 49,000": large(wide_offsets(49_000), 7),
    "ListOffsets of 300,000": large(wide_offsets(300_000), 7, 2),
    "OffsetCommit of 5,000": large(wide_commit(), 8),
    "OffsetCommit of 19,000": large(wide_commit(19_000), 8),
    "OffsetFetch of 5,000": large(wide_offset_fetch(), 8),
    "OffsetFetch of 49,000": large(wide_offset_fetch(49_000), 8),
}
