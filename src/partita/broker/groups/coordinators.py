"""All coordinator shards of the process: one runner per led partition of `__consumer_offsets`.

Finds the shard of a group, and passes on events for all of them: topics deleted, settings changed. (Kafka:
GroupCoordinatorService.)
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from partita.assignors.interface import Assignor
from partita.broker.groups.handovers import decode_handovers, encode_handovers
from partita.broker.groups.jobs import Jobs
from partita.broker.groups.lost_tails import LostTails
from partita.broker.groups.runner import ForConsumerGroups, ShardRunner
from partita.broker.groups.settings import Setting, all_settings, change
from partita.broker.shard_leadership import ShardLeadership
from partita.broker.topics.catalogue import OFFSETS_TOPIC, Partition
from partita.group.config import GroupConfig
from partita.group.contract import NO_HANDOVER, GroupRequest, Handover
from partita.group.guards import first_check, not_here
from partita.group.state.answers import refusal
from partita.group.state.topics import TopicFacts
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Structure

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.nodes import Cluster
    from partita.broker.topics.catalogue import TopicCatalogue


class CatalogueImage:
    """A `partita.group.state.shard.TopicImage` over the catalogue; it counts its changes."""

    def __init__(self, catalogue: TopicCatalogue, config: BrokerConfig) -> None:
        self._catalogue = catalogue
        self._config = config
        self.version = 0
        catalogue.on_created(lambda topic: self._changed())
        catalogue.on_deleted(lambda topics: self._changed())

    def _changed(self) -> None:
        self.version += 1

    def get(self, name: str) -> TopicFacts | None:
        """The topic with this name."""
        topic = self._catalogue.get(name)
        if topic is None:
            return None
        rack = self._config.get("broker.rack")
        racks = [[str(rack)]] * len(topic.partitions) if rack is not None else ()
        return TopicFacts(topic.topic_id, len(topic.partitions), racks)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""
        return self._catalogue.name_of(topic_id)

    def names(self) -> Iterable[str]:
        """Every topic's name."""
        return tuple(self._catalogue.by_name)


log = logging.getLogger("partita.broker")

REMEMBERED_GROUPS_MAX = 100_000


class Asker(Protocol):
    """The sender of a request about a group, its version, and the node it asks."""

    @property
    def node_id(self) -> int: ...

    version: int
    client_id: str
    client_host: str


class Coordinators(ShardLeadership[ShardRunner, GroupConfig]):
    """Runners by partition index; `runner_of` finds the one of a group."""

    topic_name = OFFSETS_TOPIC

    def __init__(
        self, cluster: Cluster, assignors: Mapping[str, Assignor], states: Callable[[Message], Awaitable[object]]
    ) -> None:
        """`states` asks the share coordinator."""
        super().__init__(cluster)
        self._consumer_groups = ForConsumerGroups(
            CatalogueImage(cluster.catalogue, cluster.config),
            assignors,
            Jobs(cluster.loop),
            all_settings(cluster.catalogue),
            states,
        )
        self.new_runner: Callable[..., ShardRunner] = ShardRunner
        self.by_group: dict[str, ShardRunner] = {}
        self._first_handover = None if cluster.store.unclean else NO_HANDOVER
        """For shards without a leader since the start, unless the last process left a handover for them."""
        self._handovers: dict[int, Handover | None] = {}
        """The handover of each shard that ended, for its next leader."""
        self._take_handovers()
        self._lost_tails = LostTails(cluster)
        self._unforgotten: dict[str, set[int]] = {}
        """Deleted topics, and the partitions whose shards have not durably forgotten their offsets."""
        self._waiting: list[tuple[frozenset[str], asyncio.Future[None]]] = []
        if cluster.catalogue.unforgotten:
            # A crash came between a deletion and its tombstones.
            self.topics_deleted(sorted(cluster.catalogue.unforgotten))

    def new_member_id(self, prefix: str) -> str:
        """A member id never given before: "<prefix>-<uuid>"."""
        digits = os.urandom(16).hex()  # a UUID of version 4, without an object for it
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{prefix}-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def resign_all(self) -> None:
        """The offsets topic is gone, or the process stops: what shards leave is kept for the next start."""
        super().resign_all()
        self.cluster.store.handover = encode_handovers(self._handovers)

    def runner_of(self, group_id: str) -> ShardRunner | None:
        """Return the group's shard, on any node; None while it has no leader."""
        runner = self.by_group.get(group_id)
        if runner is not None:
            return runner
        runner = super().runner_of(group_id)
        if runner is not None:
            if len(self.by_group) >= REMEMBERED_GROUPS_MAX:
                self.by_group.clear()
            self.by_group[group_id] = runner
        return runner

    def ask(
        self,
        asker: Asker,
        message: Structure,
        group_id: str,
        *,
        transaction_open: bool = True,
        may_see: Callable[[str], bool] | None = None,
    ) -> Any:
        """Answer a request about one group, from the node it came to.

        Gives the answer, of the class that goes with the request's, or a future of it where it has to wait. `may_see`
        says which topics a regular expression may match.
        """
        request = GroupRequest(message, asker.version, asker.client_id, asker.client_host, transaction_open, may_see)
        if not self.cluster.is_running:
            return refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        runner = self.by_group.get(group_id)
        if runner is None:
            runner = self.runner_of(group_id)
        if runner is not None and runner.node_id == asker.node_id:
            return runner.decide(request)
        return first_check(request, self.settings) or not_here(request)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Remove the committed offsets of topics that are gone; of shards that are not loaded, once they are."""
        offsets = self.cluster.catalogue.get(OFFSETS_TOPIC)
        indexes = range(0 if offsets is None else len(offsets.partitions))
        for name in names:
            self._unforgotten[name] = set(indexes)
        for runner in list(self.runners.values()):
            runner.forget_topics(names)
        self._settle_forgotten()

    def forgotten(self, names: Collection[str]) -> asyncio.Future[None] | None:
        """Return a future that ends once no shard's log restores offsets of these topics; None if so already."""
        if not any(name in self._unforgotten for name in names):
            return None
        waiting: asyncio.Future[None] = self.cluster.loop.create_future()
        self._waiting.append((frozenset(names), waiting))
        return waiting

    def _shard_has_forgotten(self, index: int, names: set[str]) -> None:
        for name in names:
            self._unforgotten.get(name, set()).discard(index)
        self._settle_forgotten()

    def _settle_forgotten(self) -> None:
        forgotten = [name for name, left in self._unforgotten.items() if not left]
        for name in forgotten:
            del self._unforgotten[name]
        self.cluster.catalogue.offsets_forgotten(forgotten)
        for names, waiting in self._waiting:
            if not waiting.done() and not any(name in self._unforgotten for name in names):
                waiting.set_result(None)
        self._waiting = [entry for entry in self._waiting if not entry[1].done()]

    def group_configured(self, group_id: str, settings: Mapping[str, Setting]) -> None:
        """Give a group settings of its own, instead of those it has. Raises StorageError."""
        change(self.cluster.catalogue, group_id, settings)
        self._consumer_groups = self._consumer_groups._replace(settings=all_settings(self.cluster.catalogue))
        for runner in self.runners.values():
            runner.set_consumer_groups(self._consumer_groups)

    def _take_handovers(self) -> None:
        """Read the last process's handovers. An unreadable file counts as an unclean stop."""
        store = self.cluster.store
        content, store.handover = store.handover, None
        if content is not None:
            try:
                self._handovers = decode_handovers(content)
            except ValueError as error:
                log.warning("what the coordinators left at the last stop cannot be read: %s", error)
                self._first_handover = None

    def load_shard(self, partition: Partition, *, is_held: bool) -> None:
        """Load the shard with its last leader's handover, if there is one."""
        runner = self.runners[partition.index] = self.new_runner(
            self.cluster,
            partition,
            self.settings,
            self.new_member_id,
            lost_tails=self._lost_tails,
            groups_held=self._groups_held,
            consumer_groups=self._consumer_groups,
        )
        runner.deleted_topics = {name for name, left in self._unforgotten.items() if partition.index in left}
        runner.on_forgotten = self._shard_has_forgotten
        self.by_group.clear()
        handover = self._handovers.pop(partition.index, self._first_handover)
        if is_held:
            runner.hold(handover)
        else:
            runner.load(handover)

    def end_shard(self, runner: ShardRunner) -> None:
        """Resign, and keep the handover for the shard's next leader."""
        self.by_group.clear()
        self._handovers[runner.partition.index] = runner.resign()

    def _groups_held(self) -> int:
        return sum(runner.coordinator.groups_count for runner in self.runners.values())

    def read_settings(self) -> GroupConfig:
        """Return the settings of the groups: the broker's, and the offsets topic's settings for its batches."""
        return replace(GroupConfig.from_options(self.cluster.config), max_message_bytes=self.max_batch_bytes())
