"""The error codes in a response, of the whole and of its parts. (Kafka: AbstractResponse.errorCounts)"""

from __future__ import annotations

import re
import sys
from collections.abc import MutableMapping
from typing import NamedTuple, TypeAlias

from partita.protocol.primitives import Message, Structure

PARTS_MAX = 200
"""How many parts of a response are looked at: one of a thousand partitions shall not pay for being counted."""
Errors: TypeAlias = MutableMapping[tuple[int, int], int]
"""How often each error code was sent, by API key and code; a code that is missing reads as 0."""
_LIST = re.compile(r"list\[(\w+)\]")


class _Plan(NamedTuple):
    """The error codes in a class of structures: its own, and the fields with parts that hold some."""

    has_code: bool
    lists: tuple[str, ...]


_PLANS: dict[type[Structure], _Plan] = {}


def _plan_of(kind: type[Structure]) -> _Plan:
    plan = _PLANS.get(kind)
    if plan is None:
        plan = _PLANS[kind] = _make_plan(kind)
    return plan


def _make_plan(kind: type[Structure]) -> _Plan:
    lists = []
    for name, annotation in kind.__init__.__annotations__.items():
        found = _LIST.match(annotation)
        part = getattr(sys.modules[kind.__module__], found[1], None) if found else None
        if isinstance(part, type) and issubclass(part, Structure):
            below = _plan_of(part)
            if below.has_code or below.lists:
                lists.append(name)
    return _Plan("error_code" in kind.__slots__, tuple(lists))


def count_errors(errors: Errors, api_key: int, response: Message) -> None:
    """Count the codes of a response, NONE included; of a long one, those of its first 200 parts."""
    kind = type(response)
    plan = _PLANS.get(kind) or _plan_of(kind)
    if plan.has_code:
        errors[api_key, response.error_code] += 1  # type: ignore[attr-defined]  # `has_code` says that it is there
    if plan.lists:
        _count_parts(errors, api_key, response, plan, PARTS_MAX)


def _count_parts(errors: Errors, api_key: int, whole: Structure, plan: _Plan, left: int) -> int:
    """Count below `whole`; how many more parts may be looked at."""
    for name in plan.lists:
        for part in getattr(whole, name) or ():
            if left <= 0:
                return 0
            left -= 1
            below = _plan_of(type(part))
            if below.has_code:
                errors[api_key, part.error_code] += 1
            if below.lists:
                left = _count_parts(errors, api_key, part, below, left)
    return left
