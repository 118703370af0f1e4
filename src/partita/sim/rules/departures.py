"""Rules of members that go from a KIP-848 group: S16 each has its cause, L4 who is silent, L5 who gives nothing up.

Times are monotonic milliseconds, and those of the rules' own: when a member was heard of last, since when it has had to
give something up, to join again, or to fetch its assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from partita.group.config import GroupConfig
from partita.group.coordinator import GroupCoordinator
from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember, MemberState
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.sync_group import SyncGroupRequest
from partita.protocol.primitives import Structure
from partita.sim.rules.rule import must
from partita.sim.world.asked import Asked

_EPS_MS = 3_000
_ALIVE = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
_NEVER = 1 << 60


@dataclass(slots=True)
class _Watched:
    """Facts about one member in addition to its records."""

    heard_ms: int
    has_to_join_ms: int = _NEVER
    """Since when it has been asked to rejoin."""
    has_to_sync_ms: int = _NEVER
    revokes_ms: int = _NEVER
    """Since when it has had to give something up, in `revokes_in`."""
    revokes_in: int = 0


class DepartureRules:
    """One group. `stood_ms(since_ms)`: how long everything stood still since then; no limit is passed by that."""

    def __init__(self, group_id: str, config: GroupConfig, stood_ms: Callable[[int], int] = lambda since_ms: 0) -> None:
        self._group_id = group_id
        self._config = config
        self._stood_ms = stood_ms
        self._members: dict[str, _Watched] = {}
        self._was: dict[str, ConsumerMember] = {}
        self._leaves: dict[str, None] = {}
        """Members that the request being decided sends away, or replaces."""
        self._decided: dict[int, None] = {}
        """Requests that a coordinator has decided, by number, and the broker has not answered yet."""

    def look(self, coordinator: GroupCoordinator, asked: Asked | None = None) -> None:
        """Remember the group as it is before a step, for a request or because something is due."""
        group = coordinator.consumer_groups.get(self._group_id)
        if asked is not None:
            self._decided[asked.number] = None
        self._was = {} if group is None else dict(group.members)
        self._leaves = {} if asked is None or group is None else dict.fromkeys(_sent_away(group, asked.wire))

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request; one that is accepted is a sign of life as of when it was decided.

        One that no coordinator has decided is none: while the group is loaded, the broker says yes to every heartbeat.
        """
        wire, asked_ms = asked.wire, asked.asked_ms
        was_decided = asked.number in self._decided
        self._decided.pop(asked.number, None)
        calls = (ConsumerGroupHeartbeatRequest, HeartbeatRequest, JoinGroupRequest, SyncGroupRequest)
        code = getattr(response, "error_code", ErrorCode.NONE)
        member_id = getattr(response, "member_id", None) or getattr(wire, "member_id", "")
        watched = self._members.get(str(member_id))
        if watched is None or not was_decided or not isinstance(wire, calls) or code not in _ALIVE:
            return
        if isinstance(wire, ConsumerGroupHeartbeatRequest) and wire.member_epoch < 0:
            return  # a static member that goes for a while restarts no session
        if code == ErrorCode.NONE or not isinstance(wire, SyncGroupRequest):
            watched.heard_ms = max(watched.heard_ms, asked_ms)
        if isinstance(wire, JoinGroupRequest) and code == ErrorCode.NONE:
            watched.has_to_join_ms, watched.has_to_sync_ms = _NEVER, asked_ms
        elif isinstance(wire, SyncGroupRequest) and code == ErrorCode.NONE:
            watched.has_to_sync_ms = _NEVER
        elif isinstance(wire, ConsumerGroupHeartbeatRequest):
            watched.has_to_join_ms = watched.has_to_sync_ms = _NEVER
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            watched.has_to_join_ms = min(watched.has_to_join_ms, asked_ms)

    def stepped(self, coordinator: GroupCoordinator, now_ms: int) -> None:
        """The broker is between two steps."""
        group = coordinator.consumer_groups.get(self._group_id)
        was, self._was = self._was, {}
        if group is None:
            self._members.clear()
            return
        for member_id, member in was.items():
            if member_id not in group.members and member_id not in self._leaves:
                self._removed(member, now_ms)
        for member_id in [member_id for member_id in self._members if member_id not in group.members]:
            del self._members[member_id]
        for member_id, member in group.members.items():
            if member_id not in self._members:
                self._members[member_id] = _Watched(now_ms, now_ms if member.is_classic and not was else _NEVER)
            self._check(member, self._members[member_id], now_ms)

    def _session_ms(self, member: ConsumerMember) -> int:
        classic = member.classic
        return self._config.group_consumer_session_timeout_ms if classic is None else classic.session_timeout_ms

    def _removed(self, member: ConsumerMember, now_ms: int) -> None:
        watched = self._members.get(member.member_id)
        if watched is None:
            return
        silent_ms = now_ms - watched.heard_ms
        since_ms = min(watched.has_to_join_ms, watched.has_to_sync_ms, watched.revokes_ms)
        is_over = silent_ms >= self._session_ms(member) or now_ms - since_ms >= member.rebalance_timeout_ms
        text = f"{member.member_id} is removed after {silent_ms} ms of silence in state {member.state.name}"
        must(is_over, "S16", text)

    def _check(self, member: ConsumerMember, watched: _Watched, now_ms: int) -> None:
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            watched.revokes_ms = _NEVER
        elif watched.revokes_ms == _NEVER or watched.revokes_in != member.epoch:
            watched.revokes_ms, watched.revokes_in = now_ms, member.epoch
        silent_ms = now_ms - watched.heard_ms - self._stood_ms(watched.heard_ms)
        revokes_ms = now_ms - watched.revokes_ms - self._stood_ms(watched.revokes_ms)
        who = member.member_id
        must(silent_ms <= 2 * self._session_ms(member) + _EPS_MS, "L4", f"{who} is a member after {silent_ms} ms")
        is_late = revokes_ms > 2 * member.rebalance_timeout_ms + _EPS_MS
        must(not is_late, "L5", f"{who} has had {revokes_ms} ms to give partitions up, and is a member")

    def loaded(self, coordinator: GroupCoordinator, now_ms: int, *, is_orderly: bool) -> None:
        """A coordinator has replayed the log. After an orderly end silences go on; after a crash they begin again."""
        self._decided.clear()
        group = coordinator.consumer_groups.get(self._group_id)
        known = self._members if is_orderly else {}
        members = {} if group is None else group.members
        self._members = {
            member_id: _Watched(known[member_id].heard_ms if member_id in known else now_ms) for member_id in members
        }
        for member_id, member in members.items():
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._members[member_id].revokes_ms, self._members[member_id].revokes_in = now_ms, member.epoch
        self._was = {}


def _sent_away(group: ConsumerGroup, wire: Structure) -> Iterator[str]:
    """Whom this request removes or replaces, if it succeeds."""
    if isinstance(wire, ConsumerGroupHeartbeatRequest):
        if wire.member_epoch == -1:
            yield wire.member_id
        elif wire.member_epoch == 0 and wire.instance_id in group.static:
            yield group.static[wire.instance_id]
    elif isinstance(wire, JoinGroupRequest) and wire.group_instance_id in group.static:
        yield group.static[wire.group_instance_id]
    elif isinstance(wire, LeaveGroupRequest):
        for entry in wire.members:
            yield entry.member_id or group.static.get(entry.group_instance_id or "", "")
        yield wire.member_id
