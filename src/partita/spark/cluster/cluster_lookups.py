"""Answers the planner's questions by asking real brokers: metadata, offsets, leader epochs, committed offsets.

Every question is retried until the client's timeout while its error is retriable, so a broker that restarts is waited
for, and one that is gone ends in an error. Group requests use the versions that name topics.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from partita.errors import KafkaError, error_for
from partita.net.cluster import COORDINATOR_MOVED
from partita.net.errors import Disconnected
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from partita.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from partita.protocol.metadata_view import TopicView
from partita.protocol.primitives import ZERO_UUID
from partita.records.batch import LOG_APPEND_TIME, InvalidBatch, iter_records
from partita.records.header import cut, read_header
from partita.spark.cluster.broker_link import BrokerLink
from partita.spark.cluster.news_wait import NewsWait
from partita.spark.planning.batch_core import LOOK_AGAIN, LOOK_AGAIN_PAUSE_MS
from partita.spark.planning.lookups import CommitRefused, Committed
from partita.spark.planning.starts import ClusterView, PartitionFacts
from partita.spark.settings.options import TopicSelection
from partita.spark.settings.positions import EARLIEST, LATEST, TopicPartition

COMMIT_BUDGET_MS = 5_000
SAMPLE_BYTES = 64 << 10
SHORT_QUESTION_S = 10
TIMES_BUDGET_MS, ASKED_ALONE_MAX = 1_000, 16
FETCH_BY_NAME = 12
OFFSET_FETCH_ONE_GROUP = 7
OFFSET_COMMIT_BY_NAME = 9
NOT_ALONE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
Found = dict[TopicPartition, Any]


class ClusterLookups:
    """`partita.spark.planning.lookups.Lookups`, answered by the brokers behind a link."""

    def __init__(self, link: BrokerLink, *, read_committed: bool = False) -> None:
        self._link = link
        self._cluster = link.cluster
        self._isolation = int(read_committed)
        self._record_sizes: dict[TopicPartition, float] = {}
        self._waiting = NewsWait(link, isolation_level=self._isolation)

    def view(
        self, selection: TopicSelection, *, pause_ms: int = 0, news: Mapping[TopicPartition, int] | None = None
    ) -> ClusterView:
        """The selected topics that exist, after a pause. Raises KafkaError for one the cluster refuses to show."""
        if news and pause_ms:
            self._waiting.until_news(news, pause_ms)
            pause_ms = 0
        return self._link.call(self._view(selection, pause_ms))

    def topic_ids(self, topics: Collection[str]) -> dict[str, bytes]:
        """Return the current ids of these topics, without those that the cluster does not show or has no ids for."""
        found = self._link.call(self._cluster.retry(lambda: self._cluster.topics(topics)))
        return {name: topic.topic_id for name, topic in found.items() if topic.topic_id != ZERO_UUID}

    def topic_names(self) -> dict[bytes, str]:
        """Return the names of all topics by their ids."""
        found = self._link.call(self._cluster.retry(lambda: self._cluster.topics(None)))
        return {topic.topic_id: name for name, topic in found.items() if topic.topic_id != ZERO_UUID}

    def deleted(self, topics: Collection[str]) -> set[str]:
        """Return those of these topics that the cluster says do not exist. One it refuses to show may exist."""
        found = self._link.call(self._cluster.retry(lambda: self._cluster.topics(topics)))
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {name for name, topic in found.items() if topic.error_code == unknown}

    def not_there(self, topics: Collection[str]) -> set[str]:
        """Return those of these topics that do not exist, by one short question that is repeated only for such ones.

        Raises KafkaError or TimeoutError where no broker answers at once.
        """
        return self._link.call(self._not_there(sorted(topics))) if topics else set()

    def at_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset at or after each timestamp (milliseconds); None where there is none."""
        found = self._link.call(self._list_offsets(wanted))
        return {key: None if answer.offset < 0 else answer.offset for key, answer in found.items()}

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """End of each leader epoch, for partitions whose leader knows it."""
        found = self._link.call(self._epoch_ends(wanted))
        return {key: answer.end_offset for key, answer in found.items() if answer.end_offset >= 0}

    def record_bytes(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """The average size in bytes of a record from these offsets on, from one small fetch."""
        return self._link.call(self._record_bytes(wanted))

    def record_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The timestamp of the first record at or after each offset, found within a second, for some partitions."""
        return self._link.call(self._record_times(wanted))

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Return the group's committed offsets; partitions without one are left out."""
        return self._link.call(self._committed(group, partitions))

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Commit for a group that has no members, within five seconds. Raises CommitRefused."""
        self._link.call(self._commit(group, offsets))

    async def _not_there(self, topics: list[str]) -> set[str]:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
        )
        lacking = set(topics)
        async with asyncio.timeout(SHORT_QUESTION_S):
            # A topic that was just created is not known everywhere yet.
            for pause_s in (0, *(LOOK_AGAIN_PAUSE_MS / 1000,) * LOOK_AGAIN):
                await asyncio.sleep(pause_s)
                answer = await self._cluster.request(None, request)
                unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                lacking = {topic.name or "" for topic in answer.topics if topic.error_code == unknown}
                if not lacking:
                    break
        return lacking

    async def _view(self, selection: TopicSelection, pause_ms: int) -> ClusterView:
        await asyncio.sleep(pause_ms / 1000)
        chosen = await self._cluster.retry(lambda: self._chosen(selection))
        wanted = {
            (topic.name, p.partition): p.leader_epoch
            for topic in chosen
            for p in topic.partitions
            if not selection.assigned or (topic.name, p.partition) in selection.assigned
        }
        earliest, latest = await asyncio.gather(
            self._list_offsets(dict.fromkeys(wanted, EARLIEST)), self._list_offsets(dict.fromkeys(wanted, LATEST))
        )
        partitions = {
            key: PartitionFacts(earliest[key].offset, max(earliest[key].offset, latest[key].offset), epoch)
            for key, epoch in wanted.items()
        }
        return ClusterView(partitions, {topic.name: topic.topic_id for topic in chosen})

    async def _chosen(self, selection: TopicSelection) -> list[TopicView]:
        """The selected topics that exist. Raises the error of a topic that the cluster will not show."""
        names = None if selection.pattern is not None else {*selection.names, *(t for t, _ in selection.assigned)}
        chosen = []
        for topic in (await self._cluster.topics(names)).values():
            if not selection.wants(topic.name) or (topic.is_internal and selection.pattern):
                continue
            if topic.error_code and topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise self._error(topic.error_code, topic.name, f"topic {topic.name}")
            if not topic.error_code:
                chosen.append(topic)
        return chosen

    async def _list_offsets(self, wanted: Mapping[TopicPartition, int]) -> Found:
        """The answer for each partition; timestamps -1 and -2 are latest and earliest."""

        def request(topics: dict[str, list[int]]) -> ListOffsetsRequest:
            return ListOffsetsRequest(
                replica_id=-1,
                isolation_level=self._isolation,
                timeout_ms=self._cluster.config.request_timeout_ms,
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(partition_index=p, timestamp=wanted[topic, p]) for p in numbers
                        ],
                    )
                    for topic, numbers in topics.items()
                ],
            )

        def answers(response: Any) -> Found:
            return {(t.name, p.partition_index): p for t in response.topics for p in t.partitions}

        return await self._ask_leaders(wanted, request, answers)

    async def _epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> Found:
        def request(topics: dict[str, list[int]]) -> OffsetForLeaderEpochRequest:
            return OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=[
                    OffsetForLeaderTopic(
                        topic=topic,
                        partitions=[
                            OffsetForLeaderPartition(partition=p, leader_epoch=wanted[topic, p]) for p in numbers
                        ],
                    )
                    for topic, numbers in topics.items()
                ],
            )

        def answers(response: Any) -> Found:
            return {(t.topic, p.partition): p for t in response.topics for p in t.partitions}

        return await self._ask_leaders(wanted, request, answers)

    async def _record_bytes(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        found = await self._sampled(wanted)
        measured = {key: _average_size(answer.records) for key, answer in found.items()}
        self._record_sizes.update({key: size for key, size in measured.items() if size is not None})
        known = [self._record_sizes[key] for key in wanted if key in self._record_sizes]
        # A broker sends nothing of a partition whose next batch exceeds the sample, unless it is the first asked for.
        usual = sum(known) / len(known) if known else 1.0
        return {key: self._record_sizes.get(key, usual) for key in wanted}

    async def _record_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        times: dict[TopicPartition, int | None] = {}
        try:
            async with asyncio.timeout(TIMES_BUDGET_MS / 1000):
                found = await self._sampled(wanted)
                times = {key: _time_at(answer.records, wanted[key]) for key, answer in found.items()}
                # What a broker left out, as above, is the first one of a request of its own.
                for key in sorted(key for key, time in times.items() if time is None)[:ASKED_ALONE_MAX]:
                    alone = await self._sampled({key: wanted[key]})
                    times[key] = _time_at(alone[key].records, wanted[key])
        except (TimeoutError, KafkaError, InvalidBatch):
            pass  # the lag in records is reported without the one in seconds
        return {key: time for key, time in times.items() if time is not None}

    async def _sampled(self, wanted: Mapping[TopicPartition, int]) -> Found:
        """A small fetch from each of these offsets on."""

        def request(topics: dict[str, list[int]]) -> FetchRequest:
            return FetchRequest(
                max_wait_ms=100,
                isolation_level=self._isolation,
                topics=[
                    FetchTopic(
                        topic=topic,
                        partitions=[
                            FetchPartition(partition=p, fetch_offset=wanted[topic, p], partition_max_bytes=SAMPLE_BYTES)
                            for p in numbers
                        ],
                    )
                    for topic, numbers in topics.items()
                ],
            )

        def answers(response: Any) -> Found:
            return {(t.topic, p.partition_index): p for t in response.responses for p in t.partitions}

        return await self._ask_leaders(wanted, request, answers, max_version=FETCH_BY_NAME)

    def _error(self, code: int, topic: str, text: str) -> KafkaError:
        return error_for(code, text, operation="READ", names=[topic], user=self._cluster.user)

    async def _ask_leaders(
        self,
        wanted: Mapping[TopicPartition, int],
        request: Callable[[dict[str, list[int]]], Any],
        answers: Callable[[Any], Found],
        max_version: int | None = None,
    ) -> Found:
        found: Found = {}
        codes: dict[TopicPartition, int] = {}

        async def ask(node_id: int, topics: dict[str, list[int]]) -> None:
            for key, answer in answers(
                await self._cluster.request(node_id, request(topics), max_version=max_version)
            ).items():
                if not answer.error_code:
                    found[key] = answer
                elif not ErrorCode(answer.error_code).retriable:
                    raise self._error(answer.error_code, key[0], f"{key[0]}-{key[1]}")
                else:
                    codes[key] = answer.error_code
                    self._cluster.expire_metadata()

        async def once() -> None:
            by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
            for topic, partition in wanted.keys() - found.keys():
                leader = await self._cluster.leader_for(topic, partition)
                by_leader[leader.id][topic].append(partition)
            await asyncio.gather(*(ask(node_id, topics) for node_id, topics in by_leader.items()))
            lacking = sorted(wanted.keys() - found.keys())
            if lacking:
                code = codes.get(lacking[0], ErrorCode.LEADER_NOT_AVAILABLE)
                raise error_for(code, f"no answer yet for {lacking[:5]}")

        await self._cluster.retry(once)
        return found

    async def _committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Committed]:
        if not partitions:
            return {}
        topics = [OffsetFetchRequestTopic(name=t, partition_indexes=ps) for t, ps in _by_topic(partitions).items()]
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=True)

        async def once() -> Any:
            answer = await self._ask_coordinator(group, request, OFFSET_FETCH_ONE_GROUP)
            for code in (answer.error_code, *(p.error_code for t in answer.topics for p in t.partitions)):
                self._raise_for(group, code)
            return answer

        answer = await self._cluster.retry(once)
        return {
            (t.name, p.partition_index): Committed(p.committed_offset, p.committed_leader_epoch, p.metadata or "")
            for t in answer.topics
            for p in t.partitions
            if p.committed_offset >= 0
        }

    async def _commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic, partitions=[_commit_entry(p, offsets[topic, p]) for p in partitions]
                )
                for topic, partitions in _by_topic(offsets).items()
            ],
        )

        async def once() -> None:
            answer = await self._ask_coordinator(group, request, OFFSET_COMMIT_BY_NAME)
            for topic in answer.topics:
                for partition in topic.partitions:
                    self._raise_for(group, partition.error_code)

        try:
            await self._cluster.retry(once, timeout_ms=COMMIT_BUDGET_MS)
        except KafkaError as error:
            lacks_right = error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
            raise CommitRefused(_refusal(group, error), lacks_right=lacks_right) from error

    async def _ask_coordinator(self, group: str, request: Any, max_version: int) -> Any:
        node = await self._cluster.coordinator_for(group)
        try:
            connection = await self._cluster.pool.connect(node.id, node.host, node.port)
            return await connection.send(request, max_version=max_version)
        except Disconnected:
            self._cluster.forget_coordinator(group)
            raise

    def _raise_for(self, group: str, code: int) -> None:
        if code in COORDINATOR_MOVED:
            self._cluster.forget_coordinator(group)
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise error_for(code, operation="READ", names=[group], user=self._cluster.user)
        if code:
            raise error_for(code, f"group {group}")


def _by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _commit_entry(partition: int, committed: Committed) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


def _refusal(group: str, error: KafkaError) -> str:
    if error.code in NOT_ALONE:
        return (
            f"group {group} has live members, so nobody else may commit to it ({error.code.name}); "
            f"give the query a group of its own, or stop the other consumers"
        )
    return str(error)


def _average_size(records: Any) -> float | None:
    """Bytes for each offset in the whole batches of a fetch answer; None when there are none."""
    size = count = 0
    for magic, entry in cut(records or b""):
        size += len(entry)
        count += read_header(entry).last_offset_delta + 1 if magic >= 2 else 1
    return size / count if count else None


def _time_at(records: Any, offset: int) -> int | None:
    """Return the timestamp of the first record at or after `offset` in a fetch answer; None if there is none."""
    for magic, entry in cut(records or b""):
        if magic < 2:
            return None
        header = read_header(entry)
        if header.next_offset <= offset or header.is_control:
            continue
        if header.timestamp_type == LOG_APPEND_TIME:
            return header.max_timestamp
        if header.base_offset >= offset:
            return header.base_timestamp
        found = next((record.timestamp for record in iter_records(entry) if record.offset >= offset), None)
        if found is not None:
            return found
    return None
