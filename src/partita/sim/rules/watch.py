"""Receives the reports of broker and clients, hands each event to the rules that judge it, and writes the history."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from partita.group.config import GroupConfig
from partita.group.contract import Record, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.hard_state import HardState
from partita.group.records.log_records import read_group_value
from partita.group.state.model import Group
from partita.group.state.topics import TopicImage
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.metadata import MetadataResponse
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.offset_fetch import OffsetFetchResponse
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.primitives import Structure
from partita.sim.rules.clients import ClientRules
from partita.sim.rules.departures import DepartureRules
from partita.sim.rules.epochs import EpochRules
from partita.sim.rules.groups import GroupRules
from partita.sim.rules.members import MemberRules
from partita.sim.rules.offsets import OffsetRules
from partita.sim.rules.rule import must
from partita.sim.rules.shares import ShareRules
from partita.sim.world.asked import Asked
from partita.sim.world.world import World

_COMPARE_EVERY = 16


class LogRules:
    """Replays what is appended beside the coordinator, whichever protocols its groups speak."""

    def __init__(self) -> None:
        self._mirror = HardState()
        self._appends = 0

    def appended(self, batch: bytes) -> None:
        """The log has one more batch."""
        self._mirror.replay_batch(batch)
        self._appends += 1

    def rests(self, coordinator: GroupCoordinator) -> None:
        """All that was decided is in the log."""
        if self._appends >= _COMPARE_EVERY:
            self._appends = 0
            self._compare(coordinator, "a replay of the log gives another state")

    def crashing(self, coordinator: GroupCoordinator) -> None:
        """The process of the broker dies now."""
        self._compare(coordinator, "a replay of everything appended gives another state than the one that dies")

    def loaded(self, coordinator: GroupCoordinator, batches: list[bytes]) -> None:
        """A coordinator has replayed the log, perhaps after the cleaner; `batches` are all that were kept."""
        self._mirror = HardState()
        for batch in batches:
            self._mirror.replay_batch(batch)
        self._compare(coordinator, "a compacted log gives another state")

    def _compare(self, coordinator: GroupCoordinator, otherwise: str) -> None:
        must(self._mirror == coordinator.hard_state, "S29", otherwise)


@dataclass(frozen=True, slots=True)
class Court:
    """Facts about a simulation that the rules need."""

    eager: bool
    """Do members of the classic protocol give everything up before they join again?"""
    is_classic: bool
    """Whether no member uses the consumer protocol."""
    is_uniform: bool = True
    """Does the coordinator's assignor make all shares even?"""


class Watch:
    """The rules of one simulation with one group of consumers.

    If any member uses the consumer protocol, the rules of KIP-848 groups apply, otherwise the rules of the classic
    protocol's generations.
    """

    def __init__(self, world: World, group_id: str, config: GroupConfig, court: Court) -> None:
        self._world = world
        self.group_id = group_id
        self._is_classic = court.is_classic
        self.log = LogRules()
        self.groups = GroupRules(group_id, eager=court.eager)
        self.epochs = EpochRules(group_id)
        interval_ms = config.group_consumer_assignment_interval_ms
        self.shares = ShareRules(group_id, interval_ms, is_uniform=court.is_uniform)
        self.departures = DepartureRules(group_id, config, world.stood_ms)
        self.offsets = OffsetRules(config.offsets_retention_ms, config.offset_metadata_max_bytes)
        self.members = MemberRules(group_id, config, world.stood_ms)
        self.clients = ClientRules(self._is_member, lambda member_id: self._entries[member_id])
        self._entries: Counter[str] = Counter()
        """How often each member was let into the group, in runs with the consumer protocol."""
        self._inside: frozenset[str] = frozenset()
        self._coordinator: GroupCoordinator | None = None
        self._open: dict[int, Asked] = {}
        self._sent: dict[str, int] = {}
        """For each classic member, the newest generation it has received."""
        self._counts: dict[str, dict[str, int]] = {}
        """Of each client, the partitions of topics by its own metadata."""

    def sees(self, image: TopicImage) -> None:
        """A life of the broker begins, whose topics these are."""
        self.shares.image = image

    @property
    def group(self) -> Group | None:
        """The group as the coordinator has it now."""
        return None if self._coordinator is None else self._coordinator.groups.get(self.group_id)

    @property
    def consumer_group(self) -> ConsumerGroup | None:
        """The group as the coordinator has it now, if it is a KIP-848 group."""
        return None if self._coordinator is None else self._coordinator.consumer_groups.get(self.group_id)

    @property
    def generation(self) -> int:
        """The generation of the group, or its epoch; 0 if there is no group."""
        group, consumers = self.group, self.consumer_group
        return consumers.epoch if consumers is not None else 0 if group is None else group.generation

    @property
    def stored_generation(self) -> int:
        """The generation of the classic group by its newest record; 0 if there is none."""
        stored = None if self._coordinator is None else self._coordinator.hard_state.groups.get(self.group_id)
        return 0 if stored is None else read_group_value(stored).generation

    @property
    def is_stable(self) -> bool:
        """Is the group in state Stable, of whichever protocol it is?"""
        return self._coordinator is not None and self._coordinator.state_of(self.group_id) == "Stable"

    def oldest_open(self) -> Asked | None:
        """The request that has waited longest for its answer."""
        return next(iter(self._open.values()), None)

    def _is_member(self, member_id: str) -> bool:
        """Whether the member is in the current generation; otherwise it is a zombie until it learns so."""
        consumers, group = self.consumer_group, self.group
        if consumers is not None:
            return member_id in consumers.members
        if group is None or member_id not in group.members:
            return False
        if self._is_classic:
            return self.groups.has_joined(member_id, group.generation)
        return self._sent.get(member_id) == group.generation

    # The broker's side

    def before(self, asked: Asked, coordinator: GroupCoordinator) -> None:
        """The broker is about to decide a group request."""
        self._coordinator = coordinator
        self._open[asked.number] = asked
        self.offsets.observe(coordinator, self._world.now.wall_ms)
        if self._is_classic:
            self.groups.before(asked, coordinator)
            self.members.before(asked, coordinator, self._world.now.mono_ms)
        else:
            self.departures.look(coordinator, asked)
            self.epochs.before(asked, coordinator)
            self.shares.before(asked)
        self.offsets.before(asked)

    def after(self, asked: Asked, coordinator: GroupCoordinator, step: Step) -> None:
        """The broker has decided a group request."""
        if self._is_classic:
            self.groups.after(asked, coordinator)
            self.members.decided(asked, step, coordinator, self._world.now.mono_ms)

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        must(not asked.is_answered, "S10", f"{type(asked.wire).__name__} is answered twice")
        asked.is_answered = True
        self._open.pop(asked.number, None)
        name = type(response).__name__
        error = getattr(response, "error_code", 0)
        if isinstance(response, JoinGroupResponse) and not error:
            self._sent[response.member_id] = response.generation_id
        self._world.saw("=", asked.client, f"{name} {int(error)}" if error else name)
        if self._is_classic:
            self.groups.answered(asked, response)
            self.members.answered(asked, response)
        else:
            self.epochs.answered(asked, response)
            self.shares.answered(asked, response)
            self.departures.answered(asked, response)
        self.offsets.answered(asked, response)

    def dropped(self) -> None:
        """A shard is over: every request that waited for it has its answer."""
        waiting = [f"{type(asked.wire).__name__} of {asked.client}" for asked in self._open.values()]
        must(not waiting, "S10", f"the shard is over, and there is no answer to {waiting}")

    def appended(self, records: tuple[Record, ...], coordinator: GroupCoordinator, cause: Asked | str | None) -> None:
        """Records were decided, to be appended: for a request, a deleted topic, or because something was due."""
        if self._is_classic:
            self.members.appended(records)
        else:
            self.shares.appended(records)
        self.offsets.appended(records, coordinator, self._world.now.wall_ms, cause)

    def topic_deleted(self, name: str) -> int:
        """A topic is deleted; return the number of this deletion."""
        return self.offsets.topic_deleted(name)

    def topic_forgotten(self, name: str, number: int) -> None:
        """The offsets of a deleted topic are durably gone."""
        self.offsets.topic_forgotten(name, number)

    def waking(self, coordinator: GroupCoordinator) -> None:
        """The broker is about to do what is due."""
        if self._is_classic:
            self.members.look(coordinator, self._world.now.mono_ms)
        else:
            self.departures.look(coordinator)
        self.offsets.observe(coordinator, self._world.now.wall_ms)

    def stepped(self, coordinator: GroupCoordinator) -> None:
        """The broker is between two steps."""
        if self._is_classic:
            self.groups.stepped(coordinator)
            self.members.stepped(coordinator, self._world.now.mono_ms)
        else:
            inside = frozenset(known.member_id for known in coordinator.members_of(self.group_id))
            self._entries.update(inside - self._inside)
            self._inside = inside
            self.epochs.stepped(coordinator)
            self.shares.stepped(coordinator, self._world.now.wall_ms)
            self.departures.stepped(coordinator, self._world.now.mono_ms)

    def did_what_was_due(self, coordinator: GroupCoordinator, step: Step) -> None:
        """The broker has done what was due."""
        if self._is_classic:
            self.members.decided(None, step, coordinator, self._world.now.mono_ms)

    def crashing(self, coordinator: GroupCoordinator, *, all_durable: bool, is_loaded: bool) -> None:
        """The process of the broker dies now."""
        self._open.clear()
        self.offsets.crashed()
        if is_loaded:
            self.log.crashing(coordinator)
        if self._is_classic:
            self.groups.crashing(coordinator, all_durable=all_durable)

    def loaded(self, coordinator: GroupCoordinator, batches: list[bytes], *, is_orderly: bool) -> None:
        """A coordinator has replayed the log; `is_orderly`: the one before was unloaded in order."""
        self._coordinator = coordinator
        self.log.loaded(coordinator, batches)
        self.offsets.loaded(coordinator)
        if self._is_classic:
            self.groups.loaded(coordinator)
            self.members.loaded(coordinator, self._world.now.mono_ms, is_orderly=is_orderly)
        else:
            self.epochs.loaded(coordinator)
            self.shares.loaded()
            self.departures.loaded(coordinator, self._world.now.mono_ms, is_orderly=is_orderly)

    # The clients' side

    def sent(self, client: str, message: Any, version: int) -> None:
        """A client sends a request."""
        detail = ""
        if isinstance(message, OffsetCommitRequest):
            self.clients.commit_sent(client, message)
            offsets = [(t.name, p.partition_index, p.committed_offset) for t in message.topics for p in t.partitions]
            detail = f" generation {message.generation_id_or_member_epoch} {offsets}"
        elif isinstance(message, ConsumerGroupHeartbeatRequest):
            detail = f" epoch {message.member_epoch}"
            self.shares.sent(message, self.clients.owned_by(client))
        elif hasattr(message, "generation_id"):
            detail = f" generation {message.generation_id}"
        if isinstance(message, SyncGroupRequest) and message.assignments:
            self.groups.assigns(message, self._counts.get(client, {}))
        self._world.saw(">", client, f"{type(message).__name__} v{version}{detail}")

    def arrived(self, client: str, response: Any) -> None:
        """A client has received a response."""
        self._world.saw("<", client, type(response).__name__)
        if isinstance(response, MetadataResponse):
            counts = self._counts.setdefault(client, {})
            counts.update((topic.name or "", len(topic.partitions)) for topic in response.topics)
        elif isinstance(response, OffsetFetchResponse) and response.groups:
            for topic in response.groups[0].topics:
                for p in topic.partitions:
                    if p.error_code == 0 and response.groups[0].error_code == 0:
                        self.clients.fetched_offset(client, (topic.name, p.partition_index), p.committed_offset)
