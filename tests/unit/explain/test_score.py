"""Causes that are read from the log alone, against what the coordinator noted, over simulated histories.

`tools/score_causes.py` does the same over 2,000 longer ones.
"""

from __future__ import annotations

import pytest

from partita.explain import Sure, What
from partita.sim.fault_plan import CONSUMER
from support.explain.scoring import Score, claims, history

SLICES = 2


@pytest.mark.parametrize("part", range(SLICES))
def test_seen_causes_are_always_right_and_inferred_ones_in_19_of_20_cases(part: int) -> None:
    score = Score()
    for seed in range(25 * part, 25 * part + 25):
        for claim in claims(history(seed, minutes=0.3)):
            score.add(claim)
    assert score.share(Sure.SEEN) == 1, score.lines()
    assert score.share(Sure.INFERRED) >= 0.95, score.lines()
    assert sum(score.right.values()) > 20, "the histories hold something to judge"
    assert any(sure is Sure.INFERRED for sure, _ in score.right), "something is inferred"
    assert {What.JOINED, What.STATIC_REPLACED} & {what for _, what in score.right}


def test_causes_in_kip_848_groups_are_seen_rightly_and_never_guessed() -> None:
    """Their log has neither joins of all members nor sessions: rules of classic groups were right in 16 of 36 cases."""
    score = Score()
    for seed in range(25):
        for claim in claims(history(seed, minutes=0.3, protocol=CONSUMER)):
            score.add(claim)
    assert score.share(Sure.SEEN) == 1, score.lines()
    assert {sure for sure, _ in (*score.right, *score.wrong)} == {Sure.SEEN, Sure.UNKNOWN}, score.lines()
    assert {What.JOINED, What.TOPICS_CHANGED} <= {what for sure, what in score.right if sure is Sure.SEEN}
