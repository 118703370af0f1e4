"""Child process: replay the weather at once and the flights at a steady pace.

Run as `python -m partita.demo.replay BOOTSTRAP RATE`; RATE is flights per second, 0 for as fast as it goes.
"""

from __future__ import annotations

import sys
import time

from partita import Producer
from partita.demo.flights import flight_events, weather_events
from partita.demo.worker import FLIGHTS, WEATHER, say, until_told

STRIDE = 500


def main(bootstrap: str, rate: float) -> None:
    """Send the weather, then the flights at `rate` a second (0: as fast as it goes)."""
    until_told()
    with Producer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=65536, compression_type="lz4") as producer:
        for key, value in weather_events():
            producer.send(WEATHER, value, key=key)
        producer.flush()
        say("weather-done")
        started, sent = time.monotonic(), 0
        for key, value in flight_events():
            producer.send(FLIGHTS, value, key=key)
            sent += 1
            if sent % STRIDE == 0:
                say("sent", count=sent)
                if rate:
                    time.sleep(max(0.0, started + sent / rate - time.monotonic()))
        producer.flush()
        say("sent", count=sent)
        say("all-sent", count=sent)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
