"""The sticky assignors' problem in whole numbers: members, partitions, and rightful owners.

Partitions are numbered through in order of (topic, partition), members in order of their ids; shares are lists of
these numbers. Of several claims on a partition the highest generation wins; equal ones void each other.
(Kafka: AbstractStickyAssignor.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import TypeAlias

from partita.assignors.interface import Assignment, Subscription, TopicMetadata, TopicPartition, sorted_strings
from partita.assignors.racks import racks_matter, replica_racks

Shares: TypeAlias = list[list[int]]
Claim: TypeAlias = tuple[list[int], int]
"""Partitions a member says it owned, and the generation it says so for (-1: none)."""


class Sharing:
    """One sharing-out: partitions, subscribers, and previous owners."""

    __slots__ = (
        "_firsts", "all_alike", "claimed", "counts", "first", "member_racks", "members", "owned", "partition_racks",
        "partitions", "subscriptions", "topics", "total",
    )  # fmt: skip

    def __init__(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> None:
        self.subscriptions = subscriptions
        self.members = sorted_strings(subscriptions)
        sets = _distinct_topic_sets(subscriptions)
        self.all_alike = len(sets) <= 1
        known = metadata.partition_counts
        self.topics = [t for t in sorted_strings(frozenset().union(*sets)) if known.get(t, 0) > 0]
        counts = [known[topic] for topic in self.topics]
        self.counts = dict(zip(self.topics, counts, strict=True))
        ends = list(accumulate(counts, initial=0))
        self.total = ends[-1]
        self._firsts = ends[:-1]
        self.first = dict(zip(self.topics, self._firsts, strict=True))
        self.partitions: list[TopicPartition] = []
        for topic, count in self.counts.items():
            self.partitions += zip(repeat(topic), range(count))
        self.owned: Shares = []
        self.claimed: set[int] = set()
        self.member_racks: list[str | None] = []
        self.partition_racks: list[frozenset[str]] = []
        if metadata.racks:
            self._look_at_racks(metadata)

    def _look_at_racks(self, metadata: TopicMetadata) -> None:
        member_racks = [self.subscriptions[member].rack_id or None for member in self.members]
        named = {rack for rack in member_racks if rack}
        racks = [r for t, count in self.counts.items() for r in replica_racks(metadata.racks.get(t), count)]
        if racks_matter(named, racks):
            self.member_racks, self.partition_racks = member_racks, racks

    def numbers(self, partitions: Sequence[TopicPartition]) -> list[int]:
        """The numbers of those of the partitions that exist."""
        first, counts = self.first, self.counts
        return [first[t] + p for t, p in partitions if t in first and 0 <= p < counts[t]]

    def settle(self, claims: list[Claim]) -> None:
        """Work out who rightly owns which partition, from what every member claims, in order of `members`."""
        claimed = [claim[0] for claim in claims]
        self.claimed = set(chain.from_iterable(claimed))
        no_disputes = len(self.claimed) == sum(map(len, claimed))
        self.owned = claimed if no_disputes else _settle_disputes(claims)

    def free_beside(self, shares: Shares) -> list[int]:
        """The numbers of all partitions that are in none of the shares, in order."""
        if not self.claimed:
            return list(range(self.total))
        return sorted(set(range(self.total)).difference(chain.from_iterable(shares)))

    def is_far(self, member: int, partition: int) -> bool:
        """True if racks matter and no replica of the partition is on the member's rack."""
        rack = self.member_racks[member] if self.member_racks else None
        return rack is not None and rack not in self.partition_racks[partition]

    def near_owned(self) -> Shares:
        """Return new lists of the partitions each member owns, less those whose rack fits another member better."""
        if not self.member_racks:
            return [owned[:] for owned in self.owned]
        peopled = set(self.member_racks)
        return [
            [p for p in owned if not self.is_far(m, p) or peopled.isdisjoint(self.partition_racks[p])]
            for m, owned in enumerate(self.owned)
        ]

    def topic_of(self, number: int) -> int:
        """The position of the partition's topic."""
        return bisect_right(self._firsts, number) - 1

    def homes(self, topics_of: list[set[int]] | None) -> list[int]:
        """By partition its rightful owner, if that member (still) may own it, else -1."""
        home = [-1] * self.total
        for member, owned in enumerate(self.owned):
            for number in owned:
                if topics_of is None or self.topic_of(number) in topics_of[member]:
                    home[number] = member
        return home

    def without_transfers(self, shares: Shares) -> Shares:
        """Return the shares less every partition that another member may still be processing."""
        claimed = self.claimed
        result = []
        for share, owned in zip(shares, self.owned, strict=True):
            moving = claimed.intersection(share).difference(owned)
            result.append([p for p in share if p not in moving] if moving else share)
        return result

    def assignment(self, shares: Shares) -> Assignment:
        """The shares by member id and topic-partition."""
        partition = self.partitions.__getitem__
        return {member: list(map(partition, share)) for member, share in zip(self.members, shares, strict=True)}


def _distinct_topic_sets(subscriptions: Mapping[str, Subscription]) -> set[frozenset[str]]:
    """The different sets of topics; most often one, which equal lists in a row show without hashing."""
    sets: set[frozenset[str]] = set()
    last: Sequence[str] | None = None
    for subscription in subscriptions.values():
        if subscription.topics != last:
            last = subscription.topics
            sets.add(frozenset(last))
    return sets


def _settle_disputes(claims: list[Claim]) -> Shares:
    newest: dict[int, int] = {}
    winner: dict[int, int] = {}
    for member, (partitions, generation) in enumerate(claims):
        for partition in set(partitions):
            best = newest.get(partition)
            if best is None or generation > best:
                newest[partition], winner[partition] = generation, member
            elif generation == best:
                winner[partition] = -1
    return [
        [partition for partition in dict.fromkeys(partitions) if winner[partition] == member]
        for member, (partitions, _) in enumerate(claims)
    ]
