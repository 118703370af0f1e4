"""Why a group rebalanced: the timeline with the list of rebalances, and one rebalance in full.

All words come from `partita.explain`; here they are put beside the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from partita.dashboard.models.accounts import Accounts
from partita.dashboard.timeline import Mark, Row, Span, Timeline, gap_title
from partita.dashboard.words import DAY, slug, span
from partita.explain import Account, asides_of
from partita.explain.facts import Assigned, Partition
from partita.observe.history import LagPoint
from partita.observe.observed import Observed
from partita.wording import count

REBALANCES_IN_VIEW = 12
WINDOW_MIN_MS = 60_000
ROWS_MAX = 48
LISTED_MAX = 100


@dataclass(frozen=True, slots=True)
class ListedRebalance:
    """A rebalance in the list beside the timeline."""

    generation: int
    path: str
    at_ms: int
    headline: str
    cause: str
    sure: str
    took_ms: int | None
    unread_ms: int


@dataclass(frozen=True, slots=True)
class WhyPage:
    """The page with the timeline. `by` is partition or member; `hidden_rows` did not fit."""

    group_id: str
    path: str
    sentence: str
    rebalances: tuple[ListedRebalance, ...]
    total: int
    timeline: Timeline | None
    by: str
    hidden_rows: int
    patterns: tuple[str, ...]
    asides: tuple[str, ...]
    advice: str
    source: str


@dataclass(frozen=True, slots=True)
class GenerationPage:
    """One rebalance. `grid` has a line for each partition: name, owner before, owner after, and whether it moved."""

    group_id: str
    path: str
    account: Account
    previous: int | None
    next: int | None
    same_cause: str
    grid: tuple[tuple[str, str, str, bool], ...]
    took: str


def why_page(
    observed: Observed, accounts: Accounts, group_id: str, query: dict[str, str], source: str
) -> WhyPage | None:
    """Return the page; None for an unknown group."""
    facts, known = accounts.of(group_id)
    if not known and group_id not in observed.groups:
        return None
    path = f"/groups/{slug(group_id)}/why"
    generations = [fact for fact in facts if isinstance(fact, Assigned)]
    looks = accounts.looks(group_id)
    by = "member" if query.get("by") == "member" else "partition"
    line, hidden = (None, 0)
    if known:
        window = _window(known, observed.seen_ms, query)
        lag = observed.history.lag_points(group_id, window[0])
        line, hidden = _timeline(path, generations, known, window, by, looks, [p for p in lag if p.at_ms <= window[1]])
    latest = known[-1] if known else None
    return WhyPage(
        group_id,
        path,
        _sentence(known, accounts.in_last_hour(group_id)),
        tuple(listed_rebalance(path, account) for account in reversed(known[-LISTED_MAX:])),
        len(known),
        line,
        by,
        hidden,
        tuple(pattern.text for pattern in latest.patterns) if latest is not None else (),
        asides_of(facts),
        latest.advice if latest is not None else "",
        source,
    )


def generation_page(observed: Observed, accounts: Accounts, group_id: str, generation: int) -> GenerationPage | None:
    """Return one rebalance, the newest of that generation; None if it is not known."""
    _, known = accounts.of(group_id)
    index = max((i for i, account in enumerate(known) if account.generation == generation), default=None)
    if index is None:
        return None
    account = known[index]
    owners_before = {part: account.name_of(m.member_id) for m in account.members_before for part in m.partitions}
    owners = {part: account.name_of(m.member_id) for m in account.members for part in m.partitions}
    moved = {move.partition for move in account.moves}
    grid = tuple(
        (_name(part), owners_before.get(part, "nobody"), owners.get(part, "nobody"), part in moved)
        for part in sorted({*owners_before, *owners})
    )
    day_ago = account.ended_ms - DAY
    same = sum(a.cause.what is account.cause.what for a in known[: index + 1] if a.ended_ms > day_ago)
    return GenerationPage(
        group_id,
        f"/groups/{slug(group_id)}/why",
        account,
        known[index - 1].generation if index else None,
        known[index + 1].generation if index + 1 < len(known) else None,
        f"The same cause {count(same, 'time')} in 24 hours up to this one." if same > 1 else "",
        grid,
        span(account.took_ms),
    )


def _sentence(known: Sequence[Account], hour: int) -> str:
    if not known:
        return "No rebalance is known yet"
    return f"{count(len(known), 'rebalance')} known, {hour:,} in the last hour"


def listed_rebalance(path: str, account: Account) -> ListedRebalance:
    """An account as a row of a list; `path` is that of the page with the timeline."""
    return ListedRebalance(
        account.generation,
        f"{path}/{account.generation}",
        account.ended_ms,
        account.headline,
        account.cause.what.value,
        account.cause.sure.value,
        account.took_ms,
        account.unread_ms,
    )


def _window(known: Sequence[Account], now_ms: int, query: dict[str, str]) -> tuple[int, int]:
    """Return the range from `from` to `to` in milliseconds if both are valid, else around the last rebalances."""
    given = [query.get("from", ""), query.get("to", "")]
    if all(text.isascii() and text.isdigit() and len(text) < 15 for text in given):
        begin, end = map(int, given)
        if begin + 10 < end:
            return begin, end
    first = known[-min(len(known), REBALANCES_IN_VIEW)]
    begin, last = first.began_ms or first.ended_ms, known[-1].ended_ms
    margin = max(WINDOW_MIN_MS, last - begin) // 4
    return begin - margin, max(last, min(now_ms, last + margin))


def _timeline(
    path: str,
    generations: Sequence[Assigned],
    known: Sequence[Account],
    window: tuple[int, int],
    by: str,
    looks: tuple[dict[str, str], dict[str, int]],
    lag: Sequence[LagPoint],
) -> tuple[Timeline, int]:
    names, owners = looks
    steps = sorted(generations, key=lambda one: (one.at_ms, one.generation))
    rows = (
        _by_partition(steps, known, window, names, owners)
        if by == "partition"
        else _by_member(steps, window, names, owners)
    )
    marks = [
        Mark(a.ended_ms, f"g{a.generation}", f"{path}/{a.generation}", f"g{a.generation}: {a.headline}") for a in known
    ]
    inside = [mark for mark in marks if window[0] <= mark.at_ms <= window[1]]
    seen = {one.owner for row in rows for one in row.spans}
    legend = tuple((number, name) for name, number in owners.items() if number in seen)
    return Timeline(*window, tuple(rows[:ROWS_MAX]), tuple(inside), legend, tuple(lag)), len(rows[ROWS_MAX:])


def _until(steps: Sequence[Assigned], window: tuple[int, int]) -> Iterable[tuple[Assigned, int]]:
    """Each generation that is in view, with the instant of the one behind it."""
    ends = [step.at_ms for step in steps[1:]] + [max(window[1], steps[-1].at_ms if steps else 0)]
    for step, end in zip(steps, ends, strict=True):
        if end >= window[0] and step.at_ms <= window[1] and not step.is_abandoned:
            yield step, end


def _by_partition(
    steps: Sequence[Assigned],
    known: Sequence[Account],
    window: tuple[int, int],
    names: dict[str, str],
    owners: dict[str, int],
) -> list[Row]:
    spans: dict[Partition, list[Span]] = {}
    for step, end in _until(steps, window):
        for member in step.members:
            name = names.get(member.member_id, member.client_id)
            owner = owners[name]
            for part in member.partitions:
                before = spans.setdefault(part, [])
                if before and before[-1].owner == owner and before[-1].to_ms == step.at_ms:
                    step_from = before.pop().from_ms
                else:
                    step_from = step.at_ms
                before.append(Span(step_from, end, owner, f"{_name(part)}: read by {name}", name))
    for account in known:
        for gap in account.unread:
            to_ms = gap.to_ms if gap.to_ms is not None else window[1]
            if gap.partition in spans and to_ms >= window[0] and gap.from_ms <= window[1]:
                title = gap_title(_name(gap.partition), gap.from_ms, gap.to_ms)
                spans[gap.partition].append(Span(gap.from_ms, to_ms, None, title))
    return [Row(_name(part), tuple(found)) for part, found in sorted(spans.items())]


def _by_member(
    steps: Sequence[Assigned], window: tuple[int, int], names: dict[str, str], owners: dict[str, int]
) -> list[Row]:
    spans: dict[str, list[Span]] = {}
    for step, end in _until(steps, window):
        for member in step.members:
            name = names.get(member.member_id, member.client_id)
            owner = owners[name]
            held = count(len(member.partitions), "partition")
            spans.setdefault(name, []).append(Span(step.at_ms, end, owner, f"{name}: {held}", held))
    return [Row(name, tuple(found)) for name, found in spans.items()]


def _name(part: Partition) -> str:
    return f"{part[0]}-{part[1]}"
