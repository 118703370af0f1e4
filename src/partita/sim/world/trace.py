"""The history of a simulation: one line per event, a running digest of all of them, and a legend.

The digest covers every event, whether lines are kept or not; two runs of a seed must agree on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from zlib import crc32

LEGEND = """\
# time in virtual ms | kind | who | what
#   >  a request leaves a client         <  its response arrives      x  the client learns it will get none
#   =  the broker has decided an answer  +  a batch of the group log is appended   *  the broker or its shard changes
#   a  assigned   r  revoked   l  lost (callbacks, with the partitions owned afterwards)
#   d  records handed to the application: partition, first-last   c  a call or state of the client
#   !  a fault is caused                 E  a rule is broken"""


class Trace:
    """Keeps all lines, or the last `tail`."""

    def __init__(self, *, keep_all: bool = False, tail: int = 60) -> None:
        self.events = 0
        self.digest = 0
        self._lines: deque[tuple[int, str, str, str]] = deque(maxlen=None if keep_all else tail)

    def add(self, ms: int, kind: str, who: str, what: str) -> None:
        """One more event: when, its kind (see `LEGEND`), who, what."""
        self.events += 1
        self.digest = crc32(f"{ms}{kind}{who} {what}".encode(), self.digest)
        self._lines.append((ms, kind, who, what))

    def events_of(self, *kinds: str) -> Iterator[tuple[int, str, str, str]]:
        """The kept events of these kinds: when, kind, who, what."""
        return (event for event in self._lines if event[1] in kinds)

    def lines(self) -> Iterator[str]:
        """The kept lines, rendered."""
        for ms, kind, who, what in self._lines:
            yield f"{ms:>8} {kind} {who:<8} {what}"
