"""What the application passes to a call, checked: a wrong argument is refused with what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from partita.consumer.listener import CallbackListener, RebalanceListener
from partita.consumer.records import ConsumerRecord, ConsumerRecords
from partita.consumer.subscription import SubscriptionPattern
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition

T = TypeVar("T")
LISTENER_METHODS = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")
Partitions = Iterable[tuple[str, int]]
Committable: TypeAlias = (
    "Mapping[tuple[str, int], OffsetAndMetadata | int] | ConsumerRecord[Any, Any] | ConsumerRecords[Any, Any]"
)


def topic_names(topics: Iterable[str] | str | None) -> list[str]:
    """The topics to subscribe to; a single name counts as a list of one."""
    if topics is not None and not isinstance(topics, Iterable):
        raise TypeError(f"subscribe takes a list of topic names, not {topics!r}")
    names = [topics] if isinstance(topics, str) else list(topics) if topics is not None else []
    if any(not isinstance(name, str) or not name.strip() for name in names):
        raise ValueError(f"topic names must be text that is not blank, not {names!r}")
    return names


def check_pattern(pattern: str | re.Pattern[str] | SubscriptionPattern) -> None:
    """Refuse a pattern that could match no topic. Raises ValueError. What a broker matches, only a broker can check."""
    if not (pattern if isinstance(pattern, str) else pattern.pattern):
        raise ValueError("the pattern is empty; it has to match whole topic names")
    if isinstance(pattern, SubscriptionPattern):
        return
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


def partitions(given: Partitions, call: str) -> list[TopicPartition]:
    """The partitions meant. Raises TypeError for anything but (topic, partition) pairs, ValueError for blank names."""
    some = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else None
    if some is None or not all(map(_is_pair, some)):
        shown = given if some is None or isinstance(given, tuple) else some
        hint = f"; one pair goes in a list, too: [{given!r}]" if _is_pair(given) else ""
        raise TypeError(f"{call} takes a list of (topic, partition) pairs such as [('orders', 0)], not {shown!r}{hint}")
    return [partition(tp, call) for tp in some]


def partition(given: tuple[str, int], call: str) -> TopicPartition:
    """The partition meant. Raises TypeError for anything but a (topic, partition) pair, ValueError for what is none."""
    if not _is_pair(given):
        raise TypeError(f"{call} takes a (topic, partition) pair such as ('orders', 0), not {given!r}")
    topic, index = given
    if not isinstance(topic, str) or not topic.strip():
        raise ValueError(f"topic names must be text that is not blank, not {topic!r}")
    if index < 0:
        raise ValueError(f"a partition is 0 or more, not {index} (of {topic})")
    return TopicPartition(topic, index)


def by_partition(given: Mapping[tuple[str, int], T], call: str, what: str) -> dict[TopicPartition, T]:
    """A mapping by partition. Raises TypeError, saying that its values are `what`."""
    if not isinstance(given, Mapping) or not all(map(_is_pair, given)):
        raise TypeError(f"{call} takes a dict from (topic, partition) pairs to {what}, not {given!r}")
    return {partition(tp, call): value for tp, value in given.items()}


def whole_number(given: int, what: str) -> int:
    """The number, which is 0 or more. Raises TypeError and ValueError."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{what} must be a whole number, not {given!r}")
    if given < 0:
        raise ValueError(f"{what} must be 0 or more, not {given}")
    return given


def listener_of(
    listener: RebalanceListener | None, *functions: Callable[[list[TopicPartition]], Any] | None
) -> RebalanceListener | None:
    """The listener that is given, or one of these functions: on_assigned, on_revoked, on_lost. Raises TypeError."""
    if listener is not None and not isinstance(listener, RebalanceListener):
        raise TypeError(
            f"a listener is a RebalanceListener, not {listener!r}; functions are given as on_assigned=..., "
            "a regular expression as pattern=..."
        )
    if listener is not None and not any(_overrides(listener, name) for name in LISTENER_METHODS):
        raise TypeError(f"{type(listener).__name__} has none of the methods {', '.join(LISTENER_METHODS)}")
    for name, function in zip(("on_assigned", "on_revoked", "on_lost"), functions, strict=True):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of a list of partitions, not {function!r}")
    return listener or (CallbackListener(*functions) if any(functions) else None)


def _overrides(listener: RebalanceListener, name: str) -> bool:
    return getattr(type(listener), name) is not getattr(RebalanceListener, name)


def records(given: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
    """What a poll returned. Raises TypeError."""
    if not isinstance(given, ConsumerRecords):
        raise TypeError(f"hold takes what a poll returned, not {given!r}")
    return given


def record(given: ConsumerRecord[Any, Any]) -> ConsumerRecord[Any, Any]:
    """A record of a poll or a loop. Raises TypeError."""
    if not isinstance(given, ConsumerRecord):
        raise TypeError(f"done takes a record, not {given!r}")
    return given


def _is_pair(one: object) -> bool:
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], int) and not isinstance(one[1], bool)


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
        tp: at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
        for tp, at in by_partition(given, "commit", "offsets").items()
    }
    for tp, at in wanted.items():
        if isinstance(at.offset, bool) or not isinstance(at.offset, int):
            raise TypeError(f"the offset to commit for {tp} must be a whole number, not {at.offset!r}")
        if at.offset < 0:
            raise ValueError(f"cannot commit offset {at.offset} for {tp}; offsets are 0 or more")
    return wanted
