"""One client connection: frames in, replies out in request order.

Small frames arrive in the server's one scratch buffer; a frame that does not fit gets a buffer of its own, which grows
with the bytes received and never by the announced length. The frames of one read are answered together, as far as the
connection's turn allows, and their replies leave in one write. A client that does not read its replies is not read
from. (Kafka: KafkaChannel, Processor.)
"""

from __future__ import annotations

import asyncio
import mmap
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from partita.broker.blocks import fresh_block
from partita.broker.wire.contract import Answerer, Chunks, Parked
from partita.broker.wire.memo import Recall
from partita.broker.wire.turns import Turns
from partita.protocol.framing import check_length
from partita.protocol.primitives import Buffer, MalformedRequest
from partita.security.errors import NoMatchingRule
from partita.security.principals import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    from ssl import SSLObject, SSLSocket

SCRATCH_BYTES = 64 * 1024
"""Size of the shared read buffer."""
OWN_BUFFER_FROM_BYTES = 8 * 1024
GROWN_BYTES_MAX = 2 << 20
"""So many bytes of a frame are copied to a larger buffer at most."""
FIRST_BUFFER_BYTES = 64 * 1024
WRITE_BUFFER_HIGH_BYTES = 1024 * 1024
UNSENT_BYTES_MAX = 200 * 1024 * 1024
"""Twice the largest response: a peer that lets more pile up is cut off. (H11)"""
PARKED_MAX = 100
QUICK_BYTES_MAX = 1024
_JOIN_BELOW_BYTES = 32 * 1024
_LENGTH = Struct(">i")


class Owner(Protocol):
    """The services of the server that a connection uses.

    `scratch` is the read buffer that all its connections take turns with; `tick` counts the seconds of its deadlines.
    """

    loop: asyncio.AbstractEventLoop
    answerer: Answerer
    scratch: bytearray
    scratch_view: memoryview
    tick: int
    turns: Turns
    asks_who: bool
    """Whether a peer has to log in within `server.LOGIN_TICKS_MAX`."""

    def connected(self, connection: Connection, transport: asyncio.Transport) -> None:
        """Count the connection, or refuse it."""
        ...

    def principal(self, endpoint: SSLSocket | SSLObject) -> KafkaPrincipal | None:
        """Return the peer's principal by its certificate; None where it has to log in. Raises NoMatchingRule."""
        ...

    def disconnected(self, connection: Connection) -> None:
        """The connection is gone."""
        ...

    def hold_login(self, host: str, count: int) -> bool:
        """Count so many bytes of an unfinished login, or of one that is over; False where its address has too many."""
        ...

    def take_buffer(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes with arbitrary contents."""
        ...

    def give_back(self, buffer: bytearray | mmap.mmap) -> None:
        """Keep a buffer for the next large frame."""
        ...


class Connection(asyncio.BufferedProtocol):
    """See the module. `seen_tick` and `frame_tick` are stamps of the server's ticks, for its deadlines."""

    __slots__ = (
        "_answerer", "_is_aborted", "_is_in_line", "_largest_received", "_login_bytes", "_mute", "_on_close", "_out",
        "_out_bytes", "_own", "_own_filled", "_own_size", "_parked", "_reading_paused", "_rest", "_scratch",
        "_scratch_view", "_server", "_transport", "_turns", "_writing_paused", "client_host", "client_port", "closed",
        "closing_ticks", "frame_tick", "is_lent", "login_tick", "principal", "recall", "seen_tick", "software",
    )  # fmt: skip

    def __init__(self, server: Owner) -> None:
        self._server = server
        self._answerer = server.answerer
        self._turns = server.turns
        self._is_in_line = False
        self._mute: Parked | None = None
        self._is_aborted = False
        self._scratch = server.scratch
        self._scratch_view = server.scratch_view
        self._transport: asyncio.Transport | None = None
        self.client_host = ""
        self.client_port = 0
        self.software = ("", "")
        self.principal = ANONYMOUS
        self.is_lent = False
        self.recall: Recall
        self.closed = False
        self._on_close: list[Callable[[], None]] = []
        self._rest = b""
        self._own: bytearray | mmap.mmap | None = None
        self._own_filled = 0
        self._own_size = 0
        # How large a frame this peer has delivered in full: so much is believed at once the next time.
        self._largest_received = FIRST_BUFFER_BYTES
        self._login_bytes = 0
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._parked: deque[Parked] = deque()
        self._writing_paused = False
        self._reading_paused = False
        self.seen_tick = server.tick
        self.frame_tick = -1
        # -1 stands for "no deadline"; ticks are seconds, compared by the server's one timer for all connections.
        self.login_tick = server.tick if server.asks_who else -1
        self.closing_ticks = 0

    # -- what the server and handlers use -------------------------------------------------------------------------

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is gone; at once if it is gone already."""
        if self.closed:
            callback()
        else:
            self._on_close.append(callback)

    def identify(self, principal: KafkaPrincipal, *, is_lent: bool = False) -> None:
        """From now on the peer is this principal, and is answered from no other one's memory."""
        self.principal = principal
        self.is_lent = is_lent
        self.recall = self._answerer.memo.recall(str(principal), self.client_host)
        self.login_tick = -1

    def answer_with(self, answerer: Answerer) -> None:
        """Let another one answer the frames that follow."""
        self._answerer = answerer

    def mute(self, seconds: float) -> None:
        """Begin no later request for `seconds`. Finished replies leave at once."""
        if self._mute is None:
            self._mute = Parked(holds_back=True)
            # A mute is a reply without bytes: the queue of replies then holds later requests back by the rules it has
            # anyway.
            self._mute.on_done = self._continue
            self._server.loop.call_later(seconds, self._mute.finish, None)

    def forget(self, callback: Callable[[], None]) -> None:
        """Take back an `on_close` whose work is done."""
        if callback in self._on_close:
            self._on_close.remove(callback)

    def refuse(self, reason: str) -> None:
        """Log the malformed input; send finished replies, then close."""
        if not self.closed:
            self._answerer.complain(self.client_host, reason)
            # What the peer sent behind the malformed frame is not trusted either.
            self._rest = b""
            self.close()

    @property
    def is_waiting(self) -> bool:
        """Whether the peer waits for a reply of ours: then silence is not idleness."""
        return bool(self._parked)

    @property
    def is_closing(self) -> bool:
        """Whether it closes once the peer has taken the unsent bytes."""
        return self._transport is not None and self._transport.is_closing()

    def close(self) -> None:
        """Send finished replies, then close."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Close without sending the rest; requests that were read already are not begun any more."""
        self._is_aborted = True
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio's side -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio hands a Transport to stream protocols
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.client_host = f"/{peer[0]}" if peer else "/127.0.0.1"
        self.client_port = peer[1] if peer else 0
        self.recall = self._answerer.memo.recall(str(self.principal), self.client_host)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH_BYTES)
        self._server.connected(self, transport)
        endpoint = transport.get_extra_info("ssl_object")
        # The other TLS, `wire/tls_transport.py`, calls `secured` itself once its handshake is over.
        if endpoint is not None:  # asyncio's own TLS has shaken hands before
            self.secured(endpoint)

    def secured(self, endpoint: SSLSocket | SSLObject) -> None:
        """The TLS handshake is done: the peer is known by its certificate, or has to log in now."""
        try:
            principal = self._server.principal(endpoint)
        except NoMatchingRule as error:
            self._answerer.complain(self.client_host, str(error))
            self.abort()
            return
        if principal is not None:
            self.identify(principal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the transport when it is ready."""
        self.closed = True
        self._transport = None
        self._own = None
        # Taken off the account of the peer's address, or a hundred broken logins would lock it out for good.
        self._hold_login(-self._login_bytes)
        self._parked.clear()
        self._server.disconnected(self)
        # Each takes itself, and maybe others, off this list: a walk over it would pass over the next one.
        while self._on_close:
            self._on_close.pop(0)()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the transport puts its next bytes: a frame's own buffer, or the rest of the shared one."""
        own = self._own
        if own is not None:
            if self._own_filled == len(own):
                own = self._grow(own)
            # Never beyond the frame: what follows it belongs to the next one, and would be answered as part of this.
            return memoryview(own)[self._own_filled : self._own_size]
        kept = len(self._rest)
        if kept:
            # The beginning of a small frame is put in front, so that the rest lands behind it and the frame lies in one
            # piece.
            self._scratch[:kept] = self._rest
            return self._scratch_view[kept:]
        return self._scratch_view

    def buffer_updated(self, nbytes: int) -> None:
        """Called by the transport when it has read `nbytes` into the buffer."""
        self.seen_tick = self._server.tick
        is_alone = self._own is None and not self._rest and not self._parked
        # Only where nothing waits before it: a remembered reply must not overtake one that is still parked.
        if nbytes <= QUICK_BYTES_MAX and is_alone and self._transport is not None:
            received = bytes(self._scratch_view[:nbytes])
            reply = self.recall.reply(received)  # the commonest read: one frame, known
            if reply is not None:
                self._transport.write(reply)
                return
            if nbytes - 4 == int.from_bytes(received[:4], "big") >= self._answerer.frame_bytes_min:
                self._answer_all(received[4:], alone=True)  # one frame: nothing to cut
                return
        if self._own is not None:
            self._own_filled += nbytes
            if self._own_filled == self._own_size:
                self._answer_own(self._own)
            return
        end = len(self._rest) + nbytes
        self._rest = b""
        self._answer_all(self._scratch_view[:end], alone=False)

    def eof_received(self) -> bool:
        """The peer sends nothing more; False lets the transport close."""
        return False

    def pause_writing(self) -> None:
        """Called by the transport when the peer takes its replies too slowly: then it is not read from."""
        self._writing_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        """Called by the transport when the peer has taken most replies."""
        self._writing_paused = False
        self._continue()

    # -- frames in ------------------------------------------------------------------------------------------------

    def _answer_all(self, received: bytes | memoryview, alone: bool) -> None:
        """Answer what is complete; keep the rest. `alone`: the bytes are one whole frame without its length."""
        try:
            if alone:
                self._answer(received)
            else:
                self._cut(received)
        except MalformedRequest as error:
            self.refuse(str(error))
            return
        self._flush()

    def _cut(self, received: bytes | memoryview) -> None:
        """Answer whole frames until the turn is over or the peer has to wait; keep what is left.

        A frame is looked at in this order. Not all of it is there: keep it, or give it a buffer of its own if it is
        large. The peer has to wait: keep everything. Frames sent before (heartbeats) are answered as a run, by their
        bytes, which is cheap enough to do outside the turn's account. Everything else is dispatched one at a time.
        """
        # A copy, because the scratch buffer is shared: a handler that waits would find the next read's bytes in its
        # request.
        data = bytes(received)
        start = 0
        end = len(data)
        is_incomplete = False
        turn_end = 0.0
        while end - start >= 4:
            (size,) = _LENGTH.unpack_from(data, start)
            stop = start + 4 + size
            if stop > end or not self._answerer.frame_bytes_min <= size <= self._answerer.frame_bytes_max:
                check_length(size, self._answerer.frame_bytes_min, self._answerer.frame_bytes_max)
                if size >= OWN_BUFFER_FROM_BYTES:
                    # A peer that has to wait gets no buffer: it could announce a large frame on each of a thousand
                    # connections.
                    if self._must_wait():
                        break
                    self._start_own(size, received[start + 4 : end])
                    return
                is_incomplete = True
                break
            may_wait = self._parked or self._writing_paused or self._out_bytes >= WRITE_BUFFER_HIGH_BYTES
            if may_wait and self._must_wait():
                break
            # Remembered replies are written right behind each other, so no reply may be outstanding in between.
            if not self._parked:
                answered_to = self.recall.replies(data, start, self._out)
                if answered_to > start:
                    self._out_bytes += answered_to - start  # replies are shorter
                    start = answered_to
                    continue
            # The clock is read only once there is a second frame: a lone request needs no turn.
            if not turn_end and stop < end:
                turn_end = self._turns.begin()
            # A slice of bytes is another copy, of the frame alone: the memo keeps it, and a handler may.
            self._answer(data[start + 4 : stop])
            start = stop
            if start < end and self._turns.is_over(turn_end):
                self._get_in_line()
                break
        self._rest = data[start:]
        # `frame_tick` is the deadline of a peer that began a frame and does not finish it.
        if start == end or (end - start >= 4 and not is_incomplete):
            self.frame_tick = -1  # nothing is left, or whole frames wait for us and not for the peer
        elif self.frame_tick < 0:
            self.frame_tick = self._server.tick

    def _answer_own(self, own: bytearray | mmap.mmap) -> None:
        """Answer the frame that has filled its own buffer, and give the buffer back."""
        self._own = None
        self._hold_login(-self._login_bytes)
        # Earned by delivering: a peer that sends 1 MB batches gets its buffer at once from now on.
        self._largest_received = max(self._largest_received, self._own_size)
        self.frame_tick = -1
        self._answer_all(memoryview(own)[: self._own_size], alone=True)
        self._server.give_back(own)

    def _start_own(self, size: int, begun: bytes | memoryview) -> None:
        """Give a large frame its own buffer, which grows; it begins as large as this peer has delivered before.

        Before the login the frame is counted with those of the peer's address. Raises MalformedRequest.
        """
        if self.login_tick >= 0:
            self._hold_login(size)
        # Never by the announced length: 100 MB announced and one byte sent would cost 100 MB.
        expected = min(self._largest_received, GROWN_BYTES_MAX)
        own = self._server.take_buffer(min(size, max(expected, 2 * len(begun))))
        own[: len(begun)] = begun
        self._own, self._own_filled, self._own_size = own, len(begun), size
        self.frame_tick = self._server.tick

    def _hold_login(self, count: int) -> None:
        """Count bytes of a login frame that is not whole yet, or no longer. Raises MalformedRequest."""
        if count and not self._server.hold_login(self.client_host, count):
            raise MalformedRequest("the unfinished logins of this address hold partita.login.bytes.per.ip")
        self._login_bytes += count

    def _grow(self, own: bytearray | mmap.mmap) -> bytearray | mmap.mmap:
        # Doubled while it is small; then it has room for the whole frame at once, of which only what comes is taken.
        size = self._own_size if 2 * len(own) > GROWN_BYTES_MAX else min(2 * len(own), self._own_size)
        grown = fresh_block(size)
        grown[: len(own)] = own
        self._own = grown
        return grown

    def _answer(self, frame: bytes | memoryview) -> None:
        # `abort` while a run of frames is being answered: the rest of the run must not take effect any more.
        if self._is_aborted:
            return
        outcome = self._answerer.dispatch(self, frame)
        if outcome is None:
            pass
        elif isinstance(outcome, Parked):
            outcome.on_done = self._leave
            self._parked.append(outcome)
        # Ready before its predecessors: replies leave in request order, so it takes its place behind them.
        elif self._parked:
            ready = Parked()
            ready.finish(outcome)
            self._parked.append(ready)
        else:
            self._send(outcome)
        if self._mute is not None:
            self._begin_mute()

    def _begin_mute(self) -> None:
        """Put the mute behind the replies there are: a request that answers nothing and that later ones wait for."""
        if self._mute is not None:
            self._parked.append(self._mute)
            self._mute = None

    # -- replies out ----------------------------------------------------------------------------------------------

    def _must_wait(self) -> bool:
        """Whether the peer must take replies, or wait for them, before more of its requests are looked at."""
        if self._out_bytes >= WRITE_BUFFER_HIGH_BYTES:
            self._flush()
        # A peer may have 100 requests waiting; then TCP holds it back, not our memory.
        if not self._writing_paused and len(self._parked) < PARKED_MAX and not self._is_held_back():
            return False
        self._pause_reading()
        return True

    def _is_held_back(self) -> bool:
        """Whether the last request must take effect before the next one is begun. Only the last one can."""
        return bool(self._parked) and self._parked[-1].holds_back and not self._parked[-1].done

    def _get_in_line(self) -> None:
        """Wait for another turn; until then nothing more is read."""
        self._pause_reading()
        if not self._is_in_line:
            self._is_in_line = True
            self._turns.wait(self._take_turn)

    def _take_turn(self) -> None:
        self._is_in_line = False
        self._continue()

    def _pause_reading(self) -> None:
        if not self._reading_paused and self._transport is not None and not self._transport.is_closing():
            self._reading_paused = True
            # Backpressure by TCP: what the peer sends stays in the kernel's buffers, and then in its own.
            self._transport.pause_reading()

    def _leave(self) -> None:
        """A reply became ready: leave all that are, up to the first one that is not, in request order.

        Whoever made it ready is in the middle of other work, so frames kept until now are begun a turn later.
        """
        if self._transport is not None:
            self._send_ready()
            if self._reading_paused:
                self._server.loop.call_soon(self._continue)

    def _send_ready(self) -> None:
        if self._mute is not None:
            self._begin_mute()
        # Strictly from the front, whichever completed first: Kafka's clients match answers by order as well as by id.
        while self._parked and self._parked[0].done:
            reply = self._parked.popleft()
            if reply.chunks is not None:
                self._send(reply.chunks)
            if reply.closes:
                self.close()
                return
        self._flush()

    def _continue(self) -> None:
        """Go on where we stopped: the peer took what was written, a reply has left, or it is our turn again.

        If reading was paused and nothing stands against it, answer the frames kept then; reading goes on only when none
        of them is left over, for they come before whatever the peer sends next.
        """
        if self._transport is None:
            return
        self._send_ready()
        if not self._reading_paused or self._is_in_line or self._must_wait() or self._transport.is_closing():
            return
        # Taken out first: answering may call back into this method, which must not answer the same bytes twice.
        rest, self._rest = self._rest, b""
        if rest:
            self._answer_all(memoryview(rest), alone=False)
        # Looked at again, since the frames just answered may have parked something, or ended the connection.
        if self._transport is None or self._is_in_line or self._must_wait() or self._transport.is_closing():
            return
        self._reading_paused = False
        self._transport.resume_reading()

    def _send(self, chunks: Chunks) -> None:
        self._out += chunks
        for chunk in chunks:
            self._out_bytes += len(chunk)

    def _flush(self) -> None:
        """Hand all ready replies to the transport: small ones joined, large ones as they are."""
        out = self._out
        if not out or self._transport is None:
            return
        total = self._out_bytes
        self._out = []
        self._out_bytes = 0
        # Joining small replies costs less than a system call each; large ones are views of files and are not copied.
        if total < _JOIN_BELOW_BYTES * 2:
            self._transport.write(b"".join(out))
        else:
            self._write_large(out)
        # Only replies to requests that were begun before the pause can still pile up here.
        if self._writing_paused and self._transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            self._answerer.complain(self.client_host, "it does not read its replies")
            self._transport.abort()

    def _write_large(self, out: list[Buffer]) -> None:
        assert self._transport is not None
        small: list[Buffer] = []
        for chunk in out:
            if len(chunk) < _JOIN_BELOW_BYTES:
                small.append(chunk)
                continue
            if small:
                self._transport.write(b"".join(small))
                small = []
            self._transport.write(chunk)
        if small:
            self._transport.write(b"".join(small))
