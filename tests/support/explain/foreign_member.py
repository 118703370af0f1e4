"""A member of a group in a process of its own, on librdkafka: it reads and commits until it is told otherwise.

    python foreign_member.py OPTIONS_AS_JSON TOPIC...

A line on standard input with topics changes its subscription; the end of standard input makes it leave.
"""

from __future__ import annotations

import json
import sys
import threading

from confluent_kafka import Consumer


def main() -> None:
    """Poll until standard input ends."""
    consumer = Consumer(json.loads(sys.argv[1]))
    wanted: list[list[str]] = [sys.argv[2:]]
    is_over = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            wanted.append(line.split())
        is_over.set()

    threading.Thread(target=listen, daemon=True).start()
    while not is_over.is_set():
        while wanted:
            consumer.subscribe(wanted.pop(0))
        consumer.poll(0.1)
    consumer.close()


if __name__ == "__main__":
    main()
