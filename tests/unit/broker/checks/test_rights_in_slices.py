"""F3: the rights on very many things are looked at in slices, and others have their turn meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from partita import Broker
from partita.broker import beside
from partita.broker.api import context
from partita.broker.requests import dispatch
from partita.broker.wire import turns
from partita.broker.wire.turns import Turns
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.security.rights.acls import Operation, ResourceType
from partita.security.rights.authorizer import Authorizer
from support.broker.askers import acl, allow, raw_as
from support.broker.raw import Raw

NAMES = [f"thing-{number}" for number in range(40)]
ALLOWED = NAMES[7]
REFUSED = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED}


@pytest.fixture
def alice(broker: Broker) -> Iterator[Raw]:
    """She may read one of the topics, and one of the groups."""
    allow(broker, *(acl("alice", Operation.READ, ALLOWED, kind) for kind in (ResourceType.TOPIC, ResourceType.GROUP)))
    broker.run(lambda: [broker.cluster.create_topic(name, 1, 1) for name in NAMES])
    with raw_as(broker, "alice") as raw:
        yield raw


def fetch(alice: Raw) -> list[tuple[str, int]]:
    topics = [FetchTopic(topic=name, partitions=[FetchPartition(partition_max_bytes=1)]) for name in NAMES]
    answer = alice.ask(FetchRequest(max_wait_ms=0, max_bytes=1, topics=topics), 11)
    return [(topic.topic, topic.partitions[0].error_code) for topic in answer.responses]


def list_offsets(alice: Raw) -> list[tuple[str, int]]:
    topics = [ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=-1)]) for name in NAMES]
    answer = alice.ask(ListOffsetsRequest(topics=topics), 7)
    return [(topic.name, topic.partitions[0].error_code) for topic in answer.topics]


def metadata(alice: Raw) -> list[tuple[str, int]]:
    topics = [MetadataRequestTopic(name=name) for name in NAMES]
    answer = alice.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)
    return [(topic.name, topic.error_code) for topic in answer.topics]


def metadata_of_all(alice: Raw) -> list[tuple[str, int]]:
    shown = [(topic.name, topic.error_code) for topic in alice.ask(MetadataRequest(topics=None), 9).topics]
    assert shown == [(ALLOWED, 0)]
    return [(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in NAMES if name not in dict(shown)]


def describe_groups(alice: Raw) -> list[tuple[str, int]]:
    answer = alice.ask(DescribeGroupsRequest(groups=NAMES), 5)
    return [(group.group_id, group.error_code) for group in answer.groups]


@pytest.mark.parametrize("ask", [fetch, list_offsets, metadata, metadata_of_all, describe_groups])
def test_no_turn_decides_about_more_than_one_thing(broker: Broker, alice: Raw, monkeypatch: Any, ask: Any) -> None:
    """24,000 topics of a fetch, of which none might be read, held the loop for 110 ms."""
    for module in (context, beside, turns):
        monkeypatch.setattr(module, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(dispatch, "QUICK_ELEMENTS", 10)
    order: list[str] = []
    decide, serve = Authorizer.decide, Turns._serve_round

    def decided(self: Authorizer, *args: Any) -> Any:
        order.append("d" if str(args[-1]).startswith("thing-") else "")
        return decide(self, *args)

    def served(self: Turns) -> None:
        order.append("|")
        serve(self)

    monkeypatch.setattr(Authorizer, "decide", decided)
    monkeypatch.setattr(Turns, "_serve_round", served)
    assert {name for name, code in ask(alice) if code in REFUSED} == set(NAMES) - {ALLOWED}
    runs = "".join(order).split("|")
    assert sum(map(len, runs)) >= len(NAMES)
    assert max(map(len, runs)) == 1
