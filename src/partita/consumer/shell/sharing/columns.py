"""Held records as an Arrow RecordBatch, and a batch as the records that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from partita.consumer.arrow import DecodeAs, decode_columns
from partita.consumer.sharing.holding import Hold
from partita.records.to_arrow import arrow_schema

_PLACE = ("topic", "partition", "offset")


def decoded(holds: Sequence[Hold], how: DecodeAs) -> pa.RecordBatch:
    """The columns of a `Consumer`'s batches, and delivery_count. Raises RecordDeserializationError."""
    schema = arrow_schema(timestamp_unit=how.timestamp_unit, headers=how.headers)
    finer = 1000 if how.timestamp_unit == "us" else 1
    rows: dict[str, list[Any]] = {name: [getattr(hold.record, name) for hold in holds] for name in schema.names}
    rows["timestamp"] = [None if stamp < 0 else stamp * finer for stamp in rows["timestamp"]]
    if how.headers:
        rows["headers"] = [[{"key": k, "value": v} for k, v in some] for some in rows["headers"]]
    batch = decode_columns(pa.RecordBatch.from_pydict(rows, schema), how)
    return batch.append_column("delivery_count", pa.array([hold.delivery_count for hold in holds], pa.int16()))


def places(batch: Any) -> Iterator[tuple[str, int, int]]:
    """Topic, partition and offset of each row. Raises TypeError for anything but a batch of `poll_arrow`."""
    names = getattr(getattr(batch, "schema", None), "names", ())
    if not set(_PLACE) <= set(names):
        raise TypeError(
            "a record, (topic, partition, offset), or a batch with the columns topic, partition and offset is "
            f"expected, not {batch!r:.200}"
        )
    return zip(*(batch.column(name).to_pylist() for name in _PLACE), strict=True)
