"""The parts of the demo that need no broker: the data, the tally, the verdict, the pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from partita.demo import charts, checks, report
from partita.demo.flights import NO_DEPARTURE, NO_TAIL_NUMBER, Expected
from partita.demo.story import Coverage, LagSample, Rebalance, Story, Tenure


def good_story() -> tuple[Expected, Story]:
    truth = Expected(
        flights=10, usable=7, with_weather=6, reasons={NO_DEPARTURE: 3, NO_TAIL_NUMBER: 1}, delays={("UA", 5): [7, 21]}
    )
    story = Story(
        usable=7, with_weather=6, dead_letters={NO_DEPARTURE: 3, NO_TAIL_NUMBER: 1}, dead_letter_rows=3,
        delays={("UA", 5): (7, 21)}, final_lag={"a": 0, "b": 0}, killed_member="m2", killed_at_s=5.0,
        tenures=[Tenure("m1", 0, 0, 9), Tenure("m2", 1, 0, 5), Tenure("m1", 1, 6, 9)],
    )  # fmt: skip
    story.coverage.add(0, 0, 6)
    story.coverage.add(1, 0, 4)
    return truth, story


def test_coverage_counts_every_offset_once_and_duplicates_apart() -> None:
    coverage = Coverage()
    coverage.add(0, 0, 10)
    coverage.add(0, 8, 12)
    coverage.add(1, 5, 7)
    assert (coverage.processed, coverage.distinct, coverage.duplicates) == (16, 14, 2)


def test_a_run_that_equals_the_csv_holds() -> None:
    assert all(check.holds for check in checks.compare(*good_story()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.coverage.add(2, 0, 1),
        lambda s: setattr(s, "usable", 8),
        lambda s: setattr(s, "with_weather", 5),
        lambda s: setattr(s, "dead_letter_rows", 4),
        lambda s: s.dead_letters.update({NO_TAIL_NUMBER: 0}),
        lambda s: s.delays.update({("UA", 5): (7, 22)}),
        lambda s: s.final_lag.update({"b": 1}),
        lambda s: s.tenures.pop(),
    ],
    ids=["too many", "usable", "weather", "letters", "reasons", "delays", "lag", "not taken over"],
)
def test_every_deviation_from_the_csv_fails_exactly_one_check(spoil) -> None:  # type: ignore[no-untyped-def]  # a function that edits a dictionary of any shape
    truth, story = good_story()
    spoil(story)
    assert sum(not check.holds for check in checks.compare(truth, story)) == 1


def test_the_pictures_are_well_formed_and_name_what_they_show() -> None:
    _, story = good_story()
    rebalances = [Rebalance(1.0, 1, "m1: member joined", 1, 3), Rebalance(6.0, 2, "m2: session expired", 1, 9)]
    lag = [LagSample(0.0, "a", 0), LagSample(1.0, "a", 500), LagSample(1.0, "b", 20)]
    drawn = [
        charts.ownership(story.tenures, rebalances, ("m2", 5.0), 9.0),
        charts.lag_over_time(lag, ("m2", 5.0), 9.0),
        charts.delay_map({("UA", 5): (7, 21), ("<&>", 6): (1, -3)}, {"UA": "United & Co"}),
    ]
    for text in drawn:
        assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "m2 killed" in drawn[0]
    assert "g2" in drawn[0]
    assert "United &amp; Co (UA)" in drawn[2]


@pytest.mark.parametrize(("minutes", "step"), [(-5, 0), (0, 0), (2.6, 1), (20, 4), (37.6, 8), (400, 8)])
def test_heat_runs_over_the_steps_of_its_legend(minutes: float, step: int) -> None:
    assert charts.heat(minutes) == f"heat h{step}"
    drawn = charts.delay_map({("UA", 5): (100, int(100 * minutes))}, {})
    assert "minutes late" in drawn
    assert "40+" in drawn


def test_few_flights_are_drawn_small() -> None:
    """findings/newcomer.md 2.3: a cell of a handful of flights was as loud as one of thousands."""

    def width(flights: int) -> float:
        drawn = ElementTree.fromstring(charts.delay_map({("UA", 5): (flights, 0)}, {}))
        return min(float(found.get("width", 0)) for found in drawn if "UA at 5h" in "".join(found.itertext()))

    assert width(charts.FEW_FLIGHTS - 1) == 12 < width(charts.FEW_FLIGHTS)


def test_pictures_and_tables_end_at_the_same_moment() -> None:
    """findings/newcomer.md 2.1: a rebalance at 39.9 s was drawn at 36.4 s, where the lag samples ended."""
    _, story = good_story()
    story.lag = [LagSample(3.0, "a", 1)]
    story.rebalances = [Rebalance(12.5, 1, "m1: member left", 0, 3)]
    assert report.end_of(story) == 12.5


def test_what_nobody_read_after_the_kill_is_shown_and_explained() -> None:
    """findings/newcomer.md 2.6: the gap, the point of the demo, was plain white."""
    _, story = good_story()
    assert charts.unread(story.tenures, ("m2", 5.0)) == [(1, 5, 6)]
    assert 'class="gap"' in charts.ownership(story.tenures, [], ("m2", 5.0), 9.0)
    assert "nobody reads flights-1 for 1.0 s" in report.gap_note(story)
    assert charts.unread(story.tenures, ("", 0.0)) == []


def test_generations_close_together_share_a_label() -> None:
    marks = [Rebalance(at_s, g, "", 1, 0) for at_s, g in ((1.0, 1), (1.05, 2), (1.1, 3), (8.0, 4))]
    drawn = charts.ownership([Tenure("m1", 0, 0, 9)], marks, ("", 0), 9.0)
    assert ">g1-3<" in drawn
    assert ">g4<" in drawn


@pytest.mark.parametrize(("span", "most", "step"), [(9, 10, 1), (11, 10, 2), (42, 10, 5), (200_000, 5, 50_000)])
def test_axis_steps_are_round(span: float, most: int, step: float) -> None:
    assert charts.round_step(span, most) == pytest.approx(step)


def test_the_page_is_self_contained(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, story = good_story()
    monkeypatch.setattr(report, "airline_names", lambda: {"UA": "United"})
    story = replace(story, checks=checks.compare(truth, story), command="partita demo --rate 7")
    page = report.page(story)
    assert "every check holds" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "initial-scale=1" in page
    assert "partita demo --rate 7" in page
