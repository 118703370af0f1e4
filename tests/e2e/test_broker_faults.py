"""Faults for some requests only: by topic, partition, client, node, count; watched, held, cut off (newcomer T6)."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from partita import Broker, Consumer, Producer
from partita.broker.control.fault import Asked
from partita.broker.control.verbs import ControlError
from partita.errors import KafkaError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw

FAILED = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topics({"t": 2, "u": 1})
        yield running


def produce(raw: Raw, *partitions: tuple[str, int]) -> dict[tuple[str, int], int]:
    batch = build_batch([(0, None, b"v", ())])
    topics = [
        TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
        for topic, index in partitions
    ]
    answer = raw.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    return {(t.name, p.index): p.error_code for t in answer.responses for p in t.partition_responses}


def ends(raw: Raw, *partitions: tuple[str, int]) -> list[int]:
    topics = [
        ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)])
        for topic, index in partitions
    ]
    answer = raw.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 5)
    return [p.error_code or p.offset for t in answer.topics for p in t.partitions]


def metadata(raw: Raw, topic: str) -> int:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    return int(raw.ask(asked, 4).topics[0].error_code)


# -- for whom --------------------------------------------------------------------------------------------------------


def test_one_partition_fails_and_the_others_of_the_request_are_served(broker: Broker, raw: Raw) -> None:
    fault = broker.control.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1)
    assert produce(raw, ("t", 0), ("t", 1), ("u", 0)) == {("t", 0): 0, ("t", 1): FAILED, ("u", 0): 0}
    assert produce(raw, ("t", 1)) == {("t", 1): 0}, "once is once"
    assert fault.hits == 1
    assert ends(raw, ("t", 0), ("t", 1), ("u", 0)) == [1, 1, 1], "what failed was not written"


def test_executed_in_part_the_records_are_there_and_the_answer_denies_it(broker: Broker, raw: Raw) -> None:
    broker.control.fail("Produce", "REQUEST_TIMED_OUT", topic="t", partition=0, executed=True)
    assert produce(raw, ("t", 0), ("u", 0)) == {("t", 0): ErrorCode.REQUEST_TIMED_OUT, ("u", 0): 0}
    assert ends(raw, ("t", 0), ("u", 0)) == [1, 1]


def test_requests_about_other_topics_pass(broker: Broker, raw: Raw) -> None:
    broker.control.fail("ListOffsets", "NOT_LEADER_OR_FOLLOWER", None, topic="u")
    assert ends(raw, ("t", 0)) == [0]
    assert ends(raw, ("t", 0), ("u", 0)) == [0, FAILED]
    assert ends(raw, ("u", 0)) == [FAILED]


def test_a_commit_fails_for_one_partition_only(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    broker.control.fail("OffsetCommit", "NOT_COORDINATOR", topic="t", partition=0, group_id="g")
    at = [OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in (0, 1)]
    asked = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=at)])
    answer = raw.ask(asked, 8)
    codes = {p.partition_index: p.error_code for t in answer.topics for p in t.partitions}
    assert codes == {0: ErrorCode.NOT_COORDINATOR, 1: 0}
    assert (raw.committed("g", "t", 0), raw.committed("g", "t", 1)) == (-1, 7)


@pytest.mark.parametrize("version", [11, 13])
def test_a_fetch_fails_for_one_partition_also_in_a_session_that_does_not_name_it(
    broker: Broker, raw: Raw, version: int
) -> None:
    topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
    named: dict[str, Any] = {"topic": "t"} if version < 13 else {"topic_id": topic_id}
    produce(raw, ("t", 0))
    wanted = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in (0, 1)]
    opening = FetchRequest(
        min_bytes=1, max_bytes=1000, session_epoch=0, topics=[FetchTopic(**named, partitions=wanted)]
    )
    opened = raw.ask(opening, version)
    assert opened.session_id
    produce(raw, ("t", 0))
    broker.control.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=1)
    incremental = FetchRequest(
        max_wait_ms=60_000, min_bytes=9_999, max_bytes=1000, session_id=opened.session_id, session_epoch=1
    )
    answer = raw.ask(incremental, version)
    assert answer.error_code == 0
    told = {p.partition_index: (p.error_code, bool(p.records)) for t in answer.responses for p in t.partitions}
    assert told == {0: (0, True), 1: (FAILED, False)}
    assert all(t.topic_id == topic_id if version >= 13 else t.topic == "t" for t in answer.responses)


def test_a_client_is_meant_by_its_id(broker: Broker, raw: Raw) -> None:
    broker.control.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", 5, client_id="raw")
    with Raw(broker.port, "other") as other:
        assert metadata(other, "t") == 0
    assert metadata(raw, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_node_is_meant_by_its_id() -> None:
    with Broker(nodes=2) as broker:
        broker.create_topics({"t": 1})
        ports = broker.run(lambda: {node.node_id: node.endpoint.port for node in broker.cluster.nodes.values()})
        broker.control.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", None, node=2)
        with Raw(ports[1]) as one, Raw(ports[2]) as two:
            assert (metadata(one, "t"), metadata(two, "t")) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_every_third_request(broker: Broker, raw: Raw) -> None:
    fault = broker.control.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", None, every=3)
    assert [bool(metadata(raw, "t")) for _ in range(7)] == [False, False, True, False, False, True, False]
    assert fault.hits == 2
    fault.clear()
    assert [metadata(raw, "t") for _ in range(3)] == [0, 0, 0]
    assert not broker.running.faults.active


def test_any_api_of_one_client(broker: Broker, raw: Raw) -> None:
    broker.control.drop("*", client_id="raw")
    with Raw(broker.port, "other") as other:
        assert metadata(other, "t") == 0
    raw.send(MetadataRequest(topics=[]), 4)
    assert raw.is_closed()


# -- what happens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("executed", [False, True])
def test_a_dropped_connection_says_nothing_of_what_took_effect(broker: Broker, raw: Raw, executed: bool) -> None:
    broker.control.drop("Produce", executed=executed, topic="t")
    with pytest.raises((EOFError, ConnectionResetError)):
        produce(raw, ("t", 0))
    with Raw(broker.port) as other:
        assert ends(other, ("t", 0)) == [int(executed)]


def test_requests_behind_a_dropped_one_are_not_begun(broker: Broker, raw: Raw) -> None:
    """As in Kafka, which reads no further before it has answered: a producer's later batches must not leave a gap."""
    broker.control.drop("Metadata")
    batch = build_batch([(0, None, b"v", ())])
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    raw.socket.sendall(raw.frame(MetadataRequest(topics=[]), 4) + raw.frame(request, 9))
    assert raw.is_closed()
    with Raw(broker.port) as other:
        assert ends(other, ("t", 0)) == [0]


@pytest.mark.parametrize(("size", "sent"), [(None, None), (5, 5), (0, 0)])
def test_an_answer_is_cut_and_the_connection_closed(broker: Broker, raw: Raw, size: int | None, sent: int) -> None:
    raw.send(MetadataRequest(topics=[]), 4)
    whole = len(raw.socket.recv(1 << 16))
    broker.control.truncate("Metadata", size=size)
    raw.send(MetadataRequest(topics=[]), 4)
    received = b""
    while more := raw.socket.recv(1 << 16):
        received += more
    assert len(received) == (whole // 2 if sent is None else sent)


def test_an_answer_that_was_waited_for_is_cut_too(broker: Broker, raw: Raw) -> None:
    broker.control.truncate("Fetch", size=10)
    wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
    raw.send(FetchRequest(max_wait_ms=20, min_bytes=1, max_bytes=1000, topics=[wanted]), 11)
    assert len(raw.socket.recv(1 << 16)) == 10
    assert raw.is_closed()


def test_an_answer_that_is_late_took_effect_at_once(broker: Broker, raw: Raw) -> None:
    late = broker.control.delay("Produce", 60_000, executed=True, topic="t")
    batch = build_batch([(0, None, b"v", ())])
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
    raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    late.wait()
    with Raw(broker.port) as other:
        assert ends(other, ("t", 0)) == [1]


def test_held_requests_go_on_when_the_fault_is_cleared(broker: Broker, raw: Raw) -> None:
    held = broker.control.hold("Produce", topic="t")
    batch = build_batch([(0, None, b"v", ())])
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])]
    raw.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert held.wait() == 1
    with Raw(broker.port) as other:
        assert ends(other, ("t", 0)) == [0]
    held.clear()
    assert raw.recv(0, 9)[1].responses[0].partition_responses[0].error_code == 0


def test_a_function_sees_each_request_and_decides(broker: Broker, raw: Raw) -> None:
    seen: list[Asked] = []

    def decide(asked: Asked) -> Any:
        seen.append(asked)
        return (None, "NOT_ENOUGH_REPLICAS", 5)[len(seen) - 1]

    broker.control.intercept("Produce", decide, 3)
    codes = [produce(raw, ("t", 0))["t", 0] for _ in range(4)]
    assert codes == [0, ErrorCode.NOT_ENOUGH_REPLICAS, 5, 0]
    assert [(asked.api, asked.version, asked.client_id, asked.node) for asked in seen] == [("Produce", 9, "raw", 1)] * 3
    assert isinstance(seen[0].request, ProduceRequest)


def test_a_function_may_answer_itself_and_its_failure_is_the_brokers(broker: Broker, raw: Raw) -> None:
    from partita.protocol.messages.list_offsets import ListOffsetsResponse

    broker.control.intercept("ListOffsets", lambda asked: ListOffsetsResponse(topics=[]), 1)
    assert ends(raw, ("t", 0)) == []
    broker.control.intercept("ListOffsets", lambda asked: 1 // 0, 1)
    assert ends(raw, ("t", 0)) == [ErrorCode.UNKNOWN_SERVER_ERROR]


# -- watching --------------------------------------------------------------------------------------------------------


def test_observing_counts_beside_the_faults_that_act(broker: Broker, raw: Raw) -> None:
    seen = broker.control.observe("Metadata", topic="t")
    broker.control.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION")
    assert [bool(metadata(raw, topic)) for topic in ("t", "t", "u")] == [True, False, False]
    assert seen.hits == 2
    assert broker.control.faults() == [{"fault": 1, "what": "observe", "api": "Metadata", "topic": "t", "hits": 2}]
    assert repr(seen) == "<Fault 1: observe Metadata topic=t, hit 2 times>"


def test_waiting_until_a_fault_was_hit(broker: Broker) -> None:
    seen = broker.control.observe("Produce")
    writer = threading.Thread(target=broker.produce, args=("t", "a"))
    writer.start()
    assert seen.wait(1, timeout=60) >= 1
    writer.join()
    with pytest.raises(TimeoutError, match=r"observe Produce: \d of 99 requests came within 0.05 s"):
        seen.wait(99, timeout=0.05)


def test_the_notes_tell_who_was_hit(broker: Broker, raw: Raw) -> None:
    broker.control.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t")
    produce(raw, ("t", 0))
    injected, applied = (note for note in broker.notes() if note["note"] == "Control")
    assert (injected["what"], injected["does"], injected["topic"]) == ("fault injected", "fail", "t")
    assert (applied["what"], applied["fault"], applied["client_id"]) == ("fault applied", injected["fault"], "raw")


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda c: c.fail("Fetch", 1, topics="t"), "no filter topics; a fault can be limited by group_id, topic"),
        (lambda c: c.fail("Fetch", 1, topic=3), "topic must be text, not 3"),
        (lambda c: c.fail("Fetch", 1, partition=3), "a partition needs its topic"),
        (lambda c: c.fail("Fetch", 1, topic="t", partition="0"), "partition must be a whole number, not '0'"),
        (lambda c: c.observe("Fetch", every=0), "every must be a whole number from 1, not 0"),
        (lambda c: c.drop("Fetch", 0), "times must be at least 1, not 0"),
        (lambda c: c.truncate("Fetch", size=-1), "size must be at least 0, not -1"),
        (lambda c: c.intercept("Fetch", "x"), "function must be a callable, not 'x'"),
        (lambda c: c.wait_fault(7), "there is no fault 7; `faults` lists those in force"),
    ],
)
def test_a_wrong_fault_is_refused(broker: Broker, act: Any, told: str) -> None:
    with pytest.raises(ControlError, match=told):
        act(broker.control)


def test_the_same_over_http() -> None:
    with Broker(admin_port=0) as broker:
        broker.create_topics({"t": 1})

        def call(verb: str, **given: Any) -> Any:
            body = json.dumps(given).encode()
            url = f"http://127.0.0.1:{broker.running.admin_port}/control/{verb}"
            token = {"Authorization": f"Bearer {broker.admin_token}"}
            return json.load(urllib.request.urlopen(urllib.request.Request(url, body, token, method="POST")))["result"]

        number = call("observe", api="Produce", topic="t")
        assert number == 1
        broker.produce("t", "a")
        assert call("wait_fault", fault=number) == 1
        with pytest.raises(urllib.error.HTTPError) as refused:
            call("wait_fault", fault=number, hits=9, timeout=0.05)
        assert "1 of 9 requests came within 0.05 s" in json.load(refused.value)["error"]
        call("clear_fault", fault=number)
        assert call("faults") == []


def test_a_throttled_client_is_told_and_not_read_until_then(broker: Broker) -> None:
    broker.control.throttle("Produce", 60_000, client_id="patient")
    fault = broker.control.throttle("Produce", 300, client_id="greedy")
    data = [PartitionProduceData(index=0, records=build_batch([(0, None, b"v", ())]))]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    with Raw(broker.port, "greedy") as greedy, Raw(broker.port, "patient") as patient, Raw(broker.port) as other:
        begin = time.monotonic()
        answer = greedy.ask(request, 9)
        assert (answer.throttle_time_ms, answer.responses[0].partition_responses[0].error_code) == (300, 0)
        assert greedy.ask(request, 9).throttle_time_ms == 0
        assert time.monotonic() - begin >= 0.29
        assert fault.hits == 1
        assert patient.ask(request, 9).throttle_time_ms == 60_000
        patient.send(request, 9)
        assert other.ask(request, 9).throttle_time_ms == 0, "others are read meanwhile"
        assert ends(other, ("t", 0)) == [4], "and what the client sent is not"
    with pytest.raises(ControlError, match="ms must be a whole number"):
        broker.control.throttle("Produce", 1.5)  # type: ignore[arg-type]  # the mistake is tested


# -- Partita's clients survive them all, with every record accounted for ---------------------------------------------


def inject(broker: Broker, kind: str, topic: str) -> None:
    control = broker.control
    if kind == "fail":
        control.fail("Produce", "NOT_LEADER_OR_FOLLOWER", 3, topic=topic, partition=0)
        control.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", 3, topic=topic, partition=1)
    elif kind == "drop":
        control.drop("Produce", 2, topic=topic, every=2)
        control.drop("Produce", 2, topic=topic, executed=True)
        control.drop("Fetch", 3, topic=topic, every=2)
    elif kind == "truncate":
        control.truncate("Produce", 2, topic=topic)
        control.truncate("Fetch", 3, topic=topic, size=30)
        control.truncate("OffsetCommit", 2, size=3)
    else:
        control.fail("Produce", "REQUEST_TIMED_OUT", 3, topic=topic, executed=True)
        control.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", 3)
        control.fail("OffsetFetch", "NOT_COORDINATOR", 2)


@pytest.mark.parametrize("kind", ["fail", "drop", "truncate", "lost answers"])
def test_every_record_is_written_once_and_read_once_under_faults(broker: Broker, kind: str) -> None:
    inject(broker, kind, "t")
    wanted = [f"{number}".encode() for number in range(200)]
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=0, retry_backoff_ms=10) as producer:
        for number, value in enumerate(wanted):
            producer.send("t", value, partition=number % 2)
            if number % 20 == 19:
                producer.flush()
    options = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest", "retry_backoff_ms": 10}
    found: list[bytes] = []
    for share in (100, 100):
        with Consumer(options, group_id="g", max_poll_records=10, value_deserializer=None) as consumer:
            consumer.subscribe(["t"])
            for record in consumer:
                found.append(record.value)
                if len(found) % 100 == 0 and share:
                    consumer.commit(record)
                    break
    assert sorted(found) == sorted(wanted)


def test_a_fault_that_stays_is_the_callers_error(broker: Broker) -> None:
    broker.control.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", None, topic="t")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        with pytest.raises(KafkaError, match="t"):
            producer.send("t", b"x", partition=0).result(60)
        producer.send("u", b"x").result(60)
