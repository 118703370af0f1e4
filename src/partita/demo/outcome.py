"""The results of the group: the Parquet files of Spark and of the consumer, and the dead letters."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partita import Consumer
from partita.demo.story import Outcome
from partita.demo.worker import DEAD_LETTERS
from partita.lazy import later
from partita.offsets.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyarrow import dataset as ds
else:
    ds = later("pyarrow.dataset")

USABLE_COLUMNS = ("_partition", "_offset", "carrier", "hour", "dep_delay", "has_weather")


def read_outcome(bootstrap: str, spark: Path, consumer: Path) -> Outcome:
    """Return everything that was written: each flight counted once for the results, and every repetition."""
    outcome = Outcome()
    outcome.spark_rows, outcome.spark_repeated = add_usable(outcome, usable_rows(spark))
    outcome.consumer_rows, _ = add_usable(outcome, usable_rows(consumer))
    add_letters(outcome, letters(bootstrap))
    return outcome


def usable_rows(folder: Path) -> Iterable[tuple[Any, ...]]:
    """The rows of all Parquet files below a folder, in the order of `USABLE_COLUMNS`; unfinished files are left out."""
    if not folder.exists():
        return
    for batch in ds.dataset(folder, format="parquet", ignore_prefixes=[".", "_"]).to_batches(
        columns=list(USABLE_COLUMNS)
    ):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def add_usable(outcome: Outcome, rows: Iterable[tuple[Any, ...]]) -> tuple[int, int]:
    """Count usable flights, each once. Returns the number of rows, and of those that repeat one of them."""
    mine: set[tuple[int, int]] = set()
    count = 0
    for partition, offset, carrier, hour, delay, has_weather in rows:
        count += 1
        mine.add((partition, offset))
        if outcome.coverage.add(partition, offset):
            outcome.usable += 1
            outcome.with_weather += has_weather
            flights, total = outcome.delays.get((carrier, hour), (0, 0))
            outcome.delays[carrier, hour] = (flights + 1, total + delay)
    return count, count - len(mine)


def letters(bootstrap: str) -> Iterable[tuple[int, int, str]]:
    """Return partition and offset of each dead letter's flight, and its reasons, from its headers."""
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition(DEAD_LETTERS, number) for number in consumer.partitions_for(DEAD_LETTERS)])
        for record in consumer.until_end():
            headers = {name: (value or b"").decode() for name, value in record.headers}
            yield int(headers["partition"]), int(headers["offset"]), headers["reason"]


def add_letters(outcome: Outcome, found: Iterable[tuple[int, int, str]]) -> None:
    """Count dead letters; a flight counts once."""
    for partition, offset, reasons in found:
        if outcome.coverage.add(partition, offset):
            outcome.dead_letter_rows += 1
            for reason in reasons.split(", "):
                outcome.dead_letters[reason] = outcome.dead_letters.get(reason, 0) + 1
