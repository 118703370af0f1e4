"""What a request names again and again is answered once: a few kilobytes must not ask for gigabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from partita.protocol.messages.describe_transactions import DescribeTransactionsRequest
from partita.protocol.messages.list_transactions import ListTransactionsRequest
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from partita.protocol.primitives import Message
from support.broker.transactions import TransactionPlane, transaction_plane

TIMES = 300


@pytest.fixture
def plane() -> Iterator[TransactionPlane]:
    with transaction_plane() as made:
        partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in range(2)]
        topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
        made.ask("offset_commit", 8, OffsetCommitRequest(group_id="g", topics=topics))
        yield made


def group_of(topics: list[OffsetFetchRequestTopics] | None, member_id: str | None = None) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(group_id="g", member_id=member_id, topics=topics)


def topic(*indexes: int) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(name="t", partition_indexes=list(indexes))


def groups(answer: Any) -> list[str]:
    return [each.group_id for each in answer.groups]


def offsets(answer: Any) -> list[list[int]]:
    found = answer.groups or [answer]
    return [[p.partition_index for each in one.topics for p in each.partitions] for one in found]


def producers(answer: Any) -> list[list[int]]:
    return [[p.partition_index for p in each.partitions] for each in answer.topics]


PRODUCERS = [DescribeProducersTopic(name="t", partition_indexes=[0, 1] * TIMES)]
OLD_TOPICS = [OffsetFetchRequestTopic(name="t", partition_indexes=[1, 0, 1])]


@pytest.mark.parametrize(
    ("handler", "version", "request_", "told", "expected"),
    [
        ("describe_groups", 5, DescribeGroupsRequest(groups=["g", "h"] * TIMES), groups, ["g", "h"]),
        ("consumer_group_describe", 1, ConsumerGroupDescribeRequest(group_ids=["g"] * TIMES), groups, ["g"]),
        (
            "describe_transactions", 0, DescribeTransactionsRequest(transactional_ids=["a", "b"] * TIMES),
            lambda answer: [each.transactional_id for each in answer.transaction_states], ["a", "b"],
        ),
        ("describe_producers", 0, DescribeProducersRequest(topics=PRODUCERS * 2), producers, [[0, 1]]),
        ("offset_fetch", 8, OffsetFetchRequest(groups=[group_of(None)] * TIMES), offsets, [[0, 1]]),
        ("offset_fetch", 8, OffsetFetchRequest(groups=[group_of([topic(1, 0)])] * TIMES), offsets, [[1, 0]]),
        ("offset_fetch", 8, OffsetFetchRequest(groups=[group_of([topic(1), topic(1, 0)])]), offsets, [[1, 0]]),
        (
            "offset_fetch", 9, OffsetFetchRequest(groups=[group_of([topic(1)]), group_of(None)]),
            offsets, [[1], [0, 1]],
        ),
        (
            "offset_fetch", 9, OffsetFetchRequest(groups=[group_of(None), group_of(None, "other")]),
            offsets, [[0, 1], [0, 1]],
        ),
        ("offset_fetch", 5, OffsetFetchRequest(group_id="g", topics=OLD_TOPICS * TIMES), offsets, [[1, 0]]),
    ],
)  # fmt: skip
def test_each_is_answered_once(
    plane: TransactionPlane,
    handler: str,
    version: int,
    request_: Message,
    told: Callable[[Any], list[Any]],
    expected: list[Any],
) -> None:
    assert told(plane.ask(handler, version, request_)) == expected


def test_others_have_their_turn_while_many_transactional_ids_are_listed(
    plane: TransactionPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        plane.start(f"p-{number}")
    monkeypatch.setattr("partita.broker.api.context.SLICE_SECONDS", 0.0)
    turns: list[Callable[[], None]] = []
    wait = plane.services.turns.wait

    def counted(go_on: Callable[[], None]) -> None:
        turns.append(go_on)
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "wait", counted)
    found = plane.ask("list_transactions", 2, ListTransactionsRequest(transactional_id_pattern="p-[1-3]"))
    assert sorted(each.transactional_id for each in found.transaction_states) == ["p-1", "p-2", "p-3"]
    assert len(turns) >= 2


def test_a_pattern_that_takes_for_ever_elsewhere_is_answered(plane: TransactionPlane) -> None:
    """An alternation of equals, repeated, took a day for 40 characters: one request stopped the broker."""
    plane.start("a" * 100)
    found = plane.ask("list_transactions", 2, ListTransactionsRequest(transactional_id_pattern="(a|a)*b"))
    assert (found.error_code, found.transaction_states) == (ErrorCode.NONE, [])
