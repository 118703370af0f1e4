"""What the demo's child processes share: events as JSON lines on standard output, an end when the parent is gone."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from types import FrameType

FLIGHTS = "flights"
WEATHER = "weather"
DEAD_LETTERS = "flights-dead-letters"
WATCHERS = "flight-watchers"
ANALYSTS = "delay-analysts"
SESSION_TIMEOUT_MS = 6_000
"""How long the coordinator waits for a silent member of the plain group."""


def say(event: str, **fields: object) -> None:
    """Tell the parent one fact."""
    print(json.dumps({"event": event, **fields}), flush=True)


def until_told() -> threading.Event:
    """An event that is set by SIGTERM or by a line on standard input; end of input ends the process at once.

    Standard input is the parent's leash: when the parent dies, however it dies, nothing stays behind.
    """
    told = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        told.set()

    def watch() -> None:
        if sys.stdin.readline():
            told.set()
            if sys.stdin.readline():
                return
        if not told.is_set():
            os._exit(3)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
    return told
