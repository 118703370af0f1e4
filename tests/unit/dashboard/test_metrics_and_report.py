"""`/metrics`, and all pages as one file."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from partita.dashboard.access import Access
from partita.dashboard.once import report
from partita.dashboard.site import Site
from partita.dashboard.sources import Sources
from partita.observe.metrics import metrics_text
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


def test_the_page_for_prometheus_is_that_of_the_exporter(world: FakeCluster) -> None:
    answer = world.client().get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.text == metrics_text(world.observed)
    assert 'partita_group_rebalances_total{group="workers"} 1' in answer.text


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
