"""Turns Arrow batches of a written table into record batches for each partition.

Rows keep their order within a partition. A partition column decides; else the murmur2 hash of the key, as in every
Kafka client; rows with neither go to one partition for each Arrow batch, the next one each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from partita.producer.columns import RowError, binary, encoded_headers
from partita.spark.settings.positions import TopicPartition
from partita.spark.writing.murmur2_columns import partitions_of
from partita.spark.writing.packed_records import PackedRecords, pack, rows_of

PartitionCount = Callable[[str, int], int]
"""Number of a topic's partitions; the second argument is the least number that is needed."""


@dataclass(slots=True)
class RowBatches:
    """`topic` is the sink's option; None: the column decides. `turn` moves keyless rows from batch to batch.

    With `ignore_keys` rows with a key are treated as if they had none when their partition is chosen.
    """

    topic: str | None
    codec: int
    batch_bytes: int
    level: int | None = None
    ignore_keys: bool = False
    turn: int = 0

    def build(
        self, rows: pa.RecordBatch, count_of: PartitionCount, timestamp_ms: int
    ) -> dict[TopicPartition, list[PackedRecords]]:
        """Batches of about `batch_bytes` for each partition, in row order. Raises RowError."""
        self.turn += 1
        columns = {name: rows.column(i) for i, name in enumerate(rows.schema.names)}
        keys = binary(columns["key"]) if "key" in columns else pa.nulls(rows.num_rows, pa.binary())
        values = binary(columns["value"])
        headers = encoded_headers(columns["headers"]) if "headers" in columns else None
        every = rows_of(keys, values, headers, timestamp_ms, _times(columns.get("timestamp"), timestamp_ms))
        built: dict[TopicPartition, list[PackedRecords]] = {}
        for topic, chosen in self._by_topic(columns, rows.num_rows):
            targets = self._targets(topic, columns.get("partition"), keys, chosen, count_of)
            for partition, places in _groups(targets, chosen):
                built[topic, partition] = pack(
                    every.at(places), batch_bytes=self.batch_bytes, codec=self.codec, level=self.level
                )
        return built

    def _by_topic(self, columns: dict[str, pa.Array], count: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
        if self.topic is not None:
            yield self.topic, np.arange(count)
            return
        topics = columns["topic"]
        if topics.null_count:
            raise RowError("a row has no topic: its column topic is null and the option topic is not given")
        encoded = topics.dictionary_encode()
        codes = np.asarray(encoded.indices)
        for code, topic in enumerate(encoded.dictionary.to_pylist()):
            yield topic, np.nonzero(codes == code)[0]

    def _targets(
        self, topic: str, given: pa.Array | None, keys: pa.Array, chosen: NDArray[np.int64], count_of: PartitionCount
    ) -> NDArray[np.int64]:
        picked = keys.take(pa.array(chosen)) if len(chosen) != len(keys) else keys
        wanted = None if given is None else np.asarray(given.take(pa.array(chosen)).fill_null(-1), np.int64)
        least = 1 if wanted is None else int(wanted.max(initial=0)) + 1
        count = count_of(topic, least)
        if picked.null_count == len(picked) or self.ignore_keys:
            targets = np.full(len(chosen), self.turn % count, np.int64)
        else:
            targets = partitions_of(*_buffers(picked), count)
            if picked.null_count:
                targets[np.asarray(picked.is_null())] = self.turn % count
        if wanted is not None:
            if int(wanted.min(initial=0)) < -1:
                raise RowError(f"a row for topic {topic} has the negative partition {int(wanted.min())}")
            targets = np.where(wanted >= 0, wanted, targets)
        return targets


def _times(column: pa.Array | None, now_ms: int) -> NDArray[np.int64] | None:
    """Milliseconds of each row, `now_ms` where it has none; None when no row has an instant."""
    if column is None or not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return None
    if column.null_count == len(column):
        return None
    micros = np.asarray(pc.cast(column, pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(now_ms * 1000))
    times: NDArray[np.int64] = micros.astype(np.int64) // 1000
    if int(times.min()) < 0:
        raise RowError(f"a row has a timestamp before 1970: {int(times.min())} ms")
    return times


def _buffers(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    _, offsets, data = column.buffers()
    found = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return found, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)


def _groups(targets: NDArray[np.int64], chosen: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each partition with the places of its rows, in row order."""
    # numpy sorts numbers of 16 bits by their digits, several times as fast as larger ones.
    narrow = targets.astype(np.uint16) if int(targets.max(initial=0)) < 1 << 16 else targets
    order = np.argsort(narrow, kind="stable")
    counts = np.bincount(targets)
    partitions = np.flatnonzero(counts)
    for partition, places in zip(partitions, np.split(order, np.cumsum(counts[partitions])[:-1]), strict=True):
        yield int(partition), chosen[places]
