"""News of brokers: each fact once, by the clock that is given. (findings D9; `error_cb` and `throttle_cb` of others)"""

from __future__ import annotations

from typing import Any

import pytest

from partita.net.broker_news import Broker, BrokerNews, role_in
from partita.protocol.metadata_view import MetadataView, PartitionView, TopicView

NODE = Broker(1, 1, "no-such-host.invalid:9092")
WHY = "cannot connect to no-such-host.invalid:9092: the name is not known"
OVERDUE_MS = 2_000


@pytest.fixture
def heard() -> list[tuple[str, str, dict[str, Any]]]:
    return []


@pytest.fixture
def news(heard: list[tuple[str, str, dict[str, Any]]]) -> BrokerNews:
    def hear(kind: str, text: str, fields: dict[str, Any]) -> None:
        heard.append((kind, text, fields))

    return BrokerNews(
        heard=hear,
        role_of=lambda node_id: "orders-0's leader",
        found_by="127.0.0.1:9092",
        bootstrap=("127.0.0.1:9092",),
    )


Told = list[tuple[str, str, dict[str, Any]]]


def needed_in_vain(news: BrokerNews, since_ms: int, until_ms: int, *, others_answer: bool = True) -> None:
    """One attempt each half second, as a client with back-off makes them."""
    for now_ms in range(since_ms, until_ms + 1, 500):
        news.wanted(NODE, now_ms, others_answer=others_answer)
        if others_answer:
            news.missed(NODE, WHY, now_ms)


def test_a_needed_broker_that_is_not_reached_is_reported_once(news: BrokerNews, heard: Told) -> None:
    needed_in_vain(news, 0, OVERDUE_MS - 500)
    assert heard == []
    needed_in_vain(news, OVERDUE_MS, 60_000)
    ((kind, text, fields),) = heard
    assert kind == "broker_unreachable"
    assert text == (
        "orders-0's leader, node 1 at no-such-host.invalid:9092 as advertised by the broker at 127.0.0.1:9092, cannot "
        "be reached: the name is not known; check advertised.listeners"
    )
    assert fields["advertised_by"] == "127.0.0.1:9092"
    assert fields["bootstrap"] == ["127.0.0.1:9092"]


def test_it_is_reported_again_only_after_it_came_back_and_went_away(news: BrokerNews, heard: Told) -> None:
    needed_in_vain(news, 0, 10_000)
    news.reached(NODE, 12_000)
    assert heard[1][:2] == (
        "broker_reachable",
        "node 1 at no-such-host.invalid:9092 is connected, after 12.0 s without it",
    )
    news.reached(NODE, 13_000)
    needed_in_vain(news, 20_000, 30_000)
    assert [kind for kind, _, _ in heard] == ["broker_unreachable", "broker_reachable", "broker_unreachable"]


def test_a_broker_needed_now_and_then_is_not_reported_for_one_failure(news: BrokerNews, heard: Told) -> None:
    for now_ms in (0, 100_000, 200_000):
        needed_in_vain(news, now_ms, now_ms)
    assert heard == []


def test_the_time_counts_while_others_answer(news: BrokerNews, heard: Told) -> None:
    """An outage of all brokers is reported as such; the first one that is back is not blamed for the others."""
    needed_in_vain(news, 0, 60_000, others_answer=False)
    needed_in_vain(news, 60_500, 61_500)
    assert heard == []
    needed_in_vain(news, 62_000, 62_500)
    assert len(heard) == 1


def test_the_users_own_address_is_not_blamed_on_the_broker(news: BrokerNews, heard: Told) -> None:
    own = Broker(1, 1, "127.0.0.1:9092")
    news.role_of = lambda node_id: ""
    news.wanted(own, 0, others_answer=True)
    news.missed(own, "127.0.0.1:9092 does not accept the connection", OVERDUE_MS)
    assert heard[0][1] == "node 1 at 127.0.0.1:9092, cannot be reached: it does not accept the connection"


def test_a_broker_found_by_another_is_told_with_the_bootstrap_servers(news: BrokerNews, heard: Told) -> None:
    news.found_by = "b:9093"
    needed_in_vain(news, 0, OVERDUE_MS)
    assert "as advertised by the broker at b:9093 (bootstrap_servers: 127.0.0.1:9092), cannot be" in heard[0][1]


def test_a_broker_that_goes_and_comes_is_reported_once_each(news: BrokerNews, heard: Told) -> None:
    for now_ms in (0, 300):
        news.lost(NODE, "closed", now_ms)
    news.reached(NODE, 1_500)
    news.reached(NODE, 1_600)
    assert [(kind, fields.get("without_ms")) for kind, _, fields in heard] == [
        ("broker_gone", None),
        ("broker_back", 1_500),
    ]


def test_throttling_is_reported_once_a_second_at_most(news: BrokerNews, heard: Told) -> None:
    for now_ms in (0, 500, 999, 1_000):
        news.throttled(NODE, 70, now_ms)
    assert [(kind, fields["throttle_ms"]) for kind, _, fields in heard] == [("throttled", 70), ("throttled", 70)]
    assert "asks to be sent nothing for 70 ms: a quota is used up" in heard[0][1]


def test_the_role_of_a_node_is_the_first_that_is_known() -> None:
    view = MetadataView()
    view.topics["orders"] = TopicView("orders", partitions=(PartitionView("orders", 0, leader=1),))
    view.controller_id = 2
    assert role_in(view, 1, ["group 'g'"]) == "the coordinator of group 'g'"
    assert role_in(view, 1, []) == "orders-0's leader"
    assert role_in(view, 2, []) == "the controller"
    assert role_in(view, 3, []) == ""
