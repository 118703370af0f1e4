"""Members of a group for tests: a consumer that subscribed and polled, and a listener that takes notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partita.consumer.listener import RebalanceListener
from support.consumer.world import World


class Heard(RebalanceListener):
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[tuple[str, int]]]] = []
        self.fail_on: dict[str, BaseException] = {}

    def _hear(self, name: str, partitions: Sequence[tuple[str, int]]) -> None:
        self.calls.append((name, [tuple(tp) for tp in partitions]))  # type: ignore[misc]  # a TopicPartition is a pair
        if name in self.fail_on:
            raise self.fail_on.pop(name)

    def on_partitions_assigned(self, partitions: Any) -> None:
        self._hear("assigned", partitions)

    def on_partitions_revoked(self, partitions: Any) -> None:
        self._hear("revoked", partitions)

    def on_partitions_lost(self, partitions: Any) -> None:
        self._hear("lost", partitions)


def member(world: World, *topics: str, poll: float = 0.2, **options: Any) -> tuple[Any, Heard]:
    heard = Heard()
    consumer = world.consumer(**{"group_id": "g", **options})
    consumer.subscribe(list(topics) or ["t"], listener=heard)
    if poll:
        consumer.poll(poll)
    return consumer, heard
