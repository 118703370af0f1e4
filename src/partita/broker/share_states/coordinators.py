"""All shards of the share coordinator in the process: one runner per led partition of `__share_group_state`.

Finds the shard of a share partition, and is the persister of the leaders of partitions and of the group coordinator,
which run in the same process. (Kafka: ShareCoordinatorService, DefaultStatePersister.)
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from partita.broker.shard_leadership import ShardLeadership
from partita.broker.share_states.runner import StateRunner, StateSettings
from partita.broker.topics.catalogue import SHARE_STATE_TOPIC, Partition, Topic
from partita.group import partition_for
from partita.protocol.error_codes import ErrorCode
from partita.share.coordinator.coordinator import ShareConfig
from partita.share.coordinator.model import ShareKey
from partita.share.coordinator.requests import Outcome, StateRequest
from partita.share.coordinator.wire import merge, split

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
    )
    from partita.protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
    )
    from partita.protocol.messages.read_share_group_state import (
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
    )
    from partita.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
    )
    from partita.protocol.messages.write_share_group_state import (
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
    )
    from partita.protocol.primitives import Message


class ShareStates(ShardLeadership[StateRunner]):
    """Runners by partition index. As `partita.broker.share.persister.Persister` it is asked by the process itself."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.settings = self._read_settings()
        cluster.config.on_change(lambda name: self.settings_changed())
        cluster.catalogue.on_configured(self._topic_configured)

    def partition_of(self, key: str) -> Partition | None:
        """The partition of `__share_group_state` that a key "group:topicId:partition" hashes to.

        None while the topic is missing.
        """
        topic = self.cluster.catalogue.get(SHARE_STATE_TOPIC)
        return None if topic is None else topic.partitions[partition_for(key, len(topic.partitions))]

    def ask(self, request: StateRequest, node_id: int | None = None) -> Outcome | asyncio.Future[Outcome]:
        """Answer a request about one share partition that came to this node (None: to any, from the process itself)."""
        if not self.cluster.is_running:
            return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if node_id is None:
            self.cluster.ensure_share_state_topic()
        partition = self.partition_of(_written(request.key))
        runner = None if partition is None else self.runners.get(partition.index)
        if runner is None or node_id not in (None, runner.node_id):
            return Outcome(ErrorCode.NOT_COORDINATOR)
        return runner.decide(request)

    # -- the persister ---------------------------------------------------------------------------------------------

    async def initialize(self, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
        """Begin the state of share partitions, or begin it anew."""
        response: InitializeShareGroupStateResponse = await self.answer(request)
        return response

    async def read(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        """Return the stored state; a newer leader epoch is stored with it."""
        response: ReadShareGroupStateResponse = await self.answer(request)
        return response

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        """Merge new state into what is stored."""
        response: WriteShareGroupStateResponse = await self.answer(request)
        return response

    async def delete(self, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
        """Forget the state of share partitions."""
        response: DeleteShareGroupStateResponse = await self.answer(request)
        return response

    async def summarize(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
        """Return where share partitions stand, without their batches."""
        response: ReadShareGroupStateSummaryResponse = await self.answer(request)
        return response

    async def answer(self, message: Message) -> Any:
        """Return the response to any of the five requests, once all of it is durable."""
        asked = [self.ask(request) for request in split(message) if request is not None]
        return merge(message, [one if isinstance(one, Outcome) else await one for one in asked])

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

    def settings_changed(self) -> None:
        """Read the settings again, and let every shard go on with them."""
        self.settings = self._read_settings()
        for runner in self.runners.values():
            runner.configure(self.settings)

    def _topic_configured(self, topic: Topic) -> None:
        if topic.name == SHARE_STATE_TOPIC:
            self.settings_changed()

    def _read_settings(self) -> StateSettings:
        config = self.cluster.config
        topic = self.cluster.catalogue.get(SHARE_STATE_TOPIC)
        max_bytes = config.int("message.max.bytes") if topic is None else topic.config.int("max.message.bytes")
        return StateSettings(
            ShareConfig(
                updates_per_snapshot=config.int("share.coordinator.snapshot.update.records.per.snapshot"),
                cold_snapshot_ms=config.int("share.coordinator.cold.partition.snapshot.interval.ms"),
            ),
            prune_ms=config.int("share.coordinator.state.topic.prune.interval.ms"),
            codec=config.int("share.coordinator.state.topic.compression.codec"),
            max_message_bytes=max_bytes,
        )


def _written(key: ShareKey) -> str:
    """The key as FindCoordinator names it and as it is hashed."""
    return f"{key.group_id}:{urlsafe_b64encode(key.topic_id).decode().rstrip('=')}:{key.partition}"
