"""Kafka's own command-line tools against a secured broker of ours. (SE-Q12)"""

from __future__ import annotations

from pathlib import Path

import pytest

from partita import Broker
from partita.admin import ScramCredential
from support.kafka.node import run_tool

pytestmark = pytest.mark.conformance
ACLS = ["allow User:alice all cluster", "allow User:alice all topic *", "allow User:alice all group *"]


def properties(broker: Broker, folder: Path, mechanism: str) -> Path:
    """What Java's clients are told to be alice."""
    options = broker.client_options("alice", style="java", mechanism=mechanism)
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    return file


@pytest.mark.case("SE-Q12", "SE-N22")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_javas_clients_produce_and_consume_in_a_group_over_tls(tmp_path: Path, mechanism: str) -> None:
    with Broker(tls=True, users={"alice": "se;cret"}, acls=ACLS) as broker:
        broker.create_topics({"orders": 2})
        config = str(properties(broker, tmp_path, mechanism))
        way = ["--bootstrap-server", broker.bootstrap, "--topic", "orders"]
        produced = run_tool(
            "org.apache.kafka.tools.VerifiableProducer", *way, "--max-messages", "20", "--command-config", config
        )
        assert produced.returncode == 0, produced.stdout + produced.stderr
        console = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        group = ["--group", "console", "--from-beginning", "--max-messages", "20", "--timeout-ms", "40000"]
        consumed = run_tool(console, *way, *group, "--command-config", config)
        assert sorted(map(int, consumed.stdout.split())) == list(range(20)), consumed.stdout + consumed.stderr
        group = ["--group-id", "verifiable", "--max-messages", "20", "--reset-policy", "earliest"]
        verified = run_tool("org.apache.kafka.tools.VerifiableConsumer", *way, *group, "--command-config", config)
        assert '"name":"shutdown_complete"' in verified.stdout, verified.stdout + verified.stderr
        for name in ("console", "verifiable"):
            assert sum(broker.committed(name).values()) == 20


@pytest.mark.case("SE-Q12")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_configs_sets_scram_credentials(tmp_path: Path, mechanism: str) -> None:
    with Broker(tls=True, users={"alice": "se;cret"}, acls=ACLS) as broker:
        config = properties(broker, tmp_path, mechanism)
        user = ["--entity-type", "users", "--entity-name", "carol"]
        way = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
        set_ = ["--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=carols]"]
        done = run_tool("kafka.admin.ConfigCommand", *way, *user, *set_)
        assert done.returncode == 0, done.stdout + done.stderr
        described = run_tool("kafka.admin.ConfigCommand", *way, *user, "--describe")
        assert "SCRAM-SHA-512=iterations=8192" in described.stdout
        users = set(broker.run(lambda: list(broker.running.services.users.credentials())))
        assert tuple(ScramCredential("carol", "SCRAM-SHA-512", 8192)) in users
