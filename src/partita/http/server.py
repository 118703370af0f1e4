"""An HTTP/1.1 server on an event loop that does other work, too: h11 knows the protocol, `Route`s give the answers.

Whatever a client does is bounded: how many connections there are, how large a head and a body may be, how long a
request may take to arrive, its answer to be made, and the client to take it. A newcomer to a full server takes the
place of the connection that has waited for its next request the longest.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlsplit

import h11

from partita.http.routes import JSON, HttpError, Request, Response, Route, find
from partita.net import names

CONNECTIONS_MAX = 64
HEAD_BYTES_MAX = 16 * 1024
BODY_BYTES_MAX = 64 * 1024
READ_BYTES = 16 * 1024
REQUEST_WITHIN_SECONDS = 10.0
"""Time for a request to arrive; a connection without a request is closed after this time, too."""
ANSWER_WITHIN_SECONDS = 30.0
TAKEN_WITHIN_SECONDS = 30.0
"""Time for a client to receive an answer."""
LINGER_SECONDS = 1.0
"""Time that a refused client is read from, so that its sending does not destroy the answer."""
FAILURES_MAX, FAILURES_WITHIN_SECONDS = 10, 10.0
"""So many failures of ours are logged within so many seconds, as those of the broker's requests are."""
ONCE = frozenset({"authorization", "content-type", "origin"})
"""Headers that may come once; h11 sees to Host and Content-Length."""

Check: TypeAlias = Callable[[Request], None]
T = TypeVar("T")

log = logging.getLogger("partita.http")


def allow_all(request: Request) -> None:
    """Refuse no request."""


class HttpServer:
    """Serves `routes`. `check` sees each head before its body is read; it raises HttpError to refuse the request."""

    def __init__(self, routes: Sequence[Route], check: Check = allow_all) -> None:
        self.routes = routes
        self.check = check
        self._servers: list[asyncio.Server] = []
        self._connections: dict[_Connection, asyncio.Task[None]] = {}
        self._failures: deque[float] = deque(maxlen=FAILURES_MAX)
        """When the last ones were logged."""

    async def listen(self, host: str, port: int) -> int:
        """Start on the running loop; return the port. Raises OSError when the address cannot be had."""
        for endpoint in await names.bind(host, port):
            self._servers.append(await asyncio.start_server(self._connected, sock=endpoint, limit=READ_BYTES))
        return int(self._servers[0].sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening, and close the connections."""
        for server in self._servers:
            server.close()
        for task in list(self._connections.values()):
            task.cancel()

    @property
    def count(self) -> int:
        """Number of connections."""
        return len(self._connections)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            self._make_room()
        connection = _Connection(self, reader, writer)
        task = asyncio.current_task()
        assert task is not None, "asyncio serves each connection in a task"
        self._connections[connection] = task
        try:
            # A connection that is cancelled has been given up, or the server closes: nobody waits for this task.
            with suppress(asyncio.CancelledError, OSError):
                await connection.serve()
        except Exception:
            # After the peer has gone uvloop refuses a closed transport by a RuntimeError of its own.
            if not writer.transport.is_closing():
                self.failed("an HTTP connection")
        finally:
            self._connections.pop(connection, None)
            writer.transport.abort() if connection.is_broken else writer.close()

    def failed(self, what: str) -> None:
        """Log the exception that is being handled, unless there were many lately."""
        now = asyncio.get_running_loop().time()
        if len(self._failures) == FAILURES_MAX and now - self._failures[0] < FAILURES_WITHIN_SECONDS:
            return
        self._failures.append(now)
        log.exception("%s failed", what)

    def _make_room(self) -> None:
        """Give up the connection that waits the longest for its next request, else the oldest.

        It counts no longer, since of those who come together each has to take another one's place.
        """
        loser = min(self._connections, key=lambda each: (not each.is_waiting, each.since))
        self._connections.pop(loser).cancel()


class _Connection:
    """One client: requests one after the other, also when they came together."""

    def __init__(self, server: HttpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._now = asyncio.get_running_loop().time
        self.is_waiting = True
        self.since = self._now()
        """Since when it waits for a request, or answers one."""
        self.is_broken = True

    async def serve(self) -> None:
        """Answer requests until the client, a fault or a limit ends the connection."""
        while await self._serve_one():
            self._h11.start_next_cycle()
        self.is_broken = False

    async def _serve_one(self) -> bool:
        """Answer one request; whether there may be another one."""
        self.is_waiting, self.since = True, self._now()
        is_head = False
        try:
            request = await _within(REQUEST_WITHIN_SECONDS, self._request(), HTTPStatus.REQUEST_TIMEOUT)
            if request is None:
                return False
            self.is_waiting, self.since = False, self._now()
            is_head = request.method == "HEAD"
            response = await _within(ANSWER_WITHIN_SECONDS, self._answer(request), HTTPStatus.GATEWAY_TIMEOUT)
            headers: dict[str, str] = {}
        except HttpError as error:
            if self._is_idle:
                return False
            response = Response(json.dumps({"error": str(error)}), status=error.status)
            headers = error.headers
        except h11.RemoteProtocolError as error:
            response = Response(json.dumps({"error": f"bad request: {error}"}), status=error.error_status_hint)
            headers = {}
        async with asyncio.timeout(None if response.is_live else TAKEN_WITHIN_SECONDS):
            with suppress(h11.LocalProtocolError):  # of a request of which too little was understood for an answer
                await self._send_response(response, headers, is_head=is_head)
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            return True
        await self._linger()
        return False

    async def _answer(self, request: Request) -> Response:
        answer = find(self._server.routes, request)
        try:
            return await answer(request)
        except HttpError:
            raise
        except Exception as error:
            self._server.failed(f"{request.method} {ascii(request.path)[:200]}")
            what = f"the server failed: {type(error).__name__}"
            raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, what) from error

    async def _request(self) -> Request | None:
        """The next request with its body; None when the client has closed. Raises HttpError for a refused request."""
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        request = _request_of(head)
        self._server.check(request)
        if self._h11.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[], reason=HTTPStatus.CONTINUE.phrase))
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > BODY_BYTES_MAX:
                raise HttpError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {BODY_BYTES_MAX} bytes"
                )  # fmt: skip
        return None if isinstance(event, h11.ConnectionClosed) else request._replace(body=bytes(body))

    @property
    def _is_idle(self) -> bool:
        """Whether the client has sent nothing since the last answer."""
        return self._h11.their_state is h11.IDLE and not self._h11.trailing_data[0]

    async def _event(self) -> h11.Event:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            self._h11.receive_data(await self._reader.read(READ_BYTES))
        assert not isinstance(event, type), "a request is read before the one in front of it is answered"
        return event

    async def _send_response(self, response: Response, more: dict[str, str], *, is_head: bool) -> None:
        headers = [("content-type", response.kind), ("cache-control", "no-store"), *more.items()]
        if isinstance(response.content, str):
            whole = f"{response.content}\n".encode() if response.kind == JSON else response.content.encode()
            headers.append(("content-length", str(len(whole))))
        if self._h11.their_state is not h11.DONE:
            headers.append(("connection", "close"))
        reason = HTTPStatus(response.status).phrase
        await self._send(h11.Response(status_code=response.status, headers=headers, reason=reason))
        if not is_head:
            if isinstance(response.content, str):
                await self._send(h11.Data(data=whole))
            else:
                await self._send_pieces(response.content)
        await self._send(h11.EndOfMessage())

    async def _send_pieces(self, content: AsyncIterator[str]) -> None:
        try:
            async for piece in content:
                async with asyncio.timeout(TAKEN_WITHIN_SECONDS):
                    await self._send(h11.Data(data=piece.encode()))
                await asyncio.sleep(0)
        finally:
            if isinstance(content, AsyncGenerator):
                await content.aclose()

    async def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def _linger(self) -> None:
        """Say that nothing more comes, and let the client finish, for a moment."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LINGER_SECONDS):
                if self._writer.can_write_eof():
                    self._writer.write_eof()
                while await self._reader.read(READ_BYTES):
                    pass


async def _within(seconds: float, work: Awaitable[T], status: HTTPStatus) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise HttpError(status, f"nothing within {seconds:g} s") from None


def _request_of(head: h11.Request) -> Request:
    headers: dict[str, str] = {}
    for name, value in ((name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers):
        if name in ONCE and name in headers:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"two {name} headers")
        headers[name] = value
    try:
        target = urlsplit(head.target.decode("latin-1"))
        query = dict(parse_qsl(target.query, keep_blank_values=True, max_num_fields=100))
    except ValueError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the target cannot be read: {error}") from None
    return Request(head.method.decode("latin-1"), target.path, query, headers)
