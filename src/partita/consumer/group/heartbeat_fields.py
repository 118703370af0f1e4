"""What a heartbeat of the consumer protocol says: everything while joining, later only what has changed.

(Kafka: ConsumerHeartbeatRequestManager.HeartbeatState; consumer.md 12.2.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from partita.consumer.config import ConsumerConfig
from partita.consumer.subscription import Subscription
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

TopicIdPartition: TypeAlias = tuple[bytes, int]
LEAVE, LEAVE_FOR_A_WHILE = -1, -2
"""Member epochs that leave the group; a static member that leaves for a while keeps its partitions."""


class HeartbeatFields:
    """Remembers what the coordinator was told last. `forget` after anything that leaves it in doubt."""

    def __init__(self, config: ConsumerConfig) -> None:
        self._config = config
        self._told: dict[str, Any] = {}

    def forget(self) -> None:
        """The next heartbeat says everything."""
        self._told = {}

    def has_news(self, subscription: Subscription) -> bool:
        """Does the application want other topics than the coordinator was told?"""
        wanted = self._topics(subscription)
        return bool(self._told) and any(self._told[name] != value for name, value in wanted.items())

    def message(
        self, member_id: str, epoch: int, subscription: Subscription, owned: tuple[int, Iterable[TopicIdPartition]]
    ) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat to send now. `owned` is what the last reconciliation led to, with its number."""
        number, partitions = owned
        wanted: dict[str, Any] = {
            "rack_id": self._config.client_rack or None,
            "rebalance_timeout_ms": self._config.max_poll_interval_ms,
            **self._topics(subscription),
            "server_assignor": self._config.group_remote_assignor,
            "topic_partitions": number,
        }
        news = {name: value for name, value in wanted.items() if self._told.get(name, self) != value or epoch == 0}
        self._told = wanted
        if "topic_partitions" in news:
            news["topic_partitions"] = _by_topic(sorted(partitions))
        return ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id or "",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=self._config.group_instance_id,
            **news,
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

    def _topics(self, subscription: Subscription) -> dict[str, Any]:
        by_server = subscription.server_pattern is not None
        no_longer = "" if self._told.get("subscribed_topic_regex") is not None else None
        return {
            "subscribed_topic_names": [] if by_server else sorted(subscription.topics),
            "subscribed_topic_regex": subscription.server_pattern if by_server else no_longer,
        }


def _by_topic(partitions: Iterable[TopicIdPartition]) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    by_id: dict[bytes, list[int]] = {}
    for topic_id, partition in partitions:
        by_id.setdefault(topic_id, []).append(partition)
    return [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=t, partitions=p) for t, p in by_id.items()]
