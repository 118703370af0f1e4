"""The fault rules of `kcl fake control` (franz-go's kfake), read as calls of `Control.fail` and `Control.observe`.

A rule is an object of kcl's fields: keys, nodes, topic, partitions, group, error, count, observe. The others, by which
faults cannot be limited here, are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from partita.broker.api.apis import SERVED
from partita.broker.control.fault import Only, match_of
from partita.options import nearest
from partita.protocol.error_codes import ErrorCode

Given = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
LISTS = {"keys": str, "nodes": int, "partitions": int}
TEXTS = ("topic", "group", "error")
NOT_HERE = {
    "topic_id": "name the topic",
    "txn_id": "faults are not limited by transactional ids",
    "resource": "faults are not limited by resources",
    "top_level": "a fault without a topic answers a whole request",
}
_UNTIL_REMOVED = -1
_RENAMED = {"NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER"}


class Call(NamedTuple):
    """One fault: `error` is None for a rule that only observes; `times` None until it is cleared."""

    api: str
    error: int | None
    times: int | None
    only: Only


def calls_of(given: Given) -> list[Call]:
    """The faults that the rules mean. Raises ValueError with the rule's number and what is wrong with it."""
    found: list[Call] = []
    for number, rule in enumerate(_rules(given), 1):
        try:
            if not isinstance(rule, Mapping):
                raise ValueError(f"expected an object, came {rule!r}")
            found += _calls(rule)
        except ValueError as error:
            raise ValueError(f"rule {number}: {error}") from None
    return found


def _rules(given: Given) -> Sequence[Mapping[str, Any]]:
    """Rules as JSON, as "topic=orders,error=UNKNOWN_TOPIC_ID,count=3", or as objects."""
    rules: Any = given
    if isinstance(given, str):
        rules = json.loads(given) if given.lstrip().startswith(("{", "[")) else _pairs(given)
    if isinstance(rules, Mapping):
        return [rules]
    if not isinstance(rules, list | tuple):
        raise ValueError(f"expected rules as an object, a list of them, or text, came {rules!r}")
    return rules


def _pairs(text: str) -> dict[str, Any]:
    rule: dict[str, Any] = {}
    for pair in text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise ValueError(f"expected NAME=VALUE,... or JSON, came {pair!r}")
        if name in LISTS:
            rule.setdefault(name, []).append(value)
        else:
            rule[name] = value == "true" if name in ("observe", "top_level") else value
    return rule


def _calls(rule: Mapping[str, Any]) -> Iterator[Call]:
    known = (*LISTS, *TEXTS, "count", "observe")
    for name in rule:
        if name in NOT_HERE and rule[name]:
            raise ValueError(f"{name} is not read here; {NOT_HERE[name]}")
        if name not in known and name not in NOT_HERE:
            near = nearest(name, known, 0.6)
            raise ValueError(f"no field {name!r}; {f'did you mean {near[0]!r}?' if near else f'fields: {known}'}")
    count = _number("count", rule.get("count") or 1)
    if count < 1 and count != _UNTIL_REMOVED:
        raise ValueError(f"count must be at least 1, or -1 until it is cleared, not {count}")
    if rule.get("observe") and rule.get("error"):
        raise ValueError("observe and error exclude each other")
    chosen = [_list(rule, name) or [None] for name in LISTS]
    every = list(product(*chosen))
    if len(every) > 1 and count != _UNTIL_REMOVED and not rule.get("observe"):
        raise ValueError("kcl counts over all keys, nodes and partitions of a rule: give one of each, or count -1")
    error = None if rule.get("observe") else _code(str(rule.get("error") or "UNKNOWN_SERVER_ERROR"))
    for key, node, partition in every:
        filters = {"group_id": rule.get("group"), "topic": rule.get("topic"), "partition": partition, "node": node}
        only: Any = {name: value for name, value in filters.items() if value not in (None, "")}
        match_of(None, only, ValueError)
        yield Call("*" if key is None else _api(key), error, None if count == _UNTIL_REMOVED else count, only)


def _list(rule: Mapping[str, Any], name: str) -> list[Any]:
    given = rule.get(name) or []
    if not isinstance(given, list | tuple):
        raise ValueError(f"{name} expects a list, came {given!r}")
    return [str(each) if LISTS[name] is str else _number(name, each) for each in given]


def _number(name: str, given: Any) -> int:
    if not re.fullmatch(r"-?[0-9]+", str(given)):
        raise ValueError(f"{name} expects whole numbers, came {given!r}")
    return int(given)


def _api(key: str) -> str:
    """The name of an API by its name, in any case, or its number."""
    for number, served in SERVED.items():
        if key.lower() in (served.name.lower(), str(number)):
            return served.name
    raise ValueError(f"no API {key!r}; served are {', '.join(served.name for served in SERVED.values())}")


def _code(text: str) -> int:
    """The number of an error by its name, the old ones of franz-go included, or itself."""
    name = _RENAMED.get(text.upper(), text.upper())
    for code in ErrorCode:
        if name in (code.name, str(int(code))):
            return int(code)
    near = nearest(name, ErrorCode.__members__, 0.6)
    raise ValueError(f"no error {text!r}; {f'did you mean {near[0]}?' if near else 'use a name of Kafka'}")
