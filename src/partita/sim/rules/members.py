"""Rules of what members say and hear: S13 to S16 who is believed, kept and fenced, L2 to L4 when phases end.

Facts of a member are those of its last join that was not refused; group and log must agree with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partita.group.config import GroupConfig
from partita.group.contract import Record, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.records.log_records import GROUP_KEY, kind_of, read_group_key, read_group_value
from partita.group.state.model import COMPLETING, EMPTY, PREPARING, STABLE, Group, GroupState, Member, Protocols
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.primitives import Structure
from partita.sim.rules.rule import must
from partita.sim.world.asked import Asked

_ALIVE = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
_NOT_A_MEMBER = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
)
_NEEDS_ID_FROM = 4
_EPS_MS = 3_000
_GONE = -(1 << 40)
"""Time of the last request that stands for former members."""


class Facts(NamedTuple):
    """Facts that a member has reported about itself."""

    protocols: Protocols
    session_ms: int
    rebalance_ms: int
    client_id: str


class Before(NamedTuple):
    """The group before a step."""

    state: GroupState
    members: dict[str, tuple[str | None, int]]
    """Instance ids and session timeouts, by member id."""
    pending: frozenset[str]
    late_syncs: frozenset[str]
    """Members whose time to ask for their assignment ends with this step."""
    join_deadline_ms: int


class MemberRules:
    """One group. Times are monotonic milliseconds.

    `stood_ms(since_ms)`: how long everything stood still since then; no limit is passed by that.
    """

    def __init__(self, group_id: str, config: GroupConfig, stood_ms: Callable[[int], int] = lambda since_ms: 0) -> None:
        self._group_id = group_id
        self._stood_ms = stood_ms
        self._initial_delay_ms = config.group_initial_rebalance_delay_ms
        self._facts: dict[str, Facts] = {}
        self._heard: dict[str, int] = {}
        """When each member was last heard of, or answered."""
        self._ids: dict[str, str] = {}
        """The newest member id of each instance id."""
        self._expected: dict[int, ErrorCode] = {}
        """Of heartbeats of members: the answer of the state they found."""
        self._welcome: dict[int, None] = {}
        """Commits of members that may commit."""
        self._was: Before | None = None
        self._stays_stable = False
        self._has_left = False
        self._began_ms: int | None = None
        """When a join phase began that the initial delay holds open."""

    # Requests

    def before(self, asked: Asked, coordinator: GroupCoordinator, now_ms: int) -> None:
        """The broker is about to decide a request."""
        wire, group = asked.wire, coordinator.groups.get(self._group_id)
        self._stays_stable = self._has_left = False
        if isinstance(wire, HeartbeatRequest):
            if _is_current(group, wire, wire.generation_id):
                rejoin = group is not None and group.state is PREPARING
                self._expected[asked.number] = ErrorCode.REBALANCE_IN_PROGRESS if rejoin else ErrorCode.NONE
        elif isinstance(wire, OffsetCommitRequest):
            may_commit = group is not None and group.state in (PREPARING, STABLE) and wire.group_id == self._group_id
            if may_commit and _is_current(group, wire, wire.generation_id_or_member_epoch):
                self._welcome[asked.number] = None
        elif isinstance(wire, JoinGroupRequest | SyncGroupRequest | LeaveGroupRequest):
            self.look(coordinator, now_ms)
            self._has_left = isinstance(wire, LeaveGroupRequest)
            self._stays_stable = isinstance(wire, JoinGroupRequest) and self._is_unchanged(group, wire)

    def _is_unchanged(self, group: Group | None, wire: JoinGroupRequest) -> bool:
        """Is it a follower of a stable group that says what it has said before?"""
        facts = self._facts.get(wire.member_id)
        if group is None or facts is None or group.state is not STABLE or wire.member_id == group.leader_id:
            return False
        holder = group.static.get(wire.group_instance_id) if wire.group_instance_id is not None else wire.member_id
        return wire.member_id in group.members and holder == wire.member_id and facts.protocols == _protocols(wire)

    def look(self, coordinator: GroupCoordinator, now_ms: int) -> None:
        """Remember the group as it is before a step."""
        group = coordinator.groups.get(self._group_id)
        if group is None:
            self._was = Before(EMPTY, {}, frozenset(), frozenset(), 0)
            return
        late = group.pending_sync if now_ms >= group.sync_deadline_ms else ()
        self._was = Before(
            group.state,
            {m.member_id: (m.instance_id, m.session_timeout_ms) for m in group.members.values()},
            frozenset(group.pending),
            frozenset(late),
            group.join_deadline_ms,
        )

    def decided(self, asked: Asked | None, step: Step, coordinator: GroupCoordinator, now_ms: int) -> None:
        """A step was decided, for a request or because something was due."""
        answers = {token: message for token, message in step.replies if isinstance(token, Asked)}
        group = coordinator.groups.get(self._group_id)
        if asked is not None and isinstance(asked.wire, JoinGroupRequest) and group is not None:
            self._joined(asked, asked.wire, answers.get(asked), group, now_ms)
        elif asked is not None and _is_sign_of_life(asked, answers.get(asked)):
            self._heard[getattr(asked.wire, "member_id", "")] = now_ms
        has_moved = self._was is None or group is None or self._was.state is not group.state
        for other, message in answers.items():
            # An answer that only repeats something restarts no session.
            if isinstance(other.wire, JoinGroupRequest | SyncGroupRequest) and has_moved and _is_accepted(message):
                self._heard[getattr(message, "member_id", None) or other.wire.member_id] = now_ms

    def _joined(
        self, asked: Asked, wire: JoinGroupRequest, answer: Structure | None, group: Group, now_ms: int
    ) -> None:
        if not _is_accepted(answer):
            return
        must(not self._stays_stable or group.state is STABLE, "S15", f"{wire.member_id} rejoined unchanged")
        waiting = (m.member_id for m in group.members.values() if m.join is not None and m.join.token is asked)
        member_id = answer.member_id if isinstance(answer, JoinGroupResponse) else next(waiting, "")
        member = group.members.get(member_id)
        if member is None:
            return
        rebalance_ms = wire.rebalance_timeout_ms if asked.version else wire.session_timeout_ms
        self._facts[member_id] = Facts(_protocols(wire), wire.session_timeout_ms, rebalance_ms, asked.request.client_id)
        self._heard.setdefault(member_id, now_ms)
        if wire.group_instance_id is not None:
            self._ids[wire.group_instance_id] = member_id

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        wire = asked.wire
        expected = self._expected.pop(asked.number, None)
        is_welcome = asked.number in self._welcome
        self._welcome.pop(asked.number, None)
        error = getattr(response, "error_code", ErrorCode.NONE)
        if isinstance(response, HeartbeatResponse) and expected is not None and error in (*_ALIVE, *_NOT_A_MEMBER):
            must(error == expected, "S11", f"a heartbeat hears {ErrorCode(error).name}, not {expected.name}")
        elif isinstance(response, OffsetCommitResponse):
            codes = [p.error_code for topic in response.topics for p in topic.partitions]
            refused = is_welcome and any(code in _NOT_A_MEMBER for code in codes)
            must(not refused, "S12", f"a commit of a member of this generation is refused: {codes}")
        elif isinstance(wire, JoinGroupRequest) and asked.version >= _NEEDS_ID_FROM and error == ErrorCode.NONE:
            has_name = wire.member_id or wire.group_instance_id is not None
            must(has_name, "S14", "a newcomer is admitted without an id to come back with")
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self._fenced(getattr(wire, "group_instance_id", None), getattr(wire, "member_id", ""))

    def _fenced(self, instance_id: str | None, member_id: str) -> None:
        is_newest = instance_id is not None and self._ids.get(instance_id) == member_id
        must(not is_newest, "S13", f"{member_id} is fenced, and nobody has taken {instance_id} over")

    # The group between two steps

    def stepped(self, coordinator: GroupCoordinator, now_ms: int) -> None:
        """The broker is between two steps."""
        was, self._was = self._was, None
        group = coordinator.groups.get(self._group_id)
        members = {} if group is None else group.members
        if was is not None:
            for member_id, (instance_id, session_ms) in was.members.items():
                if member_id not in members:
                    if not (instance_id and group and instance_id in group.static):
                        self._removed(was, member_id, instance_id, session_ms, now_ms)
                    self._heard[member_id] = _GONE
            if group is not None:
                self._moved(was, group, now_ms)
        for member in members.values():
            self._check_member(member, now_ms)

    def _removed(self, was: Before, member_id: str, instance_id: str | None, session_ms: int, now_ms: int) -> None:
        """S16: who goes has left, was silent, did not sync in time, or (dynamic members) did not rejoin in time."""
        is_late = member_id in was.late_syncs or (was.state is PREPARING and instance_id is None)
        silent_ms = now_ms - self._heard.get(member_id, 0)
        is_over = self._has_left or is_late or silent_ms >= session_ms
        must(is_over, "S16", f"{member_id} is removed after {silent_ms} ms of silence, its session is {session_ms}")

    def _moved(self, was: Before, group: Group, now_ms: int) -> None:
        if was.state is EMPTY and group.state is PREPARING:
            self._began_ms = now_ms
        if was.state is not PREPARING or group.state is PREPARING:
            return
        began_ms, self._began_ms = self._began_ms, None
        if group.state is COMPLETING:
            is_early = now_ms < was.join_deadline_ms and was.pending & group.pending.keys()
            must(not is_early, "L3", "the join phase ends although an id that was handed out is still to be used")
            if began_ms is not None:
                must(now_ms - began_ms >= self._initial_delay_ms, "L2", f"the first join phase: {now_ms - began_ms} ms")

    def _check_member(self, member: Member, now_ms: int) -> None:
        facts = self._facts.get(member.member_id)
        if facts is not None and not member.was_loaded:
            known = Facts(member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms, member.client_id)
            must(known == facts, "S15", f"{member.member_id} has said {facts}, the group has {known}")
        if member.join is None and member.sync is None and not member.is_new:
            heard_ms = self._heard.get(member.member_id, now_ms)
            silent_ms = now_ms - heard_ms - self._stood_ms(heard_ms)
            # Who was removed before its shard moved is back in the log's last record, and goes at once.
            is_going = heard_ms == _GONE
            limit_ms = 2 * member.session_timeout_ms + _EPS_MS
            must(
                is_going or silent_ms <= limit_ms,
                "L4",
                f"{member.member_id} is a member after {silent_ms} ms of silence",
            )

    # The log

    def appended(self, records: tuple[Record, ...]) -> None:
        """S15: what is stored of a member is what it has said last."""
        for record in records:
            if record.value is None or kind_of(record.key) != GROUP_KEY or read_group_key(record.key) != self._group_id:
                continue
            value = read_group_value(record.value)
            for stored in value.members:
                facts = self._facts.get(stored.member_id)
                if facts is not None:
                    said = dict(facts.protocols).get(value.protocol or "", b"")
                    same = (bytes(stored.subscription), stored.session_timeout, stored.rebalance_timeout)
                    is_said = same == (said, facts.session_ms, facts.rebalance_ms)
                    must(
                        is_said and stored.client_id == facts.client_id, "S15", f"stored of {stored.member_id}: {same}"
                    )

    def loaded(self, coordinator: GroupCoordinator, now_ms: int, *, is_orderly: bool) -> None:
        """A coordinator has replayed the log. After an orderly end silences go on; after a crash they begin again."""
        group = coordinator.groups.get(self._group_id)
        members = {} if group is None else group.members
        self._facts = {
            m.member_id: Facts(m.protocols, m.session_timeout_ms, m.rebalance_timeout_ms, m.client_id)
            for m in members.values()
        }
        heard = self._heard if is_orderly else {}
        self._heard = {member_id: heard.get(member_id, now_ms) for member_id in members}
        self._was = None
        self._began_ms = None
        self._expected.clear()
        self._welcome.clear()


def _protocols(wire: JoinGroupRequest) -> Protocols:
    return tuple([(p.name, bytes(p.metadata)) for p in wire.protocols])


def _is_current(group: Group | None, wire: HeartbeatRequest | OffsetCommitRequest, generation: int) -> bool:
    """Does it come from a member of the current generation?"""
    if group is None or wire.member_id not in group.members or generation != group.generation:
        return False
    instance_id = wire.group_instance_id
    return instance_id is None or group.static.get(instance_id) == wire.member_id


def _is_sign_of_life(asked: Asked, answer: Structure | None) -> bool:
    return isinstance(asked.wire, HeartbeatRequest | OffsetCommitRequest) and _is_accepted(answer)


def _is_accepted(answer: Structure | None) -> bool:
    """Whether the request was not refused: it is unanswered, or answered as for a live member."""
    if isinstance(answer, OffsetCommitResponse):
        return any(p.error_code == ErrorCode.NONE for topic in answer.topics for p in topic.partitions)
    return answer is None or getattr(answer, "error_code", ErrorCode.NONE) in _ALIVE
