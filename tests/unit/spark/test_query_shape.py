"""Issue 13, item 1: what a query in a group must not be."""

from __future__ import annotations

import re

import pytest

from partita.spark.query_shape import QueryShape, refusals
from partita.spark.settings.options import SourceOptions, parse_source


def source(**options: str) -> SourceOptions:
    return parse_source({"kafka.bootstrap.servers": "h:1", "subscribe": "t"} | options)


COMMIT = source(group="g", groupMode="commit")
MEMBER = source(group="g", groupMode="member", queryName="one")
OTHER_MEMBER = source(group="g", groupMode="member", queryName="two")
FOLLOWER = source(group="g", groupMode="commit", offsetAuthority="group")
LONER = source()
LIMITED = source(maxOffsetsPerTrigger="5")


@pytest.mark.parametrize(
    ("query", "others", "said"),
    [
        (QueryShape((MEMBER,), ("Aggregate",)), [], r"does not go with state \(Aggregate\)"),
        (QueryShape((MEMBER,), is_async=True), [], "asynchronous progress tracking does not go with groupMode=member"),
        (QueryShape((LIMITED,), ends_early=True), [], "maxOffsetsPerTrigger with Trigger.AvailableNow needs Spark 4.2"),
        (QueryShape((FOLLOWER,), is_async=True), [], "or offsetAuthority=group"),
        (QueryShape((MEMBER, OTHER_MEMBER)), [], "two sources of one query are in group g"),
        (QueryShape((COMMIT,)), [QueryShape((COMMIT,))], "another query of this session runs in group g"),
        (QueryShape((MEMBER,)), [QueryShape((MEMBER,))], "each a queryName of its own"),
    ],
)
def test_a_query_that_does_not_suit_its_group_is_refused(
    query: QueryShape, others: list[QueryShape], said: str
) -> None:
    (reason,) = refusals(query, others)
    assert re.search(said, reason)


@pytest.mark.parametrize(
    ("query", "others"),
    [
        (QueryShape((COMMIT,), ("Aggregate", "Join"), is_async=True), []),
        (QueryShape((LONER, LONER), ("Join",)), [QueryShape((LONER,))]),
        (QueryShape((MEMBER, LONER)), [QueryShape((OTHER_MEMBER,))]),
        (QueryShape((COMMIT,)), [QueryShape((source(group="h", groupMode="commit"),))]),
    ],
)
def test_a_query_that_suits_its_group_may_run(query: QueryShape, others: list[QueryShape]) -> None:
    assert refusals(query, others) == ()
