"""One connection: versions, many requests in flight, and brokers that misbehave."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from partita.net.config import ClientConfig, parse_server, parse_servers
from partita.net.connection import Connection
from partita.net.errors import Disconnected, RequestTimedOut, VersionMismatch
from partita.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.metadata import MetadataRequest
from support.broker.wire_server import WireServer, all_versions

CONFIG = ClientConfig(request_timeout_ms=5_000)


def heartbeats(key: int, version: int, request: Any) -> Any:
    return HeartbeatResponse(error_code=request.generation_id) if key == 12 else None


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


def test_many_requests_in_flight_get_their_own_answers() -> None:
    async def scenario() -> list[int]:
        async with WireServer(heartbeats) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            futures = [connection.post(HeartbeatRequest(generation_id=i)) for i in range(100)]
            answers = [(await f).error_code for f in futures]
            connection.close()
            return answers

    assert run(scenario()) == list(range(100))


def test_the_highest_common_version_is_used_and_a_ceiling_is_kept() -> None:
    old = ApiVersionsResponse(api_keys=[ApiVersion(api_key=12, min_version=0, max_version=2)])

    async def scenario() -> list[int]:
        async with WireServer(lambda k, v, r: old if k == 18 else HeartbeatResponse()) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            await connection.send(HeartbeatRequest())
            await connection.send(HeartbeatRequest(), max_version=1)
            with pytest.raises(VersionMismatch, match="ListGroups"):
                await connection.send(ListGroupsRequest())
            connection.close()
            return [version for key, version, _ in server.requests if key == 12]

    assert run(scenario()) == [2, 1]


def test_a_broker_that_lacks_our_api_versions_is_asked_again_in_its_own() -> None:
    def answer(key: int, version: int, request: Any) -> Any:
        if key == 18 and version > 0:
            body = ApiVersionsResponse(
                error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=0)]
            ).encode(0)
            return struct.pack(">ii", 4 + len(body), 1) + body
        return None

    async def scenario() -> list[int]:
        async with WireServer(answer) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            assert 12 in connection.versions
            connection.close()
            return [version for key, version, _ in server.requests if key == 18]

    assert run(scenario()) == [5, 0]


def test_a_lost_connection_fails_all_that_wait() -> None:
    async def scenario() -> None:
        async with WireServer(lambda k, v, r: None) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            futures = [connection.post(HeartbeatRequest()) for _ in range(3)]
            await asyncio.sleep(0)
            server.drop_all()
            for future in futures:
                with pytest.raises(Disconnected):
                    await future
            with pytest.raises(Disconnected):
                connection.post(HeartbeatRequest())

    run(scenario())


@pytest.mark.case("CC-211")
def test_an_unanswered_request_closes_the_connection_at_its_timeout() -> None:
    async def scenario() -> None:
        async with WireServer(lambda k, v, r: None) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            patient = connection.post(HeartbeatRequest(), timeout_ms=60_000)
            with pytest.raises(RequestTimedOut):
                await connection.send(HeartbeatRequest(), timeout_ms=20)
            with pytest.raises(Disconnected):
                await patient
            assert not connection.is_open

    run(scenario())


HOSTILE = {
    "a length bomb": struct.pack(">i", 2**31 - 1),
    "a negative length": struct.pack(">i", -5),
    "an unknown correlation id": struct.pack(">iihb", 7, 4711, 0, 0),
    "an answer cut short": struct.pack(">iib", 5, 2, 0),
    "an array that cannot be": struct.pack(">iibi", 14, 2, 0, 0) + b"\xff\xff\xff\xff\x0f",
    "a null array": struct.pack(">iibi", 10, 2, 0, 0) + b"\x00",
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_nonsense_closes_the_connection_and_nothing_else(reply: bytes) -> None:
    async def scenario() -> None:
        async with WireServer(lambda k, v, r: reply if k == 3 else None) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            with pytest.raises(Disconnected):
                await connection.send(MetadataRequest())
            assert not connection.is_open

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "told"), [(b"HTTP/1.1 400 Bad Request\r\n", "'HTTP/1.1'"), (b"SSH-2.0-OpenSSH\r\n", "'SSH-2.0-'")]
)
def test_a_server_of_another_protocol_is_named(answer: bytes, told: str) -> None:
    """It was told as an answer of 1213486160 bytes."""

    async def scenario() -> None:
        async with WireServer(lambda k, v, r: answer) as server:
            with pytest.raises(Disconnected, match=f"is no Kafka broker: what it answers begins with {told}"):
                await Connection.open("127.0.0.1", server.port, CONFIG)

    run(scenario())


def test_an_answer_given_twice_closes_the_connection() -> None:
    async def scenario() -> None:
        async with WireServer(lambda k, v, r: HeartbeatResponse() if k == 12 else None) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            await connection.send(HeartbeatRequest())
            server.writers[0].write(struct.pack(">iibihb", 12, 2, 0, 0, 0, 0))
            await connection.closed
            assert not connection.is_open

    run(scenario())


def test_a_throttled_connection_holds_requests_back_for_that_time() -> None:
    def answer(key: int, version: int, request: Any) -> Any:
        return HeartbeatResponse(throttle_time_ms=60 if request.generation_id == 1 else 0) if key == 12 else None

    async def scenario() -> float:
        async with WireServer(answer) as server:
            connection = await Connection.open("127.0.0.1", server.port, CONFIG)
            loop = asyncio.get_running_loop()
            start = loop.time()
            await connection.send(HeartbeatRequest(generation_id=1))
            await connection.send(HeartbeatRequest(generation_id=2))
            connection.close()
            return loop.time() - start

    assert run(scenario()) >= 0.055


def test_nobody_listening_is_a_disconnect() -> None:
    async def scenario() -> None:
        async with WireServer(heartbeats) as server:
            port = server.port
        with pytest.raises(Disconnected, match="cannot connect"):
            await Connection.open("127.0.0.1", port, CONFIG)

    run(scenario())


def test_a_server_that_never_answers_the_first_request_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(Disconnected):
                await Connection.open("127.0.0.1", port, ClientConfig(request_timeout_ms=30))

    run(scenario())


def test_an_address_is_host_and_port_with_9092_by_default() -> None:
    assert parse_servers("a:1, b , [::1]:3") == (("a", 1), ("b", 9092), ("::1", 3))
    assert parse_server("PLAINTEXT://kafka:19092") == ("kafka", 19092)
    for wrong in ("a:b", ":9092", "a:70000"):
        with pytest.raises(ValueError, match="host:port"):
            parse_server(wrong)
    with pytest.raises(ValueError, match="empty"):
        parse_servers("")


def test_all_versions_covers_what_the_tests_use() -> None:
    assert {a.api_key for a in all_versions().api_keys} >= {1, 3, 12, 18}
