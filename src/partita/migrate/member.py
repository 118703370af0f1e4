"""A member with nothing but its settings, for `partita migrate` without a program; it ends by SIGTERM or with the lab.

Run as `python -m partita.migrate.member CLIENT PROTOCOL CONFIG TOPIC...`; CONFIG is a properties file.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from partita import Consumer, ShareConsumer
from partita.consumer import config
from partita.consumer.sharing import settings as sharing
from partita.lazy import later
from partita.properties import parse_properties

confluent_kafka: Any = later("confluent_kafka")

POLL_S = 0.1
NEEDS_CLASSES = ("interceptor.classes", "key.deserializer", "value.deserializer", "metric.reporters")
"""Options that name classes of the program itself."""


def consumer_of(client: str, protocol: str, given: dict[str, str], topics: list[str]) -> Any:
    """A consumer that has subscribed. Java's options are those of our own client."""
    options = {name: value for name, value in given.items() if name not in NEEDS_CLASSES}
    if client == "confluent":
        made: Any = confluent_kafka.ShareConsumer if protocol == "share" else confluent_kafka.Consumer
    else:
        made, table = (ShareConsumer, sharing.OPTIONS) if protocol == "share" else (Consumer, config.OPTIONS)
        known = {option.dotted for option in table}
        options = {name: value for name, value in options.items() if name in known}
    consumer = made(options)
    consumer.subscribe(topics)
    return consumer


def main() -> None:
    """Poll until SIGTERM comes or the process that started this one has ended, then close."""
    lab = os.getppid()
    client, protocol, config_file, *topics = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    consumer = consumer_of(client, protocol, parse_properties(Path(config_file).read_text()), topics)
    try:
        while os.getppid() == lab:
            found = consumer.poll(POLL_S)
            if client == "confluent" and protocol != "share" and found is not None and found.error() is not None:
                raise SystemExit(str(found.error()))
    except KeyboardInterrupt:
        pass
    consumer.close()


if __name__ == "__main__":
    main()
