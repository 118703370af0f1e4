"""One node's listener: accept within limits, keep every connection's deadlines, stop in order.

Deadlines are counted in ticks of one second: silence of `connections.max.idle.ms` closes a connection that waits for
nothing (H12), a frame begun and not finished in 30 s closes it too (H10). Then a peer has 10 s to take the unsent bytes
(H11).
"""

from __future__ import annotations

import asyncio
import mmap
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from partita.broker.wire import sockets
from partita.broker.wire.connection import SCRATCH_BYTES, Connection
from partita.lazy import later
from partita.net import names

if TYPE_CHECKING:
    from ssl import SSLContext, SSLObject, SSLSocket

    from partita.broker.config import BrokerConfig
    from partita.broker.wire import tls_transport
    from partita.broker.wire.contract import Answerer
    from partita.broker.wire.turns import Turns
    from partita.security.principals import KafkaPrincipal
else:
    tls_transport = later("partita.broker.wire.tls_transport")

TICK_SECONDS = 1.0
FRAME_TICKS_MAX = 30
LOGIN_TICKS_MAX = 10
"""Time for the TLS handshake and the login together, from the accept on. (H10)"""
CLOSE_TICKS_MAX = 10
"""Time for a peer to read the unsent bytes when its connection closes."""
DESCRIPTORS_IN_RESERVE = 128
"""Descriptors no connection gets: the logs need them. (H13)"""
BACKLOG = 1024
KEEPALIVE_IDLE_SECONDS = 120
SPARES_MAX = 4
SPARE_BYTES_MAX = 2 << 20
"""Buffers of large frames are used again: fresh memory costs more than all else that is done with the frame."""


class Certified(Protocol):
    """The certificate of a listener, and whose certificates its peers show."""

    @property
    def context(self) -> SSLContext:
        """The context for the next connection."""
        ...

    def principal(self, endpoint: SSLSocket | SSLObject) -> KafkaPrincipal:
        """Return the peer's principal. Raises NoMatchingRule."""
        ...


def descriptor_limit() -> int:
    """Number of connections that the process's descriptors allow."""
    try:
        import resource
    except ImportError:
        return 1 << 31
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 31 if soft == resource.RLIM_INFINITY else max(16, soft - DESCRIPTORS_IN_RESERVE)


class Server:
    """One listener of a node. `scratch` is the read buffer its connections take turns with.

    `per_host` counts the connections by client address; the listeners of a node share it. `turns` is shared by all
    listeners of the process. With `tls` the bytes are encrypted; with `has_login` peers log in after that.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answerer: Answerer,
        config: BrokerConfig,
        *,
        per_host: dict[str, int],
        turns: Turns,
        tls: Certified | None = None,
        has_login: bool = False,
    ) -> None:
        self.loop = loop
        self.answerer = answerer
        self.config = config
        self.turns = turns
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self._spares: list[bytearray] = []
        self.tick = 0
        self.asks_who = has_login or tls is not None
        self._tls = tls
        self._has_login = has_login
        self.connections: set[Connection] = set()
        self._descriptors = descriptor_limit()
        self._per_host = per_host
        self._login_bytes: dict[str, int] = {}
        """The announced bytes of frames that are not whole, of peers that have not logged in, by address."""
        self._accepted_this_tick = 0
        self.connects_too_fast: Callable[[str], bool] | None = None
        """Whether the quota of an address refuses one more connection now; called for each one that comes."""
        self._listeners: Sequence[sockets.Sockets | asyncio.Server] = ()
        self._timer: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int) -> int:
        """Start to accept; return the port (chosen by the system when 0). Raises OSError when it is taken."""
        bound = await names.bind(host, port)
        port = bound[0].getsockname()[1]
        if sockets.IS_AVAILABLE:
            make_transport = None if self._tls is None else self._encrypting
            own = sockets.Sockets(self.loop, lambda: Connection(self), make_transport)
            self._listeners = [own]
            for endpoint in bound:
                with endpoint:
                    own.listen(endpoint, BACKLOG)
        else:
            self._listeners = [await self._listen_by_loop(endpoint) for endpoint in bound]
        self._timer = self.loop.call_later(TICK_SECONDS, self._on_tick)
        return port

    async def _listen_by_loop(self, bound: socket.socket) -> asyncio.Server:
        encrypted: dict[str, Any] = {}
        if self._tls is not None:
            encrypted = {"ssl": self._tls.context, "ssl_handshake_timeout": LOGIN_TICKS_MAX, "ssl_shutdown_timeout": 1}
        return await self.loop.create_server(lambda: Connection(self), sock=bound, backlog=BACKLOG, **encrypted)

    def _encrypting(
        self, own: sockets.Sockets, endpoint: socket.socket, address: object, protocol: asyncio.BufferedProtocol
    ) -> sockets.SocketTransport:
        """A transport with the certificate of now. Raises OSError when the peer is gone already."""
        assert self._tls is not None, "asked for with TLS only"
        return tls_transport.TlsTransport(
            own, endpoint, address, protocol, context=self._tls.context, handshake_failed=self._handshake_failed
        )

    def _handshake_failed(self, peer: object, error: OSError) -> None:
        host = f"/{peer[0]}" if isinstance(peer, tuple) and peer else "/127.0.0.1"
        self.answerer.complain(host, f"the TLS handshake failed: {getattr(error, 'reason', None) or error}")

    def principal(self, endpoint: SSLSocket | SSLObject) -> KafkaPrincipal | None:
        """Return the peer's principal by its certificate; None where it has to log in. Raises NoMatchingRule."""
        return None if self._has_login or self._tls is None else self._tls.principal(endpoint)

    def connected(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Count a new connection, or refuse it when a limit is reached."""
        host = connection.client_host
        reason = self._refusal(host)
        self._accepted_this_tick += 1
        self.connections.add(connection)
        self._per_host[host] = self._per_host.get(host, 0) + 1
        if reason is not None:
            self.answerer.complain(host, reason)
            transport.abort()
            return
        endpoint = transport.get_extra_info("socket")
        if endpoint is not None and hasattr(socket, "TCP_KEEPIDLE"):
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS)

    def hold_login(self, host: str, count: int) -> bool:
        """Count so many bytes of an unfinished login, or of one that is over; False where its address has too many."""
        held = self._login_bytes.get(host, 0) + count
        if count > 0 and held > self.config.int("partita.login.bytes.per.ip"):
            return False
        if held:
            self._login_bytes[host] = held
        else:
            self._login_bytes.pop(host, None)
        return True

    def take_buffer(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes with arbitrary contents."""
        for place in reversed(range(len(self._spares))):
            spare = self._spares[place]
            if _is_free(spare):
                del self._spares[place]
                if len(spare) >= size:
                    return spare
        return bytearray(size)

    def give_back(self, buffer: bytearray | mmap.mmap) -> None:
        """Keep a buffer for the next large frame that comes when nobody looks at its bytes any more."""
        if len(self._spares) < SPARES_MAX and len(buffer) <= SPARE_BYTES_MAX and isinstance(buffer, bytearray):
            self._spares.append(buffer)

    def disconnected(self, connection: Connection) -> None:
        """Take a connection that is gone out of the counts."""
        self.connections.discard(connection)
        left = self._per_host.get(connection.client_host, 1) - 1
        if left:
            self._per_host[connection.client_host] = left
        else:
            self._per_host.pop(connection.client_host, None)

    def stop_listening(self) -> None:
        """Accept no more connections; existing ones stay."""
        for listener in self._listeners:
            listener.close()
        self._listeners = ()
        if self._timer is not None:
            self._timer.cancel()

    def close_connections(self) -> None:
        """Send finished replies on every connection, then close it."""
        for connection in list(self.connections):
            connection.close()

    def abort_connections(self) -> None:
        """Close every connection without sending the rest."""
        for connection in list(self.connections):
            connection.abort()

    def _refusal(self, host: str) -> str | None:
        count = len(self.connections)
        if count >= min(self._descriptors, self.config.int("max.connections")):
            return f"max.connections reached, {count} are open"
        if self._per_host.get(host, 0) >= self.config.int("max.connections.per.ip"):
            return f"max.connections.per.ip reached, {self._per_host[host]} are open from there"
        if self._accepted_this_tick >= self.config.int("max.connection.creation.rate"):
            return f"max.connection.creation.rate reached, {self._accepted_this_tick} came within a second"
        if self.connects_too_fast is not None and self.connects_too_fast(host):
            return "connection_creation_rate of the address reached"
        return None

    def _on_tick(self) -> None:
        self.tick += 1
        self._accepted_this_tick = 0
        self._timer = self.loop.call_later(TICK_SECONDS, self._on_tick)
        idle_ticks = self.config.int("connections.max.idle.ms") // 1000
        for connection in list(self.connections):
            if connection.is_closing:
                connection.closing_ticks += 1
                if connection.closing_ticks > CLOSE_TICKS_MAX:
                    connection.abort()
            elif connection.login_tick >= 0 and self.tick - connection.login_tick > LOGIN_TICKS_MAX:
                self.answerer.complain(connection.client_host, f"no login within {LOGIN_TICKS_MAX} s")
                connection.abort()
            elif connection.frame_tick >= 0 and self.tick - connection.frame_tick > FRAME_TICKS_MAX:
                self.answerer.complain(connection.client_host, f"no whole frame within {FRAME_TICKS_MAX} s")
                connection.abort()
            elif self.tick - connection.seen_tick > idle_ticks and not connection.is_waiting:
                connection.close()


def _is_free(buffer: bytearray) -> bool:
    """Whether nobody looks at the bytes: a bytearray with views refuses to change its length."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
