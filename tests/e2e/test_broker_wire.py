"""One socket against the broker: order of replies, large frames, hostile bytes, limits."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from partita import Broker
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw, commit_request, join_request, sync_request
from support.clients.broker import until


@pytest.fixture(params=["uvloop", "asyncio"])
def broker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setenv("PARTITA_UVLOOP", "1" if request.param == "uvloop" else "0")
    with Broker(message_max_bytes=50 << 20) as running:
        running.run(lambda: running.cluster.create_topic("t", 1, 1))
        yield running


def produce_request(value: bytes, acks: int = -1) -> ProduceRequest:
    batch = build_batch([(0, None, value, ())])
    data = [PartitionProduceData(index=0, records=batch)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def fetch_request(offset: int, wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=100 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=100 << 20,
        topics=[FetchTopic(topic="t", partitions=[partition])],
    )


def is_alive(broker: Broker) -> bool:
    with Raw(broker.port) as other:
        return bool(other.ask(ApiVersionsRequest(), 0).error_code == 0)


# -- order -----------------------------------------------------------------------------------------------------------


def test_replies_leave_in_request_order_though_the_first_one_waits(raw: Raw, broker: Broker) -> None:
    waiting = raw.send(fetch_request(0, wait_ms=60_000), 11)
    quick = [raw.send(MetadataRequest(topics=[]), 1) for _ in range(5)]
    with Raw(broker.port) as other:
        assert other.ask(produce_request(b"x"), 8).responses[0].partition_responses[0].error_code == 0
    correlation_id, answer = raw.recv(1, 11)
    assert correlation_id == waiting
    assert answer.responses[0].partitions[0].records
    assert [raw.recv(3, 1)[0] for _ in quick] == quick


def test_a_parked_join_holds_back_later_replies_and_they_come_when_it_is_done(raw: Raw, broker: Broker) -> None:
    leader = raw.stable("g")
    with Raw(broker.port) as other:
        given = other.ask(join_request("g"), 9)
        parked = other.send(join_request("g", given.member_id), 9)
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=given.member_id)
        later = [other.send(heartbeat, 4) for _ in range(3)]
        again = raw.ask(join_request("g", leader.member_id), 9)
        assert raw.ask(sync_request("g", again), 5).error_code == 0
        assert other.recv(11, 9)[0] == parked
        assert [other.recv(12, 4)[0] for _ in later] == later


def test_many_frames_in_one_write_and_one_frame_in_many_writes(raw: Raw) -> None:
    frames = [raw.frame(MetadataRequest(topics=[]), 1) for _ in range(500)]
    raw.socket.sendall(b"".join(frames))
    assert [raw.recv(3, 1)[0] for _ in frames] == list(range(1, 501))
    for byte in raw.frame(MetadataRequest(topics=[]), 1):
        raw.socket.sendall(bytes([byte]))
    assert raw.recv(3, 1)[0] == 501


def test_heartbeats_that_repeat_are_answered_like_the_first(raw: Raw) -> None:
    joined = raw.stable("g")
    good = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    bad = HeartbeatRequest(group_id="g", generation_id=99, member_id=joined.member_id)
    nobody = HeartbeatRequest(group_id="", member_id="x")
    kinds = [
        (request, code, version) for request, code in ((good, 0), (bad, 22), (nobody, 24)) for version in (0, 3, 4)
    ]
    sent = [(raw.send(request, version), code, version) for request, code, version in kinds * 50]
    for correlation_id, code, version in sent:
        got, answer = raw.recv(12, version)
        assert (got, answer.error_code) == (correlation_id, code)


def test_heartbeats_between_commits_keep_their_place(raw: Raw) -> None:
    joined = raw.stable("g")
    heartbeat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    commit = commit_request("other", 1)
    order = [(8, raw.send(commit, 8)) if number % 3 == 0 else (12, raw.send(heartbeat, 4)) for number in range(60)]
    for api_key, correlation_id in order:
        assert raw.recv(api_key, 8 if api_key == 8 else 4)[0] == correlation_id


def test_acks_0_is_not_answered_and_the_next_request_is(raw: Raw) -> None:
    raw.send(produce_request(b"silent", acks=0), 8)
    correlation_id = raw.send(produce_request(b"loud"), 8)
    got, answer = raw.recv(0, 8)
    assert got == correlation_id
    assert answer.responses[0].partition_responses[0].base_offset == 1


def test_frames_of_twenty_megabytes_go_both_ways(raw: Raw) -> None:
    value = bytes(20 << 20)
    for _ in range(3):
        assert raw.ask(produce_request(value), 8).responses[0].partition_responses[0].error_code == 0
    raw.send(fetch_request(0), 11)
    raw.send(fetch_request(1), 11)
    for _ in range(2):
        assert len(raw.recv(1, 11)[1].responses[0].partitions[0].records) > 20 << 20


def test_a_client_that_does_not_read_is_not_read_from_and_loses_nothing_when_it_does(raw: Raw, broker: Broker) -> None:
    raw.ask(produce_request(bytes(1 << 20)), 8)
    frames = [raw.frame(fetch_request(0), 11) for _ in range(100)]
    raw.socket.settimeout(20)
    raw.socket.sendall(b"".join(frames))
    assert is_alive(broker)
    transports = broker.run(lambda: [c._transport for c in broker.running.servers[1][0].connections])
    unsent = broker.run(lambda: [t.get_write_buffer_size() for t in transports if t is not None])
    assert 0 < max(unsent) < 20 << 20
    assert [raw.recv(1, 11)[0] for _ in frames] == list(range(2, 102))


def test_a_connection_with_too_much_in_flight_is_read_again_later(raw: Raw, broker: Broker) -> None:
    raw.stable("g")
    sent = [raw.send(fetch_request(0, wait_ms=60_000), 11) for _ in range(300)]
    with Raw(broker.port) as other:
        other.ask(produce_request(b"x"), 8)
    assert [raw.recv(1, 11)[0] for _ in sent] == sent


# -- hostile bytes ---------------------------------------------------------------------------------------------------


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


HEADER = struct.pack(">hhih", 3, 1, 1, -1)
HOSTILE = {
    "H1 negative length": b"\xff\xff\xff\xff",
    "H1 length 0": bytes(4),
    "H1 length 7": framed(b"1234567"),
    "H1 length above the limit": struct.pack(">i", 100 * 1024 * 1024 + 1),
    "H3 HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "H3 TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "H3 SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "H4 unknown api": framed(struct.pack(">hhih", 999, 0, 1, -1)),
    "H4 unsupported version": framed(struct.pack(">hhih", 3, 99, 1, -1) + bytes(8)),
    "H5 header cut short": framed(struct.pack(">hhih", 3, 1, 1, 500)),
    "H5 client id is not UTF-8": framed(struct.pack(">hhih", 3, 1, 1, 2) + b"\xff\xfe" + struct.pack(">i", 0)),
    "H6 array of -2": framed(HEADER + struct.pack(">i", -2)),
    "H6 array of 2^31-1": framed(HEADER + struct.pack(">i", 2**31 - 1)),
    "H6 varint of six bytes": framed(struct.pack(">hhih", 3, 9, 1, -1) + b"\0" + b"\xff" * 6),
    "H7 2^31 tags": framed(struct.pack(">hhih", 3, 9, 1, -1) + b"\xff\xff\xff\xff\x0f"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nonsense_closes_its_own_connection_and_harms_nobody_else(broker: Broker, name: str) -> None:
    with Raw(broker.port) as canary, Raw(broker.port) as hostile:
        joined = canary.stable("canary")
        hostile.socket.sendall(HOSTILE[name])
        assert hostile.is_closed()
        heartbeat = HeartbeatRequest(group_id="canary", generation_id=joined.generation_id, member_id=joined.member_id)
        assert canary.ask(heartbeat, 4).error_code == 0


def test_bytes_after_a_request_are_ignored_as_kafka_ignores_them(raw: Raw) -> None:
    raw.socket.sendall(framed(HEADER + struct.pack(">i", 0) + b"x"))
    assert raw.recv(3, 1)[0] == 1


def test_what_was_asked_before_the_nonsense_is_answered(raw: Raw) -> None:
    first = raw.frame(MetadataRequest(topics=[]), 1)
    raw.socket.sendall(first + HOSTILE["H6 array of -2"])
    assert raw.recv(3, 1)[0] == 1
    assert raw.is_closed()


def test_api_versions_of_the_future_is_answered_as_version_0(raw: Raw) -> None:
    raw.socket.sendall(framed(struct.pack(">hhih", 18, 99, 7, -1) + b"\0\2x\2x\0"))
    correlation_id, answer = raw.recv(18, 0)
    assert (correlation_id, answer.error_code) == (7, 35)
    assert [(row.api_key, row.max_version) for row in answer.api_keys] == [(18, 5)]
    assert raw.ask(ApiVersionsRequest(), 0).error_code == 0


def test_the_limit_of_a_request_holds_for_one_that_arrives_whole() -> None:
    """H1: it must not depend on how many reads the request takes."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 2_000)])
    with Broker(socket_request_max_bytes=1_000) as broker, Raw(broker.port) as raw:
        with pytest.raises((EOFError, OSError)):
            raw.ask(request, 4)
        with Raw(broker.port) as other:
            assert other.ask(MetadataRequest(topics=[]), 4).brokers


def test_an_announced_length_alone_takes_no_memory(broker: Broker) -> None:
    announced = struct.pack(">i", 100 * 1024 * 1024) + bytes(12)
    sockets = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(20)]
    try:
        for one in sockets:
            one.sendall(announced)
        assert is_alive(broker)
        held = broker.run(lambda: [len(c._own or b"") for c in broker.running.servers[1][0].connections])
        assert sum(held) <= 20 * 64 * 1024
    finally:
        for one in sockets:
            one.close()


def test_a_frame_that_never_ends_is_given_up_after_thirty_ticks(raw: Raw, broker: Broker) -> None:
    raw.socket.sendall(struct.pack(">i", 5000) + b"begun")
    assert is_alive(broker)
    server = broker.running.servers[1][0]
    assert server is not None
    for _ in range(32):
        broker.run(server._on_tick)
    assert raw.is_closed()


def test_a_silent_connection_is_closed_and_one_that_waits_for_an_answer_is_not(raw: Raw, broker: Broker) -> None:
    with Raw(broker.port) as waiting:
        waiting.send(fetch_request(0, wait_ms=60_000), 11)
        raw.ask(MetadataRequest(topics=[]), 1)
        server = broker.running.servers[1][0]
        assert server is not None
        for _ in range(602):
            broker.run(server._on_tick)
        assert raw.is_closed()
        with Raw(broker.port) as other:
            other.ask(produce_request(b"x"), 8)
        assert waiting.recv(1, 11)[1].responses[0].partitions[0].records


def test_connections_beyond_the_limits_are_refused_at_accept() -> None:
    with Broker(max_connections=3) as broker:
        held = [Raw(broker.port) for _ in range(3)]
        for one in held:
            assert one.ask(MetadataRequest(topics=[]), 1).brokers
        with Raw(broker.port) as refused:
            assert refused.is_closed()
        held.pop().socket.close()
        connections = broker.running.servers[1][0].connections
        until(lambda: broker.run(lambda: len(connections)) == 2, "the broker knows that one is gone")
        assert is_alive(broker)
        for one in held:
            one.socket.close()
    with Broker(max_connections_per_ip=1) as broker, Raw(broker.port) as first:
        first.ask(MetadataRequest(topics=[]), 1)
        with Raw(broker.port) as second:
            assert second.is_closed()


def test_odd_but_legal_strings_are_data(raw: Raw) -> None:
    odd = "a\0b\u202e\n'\"\\"
    assert raw.commit(odd, 3) in (0, 16)
    raw.find(odd)
    assert raw.commit(odd, 3) == 0
    assert raw.committed(odd) == 3
    with_config = CreatableTopic(
        name="n", num_partitions=1, replication_factor=1, configs=[CreatableTopicConfig(name=odd, value=odd)]
    )
    assert raw.ask(CreateTopicsRequest(topics=[with_config]), 7).topics[0].error_code == 40
    assert raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name=odd)]), 9).topics[0].error_code == 17


def test_bad_input_is_one_line_of_the_log_with_the_peer_and_the_reason(
    broker: Broker, raw: Raw, caplog: pytest.LogCaptureFixture
) -> None:
    raw.socket.sendall(struct.pack(">ihhih", 10, 999, 7, 1, -1))
    assert raw.socket.recv(1) == b""
    assert caplog.messages == ["closed the connection from /127.0.0.1: api key 999 version 7 is not served"]
