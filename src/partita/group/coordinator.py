"""The GroupCoordinator of one shard: one partition of `__consumer_offsets` and every group that hashes to it.

The whole contract: `replay` and `resume` load it, `handle` and `on_deadline` drive it, `unload` ends it. Each returns
a `Step`: append its records as ONE batch, then release its replies once that batch, and every batch decided before
it, is durable. If an append fails: drop the shard, answer all its tokens with `partita.group.guards.refusal` of
NOT_COORDINATOR, create a new one and replay the log; there is no undo. (Kafka: GroupCoordinatorShard,
GroupMetadataManager, OffsetMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from heapq import heappop
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from partita.assignors.interface import Assignor
from partita.group import guards
from partita.group.classic import describe, heartbeat, join, leave, loading, rebalance, removal, sync, unled
from partita.group.config import GroupConfig
from partita.group.consumer_group import classic_members, leaving, outcomes
from partita.group.consumer_group import describe as consumer_describe
from partita.group.consumer_group import heartbeat as consumer_heartbeat
from partita.group.consumer_group import leaving as consumer_deadlines
from partita.group.consumer_group import loading as consumer_loading
from partita.group.consumer_group.classic_members import serves
from partita.group.consumer_group.subscriptions import MatchExpressions
from partita.group.consumer_group.target import ComputeTarget
from partita.group.contract import NO_HANDOVER, STATES, GroupRequest, Handover, Job, Record, Step, Token
from partita.group.offsets import clamp, commit, delete, expiration, fetch, transactional
from partita.group.offsets.clamp import Beyond
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.hard_state import HardState
from partita.group.requests import (
    CommitOffsets,
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    DescribeShareGroup,
    DescribeStreamsGroup,
    EndTransaction,
    FetchOffsets,
    FindSharedTopics,
    ListShardGroups,
)
from partita.group.state.model import DEAD, NO_DEADLINE, PREPARING, Group
from partita.group.state.shard import ConsumerTimers, ShardState, ShareTimers, StreamsTimers
from partita.group.state.timers import Timer, timers_of
from partita.group.state.topics import TopicImage
from partita.group.state.turn import Outbox, Turn
from partita.lazy import Lazy, later
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.offset_delete import OffsetDeleteRequest
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from partita.protocol.primitives import Buffer
from partita.wording import What

if TYPE_CHECKING:
    from partita.group.records.streams_group import StreamsGroup
    from partita.group.share import asking
    from partita.group.share import describe as share_describe
    from partita.group.share import heartbeat as share_heartbeat
    from partita.group.share import initializing as share_initializing
    from partita.group.share import leaving as share_leaving
    from partita.group.share import offsets as share_offsets
    from partita.group.streams import answering as streams_answering
    from partita.group.streams import heartbeat as streams_heartbeat
    from partita.group.streams import leaving as streams_leaving
    from partita.group.streams import target as streams_target
    from partita.protocol.messages import (
        alter_share_group_offsets,
        delete_share_group_offsets,
        share_group_heartbeat,
        streams_group_heartbeat,
    )
else:
    # Most brokers never have a share or streams group.
    asking = later("partita.group.share.asking")
    share_describe = later("partita.group.share.describe")
    share_heartbeat = later("partita.group.share.heartbeat")
    share_initializing = later("partita.group.share.initializing")
    share_leaving = later("partita.group.share.leaving")
    share_offsets = later("partita.group.share.offsets")
    streams_answering = later("partita.group.streams.answering")
    streams_heartbeat = later("partita.group.streams.heartbeat")
    streams_leaving = later("partita.group.streams.leaving")
    streams_target = later("partita.group.streams.target")
    alter_share_group_offsets = later("partita.protocol.messages.alter_share_group_offsets")
    delete_share_group_offsets = later("partita.protocol.messages.delete_share_group_offsets")
    share_group_heartbeat = later("partita.protocol.messages.share_group_heartbeat")
    streams_group_heartbeat = later("partita.protocol.messages.streams_group_heartbeat")

_Actions: TypeAlias = Mapping[type, Callable[[Turn, Token, GroupRequest], None]]
_ACTIONS: _Actions = {
    JoinGroupRequest: join.join_group,
    SyncGroupRequest: sync.sync_group,
    LeaveGroupRequest: leave.leave_group,
    OffsetCommitRequest: commit.commit_offsets,
    CommitOffsets: commit.commit_offsets,
    FetchOffsets: fetch.fetch_offsets,
    OffsetDeleteRequest: delete.delete_offsets,
    TxnOffsetCommitRequest: transactional.commit_offsets,
    EndTransaction: transactional.end_transaction,
    DescribeGroup: describe.describe_group,
    ListShardGroups: describe.list_groups,
    DeleteGroup: delete.delete_group,
    ConsumerGroupHeartbeatRequest: consumer_heartbeat.heartbeat,
    DescribeConsumerGroup: consumer_describe.describe_consumer_group,
}
"""Heartbeats are absent: they write nothing and are answered at once, see `GroupCoordinator.handle`."""
_IN_SHARE_AND_STREAMS: Lazy[_Actions] = Lazy(
    lambda: {
        share_group_heartbeat.ShareGroupHeartbeatRequest: share_heartbeat.heartbeat,
        streams_group_heartbeat.StreamsGroupHeartbeatRequest: streams_heartbeat.heartbeat,
        DescribeStreamsGroup: streams_answering.describe_streams_group,
        DescribeShareGroup: share_describe.describe_share_group,
        FindSharedTopics: share_describe.find_shared_topics,
        alter_share_group_offsets.AlterShareGroupOffsetsRequest: share_offsets.alter_offsets,
        delete_share_group_offsets.DeleteShareGroupOffsetsRequest: share_offsets.delete_offsets,
    }
)
_IN_CONSUMER_GROUPS: Mapping[type, Callable[[Turn, Token, GroupRequest, ConsumerGroup], None]] = {
    JoinGroupRequest: classic_members.join_group,
    SyncGroupRequest: classic_members.sync_group,
    HeartbeatRequest: classic_members.heartbeat,
    LeaveGroupRequest: classic_members.leave_group,
}
"""Handlers of classic requests to a KIP-848 group."""
_IN_SHARE_GROUPS: Mapping[type, ErrorCode] = {
    JoinGroupRequest: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    SyncGroupRequest: ErrorCode.UNKNOWN_MEMBER_ID,
    OffsetCommitRequest: ErrorCode.GROUP_ID_NOT_FOUND,
    CommitOffsets: ErrorCode.GROUP_ID_NOT_FOUND,
    OffsetDeleteRequest: ErrorCode.GROUP_ID_NOT_FOUND,
    TxnOffsetCommitRequest: ErrorCode.GROUP_ID_NOT_FOUND,
    ConsumerGroupHeartbeatRequest: ErrorCode.GROUP_ID_NOT_FOUND,
}
"""The answers to requests of other protocols to a share group."""
_IN_STREAMS_GROUPS: Mapping[type, ErrorCode] = {
    JoinGroupRequest: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    SyncGroupRequest: ErrorCode.UNKNOWN_MEMBER_ID,
    ConsumerGroupHeartbeatRequest: ErrorCode.GROUP_ID_NOT_FOUND,
}
"""The answers to requests of other protocols to a streams group with members."""


def is_classic(group_id: str, consumers: Mapping[str, ConsumerGroup]) -> bool:
    """Whether it is a group id other than that of a KIP-848 group."""
    return bool(group_id) and group_id not in consumers


class KnownMember(NamedTuple):
    """The ids and client names of a member."""

    member_id: str
    instance_id: str | None
    client_id: str


class GroupCoordinator:
    """One shard. `new_member_id(prefix)` gives "<prefix>-<uuid>", never the same twice.

    `groups_held()` returns the number of groups over all shards of the broker; by default only this shard counts.
    KIP-848 groups need `topics` and use `assignors`, by default the built-in ones.
    """

    def __init__(
        self,
        config: GroupConfig,
        new_member_id: Callable[[str], str],
        groups_held: Callable[[], int] | None = None,
        *,
        topics: TopicImage | None = None,
        assignors: Mapping[str, Assignor] | None = None,
    ) -> None:
        self._state = ShardState(config, new_member_id, groups_held, topics=topics, assignors=assignors)
        self._outbox = Outbox()

    @property
    def config(self) -> GroupConfig:
        """The settings. They may be replaced while running; the next decision uses the new ones."""
        return self._state.config

    @config.setter
    def config(self, config: GroupConfig) -> None:
        """Replace the settings."""
        self._state.config = config

    @property
    def group_settings(self) -> Mapping[str, Mapping[str, int | str]]:
        """Settings overridden per KIP-848 group, by group id and Kafka's name. They may be replaced."""
        return self._state.group_settings

    @group_settings.setter
    def group_settings(self, settings: Mapping[str, Mapping[str, int | str]]) -> None:
        """Replace the settings of all groups."""
        self._state.group_settings = settings

    @property
    def consumer_groups(self) -> Mapping[str, ConsumerGroup]:
        """The KIP-848 groups. Read only."""
        return self._state.hard.consumer_groups

    @property
    def groups_count(self) -> int:
        """Number of groups, of all types."""
        return self._state.count_groups()

    @property
    def groups(self) -> Mapping[str, Group]:
        """The current classic groups, soft state included; for control calls and snapshots. Read only."""
        return self._state.groups

    @property
    def hard_state(self) -> HardState:
        """The state that the log can rebuild, for tests, the simulator and dumps."""
        return self._state.hard

    def state_of(self, group_id: str) -> str:
        """Return the wire name of the state of a group of any type; "Dead" if there is none."""
        other = self._state.share_group(group_id) or self._state.streams_group(group_id)
        if other is not None:
            return other.state
        consumers, group = self._state.consumer_group(group_id), self._state.groups.get(group_id)
        if consumers is not None:
            return consumers.state.value
        return "Dead" if group is None else group.state.value

    def members_of(self, group_id: str) -> list[KnownMember]:
        """Return the members of a group of any type."""
        share = self._state.share_group(group_id)
        if share is not None:
            return [KnownMember(m.member_id, None, m.client_id) for m in share.members.values()]
        epochs, group = self._state.epoch_group(group_id), self._state.groups.get(group_id)
        members = epochs.members if epochs is not None else {} if group is None else group.members
        return [KnownMember(m.member_id, m.instance_id, m.client_id) for m in members.values()]

    def pending_ids_of(self, group_id: str) -> list[str]:
        """Return the member ids of a classic group that were issued and not used yet."""
        group = self._state.groups.get(group_id)
        return [] if group is None else list(group.pending)

    def replay(self, record: Record, producer_id: int = -1, producer_epoch: int = -1) -> None:
        """Apply one record of the log; with a producer id, one of that producer's open transaction."""
        self._state.hard.replay(record, producer_id, producer_epoch)

    def replay_batch(self, batch: Buffer) -> None:
        """Apply one record batch as stored in the log, or a control batch. The fast way to load."""
        self._state.hard.replay_batch(batch)

    def resume(self, now: Now, handover: Handover = NO_HANDOVER, *, clean: bool = True) -> Step:
        """After the last replay: rebuild groups and start their deadlines. Raises MalformedRequest: the load failed.

        `handover` comes from a clean unload; `clean=False` means that there was none, or that records may be lost.
        Either keeps a group from reusing a generation that a client may know.
        """
        turn = self._turn(now)
        loading.resume(turn, handover, clean=clean)
        consumer_loading.resume(turn, handover.silences)
        if self._state.hard.share_groups:
            share_leaving.resume(turn)
        if self._state.hard.streams_groups:
            streams_leaving.resume(turn, handover.silences)
        return turn.out.take()

    def handle(self, token: Token, request: GroupRequest, now: Now) -> Step:
        """Answer a request, now or later. Its token is returned in exactly one reply of this or a later step."""
        consumers = self._state.hard.consumer_groups
        # Heartbeats outnumber all other requests, so they skip the turn and outbox.
        # `type(...) is`, not isinstance: there are no subclasses, and this line runs for every heartbeat.
        if type(request.message) is HeartbeatRequest and is_classic(request.message.group_id, consumers):
            return heartbeat.answer(self._state.groups, token, request.message, request.client_id, now)
        turn = Turn(self._state, self._outbox, now)
        # Counts the token: `take` asserts that it was answered or parked, whatever the rule did.
        turn.out.open()
        refused = guards.first_check(request, self._state.config)
        if refused is not None:
            turn.out.answer(token, refused)
        elif not self._state.has_newer_groups or not _answered_as_newer(turn, token, request):
            kind = type(request.message)
            (_ACTIONS.get(kind) or _IN_SHARE_AND_STREAMS()[kind])(turn, token, request)
        return turn.out.take()

    @property
    def heartbeat(self) -> Callable[[HeartbeatRequest, int], ErrorCode]:
        """A function that returns the error code of a heartbeat to one of `groups`; it never writes or waits.

        It takes the request and the monotonic clock in milliseconds. While earlier records are not durable yet, the
        caller must still send the answer through the shard's reply gate.
        """
        return partial(heartbeat.decide, self._state.groups)

    def on_deadline(self, now: Now) -> Step:
        """Handle due deadlines. Call again at once while `next_deadline_ms() <= now.mono_ms`."""
        turn = self._turn(now)
        run(turn)
        return turn.out.take()

    def job_done(self, job: Job, outcome: object, now: Now) -> Step:
        """Apply the outcome of a job of an earlier step: the result of its `run`, or an exception."""
        turn = self._turn(now)
        if isinstance(job, ComputeTarget | MatchExpressions):
            outcomes.take(turn, job, outcome)
        elif job.lane is STATES:
            assert isinstance(job, asking.AskStates)
            asking.take(turn, job, outcome)
        elif isinstance(job, streams_target.ComputeTasks):
            streams_target.take(turn, job, outcome)
        return turn.out.take()

    def next_deadline_ms(self) -> int | None:
        """Return when to call `on_deadline`, on the monotonic clock. May be early, is never late."""
        return next_ms(self._state)

    def on_topics_deleted(self, names: Collection[str], now: Now) -> Step:
        """Delete all offsets of these topics. The part that exceeds one batch follows in `on_deadline`, due at once."""
        turn = self._turn(now)
        expiration.forget_topics(turn, names)
        for group in self._state.hard.share_groups.values():
            share_initializing.forget_topics_gone(turn, group)
        return turn.out.take()

    def clamp_offset(self, found: Beyond, now: Now) -> Step:
        """Lower a committed offset beyond the end of its log to that end. Call it after `resume`."""
        turn = self._turn(now)
        clamp.clamp(turn, found)
        return turn.out.take()

    def unload(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> Step:
        """Answer every parked request with `error` and mark each group Dead. Writes nothing; the shard is over."""
        turn = self._turn(Now(0, 0))  # nothing is timed or written any more
        loading.unload(turn, error)
        if self._state.parked:
            asking.refuse_all(turn, error)
        return turn.out.take()

    def abandon(self) -> Step:
        """Discard an input that raised; refuse the returned replies. Only `unload` may follow."""
        return self._turn(Now(0, 0)).out.abandon()

    def handover(self, now: Now) -> Handover:
        """Return the state for the next `resume`. Call it before `unload`; restarts then do not extend sessions."""
        classic = loading.handover(self._state, now)
        turn = self._turn(now)
        others = consumer_loading.silences(turn)
        if self._state.streams:
            others |= streams_leaving.silences(turn)
        return classic._replace(silences={**classic.silences, **others})

    def timers_of(self, group_id: str, now: Now) -> list[Timer]:
        """Return what a group waits for, and until when."""
        return timers_of(self._state, group_id, now.mono_ms)

    def evict_member(self, group_id: str, member_id: str, now: Now) -> Step:
        """Control: remove a member (by id or group instance id) as an administrator would."""
        turn = self._turn(now)
        if not _removed(turn, group_id, member_id, What.EVICTED):
            removal.evict_member(turn, group_id, member_id)
        return turn.out.take()

    def expire_session(self, group_id: str, member_id: str, now: Now) -> Step:
        """Control: expire the session of a member or pending member at once."""
        turn = self._turn(now)
        if not _removed(turn, group_id, member_id, What.EXPIRED):
            removal.expire_session(turn, group_id, member_id)
        return turn.out.take()

    def fence_instance(self, group_id: str, group_instance_id: str, now: Now) -> Step:
        """Control: give the static member a new id, as if another process had taken over its instance id."""
        turn = self._turn(now)
        removal.fence_instance(turn, group_id, group_instance_id)
        return turn.out.take()

    def _turn(self, now: Now) -> Turn:
        return Turn(self._state, self._outbox, now)


def _answered_as_newer(turn: Turn, token: Token, request: GroupRequest) -> bool:
    """Answer a request to a KIP-848, share or streams group that its usual action does not; False for any other."""
    message, state = request.message, turn.state
    group_id = getattr(message, "group_id", "")
    group, share, streams = state.consumer_group(group_id), state.share_group(group_id), state.streams_group(group_id)
    mixed = None if group is None else _IN_CONSUMER_GROUPS.get(type(message))
    foreign = None if share is None else _IN_SHARE_GROUPS.get(type(message))
    if streams is not None:
        foreign = _refused_by_streams(streams, request)
    if foreign is not None:
        turn.refuse(token, request, foreign)
    elif share is not None and isinstance(message, DeleteGroup):
        share_offsets.delete_group(turn, token, request)
    elif group is not None and mixed is not None and serves(group, request):
        mixed(turn, token, request, group)
    else:
        return False
    return True


def _refused_by_streams(group: StreamsGroup, request: GroupRequest) -> ErrorCode | None:
    """The answer to a request of another protocol; a classic join converts a group without members."""
    if not group.members and isinstance(request.message, JoinGroupRequest):
        return None
    return _IN_STREAMS_GROUPS.get(type(request.message))


def _removed(turn: Turn, group_id: str, name: str, what: What) -> bool:
    """Remove a member of a group that is not classic; False if there is no such group."""
    if turn.state.share_group(group_id) is not None:
        return share_leaving.remove_named(turn, group_id, name, what)
    if turn.state.streams_group(group_id) is not None:
        return streams_leaving.remove_named(turn, group_id, name, what)
    return leaving.fence_named(turn, group_id, name, what)


_RECORD_BYTES = 64
"""Overhead counted per record, so that many small ones take no longer than few large ones."""
_STEP_BYTES = 131_072
"""Approximate maximum written per call; the remaining due work waits for the next call, which follows at once."""

_SESSION, _PENDING, _JOIN, _SYNC, _TOPICS = range(5)


def next_ms(state: ShardState) -> int | None:
    """Return the time of the next deadline on the monotonic clock, or None. May be early, is never late."""
    wakes = state.wakes
    # A group that was armed for an earlier time has left a later entry in the heap: it is skipped when it comes up.
    while wakes and wakes[0][0] != wakes[0][2].wake_ms:
        heappop(wakes)
    earliest = state.expiry_deadline_ms
    if wakes and wakes[0][0] < earliest:
        earliest = wakes[0][0]
    if state.sweeps and state.sweeps[0].since_ms < earliest:
        earliest = state.sweeps[0].since_ms
    return None if earliest == NO_DEADLINE else earliest


def run(turn: Turn) -> None:
    """Handle due deadlines, up to about `_STEP_BYTES` of records."""
    state, now_ms = turn.state, turn.now.mono_ms
    written = 0
    # Bounded by what it writes: a shard that wakes up with thousands of deadlines due would else make a batch that no
    # topic takes.
    while (due_ms := next_ms(state)) is not None and due_ms <= now_ms and written < _STEP_BYTES:
        before = len(turn.out.records)
        if state.wakes and state.wakes[0][0] <= now_ms:
            # Its next wake-up is set at the end of the scan, after every deadline that is due has been handled.
            group = heappop(state.wakes)[2]
            group.wake_ms = NO_DEADLINE
            if isinstance(group, Group):
                _run_group(turn, group)
            elif isinstance(group, ConsumerTimers):
                consumer_deadlines.run(turn, group)
            elif isinstance(group, ShareTimers):
                share_leaving.run(turn, group)
            elif isinstance(group, StreamsTimers):
                streams_leaving.run(turn, group)
        elif state.sweeps:
            expiration.sweep(turn)
            if state.sweeps:
                return  # other requests have their turn between two slices
        else:
            expiration.start(turn)
        written += sum(_RECORD_BYTES + len(key) + len(value or b"") for key, value in turn.out.records[before:])


def _run_group(turn: Turn, group: Group) -> None:
    """Handle due deadlines, earliest first, and set the next wake-up. Each is rechecked, since it may have moved."""
    now_ms = turn.now.mono_ms
    for due_ms, kind, member_id in sorted(_due(group, now_ms), key=itemgetter(0)):
        if kind == _SESSION:
            member = group.members.get(member_id)
            if member is not None and member.deadline_ms == due_ms:
                removal.session_expired(turn, group, member)
        elif kind == _PENDING:
            if group.pending.get(member_id) == due_ms:
                removal.pending_expired(turn, group, member_id)
        elif kind == _JOIN:
            if group.state is PREPARING and group.join_deadline_ms == due_ms:
                rebalance.join_deadline(turn, group)
        elif kind == _TOPICS:
            if group.watch_ms == due_ms:
                unled.look(turn, group)
        elif group.sync_deadline_ms == due_ms:
            removal.sync_deadline(turn, group)
    if group.state is not DEAD:
        turn.state.arm(group, _earliest(group))


def _due(group: Group, now_ms: int) -> list[tuple[int, int, str]]:
    due = [(m.deadline_ms, _SESSION, m.member_id) for m in group.members.values() if m.deadline_ms <= now_ms]
    due += [(at_ms, _PENDING, member_id) for member_id, at_ms in group.pending.items() if at_ms <= now_ms]
    if group.join_deadline_ms <= now_ms:
        due.append((group.join_deadline_ms, _JOIN, ""))
    if group.sync_deadline_ms <= now_ms:
        due.append((group.sync_deadline_ms, _SYNC, ""))
    if group.watch_ms <= now_ms:
        due.append((group.watch_ms, _TOPICS, ""))
    return due


def _earliest(group: Group) -> int:
    sessions = min((m.deadline_ms for m in group.members.values()), default=NO_DEADLINE)
    pending = min(group.pending.values(), default=NO_DEADLINE)
    return min(sessions, pending, group.join_deadline_ms, group.sync_deadline_ms, group.watch_ms)
