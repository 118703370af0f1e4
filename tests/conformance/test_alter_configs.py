"""AlterConfigs and IncrementalAlterConfigs, raw on the wire: Kafka and Partita find fault with the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conformance.wire import RawClient
from partita import Broker
from partita.protocol.messages import alter_configs, create_topics, incremental_alter_configs
from support.clients.broker import fresh
from support.kafka.node import KafkaNode

pytestmark = pytest.mark.conformance

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
T = "<the topic>"

REPLACED: list[tuple[int, str, list[tuple[str, str | None]]]] = [
    (TOPIC, T, [("retention.ms", "70000")]),
    (TOPIC, T, [("segment.ms", "9999"), ("cleanup.policy", "delete")]),
    (TOPIC, T, []),
    (TOPIC, T, [("retention.ms", "1"), ("retention.ms", "2")]),
    (TOPIC, T, [("retention.ms", None), ("segment.ms", "5000")]),
    (TOPIC, T, [("retention.ms", "soon")]),
    (TOPIC, T, [("segment.ms", "5000"), ("retention.ms", "-7")]),
    (TOPIC, T, [("nonsense", "7")]),
    (TOPIC, "not there", [("retention.ms", "7")]),
    (TOPIC, "not-there", [("retention.ms", "7")]),
    (TOPIC, "", [("retention.ms", "7")]),
    (BROKER, "1", [("log.retention.ms", "700000")]),
    (BROKER, "1", [("node.id", "7"), ("log.retention.ms", "700000")]),
    (BROKER, "1", [("log.retention.ms", "soon")]),
    (BROKER, "1", [("message.max.bytes", "-1")]),
    (BROKER, "1", [("log.retention.ms", None)]),
    (BROKER, "1", []),
    (BROKER, "1", [("of.a.plugin", "7"), ("cleanup.policy", "delete")]),
    (BROKER, "2", [("log.retention.ms", "700000")]),
    (BROKER, "one", []),
    (BROKER_LOGGER, "1", []),
    (0, T, []),
    (99, T, [("retention.ms", "7")]),
]
REFUSED_BY_KAFKA: list[tuple[str, str | None]] = [
    ("broker.id", "7"),
    ("log.dirs", "/tmp"),
    ("log.cleaner.threads", "0"),
    ("num.io.threads", "0"),
    ("leader.replication.throttled.rate", "-1"),
    ("listener.name.plaintext.max.connections", "many"),
    ("listener.name.plaintext.num.network.threads", "0"),
    ("max.connections", "0"),
    ("max.connections.per.ip", "0"),
    ("max.connection.creation.rate", "0"),
    ("log.retention.ms", "0"),
    ("log.roll.ms", "-1"),
]
SET, DELETE, APPEND, SUBTRACT = range(4)
COMMAS: list[str | None] = ["delete,", ",", ",delete", "delete,,", ""]
REPLICAS: list[str | None] = ["x", "1:1,*", "*", "1:1,", ""]
CHANGED: list[tuple[int, str, list[tuple[int, str, str | None]]]] = [
    (TOPIC, T, [(SET, "retention.ms", "70000"), (DELETE, "cleanup.policy", None)]),
    (TOPIC, T, [(APPEND, "cleanup.policy", "delete"), (DELETE, "retention.ms", "7")]),
    (TOPIC, T, [(DELETE, "segment.ms", None), (DELETE, "nonsense", None)]),
    (TOPIC, T, [(SET, "retention.ms", None)]),
    (TOPIC, T, [(SUBTRACT, "retention.ms", "1")]),
    (TOPIC, "not there", []),
    (TOPIC, "not-there", []),
    (TOPIC, "", []),
    (BROKER, "1", [(SET, "log.retention.ms", "700000"), (DELETE, "node.id", None)]),
    (BROKER, "1", [(APPEND, "log.retention.ms", "7")]),
    (BROKER, "1", [(SET, "message.max.bytes", "-1")]),
    *((BROKER, "1", [(SET, name, value)]) for name, value in REFUSED_BY_KAFKA),
    (BROKER, "1", [(SET, "num.io.threads", "5"), (SET, "leader.replication.throttled.rate", "5")]),
    (BROKER, "", [(SET, "listener.name.plaintext.max.connections", "5")]),
    (BROKER, "", [(SET, "listener.name.plaintext.log.retention.ms", "5")]),
    *([(TOPIC, T, [(APPEND, "cleanup.policy", value)]) for value in COMMAS]),
    *([(TOPIC, T, [(SET, "leader.replication.throttled.replicas", value)]) for value in REPLICAS]),
    (BROKER, "", [(SET, "node.id", "7")]),
    (BROKER, "", [(SET, "of.a.plugin", "7"), (DELETE, "of.none", None)]),
    (BROKER, "", [(APPEND, "of.a.plugin", "7")]),
    (BROKER, "2", []),
    (BROKER, "one", [(SET, "log.retention.ms", "700000")]),
    (3, T, []),
]


async def codes_on(bootstrap: str, topic: str, *messages: tuple[Any, int]) -> list[int]:
    """Make the topic, ask one after another; what was answered."""
    client = await RawClient("configs").connect(bootstrap)
    m = create_topics
    made = m.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    await client.ask(m.CreateTopicsRequest(topics=[made], timeout_ms=10_000), 7)
    answers: list[Any] = [await client.ask(message, version) for message, version in messages]
    client.close()
    return [response.error_code for answer in answers for response in answer.responses]


def same_codes(kafka: KafkaNode, topic: str, *messages: tuple[Any, int]) -> list[int]:
    theirs = asyncio.run(codes_on(kafka.bootstrap, topic, *messages))
    with Broker() as broker:
        ours = asyncio.run(codes_on(broker.bootstrap, topic, *messages))
    assert ours == theirs
    return ours


def test_replacing_all_settings_is_answered_alike(kafka: KafkaNode) -> None:
    topic, m = fresh("replaced"), alter_configs
    messages = []
    for kind, name, settings in REPLACED:
        configs = [m.AlterableConfig(name=key, value=value) for key, value in settings]
        named = m.AlterConfigsResource(resource_type=kind, resource_name=topic if name == T else name, configs=configs)
        messages += [(m.AlterConfigsRequest(resources=[named], validate_only=True), version) for version in (0, 2)]
    assert set(same_codes(kafka, topic, *messages)) == {0, 3, 17, 40, 42}


def test_changing_single_settings_is_answered_alike(kafka: KafkaNode) -> None:
    topic, m = fresh("changed"), incremental_alter_configs
    messages = []
    for kind, name, changes in CHANGED:
        configs = [m.AlterableConfig(name=key, config_operation=op, value=value) for op, key, value in changes]
        named = m.AlterConfigsResource(resource_type=kind, resource_name=topic if name == T else name, configs=configs)
        messages += [
            (m.IncrementalAlterConfigsRequest(resources=[named], validate_only=True), version) for version in (0, 1)
        ]
    assert set(same_codes(kafka, topic, *messages)) == {0, 3, 17, 40, 42}
