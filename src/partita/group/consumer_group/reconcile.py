"""Reconciles one member with its target: its owned partitions, those to revoke, and its epoch.

A partition passes to its new owner only after the old one has stopped reporting it. (Kafka: CurrentAssignmentBuilder,
specification section 20.4.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple

from partita.group.records.consumer_group import ConsumerMember, MemberState, Partition, Target

STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


class Reported(IntEnum):
    """Relation of reported partitions to those that the member has to revoke."""

    NOTHING_NEW = 0
    """It reports none: unchanged."""
    STILL_HELD = 1
    """The report still contains partitions that it has to revoke."""
    GIVEN_UP = 2
    """The report contains none of the partitions to revoke."""


NOTHING_NEW, STILL_HELD, GIVEN_UP = Reported


class Reconciling(NamedTuple):
    """One member being reconciled."""

    member: ConsumerMember
    epoch: int
    """The epoch of the target."""
    target: Target
    owned: Collection[Partition] | None
    is_free: Callable[[Partition], bool]
    """Whether no other member owns the partition, so that this one may take it."""
    narrows: bool = False
    """Its subscription has just changed, so the partitions it may own change before the next target."""


def reconcile(asked: Reconciling) -> ConsumerMember | None:
    """Return the member after one step; None: it must be fenced, since its partitions are unknown."""
    return RECONCILE[asked.member.state][classify(asked)](asked)


def classify(asked: Reconciling) -> Reported:
    """Return the column of `RECONCILE`."""
    if asked.owned is None:
        return NOTHING_NEW
    # Outside UNREVOKED the question is only whether it reports anything.
    held = asked.member.revoking if asked.member.state is UNREVOKED else asked.owned
    return STILL_HELD if any(partition in held for partition in asked.owned) else GIVEN_UP


def ADVANCE(asked: Reconciling) -> ConsumerMember | None:
    """Advance towards the target as far as other members' partitions allow."""
    member = asked.member
    # Nearly every heartbeat ends here: the very same member comes back, so nothing is written.
    if member.state is STABLE and member.epoch == asked.epoch and not (asked.narrows and _is_beyond(member, asked)):
        return member
    return _towards_target(asked, member.epoch)


def WAIT(asked: Reconciling) -> ConsumerMember | None:
    """Keep the member unchanged: it still has partitions to revoke."""
    return asked.member


def GO_ON(asked: Reconciling) -> ConsumerMember | None:
    """Advance a member that has revoked its partitions: it is at least in the next epoch."""
    # If there is yet more to revoke it goes on one epoch at a time, else it arrives at the target's.
    return _towards_target(asked, asked.member.epoch + 1)


def FENCE(asked: Reconciling) -> ConsumerMember | None:
    """Fence a member whose state a newer release wrote: it may own any partition."""
    return None


def START_OVER(asked: Reconciling) -> ConsumerMember | None:
    """Reconcile from scratch: the member owns nothing, so its state does not matter."""
    return _towards_target(asked, asked.epoch)


Action = Callable[[Reconciling], ConsumerMember | None]
# fmt: off
RECONCILE: dict[MemberState, tuple[Action, ...]] = {
    #            NOTHING_NEW STILL_HELD GIVEN_UP
    STABLE:     (ADVANCE,    ADVANCE,   ADVANCE),
    UNREVOKED:  (WAIT,       WAIT,      GO_ON),
    UNRELEASED: (ADVANCE,    ADVANCE,   ADVANCE),
    UNKNOWN:    (FENCE,      FENCE,     START_OVER),
}
# fmt: on


def _is_beyond(member: ConsumerMember, asked: Reconciling) -> bool:
    return any(partition not in asked.target for partition in member.assigned)


def _towards_target(asked: Reconciling, epoch: int) -> ConsumerMember:
    """Revoke first, then take free partitions, then wait for the rest. `epoch` is the member's while it revokes."""
    member, target = asked.member, asked.target
    # Each partition keeps the epoch in which it was given: an offset commit of an older epoch is judged by it.
    keep = {partition: given for partition, given in member.assigned.items() if partition in target}
    revoke = {partition: given for partition, given in member.assigned.items() if partition not in target}
    # If it says itself that it does not own them, there is nothing to wait for.
    if revoke and (asked.owned is None or any(partition in revoke for partition in asked.owned)):
        return _moved(member, epoch, UNREVOKED, keep, revoke)
    # Sorted, because a set is walked and records are written in this order: a seed must replay byte by byte.
    wanted = sorted(partition for partition in target if partition not in keep)
    # Partitions that another member still reports are left out now and asked for at each later heartbeat.
    free = {partition: asked.epoch for partition in wanted if asked.is_free(partition)}
    state = STABLE if len(free) == len(wanted) else UNRELEASED
    return _moved(member, asked.epoch, state, {**keep, **free}, {})


def _moved(
    member: ConsumerMember,
    epoch: int,
    state: MemberState,
    assigned: dict[Partition, int],
    revoking: dict[Partition, int],
) -> ConsumerMember:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking)
