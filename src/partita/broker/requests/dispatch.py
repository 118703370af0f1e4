"""From a frame to an answer: header, table, decode, handler, encode.

Theory of operation. `dispatch` is called with one whole frame, on the event loop, and returns at once: the reply's
chunks, None where the protocol has no reply, or `Parked`, a reply that comes later. The connection keeps the order of
replies, so nothing here does. A request takes one of four ways:

    quick      decoded, handled and encoded within this call; nearly all of them
    parked     the handler returned a future: a long poll, a join, an append that must become durable
    in slices  more than `QUICK_ELEMENTS` array elements: read, handled and written a slice at a time beside the loop's
               other work; later requests of the connection wait, as in Kafka, where one is under way at a time
    alone      more elements than that again: one such request in the whole process, for the memory it takes

Counting elements, not bytes, is what bounds the time: a reader stops at the limit and the request begins again on a
slower way, before anything took effect. Decoding has no effects, so it can be repeated; a handler runs once.

*Failures.* Bad bytes raise MalformedRequest and close the connection: after them it is unknown where the next field
begins. Everything else becomes the API's own error answer, shaped by its schema, and one line in the log. An answer
that cannot be encoded is answered by an error in its place; if that fails too, the connection closes, since a client
that waits for ever is worse off than one that reconnects.

*Rights and quotas* wrap the handler, so a handler runs only for what the peer may do. Without an authorizer and without
quotas there is no wrapper at all.

*The memo.* A handler may offer a shortcut for a request that a client repeats byte by byte, a heartbeat. The connection
then answers the same frame without coming here. What is remembered belongs to one principal and address, and a change
of rights forgets all of it.

What must not be done: await in `dispatch`; keep the frame beyond the call unless it is `bytes` (large ones are views of
a buffer that is used again); answer twice.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeAlias

from partita.broker.api.apis import API_VERSIONS, SERVED, ServedApi
from partita.broker.api.context import Answer, RequestContext, handled
from partita.broker.api.served import ELEMENTS_MAX
from partita.broker.wire.contract import Chunks, ConnectionHandle, Parked, Promised
from partita.broker.wire.memo import Memo, Replies
from partita.broker.wire.turns import let_go
from partita.lazy import later
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import REQUEST_BYTES_MIN, encode_response, read_request_header
from partita.protocol.primitives import Buffer, MalformedRequest, Message, TooManyElements, Writer

if TYPE_CHECKING:
    from partita.broker.api import error_answers
    from partita.broker.api.services import Services
    from partita.broker.checks import guard as rights_guard
    from partita.broker.checks import metering as quota_checks
    from partita.broker.handlers import api_versions as api_versions_handler
    from partita.broker.nodes import Node
    from partita.broker.permits.quotas import Quotas
else:
    api_versions_handler = later("partita.broker.handlers.api_versions")
    error_answers = later("partita.broker.api.error_answers")
    quota_checks = later("partita.broker.checks.metering")
    rights_guard = later("partita.broker.checks.guard")

log = logging.getLogger("partita.broker")
CLIENT_ID_CHARACTERS_MAX = 256
COMPLAINT_CHARACTERS_MAX = 300
QUICK_ELEMENTS = 1000
"""A message with more array elements is read and written in slices."""


class RateLimit:
    """Lets something happen ten times in ten seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._recent: deque[float] = deque(maxlen=10)

    def allows(self) -> bool:
        """Whether it may happen now; if so it is counted."""
        now = self._loop.time()
        # A ring of the last ten times: the oldest of them says whether ten were within ten seconds.
        if len(self._recent) == self._recent.maxlen and now - self._recent[0] < 10:
            return False
        self._recent.append(now)
        return True


RequestStart: TypeAlias = tuple[ServedApi, int, int, str | None]
"""A request's API and version, its correlation id and client id."""


class Exchange:
    """One request on its way through its handler to its reply. A test may `cut` the reply's bytes.

    A large request is one that was read in slices.
    """

    __slots__ = ("_began", "_failures", "_is_large", "api", "correlation_id", "ctx", "cut", "request")

    def __init__(
        self,
        api: ServedApi,
        ctx: RequestContext,
        request: Message,
        correlation_id: int,
        failures: RateLimit,
        is_large: bool = False,
    ) -> None:
        self._is_large = is_large
        self._began = perf_counter()
        self._failures = failures
        self.api = api
        self.ctx = ctx
        self.request = request
        self.correlation_id = correlation_id
        self.cut: Callable[[Chunks], Chunks] | None = None

    def call(self) -> Answer:
        """Call the handler for everything the peer has the right to. A failure becomes the API's error answer."""
        try:
            services = self.ctx.services
            # The common broker: no closure is made for a request.
            if services.rights is None and services.quotas is None:
                return handled(self.ctx, self.api.handler, self.request)
            handler = self._metered(services.quotas)
            asking = self.ctx.asking
            if asking is None:
                return handler(self.request)
            sliced, close = self.ctx.services.sliced_thread, self.ctx.connection.close
            if not self._is_large:
                return rights_guard.guarded(asking, self.request, handler, self.failed, sliced, close)
            self.ctx.holds_back = True
            return rights_guard.guarded_in_slices(asking, self.request, handler, self.failed, sliced, close)
        except Exception as error:
            return self.failed(error)

    def _metered(self, quotas: Quotas | None) -> Callable[[Message], Answer]:
        """Return the handler, wrapped to count usage where a quota may apply."""
        handler = partial(handled, self.ctx, self.api.handler)
        if quotas is None:
            return handler

        return (
            partial(quota_checks.metered, self.ctx, quotas, handler) if self.api.declared.quota is not None else handler
        )

    def encoded(self, answer: Answer) -> Chunks | Parked | None:
        """The reply frame of the handler's answer, once there is one."""
        if isinstance(answer, Message):
            return self._encode(answer)
        if answer is None:
            self._count(None)
            return None
        if isinstance(answer, Promised) and not answer.done():
            promised = Parked(holds_back=self.ctx.holds_back)
            answer.then = lambda message: promised.follow(self._encode(message))
            return promised
        future = answer if isinstance(answer, asyncio.Future) else asyncio.ensure_future(answer)
        # Done already: the reply takes its place without being parked.
        if future.done():
            return self._finished(future)
        parked = Parked(holds_back=self.ctx.holds_back)
        future.add_done_callback(lambda done: parked.follow(self._finished(done)))
        return parked

    def failed(self, error: BaseException) -> Message | None:
        """Log the exception, and return the API's error answer; where none is due, the connection closes."""
        code = getattr(error, "code", None)
        if not isinstance(code, int):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            if self._failures.allows():
                self._log(error)
        answer = error_answers.error_answer(self.api.key, self.ctx.version, self.request, int(code))
        if answer is None:
            self.ctx.connection.close()
        return answer

    def _log(self, error: BaseException) -> None:
        """Write one line and the places of the traceback; text from the peer is escaped and cut."""
        places = "".join(traceback.format_tb(error.__traceback__)).replace("%", "%%")
        log.error(
            f"%s v%d from client %s, correlation id %d, failed: %s: %s\n{places}",
            self.api.name,
            self.ctx.version,
            ascii(self.ctx.client_id),
            self.correlation_id,
            type(error).__name__,
            ascii(str(error))[:COMPLAINT_CHARACTERS_MAX],
        )

    def _finished(self, future: asyncio.Future[Message | None]) -> Chunks | Parked | None:
        if future.cancelled():
            return None
        error = future.exception()
        message = future.result() if error is None else self.failed(error)
        if message is None:
            self._count(None)
            return None
        return self._encode(message)

    def _count(self, message: Message | None) -> None:
        self.ctx.services.traffic.answered(self.api.key, self._began, message)
        if self._is_large:
            self._let_go(self.request)

    def _let_go(self, message: Message) -> None:
        """Free a large message in slices; the APIs that may name very many partitions keep nothing of theirs."""
        if self.api.elements_max > ELEMENTS_MAX:
            self.ctx.services.turns.work_off(let_go(message))

    def _encode(self, message: Message) -> Chunks | Parked | None:
        try:
            frame = encode_response(
                self.api.key, self.ctx.version, self.correlation_id, message, Writer(QUICK_ELEMENTS)
            )
            self._count(message)
            return frame if self.cut is None else self.cut(frame)
        except TooManyElements:
            return self._encode_in_slices(message)
        except Exception as error:
            return self._frame_of_failure(error, message)

    def _encode_in_slices(self, message: Message) -> Parked:
        parked = Parked(holds_back=True)
        encoding = self.ctx.services.sliced_thread().run(lambda pause: self._frame(message, Writer(pause=pause)))
        encoding.add_done_callback(lambda done: parked.finish(self._encoded_in_slices(done, message)))
        return parked

    def _encoded_in_slices(self, done: asyncio.Future[Chunks], message: Message) -> Chunks | None:
        if done.cancelled():
            return None
        error = done.exception()
        if error is not None:
            return self._frame_of_failure(error, message)
        self._count(message)
        self._let_go(message)
        return self._cut(done.result())

    def _frame_of_failure(self, error: BaseException, message: Message) -> Chunks | None:
        """The message with shorter texts if that suffices, else the error answer, else no connection."""
        answer = message if error_answers.shortened(message) else self.failed(error)
        self._count(answer)
        try:
            return None if answer is None else self._cut(self._frame(answer, Writer()))
        except Exception as again:
            self.ctx.connection.refuse(f"{self.api.name} cannot be answered: {again}")
            return None

    def _frame(self, message: Message, writer: Writer) -> Chunks:
        return encode_response(self.api.key, self.ctx.version, self.correlation_id, message, writer)

    def _cut(self, chunks: Chunks) -> Chunks:
        return chunks if self.cut is None else self.cut(chunks)


@cache
def _replies(api_key: int, version: int) -> Replies:
    """By error code, the frame of a response that consists of an error code alone."""
    replies = {}
    for code in ErrorCode:
        message = SERVED[api_key].response(error_code=int(code))  # type: ignore[call-arg]  # a Message of one field
        frame = b"".join(encode_response(api_key, version, 0, message))
        replies[int(code)] = (frame[:4], frame[8:])
    return replies


class Interceptor(Protocol):
    """May answer requests in place of their handlers, as long as it is active."""

    @property
    def active(self) -> bool:
        """Does it have to see requests now?"""
        ...

    def intercept(self, exchange: Exchange) -> Answer:
        """Answer the request, or let its handler do so (`Exchange.call`)."""
        ...


class Dispatcher:
    """Answers the frames of the connections to one listener of a node."""

    frame_bytes_min = REQUEST_BYTES_MIN

    def __init__(self, services: Services, node: Node, listener: str, interceptor: Interceptor) -> None:
        self._services = services
        self._requests = services.traffic.requests
        self._node = node
        self._listener = listener
        self._loop = services.cluster.loop
        self._interceptor = interceptor
        self._complaints = RateLimit(services.cluster.loop)
        self._failures = RateLimit(services.cluster.loop)
        self.memo = Memo(pause=interceptor)
        if services.rights is not None:
            services.rights.on_change(self.memo.clear)
        self.frame_bytes_max = services.cluster.config.int("socket.request.max.bytes")

    def dispatch(self, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        """Answer one frame. Raises MalformedRequest when the connection has to be closed."""
        api_key, version, correlation_id, client_id, reader = read_request_header(frame)
        api = SERVED.get(api_key)
        if api is None or not api.min_version <= version <= api.max_version:
            return _unsupported(api_key, version, correlation_id)
        # A first limit for all: a message that exceeds it begins again in slices, under the limit of its API.
        reader.allow(QUICK_ELEMENTS if api.elements_max > QUICK_ELEMENTS else api.elements_max)
        start = api, version, correlation_id, client_id
        try:
            request = api.request.read(reader, version)  # what follows is ignored, see decision 90
        except TooManyElements:
            return self._read_in_slices(connection, frame, start)
        return self._answer(connection, frame, start, request)

    def _read_in_slices(self, connection: ConnectionHandle, frame: Buffer, start: RequestStart) -> Parked:
        """Go on with the request once it is read; meanwhile later ones of the connection wait."""
        parked = Parked(holds_back=True)

        def go_on(done: asyncio.Future[Message]) -> None:
            if done.cancelled():
                parked.finish(None)
            # The second limit: it did not fit into what is served in slices beside others.
            elif isinstance(done.exception(), TooManyElements) and start[0].alone_max:
                self._services.one_at_a_time().run(
                    lambda ended: self._serve_alone(connection, frame, start, parked, ended)
                )
            elif done.exception() is not None:
                connection.refuse(str(done.exception()))
            else:
                parked.follow(self._answer(connection, frame, start, done.result(), is_large=True))

        self._read(frame, start, start[0].elements_max).add_done_callback(go_on)
        return parked

    def _read(self, frame: Buffer, start: RequestStart, elements_max: int) -> asyncio.Future[Message]:
        """The request, read in slices. Fails with MalformedRequest."""

        api, version, _, _ = start

        def read(pause: Callable[[], None]) -> Message:
            reader = read_request_header(frame)[-1]
            reader.allow(elements_max)
            reader.pause = pause
            return api.request.read(reader, version)

        return self._services.sliced_thread().run(read)

    def _serve_alone(
        self,
        connection: ConnectionHandle,
        frame: Buffer,
        start: RequestStart,
        parked: Parked,
        ended: Callable[[], None],
    ) -> None:
        """Read a very large request in its turn and answer it, then call `ended`."""
        outcome: Chunks | Parked | None = None

        def end() -> None:
            try:
                parked.finish(outcome.chunks if isinstance(outcome, Parked) else outcome)
            finally:
                ended()

        def go_on(done: asyncio.Future[Message]) -> None:
            nonlocal outcome
            if not done.cancelled() and done.exception() is not None:
                connection.refuse(str(done.exception()))
            elif not done.cancelled():
                outcome = self._answer(connection, frame, start, done.result(), is_large=True)
            if isinstance(outcome, Parked) and not outcome.done:
                outcome.on_done = end
            else:
                end()

        # It may have waited long for its turn; there is no peer left to answer.
        if connection.closed:
            end()
        else:
            self._read(frame, start, start[0].alone_max).add_done_callback(go_on)

    def _answer(
        self,
        connection: ConnectionHandle,
        frame: Buffer,
        start: RequestStart,
        request: Message,
        *,
        is_large: bool = False,
    ) -> Chunks | Parked | None:
        api, version, correlation_id, client_id = start
        # Both by position: keywords in the call of a class cost 2,000 instructions more.
        ctx = RequestContext(
            self._services,
            self._node,
            api.key,
            version,
            (client_id or "")[:CLIENT_ID_CHARACTERS_MAX],
            connection,
            self._listener,
            len(frame),
        )
        self._requests[api.key, version] += 1
        exchange = Exchange(api, ctx, request, correlation_id, self._failures, is_large)
        answer = self._interceptor.intercept(exchange) if self._interceptor.active else exchange.call()
        # Only frames that are bytes of their own: a view would change under the memo.
        if ctx.shortcut is not None and isinstance(frame, bytes):
            tally = self._services.traffic.tally(api.key, version)
            connection.recall.learn(frame, ctx.shortcut, _replies(api.key, version), tally)
        return exchange.encoded(answer)

    def complain(self, client_host: str, reason: str) -> None:
        """One line about bad input, at most ten in ten seconds; the peer's bytes are escaped and cut."""
        if self._complaints.allows():
            log.warning(
                "closed the connection from %s: %s", client_host, ascii(reason)[1:-1][:COMPLAINT_CHARACTERS_MAX]
            )


def _unsupported(api_key: int, version: int, correlation_id: int) -> Chunks:
    """Answer an ApiVersions request of a later version as version 0: otherwise its sender could not recover."""
    # Kafka closes the connection, too: a client asks for the versions first.
    if api_key != API_VERSIONS:
        raise MalformedRequest(f"api key {api_key} version {version} is not served")

    return encode_response(API_VERSIONS, 0, correlation_id, api_versions_handler.unsupported_version())
