"""The page with the timeline, and one rebalance in full. The words are those of `partita.explain`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from partita.dashboard.access import Access
from partita.dashboard.app import create_app
from partita.dashboard.models.accounts import Accounts
from partita.dashboard.models.why import ROWS_MAX, why_page
from partita.dashboard.site import Site
from partita.dashboard.sources import Sources
from partita.dashboard.timeline import LETTER, Mark, Row, Span, Timeline, draw
from partita.explain import Fact, explain
from partita.explain.facts import Assigned, Member, Sure
from support.dashboard.pages import checked
from support.dashboard.story import PARTITIONS, SECOND, story
from support.dashboard.world import START_MS, FakeCluster, member


@pytest.fixture
def world() -> FakeCluster:
    world = FakeCluster()
    for step in range(16):
        for key in PARTITIONS:
            world.log(*key, 500 + step * 100)
        world.group("workers", {key: 480 + step * 100 for key in PARTITIONS}, [member("worker-1", *PARTITIONS)])
        world.look()
        world.pass_s(10)
    return world


def pages(world: FakeCluster, facts: Sequence[Fact]) -> TestClient:
    sources = Sources(lambda group: facts if group == "workers" else (), lambda: "From a test.")
    return TestClient(create_app(Site(world.observed, Access(), sources=sources)), base_url="http://127.0.0.1")


def test_every_rebalance_is_listed_with_its_headline_the_newest_first(world: FakeCluster) -> None:
    client = pages(world, story())
    text = client.get("/groups/workers/why").text
    checked(text)
    told = explain(story())
    places = {account: text.index(f">g{account.generation}</a>\n") for account in told}
    at = [text.index(f'<span class="told">{escape(account.headline)}', place) for account, place in places.items()]
    assert at == sorted(at, reverse=True)
    assert "5 rebalances known, 5 in the last hour" in text


def test_the_timeline_shows_owners_and_who_read_nothing(world: FakeCluster) -> None:
    model = pages(world, story()).get("/groups/workers/why.json").json()
    rows = {row["name"]: row["spans"] for row in model["timeline"]["rows"]}
    assert list(rows) == [f"orders-{number}" for number in range(6)]
    owners = dict(model["timeline"]["owners"])

    def reader(name: str, at_s: float) -> str | None:
        at_ms = START_MS + at_s * SECOND
        *_, last = [span for span in rows[name] if span["from_ms"] <= at_ms < span["to_ms"]]
        return None if last["owner"] is None else str(owners[last["owner"]])

    assert [reader("orders-4", at) for at in (10, 25, 40, 65, 80, 130)] == [
        "worker-1", "worker-2", "worker-3", None, "worker-2", "worker-3",
    ]  # fmt: skip
    assert reader("orders-0", 65) == "worker-1"
    gaps = [span["to_ms"] - span["from_ms"] for span in rows["orders-4"] if span["owner"] is None]
    assert max(gaps) == 12_000, "killed at 60 s, read again from 72 s"
    assert [mark["label"] for mark in model["timeline"]["marks"]] == ["g1", "g2", "g3", "g4", "g5"]


def test_all_pages_count_the_same_rebalances(world: FakeCluster) -> None:
    """An audit: four rebalances on a group's page, none on the first page and in the list, in the same minute."""
    client = pages(world, story())
    group = client.get("/groups/workers.json").json()
    (listed,) = client.get("/groups.json").json()["groups"]
    headlines = [account.headline for account in reversed(explain(story()))]
    assert group["row"]["rebalances_per_hour"] == listed["row"]["rebalances_per_hour"] == len(headlines)
    assert [one["what"] for one in client.get("/overview.json").json()["rebalances"]] == headlines
    assert [one["what"] for one in group["rebalances"]] == headlines, "marks of the curve"


def test_a_member_has_one_look_on_every_page(world: FakeCluster) -> None:
    """An audit: worker-1 was blue on the group's page and orange on the one that says why."""
    client = pages(world, story())
    looks = {name: number for number, name in client.get("/groups/workers/why.json").json()["timeline"]["owners"]}
    assert looks == {"worker-1": 0, "worker-2": 1, "worker-3": 2}
    for order in (["worker-3", "worker-2"], ["worker-4", "worker-1", "worker-2"]):
        world.group("workers", {}, [member(name) for name in order])
        world.look()
        cards = client.get("/groups/workers.json").json()["members"]
        assert {card["client_id"]: card["look"] for card in cards} == {n: looks.get(n, 3) for n in order}
    begin = START_MS + 100 * SECOND
    later = client.get(f"/groups/workers/why.json?from={begin}&to={begin + 20 * SECOND}").json()["timeline"]["owners"]
    assert {name: number for number, name in later}.items() <= looks.items()


def test_the_timeline_opens_around_the_rebalances_with_round_times(world: FakeCluster) -> None:
    """An audit: four rebalances of a minute in the first twentieth of the width, ticks at 09:47:25 and 09:51:08."""
    world.pass_s(3_600)
    world.look()
    client = pages(world, story())
    line = client.get("/groups/workers/why.json").json()["timeline"]
    marks = [mark["at_ms"] for mark in line["marks"]]
    assert len(marks) == 5
    assert marks[-1] - marks[0] >= (line["to_ms"] - line["from_ms"]) / 2
    ticks = re.findall(r'<text class="middle" [^>]*>(\d\d:\d\d:\d\d)</text>', client.get("/groups/workers/why").text)
    assert 3 <= len(ticks) <= 8
    assert all(tick.endswith(("00", "30")) for tick in ticks)


def test_members_can_be_the_rows(world: FakeCluster) -> None:
    model = pages(world, story()).get("/groups/workers/why.json?by=member").json()
    rows = {row["name"]: [span["label"] for span in row["spans"]] for row in model["timeline"]["rows"]}
    assert rows["worker-3"] == ["2 partitions", "2 partitions"]
    assert rows["worker-1"][0] == "6 partitions"


@pytest.mark.parametrize("query", ["from=1&to=2", "from=x&to=y", "from=9&to=3", "from=" + "9" * 40 + "&to=1", "by=zzz"])
def test_a_window_that_makes_no_sense_is_no_error(world: FakeCluster, query: str) -> None:
    assert pages(world, story()).get(f"/groups/workers/why?{query}").status_code == 200


def test_a_window_shows_only_what_lies_in_it(world: FakeCluster) -> None:
    begin, end = START_MS + 55 * SECOND, START_MS + 80 * SECOND
    model = pages(world, story()).get(f"/groups/workers/why.json?from={begin}&to={end}").json()
    assert (model["timeline"]["from_ms"], model["timeline"]["to_ms"]) == (begin, end)
    assert [mark["label"] for mark in model["timeline"]["marks"]] == ["g4"]
    assert all(begin <= point["at_ms"] <= end for point in model["timeline"]["lag"])


def test_one_rebalance_tells_its_story_and_its_evidence(world: FakeCluster) -> None:
    client = pages(world, story())
    text = client.get("/groups/workers/why/4").text
    checked(text)
    account = next(account for account in explain(story()) if account.generation == 4)
    for sentence in (account.headline, account.advice, *account.cause.evidence):
        assert sentence.replace("'", "&#39;") in text
    assert account.phases
    told = client.get("/groups/workers/why/4.json").json()
    assert told["account"]["causes"][0]["what"] == "session expired"
    moved = [(name, before, after) for name, before, after, is_moved in told["grid"] if is_moved]
    third, second = ("worker-3", "worker-2"), ("worker-2", "worker-1")
    assert moved == [("orders-2", *second), ("orders-4", *third), ("orders-5", *third)]
    assert (told["previous"], told["next"]) == (3, 5)


def test_a_generation_that_is_not_known_is_not_found(world: FakeCluster) -> None:
    client = pages(world, story())
    for path in ("/groups/workers/why/99", "/groups/nobody/why/1", "/groups/workers/why/x"):
        assert client.get(path).status_code == 404
    assert pages(world, ()).get("/groups/nobody/why").status_code == 404


def test_a_group_without_history_says_where_it_would_come_from(world: FakeCluster) -> None:
    text = pages(world, ()).get("/groups/workers/why").text
    assert "No rebalance is known yet" in text
    assert "From a test." in text


def test_names_in_the_picture_are_text() -> None:
    evil = "<script>alert(1)</script>"
    line = Timeline(
        0, 1_000, (Row(evil, (Span(0, 900, 0, evil, evil), Span(900, 1_000, None, evil))),),
        (Mark(500, "g1", "/x", evil),), ((0, evil),), (),
    )  # fmt: skip
    text = str(draw(line))
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 4


@pytest.mark.parametrize(
    ("name", "shown"), [("ana", "ana"), ("a-name-that-is-long", "a-name-that-is-long"), ("n" * 99, None)]
)
def test_a_name_keeps_clear_of_gaps(name: str, shown: str | None) -> None:
    """A gap may lie inside the span of the owner that reads on after it."""
    gaps = [(100, 110), (500, 520)]
    spans = (Span(0, 1_000, 0, "t", name), *(Span(*gap, None, "gap") for gap in gaps))
    text = str(draw(Timeline(0, 1_000, (Row("orders-0", spans),), (), ((0, name),), ())))
    (label,) = re.findall(r'class="label" x="([\d.]+)" y="\d+">(.*?)<', text)
    begin = float(label[0])
    end = begin + LETTER * len(label[1])
    assert label[1] == shown or (shown is None and label[1].endswith("\N{HORIZONTAL ELLIPSIS}"))
    hatches = re.findall(r'class="nobody" x="([\d.]+)" y="\d+" width="([\d.]+)"', text)
    assert len(hatches) == len(gaps)
    for x, width in hatches:
        assert end <= float(x) or begin >= float(x) + float(width)


def test_owners_differ_by_more_than_colour() -> None:
    """Issue 17 item 3: colour-blind safe."""
    line = Timeline(0, 10, (), (), (), ())
    strokes = re.findall(r'<pattern id="own\d".*?<path class="over" d="(.*?)"', str(draw(line)))
    assert len(set(strokes)) == len(strokes) == 8


def test_a_group_of_many_partitions_shows_what_fits(world: FakeCluster) -> None:
    many = Member("m-1", "m", partitions=tuple(("t", number) for number in range(100)))
    facts = [Assigned("big", START_MS, Sure.SEEN, 1, (many,))]
    model = why_page(world.observed, Accounts(world.observed, lambda group: facts), "big", {}, "")
    assert model is not None
    assert model.timeline is not None
    assert (len(model.timeline.rows), model.hidden_rows) == (ROWS_MAX, 100 - ROWS_MAX)


def test_accounts_are_made_once_for_each_look(world: FakeCluster) -> None:
    asked: list[str] = []

    def facts_of(group: str) -> Sequence[Any]:
        asked.append(group)
        return story()

    accounts = Accounts(world.observed, facts_of)
    for _ in range(3):
        accounts.of("workers")
    world.observed.publish(world.now_ms)
    accounts.of("workers")
    assert asked == ["workers", "workers"]
