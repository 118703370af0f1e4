"""One node's listener: accept within limits, keep every connection's deadlines, stop in order.

Deadlines are counted in ticks of one second: silence of `connections.max.idle.ms` closes a connection that waits for
nothing (H12), a frame begun and not finished in 30 s closes it too (H10). Must not know what is served.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from partita.broker.connection import SCRATCH_BYTES, Connection

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.dispatch import Dispatcher

TICK_SECONDS = 1.0
FRAME_TICKS_MAX = 30
DESCRIPTORS_IN_RESERVE = 128
"""Descriptors no connection gets: the logs need them. (H13)"""
BACKLOG = 1024
KEEPALIVE_IDLE_SECONDS = 120


def descriptor_limit() -> int:
    """How many connections the process's descriptors allow."""
    try:
        import resource
    except ImportError:
        return 1 << 31
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 31 if soft == resource.RLIM_INFINITY else max(16, soft - DESCRIPTORS_IN_RESERVE)


class Server:
    """Listens for one node. `scratch` is the read buffer its connections take turns with."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dispatcher: Dispatcher, config: BrokerConfig) -> None:
        self.loop = loop
        self.dispatcher = dispatcher
        self.config = config
        self.scratch = bytearray(SCRATCH_BYTES)
        self.scratch_view = memoryview(self.scratch)
        self.tick = 0
        self.frame_bytes_max = config.int("socket.request.max.bytes")
        self.connections: set[Connection] = set()
        self._descriptors = descriptor_limit()
        self._per_host: dict[str, int] = {}
        self._accepted_this_tick = 0
        self._listener: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int) -> int:
        """Start to accept; return the port (chosen by the system when 0). Raises OSError when it is taken."""
        self._listener = await self.loop.create_server(
            lambda: Connection(self), host, port, family=socket.AF_INET if host == "127.0.0.1" else 0, backlog=BACKLOG
        )
        self._timer = self.loop.call_later(TICK_SECONDS, self._on_tick)
        return int(self._listener.sockets[0].getsockname()[1])

    def connected(self, connection: Connection, transport: asyncio.Transport) -> None:
        host = connection.client_host
        reason = self._refusal(host)
        self._accepted_this_tick += 1
        self.connections.add(connection)
        self._per_host[host] = self._per_host.get(host, 0) + 1
        if reason is not None:
            self.dispatcher.complain(host, reason)
            transport.abort()
            return
        endpoint = transport.get_extra_info("socket")
        if endpoint is not None and hasattr(socket, "TCP_KEEPIDLE"):
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS)

    def disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)
        left = self._per_host.get(connection.client_host, 1) - 1
        if left:
            self._per_host[connection.client_host] = left
        else:
            self._per_host.pop(connection.client_host, None)

    def stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._timer is not None:
            self._timer.cancel()

    def close_connections(self) -> None:
        """Send what is ready on every connection, then close it."""
        for connection in list(self.connections):
            connection.close()

    def abort_connections(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    def _refusal(self, host: str) -> str | None:
        if len(self.connections) >= min(self._descriptors, self.config.int("max.connections")):
            return f"max.connections reached, {len(self.connections)} are open"
        if self._per_host.get(host, 0) >= self.config.int("max.connections.per.ip"):
            return f"max.connections.per.ip reached, {self._per_host[host]} are open from there"
        if self._accepted_this_tick >= self.config.int("max.connection.creation.rate"):
            return f"max.connection.creation.rate reached, {self._accepted_this_tick} came within a second"
        return None

    def _on_tick(self) -> None:
        self.tick += 1
        self._accepted_this_tick = 0
        self._timer = self.loop.call_later(TICK_SECONDS, self._on_tick)
        idle_ticks = self.config.int("connections.max.idle.ms") // 1000
        for connection in list(self.connections):
            if connection.frame_tick >= 0 and self.tick - connection.frame_tick > FRAME_TICKS_MAX:
                self.dispatcher.complain(connection.client_host, f"no whole frame within {FRAME_TICKS_MAX} s")
                connection.abort()
            elif self.tick - connection.seen_tick > idle_ticks and not connection.is_waiting:
                connection.close()
