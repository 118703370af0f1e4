"""The topics of a simulation: numbered records, and the answers to Metadata, Fetch, ListOffsets and epoch questions.

One node leads everything. Records are real batches; the value of a record is its own offset. Fetches wait for data
as they do at a real broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.group.state.consumers import TopicFacts
from partita.group.state.consumers import Topics as TopicImage
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import fetch as fetching
from partita.protocol.messages import list_offsets
from partita.protocol.messages import metadata as described
from partita.protocol.messages import offset_for_leader_epoch as epochs
from partita.records.batch import build_batch
from partita.sim.world.world import World

NODE_ID, HOST, PORT = 1, "sim", 9092
LATEST, EARLIEST = -1, -2

Answer = Callable[[Any], None]


class Partition:
    """One partition's log: batches with their last offsets, and where each leader epoch begins."""

    __slots__ = ("batches", "end", "starts")

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.end = 0
        self.starts = [0]
        """By leader epoch: the first offset written in it."""

    @property
    def epoch(self) -> int:
        """The leader epoch of now."""
        return len(self.starts) - 1

    def elect(self) -> None:
        """Begin another leader epoch."""
        self.starts.append(self.end)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(The newest leader epoch with records up to `epoch`, where it ends); (-1, -1) for one that never was."""
        if not 0 <= epoch <= self.epoch:
            return -1, -1
        return epoch, self.end if epoch == self.epoch else self.starts[epoch + 1]

    def check(self, epoch: int) -> ErrorCode:
        """Is it the leader epoch of now? -1 asks nothing."""
        if epoch == -1 or epoch == self.epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    def append(self, count: int, wall_ms: int) -> None:
        """Append a batch of `count` records."""
        records = [(wall_ms, None, b"%d" % (self.end + i), ()) for i in range(count)]
        batch = build_batch(records, base_offset=self.end, leader_epoch=self.epoch)
        self.end += count
        self.batches.append((self.end - 1, batch))

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from `offset` on, the first one whole whatever its size."""
        found: list[bytes] = []
        size = 0
        for last, batch in reversed(self.batches):
            if last < offset:
                break
            found.append(batch)
        found.reverse()
        for i, batch in enumerate(found):
            size += len(batch)
            if i and size > max_bytes:
                return b"".join(found[:i])
        return b"".join(found)


class Topics:
    """`partitions[topic]` are the logs; `produce` appends and wakes waiting fetches."""

    def __init__(self, world: World, counts: dict[str, int]) -> None:
        self._world = world
        self.ids = {name: (i + 1).to_bytes(16, "big") for i, name in enumerate(counts)}
        self.partitions = {name: [Partition() for _ in range(count)] for name, count in counts.items()}
        self.image = TopicImage()
        """The topics as the coordinator of KIP-848 groups sees them."""
        for name, count in counts.items():
            self.image.put(name, TopicFacts(self.ids[name], count))
        self._waiting: dict[int, tuple[fetching.FetchRequest, Answer]] = {}
        self._asked = 0

    def all(self) -> list[tuple[str, int]]:
        """Every partition of every topic."""
        return [(name, i) for name, parts in self.partitions.items() for i in range(len(parts))]

    def produce(self, topic: str, partition: int, count: int) -> None:
        """Append records, and answer fetches that waited for them."""
        self.partitions[topic][partition].append(count, self._world.now.wall_ms)
        self._wake()

    def elect(self, topic: str, partition: int) -> None:
        """Elect the leader again: clients that name the old leader epoch are refused."""
        self.partitions[topic][partition].elect()
        self._wake()

    def _wake(self) -> None:
        for number, (request, answer) in list(self._waiting.items()):
            if self._has_news(request):
                del self._waiting[number]
                answer(self._fetched(request))

    def add_partition(self, topic: str) -> None:
        """Give the topic one more partition."""
        self.partitions[topic].append(Partition())
        self.image.put(topic, TopicFacts(self.ids[topic], len(self.partitions[topic])))

    def forget_waiting(self) -> None:
        """The broker's process is gone."""
        self._waiting.clear()

    # Answers

    def metadata(self, request: described.MetadataRequest) -> described.MetadataResponse:
        """The answer to Metadata."""
        wanted = list(self.ids) if request.topics is None else [topic.name or "" for topic in request.topics]
        return described.MetadataResponse(
            brokers=[described.MetadataResponseBroker(node_id=NODE_ID, host=HOST, port=PORT)],
            cluster_id="sim",
            controller_id=NODE_ID,
            topics=[self._described(name) for name in wanted],
        )

    def _described(self, name: str) -> described.MetadataResponseTopic:
        parts = self.partitions.get(name)
        if parts is None:
            return described.MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partitions = [
            described.MetadataResponsePartition(
                partition_index=i,
                leader_id=NODE_ID,
                leader_epoch=part.epoch,
                replica_nodes=[NODE_ID],
                isr_nodes=[NODE_ID],
            )
            for i, part in enumerate(parts)
        ]
        return described.MetadataResponseTopic(name=name, topic_id=self.ids[name], partitions=partitions)

    def list_offsets(self, request: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        """The answer to ListOffsets."""
        topics = []
        for topic in request.topics:
            found = []
            for asked in topic.partitions:
                log = self.partitions[topic.name][asked.partition_index]
                error, is_first = log.check(asked.current_leader_epoch), asked.timestamp == EARLIEST
                found.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index,
                        error_code=error,
                        offset=-1 if error else 0 if is_first else log.end,
                        leader_epoch=-1 if error else 0 if is_first else log.epoch,
                    )
                )
            topics.append(list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=found))
        return list_offsets.ListOffsetsResponse(topics=topics)

    def epoch_ends(self, request: epochs.OffsetForLeaderEpochRequest) -> epochs.OffsetForLeaderEpochResponse:
        """The answer to OffsetForLeaderEpoch."""
        return epochs.OffsetForLeaderEpochResponse(
            topics=[
                epochs.OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[self._epoch_end(topic.topic, asked) for asked in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _epoch_end(self, topic: str, asked: epochs.OffsetForLeaderPartition) -> epochs.EpochEndOffset:
        log = self.partitions[topic][asked.partition]
        error = log.check(asked.current_leader_epoch)
        epoch, end = (-1, -1) if error else log.epoch_end(asked.leader_epoch)
        return epochs.EpochEndOffset(partition=asked.partition, error_code=error, leader_epoch=epoch, end_offset=end)

    def fetch(self, request: fetching.FetchRequest, answer: Answer) -> None:
        """Answer now, or when data comes, or after max_wait_ms."""
        if request.session_epoch == -1 or self._has_news(request):
            answer(self._fetched(request))
            return
        self._asked += 1
        self._waiting[self._asked] = (request, answer)
        self._world.after(request.max_wait_ms, self._waited_enough, self._asked)

    def names(self) -> dict[bytes, str]:
        """The name of each topic by its id."""
        return {topic_id: name for name, topic_id in self.ids.items()}

    def _waited_enough(self, number: int) -> None:
        if number in self._waiting:
            request, answer = self._waiting.pop(number)
            answer(self._fetched(request))

    def _asked_for(self, request: fetching.FetchRequest) -> list[tuple[str, bytes, fetching.FetchPartition]]:
        names = self.names()
        return [
            (topic.topic or names[topic.topic_id], topic.topic_id, partition)
            for topic in request.topics
            for partition in topic.partitions
        ]

    def _has_news(self, request: fetching.FetchRequest) -> bool:
        asked_for = [(self.partitions[name][asked.partition], asked) for name, _, asked in self._asked_for(request)]
        return any(
            log.end != asked.fetch_offset or log.check(asked.current_leader_epoch) != ErrorCode.NONE
            for log, asked in asked_for
        )

    def _fetched(self, request: fetching.FetchRequest) -> fetching.FetchResponse:
        topics: dict[str, fetching.FetchableTopicResponse] = {}
        for name, topic_id, asked in self._asked_for(request):
            log = self.partitions[name][asked.partition]
            error = log.check(asked.current_leader_epoch)
            if not error and not 0 <= asked.fetch_offset <= log.end:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = fetching.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[])
            topic.partitions.append(
                fetching.PartitionData(
                    partition_index=asked.partition,
                    error_code=error,
                    high_watermark=log.end,
                    last_stable_offset=log.end,
                    log_start_offset=0,
                    records=memoryview(log.read(asked.fetch_offset, asked.partition_max_bytes) if not error else b""),
                )
            )
        return fetching.FetchResponse(responses=list(topics.values()))
