"""Sticky: as even as possible, and as little moved as possible; all partitions are given up first (EAGER).

Each member sends what it was last given, with the generation, as user data; claims in `owned_partitions` are not
looked at. (Kafka: StickyAssignor.) Must not know about the wire beyond its own user data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct, unpack_from
from struct import error as StructError
from typing import ClassVar

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata, TopicPartition
from partita.assignors.sticky_general import share_generally
from partita.assignors.sticky_quota import share_by_quota
from partita.assignors.sticky_sharing import Claim, Shares, Sharing
from partita.protocol.primitives import Writer

_INT16 = Struct(">h").unpack_from
_INT32 = Struct(">i").unpack_from
_NOWHERE = (0, 0)


class StickyAssignor(Assignor):
    """`partition.assignment.strategy=sticky`."""

    name: ClassVar[str] = "sticky"

    def __init__(self) -> None:
        self._last: Sequence[TopicPartition] | None = None
        self._generation_id = -1

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        if not subscriptions:
            return {}
        sharing = Sharing(metadata, subscriptions)
        places = {t.encode("utf-8", "replace"): (sharing.first[t], count) for t, count in sharing.counts.items()}
        sharing.settle([_claim(subscriptions[member].user_data, places) for member in sharing.members])
        return sharing.assignment(share(sharing))

    def subscription_user_data(self, topics: Iterable[str]) -> bytes | None:
        if self._last is None:
            return None
        return encode_user_data(self._last, self._generation_id)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation_id: int) -> None:
        self._last = list(partitions)
        self._generation_id = generation_id


def share(sharing: Sharing) -> Shares:
    """Share what has been settled: by quota if all subscriptions are equal, else generally."""
    return share_by_quota(sharing) if sharing.all_alike else share_generally(sharing)


def encode_user_data(partitions: Iterable[TopicPartition], generation_id: int) -> bytes:
    """What a member was given, by topic, and in which generation (version 1 of the user data)."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer = Writer()
    writer.count(len(by_topic))
    for topic, numbers in by_topic.items():
        writer.string(topic)
        writer.count(len(numbers))
        for number in numbers:
            writer.int32(number)
    writer.int32(generation_id)
    return writer.getvalue()


def _claim(data: bytes | None, places: Mapping[bytes, tuple[int, int]]) -> Claim:
    """The claim in a member's user data; version 0 has no generation, unreadable bytes claim nothing.

    `places` maps a topic to the number of its first partition and its partition count.
    """
    if not data:
        return [], -1
    claimed: list[int] = []
    try:
        (topics,) = _INT32(data, 0)
        position = 4
        for _ in range(topics):
            (size,) = _INT16(data, position)
            if size < 0:
                return [], -1
            end = position + 2 + size
            first, known = places.get(data[position + 2 : end], _NOWHERE)
            (count,) = _INT32(data, end)
            if count == 1:
                (number,) = _INT32(data, end + 4)
                if 0 <= number < known:
                    claimed.append(first + number)
            else:
                numbers = unpack_from(f">{count}i", data, end + 4)
                claimed += [first + number for number in numbers if 0 <= number < known]
            position = end + 4 + 4 * count
    except StructError:
        return [], -1
    if topics < 0:
        return [], -1
    return claimed, _INT32(data, position)[0] if position + 4 <= len(data) else -1
