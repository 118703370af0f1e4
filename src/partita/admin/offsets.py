"""Offsets of partitions: first, last, by time; and deleting records before an offset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from partita.admin.asking import Connected
from partita.admin.missing_rights import needs
from partita.admin.results import FoundOffset, raise_failures
from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.options import not_one_of
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

TopicPartition: TypeAlias = tuple[str, int]
OffsetSpec: TypeAlias = Literal["earliest", "latest", "max_timestamp"] | int
"""A position in a log: its ends, the largest timestamp, or the first record at or after a time in ms."""

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
_NAMED = {"latest": -1, "earliest": -2, "max_timestamp": -3}


def timestamp_of(spec: OffsetSpec) -> int:
    """Return the wire value of the spec."""
    if isinstance(spec, str):
        if spec not in _NAMED:
            raise ValueError(not_one_of(_NAMED, spec, "an offset spec that is no time in ms"))
        return _NAMED[spec]
    if spec < 0:
        raise ValueError(f"a time must be 0 or more, in ms, not {spec}")
    return spec


@needs(topic="DESCRIBE")
async def list_offsets(
    self: Connected, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: Isolation = "read_uncommitted"
) -> dict[TopicPartition, FoundOffset]:
    """Offsets by "earliest", "latest", "max_timestamp" or a time in ms, for each partition its own."""

    if isolation_level not in ("read_uncommitted", "read_committed"):
        raise ValueError(not_one_of(("read_uncommitted", "read_committed"), isolation_level, "isolation_level"))
    wanted = {partition: timestamp_of(spec) for partition, spec in specs.items()}

    def build(parts: Iterable[TopicPartition]) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for topic, partition in parts:
            part = ListOffsetsPartition(
                partition_index=partition,
                timestamp=wanted[topic, partition],
                current_leader_epoch=self.cluster.view.leader_epoch(topic, partition),
            )
            topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(part)
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(isolation_level == "read_committed"),
            topics=list(topics.values()),
            timeout_ms=30_000,
        )

    found = await ask_leaders(self.cluster, wanted, build)
    return {
        (topic, p): FoundOffset(topic, p, answer.offset, answer.timestamp, answer.leader_epoch)
        for (topic, p), answer in sorted(found.items())
    }


@needs(topic="DELETE")
async def delete_records(
    self: Connected, before: Mapping[TopicPartition, int], *, timeout_ms: int = 30_000
) -> dict[TopicPartition, int]:
    """Delete all records before an offset (-1: all readable ones); return where the logs start now.

    Raises OffsetOutOfRangeError for an offset beyond the high watermark.
    """

    def build(parts: Iterable[TopicPartition]) -> DeleteRecordsRequest:
        topics: dict[str, DeleteRecordsTopic] = {}
        for topic, partition in parts:
            part = DeleteRecordsPartition(partition_index=partition, offset=before[topic, partition])
            topics.setdefault(topic, DeleteRecordsTopic(name=topic)).partitions.append(part)
        return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)

    found = await ask_leaders(self.cluster, before, build)
    return {partition: answer.low_watermark for partition, answer in sorted(found.items())}


async def ask_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition], build: Callable[[Iterable[TopicPartition]], Any]
) -> dict[TopicPartition, Any]:
    """Send one request to each leader; repeat retriable failures until the timeout.

    Serves ListOffsets, DeleteRecords and DescribeProducers alike, whose answers share no type: hence `Any`.
    """
    left = dict.fromkeys(partitions)
    asked = len(left)
    found: dict[TopicPartition, Any] = {}
    failures: dict[str, KafkaError] = {}

    async def once() -> None:
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic, partition in left:
            leader = await cluster.leader_for(topic, partition)
            by_leader.setdefault(leader.id, []).append((topic, partition))
        again: KafkaError | None = None
        for node, parts in by_leader.items():
            answer = await cluster.request(node, build(parts))
            for answered in answer.topics:
                for part in answered.partitions:
                    again = take(answered.name, part) or again
        if again is not None:
            raise again

    def take(topic: str, part: Any) -> KafkaError | None:
        key = (topic, part.partition_index)
        code = ErrorCode(part.error_code)
        if code != ErrorCode.NONE:
            error = error_for(code, f"{topic}-{part.partition_index}: {code.meaning}")
            if error.retriable:
                return error
            failures[f"{topic}-{part.partition_index}"] = error
        else:
            found[key] = part
        left.pop(key, None)
        return None

    if left:
        await cluster.refresh({topic for topic, _ in left})
        _check_exist(cluster, left)
        await cluster.retry(once)
    raise_failures(failures, asked)
    return found


def _check_exist(cluster: Cluster, partitions: Iterable[TopicPartition]) -> None:
    for topic, partition in partitions:
        view = cluster.view.topics.get(topic)
        if view is None or (not view.partitions and view.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        if view.partitions and cluster.view.partition(topic, partition) is None:
            count = len(view.partitions)
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} has partitions 0 to {count - 1}")
