"""This consumer as a member of its group: client state, generation, and why it has to join again.

Shared by the parts that join, beat and commit; only they change it. It serves both group protocols, each with states of
its own. (Kafka: AbstractCoordinator's fields, AbstractMembershipManager; consumer.md 5.0, 5.6, 5.11, 12.3.)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from partita.consumer.config import ConsumerConfig
from partita.consumer.group.assigning import Snapshot, take_snapshot
from partita.consumer.request import Event
from partita.consumer.subscription import Subscription
from partita.protocol.metadata_view import MetadataView
from partita.wording import Note

REASON_LENGTH_MAX = 255


class MemberState(Enum):
    """The client's own view of its membership, named as in the two enums of that name in Kafka's consumer."""

    UNJOINED = "unjoined"
    PREPARING_REBALANCE = "preparing_rebalance"
    COMPLETING_REBALANCE = "completing_rebalance"
    STABLE = "stable"
    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    FENCED = "fenced"
    STALE = "stale"
    FATAL = "fatal"


_REBALANCING = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)
ALLOWED_MOVES = {
    MemberState.UNJOINED: (MemberState.PREPARING_REBALANCE,),
    MemberState.PREPARING_REBALANCE: (MemberState.COMPLETING_REBALANCE, MemberState.UNJOINED),
    MemberState.COMPLETING_REBALANCE: (MemberState.STABLE, MemberState.PREPARING_REBALANCE, MemberState.UNJOINED),
    MemberState.STABLE: (MemberState.PREPARING_REBALANCE, MemberState.UNJOINED),
}
"""Allowed moves of a member of the classic protocol. Staying in a state is always allowed."""

_OUT = (MemberState.FENCED, MemberState.STALE, MemberState.FATAL, MemberState.UNSUBSCRIBED)
CONSUMER_MOVES = {
    MemberState.UNSUBSCRIBED: (MemberState.JOINING, MemberState.FATAL),
    MemberState.JOINING: (MemberState.RECONCILING, MemberState.STABLE, *_OUT),
    MemberState.RECONCILING: (MemberState.ACKNOWLEDGING, MemberState.STABLE, *_OUT),
    MemberState.ACKNOWLEDGING: (MemberState.STABLE, MemberState.RECONCILING, *_OUT),
    MemberState.STABLE: (MemberState.RECONCILING, MemberState.ACKNOWLEDGING, *_OUT),
    MemberState.FENCED: (MemberState.JOINING, MemberState.UNSUBSCRIBED, MemberState.FATAL),
    MemberState.STALE: (MemberState.JOINING, MemberState.UNSUBSCRIBED, MemberState.FATAL),
    MemberState.FATAL: (MemberState.UNSUBSCRIBED,),
}
"""Allowed moves of a member of the consumer protocol (KIP-848).

Kafka's PREPARE_LEAVING and LEAVING are missing: here the callback that leaving owes runs before the membership learns
of the leave, and the heartbeat that leaves is sent in the same turn.

Deviation: `unsubscribe` of Partita's consumer ends a fatal error, where Kafka's consumer cannot subscribe again.
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """Number of the last join; -1 none. The member id may outlive it."""

    id: int = -1
    member_id: str = ""
    protocol: str = ""

    @property
    def is_none(self) -> bool:
        """Is this no generation at all?"""
        return self.id < 0 or not self.member_id


class Member:
    """State, generation and flags; `events` are the application's."""

    def __init__(
        self, config: ConsumerConfig, subscription: Subscription, view: MetadataView, events: list[Event]
    ) -> None:
        self.config = config
        self.subscription = subscription
        self.view = view
        self.by_epochs = config.group_protocol == "consumer"
        """Does it speak the consumer protocol, where the generation is an epoch of its own? Else the classic one."""
        self.state = MemberState.UNSUBSCRIBED if self.by_epochs else MemberState.UNJOINED
        self.generation = Generation()
        self.joined_generation = Generation()
        self.rejoin_needed = True
        """Does the group need the application to poll, so that partitions can be given up or taken over?"""
        self.rejoin_reason = ""
        self.memberships_lost = 0
        """Number of times it left or was removed: a commit from before is not sent afterwards."""
        self.share_is_known = False
        """Has the group assigned this member? With the consumer protocol the first assignment may be empty."""
        self.needs_join_prepare = True
        self.is_leader = False
        self.joined_topics: frozenset[str] | None = None
        self.assignment_snapshot: Snapshot | None = None
        self.fenced: BaseException | None = None
        self.events = events

    @property
    def is_stable(self) -> bool:
        """Does the member hold a synced assignment?"""
        return self.state is MemberState.STABLE

    @property
    def may_commit(self) -> bool:
        """Would the coordinator take a commit of this member now?"""
        return not self.generation.is_none if self.by_epochs else self.is_stable

    @property
    def acting_generation(self) -> Generation:
        """Identity of the member for others, above all transactional producers."""
        return self.generation if self.by_epochs or self.is_stable else self.joined_generation

    @property
    def is_rebalancing(self) -> bool:
        """Is a JoinGroup or SyncGroup under way?"""
        return self.state in _REBALANCING

    @property
    def has_final_share(self) -> bool:
        """Does the member have its assignment, even an empty one, with no rebalance to follow?"""
        return self.is_stable and not self.rejoin_needed and (self.share_is_known or not self.by_epochs)

    @property
    def is_static(self) -> bool:
        """Does the member have a group instance id?"""
        return self.config.group_instance_id is not None

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll; of several reasons before that join, the first is reported."""
        if not self.rejoin_needed:
            self.rejoin_reason = reason[:REASON_LENGTH_MAX]
            self.events.append(Note("rejoin", f"joining group {self.config.group_id} again: {reason}"))
        self.rejoin_needed = True

    def move(self, to: MemberState) -> None:
        """Change the state. Every change goes through here and obeys `ALLOWED_MOVES`."""
        moves = CONSUMER_MOVES if self.by_epochs else ALLOWED_MOVES
        allowed = to is self.state or to in moves[self.state]
        assert allowed, f"a member does not move from {self.state.value} to {to.value}"
        self.state = to

    def reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        """Drop the generation: owned partitions are lost at the next join."""
        self.move(MemberState.UNJOINED)
        self.generation = Generation(member_id=self.generation.member_id) if keep_member_id else Generation()
        self.memberships_lost += 1
        self.needs_join_prepare = True
        self.request_rejoin(reason)

    def expel(self, to: MemberState, reason: str) -> None:
        """End the membership of the consumer protocol: held partitions are lost, and commits fail."""
        if to is not self.state:
            self.move(to)
        self.generation = Generation()
        self.memberships_lost += 1
        self.share_is_known = False
        self.rejoin_needed = to is not MemberState.FATAL
        self.events.append(Note("rejoin", f"out of group {self.config.group_id}: {reason}"))

    def adopt_member_id(self, member_id: str) -> None:
        """Take the member id that the coordinator gave; the next JoinGroup names it."""
        self.move(MemberState.UNJOINED)
        self.generation = Generation(member_id=member_id)

    def enter(self, generation: Generation) -> None:
        """JoinGroup succeeded: this is the generation to complete."""
        self.move(MemberState.COMPLETING_REBALANCE)
        self.generation = generation

    def metadata_snapshot(self) -> Snapshot:
        """The current metadata that the leader's assignment depends on."""
        topics = self.subscription.metadata_topics
        return take_snapshot(self.view, topics, with_racks=bool(self.config.client_rack))

    def must_rejoin(self) -> bool:
        """Every reason of consumer.md 5.6 but a pending exchange."""
        if not self.subscription.is_group:
            return False
        if self.rejoin_needed:
            return True
        if self.assignment_snapshot is not None and self.assignment_snapshot != self.metadata_snapshot():
            self.request_rejoin("cached metadata has changed since the assignment")
        elif self.joined_topics is not None and self.joined_topics != self.subscription.topics:
            self.request_rejoin("subscription has changed since the last join")
        return self.rejoin_needed
