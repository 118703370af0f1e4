"""The sockets of one node: an epoll of their own, which the event loop watches as one descriptor.

asyncio's transports spend more on a small request than the request itself takes (a list, a handle and a callback for
each readable socket), and copy what a peer does not take at once. Here one wake-up serves everything that is readable,
small answers leave together at the end of a round, and unsent bytes stay where they are. A peer sees no difference.
Where the system has no epoll, asyncio's transports serve instead (see `server`).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from partita.protocol.primitives import Buffer

log = logging.getLogger("partita.broker")
IS_AVAILABLE = hasattr(select, "epoll")
READABLE, WRITABLE = 1, 4
"""EPOLLIN and EPOLLOUT."""
EVENTS_AT_ONCE = 64
HANDSHAKES_AT_ONCE = 4
"""Steps of TLS handshakes in one round: each costs about as much as ten small requests."""
ROUNDS_AT_ONCE = 16
ROUNDS_SECONDS = 0.002
"""Number and duration of one wake-up's looks before the loop's other work has its turn."""
GATHERED_BELOW_BYTES = 4096
SENT_AT_ONCE_BYTES = 1 << 20
"""Bytes sent to one peer before others have their turn: the system would take 6 MB at once, and 5 ms for it."""
LARGE_READ_BYTES = 16 * 1024
"""From this size on, input is processed only after gathered output is sent."""
ACCEPTED_AT_ONCE = 64
ACCEPT_AGAIN_SECONDS = 1.0
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class MakeTransport(Protocol):
    """Makes the transport of an accepted connection: `SocketTransport`, or one that encrypts."""

    def __call__(
        self, sockets: Sockets, endpoint: socket.socket, address: object, protocol: asyncio.BufferedProtocol, /
    ) -> SocketTransport:
        """A transport that has not started. Raises OSError when the connection is gone already."""
        ...


class Sockets:
    """Listeners, and a transport for each accepted connection; `make_protocol()` gives each its protocol."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make_protocol: Callable[[], asyncio.BufferedProtocol],
        make_transport: MakeTransport | None = None,
    ) -> None:
        self.loop = loop
        self.epoll = select.epoll()
        self.transports: dict[int, SocketTransport] = {}
        self._make_protocol = make_protocol
        self._make_transport = make_transport or SocketTransport
        self._again: list[SocketTransport] = []
        self._handshakes_left = 0
        self._listeners: dict[int, socket.socket] = {}
        self._left_over: list[tuple[int, int]] = []
        self._takers: dict[int, None] = {}
        """Descriptors of peers that take more of what is unsent, in the order of their turns."""
        self.gathered: list[tuple[SocketTransport, Buffer]] | None = None
        """Small writes of this round, sent at its end: a process that holds many of the peers wakes up once."""
        # An epoll inside the loop's own: it is readable when any socket in it is, and costs the loop one event.
        loop.add_reader(self.epoll.fileno(), self._on_ready)

    def listen(self, bound: socket.socket, backlog: int) -> None:
        """Accept on a copy of this bound socket."""
        # A copy, so that the caller may keep, or close, the one that it has bound.
        listener = socket.socket(fileno=os.dup(bound.fileno()))
        listener.setblocking(False)
        listener.listen(backlog)
        self._listeners[listener.fileno()] = listener
        self.epoll.register(listener.fileno(), READABLE)

    def close(self) -> None:
        """Stop listening; connections stay."""
        for fd, listener in self._listeners.items():
            self.epoll.unregister(fd)
            listener.close()
        self._listeners.clear()
        self._end_if_idle()

    def forget(self, transport: SocketTransport) -> None:
        """A transport is gone; the next one may have its descriptor's number already."""
        # The system gives numbers of closed descriptors again at once: the entry may be another connection's.
        if self.transports.get(transport.fd) is transport:
            del self.transports[transport.fd]
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if not self._listeners and not self.transports and not self.epoll.closed:
            self.loop.remove_reader(self.epoll.fileno())
            self.epoll.close()

    def look_again(self, transport: SocketTransport) -> None:
        """Let the transport look in the loop's next turn for bytes that epoll knows nothing of."""
        self._again.append(transport)
        if len(self._again) == 1:
            self.loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        # Those that ask once more meanwhile have their turn in the next round, or one of them could keep this one
        # going.
        again, self._again = self._again, []
        for transport in again:
            transport.look()

    def may_shake_hands(self) -> bool:
        """Whether a step of a TLS handshake fits into this round; if so it is counted."""
        self._handshakes_left -= 1
        return self._handshakes_left >= 0

    def send_gathered(self) -> None:
        """Send gathered output, in order, and gather no more."""
        gathered, self.gathered = self.gathered, None
        for transport, data in gathered or ():
            transport.write(data)

    def _on_ready(self) -> None:
        end = time.perf_counter() + ROUNDS_SECONDS
        for _ in range(ROUNDS_AT_ONCE):
            ready = self._left_over or ([] if self.epoll.closed else self.epoll.poll(0, EVENTS_AT_ONCE))
            if not ready:
                return
            # A single peer gets its answer at once; for one there is nothing to gain by waiting.
            self.gathered = [] if len(ready) > 1 else None
            self._handshakes_left = HANDSHAKES_AT_ONCE
            try:
                self._left_over = self._serve(ready, end)
            finally:
                self.send_gathered()
            if self._send_rests(end):
                return

    def _send_rests(self, end: float) -> bool:
        """Send portions of large answers, one at least, until `end`; return whether that time is over.

        After the requests of the round: hundreds of peers that take 1 MB each would hold them up for seconds.
        """
        while self._takers:
            fd = next(iter(self._takers))
            del self._takers[fd]
            transport = self.transports.get(fd)
            if transport is not None:
                transport.on_ready(WRITABLE)
            if time.perf_counter() >= end:
                return True
        return time.perf_counter() >= end

    def _serve(self, ready: list[tuple[int, int]], end: float) -> list[tuple[int, int]]:
        """Serve ready sockets; return those left when the time is over. They are served first the next time."""
        transports, clock = self.transports, time.perf_counter
        for place, (fd, events) in enumerate(ready, 1):
            transport = transports.get(fd)
            if transport is not None:
                if events & WRITABLE:
                    self._takers[fd] = None
                if events & ~WRITABLE:
                    transport.on_ready(events & ~WRITABLE)
            elif fd in self._listeners:
                self._accept(fd)
            if clock() >= end:
                # epoll would report them again, but behind others that were ready later.
                return ready[place:]
        return []

    def _accept(self, fd: int) -> None:
        listener = self._listeners[fd]
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                endpoint, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                log.error("no connection can be accepted for a second: %s", error.strerror)
                self.epoll.modify(fd, 0)
                self.loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again, fd)
                return
            try:
                transport = self._make_transport(self, endpoint, address, self._make_protocol())
            except OSError:
                endpoint.close()
                continue
            transport.start()

    def _accept_again(self, fd: int) -> None:
        if fd in self._listeners:
            self.epoll.modify(fd, READABLE)


class SocketTransport(asyncio.Transport):
    """One accepted connection, for a BufferedProtocol."""

    __slots__ = (
        "_endpoint", "_high", "_is_closing", "_is_lost", "_is_paused", "_is_starting", "_protocol",
        "_protocol_paused", "_send", "_sockets", "_unsent", "_unsent_bytes", "_watched", "fd",
    )  # fmt: skip

    def __init__(
        self, sockets: Sockets, endpoint: socket.socket, address: object, protocol: asyncio.BufferedProtocol
    ) -> None:
        super().__init__({"peername": address, "socket": endpoint})
        self.fd = endpoint.fileno()
        self._sockets = sockets
        self._endpoint = endpoint
        self._send: Callable[[Buffer], int] = endpoint.send
        """Number of bytes taken. Called directly, since a repeated heartbeat costs little more than this."""
        self._protocol = protocol
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._high = 64 * 1024
        self._watched = 0
        self._is_paused = False
        self._is_closing = False
        self._is_lost = False
        self._is_starting = False
        self._protocol_paused = False

    def start(self) -> None:
        """Pass the transport to the protocol and begin to read."""
        self._endpoint.setblocking(False)
        self._endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets.transports[self.fd] = self
        self._is_starting = True
        self._protocol.connection_made(self)
        self._is_starting = False
        if self._is_lost:
            self._end(None)  # refused: its descriptor is free before the next one is accepted
        else:
            self._watch()

    # -- what a protocol uses -------------------------------------------------------------------------------------

    def write(self, data: Buffer) -> None:
        """Send at once as much as the peer takes; keep a view of the rest: it must not change until it is sent."""
        if self._is_closing:
            return
        gathered = self._sockets.gathered
        if gathered is not None:
            if len(data) < GATHERED_BELOW_BYTES:
                gathered.append((self, data))
                return
            self._sockets.send_gathered()
        sent = 0
        if not self._unsent:
            try:
                sent = self._send(data if len(data) <= SENT_AT_ONCE_BYTES else memoryview(data)[:SENT_AT_ONCE_BYTES])
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self._lose(error)
                return
            if sent == len(data):
                return
        rest = memoryview(data)[sent:]
        self._unsent.append(rest)
        self._unsent_bytes += len(rest)
        self._watch()
        if self._unsent_bytes > self._high and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def close(self) -> None:
        """Send the unsent bytes, then close."""
        if not self._is_closing:
            self._sockets.send_gathered()
            self._is_closing = True
            if self._unsent:
                self._watch()
            else:
                self._lose(None)

    def abort(self) -> None:
        """Close without sending the rest."""
        self._lose(None)

    def is_closing(self) -> bool:
        """Whether the transport is closed or about to be."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""
        self._is_paused = True
        self._watch()

    def resume_reading(self) -> None:
        """Read again."""
        self._is_paused = False
        self._watch()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Above `high` unsent bytes the protocol is paused; it goes on below a quarter of it."""
        self._high = self._high if high is None else high

    def get_write_buffer_size(self) -> int:
        """Number of unsent bytes."""
        return self._unsent_bytes

    # -- what epoll says ------------------------------------------------------------------------------------------

    def on_ready(self, events: int) -> None:
        """Act on epoll's events: send the rest, receive more."""
        if events & WRITABLE and self._unsent:
            self._send_rest()
        if self._watched & READABLE and events & ~WRITABLE:
            self._receive()

    def look(self) -> None:
        """Look for bytes that epoll knows nothing of. Here there are none."""

    def _receive(self) -> None:
        protocol: Any = self._protocol
        try:
            count = self._endpoint.recv_into(protocol.get_buffer(-1))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if not count:
            self.close()
            return
        if count >= LARGE_READ_BYTES:
            self._sockets.send_gathered()
        try:
            protocol.buffer_updated(count)
        except BaseException:
            self._lose(None)
            raise

    def _send_rest(self) -> None:
        unsent, left = self._unsent, SENT_AT_ONCE_BYTES
        try:
            while unsent and left > 0:
                piece = unsent[0][:left]
                sent = self._send(piece)
                self._unsent_bytes -= sent
                left -= sent
                if sent == len(unsent[0]):
                    unsent.popleft()
                    continue
                unsent[0] = unsent[0][sent:]
                if sent < len(piece):
                    break
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lose(error)
            return
        if self._protocol_paused and self._unsent_bytes <= self._high // 4:
            self._protocol_paused = False
            self._protocol.resume_writing()
        if not unsent and self._is_closing:
            self._lose(None)
        else:
            self._watch()

    def _watch(self) -> None:
        """Watch for usable events. Unwatched is unregistered: epoll always reports a peer that hung up."""
        if self._is_lost:
            return
        wanted = self._wanted()
        if wanted == self._watched:
            return
        epoll = self._sockets.epoll
        if not self._watched:
            epoll.register(self.fd, wanted)
        elif wanted:
            epoll.modify(self.fd, wanted)
        else:
            epoll.unregister(self.fd)
        self._watched = wanted

    def _wanted(self) -> int:
        wanted = 0 if self._is_paused or self._is_closing else READABLE
        return wanted | WRITABLE if self._unsent else wanted

    def _lose(self, error: OSError | None) -> None:
        """The connection ends here; its protocol hears of it in the loop's next turn."""
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        if self._watched:
            self._sockets.epoll.unregister(self.fd)
            self._watched = 0
        self._unsent.clear()
        self._unsent_bytes = 0
        if not self._is_starting:
            self._sockets.loop.call_soon(self._end, error)

    def _end(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._sockets.forget(self)
            self._endpoint.close()
            self._send = _gone


def _gone(data: Buffer) -> int:
    """Takes the place of a transport's own method, which would keep the transport alive."""
    raise ConnectionResetError("the connection has ended")
