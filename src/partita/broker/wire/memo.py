# cython: boundscheck=False, wraparound=False, freethreading_compatible=True
"""Answer frames that were answered before: the same bytes but for the correlation id mean the same request again.

A consumer's heartbeats are such frames, and they outnumber all other requests together. A handler offers the shortcut
(`RequestContext.offer_shortcut`), the dispatcher learns it, connections ask. Entries belong to one asker, a principal
at a host: no client is answered from another's memory. Compiled by Cython when a compiler is there (its types:
memo.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from partita.protocol.primitives import Buffer

DECODE_IT = -2
"""The result of a shortcut when the request has to go through its handler. (-1 is UNKNOWN_SERVER_ERROR.)"""
FRAME_BYTES_MAX = 1024
"""Larger frames are not learnt."""
ENTRIES_MAX = 8192
"""Number of frames of one memo; the next one empties it."""
Replies = Mapping[int, tuple[bytes, bytes]]
"""By error code, the bytes before and after the correlation id in the reply."""


class Pause(Protocol):
    """Says whether shortcuts are out of use, as while faults are injected: then every request is decoded."""

    @property
    def active(self) -> bool:
        """Is it time to pause?"""
        ...


class Tally(Protocol):
    """Counts the requests of one kind that were answered from memory: `count` of them in all."""

    count: int

    def refused(self, code: int, times: int) -> None:
        """So many of those counted were answered with an error."""
        ...


class Recall:
    """Frames of one asker. Keys are frames, their length in front, without their correlation id."""

    def __init__(self, memo: Memo, pause: Pause) -> None:
        self._memo = memo
        self._pause = pause
        self._known: dict[bytes, tuple[Callable[[], int], Replies, Tally]] = {}

    def learn(self, frame: bytes, answer: Callable[[], int], replies: Replies, tally: Tally) -> None:
        """From now on let `answer` say the error code of the reply to frames like this one (given without length).

        `answer` says DECODE_IT, or another number that `replies` lacks, when the handler has to be asked again. It is
        asked once for frames that came together, so asking it twice in one instant must do no more than once.
        """
        if len(frame) > FRAME_BYTES_MAX:
            return
        key = len(frame).to_bytes(4, "big") + frame[:4] + frame[8:]
        if key in self._known:
            return
        self._memo.make_room()
        self._known[key] = (answer, replies, tally)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def reply(self, received: bytes) -> bytes | None:
        """The reply to the received bytes, if they are exactly one known frame, its length in front; else None."""
        if not self._known:
            return None
        known = self._known.get(received[:8] + received[12:])
        if known is None or self._pause.active:
            return None
        code = known[0]()
        around = known[1].get(code)
        if around is None:
            return None
        known[2].count += 1
        if code:
            known[2].refused(code, 1)
        return around[0] + received[8:12] + around[1]

    def replies(self, received: bytes, start: int, out: list[Buffer]) -> int:
        """Append replies to the known frames from `start` on to `out`, three pieces each; return where that ended.

        Frames in a row that differ in their correlation ids alone are looked up once.
        """
        if not self._known or self._pause.active:
            return start
        data = received
        end = len(received)
        while end - start >= 12:
            size = (data[start] << 24) | (data[start + 1] << 16) | (data[start + 2] << 8) | data[start + 3]
            stop = start + 4 + size
            if size < 8 or stop > end:
                break
            head, tail = received[start : start + 8], received[start + 12 : stop]
            known = self._known.get(head + tail)
            if known is None:
                break
            code = known[0]()
            around = known[1].get(code)
            if around is None:
                break
            before, after, times = around[0], around[1], 0
            while True:
                out.append(before)
                out.append(received[start + 8 : start + 12])
                out.append(after)
                start = stop
                times += 1
                stop = start + 4 + size
                if stop > end or not (received.startswith(head, start) and received.startswith(tail, start + 12)):
                    break
            known[2].count += times
            if code:
                known[2].refused(code, times)
        return start


class Memo:
    """The memory of the connections of one listener."""

    def __init__(self, pause: Pause) -> None:
        self._pause = pause
        self._by_asker: WeakValueDictionary[tuple[str, str], Recall] = WeakValueDictionary()
        self._entries = 0

    def recall(self, principal: str, client_host: str) -> Recall:
        """Return this asker's frames; kept as long as one of its connections lives."""
        asker = (principal, client_host)
        known = self._by_asker.get(asker)
        if known is None:
            known = self._by_asker[asker] = Recall(self, self._pause)
        return known

    def clear(self) -> None:
        """Forget all frames: rights have changed, or there are too many."""
        for known in list(self._by_asker.values()):
            known.clear()
        self._entries = 0

    def make_room(self) -> None:
        """Count one more entry; before there are too many, forget all."""
        if self._entries >= ENTRIES_MAX:
            self.clear()
        self._entries += 1
