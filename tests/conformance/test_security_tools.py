"""Kafka's own command-line tools against a secured broker of ours. (SE-Q12)"""

from __future__ import annotations

from pathlib import Path

import pytest

from partita import Broker
from partita.admin import ScramCredential
from partita.broker.security.users import Shape, shape_of
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
        users = set(broker.run(lambda: list(broker.running.services.users().credentials())))
        assert tuple(ScramCredential("carol", "SCRAM-SHA-512", 8192)) in users
        made = broker.run(lambda: broker.running.services.users().credential("carol", "SCRAM-SHA-512"))
        assert made is not None
        assert shape_of(made.salt, made.iterations) == Shape(None, 8192), "made-up users are made like this"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_delegation_tokens_lends_a_login_that_javas_clients_use(tmp_path: Path, mechanism: str) -> None:
    """Create, describe, renew, log in with `tokenauth`, expire; by Kafka's own tool. (Issue 25, item 10)"""
    key = {"delegation.token.secret.key": "key"}
    with Broker(key, tls=True, users={"alice": "se;cret"}, acls=ACLS) as broker:
        broker.create_topics({"orders": 1})
        config = properties(broker, tmp_path, mechanism)
        tool = "org.apache.kafka.tools.DelegationTokenCommand"
        way = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
        created = run_tool(tool, *way, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
        assert created.returncode == 0, created.stdout + created.stderr
        row = created.stdout.strip().splitlines()[-1].split()
        token_id, hmac = row[0], row[1]
        assert row[2:5] == ["User:alice", "User:alice", "[User:bob]"]
        described = run_tool(tool, *way, "--describe", "--owner-principal", "User:alice")
        assert described.stdout.strip().splitlines()[-1].split() == row
        renewed = run_tool(tool, *way, "--renew", "--renew-time-period", "60000", "--hmac", hmac)
        assert "Completed renew operation" in renewed.stdout, renewed.stdout + renewed.stderr
        line = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{token_id}" password="{hmac}" tokenauth="true";'
        )
        kept = [text for text in config.read_text().splitlines() if not text.startswith("sasl.jaas.config")]
        lent = tmp_path / "lent.properties"
        lent.write_text("\n".join([*kept, f"sasl.jaas.config={line}", ""]))
        produced = run_tool(
            "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", broker.bootstrap, "--topic", "orders",
            "--max-messages", "5", "--command-config", str(lent),
        )  # fmt: skip
        assert produced.returncode == 0, produced.stdout + produced.stderr
        refused = run_tool(tool, *way[:3], str(lent), "--describe")
        assert "UnsupportedByAuthenticationException" in refused.stdout + refused.stderr
        expired = run_tool(tool, *way, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        assert "Completed expire operation" in expired.stdout, expired.stdout + expired.stderr
        assert token_id not in run_tool(tool, *way, "--describe").stdout
