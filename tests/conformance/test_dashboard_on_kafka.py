"""What the dashboard says of Apache Kafka is what the admin client says of it, for groups of both protocols."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from partita import Admin, Consumer, Producer
from partita.dashboard.models.accounts import Accounts
from partita.explain import Account
from partita.observe.followers import Followers
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller
from support.clients.broker import until
from support.kafka.node import KafkaNode

GROUPS = {"watched-classic": "classic", "watched-consumer": "consumer"}


def balanced(consumers: Sequence[Consumer[Any, Any]], each: int) -> None:
    """Poll all until everyone holds so many partitions."""
    while any(len(consumer.assignment()) != each for consumer in consumers):
        for consumer in consumers:
            consumer.poll(0.05)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_kafka_is_told_as_it_is(kafka: KafkaNode, group: str) -> None:
    topic = f"topic-of-{group}"
    options = {"bootstrap.servers": kafka.bootstrap}
    with Admin(options) as admin, Producer(options) as producer:
        admin.create_topic(topic, 4)
        for number in range(40):
            producer.send(topic, b"x", partition=number % 4)
        producer.flush()
        member = {"group.id": group, "group.protocol": GROUPS[group], "auto.offset.reset": "earliest", **options}
        member["enable.auto.commit"] = "false"  # nothing is to change between the looks
        with Consumer({"client.id": "first", **member}) as first:
            first.subscribe([topic])
            balanced([first], 4)
            with Consumer({"client.id": "second", **member}) as second:
                second.subscribe([topic])
                balanced([first, second], 2)
                first.commit()
                second.commit()
            balanced([first], 4)
            # The member holds its partitions before its next heartbeat says so.
            until(lambda: admin.describe_group(group).state == "Stable", "the coordinator has heard so")
            seen, told = asyncio.run(looked(kafka.bootstrap, group))
            described, lag = admin.describe_group(group), admin.group_lag(group)
    now = seen.groups[group]
    assert (now.state, now.type, now.protocol, now.epoch) == (
        described.state, GROUPS[group], described.protocol, described.epoch,
    )  # fmt: skip
    assert [m.client_id for m in now.members] == ["first"]
    assert {(c.topic, c.partition): c.offset for c in now.commits} == {
        (row.topic, row.partition): row.committed_offset for row in lag if row.committed_offset is not None
    }
    assert seen.standings[group].lag == sum(row.lag or 0 for row in lag)
    assert (now.error, seen.trouble, seen.transactions_error) == (None, None, None)
    headlines = [account.headline for account in told]
    assert headlines[-2] == "second joined."
    assert headlines[-1].startswith("second ")


async def looked(bootstrap: str, group: str) -> tuple[Observed, tuple[Account, ...]]:
    """One look, and what the log tells of the group."""
    observed = Observed(bootstrap)
    options = {"bootstrap.servers": bootstrap}
    poller = ClusterPoller(options, observed)
    followers = Followers(options, poller)
    await poller.look()
    await followers.read_once()
    await poller.close()
    return observed, Accounts(observed, followers.facts_of).of(group)[1]
