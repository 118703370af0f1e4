"""`/metrics`, and all pages as one file."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from partita.dashboard import metrics as dashboard_metrics
from partita.dashboard.access import Access
from partita.dashboard.metrics import metrics_text
from partita.dashboard.once import report
from partita.dashboard.site import Site
from partita.dashboard.sources import Sources
from partita.observe.seen import NodeSeen
from support.dashboard.story import PARTITIONS, story
from support.dashboard.world import FakeCluster, member


@pytest.fixture
def world() -> FakeCluster:
    world = FakeCluster()
    for step in range(4):
        for key in PARTITIONS:
            world.log(*key, 100 + 10 * step)
        names = ["worker-1"] if step < 2 else ["worker-1", "worker-2"]
        world.group("workers", dict.fromkeys(PARTITIONS, 90), [member(name, *PARTITIONS) for name in names])
        world.group('quote " and <b>', {("orders", 0): 130})
        world.look()
        world.pass_s(10)
    world.observed.nodes[2] = replace(NodeSeen(2, "b", 1), error="gone")
    return world


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_say_what_the_pages_say(world: FakeCluster) -> None:
    answer = world.client().get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(answer.text)
    workers = frozenset({("group", "workers")})
    assert found["partita_group_lag_records", workers] == 6 * 40
    assert found["partita_group_members", workers] == 2
    assert found["partita_group_rebalances_total", workers] == 1
    assert found["partita_group_commit_age_seconds", workers] == 30
    assert found["partita_group_topic_lag_records", workers | {("topic", "orders")}] == 240
    assert found["partita_group_state", workers | {("state", "Stable")}] == 1
    assert found["partita_node_up", frozenset({("node", "1")})] == 1
    assert found["partita_node_up", frozenset({("node", "2")})] == 0
    assert found["partita_up", frozenset()] == 1
    assert ("partita_group_lag_records", frozenset({("group", 'quote " and <b>')})) in found
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation


def test_labels_are_bounded(world: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard_metrics, "GROUPS_MAX", 1)
    found = samples(metrics_text(world.site().rows).decode())
    groups = {labels for name, labels in found if name == "partita_group_members"}
    assert groups == {frozenset({("group", "workers")})}, "the one that needs attention is told"
    assert found["partita_groups_left_out", frozenset()] == 1


def test_a_cluster_out_of_reach_is_down(world: FakeCluster) -> None:
    world.observed.trouble = "gone"
    assert samples(metrics_text(world.site().rows).decode())["partita_up", frozenset()] == 0


def test_one_file_holds_all_pages_and_needs_nothing_else(world: FakeCluster) -> None:
    facts = Sources(lambda group: story() if group == "workers" else (), lambda: "From a test.")
    text = report(Site(world.observed, Access(), sources=facts))
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#)', text)
    targets = set(re.findall(r'<section class="column sheet" id="([^"]+)"', text))
    links = set(re.findall(r'href="#([^"]+)"', text)) - {"own0"}
    assert links <= targets, links - targets
    assert {"/", "/groups", "/groups/workers", "/groups/workers/why", "/groups/workers/why/4", "/nodes"} <= targets
    assert "worker-3 was silent for its session timeout" in text
    assert "quote &#34; and &lt;b&gt;" in text
    ids = re.findall(r' id="((?!own|nobody)[^"]+)"', text)
    assert len(ids) == len(set(ids))
