"""Arrow batches as applications want them: keys and values as text or parsed JSON, views, pandas, polars.

Everything is done by Arrow's own vectorised functions; nothing here looks at single records, except where no such
function exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from partita.consumer.errors import RecordDeserializationError, is_outage
from partita.lazy import later
from partita.offsets.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]  # pandas has no types of its own
    import polars as pl  # type: ignore[import-not-found, unused-ignore]  # an optional package
    import pyarrow as pa
    from pyarrow import compute as pc
    from pyarrow import json as pj

    from partita.records.typed import ddl, decoding
else:
    ddl = later("partita.records.typed.ddl")
    decoding = later("partita.records.typed.decoding")
    pa = later("pyarrow")
    pc = later("pyarrow.compute")
    pd = later("pandas")
    pj = later("pyarrow.json")
    pl = later("polars")


class ToArrow(Protocol):
    """An object that decodes a column of bytes, such as a schema registry's deserializer."""

    def to_arrow(self, column: pa.Array, /) -> pa.Array:
        """The column, decoded; null stays null."""


Decode = Literal["bytes", "str", "json"] | ToArrow


@dataclass(frozen=True, slots=True)
class DecodeAs:
    """Conversions and columns of `poll_arrow`. Raises ValueError for others than there are."""

    key: Decode = "bytes"
    value: Decode = "bytes"
    binary_view: bool = False
    headers: bool = True
    timestamp_unit: str = "ms"
    json_schema: Any = None

    def __post_init__(self) -> None:
        for name in ("key", "value"):
            chosen = getattr(self, name)
            if not hasattr(chosen, "to_arrow") and chosen not in ("bytes", "str", "json"):
                raise ValueError(f"{name} must be bytes, str, json or an object with to_arrow, not {chosen!r}")
        if isinstance(self.json_schema, str):
            ddl.columns_of(self.json_schema)


def decode_columns(batch: pa.RecordBatch, how: DecodeAs) -> pa.RecordBatch:
    """The batch with its key and value columns decoded. Raises RecordDeserializationError for the first bad record.

    An outage of a deserializer, which says nothing of a record, is raised as it is.
    """
    for name in ("key", "value"):
        kind = getattr(how, name)
        if kind == "bytes" and not how.binary_view:
            continue
        column = batch.column(name)
        try:
            decoded = _decoded(column, kind, how)
        except Exception as error:
            if is_outage(error):
                raise
            row, cause = _first_bad(column, kind, how, error)
            raise _at(batch, row, name, cause) from cause
        batch = batch.set_column(batch.schema.get_field_index(name), name, decoded)
    return batch


def _decoded(column: pa.Array, kind: Decode, how: DecodeAs) -> pa.Array:
    if not isinstance(kind, str):
        return kind.to_arrow(column)
    if kind == "json":
        return _json(column, how.json_schema)
    if kind == "str":
        return column.cast(pa.string_view() if how.binary_view else pa.string())
    return column.cast(pa.binary_view())


def _first_bad(column: pa.Array, kind: Decode, how: DecodeAs, error: Exception) -> tuple[int, Exception]:
    """The first row that cannot be decoded, and its error; found by halving."""
    good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _decoded(column.slice(0, middle), kind, how)
        except Exception as found:
            if is_outage(found):
                raise
            bad, error = middle, found
        else:
            good = middle
    return bad - 1, error


def _at(batch: pa.RecordBatch, row: int, name: str, cause: Exception) -> RecordDeserializationError:
    """The error for one row of a batch."""
    record = {field: batch.column(field)[row].as_py() for field in ("key", "value", "topic", "partition", "offset")}
    record["headers"] = _headers(batch.column("headers")[row].as_py()) if "headers" in batch.schema.names else []
    timestamp = batch.column("timestamp")[row].cast(pa.timestamp("ms")).value
    tp = TopicPartition(record["topic"], record["partition"])
    advice = f"poll_arrow({name}='bytes') reads it"
    return RecordDeserializationError(name.upper(), tp, record["offset"], timestamp, record, cause, advice)


def _headers(given: Any) -> list[tuple[str, bytes | None]]:
    return [(header["key"], header["value"]) for header in given or ()]


def _json(column: pa.Array, schema: Any) -> pa.Array:
    """One JSON object per record into a struct column; nulls stay null.

    A `schema` of SQL reads its fields alone, as a typed read of Spark does. Else line breaks inside a document become
    spaces.
    """
    if isinstance(schema, str):
        decoded = decoding.JsonDecoder(ddl.columns_of(schema)).decode(column)
        if decoded.faults:
            raise ValueError(decoded.faults[0][1])
        return decoded.columns
    text = pc.replace_substring(pc.fill_null(column.cast(pa.string()), "{}"), "\n", " ")
    lines = pc.binary_join(pa.LargeListArray.from_arrays(pa.array([0, len(text)], pa.int64()), text), "\n")
    options = pj.ParseOptions(explicit_schema=schema) if schema is not None else None
    if len(column) == 0:
        return pa.nulls(0, pa.struct([]))
    data = lines[0].as_buffer()
    read = pj.ReadOptions(block_size=max(1 << 20, data.size + 1))
    table = pj.read_json(pa.BufferReader(data), read_options=read, parse_options=options)
    parsed = table.combine_chunks().to_struct_array().combine_chunks()
    mask = column.is_null()
    return pc.if_else(mask, pa.scalar(None, parsed.type), parsed) if column.null_count else parsed


def to_pandas(batch: pa.RecordBatch, *, arrow_types: bool = True) -> Any:
    """A pandas DataFrame; with `arrow_types` its columns keep Arrow's memory instead of Python objects."""
    return batch.to_pandas(types_mapper=pd.ArrowDtype if arrow_types else None)


def to_polars(batch: pa.RecordBatch) -> Any:
    """A polars DataFrame over the same memory."""
    return pl.from_arrow(batch)
