"""The base of the demo's child processes: events as JSON lines on standard output, an end when the parent is gone."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

FLIGHTS = "flights"
WEATHER = "weather"
DEAD_LETTERS = "flights-dead-letters"
DESK = "flight-desk"
"""The group that the consumer and Spark share."""
CONSUMER, SPARK = "consumer", "Spark"
SESSION_TIMEOUT_MS = 6_000
"""How long the coordinator waits for the consumer when it is silent; for Spark it is in flights.toml."""


def say(event: str, **fields: object) -> None:
    """Report one fact to the parent."""
    print(json.dumps({"event": event, **fields}), flush=True)


def finish_event() -> threading.Event:
    """Return an event that is set by SIGTERM or by a line on standard input; end of input ends the process at once."""
    finish = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        finish.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_parent(finish.set)
    return finish


def watch_parent(finish: Callable[[], object]) -> None:
    """Call `finish` for each line that the parent writes; end the process when the parent is gone, however it died."""

    def watch() -> None:
        while sys.stdin.readline():
            finish()
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
