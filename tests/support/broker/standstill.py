"""A broker whose loop stands still, so that what several clients send meanwhile arrives at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from partita import Broker

PATIENCE_SECONDS = 60.0


@contextmanager
def stopped(broker: Broker) -> Iterator[None]:
    """The broker's loop stands still until the block ends."""
    entered, release = threading.Event(), threading.Event()

    def stand_still() -> None:
        entered.set()
        release.wait(PATIENCE_SECONDS)

    waiting = threading.Thread(target=lambda: broker.run(stand_still))
    waiting.start()
    try:
        assert entered.wait(PATIENCE_SECONDS), "the loop is busy"
        yield
    finally:
        release.set()
        waiting.join()
