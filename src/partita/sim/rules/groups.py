"""Rules of generations, members and assignments, read off what the broker decides and answers.

S1 assignments are the leader's, S2 they are disjoint and whole, S5 generations, S6 one leader, S8 one assignment, S11
and S12 stale callers, S13 static members, S30 restarts.
"""

from __future__ import annotations

from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.group.coordinator import GroupCoordinator
from partita.group.requests import DeleteGroup
from partita.group.state.model import COMPLETING, PREPARING, STABLE, Group, check
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_groups import DeletableGroupResult
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from partita.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from partita.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from partita.protocol.primitives import Structure
from partita.sim.rules.rule import must
from partita.sim.world.asked import Asked

_MEMBER_CALLS = (HeartbeatRequest, SyncGroupRequest, OffsetCommitRequest)


class GroupRules:
    """One group in one log."""

    def __init__(self, group_id: str, *, eager: bool) -> None:
        self.group_id = group_id
        self._eager = eager
        self._stale: dict[int, str] = {}
        """Requests that must not succeed, by number, and why."""
        self._leaders: dict[int, tuple[str, str | None]] = {}
        self._joined_by: dict[int, dict[str, None]] = {}
        self._given: dict[int, dict[str, bytes]] = {}
        self._subscribed: dict[int, dict[str, bytes]] = {}
        self._known: dict[tuple[int, str], dict[str, int]] = {}
        """How many partitions each topic had for the member that assigned in this generation, as it did so."""
        self._last = 0
        self._sent = 0
        self._renamed: dict[str, str] = {}
        self._seen_ids: dict[str, None] = {}
        self._before_crash: tuple[object, ...] | None = None
        self._held: str | None = None

    # What the broker is about to decide, and has decided

    def before(self, asked: Asked, coordinator: GroupCoordinator) -> None:
        """The broker is about to decide a request."""
        wire = asked.wire
        group = coordinator.groups.get(self.group_id)
        self._before_deletion(asked, group)
        if isinstance(wire, _MEMBER_CALLS) and wire.group_id == self.group_id:
            reason = staleness(group, wire)
            if reason:
                self._stale[asked.number] = reason
        elif isinstance(wire, JoinGroupRequest) and wire.member_id and wire.group_instance_id is not None:
            holder = group.static.get(wire.group_instance_id) if group is not None else None
            if holder != wire.member_id:
                self._stale[asked.number] = "its instance id is not its own"
        elif isinstance(wire, LeaveGroupRequest) and any(_is_replaced(group, entry) for entry in wire.members):
            self._stale[asked.number] = "its instance id is held by another"
        if isinstance(wire, SyncGroupRequest) and group is not None and group.state is COMPLETING:
            self._note_assignment(wire, group)
        if isinstance(wire, JoinGroupRequest) and group is not None and not wire.member_id:
            self._held = group.static.get(wire.group_instance_id or "")

    def _before_deletion(self, asked: Asked, group: Group | None) -> None:
        """S25: neither a group with members is deleted, nor offsets of a topic that it reads."""
        message = asked.request.message
        if group is None or not group.members:
            return
        if isinstance(message, DeleteGroup) and message.group_id == self.group_id:
            self._stale[asked.number] = "the group has members"
        # While the first members come after the group was empty, it reads what it read last: nothing.
        reads_nothing = group.state is PREPARING and group.generation > 0
        if isinstance(message, OffsetDeleteRequest) and message.group_id == self.group_id and not reads_nothing:
            self._stale[asked.number] = "the group reads the topic"

    def after(self, asked: Asked, coordinator: GroupCoordinator) -> None:
        """The broker has decided a request."""
        wire = asked.wire
        if self.group_id not in coordinator.groups:
            self._gone()
        if not isinstance(wire, JoinGroupRequest) or wire.member_id or wire.group_instance_id is None:
            return
        group = coordinator.groups.get(self.group_id)
        new = group.static.get(wire.group_instance_id) if group is not None else None
        old, self._held = self._held, None
        if old is None or new is None or new == old:
            return
        must(new not in self._seen_ids, "S13", f"{wire.group_instance_id} got the member id {new} again")
        self._seen_ids[new] = self._seen_ids[old] = None
        self._renamed[old] = new
        for given in self._given.values():
            if old in given:
                given[new] = given[old]

    def _gone(self) -> None:
        """The group was deleted, or has expired: its generations begin again."""
        self._last = self._sent = 0
        for known in (self._leaders, self._given, self._subscribed, self._joined_by):
            known.clear()

    def _note_assignment(self, wire: SyncGroupRequest, group: Group) -> None:
        g = wire.generation_id
        leader = self._leaders.get(g)
        if g != group.generation or leader is None or self._now_called(leader[0]) != wire.member_id:
            return
        if wire.group_instance_id is not None and group.static.get(wire.group_instance_id) != wire.member_id:
            return
        if g not in self._given:
            self._given[g] = {a.member_id: bytes(a.assignment) for a in wire.assignments}
            self._check_shares(g, self._known.get((g, wire.member_id), {}))

    def _check_shares(self, g: int, counts: dict[str, int]) -> None:
        """S2: no partition twice; none left out that the leader knew, but those a cooperative member has to give up."""
        owner: dict[tuple[str, int], str] = {}
        for member_id, payload in self._given[g].items():
            for tp in decode_assignment(payload)[0] if payload else ():
                other = owner.setdefault((tp[0], tp[1]), member_id)
                must(other == member_id, "S2", f"generation {g}: {tp} is given to {other} and {member_id}")
        if not self._given[g]:
            return
        claims = [decode_subscription(data) for data in self._subscribed.get(g, {}).values()]
        owned = set() if self._eager else {(tp[0], tp[1]) for claim in claims for tp in claim.owned_partitions}
        for topic in dict.fromkeys(topic for claim in claims for topic in claim.topics):
            for tp in ((topic, partition) for partition in range(counts.get(topic, 0))):
                must(tp in owner or tp in owned, "S2", f"generation {g}: nobody is given {topic}-{tp[1]}")

    def has_joined(self, member_id: str, generation: int) -> bool:
        """Did this member take part in the generation? A static one that stayed away is in the group all the same."""
        return member_id in self._joined_by.get(generation, ())

    def assigns(self, wire: SyncGroupRequest, counts: dict[str, int]) -> None:
        """A leader sends shares it made when its metadata had these partition counts."""
        self._known[wire.generation_id, wire.member_id] = dict(counts)

    def replaced_ids(self) -> list[tuple[str, str]]:
        """(group instance id, member id) of processes that a newer one has replaced."""
        return [(old.rpartition("-")[0], old) for old in self._renamed]

    def _now_called(self, member_id: str) -> str:
        while member_id in self._renamed:
            member_id = self._renamed[member_id]
        return member_id

    # What it answers

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        reason = self._stale.pop(asked.number, None)
        wire = asked.wire
        if reason and _succeeded(response):
            rule = "S12" if isinstance(wire, OffsetCommitRequest) else "S13" if "instance id" in reason else "S11"
            rule = "S25" if isinstance(wire, DeleteGroup | OffsetDeleteRequest) else rule
            must(False, rule, f"{type(wire).__name__} {asked.number} succeeded, but {reason}")
        if isinstance(response, JoinGroupResponse) and response.error_code == ErrorCode.NONE:
            self._joined(response)
        elif isinstance(response, SyncGroupResponse) and response.error_code == ErrorCode.NONE:
            assert isinstance(wire, SyncGroupRequest)
            self._synced(wire, bytes(response.assignment))

    def _joined(self, response: JoinGroupResponse) -> None:
        g, leader = response.generation_id, self._now_called(response.leader)
        must(g >= self._last, "S5", f"generation {g} is told after {self._last}")
        must(g > self._sent or g in self._leaders, "S5", f"generation {g} was told before the restart, and again")
        self._last = g
        self._joined_by.setdefault(g, {})[response.member_id] = None
        first = self._leaders.setdefault(g, (leader, response.protocol_name))
        same = (self._now_called(first[0]), first[1]) == (leader, response.protocol_name)
        must(same, "S6", f"generation {g} has leader {first}, and {(leader, response.protocol_name)}")
        if not response.members:
            return
        must(
            self._now_called(response.member_id) == leader,
            "S6",
            f"{response.member_id} got the members, {leader} leads",
        )
        ids = [m.member_id for m in response.members]
        must(response.member_id in ids and len({*ids}) == len(ids), "S6", f"members of generation {g}: {ids}")
        if not response.skip_assignment:
            self._subscribed[g] = {m.member_id: bytes(m.metadata) for m in response.members}

    def _synced(self, wire: SyncGroupRequest, got: bytes) -> None:
        g = wire.generation_id
        given = self._given.get(g)
        must(given is not None, "S8", f"generation {g} is synced, and its leader has assigned nothing")
        expected = (given or {}).get(wire.member_id, b"")
        must(got == expected, "S1", f"{wire.member_id} got another assignment in generation {g} than its leader gave")

    # Between two steps

    def stepped(self, coordinator: GroupCoordinator) -> None:
        """The broker is between two steps."""
        if self.group_id not in coordinator.groups:
            self._gone()
        for group in coordinator.groups.values():
            check(group)
            everybody = all(m.join is not None for m in group.members.values()) and not group.pending
            waits = group.state is PREPARING and group.members and not group.is_initial and everybody
            must(not waits, "L3", f"all members of {group.group_id} have rejoined, and still the join phase lasts")

    def crashing(self, coordinator: GroupCoordinator, *, all_durable: bool) -> None:
        """The process of the broker dies now."""
        group = coordinator.groups.get(self.group_id)
        stable = group is not None and group.state is STABLE
        self._before_crash = _facts(group) if group is not None and stable and all_durable else None

    def loaded(self, coordinator: GroupCoordinator) -> None:
        """A coordinator has replayed the log."""
        group = coordinator.groups.get(self.group_id)
        recovered = group.generation if group is not None else 0
        if self._before_crash is not None and group is not None:
            must(_facts(group) == self._before_crash, "S30", f"restarted as {_facts(group)}, was {self._before_crash}")
        self._before_crash = None
        self._forget_what_was_lost(recovered, group)

    def _forget_what_was_lost(self, recovered: int, group: Group | None) -> None:
        """Remember the generations sent to clients: no later generation may reuse their numbers (S5)."""
        self._sent = max(self._sent, self._last)
        self._last = recovered
        for known in (self._leaders, self._given, self._subscribed, self._joined_by):
            for g in [g for g in known if g > recovered]:
                del known[g]
        members = group.members if group is not None else {}
        for old in [m for m in self._renamed if m in members]:
            del self._renamed[old]


def staleness(group: Group | None, wire: HeartbeatRequest | SyncGroupRequest | OffsetCommitRequest) -> str:
    """Why this call may not succeed; empty if it may. The group is the one that it names."""
    is_commit = isinstance(wire, OffsetCommitRequest)
    generation = wire.generation_id_or_member_epoch if isinstance(wire, OffsetCommitRequest) else wire.generation_id
    if group is None:
        return "" if is_commit and generation < 0 else "there is no group"
    if is_commit and generation < 0 and not group.members:
        return ""
    if wire.member_id not in group.members:
        return "it is no member"
    if wire.group_instance_id is not None and group.static.get(wire.group_instance_id) != wire.member_id:
        return "its instance id is held by another"
    if generation != group.generation:
        return f"it is of generation {generation}, the group of {group.generation}"
    if is_commit and group.state is COMPLETING:
        return "the group awaits its assignment"
    return ""


def _is_replaced(group: Group | None, entry: MemberIdentity) -> bool:
    """Does the entry name an instance id together with a member id that no longer holds it?"""
    if group is None or not entry.member_id or entry.group_instance_id is None:
        return False
    return group.static.get(entry.group_instance_id, entry.member_id) != entry.member_id


def _succeeded(response: Structure) -> bool:
    if isinstance(response, LeaveGroupResponse):
        return any(member.error_code == ErrorCode.NONE for member in response.members)
    if isinstance(response, OffsetCommitResponse):
        codes = [p.error_code for topic in response.topics for p in topic.partitions]
        return any(code == ErrorCode.NONE for code in codes)
    if isinstance(response, OffsetDeleteResponse):
        codes = [p.error_code for topic in response.topics for p in topic.partitions]
        return response.error_code == ErrorCode.NONE and any(code == ErrorCode.NONE for code in codes)
    singles = HeartbeatResponse | SyncGroupResponse | JoinGroupResponse | DeletableGroupResult
    is_one = isinstance(response, singles)
    return is_one and getattr(response, "error_code", None) == ErrorCode.NONE


def _facts(group: Group) -> tuple[object, ...]:
    """Return the state that a restart must not change for members."""
    members = {m.member_id: (m.instance_id, m.assignment, m.session_timeout_ms) for m in group.members.values()}
    return group.generation, group.leader_id, group.protocol_name, members
