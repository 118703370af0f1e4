"""One classic group in memory: states, members and their invariants.

This is soft state: a crash may lose it, and `partita.group.classic.loading.resume` rebuilds it from the hard state.
`check` asserts the invariants (faults S9, S13, S16, S18). (Kafka: ClassicGroup, ClassicGroupMember.)
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from partita.group.contract import Token
from partita.group.notes import Cause
from partita.protocol.primitives import MalformedRequest, Reader
from partita.wording import What

NO_DEADLINE = 1 << 62
"""A deadline that never comes, in monotonic milliseconds."""
Protocols = tuple[tuple[str, bytes], ...]
"""(protocol name, metadata) pairs of a member, most preferred first."""


class GroupState(Enum):
    """State of a classic group; the value is its name on the wire."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    __hash__ = object.__hash__  # Enum's own is written in Python, and every decision looks a state up


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState


class Waiter(NamedTuple):
    """A parked request: its token, and the version of its answer."""

    token: Token
    version: int


class Member:
    """A member of a group. `deadline_ms` is its session's end, or NO_DEADLINE while an answer to it is parked."""

    __slots__ = (
        "assignment", "client_host", "client_id", "deadline_ms", "instance_id", "is_new", "join", "joined_ms",
        "member_id", "protocols", "rebalance_timeout_ms", "session_timeout_ms", "sync", "synced_ms", "was_loaded",
    )  # fmt: skip

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = b""
        self.join: Waiter | None = None
        self.sync: Waiter | None = None
        self.is_new = False
        """Whether it was added in the running rebalance and not answered yet."""
        self.was_loaded = False
        """Whether it was loaded and has not rejoined since: only its selected protocol is known."""
        self.deadline_ms = NO_DEADLINE
        self.joined_ms: int | None = None
        """Wall time when its last join was parked; None if that was before the shard was loaded."""
        self.synced_ms: int | None = None
        """Wall time when it asked for its assignment; None if it has not since its last join."""

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return its metadata for the protocol; empty if it does not list it."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def cause(self, what: What, detail: str = "") -> Cause:
        """Return a rebalance cause that names this member."""
        return Cause(what, self.member_id, self.instance_id, self.client_id, detail)


class Group:
    """A classic group or, without a protocol type, one that only stores offsets."""

    __slots__ = (
        "causes", "generation", "generation_told", "group_id", "has_unstored_ids", "initial_delay_ms",
        "initial_remaining_ms", "is_initial", "join_deadline_ms", "join_started_ms", "joins_parked", "leader_id",
        "members", "new_member_added", "pending", "pending_sync", "protocol_name", "protocol_type", "removed_instances",
        "since_ms", "state", "static", "subscriptions", "support", "sync_deadline_ms", "sync_started_ms", "wake_ms",
        "watch_ms",
    )  # fmt: skip

    def __init__(self, group_id: str, since_ms: int) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.since_ms = since_ms
        """Wall time when the state was entered; -1 unknown."""
        self.generation = 0
        self.generation_told = 0
        """The highest generation that a client may know; the next one is higher (decision 0070)."""
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        """Group instance id -> member id."""
        self.pending: dict[str, int] = {}
        """Member ids issued and not used yet, with their deadlines."""
        self.pending_sync: dict[str, None] = {}
        """Members that have not asked for their assignment in this generation."""
        self.support: dict[str, int] = {}
        """Number of members that list each protocol."""
        self.has_unstored_ids = False
        """Whether a static member has an unstored new id: after a crash its old id would fence the live process."""
        self.removed_instances: dict[str, None] = {}
        """Group instance ids of removed members whose removal is not stored yet."""
        self.joins_parked = 0
        self.subscriptions: tuple[bytes, ...] | None = None
        """Each member's metadata for the selected protocol, as of the last generation; None before the first one."""
        self.is_initial = False
        """Whether the initial rebalance delay runs (preparing from Empty)."""
        self.new_member_added = False
        """Whether a member joined during the initial delay, which may extend it."""
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self.join_deadline_ms = NO_DEADLINE
        self.sync_deadline_ms = NO_DEADLINE
        self.watch_ms = NO_DEADLINE
        """When the coordinator next compares the assignment with the topics; NO_DEADLINE if the group leader does."""
        self.wake_ms = NO_DEADLINE
        """Lower bound of this group's deadlines; the shard's heap holds exactly one entry for it."""
        self.causes: list[Cause] = []
        """Rebalance causes since the last generation was assigned."""
        self.join_started_ms = 0
        self.sync_started_ms = 0

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of its members; 0 without members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        """Whether every member waits in the join phase and no issued id is unused."""
        # An issued id is about to join: ending the phase without it would cost another rebalance at once.
        return self.joins_parked == len(self.members) and not self.pending

    def is_stored(self) -> None:
        """Mark that a record with the current members was just written."""
        self.has_unstored_ids = False
        self.removed_instances.clear()

    def supports_any(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols can be in this group."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        everyone, support = len(self.members), self.support
        return any(support.get(name) == everyone for name, _ in protocols)

    def count_protocols(self, protocols: Protocols, by: int) -> None:
        """Add `by` (1 or -1) to the support of each protocol; a name that is listed twice counts once."""
        support = self.support
        for name in dict(protocols):
            support[name] = support.get(name, 0) + by
            if not support[name]:
                del support[name]

    def update_member(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_ms: int) -> None:
        """Update the member by its new join."""
        if protocols != member.protocols:
            self.count_protocols(member.protocols, -1)
            self.count_protocols(protocols, 1)
            member.protocols = protocols
        member.was_loaded = False
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_ms

    def vote(self, voters: Iterable[Member] | None = None) -> str:
        """Return the protocol most members prefer among those all support; the leader's order breaks ties.

        With `voters`, the result as if they were the members.
        """
        members = list(self.members.values() if voters is None else voters)
        support = self.support if voters is None else _count_support(members)
        everyone = len(members)
        votes: dict[str, int] = {}
        for member in members:
            choice = next((name for name, _ in member.protocols if support[name] == everyone), None)
            assert choice is not None, f"member {member.member_id} shares no protocol with all the others"
            votes[choice] = votes.get(choice, 0) + 1
        best = max(votes.values())
        tied = [name for name, count in votes.items() if count == best]
        if len(tied) == 1:
            return tied[0]
        leader = next((m for m in members if m.member_id == self.leader_id), members[0])
        return next((name for name, _ in leader.protocols if name in tied), tied[0])

    def topics_differ(self, old: bytes, new: bytes) -> bool:
        """Whether two metadata name different topics. Those of an unknown layout differ if their bytes do.

        A consumer's metadata contains its generation and owned partitions, so its bytes differ at nearly every rejoin.
        """
        if old == new:
            return False
        topics = topics_in(old) if self.protocol_type == "consumer" else None
        return topics is None or topics != topics_in(new)

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the members' topics as of the last generation; None before the first, or if metadata is unreadable.

        Only protocol type `consumer` has a layout that can be read. (Kafka: ClassicGroup.computeSubscribedTopics)
        """
        if self.subscriptions is None:
            return None
        topics: set[str] = set()
        for metadata in dict.fromkeys(self.subscriptions):  # members of one application send equal bytes: decode once
            of_one = topics_in(metadata)
            if of_one is None:
                return None
            topics |= of_one
        return frozenset(topics)


def topics_in(metadata: bytes) -> frozenset[str] | None:
    """Return the topic list that starts a consumer's subscription in every version; None if it is unreadable."""
    try:
        reader = Reader(metadata, 2)
        return frozenset([reader.string() for _ in range(reader.count(2))])
    except MalformedRequest:
        return None


def _count_support(members: Iterable[Member]) -> dict[str, int]:
    support: dict[str, int] = {}
    for member in members:
        for name in dict(member.protocols):
            support[name] = support.get(name, 0) + 1
    return support


def check(group: Group) -> None:
    """Assert the invariants of a group between two steps."""
    if group.state is DEAD:
        return
    members = group.members
    assert (group.leader_id in members) if members else group.leader_id is None, f"leader {group.leader_id}"
    statics = {m.instance_id: m.member_id for m in members.values() if m.instance_id is not None}
    assert group.static == statics, f"static map {group.static} is not {statics}"
    assert group.joins_parked == sum(m.join is not None for m in members.values()), "parked joins miscounted"
    support = _count_support(members.values())
    assert group.support == support, f"support {group.support} is not {support}"
    assert not members.keys() & group.pending.keys(), "a member is pending too"
    assert group.pending_sync.keys() <= members.keys(), "an absent member is to sync"
    for member in members.values():
        parked = member.join is not None or member.sync is not None
        assert member.join is None or group.state is PREPARING, f"join parked in {group.state}"
        assert member.sync is None or group.state is COMPLETING, f"sync parked in {group.state}"
        assert member.is_new or (member.deadline_ms == NO_DEADLINE) == parked, f"{member.member_id}: session"
        assert group.wake_ms <= member.deadline_ms, "a session ends before the group wakes"
    if group.state is EMPTY:
        assert not members, "an empty group has members"
    if group.state in (COMPLETING, STABLE):
        assert members, f"{group.state} without members"
    assert (group.join_deadline_ms != NO_DEADLINE) == (group.state is PREPARING), "join deadline outside the join phase"
    assert group.watch_ms == NO_DEADLINE or group.state is STABLE, f"topics are watched in {group.state}"
    deadlines = (group.join_deadline_ms, group.sync_deadline_ms, group.watch_ms, *group.pending.values())
    assert group.wake_ms <= min(deadlines)
