"""The fault rules of `kcl fake control`, read as calls of our own verbs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partita.broker.control.kcl import Call, calls_of
from partita.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("rule", "calls"),
    [
        ({"error": "UNKNOWN_TOPIC_ID"}, [Call("*", ErrorCode.UNKNOWN_TOPIC_ID, 1, {})]),
        ({}, [Call("*", ErrorCode.UNKNOWN_SERVER_ERROR, 1, {})]),
        (
            {"keys": ["fetch"], "nodes": [1], "topic": "foo", "error": "not_leader_for_partition", "count": -1},
            [Call("Fetch", ErrorCode.NOT_LEADER_OR_FOLLOWER, None, {"topic": "foo", "node": 1})],
        ),
        (
            {"keys": ["0", "fetch"], "topic": "foo", "partitions": [0, 2], "count": -1, "error": "6"},
            [
                Call(api, ErrorCode.NOT_LEADER_OR_FOLLOWER, None, {"topic": "foo", "partition": partition})
                for api in ("Produce", "Fetch")
                for partition in (0, 2)
            ],
        ),
        (
            {"keys": ["OffsetCommit"], "group": "g", "observe": True, "topic_id": "", "top_level": False},
            [Call("OffsetCommit", None, 1, {"group_id": "g"})],
        ),
    ],
)
def test_a_rule_is_a_fault_for_each_of_its_keys_nodes_and_partitions(rule: dict[str, Any], calls: list[Call]) -> None:
    assert calls_of(rule) == calls
    assert calls_of(json.dumps(rule)) == calls
    assert calls_of([rule, rule]) == calls_of(json.dumps([rule, rule])) == calls * 2


def test_pairs_are_a_rule_too() -> None:
    assert calls_of("topic=foo, error=NOT_LEADER_OR_FOLLOWER,count=3,keys=produce") == [
        Call("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, 3, {"topic": "foo"})
    ]
    assert calls_of("keys=fetch,keys=produce,observe=true") == [
        Call("Fetch", None, 1, {}),
        Call("Produce", None, 1, {}),
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"topik": "foo"}, "no field 'topik'; did you mean 'topic'?"),
        ({"txn_id": "t"}, "txn_id is not read here; faults are not limited by transactional ids"),
        ({"top_level": True}, "top_level is not read here; a fault without a topic answers a whole request"),
        ({"count": -2}, "count must be at least 1, or -1 until it is cleared, not -2"),
        ({"observe": True, "error": "6"}, "observe and error exclude each other"),
        ({"keys": ["fetch", "produce"], "count": 2}, "kcl counts over all keys, nodes and partitions of a rule"),
        ({"keys": "fetch"}, "keys expects a list, came 'fetch'"),
        ({"nodes": ["one"]}, "nodes expects whole numbers, came 'one'"),
        ({"count": 1.5}, "count expects whole numbers, came 1.5"),
        ({"keys": ["fetsch"]}, "no API 'fetsch'; served are Produce, Fetch"),
        ({"error": "NOT_LEADER"}, "no error 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER?"),
        ({"partitions": [1]}, "a partition needs its topic"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_by_its_number(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match="rule 2: ") as caught:
        calls_of([{}, rule])
    assert said in str(caught.value)


def test_what_is_neither_json_nor_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected NAME=VALUE,\.\.\. or JSON, came 'everything'"):
        calls_of("everything")
    with pytest.raises(ValueError, match="expected rules as an object, a list of them, or text, came 3"):
        calls_of(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rule 1: expected an object, came 3"):
        calls_of("[3]")
