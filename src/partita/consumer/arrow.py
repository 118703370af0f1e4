"""Arrow batches as applications want them: keys and values as text or parsed JSON, views, pandas, polars.

Everything is done by Arrow's own vectorised functions; nothing here looks at single records, except Avro, for which no
such function exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from partita.consumer.errors import ConsumerError

if TYPE_CHECKING:
    import pyarrow as pa


class ToArrow(Protocol):
    """An object that decodes a column of bytes, such as a schema registry's deserializer."""

    def to_arrow(self, column: pa.Array, /) -> pa.Array:
        """The column, decoded; null stays null."""


Decode = Literal["bytes", "str", "json"] | ToArrow


@dataclass(frozen=True, slots=True)
class DecodeAs:
    """How `poll_arrow` hands over: what keys and values become, and which columns there are."""

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


def decode_columns(batch: pa.RecordBatch, how: DecodeAs) -> pa.RecordBatch:
    """The batch with its key and value columns decoded."""
    for name in ("key", "value"):
        kind = getattr(how, name)
        if kind == "bytes" and not how.binary_view:
            continue
        column = batch.column(name)
        batch = batch.set_column(batch.schema.get_field_index(name), name, _decoded(column, kind, name, how))
    return batch


def _decoded(column: pa.Array, kind: Decode, name: str, how: DecodeAs) -> pa.Array:
    import pyarrow as pa

    if not isinstance(kind, str):
        return kind.to_arrow(column)
    try:
        if kind == "json":
            return _json(column, how.json_schema)
        if kind == "str":
            return column.cast(pa.string_view() if how.binary_view else pa.string())
        return column.cast(pa.binary_view())
    except pa.ArrowInvalid as error:
        raise ConsumerError(
            f"the {name} column is no valid {kind}: {error}; poll_arrow({name}='bytes') reads it"
        ) from None


def _json(column: pa.Array, schema: Any) -> pa.Array:
    """One JSON object per record into a struct column; nulls stay null. Line breaks inside a document become spaces."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

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
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]  # pandas has no types of its own

    return batch.to_pandas(types_mapper=pd.ArrowDtype if arrow_types else None)


def to_polars(batch: pa.RecordBatch) -> Any:
    """A polars DataFrame over the same memory."""
    import polars as pl  # type: ignore[import-not-found, unused-ignore]  # an optional package

    return pl.from_arrow(batch)
