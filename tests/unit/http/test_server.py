"""The HTTP server: what it answers, and that no client can hold it or the loop up (newcomer.md, section 6)."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from partita.http import server as server_module
from partita.http.routes import HttpError, Request, Response, Route
from partita.http.server import HEAD_BYTES_MAX, HttpServer


async def echo(request: Request) -> Response:
    return Response(json.dumps({"query": dict(request.query), "body": request.body.decode()}))


async def pieces(request: Request) -> Response:
    async def some() -> AsyncIterator[str]:
        for number in range(3):
            yield f"piece {number}\n"

    return Response(some(), "text/plain")


async def large(request: Request) -> Response:
    return Response("x" * 30_000_000, "text/plain")


async def broken(request: Request) -> Response:
    raise KeyError("a secret")


async def breaks_off(request: Request) -> Response:
    async def some() -> AsyncIterator[str]:
        yield "first"
        raise KeyError("a secret")

    return Response(some(), "text/plain")


async def endless(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


def check(request: Request) -> None:
    if "refuse-me" in request.headers:
        raise HttpError(401, "who are you?")


ROUTES = (
    Route("GET", "/echo", echo), Route("POST", "/echo", echo), Route("GET", "/pieces", pieces),
    Route("GET", "/large", large), Route("GET", "/broken", broken), Route("GET", "/endless", endless),
    Route("POST", "/verbs/*", echo), Route("GET", "/breaks-off", breaks_off),
)  # fmt: skip
CHUNKED = "Transfer-Encoding: chunked"
Story = Callable[[int, HttpServer], Awaitable[Any]]


def play(story: Story) -> Any:
    """Run `story(port, server)` beside a server on its loop."""

    async def run() -> Any:
        server = HttpServer(ROUTES, check)
        port = await server.listen("127.0.0.1", 0)
        try:
            return await asyncio.wait_for(story(port, server), 20)
        finally:
            server.close()

    return asyncio.run(run())


def exchange(sent: str | bytes) -> bytes:
    """What the server says to these bytes until it closes, or the peer's end of sending ends it."""

    async def story(port: int, server: HttpServer) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent.encode() if isinstance(sent, str) else sent)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        return answer

    answered: bytes = play(story)
    return answered


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def get(path: str, *headers: str, method: str = "GET") -> str:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: h", *headers, "", ""])


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (get("/echo?since=0&x=1"), 200, '{"query": {"since": "0", "x": "1"}'),
        (get("/none"), 404, "no /none; there are GET /echo, POST /echo, GET /pieces"),
        (get("/verbs"), 404, "POST /verbs/*"),
        (get("/pieces", method="DELETE"), 405, "/pieces has no DELETE; it has GET, HEAD"),
        (get("/verbs/x"), 405, "it has POST"),
        (get("/echo", "refuse-me: 1"), 401, "who are you?"),
        (get("/echo", "Authorization: a", "Authorization: a"), 400, "two authorization headers"),
        (get("/echo", "Host: other"), 400, "bad request"),
        ("GET /echo HTTP/1.1\r\n\r\n", 400, "bad request"),
        ("GET /echo HTTP/1.0\r\n\r\n", 200, '"query": {}'),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400, "bad request"),
        (get("/echo", "Content-Length: x", method="POST"), 400, "bad request"),
        (get("/echo", "Content-Length: 3", CHUNKED, method="POST") + "0\r\n\r\n", 200, '"body": ""'),
        (get("/echo", "Content-Length: 3", method="POST") + "abc", 200, '"body": "abc"'),
        (get("/echo", CHUNKED, method="POST") + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, '"abcde"'),
        (get("/echo", "Transfer-Encoding: gzip", method="POST"), 501, "bad request"),
        (get("/echo", "Content-Length: 70000", method="POST") + "x" * 70_000, 413, "at most 65536 bytes"),
        (get("/echo", f"X: {'a' * 1_000_000}"), 431, "bad request"),
        (get("/" + "a" * 1_000_000), 431, "bad request"),
        (get("/echo", *(f"X-{number}: 1" for number in range(5_000))), 431, "bad request"),
        (get("/echo?" + "&".join(f"a{number}=1" for number in range(101))), 400, "the target cannot be read"),
        (get("http://[::1/echo"), 400, "the target cannot be read"),
        (get("/pieces"), 200, "piece 2"),
    ],
)  # fmt: skip
def test_each_request_gets_its_answer(sent: str, status: int, told: str) -> None:
    answer = exchange(sent)
    assert status_of(answer) == status, answer[:300]
    assert told in answer.decode()


def test_head_is_get_without_the_body() -> None:
    head, _, body = exchange(get("/echo", method="HEAD")).partition(b"\r\n\r\n")
    assert status_of(head) == 200
    assert b"content-length: 26" in head
    assert body == b""
    assert b"allow: GET, HEAD" in exchange(get("/pieces", method="POST"))


def test_pipelined_requests_are_answered_in_order_on_one_connection() -> None:
    answer = exchange(get("/echo?n=1") + get("/none") + get("/echo?n=2", "Connection: close") + get("/echo?n=3"))
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"404", b"200"]
    assert answer.index(b'"n": "1"') < answer.index(b"no /none") < answer.index(b'"n": "2"')


def test_who_asks_whether_to_send_is_told_to() -> None:
    """curl waits a second for that before it sends a larger body."""

    async def story(port: int, server: HttpServer) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/echo", "Content-Length: 2", "Expect: 100-continue", method="POST").encode())
        first = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"ab")
        second = await reader.readuntil(b'"}')
        writer.close()
        return first + second

    answer = play(story)
    assert answer.startswith(b"HTTP/1.1 100 Continue")
    assert b'"body": "ab"' in answer


def test_a_refused_client_that_asks_whether_to_send_is_not_told_to() -> None:
    answer = exchange(get("/echo", "Content-Length: 2", "Expect: 100-continue", "refuse-me: 1", method="POST"))
    assert status_of(answer) == 401
    assert b"connection: close" in answer


def test_a_fault_of_ours_is_500_and_tells_the_client_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = exchange(get("/broken"))
    assert status_of(answer) == 500
    assert b"secret" not in answer
    assert "GET '/broken' failed" in caplog.text


def test_who_sends_slowly_is_cut_off_while_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowloris: a byte now and then does not prolong the time that a request has."""
    monkeypatch.setattr(server_module, "REQUEST_WITHIN_SECONDS", 0.2)

    async def story(port: int, server: HttpServer) -> tuple[bytes, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = asyncio.ensure_future(reader.read())
        served = b""
        writer.write(b"GET /echo HTTP/1.1\r\nHost: h\r\n")
        while not answer.done():
            writer.write(b"X")
            served = await ask(port, "/echo")
        writer.close()
        return answer.result(), served

    slow, served = play(story)
    assert status_of(slow) == 408
    assert b"nothing within 0.2 s" in slow
    assert status_of(served) == 200


def test_a_connection_that_asks_nothing_is_closed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_WITHIN_SECONDS", 0.05)

    async def story(port: int, server: HttpServer) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = await reader.read()
        writer.close()
        return answer

    assert play(story) == b""


def test_an_answer_that_does_not_come_is_504(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "ANSWER_WITHIN_SECONDS", 0.05)
    assert status_of(exchange(get("/endless"))) == 504


def test_who_does_not_take_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "TAKEN_WITHIN_SECONDS", 0.1)

    async def story(port: int, server: HttpServer) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/large").encode())
        while not server.count:
            await turn()
        slow = next(iter(server._connections))
        while slow in server._connections:
            assert status_of(await ask(port, "/echo")) == 200
        taken = len(await reader.read())
        writer.close()
        return taken

    assert play(story) < 30_000_000


def test_when_there_are_too_many_the_one_that_waits_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", 3)

    async def story(port: int, server: HttpServer) -> list[bool]:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        while server.count < 3:
            await turn()
        opened[0][1].write(get("/endless").encode())
        while next(iter(server._connections)).is_waiting:
            await turn()
        assert status_of(await ask(port, "/echo")) == 200
        await opened[1][0].read()
        gone = [reader.at_eof() for reader, _ in opened]
        for _, writer in opened:
            writer.close()
        return gone

    assert play(story) == [False, True, False], "the one that is being answered stays"


def test_of_many_that_come_at_once_no_more_stay_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """All who came in one turn of the loop took the place of the same one, and all of them stayed."""
    monkeypatch.setattr(server_module, "CONNECTIONS_MAX", 3)

    async def story(port: int, server: HttpServer) -> int:
        with ExitStack() as opened:
            for _ in range(20):  # the loop does not run meanwhile, so that it accepts them together
                opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert status_of(await ask(port, "/echo")) == 200
            return server.count

    assert play(story) <= 3


def test_a_client_that_goes_away_in_the_middle_leaves_nothing_behind() -> None:
    async def story(port: int, server: HttpServer) -> None:
        for sent in (b"GET /ec", get("/echo", "Content-Length: 9", method="POST").encode() + b"abc"):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            await writer.drain()
            writer.close()
        while server.count:
            await turn()

    play(story)


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop] | None] = {"asyncio": None}
with suppress(ImportError):
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/echo", "/pieces", "/large", "/refused", "/broken"])
def test_clients_that_go_away_at_any_moment_are_no_traceback(
    loop: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An audit's F7: 200 of them wrote 99 tracebacks, since uvloop's error for a closed transport is its own."""

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
        server = HttpServer(ROUTES, check)
        port = await server.listen("127.0.0.1", 0)
        for number in range(120):
            client = socket.create_connection(("127.0.0.1", port))
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", number % 2, 0))
            client.send(get(path, "Connection: close" if number % 3 else "X: y").encode()[: None if number % 5 else 9])
            for _ in range(number % 7):
                await turn()
            client.close()
        while server.count:
            await turn()
        server.close()

    unhandled: list[Any] = []
    with caplog.at_level(logging.DEBUG, logger="partita.http"), asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(asyncio.wait_for(run(), 20))
    assert unhandled == []
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert set(told) <= {"GET '/broken' failed"}
    assert len(told) <= server_module.FAILURES_MAX


def test_failures_of_ours_are_logged_ten_times_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    async def story(port: int, server: HttpServer) -> list[int]:
        return [status_of(await ask(port, "/broken")) for _ in range(30)]

    with caplog.at_level(logging.ERROR):
        assert play(story) == [500] * 30
    assert len(caplog.records) == 10


def test_an_answer_that_breaks_off_is_logged_and_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = exchange(get("/breaks-off"))
    assert b"first" in answer
    assert not answer.endswith(b"0\r\n\r\n"), "its end is not said"
    assert [record.getMessage() for record in caplog.records] == ["an HTTP connection failed"]


def test_a_head_is_given_up_before_it_is_whole() -> None:
    """Memory for a head is bounded: the answer comes though the head never ends."""

    async def story(port: int, server: HttpServer) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /echo HTTP/1.1\r\nX: " + b"a" * (2 * HEAD_BYTES_MAX))
        answer = await reader.readuntil(b"\r\n")
        writer.close()
        return answer

    assert status_of(play(story)) == 431


async def ask(port: int, path: str) -> bytes:
    """The answer to a request of another client."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(get(path, "Connection: close").encode())
    answer = await reader.read()
    writer.close()
    return answer


async def turn() -> None:
    """Let the loop do what is due."""
    await asyncio.sleep(0)
