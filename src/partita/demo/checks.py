"""The demo's own verdict: what came out of the machinery beside what the CSV says."""

from __future__ import annotations

from partita.demo.flights import Expected
from partita.demo.story import Check, Story


def compare(truth: Expected, story: Story) -> list[Check]:
    """Every promise of the demo as one comparison; nothing is rounded before it is compared."""
    found = story.coverage
    checks = [
        _equal("flights processed by the plain group", truth.flights, found.distinct, _duplicates_remark(story)),
        _equal("usable flights kept by Spark", truth.usable, story.usable),
        _equal("usable flights that found their weather", truth.with_weather, story.with_weather),
        _equal("flights sent to the dead-letter topic", truth.unusable, story.dead_letter_rows),
    ]
    for reason, count in truth.reasons.items():
        checks.append(_equal(f"dead letters: {reason}", count, story.dead_letters.get(reason, 0)))
    checks.append(_delays(truth, story))
    checks += [_equal(f"lag of group {group}", 0, lag) for group, lag in sorted(story.final_lag.items())]
    checks.append(_moved(story))
    return checks


def _equal(what: str, expected: int, got: int, remark: str = "") -> Check:
    return Check(what, f"{expected:,}", f"{got:,}", expected == got, remark)


def _duplicates_remark(story: Story) -> str:
    count = story.coverage.duplicates
    if not count:
        return "no flight was processed twice"
    return (
        f"{count:,} processed twice: {story.killed_member} had processed them but not yet committed when it was killed;"
        " at-least-once delivery reads them again"
    )


def _delays(truth: Expected, story: Story) -> Check:
    wanted = {key: (cell[0], cell[1]) for key, cell in truth.delays.items()}
    wrong = sorted(key for key in wanted.keys() | story.delays.keys() if wanted.get(key) != story.delays.get(key))
    remark = f"differs for {wrong[:3]}" if wrong else "flights and mean delay of each carrier and hour are equal"
    return Check("cells of the delay table", f"{len(wanted):,}", f"{len(story.delays):,}", not wrong, remark)


def _moved(story: Story) -> Check:
    """The killed member's partitions must have found another owner."""
    lost = {
        t.partition for t in story.tenures if t.member == story.killed_member and t.to_s >= story.killed_at_s - 0.001
    }
    taken = {
        t.partition for t in story.tenures if t.member != story.killed_member and t.from_s > story.killed_at_s
    } & lost
    remark = f"{story.killed_member} was killed at {story.killed_at_s:.1f} s"
    holds = bool(lost) and taken == lost
    return Check("partitions of the killed member taken over", str(len(lost)), str(len(taken)), holds, remark)
