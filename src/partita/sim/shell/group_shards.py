"""The broker's own shards of groups, watched: the rules see each decision, answer, load and batch of the log.

Only what runs beside the event loop, member ids and the settings come from the simulation. A rule that breaks is kept
until the turn of the loop is over, since the broker would take the exception for one of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol

from partita.assignors.interface import Assignor
from partita.broker.groups.coordinators import Coordinators
from partita.broker.groups.jobs import Jobs
from partita.broker.groups.runner import ShardRunner
from partita.broker.nodes import Cluster
from partita.broker.shard_life import State
from partita.broker.topics.catalogue import Partition
from partita.group.config import GroupConfig
from partita.group.contract import NO_HANDOVER, GroupRequest, Handover, Job, Record, Step, Token
from partita.group.coordinator import GroupCoordinator
from partita.group.notes import Note
from partita.group.offsets.clamp import Beyond
from partita.group.requests import FetchOffsets
from partita.group.state.topics import TopicImage
from partita.group.state.topology import Fit
from partita.now import Now
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.primitives import Message, Structure
from partita.records.header import iter_batches
from partita.sim.rules.watch import LogRules
from partita.sim.world.asked import Asked
from partita.sim.world.world import World

_READ_BYTES = 1 << 24
_CHANGE_NO_MEMBERS = (HeartbeatRequest, OffsetCommitRequest, FetchOffsets)


class Rules(Protocol):
    """The rules of a simulation of groups (`partita.sim.rules.watch.Watch`, `partita.sim.streams.watch.Watch`)."""

    log: LogRules

    def sees(self, image: TopicImage) -> None:
        """A life of the broker begins, whose topics these are."""

    def before(self, asked: Asked, coordinator: GroupCoordinator) -> None:
        """The broker is about to decide a group request."""

    def after(self, asked: Asked, coordinator: GroupCoordinator, step: Step) -> None:
        """The broker has decided a group request."""

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""

    def appended(self, records: tuple[Record, ...], coordinator: GroupCoordinator, cause: Asked | str | None) -> None:
        """Records were decided, to be appended: for a request, a deleted topic, or because something was due."""

    def waking(self, coordinator: GroupCoordinator) -> None:
        """The broker is about to do what is due."""

    def did_what_was_due(self, coordinator: GroupCoordinator, step: Step) -> None:
        """The broker has done what was due."""

    def stepped(self, coordinator: GroupCoordinator) -> None:
        """The broker is between two steps."""

    def crashing(self, coordinator: GroupCoordinator, *, all_durable: bool, is_loaded: bool) -> None:
        """The process of the broker dies now."""

    def loaded(self, coordinator: GroupCoordinator, batches: list[bytes], *, is_orderly: bool) -> None:
        """A coordinator has replayed the log; `is_orderly`: the one before was unloaded in order."""

    def dropped(self) -> None:
        """A shard is over: every request that waited for it has its answer."""

    def topic_deleted(self, name: str) -> int:
        """A topic is deleted; return the number of this deletion."""

    def topic_forgotten(self, name: str, number: int) -> None:
        """The offsets of a deleted topic are durably gone."""


class Recorder:
    """Shows the rules what the shards do, in every life of the broker. `solve_ms` is how long a job takes at most."""

    def __init__(
        self, world: World, watch: Rules, config: GroupConfig, assignors: Mapping[str, Assignor], *, solve_ms: int
    ) -> None:
        self.world = world
        self.watch = watch
        self.config = config
        self.assignors = assignors
        self.solve_ms = solve_ms
        self.batches: list[tuple[int, bytes]] = []
        """The log of the groups before any compaction: the offset after each batch, and the batch."""
        self.on_notes: Callable[[tuple[Note, ...]], None] = lambda notes: None
        """Called with the notes of each decision."""
        self._end = 0
        self._broken: Exception | None = None
        self._requests = 0
        self._deleted: dict[str, int] = {}
        """Topics whose offsets are not durably forgotten, and the numbers of these writes in the rules."""

    def judge(self, rule: Callable[..., None], *about: Any, **more: Any) -> None:
        """Let a rule look; keep it if it breaks."""
        if self._broken is None:
            try:
                rule(*about, **more)
            except Exception as error:
                self._broken = error

    def raise_broken(self) -> None:
        """Raise what broke, outside of the broker's code."""
        if self._broken is not None:
            raise self._broken

    def ask(self, call: Token, request: GroupRequest) -> Asked:
        """A request that is about to be decided."""
        self._requests += 1
        return Asked(self._requests, request, self.world.now.mono_ms, self._answered, call)  # type: ignore[arg-type]  # tokens are calls of the runner

    def _answered(self, asked: Asked, response: Structure) -> None:
        self.judge(self.watch.answered, asked, response)

    def decided(self, step: Step, coordinator: GroupCoordinator, cause: Asked | str | None = None) -> Step:
        """A coordinator has decided: for a request, for a topic that is gone, or because something was due."""
        if step.records:
            self.world.saw("+", "broker", f"{len(step.records)} records")
            self.judge(self.watch.appended, step.records, coordinator, cause)
        self.on_notes(step.notes)
        return step

    def read(self, partition: Partition) -> None:
        """Follow the log: batches that came, and batches that a crash has taken."""
        opened = partition.opened_log
        end = 0 if opened is None else opened.log_end_offset
        if opened is None or end == self._end:
            return
        self._end = end
        while self.batches and self.batches[-1][0] > end:
            self.batches.pop()
        offset = self.batches[-1][0] if self.batches else 0
        while offset < end:
            for header, batch in iter_batches(opened.read(offset, _READ_BYTES, up_to=end)):
                if header.base_offset >= offset:
                    self.batches.append((header.next_offset, bytes(batch)))
                    self.judge(self.watch.log.appended, self.batches[-1][1])
                    offset = header.next_offset

    def deleted(self, name: str) -> None:
        """A topic is deleted, perhaps again before the offsets of the last one with its name are forgotten."""
        self.world.saw("*", "broker", f"topic {name} is deleted")
        self._deleted[name] = self.watch.topic_deleted(name)

    def forgotten(self, name: str) -> None:
        """The offsets of a deleted topic are durably gone."""
        if name in self._deleted:
            self.judge(self.watch.topic_forgotten, name, self._deleted.pop(name))


class WatchedCoordinator(GroupCoordinator):
    """Reports each input and its step. `recorder` is set by its runner."""

    recorder: Recorder

    def handle(self, token: Token, request: GroupRequest, now: Now) -> Step:
        """Answer a request."""
        recorder, watch = self.recorder, self.recorder.watch
        asked = recorder.ask(token, request)
        recorder.judge(watch.before, asked, self)
        step = super().handle(asked, request, now)
        recorder.judge(watch.after, asked, self, step)
        if not isinstance(request.message, _CHANGE_NO_MEMBERS):
            recorder.judge(watch.stepped, self)
        return recorder.decided(step, self, asked)

    def on_deadline(self, now: Now) -> Step:
        """Do something that is due."""
        recorder, watch = self.recorder, self.recorder.watch
        recorder.judge(watch.waking, self)
        step = super().on_deadline(now)
        recorder.judge(watch.did_what_was_due, self, step)
        recorder.judge(watch.stepped, self)
        return recorder.decided(step, self)

    def job_done(self, job: Job, outcome: object, now: Now) -> Step:
        """Take the outcome of a job."""
        recorder, watch = self.recorder, self.recorder.watch
        recorder.judge(watch.waking, self)
        step = super().job_done(job, outcome, now)
        recorder.judge(watch.stepped, self)
        return recorder.decided(step, self)

    def on_topics_deleted(self, names: Collection[str], now: Now) -> Step:
        """Forget the offsets of topics."""
        return self.recorder.decided(super().on_topics_deleted(names, now), self, "topics deleted")

    def clamp_offset(self, found: Beyond, now: Now) -> Step:
        """Lower an offset beyond the end of its log."""
        return self.recorder.decided(super().clamp_offset(found, now), self, "a lost tail")

    def resume(self, now: Now, handover: Handover = NO_HANDOVER, *, clean: bool = True) -> Step:
        """End the load."""
        recorder = self.recorder
        step = super().resume(now, handover, clean=clean)
        batches = [batch for _, batch in recorder.batches]
        recorder.world.saw("*", "broker", f"loaded {len(batches)} batches")
        recorder.judge(recorder.watch.loaded, self, batches, is_orderly=clean)
        return recorder.decided(step, self)

    def streams_fit(self, group_id: str) -> tuple[Fit | None, bool]:
        """How a streams group's topology fits the topics, and whether these are still the same."""
        soft = self._state.streams.get(group_id)
        return (None, False) if soft is None else (soft.fit, soft.seen_version == self._state.topics.version)


class WatchedRunner(ShardRunner):
    """Reports loads and ends of a shard."""

    coordinator_class = WatchedCoordinator

    def __init__(self, *about: Any, recorder: Recorder, **more: Any) -> None:
        self._recorder = recorder
        super().__init__(*about, **more)

    def _new_coordinator(self) -> GroupCoordinator:
        made = super()._new_coordinator()
        assert isinstance(made, WatchedCoordinator), "the class of this runner's coordinators"
        made.recorder = self._recorder
        return made

    def _loaded(self) -> None:
        self._recorder.read(self.partition)
        super()._loaded()

    def _dropped(self, was: State) -> None:
        super()._dropped(was)
        self._recorder.world.saw("*", "broker", f"the shard is {self.state.value}")
        self._recorder.judge(self._recorder.watch.dropped)


class WatchedCoordinators(Coordinators):
    """The shards of one life of the broker."""

    def __init__(self, cluster: Cluster, recorder: Recorder, states: Callable[[Message], Awaitable[object]]) -> None:
        self._recorder = recorder
        self._is_made = False
        super().__init__(cluster, recorder.assignors, states)
        self._is_made = True
        self._consumer_groups = self._consumer_groups._replace(jobs=_Jobs(recorder, cluster))
        self.new_runner = partial(WatchedRunner, recorder=recorder)
        recorder.watch.sees(self._consumer_groups.topics)

    def new_member_id(self, prefix: str) -> str:
        """A member id from the seed."""
        bits = self._recorder.world.dice.bits
        return f"{prefix}-{bits(32):08x}{bits(32):08x}"

    def read_settings(self) -> GroupConfig:
        """The settings of the plan."""
        return self._recorder.config

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget the offsets of these topics; a new life of the broker begins with those of the last one."""
        for name in names if self._is_made else ():
            self._recorder.deleted(name)
        super().topics_deleted(names)

    def _shard_has_forgotten(self, index: int, names: set[str]) -> None:
        super()._shard_has_forgotten(index, names)
        for name in sorted(names):
            self._recorder.forgotten(name)


class _Jobs(Jobs):
    """Jobs are done on the spot, and end later."""

    def __init__(self, recorder: Recorder, cluster: Cluster) -> None:
        super().__init__(cluster.loop)
        self._recorder = recorder

    def run(self, job: Job, done: Callable[[object], None]) -> None:
        """Do the job; its outcome comes in a later turn of the loop."""
        world = self._recorder.world
        world.after(world.dice.between(0, self._recorder.solve_ms), self._loop.enter, done, job.run())  # type: ignore[attr-defined]  # a loop of the simulation
