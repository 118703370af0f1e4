"""Range: of each topic every subscribed member gets one run of neighbouring partitions.

Topics with the same partition count and subscribers line up by number, which joins rely on; in exchange the first
members collect the odd partitions of every topic. Where racks are known, partitions near a member go to it first,
within the same quota. Not sticky. (Kafka: RangeAssignor, KIP-881.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from partita.assignors.interface import (
    Assignment,
    Assignor,
    Subscription,
    TopicMetadata,
    members_in_order,
    sorted_strings,
)
from partita.assignors.racks import racks_matter, replica_racks


def assign(metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
    """Share topic by topic; same answer as Kafka's, partition for partition."""
    shared = [
        (topic, members)
        for topic, members in _members_by_topic(subscriptions)
        if metadata.partition_counts.get(topic, 0) > 0
    ]
    racks = {member: subscription.rack_id or None for member, subscription in subscriptions.items()}
    if metadata.racks and any(racks.values()):
        topics = [_Topic(topic, metadata, members, racks) for topic, members in shared]
        if any(topic.racks_matter for topic in topics):
            return _assign_near_first(topics, subscriptions)
    assignment: Assignment = {member: [] for member in subscriptions}
    for topic, members in shared:
        partitions = [(topic, partition) for partition in range(metadata.partition_counts[topic])]
        quota, extras = divmod(len(partitions), len(members))
        longer = extras * (quota + 1)
        for member, begin in zip(members, range(0, longer, quota + 1), strict=False):
            assignment[member] += partitions[begin : begin + quota + 1]
        if quota:
            for member, begin in zip(members[extras:], range(longer, len(partitions), quota), strict=True):
                assignment[member] += partitions[begin : begin + quota]
    return assignment


def _assign_near_first(topics: list[_Topic], members: Iterable[str]) -> Assignment:
    """Partitions near a member go to it first, then each topic's others in runs."""
    assignment: Assignment = {member: [] for member in members}
    _give_near_partitions(topics)
    for topic in topics:
        topic.give_runs(near_only=False)
        for member, given in topic.given.items():
            assignment[member].extend((topic.name, partition) for partition in sorted(given))
    return assignment


def _members_by_topic(subscriptions: Mapping[str, Subscription]) -> list[tuple[str, list[str]]]:
    """The subscribers of each topic, both in order. Where all members subscribe alike, the topics share one list."""
    ordered = members_in_order(subscriptions)
    distinct = {tuple(subscription.topics) for subscription in subscriptions.values()}
    if len(distinct) == 1:
        return [(topic, ordered) for topic in sorted_strings(set(*distinct))]
    members: dict[str, list[str]] = {}
    for member in ordered:
        for topic in dict.fromkeys(subscriptions[member].topics):
            members.setdefault(topic, []).append(member)
    return [(topic, members[topic]) for topic in sorted_strings(members)]


class _Topic:
    """One topic being shared: what is left of it, and what each member may still get."""

    def __init__(
        self, name: str, metadata: TopicMetadata, members: list[str], member_racks: Mapping[str, str | None]
    ) -> None:
        self.name = name
        self.members = members
        self.given: dict[str, list[int]] = {member: [] for member in members}
        self.member_racks = {member: member_racks[member] for member in members}
        self.count = metadata.partition_counts[name]
        self.left: Iterable[int] = range(self.count)
        self.quota, self.extras = divmod(self.count, len(members))
        self.racks = replica_racks(metadata.racks.get(name), self.count)
        self.racks_matter = racks_matter({rack for rack in self.member_racks.values() if rack}, self.racks)

    def room(self, member: str) -> int:
        """Number of partitions that the member may still get."""
        return max(0, self.quota + (self.extras > 0) - len(self.given[member]))

    def is_near(self, member: str, partition: int) -> bool:
        rack = self.member_racks[member]
        return rack is None or rack in self.racks[partition]

    def give(self, member: str, partitions: list[int]) -> None:
        given = self.given[member]
        given.extend(partitions)
        if len(given) > self.quota:
            self.extras -= 1

    def give_runs(self, *, near_only: bool) -> None:
        """Members in order take the first partitions left, as many as they may."""
        left = list(self.left)
        for member in self.members:
            room = self.room(member)
            if room == 0 or not left:
                continue
            if not near_only:
                run, left = left[:room], left[room:]
            else:
                run = [partition for partition in left if self.is_near(member, partition)][:room]
                taken = set(run)
                left = [partition for partition in left if partition not in taken]
            if run:
                self.give(member, run)
        self.left = left


def _give_near_partitions(topics: list[_Topic]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        alike.setdefault((tuple(topic.members), topic.count), []).append(topic)
    for group in alike.values():
        if len(group) > 1:
            _give_near_jointly(group)
        elif group[0].racks_matter:
            group[0].give_runs(near_only=True)


def _give_near_jointly(topics: list[_Topic]) -> None:
    """Partition p of all these topics goes to one member: the first with room that is near all of them."""
    if not any(topics[0].member_racks.values()):
        return
    members = list(topics[0].members)
    taken = set()
    for partition in range(topics[0].count):
        chosen = next((m for m in members if all(t.room(m) and t.is_near(m, partition) for t in topics)), None)
        if chosen is None:
            continue
        taken.add(partition)
        for topic in topics:
            topic.give(chosen, [partition])
        if not topics[0].room(chosen):
            members.remove(chosen)
    for topic in topics:
        topic.left = [partition for partition in topic.left if partition not in taken]


class RangeAssignor(Assignor):
    """`partition.assignment.strategy=range`, the first choice by default."""

    name: ClassVar[str] = "range"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Share each topic by itself: consecutive partitions, in the order of member ids."""
        return assign(metadata, subscriptions)
