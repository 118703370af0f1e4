"""`partita groups history` as a user runs it. Issue 13, item 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer
from partita.cli.groups.history_page import Step, history_page, tenures_of
from partita.cli.main import cli


def run(broker: Broker, *words: str) -> str:
    result = CliRunner().invoke(cli, ["groups", "history", *words, "-b", broker.bootstrap])
    assert result.exit_code == 0, result.output
    return result.output


def step(generation: int, at_ms: int, **owners: str) -> Step:
    held = {f"t-{name[1:]}": owner for name, owner in owners.items()}
    return Step("g", generation, at_ms, tuple(sorted(set(owners.values()))), (), (), (), held)


@pytest.mark.partita(topics={"t": 2})
def test_the_history_of_a_group_as_text_json_and_page(partita_broker: Broker, tmp_path: Path) -> None:
    for name in ("first", "second"):
        with Consumer(bootstrap_servers=partita_broker.bootstrap, group_id="g", group_instance_id=name) as consumer:
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.1)
            consumer.close(membership="leave_group")
    text = run(partita_broker, "g")
    assert text.splitlines()[0].split() == ["TIME", "GENERATION", "MEMBERS", "ADDED", "REMOVED", "MOVED"]
    steps = json.loads(run(partita_broker, "g", "--json"))
    assert [s["members"] for s in steps if s["members"]] == [["first"], ["second"]]
    assert next(s["owners"] for s in steps if s["members"]) == {"t-0": "first", "t-1": "first"}
    page = tmp_path / "history.html"
    run(partita_broker, "g", "--html", str(page))
    html = page.read_text()
    assert html.count("second held t-1 from") == 1
    assert "http" not in html.replace("http://www.w3.org/2000/svg", ""), "the page loads nothing from outside"
    assert "knows nothing of group nobody" in run(partita_broker, "nobody")


def test_tenures_are_joined_over_rebalances_that_change_nothing() -> None:
    steps = [step(1, 0, p0="a", p1="a"), step(2, 4_000, p0="a", p1="b"), step(3, 10_000, p0="a")]
    tenures = {p: [(t.member, t.from_s, t.to_s) for t in some] for p, some in tenures_of(steps).items()}
    assert tenures == {"t-0": [("a", 0.0, 10.5)], "t-1": [("a", 0.0, 4.0), ("b", 4.0, 10.0)]}


def test_names_from_the_cluster_are_escaped() -> None:
    page = history_page("<g>", [step(1, 0, p0="<script>")])
    assert "<script>" not in page
    assert "Group &lt;g&gt;" in page


def test_member_ids_are_short_on_the_page_and_whole_under_the_mouse() -> None:
    ids = [
        f"{client}-5722f64e-168a-4728-9b34-a53eb6eeab23" for client in ("board", "a-service-with-a-rather-long-name")
    ]
    page = history_page("g", [step(1, 0, p0=ids[0], p1=ids[1], p2="desk-1")])
    for name, short in zip(ids, ("board-5722", "a-service-with-a-ra…-5722"), strict=True):
        assert f'<span title="{name}">{short}</span>' in page
        assert f">{short}</text>" in page, "in the legend"
    assert '<span title="desk-1">desk-1</span>' in page
