"""Events of groups and their causes, for log, dashboard and trace.

Plain values; each output renders them in one place. The shell adds the kind.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from partita.wording import What


class Cause(NamedTuple):
    """One cause of a rebalance: an event of a member. `what` says which."""

    what: What
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    detail: str = ""


MEMBERS_TOLD_MAX = 200
"""Maximum number of members that a note describes, to bound the memory of components that keep notes."""


class MemberHeld(NamedTuple):
    """A member at the end of a rebalance, and the partitions assigned to it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: tuple[str, ...] | None
    """Subscribed topics, sorted; None if its client uses a format of its own."""
    partitions: dict[str, list[int]]
    """Topics with the numbers of its partitions."""
    joined_ms: int | None = None
    """Wall time of its last join."""
    synced_ms: int | None = None
    """Wall time when it asked for its assignment; None if it has not yet."""


class RebalanceStarted(NamedTuple):
    """The group asks its members to rejoin; `generation` is the one that ends."""

    group_id: str
    generation: int
    cause: Cause
    wall_ms: int


class Rebalanced(NamedTuple):
    """A rebalance is over: every cause since it began, and how long members waited in each phase."""

    group_id: str
    generation: int
    protocol_name: str | None
    leader_id: str | None
    members: int
    causes: tuple[Cause, ...]
    join_phase_ms: int
    sync_phase_ms: int
    wall_ms: int
    held: tuple[MemberHeld, ...] = ()
    """Its members and their partitions; `MEMBERS_TOLD_MAX` of them at most."""


class MemberGone(NamedTuple):
    """A member was removed, in any state of the group."""

    group_id: str
    cause: Cause
    wall_ms: int


class MemberFenced(NamedTuple):
    """A static member was replaced: requests with `old_member_id` are refused from now on."""

    group_id: str
    group_instance_id: str
    old_member_id: str
    new_member_id: str
    subscription_changed: bool
    """Its topics changed and the group did not rebalance (as in Kafka): they are assigned at the next rebalance."""
    wall_ms: int


class MemberRefused(NamedTuple):
    """A client cannot join (`error` is Kafka's name), or a process whose instance id another one took is alive."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    error: str
    detail: str
    wall_ms: int


class MemberIdIssued(NamedTuple):
    """A new client received this id to rejoin with; it is not a member until it does."""

    group_id: str
    member_id: str
    client_id: str
    wall_ms: int


class MemberIdUnused(NamedTuple):
    """An issued member id was never used to join; `why` is "expired", "left" or "refused"."""

    group_id: str
    member_id: str
    why: str
    wall_ms: int


class OffsetsExpired(NamedTuple):
    """Committed offsets of a group outlived their retention."""

    group_id: str
    partitions: int
    wall_ms: int


class OffsetClamped(NamedTuple):
    """The broker lost the end of a partition's log, and with it records below a committed offset (D4)."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    log_end_offset: int
    """The offset that is committed now."""
    wall_ms: int


class GroupDeleted(NamedTuple):
    """A group was deleted; `why` is "deleted", "expired", or "evicted" (it was empty and another one needed room)."""

    group_id: str
    why: str
    wall_ms: int


class GroupRefused(NamedTuple):
    """A new group was refused: the broker already has `groups_max`. At most one such note per second and shard."""

    group_id: str
    groups_max: int
    wall_ms: int


class GroupsLoaded(NamedTuple):
    """A shard was replayed. `skipped` counts records of unknown kinds."""

    groups: int
    skipped: int
    wall_ms: int
    partition: int = -1
    """The shard, as partition of `__consumer_offsets`; -1 if there is only one."""
    partitions: int = 0
    """The number of shards; 0 if it is not known."""


class GroupEpochBumped(NamedTuple):
    """A KIP-848, share or streams group has changed and its members will get another target. `epoch` is the new one."""

    group_id: str
    epoch: int
    cause: Cause
    wall_ms: int
    protocol: str = "consumer"


class TargetComputed(NamedTuple):
    """A KIP-848 or streams group has a new target; `moved` partitions changed their owner in it."""

    group_id: str
    epoch: int
    assignor: str
    members: int
    moved: int
    wall_ms: int
    held: tuple[MemberHeld, ...] = ()
    """Its members and their targets; `MEMBERS_TOLD_MAX` of them at most."""


class AssignorRaised(NamedTuple):
    """A server-side assignor raised, returned an invalid result or took too long; the group keeps its target."""

    group_id: str
    assignor: str
    error: str
    wall_ms: int


class GroupConverted(NamedTuple):
    """A group has changed its protocol; `protocol` is the new one: "classic" or "consumer"."""

    group_id: str
    protocol: str
    members: int
    wall_ms: int


Note: TypeAlias = (
    RebalanceStarted
    | Rebalanced
    | MemberGone
    | MemberFenced
    | MemberRefused
    | MemberIdIssued
    | MemberIdUnused
    | OffsetsExpired
    | OffsetClamped
    | GroupDeleted
    | GroupRefused
    | GroupsLoaded
    | GroupEpochBumped
    | TargetComputed
    | AssignorRaised
    | GroupConverted
)
