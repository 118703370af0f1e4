"""Records of a task that cannot be decoded, on their way to the dead-letter topic.

At least once: a task passes on rows when the letters of the records read with them are acknowledged, so one that ends
well has lost none. A task that runs again, or twice, writes its letters again; topic, partition and offset in their
headers identify copies.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from partita.consumer.shell.dead_letters import where_from
from partita.offsets.topic_partition import TopicPartition
from partita.spark.settings.options import SinkOptions
from partita.spark.settings.produce import ProduceSettings
from partita.spark.settings.typed import Typed
from partita.spark.writing.sink import write_rows


def send(client: Mapping[str, str], typed: Typed, records: pa.RecordBatch, reasons: Mapping[int, str]) -> None:
    """Return when every replica in sync has these records, as they came, with where from and why in their headers.

    Raises KafkaError when one is not acknowledged.
    """
    bad = sorted(reasons)
    rows = records.select(["key", "value", "headers", "topic", "partition", "offset"]).take(pa.array(bad))
    noted = []
    for row, reason in zip(rows.to_pylist(), map(reasons.__getitem__, bad), strict=True):
        place = where_from(TopicPartition(row["topic"], row["partition"]), row["offset"], reason)
        noted.append([*(row["headers"] or ()), *({"key": name, "value": value} for name, value in place)])
    headers = pa.array(noted, rows.column("headers").type)
    letters = pa.RecordBatch.from_arrays(
        [rows.column("key"), rows.column("value"), headers], ["key", "value", "headers"]
    )
    write_rows(SinkOptions(client, ProduceSettings(), typed.letter_topic), iter([letters]))
