"""Runs one coordinator shard: load, append, reply gate, one timer.

Theory of operation. The coordinator decides, this shell acts. A decision is a step: records, replies, notes and jobs.
The coordinator has already applied the records to its own state when the step arrives here, so memory is ahead of the
log from then until the append. Everything below follows from that.

*One queue.* Steps pass `unwritten` (decided), the log, and `gate` (appended, not yet durable), first in, first out, and
so do steps without records: a heartbeat that is answered "stable" may rest on a record that is still in the queue. If a
reply could overtake it and the broker then crashed, a client would know of a generation that never was. `is_open` says
that both queues are empty; then a step that writes nothing is answered at once.

*One append for each turn of the loop.* `take` schedules one `_flush`, and all steps of the turn share its batches. That
is what makes ten thousand commits cost ten appends.

*No undo.* If an append fails, or a decision raises, it is not known what memory holds that the log does not. So the
shard is dropped: callers hear NOT_COORDINATOR, which every client handles, and the log is replayed into a new
coordinator. A log that has failed itself is not replayed, it would fail again. A full disk is the exception that is
foreseen: requests that write are refused before they are decided, and heartbeats go on.

*The order of an end.* State first, then the timers, then the replies: gated steps, unwritten steps, the open step, and
at last parked joins and syncs. Each caller is answered once, by whichever comes first.

*One timer*, at or before the next deadline of the coordinator and of the gate. It may fire early and find nothing due.

What must not be done: answer a caller around the queue; write records that no step decided; keep a reference to the
coordinator across a reload; await anything between a decision and its place in the queue.

(Kafka: CoordinatorRuntime.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from partita.assignors.interface import Assignor
from partita.broker.groups.jobs import Jobs
from partita.broker.groups.lost_tails import LostTails
from partita.broker.groups.reply_gate import Call, ReplyGate, encode, refuse, release, shared_batches
from partita.broker.shard_life import ACTIVE, CLOSED, LOADING, RETRY_MS_MAX, ShardLife, State, Wording
from partita.broker.wire.contract import Promised
from partita.group.config import GroupConfig
from partita.group.contract import NO_HANDOVER, STATES, GroupRequest, Handover, Job, Marker, Producer, Record, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.guards import first_check, not_here, while_loading
from partita.group.notes import GroupsLoaded
from partita.group.offsets.clamp import Beyond
from partita.group.requests import (
    DescribeConsumerGroup,
    DescribeGroup,
    DescribeShareGroup,
    DescribeStreamsGroup,
    FetchOffsets,
    FindSharedTopics,
    ListShardGroups,
)
from partita.group.state.answers import refusal
from partita.group.state.topics import TopicImage
from partita.lazy import later
from partita.log.storage import StorageError, StorageFull
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.primitives import MalformedRequest, Message, Structure
from partita.records.header import BatchHeader

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.broker.topics.catalogue import Partition
    from partita.group.share import asking
else:
    asking = later("partita.group.share.asking")

log = logging.getLogger("partita.broker")

_READ_ONLY = (
    HeartbeatRequest,
    FetchOffsets,
    DescribeGroup,
    DescribeConsumerGroup,
    DescribeShareGroup,
    DescribeStreamsGroup,
    FindSharedTopics,
    ListShardGroups,
)
_ROOM_BYTES = 64 << 10
_LOOK_FOR_ROOM_MS = 100


class ForConsumerGroups(NamedTuple):
    """The state that all shards of a process share for KIP-848 groups."""

    topics: TopicImage
    assignors: Mapping[str, Assignor]
    jobs: Jobs
    settings: Mapping[str, Mapping[str, int | str]]
    """Of groups that have some of their own."""
    states: Callable[[Message], Awaitable[object]]
    """Asks the share coordinator."""


class ShardRunner(ShardLife):
    """One shard on the node that leads its partition, for one leader epoch."""

    coordinator_class = GroupCoordinator
    wording = Wording("shard", "its groups", "", "offsets.load.buffer.size")

    def __init__(
        self,
        cluster: Cluster,
        partition: Partition,
        config: GroupConfig,
        new_member_id: Callable[[str], str],
        *,
        lost_tails: LostTails,
        groups_held: Callable[[], int],
        consumer_groups: ForConsumerGroups,
    ) -> None:
        super().__init__(cluster, partition)
        self._config = config
        self._new_member_id = new_member_id
        self._lost_tails = lost_tails
        self._groups_held = groups_held
        self._consumer_groups = consumer_groups
        self.is_open = False
        """Whether an answer may leave at once: loaded, and nothing decided waits to become durable."""
        self.coordinator = self._new_coordinator()
        # Bound here once, because the memo of repeated heartbeats calls them without passing through `decide`.
        self.heartbeat, self.classic_groups = self.coordinator.heartbeat, self.coordinator.groups
        self.unwritten: list[Step] = []
        """Steps decided and not yet appended; nothing may be answered before them."""
        self.gate = ReplyGate()
        """Steps whose records are in the log and not yet durable."""
        self._tombstones_end = 0
        self._flush_soon = False
        self._asked: set[asyncio.Task[object]] = set()
        """Questions to the share coordinator that are under way."""
        self._handover: Handover | None = None
        """The handover of the load under way; None also while there is none."""
        self._is_full = False
        """Whether an append found the disk full; requests that write are refused until there is room."""
        self._looked_for_room_ms = 0
        self.fail_next_append = False
        self.deleted_topics: set[str] = set()
        """Topics that are gone and whose offsets are not durably forgotten yet; a load begins with them."""
        self._lost: list[Beyond] = []
        """Commits that the load found beyond the ends of their logs."""
        self.on_forgotten: Callable[[int, set[str]], None] | None = None
        """Called with the partition and the names once their offsets are durably forgotten."""

    # -- life ------------------------------------------------------------------------------------------------------

    def load(self, handover: Handover | None = NO_HANDOVER) -> None:
        """Replay the partition's log. A short one is replayed at once, a long one in slices between other work.

        `handover` is the last result of `resign`; None if the shard did not end in order, or records may be lost.
        """
        self._handover = handover
        self.begin()

    def hold(self, handover: Handover | None) -> None:
        """Be loading, as after `load`, and do not begin before `go_on`."""
        self._handover = handover
        self.be_held()

    def resign(self) -> Handover | None:
        """Give the shard up: parked and gated callers get NOT_COORDINATOR; nothing is written.

        Returns the handover for the shard's next leader; None if this shard has none to give.
        """
        if self.state is ACTIVE:
            self._flush()
        handover = self._handover
        if self.state is ACTIVE:  # an append that failed has ended that
            handover = self.coordinator.handover(self._cluster.clock.now())
        self._drop(CLOSED)
        return handover

    def forget_topics(self, names: Collection[str]) -> None:
        """Remove every offset of topics that are gone: now, or as soon as the shard is loaded. (S25)"""
        self.deleted_topics.update(names)
        if self.state is ACTIVE and names:
            # Only these: one that was deleted before may be there again, with new offsets.
            self._forget_deleted(names)

    def _forget_deleted(self, names: Collection[str]) -> None:
        now = self._cluster.clock.now()
        self.take(self.coordinator.on_topics_deleted(names, now))
        # A deletion of many offsets is more than one batch holds; the coordinator makes the rest due at once.
        while self.state is ACTIVE and (due := self.coordinator.next_deadline_ms()) is not None:
            if due > now.mono_ms:
                break
            self.take(self.coordinator.on_deadline(now))
        self._flush()
        if self.state is ACTIVE:
            self._tombstones_end = self._end_offset
            self._confirm_forgotten()

    def _confirm_forgotten(self) -> None:
        """Say so once the tombstones are durable; until then, look again whenever the log moves."""
        opened = self.partition.opened_log
        if self.state is not ACTIVE or not self.deleted_topics:
            return
        # Until the tombstones are durable a crash would bring the offsets back, so the deletion may not be reported as
        # complete.
        if opened is not None and opened.high_watermark < self._tombstones_end:
            opened.watch(self._confirm_forgotten)
            return
        if opened is not None:
            opened.unwatch(self._confirm_forgotten)
        names, self.deleted_topics = self.deleted_topics, set()
        if self.on_forgotten is not None:
            self.on_forgotten(self.partition.index, names)

    def configure(self, config: GroupConfig) -> None:
        """Go on with these settings."""
        self._config = self.coordinator.config = config

    def set_consumer_groups(self, given: ForConsumerGroups) -> None:
        """Go on with these settings of groups."""
        self._consumer_groups = given
        self.coordinator.group_settings = given.settings

    def _start(self, job: Job) -> None:
        """Run the job beside the loop; its result goes to this very coordinator and no later one."""
        coordinator = self.coordinator

        def done(outcome: object) -> None:
            # The shard was reloaded meanwhile: the groups of the job are gone, and a group of the same name is another
            # one.
            if self.state is not ACTIVE or self.coordinator is not coordinator:
                return
            try:
                step = coordinator.job_done(job, outcome, self._cluster.clock.now())
            except Exception as error:
                self._restart("the outcome of a job could not be taken", error)
                return
            self.take(step)

        if job.lane is STATES:
            assert isinstance(job, asking.AskStates)
            asked = self._loop.create_task(_outcome(self._consumer_groups.states, job))
            self._asked.add(asked)
            asked.add_done_callback(self._asked.discard)
            asked.add_done_callback(lambda asked: None if asked.cancelled() else done(asked.result()))
        else:
            self._consumer_groups.jobs.run(job, done)

    # -- requests --------------------------------------------------------------------------------------------------

    def decide(self, request: GroupRequest) -> Structure | Promised:
        """Answer a request of one group: at once where nothing has to be waited for."""
        if self.state is not ACTIVE:
            # Kafka looks at the request first, too: an empty group id is INVALID_GROUP_ID even where nothing is loaded.
            return first_check(request, self._config) or self.refuse(request)
        # Refused before it is decided: a decision that cannot be stored would drop the shard, again and again while the
        # disk is full.
        if self._is_full and not isinstance(request.message, _READ_ONLY) and not self._has_room():
            return first_check(request, self._config) or refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        call = Call(request)
        try:
            step = self.coordinator.handle(call, request, self._cluster.clock.now())
        # The peer's fault and not the shard's: its connection closes, and the shard goes on.
        except MalformedRequest:
            raise
        except Exception as error:
            self._restart("a request could not be decided", error)
            return not_here(request)
        self.take(step)
        # Answered within the step. A future is made only for a caller that has to wait.
        if call.response is not None:
            return call.response
        call.future = Promised(loop=self._loop)
        return call.future

    def refuse(self, request: GroupRequest) -> Structure:
        """The answer while the shard is loading, failed or gone."""
        return while_loading(request) if self.state is LOADING else not_here(request)

    def take(self, step: Step) -> None:
        """Carry out a step of the coordinator."""
        # The common case: nothing to write and nothing undurable before it, so the answers may leave at once.
        if self.is_open and not step.records and step.marker is None:
            self._publish(step)
            release(step)
        else:
            self._take_in_line(step)
        for job in step.jobs:
            self._start(job)
        self._arm()

    def _take_in_line(self, step: Step) -> None:
        """Queue a step that writes, or that follows an undurable decision."""
        if step.records or step.marker is not None:
            self.unwritten.append(step)
            if not self._flush_soon:
                self._flush_soon = True
                # At the end of this turn of the loop: all that its requests decide shares one append, and one sync.
                self._loop.call_soon(self._flush)
        # It writes nothing, but was decided on the strength of records that are not in the log yet. It must not
        # overtake them.
        elif self.unwritten:
            self.unwritten.append(step)
        # The same for records that are in the log and not durable: it waits for the last of them, whatever they were
        # about.
        elif self.gate:
            self._publish(step)
            self.gate.add(self.gate.last_offset(), step, self._patience_ms())
        else:
            self._publish(step)
            release(step)
        self._note_open()

    def _publish(self, step: Step) -> None:
        """Publish the step's events; not before they are in the log, for only then have they happened."""
        if step.notes:
            self._cluster.notes.publish(step.notes)

    def _note_open(self) -> None:
        self.is_open = self.state is ACTIVE and not self.unwritten and not self.gate

    # -- the log ---------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Append the records decided since the last time; release durable replies."""
        self._flush_soon = False
        steps, self.unwritten = self.unwritten, []
        if not steps or self.state is not ACTIVE:
            return
        appended: list[Step] = []
        # Taken before the append: patience counts from the decision, not from the end of a slow write.
        due_ms = self._patience_ms()
        try:
            for records, producer, marker, covered in shared_batches(steps, self._config.max_message_bytes):
                self._append(records, producer, marker)
                appended += covered
                for step in covered:
                    self._publish(step)
                    # The offset behind the step's own batch. Durable is what lies below the high watermark, so equal is
                    # enough.
                    self.gate.add(self._end_offset, step, due_ms)
        # Some steps may be in the log already: they keep their place in the gate. The rest is refused with the shard.
        except Exception as error:
            if self.state is not ACTIVE:  # the append has ended the shard by itself, as a lost log does
                for step in steps[len(appended) :]:
                    refuse(step, not_here)
                return
            self.unwritten = steps[len(appended) :]
            self._is_full = isinstance(error, StorageFull)
            self._restart("append failed", error)
            return
        self._failed_in_a_row = 0
        self._release_durable()
        self._arm()
        self._note_open()

    def _patience_ms(self) -> int:
        return self._cluster.clock.mono_ms() + self._cluster.config.int("offsets.commit.timeout.ms")

    def _append(self, records: list[Record], producer: Producer | None, marker: Marker | None) -> None:
        if self.fail_next_append:
            self.fail_next_append = False
            raise StorageError("an append was made to fail by a control call")
        now = self._cluster.clock.now()
        codec = self._cluster.config.int("offsets.topic.compression.codec")
        for batch in encode(records, producer, marker, now.wall_ms, codec, self._lost_tails.headers_of):
            appended = self.partition.log.append(batch, self.leader_epoch, now)
            # Anything else in this log was written by another leader: what we believe to be the state is not.
            if appended.base_offset != self._end_offset:
                raise StorageError(f"the batch went to {appended.base_offset}, expected was {self._end_offset}")
            self._end_offset = appended.last_offset + 1

    def _release_durable(self) -> None:
        """Release replies that are durable, and watch the log while others wait."""
        self.gate.release(self.partition.log.high_watermark)
        if not self.gate:
            self.partition.log.unwatch(self._release_durable)
        # It will never become durable. Callers hear NOT_COORDINATOR now, not a timeout later.
        elif self.partition.log.failure is not None:
            self.fail(self.partition.log.failure)
        else:
            self.partition.log.watch(self._release_durable)
        self._note_open()

    def _has_room(self) -> bool:
        """Look whether the full disk has room again, at most every 100 ms."""
        now_ms = self._cluster.clock.mono_ms()
        # Asking the disk costs a system call, and a full disk meets every request that writes.
        if now_ms - self._looked_for_room_ms < _LOOK_FOR_ROOM_MS:
            return False
        self._looked_for_room_ms = now_ms
        try:
            self._is_full = not self._cluster.store.has_room_for_groups(_ROOM_BYTES)
        except StorageError as error:
            log.warning("shard %d cannot tell whether there is room: %s", self.partition.index, error)
        return not self._is_full

    def _renew(self) -> None:
        self.coordinator = self._new_coordinator()
        self.heartbeat, self.classic_groups = self.coordinator.heartbeat, self.coordinator.groups
        self._handover = None

    def _dropped(self, was: State) -> None:
        """End this coordinator: gated replies become NOT_COORDINATOR, parked requests are answered so."""
        self.is_open = False
        self.gate.drop()
        opened = self.partition.opened_log
        if opened is not None:
            opened.unwatch(self._release_durable)
            opened.unwatch(self._confirm_forgotten)
        unwritten, self.unwritten = self.unwritten, []
        for step in unwritten:
            refuse(step, not_here)
        refuse(self.coordinator.abandon(), not_here)
        if was is ACTIVE:
            # Only a shard that was active has parked callers; its members' sessions end here and begin anew at the next
            # leader.
            release(self.coordinator.unload(ErrorCode.NOT_COORDINATOR))

    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> None:
        self.coordinator.replay_batch(batch)

    def _look_back(self) -> Iterator[object]:
        """Find the commits that an unclean stop left beyond the ends of their logs."""
        self._lost = []
        if self._lost_tails.is_owed(self.partition.index):
            for found in self._lost_tails.find(self.coordinator, self.partition.log):
                self._lost = found
                yield True

    def _loaded(self) -> None:
        handover, self._handover = self._handover, None
        now = self._cluster.clock.now()
        # None, not an empty handover, says that the last shard did not end in order: its soft state is lost, and
        # generations jump.
        step = self.coordinator.resume(now, handover or NO_HANDOVER, clean=handover is not None)
        self.state = ACTIVE
        noteworthy = tuple(
            note._replace(partition=self.partition.index, partitions=len(self.partition.topic.partitions))
            if isinstance(note, GroupsLoaded)
            else note
            for note in step.notes
            if not isinstance(note, GroupsLoaded) or note.groups
        )
        if self._end_offset and self.partition.log.high_watermark < self._end_offset:
            # What was replayed beyond the high watermark is not told to anyone before it is durable.
            self.gate.add(self._end_offset, Step(), self._patience_ms())
            self._release_durable()
        self.take(step._replace(notes=noteworthy))
        # After the shard is active, since clamping writes, and through the same gate as every other decision.
        self._clamp_lost()
        if self.deleted_topics:
            self._forget_deleted(self.deleted_topics)

    def _clamp_lost(self) -> None:
        """Bring commits back to the ends of their logs where an unclean stop lost records below them. (D4)"""
        for beyond in self._lost:
            self.take(self.coordinator.clamp_offset(beyond, self._cluster.clock.now()))
        self._flush()
        if self.state is ACTIVE:
            self._lost_tails.settled(self.partition.index, self._lost)
            self._lost = []

    def _new_coordinator(self) -> GroupCoordinator:
        given = self._consumer_groups
        coordinator = self.coordinator_class(
            self._config, self._new_member_id, self._groups_held, topics=given.topics, assignors=given.assignors
        )
        coordinator.group_settings = given.settings
        return coordinator

    # -- time ------------------------------------------------------------------------------------------------------

    def on_timer(self) -> None:
        """Do one step of due work: others have their turn before the next. Also called when the clock jumped."""
        self._timer = None
        now = self._cluster.clock.now()
        if self.state is ACTIVE:
            self.gate.expire(now.mono_ms)
            due = self.coordinator.next_deadline_ms()
            if due is not None and due <= now.mono_ms:
                if self._is_full and not self._has_room():
                    self._arm_at(now.mono_ms + RETRY_MS_MAX, self.on_timer)
                    return
                try:
                    step = self.coordinator.on_deadline(now)
                except Exception as error:
                    self._restart("what was due could not be decided", error)
                    return
                self.take(step)
        self._arm()
        self._note_open()

    def _arm(self) -> None:
        """Keep one timer, at or before the next deadline."""
        if self.state is not ACTIVE:
            return
        due = self.coordinator.next_deadline_ms()
        if not self.is_open:
            # Only while something waits in the gate: then the timer must also wake it to time those out.
            gate_due = self.gate.next_due_ms()
            if due is None or (gate_due is not None and gate_due < due):
                due = gate_due
        if due is not None and (self._timer is None or due < self._timer_ms):
            self._arm_at(due, self.on_timer)


async def _outcome(states: Callable[[Message], Awaitable[object]], job: asking.AskStates) -> object:
    """The share coordinator's answer, or what was raised instead."""
    try:
        return await states(job.message)
    except Exception as error:
        log.warning("group %s: the share coordinator could not be asked: %s", job.group_id, error)
        return error
