"""The broker of a simulation: one coordinator shard with its reply gate over a simulated log, and some topics.

Wire codec, coordinator, reply gate and replay are the real ones. What `partita.broker.groups.runner` does with tasks
and a disk is done here with events and a `GroupLog`: append, hold replies until durable, drop and replay the shard when
an append fails, die and come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from partita.assignors.server_side import RangeOnServer
from partita.assignors.uniform import UniformAssignor
from partita.broker.groups.reply_gate import ReplyGate, refuse, release
from partita.group.config import GroupConfig
from partita.group.contract import NO_HANDOVER, GroupRequest, Handover, Job, Reply, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.notes import Note
from partita.group.refusals import first_check, not_here, refusal, while_loading
from partita.group.requests import DeleteGroup, FetchOffsets
from partita.group.wire import merge_offset_fetch, split_offset_fetch
from partita.protocol.api_table import APIS
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import encode_response, read_request_header
from partita.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from partita.protocol.messages.fetch import FetchRequest
from partita.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.list_offsets import ListOffsetsRequest
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.offset_fetch import OffsetFetchRequest
from partita.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from partita.protocol.primitives import ZERO_UUID, Structure
from partita.sim.broker.asked import Asked, Forgotten
from partita.sim.broker.group_log import AppendFailed, GroupLog
from partita.sim.broker.topics import HOST, NODE_ID, PORT, Topics
from partita.sim.rules.watch import Watch
from partita.sim.world.network import Link, Network
from partita.sim.world.world import World

COMMIT_TIMEOUT_MS = 5_000
_COMMIT_BY_ID_FROM = 10


class Broker:
    """Faults crash it, move its shard, or make an append of its `log` fail; `watch` hears of every decision.

    With `solve_ms`, assignors of KIP-848 groups run beside the event loop and take so long at most.
    """

    def __init__(
        self, world: World, network: Network, topics: Topics, config: GroupConfig, watch: Watch, *, solve_ms: int = 0
    ) -> None:
        self._world = world
        self._network = network
        self._config = config
        self._watch = watch
        self._solve_ms = solve_ms
        self.topics = topics
        self.log = GroupLog(world)
        self.log.on_durable = self._release_durable
        self.is_up = True
        self.is_loading = False
        self.load_ms = (0, 0)
        self.cleans = False
        self.on_notes: Callable[[tuple[Note, ...]], None] = lambda notes: None
        """Hears what the coordinator tells of each step that was appended."""
        self._gate = ReplyGate()
        self._armed_ms = -1
        self._life = 0
        self._requests = 0
        self._deleted: dict[str, int] = {}
        """Topics whose offsets are not durably forgotten, and the numbers of these writes in the rules."""
        self.coordinator = self._new_coordinator()
        network.listener = self
        self._load(clean=True)

    # Requests

    def receive(self, link: Link, frame: bytes) -> None:
        """A request frame has come in."""
        api_key, version, correlation_id, client_id, reader = read_request_header(frame)
        wire = APIS[api_key].request.read(reader, version)
        self._requests += 1
        asked = Asked(
            number=self._requests,
            link=link,
            api_key=api_key,
            version=version,
            correlation_id=correlation_id,
            wire=wire,
            asked_ms=self._world.now.mono_ms,
            send=self.answer,
        )
        link.heard.append(asked)
        match wire:
            case MetadataRequest():
                asked.answer(self.topics.metadata(wire))
            case FindCoordinatorRequest():
                asked.answer(_coordinator(wire))
            case FetchRequest():
                self.topics.fetch(wire, asked.answer)
            case ListOffsetsRequest():
                asked.answer(self.topics.list_offsets(wire))
            case OffsetForLeaderEpochRequest():
                asked.answer(self.topics.epoch_ends(wire))
            case _:
                self._to_group(asked, client_id or "")

    def _to_group(self, asked: Asked, client_id: str) -> None:
        message = asked.wire
        if isinstance(message, OffsetFetchRequest):
            (message,) = split_offset_fetch(message, asked.version)
            asked_topics: Sequence[Any] = message.group.topics or []
        elif isinstance(message, DeleteGroupsRequest):
            message, asked_topics = DeleteGroup(message.groups_names[0]), []
        else:
            asked_topics = message.topics if isinstance(message, OffsetCommitRequest) else []
        if isinstance(message, OffsetCommitRequest) and asked.version >= _COMMIT_BY_ID_FROM:
            names = self.topics.names()
            for topic in message.topics:
                topic.name = names.get(topic.topic_id, "")
        for topic in asked_topics:
            topic.topic_id = self.topics.ids.get(topic.name, ZERO_UUID)
        request = asked.request = GroupRequest(message, asked.version, client_id, f"/{asked.link.caller.name}")
        if self.is_loading:
            asked.answer(first_check(request, self._config) or while_loading(request))
            return
        if isinstance(message, OffsetCommitRequest) and any(topic.name in self._deleted for topic in message.topics):
            asked.answer(refusal(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            return
        self._watch.before(asked, self.coordinator)
        step = self.coordinator.handle(asked, request, self._world.now)
        self._watch.after(asked, self.coordinator, step)
        if not isinstance(message, HeartbeatRequest | OffsetCommitRequest | FetchOffsets):
            self._watch.stepped(self.coordinator)
        self._take(step, asked)

    def delete_topic(self, name: str) -> None:
        """Forget every offset of a topic; commits of it are refused until that is durable."""
        if self.is_up and not self.is_loading and name not in self._deleted:
            self._world.saw("*", "broker", f"topic {name} is deleted")
            self._deleted[name] = self._watch.offsets.topic_deleted(name)
            self._forget(name)

    def _forget(self, name: str) -> None:
        step = self.coordinator.on_topics_deleted((name,), self._world.now)
        forgotten = Forgotten(name, self._forgotten)
        self._take(step._replace(replies=(*step.replies, Reply(forgotten, forgotten.message))), name)

    def _forgotten(self, name: str) -> None:
        self._watch.offsets.topic_forgotten(name, self._deleted.pop(name))

    def answer(self, asked: Asked, response: Structure) -> None:
        """Send the answer, after those to earlier requests of the same connection."""
        self._watch.answered(asked, response)
        if isinstance(asked.wire, OffsetFetchRequest):
            response = merge_offset_fetch(asked.wire, [response], asked.version)  # type: ignore[list-item]  # the answer to an OffsetFetch
        elif isinstance(response, DeletableGroupResult):
            response = DeleteGroupsResponse(results=[response])
        link = asked.link
        asked.frame = b"".join(encode_response(asked.api_key, asked.version, asked.correlation_id, response))[4:]  # type: ignore[arg-type]  # what a coordinator answers can be encoded
        while link.heard and link.heard[0].frame is not None:  # type: ignore[attr-defined]  # a link of this network
            done = link.heard.pop(0)
            if link.is_served:
                self._network.reply(link, done.frame)  # type: ignore[attr-defined]  # a link of this network

    def closed(self, link: Link) -> None:
        """A connection is gone; what it asked is decided all the same."""

    # Steps

    def _take(self, step: Step, cause: Asked | str | None = None) -> None:
        """Do what a step says; `cause` is the request or the deleted topic that led to it."""
        assert step.marker is None, "nobody sends transactions here"
        if step.records:
            try:
                self.log.append(step.records, self._world.now.wall_ms)
            except AppendFailed:
                self._world.saw("*", "broker", "append failed")
                self._fail(step)
                return
            self._world.saw("+", "broker", f"{len(step.records)} records")
            self._watch.appended(step.records, cause)
            self._gate.add(self.log.end, step, self._world.now.mono_ms + COMMIT_TIMEOUT_MS)
            self._gate.release(self.log.durable)
        elif self._gate:
            self._gate.add(self._gate.last_offset(), step, self._world.now.mono_ms + COMMIT_TIMEOUT_MS)
        else:
            release(step)
        for job in step.jobs:
            self._world.after(self._world.dice.between(0, self._solve_ms), self._job_done, self._life, job, job.run())
        self.on_notes(step.notes)
        self._arm()

    def _job_done(self, life: int, job: Job, outcome: object) -> None:
        """What a job has come to, unless its shard is over."""
        if life == self._life and self.is_up and not self.is_loading:
            self._watch.waking(self.coordinator)
            step = self.coordinator.job_done(job, outcome, self._world.now)
            self._watch.stepped(self.coordinator)
            self._take(step)

    def _release_durable(self) -> None:
        self._gate.release(self.log.durable)

    def _fail(self, step: Step) -> None:
        """The shard is over: everybody who waits looks for the coordinator again; the log is replayed."""
        self._gate.drop()
        refuse(step, not_here)
        release(self.coordinator.unload())
        self._start_load(clean=False)

    def move(self) -> None:
        """The shard is unloaded in order and loaded again, as when its leader moves."""
        if not self.is_up or self.is_loading:
            return
        self._world.saw("*", "broker", "unload")
        self.log.leader_epoch += 1
        handover = self.coordinator.handover(self._world.now)
        self._gate.drop()
        release(self.coordinator.unload())
        self._start_load(clean=True, handover=handover)

    def crash(self, down_ms: int) -> None:
        """The process dies: nobody is told, connections break, the log loses what was not durable."""
        if not self.is_up:
            return
        self.is_up = False
        self._gate = ReplyGate()
        self.topics.forget_waiting()
        all_durable = not self.is_loading and self.log.durable == self.log.end
        self._watch.crashing(self.coordinator, all_durable=all_durable, is_loaded=not self.is_loading)
        lost = self.log.crash()
        self._world.saw("*", "broker", f"crash, {lost} batches lost")
        for link in list(self._network.links):
            link.heard.clear()
            self._network.close_by_broker(link)
        self._life += 1
        self._world.after(down_ms, self._restart, self._life)

    def _restart(self, life: int) -> None:
        if life == self._life:
            self.is_up = True
            self.log.leader_epoch += 1
            self._start_load(clean=False)

    # Loading

    def _start_load(self, *, clean: bool, handover: Handover = NO_HANDOVER) -> None:
        self.is_loading = True
        self._life += 1
        delay = self._world.dice.between(*self.load_ms)
        self._world.after(delay, self._finish_load, self._life, clean, handover)

    def _finish_load(self, life: int, clean: bool, handover: Handover) -> None:
        if life == self._life and self.is_up:
            self._load(clean=clean, handover=handover)

    def _load(self, *, clean: bool, handover: Handover = NO_HANDOVER) -> None:
        self.is_loading = False
        self.coordinator = self._new_coordinator()
        batches = self.log.batches
        if self.cleans and batches:
            batches = self.log.cleaned(self._world.dice.between(0, len(batches)))
        for batch in batches:
            self.coordinator.replay_batch(batch)
        step = self.coordinator.resume(self._world.now, handover, clean=clean)
        self._world.saw("*", "broker", f"loaded {len(batches)} batches")
        self._watch.loaded(self.coordinator, self.log.batches, is_orderly=clean)
        if self.log.durable < self.log.end:
            self._gate.add(self.log.end, Step(), self._world.now.mono_ms + COMMIT_TIMEOUT_MS)
        self._take(step)
        for name in list(self._deleted):
            if not self.is_loading:
                self._forget(name)

    def _new_coordinator(self) -> GroupCoordinator:
        known = (UniformBeside(), RangeBeside()) if self._solve_ms else (UniformAssignor(), RangeOnServer())
        assignors = {assignor.name: assignor for assignor in known}
        chosen = {name: assignors[name] for name in self._config.group_consumer_assignors}
        return GroupCoordinator(self._config, self._new_member_id, topics=self.topics.image, assignors=chosen)

    def _new_member_id(self, prefix: str) -> str:
        bits = self._world.dice.bits
        return f"{prefix}-{bits(32):08x}{bits(32):08x}"

    # Time

    def _arm(self) -> None:
        due, gate_due = self.coordinator.next_deadline_ms(), self._gate.next_due_ms()
        if due is None or (gate_due is not None and gate_due < due):
            due = gate_due
        now = self._world.now.mono_ms
        if due is not None and not now <= self._armed_ms <= due:
            self._armed_ms = max(due, now)
            self._world.at(self._armed_ms, self._wake, self._armed_ms)

    def _wake(self, armed_ms: int) -> None:
        if armed_ms != self._armed_ms:
            return
        self._armed_ms = -1
        if not self.is_up or self.is_loading:
            return
        now = self._world.now
        self._gate.expire(now.mono_ms)
        while not self.is_loading and (due := self.coordinator.next_deadline_ms()) is not None and due <= now.mono_ms:
            self._watch.waking(self.coordinator)
            step = self.coordinator.on_deadline(now)
            self._watch.did_what_was_due(self.coordinator, step)
            self._watch.stepped(self.coordinator)
            self._take(step)
        if not self.is_loading:
            self._arm()


class UniformBeside(UniformAssignor):
    """As if a user had written it: an assignor that is not ours is not run on the event loop."""


class RangeBeside(RangeOnServer):
    """The other one of Kafka's, in the same way."""


def _coordinator(wire: FindCoordinatorRequest) -> FindCoordinatorResponse:
    key = wire.key or (wire.coordinator_keys[0] if wire.coordinator_keys else "")
    found = Coordinator(key=key, node_id=NODE_ID, host=HOST, port=PORT)
    return FindCoordinatorResponse(coordinators=[found], node_id=NODE_ID, host=HOST, port=PORT)
