"""A coordinator of the consumer protocol that does as a test says: what it assigns, and how it answers."""

from __future__ import annotations

from typing import Any

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import offset_commit, offset_fetch
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from support.consumer.members import Heard
from support.consumer.world import World

EPOCHS: dict[str, Any] = {"group_id": "g", "group_protocol": "consumer"}


class EpochGroup:
    """One member's group. `assign` sets the target, which the next heartbeat is told with a new epoch."""

    def __init__(self, world: World, *, interval_ms: int = 5_000) -> None:
        self.world = world
        self.interval_ms = interval_ms
        self.epoch = 1
        self.committed: dict[tuple[str, int], int] = {}
        self.commit_epochs: list[int] = []
        self._target: dict[bytes, list[int]] = {}
        self._has_news = False
        world.always["ConsumerGroupHeartbeat"] = self.beat
        world.always["OffsetCommit"] = self.commit
        world.always["OffsetFetch"] = self.fetch

    def assign(self, *partitions: tuple[str | bytes, int]) -> None:
        """The target from now on; a topic is a name, or the id of one that nobody knows yet."""
        self._target = {}
        for topic, partition in partitions:
            topic_id = topic if isinstance(topic, bytes) else self.world.ids[topic]
            self._target.setdefault(topic_id, []).append(partition)
        self.epoch += 1
        self._has_news = True

    def beat(self, message: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        if message.member_epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_id=message.member_id, member_epoch=message.member_epoch)
        topics = [ConsumerGroupHeartbeatTopicPartitions(topic_id=t, partitions=p) for t, p in self._target.items()]
        tells = message.member_epoch == 0 or self._has_news
        self._has_news = False
        return ConsumerGroupHeartbeatResponse(
            member_id=message.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=self.interval_ms,
            assignment=ConsumerGroupHeartbeatAssignment(topic_partitions=topics) if tells else None,
        )

    def refuse(self, code: ErrorCode, told: str | None = None) -> None:
        """The next heartbeat is answered with this error."""
        self.world.script("ConsumerGroupHeartbeat", ConsumerGroupHeartbeatResponse(error_code=code, error_message=told))

    def beats(self) -> list[ConsumerGroupHeartbeatRequest]:
        """The heartbeats that have come."""
        return [sent.message for sent in self.world.sent("ConsumerGroupHeartbeat")]

    def commit(self, message: Any) -> offset_commit.OffsetCommitResponse:
        """Take the offsets if the epoch is right."""
        stale = message.generation_id_or_member_epoch not in (self.epoch, -1)
        self.commit_epochs.append(message.generation_id_or_member_epoch)
        code = ErrorCode.STALE_MEMBER_EPOCH if stale else ErrorCode.NONE
        topics = []
        for topic in message.topics:
            parts = [
                offset_commit.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ]
            topics.append(offset_commit.OffsetCommitResponseTopic(name=topic.name, partitions=parts))
            if not stale:
                self.committed.update({(topic.name, p.partition_index): p.committed_offset for p in topic.partitions})
        return offset_commit.OffsetCommitResponse(topics=topics)

    def fetch(self, message: Any) -> offset_fetch.OffsetFetchResponse:
        """The committed offsets."""
        asked = message.groups[0]
        topics = []
        for topic in asked.topics:
            parts = [
                offset_fetch.OffsetFetchResponsePartitions(
                    partition_index=p, committed_offset=self.committed.get((topic.name, p), -1), metadata=""
                )
                for p in topic.partition_indexes
            ]
            topics.append(offset_fetch.OffsetFetchResponseTopics(name=topic.name, partitions=parts))
        group = offset_fetch.OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)
        return offset_fetch.OffsetFetchResponse(groups=[group])


def epoch_member(world: World, *topics: str, poll: float = 0.2, **options: Any) -> tuple[Any, Heard]:
    """A member of the consumer protocol that has subscribed and polled, with what its listener hears."""
    heard = Heard()
    consumer = world.consumer(**{**EPOCHS, **options})
    consumer.subscribe(list(topics) or ["t"], listener=heard)
    if poll:
        consumer.poll(poll)
    return consumer, heard
