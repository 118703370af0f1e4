"""Cut a byte stream into length-prefixed frames, without copying large ones.

The receiver hands out the buffer the next bytes go to: small frames share one, a large frame gets its own, which grows
with the bytes that arrived and never by the announced length alone (faults.md C1). Buffers without a view of them are
used again: fresh memory costs as much as filling it.
"""

from __future__ import annotations

from struct import Struct

from partita.protocol.primitives import Buffer, MalformedRequest

_LENGTH = Struct(">i")
_SHARED_BYTES = 64 * 1024
_OWN_FROM_BYTES = 16 * 1024
_FIRST_STEP_BYTES = 4 << 20
_SPARES_MAX = 3
_SPARE_UNIT_BYTES = 64 * 1024
_FRAME_BYTES_MIN = 4


class FrameReceiver:
    """`buffer()` says where to put bytes, `received(n)` which frames they completed."""

    __slots__ = ("_filled", "_large", "_large_filled", "_large_size", "_max_bytes", "_shared", "_spares")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._shared = bytearray(_SHARED_BYTES)
        self._filled = 0
        self._large: bytearray | None = None
        self._large_filled = 0
        self._large_size = 0
        self._spares: list[bytearray] = []

    def buffer(self) -> memoryview:
        """Buffer for the next bytes; never empty."""
        large = self._large
        if large is None:
            return memoryview(self._shared)[self._filled :]
        if self._large_filled == len(large):
            large += bytes(min(len(large), self._large_size - len(large)))
        return memoryview(large)[self._large_filled : self._large_size]

    def received(self, count: int) -> list[Buffer]:
        """`count` bytes were put into `buffer()`. Raises MalformedRequest for a length that cannot be."""
        if self._large is None:
            self._filled += count
            return self._cut()
        self._large_filled += count
        if self._large_filled < self._large_size:
            return []
        frame, self._large = self._large, None
        return [memoryview(frame)[: self._large_size]]

    def head(self) -> bytes:
        """The bytes that stand where a frame should begin, after MalformedRequest was raised."""
        return bytes(self._shared[: min(self._filled, 8)])

    def _cut(self) -> list[Buffer]:
        frames: list[Buffer] = []
        shared, at, filled = self._shared, 0, self._filled
        while filled - at >= 4:
            (size,) = _LENGTH.unpack_from(shared, at)
            if not _FRAME_BYTES_MIN <= size <= self._max_bytes:
                raise MalformedRequest(f"answer of {size} bytes announced; 4 to {self._max_bytes} are accepted")
            end = at + 4 + size
            if end <= filled:
                frames.append(bytes(shared[at + 4 : end]))
                at = end
                continue
            if size >= _OWN_FROM_BYTES:
                self._start_large(size, at + 4)
                at = filled
            break
        rest = filled - at
        if at and rest:
            shared[:rest] = shared[at:filled]
        self._filled = rest
        return frames

    def _start_large(self, size: int, start: int) -> None:
        have = self._filled - start
        self._large = self._spare(size) if size <= _FIRST_STEP_BYTES else bytearray(max(_FIRST_STEP_BYTES, have))
        self._large[:have] = self._shared[start : self._filled]
        self._large_filled = have
        self._large_size = size

    def _spare(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes, of those used before if one is free."""
        for spare in self._spares:
            if len(spare) >= size and _is_free(spare):
                return spare
        units = -(-size // _SPARE_UNIT_BYTES)
        fresh = bytearray(units * _SPARE_UNIT_BYTES)
        self._spares = [fresh, *self._spares[: _SPARES_MAX - 1]]
        return fresh


def _is_free(buffer: bytearray) -> bool:
    """True if there is no view of it left: Python refuses to resize a buffer that has one."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
