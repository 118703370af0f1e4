"""Facts to steps: each completed generation of a group beside the previous one, with the events in between."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from partita.explain.facts import (
    Assigned,
    Committed,
    CoordinatorLoaded,
    EndSeen,
    Fact,
    Forgotten,
    Member,
    Partition,
    PartitionsCounted,
    Replaced,
    Sure,
)

PACED_COMMITS = 20
"""The pace of a member is that of its last commits: an idle minute a week ago says nothing of its last one."""
COMMITS_FOR_A_PACE = 3
ONE_STEP_MS = 1_000
"""A record is written so soon after the note of its step."""


def pace_of(times_ms: Sequence[int]) -> int | None:
    """The longest time between two of the last twenty of these commits; None if there are fewer than three."""
    last = times_ms[-PACED_COMMITS:]
    return max(b - a for a, b in pairwise(last)) if len(last) >= COMMITS_FOR_A_PACE else None


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits of one partition in order of time."""

    times_ms: tuple[int, ...]
    offsets: tuple[int, ...]
    paces_ms: tuple[int | None, ...] = ()
    """Where commits were dropped, the pace at each that was kept."""

    def pace_ms(self, since_ms: int, upto_ms: int) -> int | None:
        """The pace at the last commit in this time; None if it is not known."""
        first, end = bisect_left(self.times_ms, since_ms), bisect_right(self.times_ms, upto_ms)
        kept = [pace for pace in self.paces_ms[first:end] if pace is not None]
        return kept[-1] if kept else pace_of(self.times_ms[first:end])

    def last_upto(self, at_ms: int) -> int | None:
        """The index of the last commit at or before this time."""
        found = bisect_right(self.times_ms, at_ms) - 1
        return None if found < 0 else found

    def first_after(self, at_ms: int) -> int | None:
        """The index of the first commit after this time."""
        found = bisect_right(self.times_ms, at_ms)
        return None if found == len(self.times_ms) else found


NO_COMMITS = Commits((), ())


@dataclass(frozen=True, slots=True)
class Step:
    """One generation after another. `before` is None for the first one that is known."""

    before: Assigned | None
    after: Assigned
    history: History
    until_ms: int | None
    """When the next generation was assigned."""
    known: frozenset[Partition] = frozenset()
    """Every partition that was assigned up to `before`."""
    known_earlier: frozenset[Partition] = frozenset()
    """Every partition that was assigned in a generation older than `before`."""

    @property
    def since_ms(self) -> int:
        """When the generation before was assigned; of the first one, its own time."""
        return self.after.at_ms if self.before is None else self.before.at_ms

    @property
    def replaced(self) -> tuple[Replaced, ...]:
        """The static members that were replaced meanwhile."""
        return tuple(r for r in self.history.replaced if self.since_ms < r.at_ms <= self.after.at_ms)

    @property
    def loads(self) -> tuple[CoordinatorLoaded, ...]:
        """The loads of the coordinator meanwhile."""
        return tuple(load for load in self.history.loads if self.since_ms < load.at_ms <= self.after.at_ms)

    @property
    def is_rebalance(self) -> bool:
        """Is it another generation, or the first of another protocol, and not the same one with another member id?"""
        before, after = self.before, self.after
        return before is None or (before.generation, before.is_incremental) != (after.generation, after.is_incremental)


@dataclass(frozen=True, slots=True)
class History:
    """Everything known about one group, in order of time."""

    group: str
    assigned: tuple[Assigned, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    loads: tuple[CoordinatorLoaded, ...] = ()
    forgotten: tuple[Forgotten, ...] = ()
    commits: Mapping[Partition, Commits] = field(default_factory=dict)
    ends: Mapping[Partition, Commits] = field(default_factory=dict)
    """Log ends by time."""
    counts: tuple[PartitionsCounted, ...] = ()

    def steps(self) -> tuple[Step, ...]:
        """Each generation beside the one before it; a group that was deleted begins again."""
        found: list[Step] = []
        before: Assigned | None = None
        known = earlier = frozenset[Partition]()
        for i, after in enumerate(self.assigned):
            # A group that changes its protocol is written anew and forgotten in its old form at the same instant.
            if before is not None and any(before.at_ms < gone.at_ms < after.at_ms for gone in self.forgotten):
                before = None
            until_ms = self.assigned[i + 1].at_ms if i + 1 < len(self.assigned) else None
            found.append(Step(before, after, self, until_ms, known, earlier))
            held = {partition for member in after.members for partition in member.partitions}
            before, earlier = after, known
            known = known if held <= known else known | held
        return tuple(found)


def histories(facts: Iterable[Fact]) -> list[History]:
    """The facts sorted out by group; facts about all groups are in each."""
    assigned: dict[str, list[Assigned]] = defaultdict(list)
    replaced: dict[str, list[Replaced]] = defaultdict(list)
    forgotten: dict[str, list[Forgotten]] = defaultdict(list)
    commits: dict[str, dict[Partition, list[Committed]]] = defaultdict(lambda: defaultdict(list))
    loads: list[CoordinatorLoaded] = []
    ends: dict[Partition, list[EndSeen]] = defaultdict(list)
    counts: list[PartitionsCounted] = []
    for fact in facts:
        match fact:
            case Assigned():
                assigned[fact.group].append(fact)
            case Replaced():
                replaced[fact.group].append(fact)
            case Committed():
                commits[fact.group][fact.partition].append(fact)
            case Forgotten():
                forgotten[fact.group].append(fact)
            case CoordinatorLoaded():
                loads.append(fact)
            case EndSeen():
                ends[fact.partition].append(fact)
            case PartitionsCounted():
                counts.append(fact)
    ended = {partition: _ordered(some) for partition, some in ends.items()}
    return [
        History(
            group=group,
            assigned=_merged(some, replaced[group]),
            replaced=tuple(sorted(replaced[group], key=lambda r: r.at_ms)),
            loads=tuple(sorted((ld for ld in loads if ld.group in ("", group)), key=lambda ld: ld.at_ms)),
            forgotten=tuple(forgotten[group]),
            commits={partition: _paced(found) for partition, found in commits[group].items()},
            ends=ended,
            counts=tuple(sorted(counts, key=lambda c: c.at_ms)),
        )
        for group, some in assigned.items()
    ]


def _ordered(facts: Sequence[Committed] | Sequence[EndSeen]) -> Commits:
    known = sorted({(fact.at_ms, fact.offset) for fact in facts})
    return Commits(tuple(at_ms for at_ms, _ in known), tuple(offset for _, offset in known))


def _paced(facts: Sequence[Committed]) -> Commits:
    paces = {(fact.at_ms, fact.offset): fact.pace_ms for fact in facts if fact.pace_ms is not None}
    ordered = _ordered(facts)
    if not paces:
        return ordered
    return replace(ordered, paces_ms=tuple(map(paces.get, zip(ordered.times_ms, ordered.offsets, strict=True))))


def _merged(assigned: Sequence[Assigned], replaced: Sequence[Replaced]) -> tuple[Assigned, ...]:
    """Merge the facts of each generation: notes take precedence, the log adds the rest. Abandoned ones are left out."""
    found: list[Assigned] = []
    for fact in sorted(assigned, key=lambda a: (a.at_ms, a.generation, a.sure is not Sure.TOLD)):
        if fact.is_abandoned or any(_is_passed(fact, other) for other in found[-4:]):
            continue
        twin = next((i for i, other in enumerate(found[-4:], max(len(found) - 4, 0)) if _is_same(other, fact)), None)
        if twin is None:
            found.append(fact)
        else:
            found[twin] = _joined(found[twin], fact)
    return tuple(_with_replacements(found, replaced))


def _is_same(one: Assigned, other: Assigned) -> bool:
    return (one.generation, one.is_incremental) == (other.generation, other.is_incremental) and {
        m.member_id for m in one.members
    } == {m.member_id for m in other.members}


def _is_passed(seen: Assigned, told: Assigned) -> bool:
    """Whether the coordinator had gone on within the step that wrote this record: it notes the last epoch of a step."""
    return (
        seen.sure is not Sure.TOLD and told.sure is Sure.TOLD and seen.is_incremental == told.is_incremental
        and seen.generation < told.generation and seen.at_ms - told.at_ms <= ONE_STEP_MS
    )  # fmt: skip


def _joined(one: Assigned, other: Assigned) -> Assigned:
    told, seen = (one, other) if one.sure is Sure.TOLD else (other, one)
    return replace(
        told,
        leader_epoch=told.leader_epoch if seen.leader_epoch is None else seen.leader_epoch,
        joined_ms=seen.joined_ms if told.joined_ms is None else told.joined_ms,
        place=", ".join(dict.fromkeys(place for place in (told.place, seen.place) if place)),
    )


def _with_replacements(assigned: Sequence[Assigned], replaced: Sequence[Replaced]) -> list[Assigned]:
    """Make reported replacements outside a rebalance steps of their own, since they are records in the log, too."""
    found = list(assigned)
    for swap in sorted(replaced, key=lambda r: r.at_ms):
        at = max((i for i, a in enumerate(found) if a.at_ms <= swap.at_ms), default=None)
        if at is None or any(m.member_id == swap.new_member_id for a in found[at : at + 2] for m in a.members):
            continue
        before = found[at]
        following = found[at + 1] if at + 1 < len(found) else None
        if following is not None and following.began_ms is not None and following.began_ms <= swap.at_ms:
            continue
        members = tuple(_swapped(member, swap) for member in before.members)
        found.insert(
            at + 1,
            replace(before, at_ms=swap.at_ms, sure=swap.sure, members=members, causes=(), began_ms=None,
                    joined_ms=None, place=swap.place),
        )  # fmt: skip
    return found


def _swapped(member: Member, swap: Replaced) -> Member:
    if member.instance_id != swap.instance_id:
        return member
    return replace(member, member_id=swap.new_member_id, joined_ms=swap.at_ms, synced_ms=None)
