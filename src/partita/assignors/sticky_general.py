"""Sticky sharing when subscriptions differ: balanced as far as they allow, with few moves.

Free partitions go to the least loaded subscriber, most constrained ones first. Then partitions move, one at a time,
from a member to a subscriber that has at least two fewer, first the homeless ones: those not yet with a rightful owner.
Every move makes the sum of the squared loads smaller, so it ends. (Kafka: AbstractStickyAssignor's general builder;
same goals, own search.)
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush, heapreplace

from partita.assignors.sticky_home import send_home
from partita.assignors.sticky_sharing import Shares, Sharing


def share_generally(sharing: Sharing) -> Shares:
    """Share so that no member could take a partition it may own from one that holds at least two more."""
    search = _Search(sharing)
    search.keep_owned()
    search.give_free()
    search.relieve(only_homeless=True)
    search.relieve_by_chains()
    search.relieve(only_homeless=False)
    shares = [[number for topic in held.values() for number in topic] for held in search.held]
    if any(sharing.owned):
        send_home(sharing, shares, search.wanted)
    return shares


class _Search:
    """The state of the search: per member its partitions by topic, and per topic its subscribers by load."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        index = {topic: number for number, topic in enumerate(sharing.topics)}
        self.topics_of = [
            [index[t] for t in dict.fromkeys(sharing.subscriptions[member].topics) if t in index]
            for member in sharing.members
        ]
        self.wanted = [set(topics) for topics in self.topics_of]
        self.subscribers: list[list[int]] = [[] for _ in sharing.topics]
        for member, topics in enumerate(self.topics_of):
            for topic in topics:
                self.subscribers[topic].append(member)
        self.topic_of = [t for t, count in enumerate(sharing.counts.values()) for _ in range(count)]
        self.home = [-1] * sharing.total
        self.load = [0] * len(sharing.members)
        self.held: list[dict[int, list[int]]] = [{} for _ in sharing.members]
        self.heaps: dict[tuple[int, str | None], list[tuple[int, int]]] = {}

    def keep_owned(self) -> None:
        for member, owned in enumerate(self.sharing.owned):
            for number in sorted(owned):
                if self.topic_of[number] in self.wanted[member]:
                    self.home[number] = member
                    self._add(member, number)

    def give_free(self) -> None:
        taken = {number for held in self.held for numbers in held.values() for number in numbers}
        free = [n for n in range(self.sharing.total) if n not in taken and self.subscribers[self.topic_of[n]]]
        free.sort(key=lambda number: len(self.subscribers[self.topic_of[number]]))
        rest = []
        for number in free if self.sharing.member_racks else ():
            member = self._least_near(number)
            if member is None:
                rest.append(number)
            else:
                self._add(member, number)
        for number in rest if self.sharing.member_racks else free:
            self._add(self._least(self.topic_of[number], None), number)

    def relieve(self, *, only_homeless: bool) -> None:
        """Move partitions from fuller to emptier members until no single move would help."""
        changed = True
        while changed:
            changed = False
            fullest = [(-load, member) for member, load in enumerate(self.load) if load > 1]
            heapify(fullest)
            while fullest:
                load, member = heappop(fullest)
                if -load == self.load[member] and self._relieve_once(member, only_homeless):
                    changed = True
                    heappush(fullest, (-self.load[member], member))

    def _relieve_once(self, member: int, only_homeless: bool) -> bool:
        best_load, best_topic, best_taker = self.load[member] - 1, -1, -1
        for topic, numbers in self.held[member].items():
            if not numbers or (only_homeless and self.home[numbers[-1]] == member):
                continue
            taker = self._least(topic, None)
            if self.load[taker] < best_load:
                best_load, best_topic, best_taker = self.load[taker], topic, taker
        if best_taker < 0:
            return False
        self._move(self._choose(member, best_topic, best_taker), member, best_taker)
        return True

    def _choose(self, giver: int, topic: int, taker: int) -> int:
        """The partition whose move costs least: one coming home, then a homeless one, near ones first."""
        numbers = self.held[giver][topic]
        if self.home[numbers[-1]] == giver and not self.sharing.member_racks:
            return numbers[-1]
        return min(reversed(numbers), key=lambda n: (self._cost(n, giver, taker), self.sharing.is_far(taker, n)))

    def _cost(self, number: int, giver: int, taker: int) -> int:
        home = self.home[number]
        return -1 if home == taker else int(home == giver)

    def relieve_by_chains(self) -> None:
        """Where no single move helps, let homeless partitions go along a chain: a gives to b, b gives to c."""
        changed = True
        while changed:
            changed = False
            settled: set[int] = set()
            for member in sorted(range(len(self.load)), key=lambda m: (-self.load[m], m)):
                if member in settled or self.load[member] < 2:
                    continue
                chain = self._chain_from(member, settled)
                for giver, topic, taker in reversed(chain):
                    self._move(self._choose(giver, topic, taker), giver, taker)
                changed = changed or bool(chain)

    def _chain_from(self, start: int, settled: set[int]) -> list[tuple[int, int, int]]:
        """The shortest chain from `start` to a member with two fewer, else nothing; then whom it met is settled."""
        came_by: dict[int, tuple[int, int, int]] = {}
        met, seen_topics, queue = {start}, set[int](), deque([start])
        while queue:
            giver = queue.popleft()
            for topic, numbers in self.held[giver].items():
                if topic in seen_topics or not numbers or self.home[numbers[-1]] == giver:
                    continue
                seen_topics.add(topic)
                for taker in self.subscribers[topic]:
                    if taker in met:
                        continue
                    met.add(taker)
                    came_by[taker] = (giver, topic, taker)
                    if self.load[taker] <= self.load[start] - 2:
                        return _walk_back(came_by, taker)
                    queue.append(taker)
        settled |= met
        return []

    def _move(self, number: int, giver: int, taker: int) -> None:
        self.held[giver][self.topic_of[number]].remove(number)
        self._set_load(giver, self.load[giver] - 1)
        self._add(taker, number)

    def _add(self, member: int, number: int) -> None:
        """Hand over a partition; the homeless ones of a topic stay at the end of its list."""
        numbers = self.held[member].setdefault(self.topic_of[number], [])
        if self.home[number] == member:
            numbers.insert(0, number)
        else:
            numbers.append(number)
        self.load[member] += 1

    def _set_load(self, member: int, load: int) -> None:
        self.load[member] = load
        rack = self.sharing.member_racks[member] if self.sharing.member_racks else None
        for topic in self.topics_of[member]:
            for key in {(topic, None), (topic, rack)}:
                if key in self.heaps:
                    heappush(self.heaps[key], (load, member))

    def _least(self, topic: int, rack: str | None) -> int:
        """The least loaded subscriber of the topic (on the rack); -1 if there is none."""
        heap = self.heaps.get((topic, rack))
        if heap is None:
            racks = self.sharing.member_racks
            heap = [(self.load[m], m) for m in self.subscribers[topic] if rack is None or racks[m] == rack]
            heapify(heap)
            self.heaps[topic, rack] = heap
        while heap:
            load, member = heap[0]
            if load == self.load[member]:
                return member
            if load > self.load[member]:
                heappop(heap)
            else:
                heapreplace(heap, (self.load[member], member))
        return -1

    def _least_near(self, number: int) -> int | None:
        topic = self.topic_of[number]
        near = [self._least(topic, rack) for rack in sorted(self.sharing.partition_racks[number])]
        return min((m for m in near if m >= 0), key=lambda m: (self.load[m], m), default=None)


def _walk_back(came_by: dict[int, tuple[int, int, int]], end: int) -> list[tuple[int, int, int]]:
    chain = []
    while end in came_by:
        chain.append(came_by[end])
        end = came_by[end][0]
    return chain[::-1]
