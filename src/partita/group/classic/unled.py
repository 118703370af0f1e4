"""Groups without an active leader: the coordinator watches their topics in the group leader's place.

A downgrade produces such groups, because a KIP-848 group has no leader. The group's record names no leader either, so
that watching continues after a load. The next rebalance ends it. Usually a downgrade starts a rebalance at once; if
the coordinator is lost before that ends, the next coordinator finds the partitions without an owner.

Deviation: Partita watches the topics of a group that a static member's return has made classic, and restarts the
rebalance of a downgrade when it loads the group, where Kafka leaves an added partition without an owner until the next
rebalance.
"""

from __future__ import annotations

from partita.assignors.payloads import decode_assignment
from partita.group.classic import rebalance
from partita.group.notes import Cause
from partita.group.state.model import Group
from partita.group.state.topics import TopicImage
from partita.group.state.turn import Turn
from partita.protocol.primitives import MalformedRequest
from partita.wording import What

WATCH_MS = 5_000
"""Interval between two looks at the topics."""


def watch(turn: Turn, group: Group, *, in_ms: int = WATCH_MS) -> None:
    """Schedule a look at the group's topics in `in_ms` milliseconds."""
    group.watch_ms = turn.now.mono_ms + in_ms
    turn.state.arm(group, group.watch_ms)


def look(turn: Turn, group: Group) -> None:
    """Rebalance if the members do not hold exactly the partitions of the topics; else look again later."""
    if assigns_all(turn.state.topics, group):
        watch(turn, group)
    else:
        rebalance.rebalance(turn, group, Cause(What.TOPICS_CHANGED))


def assigns_all(image: TopicImage, group: Group) -> bool:
    """Whether the members hold exactly the partitions of the subscribed topics."""
    names = group.subscribed_topics()
    if names is None:
        return False
    there = {(name, number) for name in names if (topic := image.get(name)) for number in range(topic.partitions)}
    try:
        held = {partition for member in group.members.values() for partition in decode_assignment(member.assignment)[0]}
    except MalformedRequest:
        return False
    return held == there
