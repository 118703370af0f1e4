"""`partita groups log` and what `groups describe` says of the log, as a user runs them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from partita import Broker, Consumer
from partita.cli.commands import cli


def run(broker: Broker, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, [*words, "-b", broker.bootstrap])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.partita(topics={"t": 2})
def test_the_log_tells_the_life_of_a_group(partita_broker: Broker) -> None:
    """R4 of the articles: `mykafka-group` is held by partition 22 of 50."""
    group = "mykafka-group"
    with Consumer(bootstrap_servers=partita_broker.bootstrap, group_id=group, client_id="reader") as consumer:
        consumer.subscribe(["t"])
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.commit({("t", 1): 7})
        assert "partition 22 of 50" in run(partita_broker, "groups", "describe", group).splitlines()[0]
    run(partita_broker, "groups", "delete", group)
    run(partita_broker, "groups", "list")
    entries = [json.loads(line) for line in run(partita_broker, "groups", "log", group, "--json").splitlines()]
    assert {entry["partition"] for entry in entries} == {22}
    joined = next(entry for entry in entries if entry["type"] == "GroupMetadata" and entry["value"]["members"])
    (member,) = joined["value"]["members"]
    assert (member["client_id"], member["topics"], member["assignment"]) == ("reader", ["t"], ["t-0", "t-1"])
    commit = next(entry for entry in entries if entry["type"] == "OffsetCommit")
    assert (commit["key"], commit["value"]["offset"]) == ({"group_id": group, "topic": "t", "partition": 1}, 7)
    assert {entry["type"] for entry in entries if entry["is_tombstone"]} == {"GroupMetadata", "OffsetCommit"}
    text = run(partita_broker, "groups", "log", group)
    assert "mykafka-group  t-1 -> 7" in text
    assert "generation 1, range: reader* [t-0 t-1]" in text
    assert "OffsetCommit  key v1, tombstone  mykafka-group  t-1" in text
    assert run(partita_broker, "groups", "log", "--json").count("\n") == len(entries)
    assert run(partita_broker, "groups", "log", "nobody") == ""
    assert run(partita_broker, "groups", "log", group, "--from", "latest") == ""
    run(partita_broker, "groups", "log", group, "--from", "x", code=2)


def test_without_any_group_there_is_no_log(partita_broker: Broker) -> None:
    assert "there is no topic named __consumer_offsets" in run(partita_broker, "groups", "log", code=1)
