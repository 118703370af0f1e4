"""Child process: replay the weather at once and the flights at a steady pace.

Run as `python -m partita.demo.replay BOOTSTRAP RATE`; RATE is flights per second, 0 for as fast as it goes. Two parts
at the end wait until the parent writes a line each, so that there is something to read in the last scenes of the demo.
"""

from __future__ import annotations

import sys
import threading
import time

from partita import Producer
from partita.demo.flights import Event, flight_events, weather_events
from partita.demo.worker import FLIGHTS, WEATHER, say, watch_parent

STRIDE = 500
HELD_BACK = 45_000


def main(bootstrap: str, rate: float) -> None:
    """Send the weather, then the flights at `rate` a second (0: as fast as it goes)."""
    lines = threading.Semaphore(0)
    watch_parent(lines.release)
    with Producer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=65536, compression_type="lz4") as producer:
        for key, value in weather_events():
            producer.send(WEATHER, value, key=key)
        producer.flush()
        say("weather-done")
        flights = list(flight_events())
        replay(producer, flights[: -2 * HELD_BACK], rate)
        for part in (flights[-2 * HELD_BACK : -HELD_BACK], flights[-HELD_BACK:]):
            lines.acquire()
            replay(producer, part, rate)
        say("all-sent")


def replay(producer: Producer, flights: list[Event], rate: float) -> None:
    """Send these flights at `rate` a second and say how many."""
    started = time.monotonic()
    for sent, (key, value) in enumerate(flights, 1):
        producer.send(FLIGHTS, value, key=key)
        if sent % STRIDE == 0:
            say("sent", count=STRIDE)
            if rate:
                time.sleep(max(0.0, started + sent / rate - time.monotonic()))
    producer.flush()
    say("sent", count=len(flights) % STRIDE)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
