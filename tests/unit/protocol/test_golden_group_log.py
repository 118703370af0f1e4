"""Keys and values of `__consumer_offsets`, offsets, classic groups and KIP-848 groups: Kafka's bytes, both ways."""

import json
from pathlib import Path
from typing import Any

import pytest

from partita.protocol.messages import consumer_group_log as consumer
from partita.protocol.messages.group_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from partita.protocol.primitives import Message, Reader
from support.vectors.schemas import described

VECTORS = Path(__file__).parents[2] / "vectors"
SCHEMAS = {message.schema.name: message for message in described()}
KEYS: dict[int, type[Message]] = {0: LegacyOffsetCommitKey, 1: OffsetCommitKey, 2: GroupMetadataKey}
VALUES: dict[int, type[Message]] = {0: OffsetCommitValue, 1: OffsetCommitValue, 2: GroupMetadataValue}
for key, value in (
    (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    (consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue),
    (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
    (consumer.ConsumerGroupTargetAssignmentMetadataKey, consumer.ConsumerGroupTargetAssignmentMetadataValue),
    (consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue),
    (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue),
    (consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue),
):
    KEYS[key.MIN_VERSION], VALUES[key.MIN_VERSION] = key, value


def load(name: str) -> list[dict[str, Any]]:
    cases = [json.loads(line) for line in (VECTORS / name).read_text().splitlines()]
    return [case for case in cases if case.get("key_id") in KEYS and case.get("value_hex") and "outcome" not in case]


CASES = load("group-log.jsonl") + load("group-log-written.jsonl")


def read(cls: type[Message], hex_bytes: str) -> tuple[int, Message]:
    reader = Reader(bytes.fromhex(hex_bytes))
    version = reader.int16()
    message = cls.read(reader, version)
    reader.finish()
    return version, message


def test_there_are_vectors_of_every_version() -> None:
    assert {(case["key_id"], case["value_version"]) for case in CASES} >= {(1, v) for v in range(5)} | {
        (2, v) for v in range(5)
    } | {(kind, 0) for kind in (3, 4, 5, 6, 7, 8, 16)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"key{case['key_id']}-v{case['value_version']}")
def test_keys_and_values_are_kafkas(case: dict[str, Any]) -> None:
    for cls, hex_bytes, fields in (
        (KEYS[case["key_id"]], case["key_hex"], case["key"]),
        (VALUES[case["key_id"]], case["value_hex"], case["value"]),
    ):
        version, message = read(cls, hex_bytes)
        assert message == SCHEMAS[cls.__name__].from_json(fields, version, iter(()))
        if case.get("fill") != "tagged":  # unknown tagged fields are not kept
            assert (version.to_bytes(2, "big") + message.encode(version)).hex() == hex_bytes
