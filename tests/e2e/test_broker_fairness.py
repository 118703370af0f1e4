"""No client keeps the others waiting: attacks beside a canary, whose request is answered in between.

Each attack arrives in one piece while the broker's loop stands still, the canary's request after it. Then the order in
which requests were begun is looked at; nothing here depends on how fast the machine is. (Faults H6, H25, H26, H34.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Broker
from partita.broker.api import context
from partita.broker.api.served import ELEMENTS_MAX
from partita.broker.handlers.create_topics import PARTITIONS_AT_ONCE, TOPICS_AT_ONCE
from partita.broker.requests import dispatch
from partita.broker.requests.dispatch import QUICK_ELEMENTS, Dispatcher
from partita.broker.wire import turns
from partita.broker.wire.contract import Chunks, ConnectionHandle, Parked
from partita.protocol.framing import encode_response, read_request_header
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from partita.protocol.primitives import Buffer, Message
from partita.records.builder import build_batch
from support.broker.raw import Raw
from support.broker.standstill import stopped

CANARY = "canary"
MANY = 500


@pytest.fixture(params=["uvloop", "asyncio"])
def broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setenv("PARTITA_UVLOOP", "1" if request.param == "uvloop" else "0")
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    with Broker() as running:
        running.run(lambda: running.cluster.create_topic("t", 2, 1))
        yield running


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The client ids of the requests, in the order they were begun."""
    order: list[str] = []
    begin = Dispatcher.dispatch

    def noted(self: Dispatcher, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        order.append(str(read_request_header(frame)[3]))
        return begin(self, connection, frame)

    monkeypatch.setattr(Dispatcher, "dispatch", noted)
    return order


def attack(
    broker: Broker, begun: list[str], send: Callable[[list[Raw]], object], attackers: int = 1
) -> tuple[list[Raw], Raw]:
    """Let `send` attack on so many connections, then the canary ask; both arrive at once."""
    raws = [Raw(broker.port, f"attacker-{number}") for number in range(attackers)]
    canary = Raw(broker.port, CANARY)
    for raw in (*raws, canary):
        raw.ask(ApiVersionsRequest(), 0)
    begun.clear()
    with stopped(broker):
        send(raws)
        canary.send(ApiVersionsRequest(), 0)
    return raws, canary


def test_pipelined_requests_of_one_connection_leave_others_their_turn(broker: Broker, begun: list[str]) -> None:
    """A4, A8: one read holds hundreds of requests; the canary is begun after the first few of each connection."""

    def pipeline(raws: list[Raw]) -> None:
        for raw in raws:
            raw.socket.sendall(b"".join(raw.frame(MetadataRequest(topics=None), 1) for _ in range(300)))

    raws, canary = attack(broker, begun, pipeline, attackers=3)
    canary.recv(18, 0)
    for raw in raws:
        assert [raw.recv(3, 1)[0] for _ in range(300)] == list(range(2, 302)), "all are answered, in order"
    place = begun.index(CANARY)
    assert place <= 12, "it came after a few requests of each of the others"
    attackers = begun[place + 1 : place + 301]
    assert len(set(attackers)) == 3, "the others take turns too"


def test_later_requests_wait_for_one_that_is_worked_on_beside_the_loop(broker: Broker) -> None:
    """Large batches of an idempotent producer and a small one behind them keep their order; so do the answers."""
    counts = [2_000, 1_000, 1]
    batches = [
        build_batch([(0, b"k", b"v" * 100, ())] * count, producer_id=7, producer_epoch=0, base_sequence=first)
        for count, first in zip(counts, (0, 2_000, 3_000), strict=True)
    ]
    broker.run(lambda: broker.cluster.create_topic("keyed", 1, 1, {"cleanup.policy": ("compact",)}))
    with Raw(broker.port) as raw:
        for batch in batches:
            data = [PartitionProduceData(index=0, records=batch)]
            raw.send(
                ProduceRequest(
                    acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="keyed", partition_data=data)]
                ),
                9,
            )
        answers = [raw.recv(0, 9)[1].responses[0].partition_responses[0] for _ in batches]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 2_000), (0, 3_000)]


def many_topics(broker: Broker) -> None:
    broker.run(lambda: [broker.cluster.create_topic(f"many-{number}", 4, 1) for number in range(200)])


WIDE: list[tuple[Message, int]] = [
    (FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{number}" for number in range(MANY)]), 4),
    (DescribeGroupsRequest(groups=[f"g{number}" for number in range(MANY)]), 5),
    (MetadataRequest(topics=None), 12),
    (FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{number}" for number in range(2 * QUICK_ELEMENTS)]), 4),
    (MetadataRequest(topics=[MetadataRequestTopic(name=f"m{number}") for number in range(2 * QUICK_ELEMENTS)]), 12),
    (
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=f"n{n}", num_partitions=1, replication_factor=1) for n in range(2 * TOPICS_AT_ONCE)
            ]
        ),
        5,
    ),
    (
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=f"w{n}", num_partitions=PARTITIONS_AT_ONCE, replication_factor=1) for n in (1, 2)
            ]
        ),
        5,
    ),
    (
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=2, resource_name=f"many-{n}", configuration_keys=None)
                for n in range(MANY)
            ]
        ),
        4,
    ),
    (
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(topic="t", partitions=[OffsetForLeaderPartition(partition=n) for n in range(MANY)])
            ]
        ),
        4,
    ),
    (
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="t",
                    partitions=[DeleteRecordsPartition(partition_index=n, offset=-1) for n in range(MANY)],
                )
            ]
        ),
        2,
    ),
    (
        WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=1,
                    transaction_result=True,
                    topics=[WritableTxnMarkerTopic(name="t", partition_indexes=list(range(MANY)))],
                )
            ]
        ),
        1,
    ),
]


@pytest.mark.parametrize(("request_", "version"), WIDE, ids=lambda value: type(value).__name__)
def test_a_request_for_very_much_is_served_in_slices(
    broker: Broker, begun: list[str], monkeypatch: pytest.MonkeyPatch, request_: Message, version: int
) -> None:
    """A7, A9: the canary, which asks later, has its answer earlier."""
    many_topics(broker)
    with Raw(broker.port) as raw:
        raw.find("g0")
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    replies: list[int] = []
    encode = encode_response

    def noted(api_key: int, *rest: Any) -> Chunks:
        chunks = encode(api_key, *rest)
        replies.append(api_key)
        return chunks

    monkeypatch.setattr(dispatch, "encode_response", noted)
    raws, canary = attack(broker, begun, lambda raws: [raw.send(request_, version) for raw in raws])
    assert canary.recv(18, 0)[1].error_code == 0
    answer = raws[0].recv(request_.API_KEY, version)[1]
    assert getattr(answer, "error_code", 0) == 0
    assert replies[-2:] == [18, request_.API_KEY]


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (FindCoordinatorRequest(key_type=0, coordinator_keys=[""] * (ELEMENTS_MAX + 1)), 4),
        (DescribeGroupsRequest(groups=[""] * (ELEMENTS_MAX + 1)), 5),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")] * (ELEMENTS_MAX + 1)), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_array_longer_than_the_loop_can_serve_closes_the_connection(
    broker: Broker, request_: Message, version: int
) -> None:
    """A7, H6: it is refused before its elements are made."""
    with Raw(broker.port) as raw:
        raw.send(request_, version)
        assert raw.is_closed()


def many_keys(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{number}" for number in range(count)])


def test_a_large_request_keeps_its_place_among_the_others_of_its_connection(broker: Broker) -> None:
    """A7: it is read and answered in slices, and what was sent behind it waits."""
    sizes = [3, 3 * QUICK_ELEMENTS, 5, 2 * QUICK_ELEMENTS, 1]
    with Raw(broker.port) as raw:
        raw.socket.sendall(b"".join(raw.frame(many_keys(size), 4) for size in sizes))
        answers = [raw.recv(10, 4) for _ in sizes]
    assert [(number, len(answer.coordinators)) for number, answer in answers] == list(enumerate(sizes, 1))
    assert [c.key for c in answers[1][1].coordinators] == many_keys(3 * QUICK_ELEMENTS).coordinator_keys


def test_a_large_request_that_is_malformed_at_its_end_closes_the_connection(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """H6, H7: also when it is found out in slices; the others stay."""
    with Raw(broker.port) as raw, Raw(broker.port) as other:
        frame = raw.frame(many_keys(2 * QUICK_ELEMENTS), 4)
        raw.socket.sendall((len(frame) - 4 - 1).to_bytes(4, "big") + frame[4:-2] + b"\x80")
        assert raw.is_closed()
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0
    assert "closed the connection" in caplog.text


def test_what_was_sent_before_the_end_of_a_connection_takes_effect(broker: Broker) -> None:
    """A large Produce with acks=0 is read in slices; its sender is gone before the first one."""
    width = 2 * QUICK_ELEMENTS
    broker.run(lambda: broker.cluster.create_topic("wide", width, 1))
    batch = build_batch([(0, b"k", b"v", ())])
    data = [PartitionProduceData(index=index, records=batch) for index in range(width)]
    with Raw(broker.port) as raw:
        raw.send(ProduceRequest(acks=0, topic_data=[TopicProduceData(name="wide", partition_data=data)]), 9)
    partitions = broker.run(lambda: broker.cluster.catalogue.by_name["wide"].partitions)
    until = time.monotonic() + 30
    while time.monotonic() < until and broker.run(lambda: partitions[-1].is_untouched):
        pass
    assert broker.run(lambda: [p.log.log_end_offset for p in partitions]) == [1] * width
