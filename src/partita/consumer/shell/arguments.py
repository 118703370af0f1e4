"""What the application passes to a call, checked: a wrong argument is refused with what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from partita.consumer.records import ConsumerRecord, ConsumerRecords
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition

Partitions = Iterable[tuple[str, int]]
Committable: TypeAlias = (
    "Mapping[tuple[str, int], OffsetAndMetadata | int] | ConsumerRecord[Any, Any] | ConsumerRecords[Any, Any]"
)


def topic_names(topics: Iterable[str] | str | None) -> list[str]:
    """The topics to subscribe to; a single name counts as a list of one."""
    names = [topics] if isinstance(topics, str) else list(topics) if topics is not None else []
    if any(not isinstance(name, str) or not name.strip() for name in names):
        raise ValueError(f"topic names must be text that is not blank, not {names!r}")
    return names


def check_pattern(pattern: str | re.Pattern[str]) -> None:
    """Refuse a pattern that could match no topic."""
    if not (pattern if isinstance(pattern, str) else pattern.pattern):
        raise ValueError("the pattern is empty; it has to match whole topic names")


def partitions(given: Partitions, call: str) -> list[TopicPartition]:
    """The partitions meant. Raises TypeError for anything but (topic, partition) pairs, ValueError for blank names."""
    some = list(given)
    for one in some:
        if not (isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], int)):
            shown = tuple(some) if isinstance(given, tuple) else some
            raise TypeError(f"{call} takes a list of (topic, partition) pairs such as [('orders', 0)], not {shown!r}")
        if not isinstance(one[0], str) or not one[0].strip():
            raise ValueError(f"topic names must be text that is not blank, not {one[0]!r}")
    return [TopicPartition(*tp) for tp in some]


def offsets(given: Committable | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
    """What is to be committed by partition. Raises TypeError and ValueError, saying what is expected."""
    if given is None:
        return None
    if isinstance(given, ConsumerRecords):
        return dict(given.next_offsets)
    if isinstance(given, ConsumerRecord):
        tp = TopicPartition(given.topic, given.partition)
        return {tp: OffsetAndMetadata(given.offset + 1, given.leader_epoch)}
    if not isinstance(given, Mapping):
        raise TypeError(
            "commit takes a dict such as {('orders', 0): 42}, a record, or what a poll returned, "
            f"not {type(given).__name__}"
        )
    wanted = {
        TopicPartition(*tp): at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
        for tp, at in given.items()
    }
    for tp, at in wanted.items():
        if at.offset < 0:
            raise ValueError(f"cannot commit offset {at.offset} for {tp}; offsets are 0 or more")
    return wanted
