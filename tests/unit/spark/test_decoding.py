"""CSV and values of a registry in a pipeline: what fits the columns, and what is a record that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType

from partita.records.typed.ddl import columns_text
from partita.registry import AvroSerializer, FolderRegistry, ProtobufSerializer, RegistryUnavailableError
from partita.spark.pipeline.decoding import WorkerDecode
from partita.spark.settings.typed import Form, Typed
from partita.spark.spark_api import arrow_schema
from support.registry_service import proto_classes

TEXT, INT = StringType(), IntegerType()
FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": ["null", "string"]},
        {"name": "seats", "type": "long"},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}


def decoded(
    folder: Path, columns: dict[str, DataType], *values: bytes | None, form: str = "avro"
) -> list[dict[str, Any]]:
    wanted = StructType([StructField(name, of_type) for name, of_type in columns.items()])
    batch = pa.record_batch({"_value": pa.array(values, pa.binary())})
    chosen = Form("value", form, columns_text(arrow_schema(wanted)), registry=str(folder))
    (found,) = WorkerDecode(Typed((chosen,)))(iter([batch]))
    rows: list[dict[str, Any]] = found.drop_columns(["_value"]).to_pylist()
    return rows


def flight(folder: Path, carrier: str | None, seats: int) -> bytes:
    row = {"carrier": carrier, "seats": seats, "id": UUID(int=seats)}
    data = AvroSerializer(FolderRegistry(folder), FLIGHT).serialize("t", (), row)
    assert data is not None
    return data


def test_a_value_of_another_type_is_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    """Issue 13, item 3: it failed the pipeline with an error of Arrow that named neither column nor record."""
    values = [flight(tmp_path, "UA", 3), flight(tmp_path, "AA", 2**40), flight(tmp_path, None, 4), None, b"no frame"]
    rows = decoded(tmp_path, {"carrier": TEXT, "seats": INT, "id": TEXT}, *values)
    ids = [None if row["id"] is None else UUID(row["id"]).int for row in rows]
    assert [(row["carrier"], row["seats"]) for row in rows] == [("UA", 3), (None, None), (None, 4), *[(None, None)] * 2]
    assert ids == [3, None, 4, None, None]
    assert [row["_error"] for row in rows[:4]] == [None, "seats is 1099511627776, which is no int", None, None]
    assert "expected a zero byte" in rows[4]["_error"]
    rows = decoded(tmp_path, {"carrier": INT, "seats": TEXT}, *values[:3])
    said = "schema 1: carrier is string in the record's schema, which cannot be read as int"
    assert [row["_error"] for row in rows] == [said] * 3


def test_protobuf_columns_have_the_types_of_the_message(tmp_path: Path) -> None:
    leg = proto_classes()[1]
    data = ProtobufSerializer(FolderRegistry(tmp_path), leg).serialize("t", (), leg(carrier="UA", delay_minutes=7))
    rows = decoded(tmp_path, {"carrier": TEXT, "delay_minutes": INT}, data, form="protobuf")
    assert rows == [{"carrier": "UA", "delay_minutes": 7, "_error": None}]


def test_csv_has_the_reasons_of_records_that_cannot_be_read(tmp_path: Path) -> None:
    rows = decoded(tmp_path, {"carrier": TEXT, "seats": INT}, b'"U,A",3', b"AA,x", None, form="csv")
    assert [(row["carrier"], row["seats"], row["_error"]) for row in rows] == [
        *(("U,A", 3, None), ("AA", None, "seats is x, which is no int"), (None, None, None))
    ]


def test_without_its_schemas_no_record_is_called_unreadable(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnavailableError, match="there is no folder"):
        decoded(tmp_path / "misspelt", {"carrier": TEXT}, flight(tmp_path, "UA", 3))
