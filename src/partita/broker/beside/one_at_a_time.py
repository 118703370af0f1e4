"""Very large requests are served one after the other: each takes some hundred bytes of memory for each element."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Begin = Callable[[Callable[[], None]], None]
"""Called at a request's turn, with a function to call once when the request has ended."""


class OneAtATime:
    """The line of the requests that wait. First come, first served."""

    def __init__(self) -> None:
        self._in_line: deque[Begin] = deque()

    def run(self, begin: Begin) -> None:
        """Call `begin` when all that came before have ended; at once when there are none."""
        self._in_line.append(begin)
        if len(self._in_line) == 1:
            begin(self._end)

    def _end(self) -> None:
        self._in_line.popleft()
        if self._in_line:
            self._in_line[0](self._end)
