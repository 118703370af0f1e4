"""One connection of a client to one broker: connect, negotiate versions, many requests in flight.

`Connection.open` connects and asks ApiVersions; `send` awaits one answer, `post` returns a future. Whatever goes wrong
on the wire (reset, timeout, an answer that makes no sense) closes the connection and fails everything waiting with
`Disconnected`; the caller decides what follows. (Kafka: NetworkClient, Selector.)
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from struct import error as StructError
from typing import TYPE_CHECKING, Any, TypeVar, cast

from partita.errors import AuthenticationError, KafkaError
from partita.net import names, refusals
from partita.net.access import Access
from partita.net.config import ClientConfig
from partita.net.errors import Disconnected, RequestTimedOut, VersionMismatch, WrongBroker
from partita.net.frames import FrameReceiver
from partita.net.metrics import Traffic
from partita.protocol import framing
from partita.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from partita.protocol.primitives import Buffer, MalformedRequest, Message, Reader, Request, Structure

if TYPE_CHECKING:
    from partita.net.secured.login import Login

SOFTWARE_NAME = "partita"
SOFTWARE_VERSION = "0.1.0"
THROTTLE_MS_MAX = 30_000
_UNSUPPORTED_VERSION, _REBOOTSTRAP_REQUIRED = 35, 129
_API_VERSIONS = 18
_REMEMBERED_BYTES = 4096
_LOGIN_APIS = (17, 36)
_RENEWED_FROM_MS = 1_000
"""A login that lasts less is not renewed: the broker closes the connection, and the next one logs in."""
_IN_USE_S = 10.0
"""A broker closes connections that are idle for much longer."""
_RENEWAL_MS_MAX = 86_400_000
_ACCEPTANCE = "does not accept the connection"
_HANDSHAKE = "accepts connections, and does not answer the TLS handshake"
_ANSWER = "accepts connections, and answers nothing: it hangs, or is no Kafka broker"
_LOGIN = "answers, but does not finish the login"
R = TypeVar("R", bound=Message)


@dataclass(slots=True)
class _InFlight:
    future: asyncio.Future[Any]
    """`Any`, as one table holds the requests of every API; `post` gives each future its type."""
    response_class: type[Message]
    api_key: int
    version: int
    flexible: bool
    deadline: float
    sent_at: float


class Connection(asyncio.BufferedProtocol):
    """Use `await Connection.open(host, port, config)`. Not thread safe: it belongs to the loop that opened it."""

    def __init__(self, host: str, port: int, config: ClientConfig) -> None:
        self.host = host
        self.port = port
        self.versions: dict[int, tuple[int, int]] = {}
        self.finalized_features: dict[str, int] = {}
        """The level of each feature that the cluster has agreed on, as of `features_epoch`."""
        self.features_epoch = -1
        self.api_versions_version = ApiVersionsRequest.MAX_VERSION
        """The version of ApiVersions that this broker answers."""
        self.is_typical = True
        """False once another connection to the same address has found other versions there."""
        self.lacks = _ACCEPTANCE
        """The step that is waited for while the connection is opened, as the end of a sentence about the broker."""
        self.last_used = 0.0
        self.was_in_use = False
        """True once the connection has failed while requests waited for answers, or soon after one was sent."""
        self.throttled: Callable[[int], None] | None = None
        """Hears for how many ms the broker asks to be sent nothing."""
        self.traffic: Traffic | None = None
        """Counter of traffic, if any."""
        self._meant: tuple[str, int] | None = None
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReceiver(config.response_max_bytes)
        self._in_flight: dict[int, _InFlight] = {}
        self._next_id = 0
        self._transport: asyncio.Transport | None = None
        self._access: Access | None = None
        self._failure: KafkaError | None = None
        self._answers = 0
        self._lost_by: Exception | None = None
        self._renewal: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._is_renewing = False
        self._was_closed_by_broker = False
        self._timer: asyncio.TimerHandle | None = None
        self._muted_until = 0.0
        self._held_back: list[Buffer] = []
        self.closed: asyncio.Future[None] = self._loop.create_future()

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        config: ClientConfig,
        *,
        access: Access | None = None,
        setup_timeout_ms: int | None = None,
        like: Connection | None = None,
        meant: tuple[str, int] | None = None,
        begun: Callable[[Connection], None] | None = None,
    ) -> Connection:
        """Connect, agree on versions and log in. Raises Disconnected, VersionMismatch, TlsError, AuthenticationError.

        The broker is asked whether it is the cluster and node that are `meant`; if not, this raises WrongBroker.

        `begun` is given the connection before it connects, so that `lacks` can be read while this waits.

        Without `access` one is made of the config's security, which loads its certificates for this connection alone.
        `like` is an open connection to the same address: its versions hold here, too, unless this broker's own answer
        says otherwise, and then the connection fails. So without a login no round trip is spent on them.
        """
        timeout = (setup_timeout_ms or config.socket_connection_setup_timeout_ms) / 1000
        connection = cls(host, port, config)
        connection._meant = meant
        if begun is not None:
            begun(connection)
        connection._access = access = access or Access(config.security)
        try:
            async with asyncio.timeout(timeout):
                await connection._connect(access)
        except TimeoutError:
            raise Disconnected(f"no connection to {host}:{port} within {timeout:g} s") from None
        try:
            if like is not None and access.login is None:
                connection._assume_versions_of(like)
                return connection
            connection.lacks = _ANSWER
            await connection._negotiate()
            if access.login is not None:
                connection.lacks = _LOGIN
                connection._renew_after(access.login, await access.login.log_in(connection))
        except BaseException:
            connection.close()
            raise
        connection._answers = 0
        return connection

    async def _connect(self, access: Access) -> None:
        host, port, protocol = self.host, self.port, access.security.protocol
        context = access.tls_context()
        name = None if context is None else host
        try:
            endpoint = await names.connect(host, port)
        except (OSError, UnicodeError) as error:
            raise Disconnected(f"cannot connect to {host}:{port}: {names.reason(error)}") from None
        if context is not None:
            self.lacks = _HANDSHAKE
        try:
            await self._loop.create_connection(lambda: self, sock=endpoint, ssl=context, server_hostname=name)
        except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError) as error:
            if context is None:
                raise Disconnected(f"cannot connect to {host}:{port}: {error}") from None
            failure = await asyncio.to_thread(refusals.handshake_failed, host, port, protocol, error)
            raise failure from None
        except OSError as error:
            raise Disconnected(f"cannot connect to {host}:{port}: {names.reason(error)}") from None

    @property
    def failure(self) -> KafkaError | None:
        """Why the connection ended; None while it is open."""
        return self._failure

    @property
    def address(self) -> str:
        """host:port, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def was_cut_off(self) -> bool:
        """True if a connection without SASL ended before any request but ApiVersions was answered."""
        closed = self._was_closed_by_broker and self._next_id > 1
        has_login = self._access is not None and self._access.login is not None
        return closed and self._answers == 0 and not has_login

    @property
    def was_answered(self) -> bool:
        """True once the broker has answered a request behind ApiVersions and the login."""
        return self._answers > 0

    @property
    def is_open(self) -> bool:
        """True from the moment the socket is connected until it is closed or fails."""
        return self._failure is None and self._transport is not None

    @property
    def has_login_that_ends(self) -> bool:
        """Whether this connection renews its login."""
        return self._renewal is not None

    @property
    def in_flight_count(self) -> int:
        """Number of unanswered requests."""
        return len(self._in_flight)

    def version_for(self, message: Request[Any], max_version: int | None = None) -> int:
        """The highest version of this request both sides speak, at most `max_version`. Raises VersionMismatch."""
        low, high = self.versions.get(message.API_KEY, (0, -1))
        newest = message.MAX_VERSION if max_version is None else min(max_version, message.MAX_VERSION)
        best: int = min(high, newest)
        if best < max(low, message.MIN_VERSION):
            name, broker = type(message).__name__.removesuffix("Request"), f"the broker at {self.host}:{self.port}"
            if high < 0:
                raise VersionMismatch(f"{broker} does not serve {name}; it takes another release of Kafka")
            versions = f"{low} to {high} of {name}, and this client speaks {message.MIN_VERSION} to {newest}"
            raise VersionMismatch(f"{broker} serves versions {versions}")
        return best

    async def send(
        self,
        message: Request[R],
        version: int | None = None,
        *,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Send a request and return its answer. Without `version` the highest common one, at most `max_version`."""
        return await self.post(message, version, max_version=max_version, timeout_ms=timeout_ms)

    def post(
        self,
        message: Request[R],
        version: int | None = None,
        *,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[R]:
        """As `send`, without waiting: the future holds the answer, or Disconnected."""
        version = self.version_for(message, max_version) if version is None else version
        correlation_id = self._write(message, version)
        timeout = (self._config.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        now = self._loop.time()
        self.last_used = now
        future: asyncio.Future[R] = self._loop.create_future()
        flexible_from = message.FLEXIBLE_FROM
        self._in_flight[correlation_id] = _InFlight(
            future,
            response_class_of(type(message)),
            message.API_KEY,
            version,
            flexible_from is not None and version >= flexible_from and message.API_KEY != _API_VERSIONS,
            now + timeout,
            now,
        )
        if self._timer is None or self._timer.when() > now + timeout:
            self._arm(now + timeout)
        return future

    def tell(self, message: Request[Any], version: int | None = None) -> None:
        """Send a request that gets no answer (Produce with acks=0)."""
        self._write(message, self.version_for(message) if version is None else version)

    def close(self) -> None:
        """Close now; requests under way fail with Disconnected."""
        if self._transport is not None:
            self._transport.close()
        self._fail(Disconnected(f"connection to {self.host}:{self.port} was closed"))

    def _write(self, message: Request[Any], version: int) -> int:
        if self._failure is not None or self._transport is None:
            raise Disconnected(f"connection to {self.host}:{self.port} is closed") from self._failure
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        try:
            chunks = framing.encode_request(message.API_KEY, version, self._next_id, self._config.client_id, message)
        except StructError as error:
            raise ValueError(f"{type(message).__name__} cannot be sent: {_wrong_number(message) or error}") from error
        if self.traffic is not None:
            self.traffic.sent(sum(map(len, chunks)), self._loop.time() * 1000)
        if (self._muted_until or self._is_renewing) and message.API_KEY not in _LOGIN_APIS and self._held(chunks):
            return self._next_id
        self._transport.writelines(chunks)
        return self._next_id

    def _held(self, chunks: list[Buffer]) -> bool:
        """A connection that is throttled, or renews its login, keeps requests back until that is over."""
        if self._is_renewing:
            self._held_back += chunks
            return True
        wait = self._muted_until - self._loop.time()
        if wait <= 0 and not self._held_back:
            self._muted_until = 0.0
            return False
        if not self._held_back:
            self._loop.call_later(max(wait, 0), self._release)
        self._held_back += chunks
        return True

    def _release(self) -> None:
        if self._is_renewing:
            return
        held, self._held_back = self._held_back, []
        self._muted_until = 0.0
        if self.is_open and self._transport is not None:
            self._transport.writelines(held)

    async def _negotiate(self) -> None:
        try:
            await self._agree_on_versions()
        except RequestTimedOut:
            within = f"no answer in {self._config.request_timeout_ms} ms"
            raise Disconnected(f"{self.address} {self.lacks} ({within})") from None
        except Disconnected:
            if self._was_closed_by_broker and self._answers == 0 and self._access is not None:
                protocol = self._access.security.protocol
                raise refusals.closed_before_answer(self.address, protocol, self._lost_by) from None
            raise

    def _assume_versions_of(self, like: Connection) -> None:
        """Ask for the versions without waiting; requests may follow at once, behind this one."""
        self.versions, self.finalized_features = like.versions, like.finalized_features
        self.features_epoch = like.features_epoch
        self._answers = -1
        self.api_versions_version = like.api_versions_version
        asked = self.post(_asking(), like.api_versions_version)
        asked.add_done_callback(lambda answered: self._compare_versions(like, answered))

    def _compare_versions(self, like: Connection, answered: asyncio.Future[ApiVersionsResponse]) -> None:
        if answered.cancelled() or answered.exception() is not None:
            return
        before, answer = self.versions, answered.result()
        if not answer.error_code:
            self._take_versions(answer)
        if answer.error_code or self.versions != before:
            like.is_typical = False
            self._fail(Disconnected(f"{self.address} speaks other versions than a moment ago"))

    def _take_versions(self, answer: ApiVersionsResponse) -> None:
        self.versions = {a.api_key: (a.min_version, a.max_version) for a in answer.api_keys}
        self.finalized_features = {f.name: f.max_version_level for f in answer.finalized_features}
        self.features_epoch = answer.finalized_features_epoch

    async def _agree_on_versions(self) -> None:
        request = _asking()
        if self._meant is not None:
            request.cluster_id, request.node_id = self._meant
        answer = await self.send(request, ApiVersionsRequest.MAX_VERSION)
        if answer.error_code == _UNSUPPORTED_VERSION:
            offered = next((a.max_version for a in answer.api_keys if a.api_key == _API_VERSIONS), 0)
            self.api_versions_version = max(0, min(offered, ApiVersionsRequest.MAX_VERSION))
            answer = await self.send(request, self.api_versions_version)
        if answer.error_code == _REBOOTSTRAP_REQUIRED and self._meant is not None:
            cluster, node = self._meant
            raise WrongBroker(f"{self.address} is not broker {node} of cluster {cluster!r} any more")
        if answer.error_code:
            raise VersionMismatch(f"{self.host}:{self.port} answered ApiVersions with error {answer.error_code}")
        self._take_versions(answer)

    def _renew_after(self, login: Login, lifetime_ms: int) -> None:
        """Renew the login at 85 to 95 % of its life. (KIP-368)"""
        if lifetime_ms >= _RENEWED_FROM_MS and self.is_open:
            wait_ms = min(lifetime_ms, _RENEWAL_MS_MAX) * random.uniform(0.85, 0.95)
            self._renewal = self._loop.call_later(wait_ms / 1000, self._begin_renewal, login)

    def _begin_renewal(self, login: Login) -> None:
        self._renewal = self._loop.create_task(self._renew(login))

    async def _renew(self, login: Login) -> None:
        """New requests wait meanwhile; those that were sent are answered in their order."""
        self._is_renewing = True
        started = self._loop.time()
        try:
            lifetime_ms = await login.log_in(self)
        except (AuthenticationError, Disconnected) as error:
            self._is_renewing = False
            if self.traffic is not None:
                self.traffic.renewed(None, self._loop.time() * 1000)
            self._fail(Disconnected(f"the login at {self.address} could not be renewed: {error}"))
            return
        self._is_renewing = False
        if self.traffic is not None:
            self.traffic.renewed((self._loop.time() - started) * 1000, self._loop.time() * 1000)
        if not self._muted_until:
            self._release()
        self._renew_after(login, lifetime_ms)

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected: set its options. (asyncio)"""
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._config.send_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._config.send_buffer_bytes)
            if self._config.receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._config.receive_buffer_bytes)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Buffer for the next bytes. (asyncio)"""
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived: answer every request whose response is complete. (asyncio)"""
        try:
            for frame in self._frames.received(nbytes):
                self._answer(frame)
        except (MalformedRequest, KeyError, ValueError) as error:
            head = self._frames.head() if self._answers == 0 else b""
            if self._access is not None and refusals.is_tls_alert(head):
                self._fail(refusals.speaks_tls(self.address, self._access.security.protocol))
            elif refusals.speaks_text(head):
                self._fail(refusals.no_broker(self.address, head))
            else:
                self._fail(Disconnected(f"{self.host}:{self.port} sent what is no answer of ours: {error}"))

    def eof_received(self) -> bool:
        """The broker closed its side; so do we. (asyncio)"""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone: fail every request that waits. (asyncio)"""
        self._was_closed_by_broker = self._failure is None
        self._lost_by = exc
        reason = f": {exc}" if exc else ""
        self._fail(Disconnected(f"{self.host}:{self.port} closed the connection{reason}"))

    def _answer(self, frame: Buffer) -> None:
        reader = Reader(frame)
        correlation_id = reader.int32()
        waiting = self._in_flight.pop(correlation_id, None)
        if waiting is None:
            raise MalformedRequest(f"answer to correlation id {correlation_id}, which nobody asked")
        try:
            if waiting.flexible:
                reader.skip_tags()
            version = 0 if waiting.api_key == _API_VERSIONS and _refused(reader) else waiting.version
            is_known = waiting.api_key == _API_VERSIONS and len(frame) <= _REMEMBERED_BYTES
            read = _read_again if is_known else waiting.response_class.read
            response = read(reader, version)
        except Exception as error:
            if not waiting.future.done():
                waiting.future.set_exception(Disconnected(f"unreadable {waiting.response_class.__name__}: {error}"))
            raise
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._muted_until = self._loop.time() + min(throttle_ms, THROTTLE_MS_MAX) / 1000
            if self.throttled is not None:
                self.throttled(throttle_ms)
        self._answers += 1
        if self.traffic is not None:
            now = self._loop.time()
            self.traffic.answered(len(frame) + 4, (now - waiting.sent_at) * 1000, now * 1000)
        if not waiting.future.done():
            waiting.future.set_result(response)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        if not self._in_flight:
            return
        first = min(self._in_flight.values(), key=lambda w: w.deadline)
        if first.deadline <= self._loop.time():
            name = first.response_class.__name__
            self._fail(RequestTimedOut(f"no {name} from {self.host}:{self.port} in time; connection closed"))
        else:
            self._arm(first.deadline)

    def _fail(self, failure: KafkaError) -> None:
        if self._failure is not None:
            return
        self._failure = failure
        if self._renewal is not None:
            self._renewal.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort() if not self._transport.is_closing() else None
        waiting, self._in_flight = self._in_flight, {}
        self.was_in_use = bool(waiting) or self._loop.time() - self.last_used < _IN_USE_S
        for request in waiting.values():
            if not request.future.done():
                request.future.set_exception(type(failure)(*failure.args))
        if not self.closed.done():
            self.closed.set_result(None)


def response_class_of(request_class: type[Message]) -> type[Message]:
    """The class of the answer: FetchResponse for FetchRequest, from the same module."""
    module = sys.modules[request_class.__module__]
    return cast(type[Message], getattr(module, request_class.__name__.removesuffix("Request") + "Response"))


def _asking() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)


def _read_again(reader: Reader, version: int) -> ApiVersionsResponse:
    """The answer to ApiVersions: a broker gives every connection the same one, of 150 objects that nothing changes."""
    return _versions(bytes(reader.buf[reader.pos :]), version)


@lru_cache(maxsize=8)
def _versions(body: bytes, version: int) -> ApiVersionsResponse:
    return ApiVersionsResponse.read(Reader(body), version)


def _refused(reader: Reader) -> bool:
    """An ApiVersions answer to a version the broker lacks has the layout of version 0."""
    start = reader.pos
    code = reader.int16()
    reader.pos = start
    return code == _UNSUPPORTED_VERSION


def _wrong_number(part: Structure) -> str | None:
    """The first field of a message that should be a number and is none."""
    usual = type(part)()
    for name in part.__slots__:
        value = getattr(part, name)
        if isinstance(getattr(usual, name), int) and not isinstance(value, int):
            return f"{name} must be a whole number, not {value!r}"
        parts = value if isinstance(value, list) else [value]
        found = next(filter(None, (_wrong_number(one) for one in parts if isinstance(one, Structure))), None)
        if found:
            return found
    return None
