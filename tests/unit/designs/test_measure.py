"""Each measure of a run, from a journal made by hand; and the page that shows it."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from partita.designs.journal import Committed, Fact, Journal, Seen, Span
from partita.designs.measure import measure, two_readers, unread

CAUSE, END = 10.0, 20.0


def reading(at_s: float, member: str, *partitions: int) -> Fact:
    return Fact(at_s, member, "reading", {"partitions": list(partitions)})


def journal(*facts: Fact, partitions: int = 2, live: tuple[str, ...] = ("a", "b")) -> Journal:
    its = Journal("1", "join", partitions, 1500, facts=list(facts), live=list(live))
    its.start_s, its.cause_s, its.healed_s, its.end_s = 0.0, CAUSE, CAUSE, END
    return its


def test_a_group_is_settled_at_its_last_change() -> None:
    found = measure(journal(reading(1, "a", 0, 1), reading(12, "a", 0), reading(12.5, "b", 1)))
    assert found.settled_ms == 2500
    assert found.unowned_ms == 500
    assert (found.orphans, found.two_readers_ms) == (0, 0)


@pytest.mark.parametrize(
    ("facts", "orphans"),
    [
        ([reading(1, "a", 0, 1), reading(12, "a", 0)], 1),
        ([reading(1, "a", 0, 1)], 0),
        ([reading(1, "a", 0, 1), reading(12, "b", 1)], 0),
    ],
    ids=["nobody reads one", "one has no share", "two read one"],
)
def test_a_group_without_disjoint_shares_for_all_never_settles(facts: list[Fact], orphans: int) -> None:
    found = measure(journal(*facts))
    assert (found.settled_ms, found.orphans) == (None, orphans)


def test_what_happens_after_watching_ended_does_not_count() -> None:
    found = measure(journal(reading(1, "a", 0, 1), reading(12, "a", 0), reading(12.5, "b", 1), reading(20.1, "b", 0)))
    assert (found.settled_ms, found.two_readers_ms, found.orphans) == (2500, 0, 0)


def test_two_readers_are_counted_for_each_partition_and_only_after_the_cause() -> None:
    its = journal(reading(1, "a", 0, 1), reading(8, "b", 0, 1), reading(12, "b", 1), reading(13, "b"))
    assert list(two_readers(its.spans(), its.cause_s)) == [(0, 10.0, 12.0), (1, 10.0, 13.0)]
    found = measure(its)
    assert (found.two_readers_ms, found.two_readers_partitions) == (5000, 2)


def test_who_stands_still_or_is_killed_reads_nothing() -> None:
    its = journal(reading(1, "a", 0), reading(1, "b", 1))
    its.paused.append(Span("a", -1, 12, 15))
    its.gone["b"] = 18.0
    assert its.spans() == [Span("a", 0, 1, 12), Span("a", 0, 15, 20), Span("b", 1, 1, 18)]
    assert unread(its, its.spans()) == {0: [(12, 15)], 1: [(18.0, 20.0)]}


def test_records_delivered_again_after_the_cause_are_counted() -> None:
    its = journal(
        Fact(1, "a", "read", {"ranges": [[0, 0, 50]]}),
        Fact(2, "a", "read", {"ranges": [[0, 40, 50]]}),
        Fact(11, "b", "read", {"ranges": [[0, 45, 60], [1, 0, 5]]}),
    )
    assert measure(its).twice == 5


def test_the_largest_step_back_of_an_offset_counts() -> None:
    its = journal()
    its.commits = [
        Committed(at_s, partition, offset)
        for at_s, partition, offset in ((1, 0, 90), (2, 0, 10), (11, 0, 100), (12, 1, 7), (13, 0, 60), (14, 0, 59))
    ]
    assert measure(its).back == 40


def test_frames_are_counted_from_the_cause_on_and_those_of_a_coordinator_apart() -> None:
    its = journal(reading(1, "a", 0), reading(11, "b", 1))
    its.frames = [
        Seen(9, "a", "getData"), Seen(11, "a", "getData"), Seen(11, "a", "event"),
        Seen(11, "coordinator-0", "event"), Seen(11, "coordinator-0", "multi"), Seen(11, "b", "join"),
        Seen(11, "b", "heartbeat"), Seen(19, "b", "heartbeat"), Seen(11, "a", "told"), Seen(11, "a", "ping"),
    ]  # fmt: skip
    found = measure(its)
    assert (found.zk_reads, found.zk_writes, found.notifications, found.coordinator_events) == (1, 1, 2, 1)
    assert found.group_requests == 2, "steady heartbeats after the last change are not its cost"


def test_members_disagree_while_their_last_views_differ() -> None:
    def view(at_s: float, member: str, *members: str) -> Fact:
        return Fact(at_s, member, "view", {"members": list(members), "partitions": 2})

    found = measure(journal(view(1, "a", "a"), view(11, "b", "a", "b"), view(13.5, "a", "a", "b")))
    assert found.disagree_ms == 2500
    assert measure(journal()).disagree_ms is None


class Words(HTMLParser):
    """The text of a page, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_shows_every_picture_and_names_what_design_1_did() -> None:
    pytest.importorskip("kazoo", reason="left out, the old designs speak to ZooKeeper through kazoo")
    from partita.designs.compare import Comparison, Plan, Run, broken_promises
    from partita.designs.report import page

    runs = []
    for scenario in ("join", "zk-partition", "pause", "stale", "crash", "slow"):
        for design in ("1", "2", "3"):
            its = journal(reading(1, "a", 0, 1), reading(12, "a", 0), *([reading(13, "b", 1)] if design != "1" else []))
            its.design, its.scenario = design, scenario
            its.marks = [(CAUSE, "the cause"), (CAUSE + 1, "healed")]
            its.frames = [Seen(11, "a", "getData"), Seen(11, "b", "join"), Seen(11, "a", "event")]
            its.commits = [Committed(9, 1, 90), Committed(11, 1, 100), Committed(12, 1, 40)]
            found = measure(its)
            its.partitions = 12 if scenario == "crash" else its.partitions
            runs.append(Run(scenario, design, 2, its, found))
    result = Comparison(Plan(designs=("1", "2", "3")), runs=runs)
    text = page(result)
    assert ".wide:has(svg)::before" in text, "on a phone it says that there is more to the right"
    words = Words(text)
    assert words.text.count("Of 12 partitions the 5 with the most trouble are shown.") == 1
    assert words.tags.count("svg") == 8
    assert "script" not in words.tags
    assert "In pause, design 1 ended with: never settled" in words.text
    assert [word for word in ("without a reader", "never", "back by 60") if word not in words.text] == []
    last = next(run for run in runs if run.design == "3")
    assert broken_promises(last) == ["a committed offset went back by 60"]
    assert result.broken()[0] == "join, design 3: a committed offset went back by 60"


def test_a_page_claims_only_what_its_run_showed_and_names_a_busy_machine() -> None:
    pytest.importorskip("kazoo", reason="left out, the old designs speak to ZooKeeper through kazoo")
    from partita.designs.compare import Comparison, Plan, Run, broken_promises
    from partita.designs.report import page

    runs = []
    for design in ("1", "3"):
        its = journal(reading(1, "a", 0, 1), *([reading(12, "b", 1)] if design == "3" else []))
        its.design, its.scenario, its.late_s = design, "zk-partition", 0.5 if design == "1" else 0.0
        its.commits = [Committed(11, 1, 100), Committed(12, 1, 110)]
        runs.append(Run("zk-partition", design, 2, its, measure(its)))
    text = Words(page(Comparison(Plan(designs=("1", "3"), scenarios=("zk-partition", "pause")), runs=runs))).text
    for words in (
        "Not in this run: in design 1 connected again, it writes an old offset.",
        "Not in this run: in design 1 the member goes on reading what others have taken over.",
        "In design 3 it goes on reading too",
        "The machine was too busy during design 1",
        "In this run no offset went back.",
        "It was ended early: 2 of 4 runs are missing.",
    ):
        assert words in text
    runs[1].journal.late_s, runs[1].measures = 0.5, None
    assert broken_promises(runs[1]) == [], "a busy machine breaks no promise of a design"


def test_pictures_of_one_scenario_show_the_same_partitions() -> None:
    from partita.designs.pictures import shown_partitions

    one = journal(reading(1, "a", *range(8)), reading(12, "b", 6, 7), partitions=8)
    other = journal(reading(1, "a", *range(8)), reading(11, "a", 1, 2, 3, 4, 5, 6, 7), partitions=8)
    assert shown_partitions([one, other]) == [0, 1, 2, 6, 7]
