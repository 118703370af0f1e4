"""TLS inside the node's own sockets: a transport whose bytes pass through a non-blocking `SSLSocket`.

Differences from plain sockets: OpenSSL may hold decrypted bytes that epoll knows nothing of, so a transport that stops
reading early asks for another look; reading may have to write and writing to read; a slice that was refused must be
offered again as it was. (security.md 3.2.) OpenSSL begins when the first record of the handshake is there as a whole:
its buffers are large, and half a record is kept by the kernel at no cost of ours.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from partita.broker.wire.sockets import READABLE, WRITABLE, Sockets, SocketTransport
from partita.protocol.primitives import Buffer

READ_AT_ONCE_BYTES = 64 * 1024
"""A peer's fair share of one wake-up; the rest waits for the next one."""
SLICE_BYTES = 256 * 1024
"""Bytes encrypted in one call; OpenSSL wants the very same bytes again when the peer does not take them."""
_HANDSHAKE = 22
"""The type of the record that a handshake begins with."""
_HEADER_BYTES = 5
_RECORD_BYTES_MAX = _HEADER_BYTES + 16 * 1024


class Secured(Protocol):
    """The callbacks that the protocol of a TLS connection needs."""

    def secured(self, endpoint: ssl.SSLSocket) -> None:
        """The handshake is done; the endpoint knows the peer's certificate. May close the connection."""
        ...


class TlsTransport(SocketTransport):
    """One accepted connection. The protocol gets it at once, bytes after the handshake, and never ciphertext.

    `handshake_failed` gets the reason of a failed handshake. Deadlines are the protocol's affair.
    """

    __slots__ = (
        "_awaited_bytes", "_context", "_handshake_failed", "_is_secured", "_offered", "_wants_read_to_write",
        "_wants_write_to_read",
    )  # fmt: skip

    def __init__(
        self,
        sockets: Sockets,
        endpoint: socket.socket,
        address: object,
        protocol: asyncio.BufferedProtocol,
        *,
        context: ssl.SSLContext,
        handshake_failed: Callable[[object, OSError], None],
    ) -> None:
        super().__init__(sockets, endpoint, address, protocol)
        self._send = self._encrypt
        self._context = context
        self._awaited_bytes = 0
        """Bytes of the first record that epoll was asked to wait for."""
        self._handshake_failed = handshake_failed
        self._is_secured = False
        self._offered: memoryview | None = None
        """The slice that OpenSSL has begun to send."""
        self._wants_read_to_write = False
        self._wants_write_to_read = False

    @property
    def _secure(self) -> ssl.SSLSocket:
        assert isinstance(self._endpoint, ssl.SSLSocket)
        return self._endpoint

    def resume_reading(self) -> None:
        """Read again, first the bytes that are decrypted already."""
        super().resume_reading()
        if self._is_secured and not self._is_lost and self._secure.pending():
            self._sockets.look_again(self)

    def on_ready(self, events: int) -> None:
        """Act on epoll's events: go on with the handshake, send the rest, receive more."""
        if not self._is_secured:
            if self._is_lost or not (isinstance(self._endpoint, ssl.SSLSocket) or self._has_begun()):
                return
            if self._sockets.may_shake_hands():
                self._shake_hands()
            return
        if self._unsent and (events & WRITABLE or self._wants_read_to_write):
            self._wants_read_to_write = False
            self._send_rest()
        if events & ~WRITABLE or self._wants_write_to_read:
            self._wants_write_to_read = False
            if not (self._is_paused or self._is_closing):
                self._receive()
            else:
                self._watch()

    def look(self) -> None:
        """Receive bytes that OpenSSL has decrypted already."""
        if not (self._is_lost or self._is_paused or self._is_closing) and self._secure.pending():
            self._receive()

    def _has_begun(self) -> bool:
        """Whether the first record is there; if not, epoll waits for so many bytes.

        Epoll may wake up with fewer: the peer has closed, or the kernel lacks memory. Then OpenSSL has the word.
        """
        try:
            begun = self._endpoint.recv(_RECORD_BYTES_MAX, socket.MSG_PEEK)
            needed = first_record_bytes(begun)
            if begun and len(begun) < needed and self._awaited_bytes < needed:
                self._endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed)
                self._awaited_bytes = needed
                return False
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lose(error)
            return False
        return True

    def _wrap(self) -> None:
        """Let OpenSSL take over the socket. Raises OSError when the peer is gone already."""
        if self._awaited_bytes:
            self._endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        bare = self._endpoint
        try:
            self._endpoint = self._context.wrap_socket(
                bare, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
            )
        except OSError:
            if bare.fileno() < 0:
                self._watched = 0  # the descriptor is closed, and epoll has forgotten it
            raise

    def _shake_hands(self) -> None:
        try:
            if not isinstance(self._endpoint, ssl.SSLSocket):
                self._wrap()
            self._secure.do_handshake()
        except ssl.SSLWantReadError:
            self._wants_write_to_read = False
            self._watch()
            return
        except ssl.SSLWantWriteError:
            self._wants_write_to_read = True
            self._watch()
            return
        except OSError as error:
            if not self._is_closing:
                self._handshake_failed(self.get_extra_info("peername"), error)
            self._lose(error)
            return
        self._is_secured = True
        self._wants_write_to_read = False
        protocol: Secured = self._protocol  # type: ignore[assignment]  # a transport with TLS is made for these only
        protocol.secured(self._secure)
        self._watch()
        if not self._is_lost and self._secure.pending():
            self._sockets.look_again(self)

    def _receive(self) -> None:
        """Fill the protocol's buffer as far as it goes: one call of OpenSSL gives at most 16 KiB."""
        protocol = self._protocol
        buffer = protocol.get_buffer(-1)
        assert isinstance(buffer, memoryview)
        count, is_over = 0, False
        room = min(len(buffer), READ_AT_ONCE_BYTES)
        try:
            while count < room:
                received = self._secure.recv_into(buffer[count:room])
                if not received:
                    is_over = True
                    break
                count += received
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            self._wants_write_to_read = True
            self._watch()
        except OSError as error:
            self._lose(error)
            return
        if count:
            self._sockets.send_gathered()
            try:
                protocol.buffer_updated(count)
            except BaseException:
                self._lose(None)
                raise
        if is_over:
            self.close()
        elif not self._is_lost and not self._is_paused and self._secure.pending():
            self._sockets.look_again(self)

    def _encrypt(self, data: Buffer) -> int:
        """Return how much of the data was taken. Refused bytes are offered again unchanged. Raises OSError."""
        view = memoryview(data)
        taken = 0
        while taken < len(view):
            offered = self._offered if self._offered is not None else view[taken : taken + SLICE_BYTES]
            try:
                sent = self._secure.send(offered)
            except ssl.SSLWantWriteError:
                self._offered = offered
                break
            except ssl.SSLWantReadError:
                self._offered = offered
                self._wants_read_to_write = True
                break
            self._offered = None
            taken += sent
        return taken

    def _wanted(self) -> int:
        """Return the epoll events: those the handshake waits for, later those of plain sockets and more."""
        if not self._is_secured:
            return 0 if self._is_closing else WRITABLE if self._wants_write_to_read else READABLE
        wanted = super()._wanted()
        if self._wants_read_to_write:
            wanted |= READABLE
        if self._wants_write_to_read and wanted & READABLE:
            wanted |= WRITABLE
        return wanted

    def _lose(self, error: OSError | None) -> None:
        """Say good-bye if that goes at once, then end."""
        if not self._is_lost and self._is_secured and error is None and self._offered is None:
            with suppress(OSError, ValueError):
                self._secure.unwrap()
        self._offered = None
        super()._lose(error)


def first_record_bytes(begun: bytes) -> int:
    """Return the size of a handshake's first record, from these first bytes; 0 if it is not a handshake.

    The whole header is asked for first. A record that claims more than the longest one is OpenSSL's to refuse.
    """
    if begun and begun[0] != _HANDSHAKE:
        return 0
    if len(begun) < _HEADER_BYTES:
        return _HEADER_BYTES
    return min(_HEADER_BYTES + int.from_bytes(begun[3:5], "big"), _RECORD_BYTES_MAX)
