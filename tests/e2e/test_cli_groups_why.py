"""`partita groups why` and `partita groups history` as a user runs them. Issue 13, item 2; issue 17, items 1 and 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer
from partita.cli.commands import cli


def run(broker: Broker, command: str, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["groups", command, *words, "-b", broker.bootstrap])
    assert result.exit_code == code, result.output
    return result.output


def come_and_go(broker: Broker, *names: str) -> None:
    """One static member after the other is alone in the group, and leaves it."""
    for name in names:
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", group_instance_id=name) as consumer:
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.1)
            consumer.close(membership="leave_group")


@pytest.mark.partita(topics={"t": 2})
def test_the_history_of_a_group_as_text_json_and_page(partita_broker: Broker, tmp_path: Path) -> None:
    come_and_go(partita_broker, "first", "second")
    text = run(partita_broker, "history", "g")
    assert text.splitlines()[0].split() == ["TIME", "GENERATION", "MEMBERS", "ADDED", "REMOVED", "MOVED"]
    steps = json.loads(run(partita_broker, "history", "g", "--json"))
    assert [s["members"] for s in steps if s["members"]] == [["first"], ["second"]]
    assert next(s["owners"] for s in steps if s["members"]) == {"t-0": "first", "t-1": "first"}
    page = tmp_path / "history.html"
    run(partita_broker, "history", "g", "--html", str(page))
    html = page.read_text()
    assert "second read t-1 for" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", ""), "the page loads nothing from outside"
    assert "there is no group gg; did you mean g?" in run(partita_broker, "history", "gg", code=1)


@pytest.mark.partita(topics={"t": 2}, admin_port=0)
def test_why_from_the_log_and_from_the_notes_of_the_broker(partita_broker: Broker, tmp_path: Path) -> None:
    come_and_go(partita_broker, "first", "second")
    text = run(partita_broker, "why", "g")
    assert "g2    first left, and the group is empty now." in text
    assert "generation 4: second left, and the group is empty now." in text
    assert "Inferred:" in text
    admin = ["--admin-port", str(partita_broker.running.admin_port), "--admin-token", str(partita_broker.admin_token)]
    told = run(partita_broker, "why", "g", "--generation", "4", *admin)
    assert told.startswith("generation 4: second left, and the group is empty now.")
    assert "Inferred" not in told
    (account,) = json.loads(run(partita_broker, "why", "g", "--generation", "4", "--json", *admin))
    assert account["causes"][0]["sure"] == "told"
    page = tmp_path / "why.html"
    assert f"wrote {page}" in run(partita_broker, "why", "g", "--html", str(page))
    assert "Why group g rebalanced" in page.read_text()


@pytest.mark.partita(topics={"t": 2})
def test_what_is_not_known_is_said(partita_broker: Broker) -> None:
    come_and_go(partita_broker, "first")
    assert "there is no group gg; did you mean g?" in run(partita_broker, "why", "gg", code=1)
    assert run(partita_broker, "why", "nobody", code=1).rstrip().endswith("there is no group nobody")
    assert "nothing is known of generation 99" in run(partita_broker, "why", "g", "--generation", "99", code=1)
    assert "--since expects a time or an age" in run(partita_broker, "why", "g", "--since", "latest", code=2)
    assert "no rebalance of group g is known since 2100-01-01" in run(
        partita_broker, "why", "g", "--since", "2100-01-01"
    )
    assert "generation 2: first left" in run(partita_broker, "why", "g", "--since", "1h")


@pytest.mark.partita(topics={"t": 4})
def test_a_kip_848_group_is_told_by_its_log(partita_broker: Broker) -> None:
    options = {"bootstrap_servers": partita_broker.bootstrap, "group_id": "g", "group_protocol": "consumer"}
    with Consumer(options, client_id="a") as a:
        a.subscribe(["t"])
        while len(a.assignment()) != 4:
            a.poll(0.1)
        with Consumer(options, client_id="b") as b:
            b.subscribe(["t"])
            while len(b.assignment()) != 2:
                b.poll(0.05)
                a.poll(0.05)
    accounts = json.loads(run(partita_broker, "why", "g", "--json"))
    joined = next(a for a in accounts if len(a["members"]) == 2)
    assert joined["headline"] == "b joined."
    assert joined["is_incremental"]
    assert sorted(len(m["partitions"]) for m in joined["members"]) == [2, 2]
    assert {m["partition"][:2] for m in joined["moves"]} == {"t-"}, "topic ids have names"
