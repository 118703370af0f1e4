"""From a frame to an answer: header, table, decode, handler, encode. The broker's only `except Exception`.

A frame's outcome is its reply's chunks, None (no answer is due), or a `Parked` that has the chunks later. Whatever a
handler raises becomes the API's own error response and one log line with api, version, client id and correlation id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from partita.broker.requests.apis import API_VERSIONS, HEARTBEAT, SERVED, ServedApi
from partita.broker.requests.context import Answer, ConnectionHandle, RequestContext
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import encode_response, read_request_header
from partita.protocol.primitives import Buffer, MalformedRequest, Message

if TYPE_CHECKING:
    from partita.broker.nodes import Node

log = logging.getLogger("partita.broker")
CLIENT_ID_CHARACTERS_MAX = 256
COMPLAINT_CHARACTERS_MAX = 300
MEMO_BYTES_MAX = 1024
Chunks = list[Buffer]


class Parked:
    """A reply that comes later: `chunks` is set once `done`, and then `on_done` is called."""

    __slots__ = ("chunks", "done", "on_done")

    def __init__(self) -> None:
        self.done = False
        self.chunks: Chunks | None = None
        self.on_done: Callable[[], None] | None = None

    def finish(self, chunks: Chunks | None) -> None:
        self.done = True
        self.chunks = chunks
        if self.on_done is not None:
            self.on_done()


class Exchange:
    """One request on its way through its handler to its reply."""

    __slots__ = ("api", "correlation_id", "ctx", "request")

    def __init__(self, api: ServedApi, ctx: RequestContext, request: Message, correlation_id: int) -> None:
        self.api = api
        self.ctx = ctx
        self.request = request
        self.correlation_id = correlation_id

    def call(self) -> Answer:
        """Let the handler decide. A failure becomes the API's error answer."""
        try:
            return self.api.handler(self.ctx, self.request)
        except Exception as error:
            return self.failed(error)

    def encoded(self, answer: Answer) -> Chunks | Parked | None:
        if isinstance(answer, Message):
            return self._encode(answer)
        if answer is None:
            return None
        future = asyncio.ensure_future(answer)
        if future.done():
            return self._finished(future)
        parked = Parked()
        future.add_done_callback(lambda done: parked.finish(self._finished(done)))
        return parked

    def failed(self, error: BaseException) -> Message | None:
        """Log what was raised, and make of it the answer the API has for errors."""
        from partita.broker.requests.error_answers import error_answer

        code = getattr(error, "code", None)
        if not isinstance(code, int):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            log.error(
                "%s v%d from client %s, correlation id %d, failed",
                self.api.name,
                self.ctx.version,
                ascii(self.ctx.client_id),
                self.correlation_id,
                exc_info=error,
            )
        return error_answer(self.api.key, self.ctx.version, self.request, int(code))

    def _finished(self, future: asyncio.Future[Message | None]) -> Chunks | None:
        if future.cancelled():
            return None
        error = future.exception()
        message = future.result() if error is None else self.failed(error)
        return None if message is None else self._encode(message)

    def _encode(self, message: Message) -> Chunks:
        return encode_response(self.api.key, self.ctx.version, self.correlation_id, message)


class Repeated:
    """A heartbeat seen before: the same bytes but for the correlation id mean the same again.

    `answer` returns the error code at once, or a number that `tails` lacks: then the request takes the long way.
    `tails` has, per code, what stands before and after the correlation id in the reply frame.
    """

    __slots__ = ("answer", "tails")

    def __init__(self, version: int, answer: Callable[[], int]) -> None:
        self.answer = answer
        self.tails = _tails(version)


@cache
def _tails(version: int) -> dict[int, tuple[bytes, bytes]]:
    tails = {}
    for code in ErrorCode:
        message = SERVED[HEARTBEAT].response(error_code=int(code))  # type: ignore[call-arg]
        frame = b"".join(encode_response(HEARTBEAT, version, 0, message))
        tails[int(code)] = (frame[:4], frame[8:])
    return tails


class Dispatcher:
    """Answers the frames of the connections to one listener of a node."""

    def __init__(self, node: Node, listener: str) -> None:
        self._node = node
        self._listener = listener
        self._loop = node.cluster.loop
        self.faults = node.cluster.faults
        self._recent_complaints: deque[float] = deque(maxlen=10)

    def dispatch(self, connection: ConnectionHandle, client_host: str, frame: Buffer) -> Chunks | Parked | None:
        """Answer one frame. Raises MalformedRequest when the connection has to be closed."""
        api_key, version, correlation_id, client_id, reader = read_request_header(frame)
        api = SERVED.get(api_key)
        if api is None or not api.min_version <= version <= api.max_version:
            return _unsupported(api_key, version, correlation_id)
        request = api.request.read(reader, version)  # what follows is ignored, see docs/decisions/0090
        ctx = self._context(connection, client_host, api_key, version, client_id)
        exchange = Exchange(api, ctx, request, correlation_id)
        answer = self.faults.intercept(exchange) if self.faults.active else exchange.call()
        return exchange.encoded(answer)

    def memorise(self, connection: ConnectionHandle, client_host: str, frame: bytes) -> Repeated | None:
        """What to remember of this frame so that its like need not be decoded again; None if it is no heartbeat."""
        if frame[:2] != b"\0\x0c" or len(frame) > MEMO_BYTES_MAX:
            return None
        from partita.broker.handlers.heartbeat import quick
        from partita.protocol.messages.heartbeat import HeartbeatRequest

        _, version, _, client_id, reader = read_request_header(frame)
        request = HeartbeatRequest.read(reader, version)
        ctx = self._context(connection, client_host, HEARTBEAT, version, client_id)
        return Repeated(version, quick(ctx, request))

    def complain(self, client_host: str, reason: str) -> None:
        """One line about bad input, at most ten in ten seconds; the peer's bytes are escaped and cut."""
        now = self._loop.time()
        recent = self._recent_complaints
        if len(recent) == recent.maxlen and now - recent[0] < 10:
            return
        recent.append(now)
        log.warning("closed the connection from %s: %s", client_host, ascii(reason)[1:-1][:COMPLAINT_CHARACTERS_MAX])

    def _context(
        self, connection: ConnectionHandle, client_host: str, api_key: int, version: int, client_id: str | None
    ) -> RequestContext:
        stored_id = (client_id or "")[:CLIENT_ID_CHARACTERS_MAX]
        return RequestContext(self._node, api_key, version, stored_id, client_host, connection, self._listener)


def _unsupported(api_key: int, version: int, correlation_id: int) -> Chunks:
    """ApiVersions of the future is answered as version 0, so that its sender can step down; else the peer is lost."""
    if api_key != API_VERSIONS:
        raise MalformedRequest(f"api key {api_key} version {version} is not served")
    from partita.broker.handlers.api_versions import unsupported_version

    return encode_response(API_VERSIONS, 0, correlation_id, unsupported_version())
