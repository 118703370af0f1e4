"""confluent-kafka (librdkafka) in groups: assignors, cooperative rebalances, static members, lost members."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError

from partita import Broker
from support.clients.broker import broker, fresh, until
from support.clients.confluent import WITHIN_S, consumer, count_rebalances, create, members, shared

__all__ = ["broker"]
pytestmark = pytest.mark.client


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_each_assignor_shares_the_partitions(broker: Broker, assignor: str) -> None:
    topic = create(broker, fresh("assign"))
    with members(broker, topic, 3, lambda _: {"partition.assignment.strategy": assignor}) as (first, second, third):
        kept = {p.partition for p in first.assignment()} | {p.partition for p in second.assignment()}
        third.close()
        until(lambda: shared([first, second]), "two share the partitions")
        if assignor == "cooperative-sticky":
            assert kept <= {p.partition for member in (first, second) for p in member.assignment()}


def test_a_cooperative_member_keeps_reading_while_another_joins(broker: Broker) -> None:
    topic, group = create(broker, fresh("cooperative")), fresh("group")
    revoked: list[int] = []
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    with consumer(broker, group, **settings) as first, consumer(broker, group, **settings) as second:
        first.subscribe([topic], on_revoke=lambda c, parts: revoked.extend(p.partition for p in parts))
        until(lambda: shared([first]), "one owns all")
        second.subscribe([topic])
        until(lambda: shared([first, second]), "two share the partitions")
        assert len(revoked) == 1, "only what moves is revoked"


def test_a_static_member_comes_back_without_a_rebalance(broker: Broker) -> None:
    topic, group = create(broker, fresh("static")), fresh("group")
    with consumer(broker, group, group_instance_id="one") as staying:
        leaving = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.instance.id": "two", "log_level": 0}
        )
        for member in (staying, leaving):
            member.subscribe([topic])
        until(lambda: shared([staying, leaving]), "two share the partitions")
        held, before = leaving.assignment(), broker.control.members(group)
        leaving.close()
        assert broker.control.members(group) == before, "a static member that closes stays in the group"
        rebalances = count_rebalances(broker, group)
        with consumer(broker, group, group_instance_id="two") as returned:
            returned.subscribe([topic])
            until(lambda: shared([staying, returned]), "it is back")
            assert returned.assignment() == held
        assert count_rebalances(broker, group) == rebalances


def test_a_fenced_static_member_is_told(broker: Broker) -> None:
    topic, group = create(broker, fresh("fenced")), fresh("group")
    with consumer(broker, group, group_instance_id="one") as first:
        first.subscribe([topic])
        until(lambda: shared([first]), "one owns all")
        broker.control.fence_instance(group, "one")
        (told,) = first.consume(1, WITHIN_S)
        error = told.error()
        assert error is not None
        assert error.code() == KafkaError._FATAL
        assert "Static consumer fenced" in error.str()


def test_an_evicted_member_joins_again(broker: Broker) -> None:
    topic, group = create(broker, fresh("evicted")), fresh("group")
    lost: list[int] = []
    with consumer(broker, group) as member:
        member.subscribe([topic], on_lost=lambda c, parts: lost.extend(p.partition for p in parts))
        until(lambda: shared([member]), "one owns all")
        (before,) = broker.control.members(group)
        broker.control.evict_member(group, before)
        until(lambda: member.poll(0.05) is None and len(lost) == 3, "its partitions are lost")
        until(lambda: shared([member]), "it owns all again")
        assert before not in broker.control.members(group)
