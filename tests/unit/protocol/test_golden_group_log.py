"""Keys and values of `__consumer_offsets` and `__share_group_state`, groups of all kinds: Kafka's bytes, both ways."""

import json
from pathlib import Path
from typing import Any

from partita.protocol.messages import consumer_group_log as consumer
from partita.protocol.messages import share_group_log as share
from partita.protocol.messages import streams_group_log as streams
from partita.protocol.messages.group_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from partita.protocol.messages.share_log import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
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
    (share.ShareGroupMemberMetadataKey, share.ShareGroupMemberMetadataValue),
    (share.ShareGroupMetadataKey, share.ShareGroupMetadataValue),
    (share.ShareGroupTargetAssignmentMetadataKey, share.ShareGroupTargetAssignmentMetadataValue),
    (share.ShareGroupTargetAssignmentMemberKey, share.ShareGroupTargetAssignmentMemberValue),
    (share.ShareGroupCurrentMemberAssignmentKey, share.ShareGroupCurrentMemberAssignmentValue),
    (share.ShareGroupStatePartitionMetadataKey, share.ShareGroupStatePartitionMetadataValue),
    (streams.StreamsGroupMetadataKey, streams.StreamsGroupMetadataValue),
    (streams.StreamsGroupMemberMetadataKey, streams.StreamsGroupMemberMetadataValue),
    (streams.StreamsGroupTargetAssignmentMetadataKey, streams.StreamsGroupTargetAssignmentMetadataValue),
    (streams.StreamsGroupTargetAssignmentMemberKey, streams.StreamsGroupTargetAssignmentMemberValue),
    (streams.StreamsGroupCurrentMemberAssignmentKey, streams.StreamsGroupCurrentMemberAssignmentValue),
    (streams.StreamsGroupTopologyKey, streams.StreamsGroupTopologyValue),
):
    KEYS[key.MIN_VERSION], VALUES[key.MIN_VERSION] = key, value


SHARE_KEYS: dict[int, type[Message]] = {0: ShareSnapshotKey, 1: ShareUpdateKey}
SHARE_VALUES: dict[int, type[Message]] = {0: ShareSnapshotValue, 1: ShareUpdateValue}


def load(name: str, keys: dict[int, type[Message]]) -> list[dict[str, Any]]:
    cases = [json.loads(line) for line in (VECTORS / name).read_text().splitlines()]
    return [case for case in cases if case.get("key_id") in keys and case.get("value_hex") and "outcome" not in case]


GROUP_CASES = load("group-log.jsonl", KEYS) + load("group-log-written.jsonl", KEYS)
SHARE_CASES = load("share-log.jsonl", SHARE_KEYS)


def read(cls: type[Message], hex_bytes: str) -> tuple[int, Message]:
    reader = Reader(bytes.fromhex(hex_bytes))
    version = reader.int16()
    message = cls.read(reader, version)
    reader.finish()
    return version, message


def is_kafkas(cls: type[Message], hex_bytes: str, fields: dict[str, Any], keeps_tags: bool) -> bool:
    version, message = read(cls, hex_bytes)
    if message != SCHEMAS[cls.__name__].from_json(fields, version, iter(())):
        return False
    return not keeps_tags or (version.to_bytes(2, "big") + message.encode(version)).hex() == hex_bytes


def different(
    cases: list[dict[str, Any]], keys: dict[int, type[Message]], values: dict[int, type[Message]]
) -> list[dict[str, Any]]:
    return [
        case
        for case in cases
        for cls, part in ((keys[case["key_id"]], "key"), (values[case["key_id"]], "value"))
        # Unknown tagged fields are read past and not kept.
        if not is_kafkas(cls, case[f"{part}_hex"], case[part], keeps_tags=case.get("fill") != "tagged")
    ]


def test_there_are_vectors_of_every_version() -> None:
    assert {(case["key_id"], case["value_version"]) for case in GROUP_CASES} >= {(1, v) for v in range(5)} | {
        (2, v) for v in range(5)
    } | {(kind, 0) for kind in (*range(3, 9), *range(10, 17))}
    assert {(case["key_id"], case["value_version"]) for case in SHARE_CASES} == {(0, 0), (1, 0)}


def test_keys_and_values_of_groups_are_kafkas() -> None:
    assert different(GROUP_CASES, KEYS, VALUES) == []


def test_keys_and_values_of_share_partitions_are_kafkas() -> None:
    assert different(SHARE_CASES, SHARE_KEYS, SHARE_VALUES) == []
