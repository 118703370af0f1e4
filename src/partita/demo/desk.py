"""Child process: a plain consumer in Spark's group that does Spark's work: the rules, the weather, files, dead letters.

Run as `python -m partita.demo.desk BOOTSTRAP FOLDER`. Its results are in files before they are committed, so a kill
loses nothing and has some flights processed again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from partita import Consumer, Producer
from partita.consumer.errors import RebalanceRunningError
from partita.consumer.listener import RebalanceListener
from partita.demo.flights import NO_DEPARTURE, NO_TAIL_NUMBER
from partita.demo.worker import CONSUMER, DEAD_LETTERS, DESK, FLIGHTS, SESSION_TIMEOUT_MS, WEATHER, finish_event, say
from partita.offsets.topic_partition import TopicPartition

COMMIT_EVERY_S = 1.0
USABLE = pa.schema(
    [
        ("carrier", pa.string()), ("hour", pa.int32()), ("dep_delay", pa.int32()), ("has_weather", pa.bool_()),
        ("_partition", pa.int32()), ("_offset", pa.int64()),
    ]
)  # fmt: skip
"""The same columns as those of the pipeline's SQL."""


def weather(bootstrap: str) -> frozenset[tuple[str, str]]:
    """The airports and hours of the weather topic, read to its present end."""
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(WEATHER, number) for number in consumer.partitions_for(WEATHER)])
        rows = (json.loads(record.value or b"{}") for record in consumer.until_end())
        return frozenset((row["origin"], row["time_hour"]) for row in rows)


def reasons(flight: dict[str, Any]) -> str:
    """Return why a flight is unusable, by the names of the pipeline's rules; empty if it is usable."""
    broken = [NO_DEPARTURE] * (flight["dep_time"] is None) + [NO_TAIL_NUMBER] * (flight["tailnum"] is None)
    return ", ".join(broken)


class Desk(RebalanceListener):
    """Processes flights; commits before it gives up partitions."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self._weather = weather(bootstrap)
        self._folder = folder
        self._files = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._letters = Producer(bootstrap_servers=bootstrap, client_id=CONSUMER, linger_ms=20)
        self.consumer = Consumer(
            bootstrap_servers=bootstrap, group_id=DESK, client_id=CONSUMER, auto_offset_reset="earliest",
            enable_auto_commit=False, session_timeout_ms=SESSION_TIMEOUT_MS, heartbeat_interval_ms=1000,
            max_poll_records=2000, partition_assignment_strategy=["cooperative-sticky"],
        )  # fmt: skip

    def run(self, finish: Any) -> None:
        """Read until the parent says finish."""
        with self.consumer, self._letters:
            self.consumer.subscribe([FLIGHTS], listener=self)
            committed_at = time.monotonic()
            while not finish.is_set():
                self._process(self.consumer.poll(timeout=0.2))
                if time.monotonic() - committed_at >= COMMIT_EVERY_S:
                    # While the group rebalances no commit is taken; the next one covers the same flights.
                    with suppress(RebalanceRunningError):
                        self.consumer.commit()
                    committed_at = time.monotonic()
            self.consumer.commit()

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Commit, so that the next owner goes on from here."""
        self.consumer.commit()

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Commit nothing: another member has these partitions already."""

    def _process(self, records: Any) -> None:
        rows, count = [], 0
        for record in records:
            flight = json.loads(record.value)
            count += 1
            if reason := reasons(flight):
                self._dead_letter(record, reason)
                continue
            has_weather = (flight["origin"], flight["time_hour"]) in self._weather
            columns = (flight["carrier"], flight["hour"], flight["dep_delay"], has_weather)
            rows.append((*columns, record.partition, record.offset))
        if not count:
            return
        self._letters.flush()
        self._store(rows)
        say("processed", count=count)

    def _dead_letter(self, record: Any, reason: str) -> None:
        """Write the original record, with the headers that the pipeline gives its own."""
        places = {"reason": reason, "topic": FLIGHTS, "partition": record.partition, "offset": record.offset}
        headers = [(name, str(value).encode()) for name, value in places.items()]
        self._letters.send(DEAD_LETTERS, record.value, key=record.key, headers=headers)

    def _store(self, rows: list[tuple[Any, ...]]) -> None:
        """Write one file for each poll; it gets its name only once it is whole."""
        if rows:
            self._files += 1
            hidden = self._folder / f".{os.getpid()}-{self._files}"
            columns = [
                pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), USABLE, strict=True)
            ]
            pq.write_table(pa.Table.from_arrays(columns, schema=USABLE), hidden)
            hidden.rename(self._folder / f"{hidden.name[1:]}.parquet")


def main(bootstrap: str, folder: Path) -> None:
    """Work until the parent says finish."""
    finish = finish_event()
    Desk(bootstrap, folder).run(finish)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
