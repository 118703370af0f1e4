"""The pages of topics, transactions and nodes over a cluster written down by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.observe.seen import NodeSeen, TransactionSeen
from support.dashboard.pages import checked
from support.dashboard.world import START_MS, FakeCluster

HOUR = 3_600_000


@pytest.fixture
def world() -> FakeCluster:
    """Six days of records are kept for seven; the group audit has read almost nothing of them."""
    world = FakeCluster()
    for step in range(4):
        world.log("orders", 0, 10_000 + step * 100)
        world.log("orders", 1, 10_000 + step * 100)
        world.log("__consumer_offsets", 0, 7)
        world.log("empty", 0, 0)
        world.group("audit", {("orders", 0): 5, ("orders", 1): 6_000})
        world.group("shipping", {("orders", 0): 10_000 + step * 100})
        world.look()
        world.pass_s(10)
    topic = world.observed.topics["orders"]
    world.observed.topics["orders"] = replace(topic, retention_ms=2 * HOUR)
    return world


def test_topics_are_listed_with_their_readers(world: FakeCluster) -> None:
    text = world.client().get("/topics").text
    checked(text)
    told = world.client().get("/topics.json").json()
    rows = {row["name"]: row for row in told["topics"]}
    assert list(rows) == ["empty", "orders"], "Kafka's own topics are hidden"
    orders = rows["orders"]
    assert (orders["partitions"], orders["groups"], orders["records"]) == (2, 2, 20_600)
    assert orders["worst_lag"] == 2 * 10_300 - 6_005
    assert orders["produce_rate"] == pytest.approx(20)
    assert "__consumer_offsets" in world.client().get("/topics?internal=1").text
    assert world.client().get("/topics.json?q=EMPT").json()["total"] == 1


def test_a_group_that_will_lose_records_is_told_before_it_happens(world: FakeCluster) -> None:
    """The design's retention horizon: the oldest unread record is about an hour old, and two hours are kept."""
    told = world.client().get("/topics/orders.json").json()
    losing = {group["group_id"]: group["loses_in_ms"] for group in told["groups"]}
    assert losing["shipping"] is None
    assert losing["audit"] == pytest.approx(HOUR, rel=0.02)
    assert told["row"]["warning"] == "audit loses records to retention in 59 min 31 s unless it catches up"
    text = world.client().get("/topics/orders").text
    assert told["row"]["warning"] in text
    assert "it keeps records for 2 h; its oldest record is 1 h old" in text


def test_records_that_are_gone_are_told_as_lost(world: FakeCluster) -> None:
    world.log("orders", 0, 10_400, start=900)
    world.look()
    assert "audit loses records to retention now" in world.client().get("/topics/orders").text


@pytest.mark.parametrize(
    ("retention_ms", "policy", "said"),
    [
        (-1, "delete", "it keeps records forever"),
        (HOUR, "compact", "it is compacted"),
        (None, None, "2 partitions; its oldest record is 1 h old"),
    ],
)
def test_a_topic_says_what_it_keeps(
    world: FakeCluster, retention_ms: int | None, policy: str | None, said: str
) -> None:
    topic = world.observed.topics["orders"]
    world.observed.topics["orders"] = replace(topic, retention_ms=retention_ms, cleanup_policy=policy)
    assert said in world.client().get("/topics/orders").text


def test_a_partition_without_a_leader_is_grey_and_the_others_are_not(world: FakeCluster) -> None:
    world.log("orders", 1, 10_300, error="LEADER_NOT_AVAILABLE")
    world.look()
    text = world.client().get("/topics/orders").text
    assert text.count('<tr class="grey"') == 1
    assert "1 partition failing" in world.client().get("/topics").text


def test_transactions_that_are_open_longest_come_first(world: FakeCluster) -> None:
    now = world.observed.seen_ms
    world.observed.transactions = {
        "done": TransactionSeen("done", 1, "CompleteCommit", 5, 0, 60_000, now - 99_000),
        "short": TransactionSeen("short", 1, "Ongoing", 6, 0, 60_000, now - 1_000, (("orders", 0),)),
        "<b>long": TransactionSeen("<b>long", 1, "Ongoing", 7, 3, 60_000, now - 45_000, (("orders", 1),)),
    }
    told = world.client().get("/transactions.json").json()
    found = [(row["transaction"]["transactional_id"], row["open_ms"], row["is_late"]) for row in told["transactions"]]
    assert found == [("<b>long", 45_000, True), ("short", 1_000, False), ("done", None, False)]
    assert told["sentence"] == "3 transactional ids, 2 with an open transaction, 1 of them open for long"
    checked(world.client().get("/transactions").text)


def test_brokers_that_list_no_transactions_are_no_error(world: FakeCluster) -> None:
    world.observed.transactions_error = "these brokers do not list transactions"
    assert "these brokers do not list transactions" in world.client().get("/transactions").text


def test_a_node_that_fails_says_what_it_said(world: FakeCluster) -> None:
    world.observed.nodes[2] = NodeSeen(
        2, "gone", 9092, error="no connection to gone:9092 within 10 s", seen_ms=START_MS
    )
    text = world.client().get("/nodes").text
    checked(text)
    assert "1 node of 2 cannot be looked at" in text
    assert "no connection to gone:9092 within 10 s" in text
    assert "node 2: no connection to gone:9092" in world.client().get("/").text
    told = {
        row["node"]["id"]: (row["leads"], row["groups"]) for row in world.client().get("/nodes.json").json()["nodes"]
    }
    assert told == {1: (4, 2), 2: (0, 0)}


def test_pages_that_do_not_exist(world: FakeCluster) -> None:
    assert world.client().get("/topics/nothing").status_code == 404
