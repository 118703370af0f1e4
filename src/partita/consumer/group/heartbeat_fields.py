"""The fields of a heartbeat of the consumer protocol: all of them while joining, later only those that have changed.

(Kafka: ConsumerHeartbeatRequestManager.HeartbeatState; consumer.md 12.2.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

from partita.consumer.config import ConsumerConfig
from partita.consumer.subscription import Subscription
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

TopicIdPartition: TypeAlias = tuple[bytes, int]
LEAVE, LEAVE_FOR_A_WHILE = -1, -2
"""Member epochs that leave the group; a static member that leaves for a while keeps its partitions."""


class _Asked(NamedTuple):
    """The topics that a subscription asks for."""

    topics: Collection[str]
    pattern: str | None
    """One that the coordinator matches; then no topics are named."""


class HeartbeatFields:
    """Remembers the fields that the coordinator has. Call `forget` when it may not have received the last ones."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._asked: _Asked | None = None
        self._number = 0

    def forget(self) -> None:
        """The next heartbeat says everything."""
        self._asked = None

    def has_news(self, subscription: Subscription) -> bool:
        """Whether the application wants other topics than the last heartbeat named."""
        return self._asked is not None and self._asked != _asked(subscription)

    def message(
        self, member_id: str, epoch: int, subscription: Subscription, owned: tuple[int, Iterable[TopicIdPartition]]
    ) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat to send now. `owned` is the result of the last reconciliation, with its number."""
        number, partitions = owned
        says_all = self._asked is None or epoch == 0
        said: dict[str, Any] = self._constants() if says_all else {}
        if says_all or self.has_news(subscription):
            said |= self._topics(subscription)
        if says_all or number != self._number:
            said["topic_partitions"] = _by_topic(sorted(partitions))
        self._asked, self._number = _asked(subscription), number
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=self._config.group_instance_id,
            **said,
        )

    def leaving(self, member_id: str, *, for_a_while: bool) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat that leaves the group."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=LEAVE_FOR_A_WHILE if for_a_while else LEAVE,
            instance_id=self._config.group_instance_id,
            topic_partitions=[],
        )

    def _constants(self) -> dict[str, Any]:
        return {
            "rack_id": self._config.client_rack or None,
            "rebalance_timeout_ms": self._config.max_poll_interval_ms,
            "server_assignor": self._config.group_remote_assignor,
        }

    def _topics(self, subscription: Subscription) -> dict[str, Any]:
        asks = _asked(subscription)
        had_pattern = self._asked is not None and self._asked.pattern is not None
        return {
            "subscribed_topic_names": sorted(asks.topics),
            "subscribed_topic_regex": "" if asks.pattern is None and had_pattern else asks.pattern,
        }


def _asked(subscription: Subscription) -> _Asked:
    pattern = subscription.server_pattern
    return _Asked(subscription.topics if pattern is None else (), pattern)


def _by_topic(partitions: Iterable[TopicIdPartition]) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    by_id: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        by_id.setdefault(topic_id, []).append(partition)
    return [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=t, partitions=p) for t, p in by_id.items()]
