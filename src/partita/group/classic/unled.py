"""Groups in which no member knows that it leads: the coordinator watches their topics instead of the group leader.

A downgrade leaves a group like that, for members of a KIP-848 group are told of no leader. Its record names no leader
either, so that a load goes on watching. The next rebalance ends it. A downgrade mostly begins one at once; if its
coordinator is lost before that ends, the next one finds which partitions have no owner.

Deviation: in Kafka nobody watches. A partition that is added after a downgrade without a rebalance has no owner there
until the group rebalances for another reason. Nor does a coordinator that loads the group begin the rebalance of a
downgrade again.
"""

from __future__ import annotations

from partita.assignors.payloads import decode_assignment
from partita.group.classic import rebalance
from partita.group.notes import TOPICS_CHANGED, Cause
from partita.group.state.consumers import TopicImage
from partita.group.state.model import Group
from partita.group.state.turn import Turn
from partita.protocol.primitives import MalformedRequest

WATCH_MS = 5_000
"""How often the topics are looked at."""


def watch(turn: Turn, group: Group, *, in_ms: int = WATCH_MS) -> None:
    """Look at the topics of the group in `in_ms` milliseconds."""
    group.watch_ms = turn.now.mono_ms + in_ms
    turn.state.arm(group, group.watch_ms)


def look(turn: Turn, group: Group) -> None:
    """Rebalance if the group's topics have other partitions than its members; else look again later."""
    if assigns_all(turn.state.topics, group):
        watch(turn, group)
    else:
        rebalance.rebalance(turn, group, Cause(TOPICS_CHANGED))


def assigns_all(image: TopicImage, group: Group) -> bool:
    """Do the members have the partitions that the subscribed topics have, and no others?"""
    names = group.subscribed_topics()
    if names is None:
        return False
    there = {(name, number) for name in names if (topic := image.get(name)) for number in range(topic.partitions)}
    try:
        held = {partition for member in group.members.values() for partition in decode_assignment(member.assignment)[0]}
    except MalformedRequest:
        return False
    return held == there
