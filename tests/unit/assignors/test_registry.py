from collections.abc import Mapping
from typing import Any

import pytest

from partita.assignors.cooperative_sticky import CooperativeStickyAssignor
from partita.assignors.interface import Assignment, Assignor, RebalanceProtocol, Subscription, TopicMetadata
from partita.assignors.registry import create_assignor, rebalance_protocol
from partita.assignors.sticky import StickyAssignor


class EverythingToTheFirst(Assignor):
    name = "first"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        first = min(subscriptions)
        everything = [(t, p) for t in subscriptions[first].topics for p in range(metadata.partition_counts[t])]
        return {member: everything if member == first else [] for member in subscriptions}


@pytest.mark.parametrize(
    "strategy",
    [
        "cooperative-sticky",
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        CooperativeStickyAssignor,
        CooperativeStickyAssignor(),
    ],
)
def test_a_strategy_may_be_given_in_four_ways(strategy: Any) -> None:
    assert isinstance(create_assignor(strategy), CooperativeStickyAssignor)


def test_a_user_may_write_an_assignor() -> None:
    assignor = create_assignor(EverythingToTheFirst)
    assert assignor.subscription_user_data(["t"]) is None
    got = assignor.assign(TopicMetadata({"t": 2}), {"a": Subscription(["t"]), "b": Subscription(["t"])})
    assert got == {"a": [("t", 0), ("t", 1)], "b": []}


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("stiky", "did you mean 'sticky'"),
        ("RangeAssigner", "did you mean 'RangeAssignor'"),
        ("zzz", "built in are range, roundrobin, sticky, cooperative-sticky"),
        (7, "must be a name, a subclass of Assignor"),
    ],
)
def test_an_unknown_strategy_is_refused(strategy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_assignor(strategy)


def test_the_highest_common_rebalance_protocol_is_chosen() -> None:
    assert rebalance_protocol([CooperativeStickyAssignor()]) is RebalanceProtocol.COOPERATIVE
    assert rebalance_protocol([CooperativeStickyAssignor(), StickyAssignor()]) is RebalanceProtocol.EAGER
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        rebalance_protocol([])
