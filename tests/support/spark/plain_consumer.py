"""A plain consumer in a process of its own, to be killed: `python plain_consumer.py BOOTSTRAP TOPIC GROUP`.

It prints `held [partitions]` when they change and `read partition offset value` for each record, then commits.
"""

from __future__ import annotations

import sys

from partita import Consumer


def main(bootstrap: str, topic: str, group: str) -> None:
    consumer = Consumer(
        bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=6_000, heartbeat_interval_ms=200, key_deserializer=None, value_deserializer="str",
    )  # fmt: skip
    held: list[int] = []
    with consumer:
        consumer.subscribe([topic])
        while True:
            polled = consumer.poll(0.1)
            now = sorted(tp.partition for tp in consumer.assignment())
            if now != held:
                held = now
                print("held", held, flush=True)
            for record in polled:
                print("read", record.partition, record.offset, record.value, flush=True)
            if polled:
                consumer.commit()


if __name__ == "__main__":
    main(*sys.argv[1:4])
