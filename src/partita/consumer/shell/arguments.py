"""Checks of the application's arguments: a wrong one is refused with an error that names the expected form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from partita.consumer.listener import ASSIGNED, LOST, REVOKED, AnyListener
from partita.consumer.records import ConsumerRecord, ConsumerRecords
from partita.consumer.subscription import SubscriptionPattern
from partita.offsets.committable import OFFSET_MAX, is_pair, partition
from partita.offsets.topic_partition import TopicPartition

Partitions = Iterable[tuple[str, int]]


def topic_names(topics: Iterable[str] | str | None) -> list[str]:
    """The topics to subscribe to; a single name counts as a list of one."""
    if topics is not None and not isinstance(topics, Iterable):
        raise TypeError(f"subscribe takes a list of topic names, not {topics!r}")
    names = [topics] if isinstance(topics, str) else list(topics) if topics is not None else []
    if any(not isinstance(name, str) or not name.strip() for name in names):
        raise ValueError(f"topic names must be text that is not blank, not {names!r}")
    return names


def check_pattern(pattern: str | re.Pattern[str] | SubscriptionPattern) -> None:
    """Refuse a pattern that could match no topic. Raises ValueError. The broker checks its own patterns."""
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
    if some is None or not all(map(is_pair, some)):
        shown = given if some is None or isinstance(given, tuple) else some
        hint = f"; one pair goes in a list, too: [{given!r}]" if is_pair(given) else ""
        raise TypeError(f"{call} takes a list of (topic, partition) pairs such as [('orders', 0)], not {shown!r}{hint}")
    return [partition(tp, call) for tp in some]


def whole_number(given: int, what: str) -> int:
    """The number, which is 0 or more. Raises TypeError and ValueError."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{what} must be a whole number, not {given!r}")
    if given < 0:
        raise ValueError(f"{what} must be 0 or more, not {given}")
    if given > OFFSET_MAX:
        raise ValueError(f"{what} must be at most {OFFSET_MAX}, not {given}")
    return given


def listener_of(listener: object, *functions: Callable[[list[TopicPartition]], Any] | None) -> AnyListener | None:
    """The listener that is given, or one of these functions: on_assigned, on_revoked, on_lost. Raises TypeError."""
    for name, function in zip(("on_assigned", "on_revoked", "on_lost"), functions, strict=True):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of a list of partitions, not {function!r}")
    if listener is None:
        assigned, revoked, lost = functions
        given = SimpleNamespace(on_assigned=assigned, on_revoked=revoked, on_lost=lost)
        return AnyListener(given) if any(functions) else None
    if isinstance(listener, type):
        raise TypeError(f"a listener is an object, not a class; give {listener.__name__}()")
    found = AnyListener(listener)
    if not found.has_methods:
        methods = ", ".join((ASSIGNED[0], REVOKED[0], LOST[0]))
        raise TypeError(
            f"a listener is an object with {methods}, and {listener!r} has none of them; functions are given "
            "as on_assigned=..., a regular expression as pattern=..."
        )
    return found


def records(given: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
    """Return the result of a poll. Raises TypeError for anything else."""
    if not isinstance(given, ConsumerRecords):
        raise TypeError(f"hold takes what a poll returned, not {given!r}")
    return given


def record(given: ConsumerRecord[Any, Any]) -> ConsumerRecord[Any, Any]:
    """A record of a poll or a loop. Raises TypeError."""
    if not isinstance(given, ConsumerRecord):
        raise TypeError(f"done takes a record, not {given!r}")
    return given
