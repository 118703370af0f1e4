"""Bytes of the protocol type "consumer": the contents of JoinGroup and SyncGroup.

A version above the highest known is read as the highest, trailing bytes ignored; a version below 0 is an error.
Owned partitions are kept only for topics and numbers that can exist: a member's bytes are another machine's word.
(Kafka: ConsumerProtocol.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partita.assignors.interface import Subscription, TopicPartition, sorted_strings, utf16_key
from partita.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from partita.protocol.messages.consumer_protocol import TopicPartition as WireTopicPartitions
from partita.protocol.primitives import Buffer, MalformedRequest, Reader, Writer

HIGHEST_VERSION = 3


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """The subscription as a member sends it; topics and owned partitions sorted, generation below 0 as -1."""
    owned = sorted(subscription.owned_partitions, key=lambda owned: (utf16_key(owned[0]), owned[1]))
    message = ConsumerProtocolSubscription(
        topics=sorted_strings(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_grouped(owned),
        generation_id=max(-1, subscription.generation_id),
        rack_id=subscription.rack_id,
    )
    return _versioned(message, version)


def decode_subscription(buf: Buffer, group_instance_id: str | None = None) -> Subscription:
    """The subscription in the bytes of a member. Raises MalformedRequest."""
    reader, version = _open(buf)
    message = ConsumerProtocolSubscription.read(reader, version)
    return Subscription(
        topics=tuple(message.topics),
        user_data=None if message.user_data is None else bytes(message.user_data),
        owned_partitions=_flat(message.owned_partitions),
        generation_id=max(-1, message.generation_id),
        rack_id=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def encode_assignment(
    partitions: Iterable[TopicPartition], user_data: bytes | None = None, version: int = HIGHEST_VERSION
) -> bytes:
    """The assignment as the group leader sends it for one member; their order is kept."""
    groups = _grouped(partitions)
    return _versioned(ConsumerProtocolAssignment(assigned_partitions=groups, user_data=user_data), version)


def decode_assignment(buf: Buffer) -> tuple[list[TopicPartition], bytes | None]:
    """Partitions and user data of an assignment; no bytes at all mean nothing assigned. Raises MalformedRequest."""
    if len(buf) == 0:
        return [], None
    reader, version = _open(buf)
    message = ConsumerProtocolAssignment.read(reader, version)
    user_data = None if message.user_data is None else bytes(message.user_data)
    return _flat(message.assigned_partitions), user_data


def _open(buf: Buffer) -> tuple[Reader, int]:
    reader = Reader(buf)
    version = reader.int16()
    if version < 0:
        raise MalformedRequest(f"consumer protocol version {version}; versions start at 0")
    return reader, min(version, HIGHEST_VERSION)


def _versioned(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    writer = Writer()
    writer.int16(version)
    message.write(writer, version)
    return writer.getvalue()


def _grouped(partitions: Iterable[TopicPartition]) -> list[WireTopicPartitions]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return [WireTopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]


def _flat(groups: Sequence[WireTopicPartitions]) -> list[TopicPartition]:
    return [(group.topic, partition) for group in groups for partition in group.partitions]
