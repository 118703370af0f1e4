"""ACLs by other libraries' admin clients: what they create is what holds, and what they are told is what there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import admin as confluent
from kafka import KafkaAdminClient
from kafka import admin as kafka_python

from partita import Admin, Broker
from partita.security.rights.acls import AclBinding, Operation, PatternType, Permission, ResourceType

TIMEOUT = 10.0
OURS = AclBinding(
    ResourceType.TOPIC, "orders-", "User:alice", Operation.READ, Permission.ALLOW, PatternType.PREFIXED, "10.0.0.7"
)


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Whoever connects without a login may do everything."""
    with Broker({"authorizer.class.name": "standard", "super.users": "User:ANONYMOUS"}) as running:
        yield running


@pytest.fixture
def ours(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


def test_acls_by_confluent_kafka(broker: Broker, ours: Admin) -> None:
    client = confluent.AdminClient({"bootstrap.servers": broker.bootstrap})
    given = confluent.AclBinding(
        confluent.ResourceType.TOPIC,
        "orders-",
        confluent.ResourcePatternType.PREFIXED,
        "User:alice",
        "10.0.0.7",
        confluent.AclOperation.READ,
        confluent.AclPermissionType.ALLOW,
    )
    for future in client.create_acls([given], request_timeout=TIMEOUT).values():
        future.result(TIMEOUT)
    assert ours.describe_acls() == [OURS]
    anything: Any = None  # its stubs have no null, its documentation does
    everything = confluent.AclBindingFilter(
        confluent.ResourceType.ANY,
        anything,
        confluent.ResourcePatternType.ANY,
        anything,
        anything,
        confluent.AclOperation.ANY,
        confluent.AclPermissionType.ANY,
    )
    assert client.describe_acls(everything, request_timeout=TIMEOUT).result(TIMEOUT) == [given]
    (removed,) = client.delete_acls([everything], request_timeout=TIMEOUT).values()
    assert removed.result(TIMEOUT) == [given]
    assert ours.describe_acls() == []


def test_acls_by_kafka_python(broker: Broker, ours: Admin) -> None:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        given = kafka_python.ACL(
            principal="User:alice",
            host="10.0.0.7",
            operation=kafka_python.ACLOperation.READ,
            permission_type=kafka_python.ACLPermissionType.ALLOW,
            resource_pattern=kafka_python.ResourcePattern(
                kafka_python.ResourceType.TOPIC, "orders-", kafka_python.ACLResourcePatternType.PREFIXED
            ),
        )
        assert not client.create_acls([given])["failed"]
        assert ours.describe_acls() == [OURS]
        found, _ = client.describe_acls(
            kafka_python.ACLFilter(
                principal="User:alice",
                host=None,
                operation=kafka_python.ACLOperation.ANY,
                permission_type=kafka_python.ACLPermissionType.ANY,
                resource_pattern=kafka_python.ResourcePatternFilter(
                    kafka_python.ResourceType.TOPIC, "orders-x", kafka_python.ACLResourcePatternType.MATCH
                ),
            )
        )
        assert found == [given]
    finally:
        client.close()
