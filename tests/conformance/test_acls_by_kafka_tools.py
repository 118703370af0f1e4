"""Kafka's own kafka-acls and kafka-configs against our broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Admin, Broker
from partita.admin.results import ClientQuota
from support.kafka.node import run_tool

pytestmark = pytest.mark.conformance
ACLS, CONFIGS = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Whoever connects without a login may do everything."""
    with Broker({"authorizer.class.name": "standard", "super.users": "User:ANONYMOUS"}) as running:
        yield running


def told(broker: Broker, tool: str, *arguments: str) -> str:
    """What the tool prints when it succeeds."""
    done = run_tool(tool, "--bootstrap-server", broker.bootstrap, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.case("SE-Q08", "SE-Q12")
def test_kafka_acls_adds_lists_and_removes(broker: Broker) -> None:
    told(broker, ACLS, "--add", "--allow-principal", "User:alice", "--consumer", "--topic", "t", "--group", "g")
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        theirs = admin.describe_acls()
        admin.delete_acls(*theirs)
        admin.create_acls("allow User:alice read,describe topic t", "allow User:alice read group g")
        assert set(admin.describe_acls()) == set(theirs), "the role means the same here and there"
    alice = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
    assert told(broker, ACLS, "--list").count(alice) == 2
    told(broker, ACLS, "--remove", "--force", "--allow-principal", "User:alice", "--operation", "READ", "--topic", "t")
    left = told(broker, ACLS, "--list", "--topic", "t")
    assert "operation=DESCRIBE" in left
    assert "operation=READ" not in left


@pytest.mark.case("SE-Q12")
def test_kafka_configs_sets_and_removes_quotas(broker: Broker) -> None:
    of_alice = ("--entity-type", "users", "--entity-name", "alice")
    told(broker, CONFIGS, "--alter", "--add-config", "producer_byte_rate=1024,request_percentage=12.5", *of_alice)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        quotas = {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
        assert admin.describe_client_quotas() == [ClientQuota({"user": "alice"}, quotas)]
        shown = told(broker, CONFIGS, "--describe", *of_alice)
        assert "producer_byte_rate=1024" in shown
        assert "request_percentage=12.5" in shown
        told(broker, CONFIGS, "--alter", "--delete-config", "producer_byte_rate,request_percentage", *of_alice)
        assert admin.describe_client_quotas() == []
