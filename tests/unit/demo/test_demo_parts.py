"""The parts of the demo that need no broker: the data, the tally, the verdict, the pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from importlib.resources import files

import pytest

from partita.demo import charts, checks, report
from partita.demo.flights import NO_DEPARTURE, NO_TAIL_NUMBER, Expected
from partita.demo.outcome import add_letters, add_usable
from partita.demo.ownership import Ownership
from partita.demo.story import Coverage, Kill, LagSample, Outcome, Rebalance, Story, Tenure
from partita.pictures import svg
from partita.spark.pipeline.pipeline_file import parse


def good_story() -> tuple[Expected, Story]:
    truth = Expected(
        flights=10, usable=7, with_weather=6, reasons={NO_DEPARTURE: 3, NO_TAIL_NUMBER: 1}, delays={("UA", 5): [7, 21]}
    )
    outcome = Outcome()
    outcome.spark_rows, outcome.spark_repeated = add_usable(outcome, [(0, i, "UA", 5, 3, i > 0) for i in range(4)])
    outcome.consumer_rows, _ = add_usable(outcome, [(1, i, "UA", 5, 3, True) for i in range(3)])
    add_letters(outcome, [(0, 4, NO_DEPARTURE), (0, 5, f"{NO_DEPARTURE}, {NO_TAIL_NUMBER}"), (1, 3, NO_DEPARTURE)])
    story = Story(
        outcome=outcome, final_lag=0, kills=[Kill("consumer", 5.0, 8.0, {1: (2, 4)})],
        tenures=[Tenure("Spark-0", 0, 0, 12), Tenure("consumer", 1, 0, 5.0), Tenure("Spark-0", 1, 6, 9),
                 Tenure("consumer", 1, 9, 12)],
    )  # fmt: skip
    return truth, story


def test_coverage_counts_every_offset_once_and_duplicates_apart() -> None:
    coverage = Coverage()
    first = [coverage.add(0, offset) for offset in (0, 1, 9000, 1, 1)]
    assert first == [True, True, True, False, False]
    assert (coverage.processed, coverage.distinct) == (5, 3)
    assert list(coverage.repeated()) == [(0, 1)]


def test_a_run_that_equals_the_csv_holds() -> None:
    assert all(check.holds for check in checks.compare(*good_story()))


def test_what_both_processed_counts_once_and_needs_a_kill_that_explains_it() -> None:
    truth, story = good_story()
    add_usable(story.outcome, [(1, 2, "UA", 5, 3, True)])
    found = checks.compare(truth, story)
    assert all(check.holds for check in found)
    assert "1 were processed twice: 1 that the consumer had read and not committed" in found[1].remark


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.outcome.coverage.add(2, 0),
        lambda s: s.outcome.coverage.add(1, 1),
        lambda s: setattr(s.outcome, "spark_repeated", 1),
        lambda s: setattr(s.outcome, "usable", 8),
        lambda s: setattr(s.outcome, "with_weather", 5),
        lambda s: setattr(s.outcome, "dead_letter_rows", 4),
        lambda s: s.outcome.dead_letters.update({NO_TAIL_NUMBER: 0}),
        lambda s: s.outcome.delays.update({("UA", 5): (7, 22)}),
        lambda s: setattr(s, "final_lag", 1),
        lambda s: s.tenures.pop(2),
        lambda s: s.tenures.pop(3),
    ],
    ids=["too many", "twice", "Parquet", "usable", "weather", "letters", "reasons", "delays", "lag", "not taken over",
         "did not come back"],
)  # fmt: skip
def test_every_deviation_from_the_csv_fails_exactly_one_check(spoil) -> None:  # type: ignore[no-untyped-def]  # a function that edits a dictionary of any shape
    truth, story = good_story()
    spoil(story)
    assert sum(not check.holds for check in checks.compare(truth, story)) == 1


def test_ownership_follows_the_group_and_knows_the_dead() -> None:
    """Issue 13, item 8: the group still names a member that was killed, until its session expires."""
    ownership = Ownership()
    ownership.state(1.0, {0: "Spark-0", 1: "consumer"})
    ownership.killed(3.0, "Spark")
    ownership.state(4.0, {0: "Spark-0", 1: "consumer"})
    assert ownership.owners == {1: "consumer"}
    ownership.state(9.0, {0: "consumer", 1: "consumer"})
    ownership.back("Spark")
    ownership.state(12.0, {0: "Spark-0", 1: "consumer"})
    assert ownership.of("Spark") == {0}
    ownership.close(15.0)
    assert ownership.tenures == [
        Tenure("Spark-0", 0, 1.0, 3.0),
        Tenure("consumer", 0, 9.0, 12.0),
        Tenure("Spark-0", 0, 12.0, 15.0),
        Tenure("consumer", 1, 1.0, 15.0),
    ]
    assert charts.unread(ownership.tenures) == [(0, 3.0, 9.0)]


def test_the_pipeline_file_of_the_demo_is_good() -> None:
    """Issue 13, item 8: the demo's job is a pipeline file, in the group of the consumer."""
    pipeline = parse(files("partita.demo").joinpath("flights.toml").read_text(), "flights")
    assert [rule.name for rule in pipeline.rules] == [NO_DEPARTURE, NO_TAIL_NUMBER]
    assert pipeline.source_options().group == "flight-desk"
    assert pipeline.source_options().member is not None


@pytest.mark.parametrize("frame", [svg.WIDE, svg.NARROW], ids=["wide", "narrow"])
def test_the_pictures_are_well_formed_and_name_what_they_show(frame: svg.Frame) -> None:
    _, story = good_story()
    rebalances = [Rebalance(1.0, 1, "m1: member joined", 1, 3), Rebalance(6.0, 2, "m2: session expired", 1, 9)]
    lag = [LagSample(0.0, 0), LagSample(1.0, 5000)]
    drawn = [
        charts.ownership(story.tenures, rebalances, story.kills, 12.0, frame),
        charts.lag_over_time(lag, story.kills, 12.0, frame),
        charts.delay_map({("UA", 5): (7, 21), ("<&>", 6): (1, -3)}, {"UA": "United & Co"}, frame),
    ]
    for text in drawn:
        assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "consumer killed" in drawn[0]
    assert "consumer back" in drawn[0]
    assert "g2" in drawn[0]
    assert ">5k<" in drawn[1]
    assert ("UA" if frame.is_narrow else "United &amp; Co (UA)") in drawn[2]


def test_no_name_in_a_bar_lies_under_the_line_of_a_kill() -> None:
    """Issue 13, item 8: the name moves behind the line, and is left out where it fits nowhere."""
    tenures = [Tenure("consumer", 0, 0.0, 60.0), Tenure("consumer", 1, 0.0, 6.0)]
    drawn = ElementTree.fromstring(charts.ownership(tenures, [], [Kill("Spark", 3.0, 5.0)], 60.0))
    names = [found for found in drawn.iter() if found.get("class") == "on-bar"]
    line = next(found for found in drawn.iter() if found.get("class") == "back")
    assert [float(found.get("x", 0)) > float(line.get("x1", 0)) for found in names] == [True]


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
    story.lag = [LagSample(3.0, 1)]
    story.rebalances = [Rebalance(12.5, 1, "m1: member left", 0, 3)]
    assert report.end_of(story) == 12.5


def test_what_nobody_read_is_shown_and_explained() -> None:
    """findings/newcomer.md 2.6: the gap, the point of the demo, was plain white."""
    _, story = good_story()
    assert charts.unread(story.tenures) == [(1, 5, 6)]
    assert 'class="gap"' in charts.ownership(story.tenures, [], story.kills, 12.0)
    assert "nobody reads the partition, for 1.0 s at most" in report.gap_note(story)
    assert charts.unread(story.tenures[:1]) == []


def test_generations_close_together_share_a_label() -> None:
    marks = [Rebalance(at_s, g, "", 1, 0) for at_s, g in ((1.0, 1), (1.05, 2), (1.1, 3), (8.0, 4))]
    drawn = charts.ownership([Tenure("m1", 0, 0, 9)], marks, [], 9.0)
    assert ">g1-3<" in drawn
    assert ">g4<" in drawn


@pytest.mark.parametrize(("span", "most", "step"), [(9, 10, 1), (11, 10, 2), (42, 10, 5), (200_000, 5, 50_000)])
def test_axis_steps_are_round(span: float, most: int, step: float) -> None:
    assert svg.round_step(span, most) == pytest.approx(step)


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
    assert page.count("<svg") == 6, "each picture once for a desk and once for a phone"
