# cython: boundscheck=False, wraparound=False, freethreading_compatible=True
"""Answers frames that a connection has sent before: the same bytes but for the correlation id mean the same again.

A consumer's heartbeats are such frames, and there are more of them than of all else together. Compiled by Cython when a
compiler is there (its types: repeats.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partita.broker.requests.dispatch import Repeated
    from partita.protocol.primitives import Buffer

TAKE_THE_LONG_WAY = -2
"""What a quick answer says when the request has to go through its handler. (-1 is UNKNOWN_SERVER_ERROR.)"""


def answer_repeats(received: bytes, start: int, memo: dict[bytes, Repeated], out: list[Buffer]) -> int:
    """Put the replies to the frames from `start` on into `out`, three pieces each; return where it had to stop.

    `memo` holds frames, their length in front, without their correlation id.
    """
    data = received
    end = len(received)
    while end - start >= 12:
        size = (data[start] << 24) | (data[start + 1] << 16) | (data[start + 2] << 8) | data[start + 3]
        stop = start + 4 + size
        if size < 8 or stop > end:
            break
        repeated = memo.get(received[start : start + 8] + received[start + 12 : stop])
        if repeated is None:
            break
        parts = repeated.tails.get(repeated.answer())
        if parts is None:
            break
        out.append(parts[0])
        out.append(received[start + 8 : start + 12])
        out.append(parts[1])
        start = stop
    return start
