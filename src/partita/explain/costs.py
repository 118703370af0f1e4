"""Costs of a rebalance: its phases and the members they waited for, and how long each partition had no reader.

A partition has no reader from the last sign that its old owner read it, which is the old owner's last commit or its
join of this rebalance, to the moment when the new owner got its assignment. With a client that commits seldom, the
first commit comes later; that is a phase of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from partita.explain.account import Cause, Phase, Unread
from partita.explain.facts import Assigned, Member, Partition, Sure
from partita.explain.generations import NO_COMMITS, Commits, Step
from partita.explain.moves import identity, owners_of
from partita.explain.wording import duration
from partita.wording import What

WORTH_NAMING_MS = 100
"""A phase shorter than this has no member that it waited for."""
STOPPED_BEFORE = frozenset({What.EXPIRED, What.GONE, What.DID_NOT_REJOIN, What.POLLED_TOO_LATE})
"""Causes by which a member stopped reading long before its group notices."""


def phases_of(step: Step, names: dict[str, str]) -> tuple[Phase, ...]:
    """The phases that are known, in order."""
    if not step.is_rebalance:
        return ()
    return tuple(_phases(step.after, names, step))


def _phases(after: Assigned, names: dict[str, str], step: Step) -> Iterator[Phase]:
    if after.began_ms is not None and after.joined_ms is not None:
        ms = after.joined_ms - after.began_ms
        last = max((m for m in after.members if m.joined_ms is not None), key=lambda m: m.joined_ms or 0, default=None)
        yield _join_phase(after, ms, last, names)
    if after.joined_ms is not None and after.members:
        ms = max(after.at_ms - after.joined_ms, 0)
        leader = names.get(after.leader_id or "", "")
        yield Phase("sync", ms, after.sure, leader if ms >= WORTH_NAMING_MS else "",
                    "the sync phase waits for the assignment of the group leader")  # fmt: skip
    commits = [c.times_ms[i] for c in _after(step) if (i := c.first_after(after.at_ms)) is not None]
    until_ms = step.until_ms
    commits = [at_ms for at_ms in commits if until_ms is None or at_ms <= until_ms]
    if commits:
        yield Phase("first commit", min(commits) - after.at_ms, Sure.SEEN, "", "the first commit in this generation")


def _join_phase(after: Assigned, ms: int, last: Member | None, names: dict[str, str]) -> Phase:
    if last is None or last.joined_ms is None or ms < WORTH_NAMING_MS:
        return Phase("join", ms, after.sure)
    began_ms, name = after.began_ms or 0, names.get(last.member_id, last.member_id)
    late = [cause for cause in after.causes if cause.what in (What.DID_NOT_REJOIN, What.EXPIRED)]
    ended_ms = after.joined_ms or after.at_ms
    if late and ended_ms - last.joined_ms > WORTH_NAMING_MS:
        gone = late[-1]
        who = names.get(gone.member_id) or gone.instance_id or gone.client_id or gone.member_id
        return Phase("join", ms, after.sure, who, f"{who} did not rejoin, and was removed after {duration(ms)}")
    return Phase(
        "join", ms, after.sure, name, f"{name} rejoined last, {duration(last.joined_ms - began_ms)} after it began"
    )


def _after(step: Step) -> Iterator[Commits]:
    for partition in owners_of(step.after):
        if partition in step.history.commits:
            yield step.history.commits[partition]


# -- unread ------------------------------------------------------------------------------------------------------------


def unread_of(step: Step, causes: Sequence[Cause]) -> tuple[Unread, ...]:
    """Return the partitions without a reader for some time, and how long; zero durations are left out."""
    if step.before is None or not step.is_rebalance:
        return ()
    owned, new = owners_of(step.before), owners_of(step.after)
    found = [_span(step, partition, owned[partition], new.get(partition), causes) for partition in sorted(owned)]
    return tuple(span for span in found if span is not None)


def _span(
    step: Step, partition: Partition, owner: Member, new: Member | None, causes: Sequence[Cause]
) -> Unread | None:
    after = step.after
    if new is not None and identity(new) == identity(owner) and keeps_reading(after):
        return None
    commits = step.history.commits.get(partition, NO_COMMITS)
    last = commits.last_upto(after.at_ms)
    committed_ms = commits.times_ms[last] if last is not None and commits.times_ms[last] >= step.since_ms else None
    from_ms = _stopped(step, owner, committed_ms, causes)
    to_ms = after.at_ms if new is not None else None
    if from_ms is None or (to_ms is not None and to_ms <= from_ms):
        return None
    first = commits.first_after(after.at_ms)
    read_twice = None
    if last is not None and first is not None and commits.offsets[first] < commits.offsets[last]:
        read_twice = commits.offsets[last] - commits.offsets[first]
    return Unread(partition, from_ms, to_ms, _gained(step.history.ends.get(partition), from_ms, to_ms), read_twice)


def keeps_reading(after: Assigned) -> bool:
    """Do members keep reading their partitions: KIP-848 groups, and classic ones with a cooperative assignor?"""
    return after.is_incremental or "cooperative" in (after.protocol or "")


def _stopped(step: Step, owner: Member, committed_ms: int | None, causes: Sequence[Cause]) -> int | None:
    """When the old owner stopped reading, as far as the facts say."""
    after = step.after
    mine = [cause for cause in causes if cause.member_id == owner.member_id]
    if any(cause.what in STOPPED_BEFORE for cause in mine):
        if committed_ms is not None or after.began_ms is None:
            return committed_ms
        silent = {What.EXPIRED: owner.session_timeout_ms, What.POLLED_TOO_LATE: owner.rebalance_timeout_ms}
        known = [after.began_ms - (silent[cause.what] or 0) for cause in mine if cause.what in silent]
        return min(known, default=None)
    rejoined = next((m.joined_ms for m in after.members if m.member_id == owner.member_id), None)
    return max((at for at in (committed_ms, rejoined or after.began_ms) if at is not None), default=None)


def _gained(ends: Commits | None, from_ms: int, to_ms: int | None) -> int | None:
    """Number of records that came meanwhile, by the log ends seen around that time."""
    if ends is None or to_ms is None:
        return None
    begin, end = _at(ends, from_ms), _at(ends, to_ms)
    return None if begin is None or end is None else round(end - begin)


def _at(ends: Commits, at_ms: int) -> float | None:
    """The end of a log at a moment between two observations, on the line between them."""
    left, right = ends.last_upto(at_ms), ends.first_after(at_ms)
    if left is None:
        return None
    if ends.times_ms[left] == at_ms:
        return ends.offsets[left]
    if right is None:
        return None
    share = (at_ms - ends.times_ms[left]) / (ends.times_ms[right] - ends.times_ms[left])
    return ends.offsets[left] + share * (ends.offsets[right] - ends.offsets[left])
