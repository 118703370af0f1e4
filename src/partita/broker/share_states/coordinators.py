"""All shards of the share coordinator in the process: one runner per led partition of `__share_group_state`.

Finds the shard of a share partition, and is the persister of the leaders of partitions and of the group coordinator,
which run in the same process. (Kafka: ShareCoordinatorService, DefaultStatePersister.)
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from partita.broker.shard_leadership import ShardLeadership
from partita.broker.share_states.runner import StateRunner, StateSettings
from partita.broker.topics.catalogue import SHARE_STATE_TOPIC, Partition
from partita.protocol.error_codes import ErrorCode
from partita.share.coordinator.coordinator import ShareConfig
from partita.share.coordinator.model import ShareKey
from partita.share.coordinator.requests import Outcome, StateRequest
from partita.share.coordinator.wire import merge, split

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.broker.wire.turns import Turns
    from partita.protocol.primitives import Message

_AT_ONCE = 10
"""Share partitions of a message that are decided at once; more are decided in slices, while others have their turn."""


class ShareStates(ShardLeadership[StateRunner, StateSettings]):
    """Runners by partition index, for keys "group:topicId:partition". The process itself asks by `answer`."""

    topic_name = SHARE_STATE_TOPIC

    def __init__(self, cluster: Cluster, turns: Turns) -> None:
        super().__init__(cluster)
        self._turns = turns
        self._orders: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By group, while it asks: what keeps its messages in order."""

    def ask(self, request: StateRequest, node_id: int | None = None) -> Outcome | asyncio.Future[Outcome]:
        """Answer a request about one share partition that came to this node (None: to any, from the process itself)."""
        if not self.cluster.is_running:
            return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if node_id is None:
            self.cluster.ensure_state_topic(SHARE_STATE_TOPIC)
        runner = self.runner_of(_written(request.key))
        if runner is None or node_id not in (None, runner.node_id):
            return Outcome(ErrorCode.NOT_COORDINATOR)
        return runner.decide(request)

    async def answer(self, message: Message) -> Any:
        """Return the response to any of the five requests, once all of it is durable.

        What a group asks is decided in its order, also where one message names very many partitions and takes slices.
        If the call is cancelled its message is still decided to the end, and the group's next one waits for that.
        """
        group_id = getattr(message, "group_id", None) or ""
        order = self._orders.setdefault(group_id, asyncio.Lock())
        asked: list[Outcome | asyncio.Future[Outcome]] = []
        await order.acquire()
        asking = self._asking(message, asked, order)
        if sum(1 for _ in islice(asking, _AT_ONCE)) == _AT_ONCE:
            await self._turns.worked_off(asking)
        return merge(message, [one if isinstance(one, Outcome) else await one for one in asked])

    def _asking(
        self, message: Message, asked: list[Outcome | asyncio.Future[Outcome]], order: asyncio.Lock
    ) -> Iterator[None]:
        """Ask for one share partition in a step; after the last one the group's next message may begin."""
        try:
            for request in split(message):
                if request is not None:
                    asked.append(self.ask(request))
                yield
        finally:
            order.release()

    # -- shards ----------------------------------------------------------------------------------------------------

    def load_shard(self, partition: Partition, *, is_held: bool) -> None:
        """Load the shard."""
        runner = self.runners[partition.index] = StateRunner(self.cluster, partition, self.settings)
        if is_held:
            runner.be_held()
        else:
            runner.begin()

    def end_shard(self, runner: StateRunner) -> None:
        """Resign; the shard's next leader finds everything in the log."""
        runner.resign()

    def topics_deleted(self) -> None:
        """Forget the share partitions of topics that are gone. A shard that is not loaded does so once it is."""
        for runner in list(self.runners.values()):
            runner.forget_topics_gone()

    def read_settings(self) -> StateSettings:
        """Return the settings of the share coordinator."""
        config = self.cluster.config
        return StateSettings(
            ShareConfig(
                updates_per_snapshot=config.int("share.coordinator.snapshot.update.records.per.snapshot"),
                cold_snapshot_ms=config.int("share.coordinator.cold.partition.snapshot.interval.ms"),
            ),
            prune_ms=config.int("share.coordinator.state.topic.prune.interval.ms"),
            codec=config.int("share.coordinator.state.topic.compression.codec"),
            max_message_bytes=self.max_batch_bytes(),
        )


def _written(key: ShareKey) -> str:
    """The key as FindCoordinator names it and as it is hashed."""
    return f"{key.group_id}:{urlsafe_b64encode(key.topic_id).decode().rstrip('=')}:{key.partition}"
