"""The end of the interpreter: one hook for all clients that were not closed, so that they end in a good order.

Consumers go first, since what they call back may still send; then producers. Each kind bounds its own time.
"""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable

CONSUMERS, SHARE_CONSUMERS, PRODUCERS = 1, 2, 3
_LOG = logging.getLogger("partita.net")
_LAST_WORK: dict[int, Callable[[], None]] = {}


def at_exit(order: int, finish: Callable[[], None]) -> None:
    """Call this once the program has ended, in this order."""
    _LAST_WORK[order] = finish


def _finish_all() -> None:
    for _, finish in sorted(_LAST_WORK.items()):
        try:
            finish()
        except BaseException:
            _LOG.exception("a client that was not closed could not end in order")


atexit.register(_finish_all)
