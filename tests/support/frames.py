"""Frames cut out of a stream of responses, for clients that tests write by hand."""

from __future__ import annotations

from partita.protocol.framing import check_length
from partita.protocol.primitives import Buffer

RESPONSE_BYTES_MIN = 4


class FrameCutter:
    """Cuts the frames out of a stream that arrives in arbitrary pieces."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: Buffer) -> list[bytes]:
        """Take in a piece; return the frames it completes, without their lengths. Raises MalformedRequest."""
        self._pending += data
        frames: list[bytes] = []
        while len(self._pending) >= 4:
            end = 4 + check_length(int.from_bytes(self._pending[:4], "big", signed=True), RESPONSE_BYTES_MIN)
            if end > len(self._pending):
                break
            frames.append(bytes(self._pending[4:end]))
            del self._pending[:end]
        return frames
