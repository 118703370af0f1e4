"""The eleven measures of a run, each with one definition, from the members' facts and the taps' frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from partita.designs.journal import Journal, Span

READS = frozenset({"exists", "getData", "getChildren"})
WRITES = frozenset({"create", "delete", "setData", "multi"})
GROUP_REQUESTS = frozenset({"find", "join", "sync", "heartbeat", "leave", "beat"})
COORDINATOR = "coordinator-"


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one scenario on one design. Times in milliseconds; None: does not apply, or never."""

    settled_ms: int | None
    notifications: int
    coordinator_events: int
    zk_reads: int
    zk_writes: int
    group_requests: int
    attempts: int
    failed: int
    gave_up: int
    unowned_ms: int
    two_readers_ms: int
    two_readers_partitions: int
    twice: int
    back: int
    disagree_ms: int | None
    orphans: int

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


def measure(journal: Journal) -> Measures:
    """Everything between the cause and the end of watching; steady state before the cause is left out."""
    spans = journal.spans()
    after = [frame for frame in journal.frames if journal.cause_s <= frame.at_s <= journal.end_s]
    of_members = [frame for frame in after if not frame.member.startswith(COORDINATOR)]
    facts = [fact for fact in journal.facts if fact.at_s >= journal.cause_s]
    changed_s = last_change(journal, spans)
    is_settled = is_shared(journal, spans)
    until_s = changed_s if is_settled else journal.end_s
    joins = sum(frame.name == "join" for frame in after)
    attempts = sum(fact.event == "attempt" for fact in facts)
    doubled = list(two_readers(spans, journal.cause_s))
    return Measures(
        settled_ms=round((changed_s - journal.cause_s) * 1000) if is_settled else None,
        notifications=sum(frame.name in ("event", "told") for frame in of_members),
        coordinator_events=sum(frame.name == "event" for frame in after) - sum(f.name == "event" for f in of_members),
        zk_reads=sum(frame.name in READS for frame in after),
        zk_writes=sum(frame.name in WRITES for frame in after),
        group_requests=sum(frame.name in GROUP_REQUESTS and frame.at_s <= until_s + 0.05 for frame in after),
        attempts=attempts or joins,
        failed=sum(fact.event == "failed" for fact in facts),
        gave_up=sum(fact.event == "gave_up" for fact in facts),
        unowned_ms=round(
            1000 * max((sum(b - a for a, b in gaps) for gaps in unread(journal, spans).values()), default=0)
        ),
        two_readers_ms=round(1000 * sum(to_s - from_s for _, from_s, to_s in doubled)),
        two_readers_partitions=len({partition for partition, _, _ in doubled}),
        twice=read_twice(journal),
        back=step_back(journal),
        disagree_ms=disagreement_ms(journal),
        orphans=len(orphans(journal, spans)),
    )


def last_change(journal: Journal, spans: Sequence[Span]) -> float:
    """Return the last moment after the cause at which a reader changed; the cause itself if none did."""
    moments = [s for span in spans for s in (span.from_s, span.to_s) if journal.cause_s < s < journal.end_s - 0.001]
    return max(moments, default=journal.cause_s)


def is_shared(journal: Journal, spans: Sequence[Span]) -> bool:
    """Whether at the end every partition has exactly one reader, and every live member has its share."""
    readers: dict[int, list[str]] = defaultdict(list)
    for span in spans:
        if span.to_s >= journal.end_s - 0.001:
            readers[span.partition].append(span.member)
    if sorted(readers) != list(range(journal.partitions)) or any(len(names) != 1 for names in readers.values()):
        return False
    busy = {names[0] for names in readers.values()}
    return len(busy & set(journal.live)) >= min(len(journal.live), journal.partitions)


def unread(journal: Journal, spans: Sequence[Span]) -> dict[int, list[tuple[float, float]]]:
    """Return the spans without a reader by partition, from the cause to the end. Records arrive all the time."""
    found = {}
    for partition in range(journal.partitions):
        at_s, gaps = journal.cause_s, []
        for span in sorted((s for s in spans if s.partition == partition), key=lambda s: s.from_s):
            if span.from_s > at_s:
                gaps.append((at_s, span.from_s))
            at_s = max(at_s, span.to_s)
        if at_s < journal.end_s - 0.001:
            gaps.append((at_s, journal.end_s))
        found[partition] = gaps
    return found


def two_readers(spans: Sequence[Span], since_s: float) -> Iterable[tuple[int, float, float]]:
    """(partition, from, to) wherever two members read the same partition."""
    for partition in sorted({span.partition for span in spans}):
        its = sorted((s for s in spans if s.partition == partition), key=lambda s: s.from_s)
        at_s = since_s
        for index, span in enumerate(its):
            for other in its[index + 1 :]:
                from_s, to_s = max(at_s, span.from_s, other.from_s), min(span.to_s, other.to_s)
                if to_s > from_s and other.member != span.member:
                    yield partition, from_s, to_s
                    at_s = max(at_s, to_s)


def read_twice(journal: Journal) -> int:
    """Records delivered after the cause that had been delivered before."""
    seen: dict[int, set[int]] = defaultdict(set)
    again = 0
    for fact in sorted((f for f in journal.facts if f.event == "read"), key=lambda f: f.at_s):
        for partition, first, end in fact.facts["ranges"]:
            offsets = range(first, end)
            if fact.at_s >= journal.cause_s:
                again += sum(offset in seen[partition] for offset in offsets)
            seen[partition].update(offsets)
    return again


def step_back(journal: Journal) -> int:
    """The largest step back of a committed offset after the cause."""
    latest: dict[int, int] = {}
    largest = 0
    for commit in journal.commits:
        if commit.at_s >= journal.cause_s:
            largest = max(largest, latest.get(commit.partition, commit.offset) - commit.offset)
        latest[commit.partition] = commit.offset
    return largest


def disagreement_ms(journal: Journal) -> int | None:
    """Return for how long the views that two live members computed from differ; None where members have no view."""
    views = sorted((f for f in journal.facts if f.event == "view"), key=lambda f: f.at_s)
    if not views:
        return None
    last: dict[str, tuple[str, ...]] = {}
    moments: list[tuple[float, bool]] = []
    for fact in views:
        last[fact.member] = (*fact.facts["members"], str(fact.facts["partitions"]))
        held = {view for member, view in last.items() if member not in journal.gone}
        moments.append((fact.at_s, len(held) > 1))
    moments.append((journal.end_s, False))
    lasted = [
        b - max(a, journal.cause_s) for (a, differs), (b, _) in pairwise(moments) if differs and b > journal.cause_s
    ]
    return round(1000 * sum(lasted))


def orphans(journal: Journal, spans: Sequence[Span]) -> list[int]:
    """Return the partitions without a reader at the end."""
    read = {span.partition for span in spans if span.to_s >= journal.end_s - 0.001}
    return [partition for partition in range(journal.partitions) if partition not in read]
