"""Child process: replay the weather at once and the flights at a steady pace.

Run as `python -m partita.demo.replay BOOTSTRAP RATE`; RATE is flights per second, 0 for as fast as it goes. Each part
but the first waits until the parent writes a line, so that every scene of the demo has something to read, however long
the scene before it took.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable
from itertools import islice

from partita import Producer
from partita.demo.flights import Event, flight_events, weather_events
from partita.demo.worker import FLIGHTS, WEATHER, say, watch_parent

STRIDE = 500
PARTS = (120_000, 120_000, 50_000)
"""Flights sent until Spark has joined, until the consumer is back, and until Spark is back; the rest comes then."""


def main(bootstrap: str, rate: float) -> None:
    """Send the weather, then the flights at `rate` a second (0: as fast as it goes)."""
    lines = threading.Semaphore(0)
    watch_parent(lines.release)
    with Producer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=65536, compression_type="lz4") as producer:
        for key, value in weather_events():
            producer.send(WEATHER, value, key=key)
        producer.flush()
        say("weather-done")
        flights = flight_events()
        replay(producer, islice(flights, PARTS[0]), rate)
        for size in (*PARTS[1:], None):
            lines.acquire()
            replay(producer, islice(flights, size), rate)
        say("all-sent")


def replay(producer: Producer, flights: Iterable[Event], rate: float) -> None:
    """Send these flights at `rate` a second and say how many."""
    started, sent = time.monotonic(), 0
    for sent, (key, value) in enumerate(flights, 1):
        producer.send(FLIGHTS, value, key=key)
        if sent % STRIDE == 0:
            say("sent", count=STRIDE)
            if rate:
                time.sleep(max(0.0, started + sent / rate - time.monotonic()))
    producer.flush()
    say("sent", count=sent % STRIDE)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
