"""Client options of the command line reach every command that connects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Admin, Broker
from partita.cli.commands import COMMANDS, cli
from partita.testing.plugin import BrokerFactory

CALLS = (
    ["cluster"], ["topics", "list"], ["topics", "describe", "t"], ["topics", "configs", "t"], ["partitions", "list"],
    ["config", "get", "topic", "t"], ["produce", "t"], ["consume", "t", "-e"], ["perf", "consume", "t"],
    ["groups", "list"], ["groups", "lag"], ["mirror", "t", "--prefix", "x.", "-e"],
    ["groups", "watch", "--looks", "1"], ["groups", "why", "g"], ["groups", "history", "g"],
    ["acls", "list"], ["quotas", "list"], ["users", "list"], ["transactions", "list"], ["top", "--looks", "1"],
    ["dashboard", "--once", "-"],
)  # fmt: skip


@pytest.mark.case("SE-Q06")
@pytest.mark.partita(topics={"t": 1}, authorizer_class_name="standard", super_users="User:ANONYMOUS")
@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_every_command_takes_a_properties_file(partita_broker: Broker, tmp_path: Path, words: list[str]) -> None:
    with Admin(bootstrap_servers=partita_broker.bootstrap) as admin:
        admin.alter_group_offsets("g", {("t", 0): 0})  # the commands about a group need one that exists
    file = tmp_path / "client.properties"
    file.write_text(
        f"# as for Kafka's own tools\nbootstrap.servers: \\\n    {partita_broker.bootstrap}\n"
        "security.protocol=PLAINTEXT\nclient.id  from-a-file\nkey.deserializer=org.apache.kafka.X\n"
    )
    result = CliRunner().invoke(cli, [*words, "--command-config", str(file)], input="")
    assert result.exit_code == 0, result.output
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(f"bootstrap.servers={partita_broker.bootstrap}\nsecurity.protocol=PLAINTXT\n")
    refused = CliRunner().invoke(cli, [*words, "--command-config", str(wrong)], input="")
    assert refused.exit_code == 2, refused.output
    assert "PLAINTXT" in refused.output


def test_commands_that_connect_are_all_here() -> None:
    without = {"backup", "broker", "certs", "profiles", "doctor", "demo", "taste", "sim", "play", "pipeline", "designs"}
    without |= {"migrate", "exporter"}  # a broker of its own; and what serves until it is ended, see its tests
    assert {words[0] for words in CALLS} == set(COMMANDS) - without


def test_client_options_from_the_environment_reach_the_broker(
    partita_broker_factory: BrokerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = partita_broker_factory(topics={"t": 1})
    broker.control.trace_group("g")
    monkeypatch.setenv("PARTITA_CLIENT_ID", "named-outside")
    words = ["consume", "t", "-g", "g", "--from", "earliest", "-e", "-b", broker.bootstrap]
    assert CliRunner().invoke(cli, words).exit_code == 0
    asked = [note for note in broker.notes() if note["note"] == "GroupRequest"]
    assert {note["client_id"] for note in asked} == {"named-outside"}, json.dumps(asked)
