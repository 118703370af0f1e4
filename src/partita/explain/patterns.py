"""Patterns in the rebalances of a group: storms, flapping members, fixed intervals, deploys, the same cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from partita.explain.account import Account, Cause, Pattern
from partita.explain.wording import duration, listed
from partita.wording import What, count

STORM, FLAPPING, PERIODIC, DEPLOY, SAME_CAUSE = "storm", "flapping", "periodic", "deploy", "same cause"

STORM_MIN = 4
FLAPPING_MIN = 3
FLAPPING_WITHIN_MS = 600_000
PERIODIC_MIN = 4
PERIODIC_LEAST_MS = 30_000
PERIODIC_TOLERANCE = 0.1
DEPLOY_WITHIN_MS = 900_000
DAY_MS = 86_400_000

ENDS = frozenset({What.LEFT, What.EXPIRED, What.POLLED_TOO_LATE, What.GONE, What.DID_NOT_REJOIN, What.DID_NOT_SYNC})
"""A member goes."""
ARRIVALS = frozenset({What.JOINED, What.STATIC_REPLACED})
RESTARTS = frozenset({What.LEFT, What.STATIC_REPLACED})
"""How a member goes whose process is stopped in order to be started again."""


def patterns_of(history: Sequence[Account]) -> tuple[Pattern, ...]:
    """The patterns that the last of these rebalances belongs to, the most telling one first.

    `history` holds the rebalances of one group, oldest first.
    """
    found = [*_deploy(history), *_storm(history), *_flapping(history), *_periodic(history), *_same(history)]
    if history[-1].cause.what is What.LEFT:  # who leaves in order at fixed times does not flap
        found.sort(key=lambda pattern: pattern.name != PERIODIC)
    return tuple(found)


def who_of(cause: Cause) -> str:
    """The program behind a cause: its instance id or client id, which outlive a member id."""
    return cause.instance_id or cause.client_id or cause.member_id


def _within(history: Sequence[Account], ms: int) -> list[Account]:
    now_ms = history[-1].ended_ms
    return [account for account in history if now_ms - account.ended_ms <= ms]


def _generations(accounts: Sequence[Account]) -> tuple[int, ...]:
    return tuple(account.generation for account in accounts)


def _storm(history: Sequence[Account]) -> Iterator[Pattern]:
    members = (*history[-1].members, *history[-1].members_before)
    session_ms = max((m.session_timeout_ms or 0 for m in members), default=0)  # unknown in the log of a KIP-848 group
    recent = _within(history, session_ms)
    converts = any(c.what is What.CONVERTED for a in _within(history, DEPLOY_WITHIN_MS) for c in a.causes)
    if session_ms and len(recent) >= STORM_MIN and not converts:
        span = duration(recent[-1].ended_ms - recent[0].ended_ms)
        text = f"{count(len(recent), 'rebalance')} came within {span}, which is less than one session timeout"
        yield Pattern(STORM, text, _generations(recent))


def _flapping(history: Sequence[Account]) -> Iterator[Pattern]:
    """A member that is gone, comes back and is gone again."""
    recent = _within(history, FLAPPING_WITHIN_MS)
    gone = Counter(who for account in recent for who in {who_of(c) for c in account.causes if c.what in ENDS})
    back = Counter(who for account in recent for who in {who_of(c) for c in account.causes if c.what in ARRIVALS})
    mine = {who_of(c) for c in history[-1].causes if c.what in ENDS | ARRIVALS}
    for who, times in gone.most_common():
        if times >= FLAPPING_MIN and back[who] >= FLAPPING_MIN - 1 and who in mine:
            involved = [a for a in recent if any(who_of(c) == who for c in a.causes)]
            span = duration(history[-1].ended_ms - involved[0].ended_ms)
            yield Pattern(FLAPPING, f"{who} went {times} times in {span} and keeps coming back", _generations(involved))


def _periodic(history: Sequence[Account]) -> Iterator[Pattern]:
    """Rebalances with the same first cause in equal intervals."""
    what = history[-1].cause.what
    if what in (What.JOINED, What.PARTITIONS_GIVEN_UP):
        return
    same = [a for a in _within(history, DAY_MS) if a.cause.what is what]
    times = [account.ended_ms for account in same]
    gaps = [b - a for a, b in pairwise(times)][-12:]
    if len(gaps) + 1 < PERIODIC_MIN:
        return
    middle = median(gaps)
    if middle >= PERIODIC_LEAST_MS and all(abs(gap - middle) <= PERIODIC_TOLERANCE * middle for gap in gaps):
        text = f"this happens every {duration(middle)}: {count(len(gaps) + 1, 'time')} so far"
        yield Pattern(PERIODIC, text, _generations(same[-len(gaps) - 1 :]))


def _deploy(history: Sequence[Account]) -> Iterator[Pattern]:
    """Each member of a group went once and came back once, one after another: a rolling restart."""
    recent = _within(history, DEPLOY_WITHIN_MS)
    begin = next((i for i, a in enumerate(recent) if any(c.what in RESTARTS for c in a.causes)), None)
    if begin is None:
        return
    recent = recent[begin:]
    gone, back = Counter[str](), Counter[str]()
    for account in recent:
        gone.update({who_of(c) for c in account.causes if c.what in RESTARTS})
        back.update({who_of(c) for c in account.causes if c.what in ARRIVALS})
    before = {m.instance_id or m.client_id or m.member_id for m in recent[0].members_before}
    whole = len(before) >= 2 and before <= gone.keys() and before <= back.keys()
    if whole and all(gone[who] == 1 == back[who] for who in before):
        names = listed(sorted(before))
        yield Pattern(DEPLOY, f"{names} restarted one after another, which looks like a deploy", _generations(recent))


def _same(history: Sequence[Account]) -> Iterator[Pattern]:
    cause = history[-1].cause
    if cause.what in (What.JOINED, What.UNEXPLAINED, What.PARTITIONS_GIVEN_UP):
        return
    same = [a for a in _within(history, DAY_MS) if a.cause.what is cause.what and who_of(a.cause) == who_of(cause)]
    if len(same) >= 2:
        span = duration(history[-1].ended_ms - same[0].ended_ms)
        yield Pattern(SAME_CAUSE, f"the same cause came {len(same)} times in {span}", _generations(same))
