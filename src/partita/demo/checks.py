"""The demo's own verdict: the results beside the figures of the CSV."""

from __future__ import annotations

from partita.demo.flights import Expected
from partita.demo.story import Check, Kill, Story
from partita.demo.worker import CONSUMER, SPARK


def compare(truth: Expected, story: Story) -> list[Check]:
    """Return every promise of the demo as one comparison; nothing is rounded before it is compared."""
    found = story.outcome
    unexplained = [twice for twice in found.coverage.repeated() if not any(k.explains(*twice) for k in story.kills)]
    checks = [
        _equal("flights processed by consumer and Spark together", truth.flights, found.coverage.distinct),
        _equal("processed twice without a kill that explains it", 0, len(unexplained), _duplicates_remark(story)),
        _equal(
            "rows that Spark's Parquet holds twice", 0, found.spark_repeated,
            f"{found.spark_rows:,} rows of {story.spark_batches} batches: a batch that runs again replaces its files",
        ),
        _equal("usable flights", truth.usable, found.usable),
        _equal("usable flights that found their weather", truth.with_weather, found.with_weather),
        _equal("flights sent to the dead-letter topic", truth.unusable, found.dead_letter_rows),
    ]  # fmt: skip
    for reason, count in truth.reasons.items():
        checks.append(_equal(f"dead letters: {reason}", count, found.dead_letters.get(reason, 0)))
    checks.append(_delays(truth, story))
    checks.append(_equal("lag of the group", 0, story.final_lag))
    for kill in story.kills:
        checks += [_taken_over(story, kill), _came_back(story, kill)]
    return checks


def _equal(what: str, expected: int, got: int, remark: str = "") -> Check:
    return Check(what, f"{expected:,}", f"{got:,}", expected == got, remark)


def _duplicates_remark(story: Story) -> str:
    """Return how many were processed twice, by the kill that explains them."""
    repeated = list(story.outcome.coverage.repeated())
    if not repeated:
        return "no flight was processed twice"
    counts = [
        f"{sum(kill.explains(*twice) for twice in repeated):,} that the {who(kill)} had read and not committed when it"
        " was killed"
        for kill in story.kills
    ]
    return f"{len(repeated):,} were processed twice: {' and '.join(counts)}; at-least-once delivery reads them again"


def _delays(truth: Expected, story: Story) -> Check:
    wanted = {key: (cell[0], cell[1]) for key, cell in truth.delays.items()}
    found = story.outcome.delays
    wrong = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
    remark = f"differs for {wrong[:3]}" if wrong else "flights and mean delay of each carrier and hour are equal"
    return Check("cells of the delay table", f"{len(wanted):,}", f"{len(found):,}", not wrong, remark)


def _taken_over(story: Story, kill: Kill) -> Check:
    """Check that every partition of a killed member found another owner before it was back."""
    lost = {t.partition for t in story.tenures if t.member.startswith(kill.who) and t.to_s == kill.at_s}
    others = {
        t.partition
        for t in story.tenures
        if not t.member.startswith(kill.who) and kill.at_s < t.from_s and (not kill.back_s or t.from_s <= kill.back_s)
    }
    heir = SPARK if kill.who == CONSUMER else "the consumer"
    remark = f"killed at {kill.at_s:.1f} s"
    what = f"partitions of the killed {who(kill)} taken over by {heir}"
    return Check(what, str(len(lost)), str(len(lost & others)), bool(lost) and lost <= others, remark)


def _came_back(story: Story, kill: Kill) -> Check:
    """Check that a restarted member got partitions again, before another one was killed."""
    end_s = min((other.at_s for other in story.kills if other.at_s > kill.back_s), default=float("inf"))
    own = [t for t in story.tenures if t.member.startswith(kill.who)]
    again = {t.partition for t in own if 0 < kill.back_s < t.from_s < end_s}
    remark = f"started again at {kill.back_s:.1f} s"
    return Check(f"partitions given to the {who(kill)} that came back", "some", str(len(again)), bool(again), remark)


def who(kill: Kill) -> str:
    """Return the name of the victim."""
    return "consumer" if kill.who == CONSUMER else "Spark driver"
