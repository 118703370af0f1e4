"""Facts for log, dashboard and trace: what happened to a group, and why.

Values only; each output renders them in one place of its own. `as_json` names the kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class Cause(NamedTuple):
    """One reason for a rebalance: what a member did or suffered. `what` is one of the constants below."""

    what: str
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    detail: str = ""


JOINED = "member joined"
LEFT = "member left"
EXPIRED = "session expired"
EVICTED = "member evicted"
SUBSCRIPTION_CHANGED = "subscription changed"
PROTOCOLS_CHANGED = "protocols changed"
PARTITIONS_CHANGED = "partitions of a subscribed topic changed"
PARTITIONS_GIVEN_UP = "member gave partitions up"
ENFORCED = "rebalance enforced"
LEADER_REJOINED = "group leader rejoined"
MEMBER_REJOINED = "member rejoined"
STATIC_REPLACED = "static member replaced"
DID_NOT_REJOIN = "member did not rejoin in time"
DID_NOT_SYNC = "member did not sync in time"
REFUSED_FULL = "member refused, group is full"
ASSIGNMENT_TOO_LARGE = "assignment could not be stored"
DID_NOT_REVOKE = "member did not give partitions up in time"
TOPICS_CHANGED = "subscribed topics changed"
LOADED_UNASSIGNED = "loaded in a generation without an assignment"
LOADED_OVER_SIZE = "loaded with more members than group.max.size"


MEMBERS_TOLD_MAX = 200
"""A note describes at most this many members, so that no group fills the memory of whoever keeps notes."""


class MemberHeld(NamedTuple):
    """A member as it is when a rebalance is over, and what it is to read from then on."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int | None
    """None: its session is the broker's setting (KIP-848)."""
    rebalance_timeout_ms: int
    topics: tuple[str, ...] | None
    """What it subscribes to, sorted; None if its client has a format of its own."""
    partitions: dict[str, list[int]]
    """Topics with the numbers of its partitions."""
    joined_ms: int | None = None
    """When its last join came, on the wall clock."""
    synced_ms: int | None = None
    """When it asked for its assignment; None if it has not yet."""


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
    """Its members and what they hold; `MEMBERS_TOLD_MAX` of them at most."""


class MemberGone(NamedTuple):
    """A member was removed, in whatever state the group was."""

    group_id: str
    cause: Cause
    wall_ms: int


class MemberFenced(NamedTuple):
    """A static member was replaced: whoever still uses `old_member_id` is refused from now on."""

    group_id: str
    group_instance_id: str
    old_member_id: str
    new_member_id: str
    subscription_changed: bool
    """Its topics changed and the group did not rebalance (as in Kafka): they are assigned at the next rebalance."""
    wall_ms: int


class MemberIdIssued(NamedTuple):
    """A new client was told to join again with this id; it is no member before it does."""

    group_id: str
    member_id: str
    client_id: str
    wall_ms: int


class MemberIdUnused(NamedTuple):
    """An id was handed out, and nobody joined with it; `why` is "expired", "left" or "refused"."""

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
    """What is committed now."""
    wall_ms: int


class GroupDeleted(NamedTuple):
    """A group is gone; `why` is "deleted", "expired", or "evicted": it had nothing left and another one needed room."""

    group_id: str
    why: str
    wall_ms: int


class GroupRefused(NamedTuple):
    """A new group found no room: the broker holds `groups_max` already. At most one such note per second and shard."""

    group_id: str
    groups_max: int
    wall_ms: int


class GroupsLoaded(NamedTuple):
    """A shard was replayed. `skipped` counts records of unknown kinds."""

    groups: int
    skipped: int
    wall_ms: int
    partition: int = -1
    """Which shard: the partition of `__consumer_offsets` that holds its groups; -1 where there is one only."""


class GroupEpochBumped(NamedTuple):
    """A KIP-848 group has changed: its members will get another target. `epoch` is the new one."""

    group_id: str
    epoch: int
    cause: Cause
    wall_ms: int


class TargetComputed(NamedTuple):
    """A KIP-848 group has a new target; `moved` partitions have another owner in it than in the one before."""

    group_id: str
    epoch: int
    assignor: str
    members: int
    moved: int
    wall_ms: int
    held: tuple[MemberHeld, ...] = ()
    """Its members and what they are to read; `MEMBERS_TOLD_MAX` of them at most."""


class AssignorRaised(NamedTuple):
    """A server-side assignor raised, gave what cannot be used, or took too long; the group keeps the target it has."""

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


def as_json(note: Note) -> dict[str, Any]:
    """The note as plain values, with its kind under `note`."""
    values = note if isinstance(note, _FLAT) else map(_plain, note)
    return {"note": type(note).__name__, **dict(zip(note._fields, values, strict=True))}


_FLAT = (MemberIdIssued, MemberIdUnused)
"""Notes of numbers and texts alone, of which there is one for each member that comes."""


def _plain(value: object) -> object:
    if isinstance(value, Cause):
        return dict(zip(Cause._fields, value, strict=True))
    if isinstance(value, MemberHeld):
        return {name: _plain(part) for name, part in zip(MemberHeld._fields, value, strict=True)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
