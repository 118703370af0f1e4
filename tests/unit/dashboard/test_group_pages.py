"""The pages of groups over a cluster written down by hand."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from partita.admin.results import SubtopologyDescription, TasksDescription
from partita.dashboard import app as application
from partita.dashboard.site import STATIC
from partita.dashboard.words import slug
from support.dashboard.pages import checked
from support.dashboard.world import FakeCluster, member

ORDERS = [("orders", partition) for partition in range(4)]
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x>",
    "a/../b",
    "x.json",
    "\u202egnp.exe",
    "",
    "{{ 7 * 7 }}",
    "ü/ñ",
]


@pytest.fixture
def world() -> FakeCluster:
    """Two busy members, of which one falls behind; a group without members; one whose partition fails."""
    world = FakeCluster()
    for step in range(8):
        for key in ORDERS:
            world.log(*key, 1_000 + 500 * step)
        slow, fast = member("slow", *ORDERS[:2]), member("fast", *ORDERS[2:], instance="pod-1")
        done = {key: 1_000 + 500 * step for key in ORDERS[2:]} | {key: 1_000 + 10 * step for key in ORDERS[:2]}
        world.group("workers", done, [slow, fast])
        world.group("abandoned", {("orders", 0): 900})
        world.look()
        world.pass_s(10)
    return world


def test_a_streams_group_is_shown_with_topology_and_tasks(world: FakeCluster) -> None:
    tasks = TasksDescription("<p>", "here:7000", {"0": [0, 1]}, {"1": [2]}, {})
    running = replace(member("app", *ORDERS[:2]), epoch=3, tasks=tasks)
    topology = (SubtopologyDescription("0", ["orders"], [], ["app-changelog"]),)
    world.group("app", dict.fromkeys(ORDERS[:2], 900), [running])
    world.look()
    world.observed.groups["app"] = replace(world.observed.groups["app"], type="streams", topology=topology)
    text = world.client().get("/groups/app").text
    checked(text)
    assert "active 0(0,1), standby 1(2); process &lt;p&gt; at here:7000" in text
    assert "<li>subtopology 0 reads orders; keeps app-changelog</li>" in text
    assert "streams group" in text


def test_the_first_sentence_counts_what_needs_attention(world: FakeCluster) -> None:
    text = world.client().get("/").text
    assert '<h1 class="">2 of 2 groups need attention</h1>' in text
    assert "falls behind: 6,860 records" in text
    assert "has no members and 3,600 unread records" in text
    checked(text)


def test_a_group_is_told_in_one_line_and_by_member(world: FakeCluster) -> None:
    text = world.client().get("/groups/workers").text
    checker = checked(text)
    assert "2 members, " in text
    assert "rising" in text
    assert text.index("slow-id") < text.index("fast-id"), "the member that lags most comes first"
    assert "pod-1" in text
    assert checker.tags.count("section") == 2


@pytest.mark.parametrize("path", ["/", "/groups", "/groups/workers", "/groups/abandoned"])
def test_the_json_of_a_page_says_what_the_page_says(world: FakeCluster, path: str) -> None:
    client = world.client()
    told = client.get(("/overview" if path == "/" else path) + ".json").json()
    page = client.get(path).text
    assert told["cluster_id"] == "a-cluster"
    assert told["seen_ms"] == world.observed.seen_ms
    listed = told.get("groups")
    rows = [one["row"] for one in listed] if isinstance(listed, list) else [told["row"]] if "row" in told else []
    for row in rows:
        assert f"{row['lag']:,}" in page
        assert row["group_id"] in page
    if path == "/":
        assert told["sentence"] in page


def test_numbers_of_a_page_are_those_of_the_observer(world: FakeCluster) -> None:
    told = world.client().get("/groups/workers.json").json()
    behind = 2 * (4_500 - 1_070)
    assert told["row"]["lag"] == behind
    assert sum(part["lag"] for card in told["members"] for part in card["partitions"]) == behind
    slow = told["members"][0]
    assert (slow["client_id"], slow["lag"], slow["share"]) == ("slow", behind, 100)
    assert told["produce_rate"] == pytest.approx(4 * 50)
    assert told["consume_rate"] == pytest.approx(2 * 50 + 2 * 1)
    assert [point["lag"] for point in told["lag_points"]] == [980 * step for step in range(8)]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_attackers_are_text(name: str) -> None:
    """Design of the dashboard, section 5.6."""
    world = FakeCluster()
    world.log("t", 0, 50)
    world.group(name, {("t", 0): 1}, [member(name, ("t", 0))], metadata="<b>" * 100)
    world.look()
    client = world.client()
    for path in ("/", "/groups", f"/groups/{slug(name)}"):
        text = client.get(path).text
        checker = checked(text)
        assert "img" not in checker.tags
        assert "b" not in checker.tags
        assert "\u202e" not in text
    told = client.get(f"/groups/{slug(name)}.json").json()
    assert told["row"]["group_id"] == name


def test_a_partition_that_fails_greys_its_own_row(world: FakeCluster) -> None:
    world.log("orders", 1, 4_500, error="LEADER_NOT_AVAILABLE")
    world.look()
    text = world.client().get("/groups/workers").text
    assert text.count('<tr class="grey"') == 1
    assert "LEADER_NOT_AVAILABLE" in text


def test_a_topic_that_brokers_do_not_list_is_not_called_missing(world: FakeCluster) -> None:
    """A broker leaves out topics that one may not describe; the commits of the group still name them."""
    world.group("guests", {("hidden", 0): 5, ("orders", 0): 1_000})
    world.look()
    told = world.client().get("/groups/guests.json").json()
    assert [(part["topic"], part["error"]) for part in told["unowned"]] == [
        ("hidden", "deleted, or there is no right to see it"), ("orders", None),
    ]  # fmt: skip
    assert told["row"]["lag"] == 3_500


def test_a_group_that_cannot_be_looked_at_says_why_and_keeps_its_numbers(world: FakeCluster) -> None:
    before = world.client().get("/groups/workers.json").json()["row"]["lag"]
    group = world.observed.groups["workers"]
    world.group(
        "workers", {(c.topic, c.partition): c.offset for c in group.commits}, group.members, error="node 1: gone"
    )
    world.look()
    client = world.client()
    assert "cannot be looked at: node 1: gone" in client.get("/").text
    assert client.get("/groups/workers.json").json()["row"]["lag"] == before


def test_the_list_is_filtered_sorted_and_paged() -> None:
    world = FakeCluster()
    world.log("t", 0, 1_000)
    for number in range(120):
        world.group(f"team-{number:03}", {("t", 0): number})
    world.group("another", {("t", 0): 1_000}, [member("m", ("t", 0))])
    world.look()
    client = world.client()

    def names(query: str) -> list[str]:
        return [one["row"]["group_id"] for one in client.get(f"/groups.json?{query}").json()["groups"]]

    assert len(names("")) == 50
    assert names("sort=name&page=3")[-1] == "team-119"
    assert names("q=TEAM-11&sort=lag") == [f"team-{number}" for number in range(110, 120)]
    assert names("state=Stable") == ["another"]
    assert names("needs=no+members&sort=name")[0] == "team-000"
    assert names("topic=nothing") == []
    assert "No group fits" in client.get("/groups?q=zzz").text
    for nonsense in ("page=999", "page=-1", "page=²", "page=x", "sort=x"):
        assert client.get(f"/groups?{nonsense}").status_code == 200


def test_a_cluster_without_groups_says_so() -> None:
    world = FakeCluster()
    assert "Looking at the cluster for the first time" in world.client().get("/groups").text
    world.look()
    assert "There are no consumer groups yet" in world.client().get("/").text


def test_what_does_not_exist_is_not_found(world: FakeCluster) -> None:
    client = world.client()
    for path in ("/groups/nobody", "/groups/nobody.json", "/groups/nobody.live", "/nowhere", "/static/../app.py"):
        assert client.get(path).status_code == 404


def test_a_cluster_out_of_reach_is_told_on_every_page(world: FakeCluster) -> None:
    world.observed.trouble = "no broker answers"
    client = world.client()
    for path in ("/", "/groups", "/groups/workers"):
        assert "no broker answers" in client.get(path).text
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").json() == {"ok": True}


def test_viewing_a_group_lets_it_be_looked_at_more_often(world: FakeCluster) -> None:
    world.client().get("/groups/workers")
    assert list(world.observed._viewed) == ["workers"]


def request(last_event_id: str = "") -> Any:
    headers = {"last-event-id": last_event_id} if last_event_id else {}
    return SimpleNamespace(headers=headers, url=SimpleNamespace(path="/groups.live", query=""), query_params={})


def test_a_stream_sends_what_is_new_and_knows_what_a_reader_has(world: FakeCluster) -> None:
    """A reader that comes back with Last-Event-ID is sent the page only if it has changed since."""

    async def story() -> list[tuple[str, bool]]:
        site, closing = world.site(), anyio.Event()
        got = []
        stream = application._events(site, request(), lambda r: application.groups_page(site, r), closing)
        got.append(await anext(stream))
        world.observed.publish(world.now_ms)
        got.append(await anext(stream))
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator
        again = application._events(site, request(str(got[-1].id)), lambda r: application.groups_page(site, r), closing)
        pending = asyncio.ensure_future(anext(again))
        await asyncio.sleep(0)
        assert not pending.done(), "the reader has this version already"
        world.observed.publish(world.now_ms)
        got.append(await pending)
        closing.set()
        assert [event async for event in again] == [], "the stream ends with the server"
        return [(str(event.id), "workers" in str(event.data)) for event in got]

    boot, version = world.observed.boot, world.observed.version
    assert asyncio.run(story()) == [(f"{boot}-{version + step}", True) for step in range(3)]


def test_libraries_of_others_are_here_with_their_licences() -> None:
    for name in ("htmx", "uplot"):
        assert (STATIC / f"{name}.min.js").stat().st_size > 10_000
        assert (STATIC / f"{name}.LICENSE.txt").read_text().strip()


def test_data_in_a_page_cannot_end_its_element(world: FakeCluster) -> None:
    from partita.dashboard.site import _data

    text = str(_data({"x": "</script><script>"}))
    assert "<" not in text
    assert json.loads(text) == {"x": "</script><script>"}
