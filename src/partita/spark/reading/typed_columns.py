"""Typed columns of a read: keys and values decoded in the task, before the JVM sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from partita.errors import KafkaError
from partita.lazy import later
from partita.options import ConfigError
from partita.records.typed.avro_schemas import AvroSchema
from partita.records.typed.ddl import SchemaError, columns_of
from partita.records.typed.decoding import AvroDecoder, CsvDecoder, Decoder, JsonDecoder
from partita.spark.planning.starts import SourceError
from partita.spark.reading import tables
from partita.spark.settings.typed import ERROR, RAW, Form, Typed, with_columns
from partita.spark.spark_api import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

if TYPE_CHECKING:
    from partita.registry import arrow_types, proto_columns
    from partita.registry import spark as registry_spark
else:
    arrow_types = later("partita.registry.arrow_types")
    proto_columns = later("partita.registry.proto_columns")
    registry_spark = later("partita.registry.spark")

COMPARED: dict[type, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}

Send: TypeAlias = Callable[[pa.RecordBatch, Mapping[int, str]], None]
"""Takes the records of a batch whose rows are named, with the reasons why they cannot be decoded."""


class TypedColumns:
    """The decoding of one task: batches of records become batches of the read's columns."""

    def __init__(self, typed: Typed, filters: Sequence[Filter] = (), send: Send | None = None) -> None:
        self._typed = typed
        self._filters = filters
        self._send = send
        self._decoders = [(form, decoder_of(form, typed)) for form in typed.forms]

    def __call__(self, records: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The columns of `schema`. Raises SourceError for a record that cannot be decoded, where that is asked for.

        With `send`, such records are no rows; it returns when they are durable elsewhere.
        """
        found: dict[str, pa.Array] = {}
        reasons: dict[int, str] = {}
        for form, decoder in self._decoders:
            decoded = decoder.decode(records.column(form.side))
            for field, column in zip(decoded.columns.type, decoded.columns.flatten(), strict=True):
                found[field.name] = column
            for row, reason in decoded.faults:
                reasons.setdefault(row, f"{form.side}: {reason}")
        if reasons and self._typed.on_error == "fail":
            raise SourceError(_first(records, reasons))
        if self._typed.on_error == "column":
            found |= self._error_columns(records, reasons)
        plain = pa.schema([field for field in schema if field.name not in found])
        for name, column in zip(plain.names, tables.chosen(records, plain).columns, strict=True):
            found[name] = column
        batch = pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)
        if reasons and self._send is not None:
            self._send(records, reasons)
            batch = batch.filter(pa.array(row not in reasons for row in range(len(records))))
        return let_through(batch, self._filters)

    def _error_columns(self, records: pa.RecordBatch, reasons: dict[int, str]) -> dict[str, pa.Array]:
        if not reasons:
            return {
                name: pa.nulls(len(records), pa.string() if name == ERROR else pa.binary())
                for name in self._typed.error_columns
            }
        texts = pa.array([reasons.get(row) for row in range(len(records))], pa.string())
        bad = texts.is_valid()
        raw = {RAW[form.side]: pc.if_else(bad, records.column(form.side), None) for form in self._typed.forms}
        return {ERROR: texts, **raw}


def decoder_of(form: Form, typed: Typed) -> Decoder:
    """The decoder of one side."""
    columns = columns_of(form.columns)
    if form.format == "json":
        return JsonDecoder(columns, typed.zone)
    if form.format == "csv":
        return CsvDecoder(columns, typed.zone, typed.separator)
    registry = None if form.registry is None else registry_spark.registry_at(form.registry)
    if form.format == "protobuf":
        if registry is None:
            return proto_columns.bare_messages(columns, form.given or "")
        return proto_columns.framed_messages(registry, columns)
    if registry is not None:
        return arrow_types.framed_decoder(registry, columns, form.given)
    return AvroDecoder(columns, AvroSchema(form.given or ""))


def looked_up(typed: Typed, topics: Sequence[str]) -> Typed:
    """The same with the columns of a given message or the topic's newest schema, where none are named.

    Raises ConfigError.
    """

    def newest(form: Form) -> pa.Schema:
        if form.registry is None:
            try:
                return proto_columns.columns_of_message(proto_columns.given_message(form.given or ""))
            except SchemaError as error:
                raise ConfigError(f"{form.side}Schema: {error}") from error
        if len(topics) != 1:
            raise ConfigError(f"give {form.side}Schema: only of a single topic in subscribe the newest schema is known")
        try:
            return registry_spark.newest_columns(
                form.registry or "", topics[0], is_key=form.side == "key", kind=form.format.upper()
            )
        except (KafkaError, SchemaError) as error:
            raise ConfigError(f"{form.side}Schema is not given, and the registry's cannot be had: {error}") from error

    return with_columns(typed, newest)


def let_through(batch: pa.RecordBatch, filters: Sequence[Filter]) -> pa.RecordBatch:
    """Leave out rows that these filters exclude; Spark applies them again to those that are left."""
    for found in filters:
        mask = _mask(batch, found)
        if mask is not None:
            batch = batch.filter(mask)
    return batch


def _mask(batch: pa.RecordBatch, found: Any) -> pa.Array | None:
    """Which rows to keep, all of those that Spark would keep; None: no idea."""
    column = batch.column(found.attribute[0])
    if isinstance(found, IsNotNull):
        return column.is_valid()
    try:
        if isinstance(found, In):
            mask = pc.is_in(column, pa.array(list(found.value), column.type))
        else:
            mask = COMPARED[type(found)](column, pa.scalar(found.value, column.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    # To Spark, NaN equals itself and is larger than any number.
    return pc.or_(mask, pc.is_nan(column)) if pa.types.is_floating(column.type) else mask


def _first(records: pa.RecordBatch, reasons: dict[int, str]) -> str:
    row = min(reasons)
    topic, partition, offset = (records.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return (
        f"{topic}-{partition} at offset {offset}: {reasons[row]}. "
        "onError=column keeps such records as rows with the reason in _error, onError=deadLetter in another topic"
    )
