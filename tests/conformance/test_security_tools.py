"""Kafka's own command-line tools against a secured broker of ours. (SE-Q12)"""

from __future__ import annotations

from pathlib import Path

import pytest

from partita import Broker
from partita.admin import ScramCredential
from support.kafka.node import run_tool

pytestmark = pytest.mark.conformance
ACLS = ["allow User:alice all cluster", "allow User:alice all topic *", "allow User:alice all group *"]


@pytest.mark.case("SE-Q12")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_configs_sets_scram_credentials(tmp_path: Path, mechanism: str) -> None:
    with Broker(tls=True, users={"alice": "se;cret"}, acls=ACLS) as broker:
        options = broker.client_options("alice", style="java", mechanism=mechanism)
        config = tmp_path / "client.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
        user = ["--entity-type", "users", "--entity-name", "carol"]
        way = ["--bootstrap-server", broker.bootstrap, "--command-config", str(config)]
        set_ = ["--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=carols]"]
        done = run_tool("kafka.admin.ConfigCommand", *way, *user, *set_)
        assert done.returncode == 0, done.stdout + done.stderr
        described = run_tool("kafka.admin.ConfigCommand", *way, *user, "--describe")
        assert "SCRAM-SHA-512=iterations=8192" in described.stdout
        users = set(broker.run(lambda: list(broker.running.services.users.credentials())))
        assert tuple(ScramCredential("carol", "SCRAM-SHA-512", 8192)) in users
