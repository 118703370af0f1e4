"""Avro to columns: the values of another reader of Avro, and nothing of a malformed record in the next one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from partita.protocol.writer import Writer
from partita.records.typed.avro_schemas import AvroSchema, defaults_of
from partita.records.typed.ddl import SchemaError, columns_of, type_text
from partita.records.typed.decoding import AvroDecoder, Decoded

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAVES: tuple[Any, ...] = (
    "null", "boolean", "int", "long", "float", "double", "bytes", "string",
    {"type": "fixed", "name": "F", "size": 3}, {"type": "enum", "name": "E", "symbols": ["a", "b", "c"]},
    {"type": "bytes", "logicalType": "decimal", "precision": 25, "scale": 4},
    {"type": "fixed", "name": "D", "size": 6, "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "long", "logicalType": "timestamp-millis"}, {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "int", "logicalType": "time-millis"}, {"type": "int", "logicalType": "date"},
)  # fmt: skip


class Composer:
    """Random schemas, each with values for it and the values that its columns should have."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def schema(self, depth: int) -> Any:
        pick = self.random.randrange(6) if depth else 0
        if pick == 1:
            return {"type": "array", "items": self.schema(depth - 1)}
        if pick == 2:
            return {"type": "map", "values": self.schema(depth - 1)}
        if pick == 3:
            return self.record(depth - 1)
        if pick == 4:
            branches = [self.leaf(), "null"]
            return [*self.random.sample(branches, 2)] if branches[0] != "null" else ["null", "int"]
        return self.leaf()

    def leaf(self) -> Any:
        leaf = self.random.choice(LEAVES)
        if isinstance(leaf, dict) and "name" in leaf:
            self.names += 1
            return {**leaf, "name": f"{leaf['name']}{self.names}"}
        return leaf

    def record(self, depth: int) -> dict[str, Any]:
        self.names += 1
        number = self.names
        fields = [{"name": f"f{n}", "type": self.schema(depth)} for n in range(self.random.randrange(1, 6))]
        return {"type": "record", "name": f"R{number}", "namespace": "a.b", "fields": fields}

    def value(self, schema: Any) -> tuple[Any, Any]:
        """A value to write, and what is expected of it."""
        random = self.random
        if isinstance(schema, list):
            return self.value(random.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        if kind == "record":
            parts = {field["name"]: self.value(field["type"]) for field in schema["fields"]}
            return {name: one for name, (one, _) in parts.items()}, {name: one for name, (_, one) in parts.items()}
        if kind == "array":
            items = [self.value(schema["items"]) for _ in range(random.randrange(4))]
            return [one for one, _ in items], [one for _, one in items]
        if kind == "map":
            entries = {f"k{n}": self.value(schema["values"]) for n in range(random.randrange(4))}
            return {name: one for name, (one, _) in entries.items()}, [
                (name, one) for name, (_, one) in entries.items()
            ]
        if logical == "decimal":
            digits = random.randrange(-(10 ** schema["precision"]) + 1, 10 ** schema["precision"])
            number = Decimal(digits).scaleb(-schema["scale"])
            return number, number
        if logical in ("timestamp-millis", "timestamp-micros"):
            unit = 1000 if logical == "timestamp-millis" else 1
            at = EPOCH + timedelta(microseconds=random.randrange(-(10**15), 10**15) // unit * unit)
            return at, at
        if logical == "date":
            day = (EPOCH + timedelta(days=random.randrange(-9999, 9999))).date()
            return day, day
        plain: dict[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": lambda: random.random() < 0.5,
            "int": lambda: random.randrange(0 if logical else -(2**31), 86_400_000 if logical else 2**31),
            "long": lambda: random.randrange(-(2**63), 2**63) >> random.randrange(64),
            "float": lambda: random.randrange(1 << 24) / 8,
            "double": random.random,
            "bytes": lambda: random.randbytes(random.randrange(9)),
            "string": lambda: random.choice(("", "plain", "grün", "😀" * 40)),
            "fixed": lambda: random.randbytes(3),
            "enum": lambda: random.choice("abc"),
        }
        value = plain[kind]()
        return value, value


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


def decode(decoder: AvroDecoder, *values: bytes | None) -> Decoded:
    found = decoder.decode(pa.array(values, pa.binary()))
    found.columns.validate(full=True)
    return found


def test_values_are_those_that_were_written_and_damage_affects_one_record_only() -> None:
    for seed in range(150):
        composer = Composer(seed)
        schema = composer.record(3)
        pairs = [composer.value(schema) for _ in range(5)]
        raw = [written(schema, value) for value, _ in pairs]
        parsed = AvroSchema(json.dumps(schema))
        decoder = AvroDecoder(parsed.columns(), parsed)
        found = decode(decoder, *raw)
        assert found.columns.to_pylist() == [expected for _, expected in pairs], schema
        assert not found.faults
        damaged = [part for one in raw for part in (one, one[:-1] if one else b"", one + b"\0")]
        again = decode(decoder, *damaged)
        assert again.columns.to_pylist()[::3] == found.columns.to_pylist()
        faulty = {row for row, _ in again.faults}
        assert faulty >= set(range(2, 15, 3))
        assert not faulty & set(range(0, 15, 3))
        names = composer.random.sample(parsed.columns().names, 1)
        fewer = decode(AvroDecoder(pa.schema([parsed.columns().field(name) for name in names]), parsed), *raw)
        assert fewer.columns.to_pylist() == [{name: expected[name] for name in names} for _, expected in pairs]


FLIGHT = {"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "string"}]}
LATER = {**FLIGHT, "fields": [{"name": "delay", "type": ["null", "int"]}, *FLIGHT["fields"]]}


def test_each_record_is_read_by_the_schema_that_it_names() -> None:
    asked: list[int] = []

    def find(schema_id: int) -> AvroSchema:
        asked.append(schema_id)
        if schema_id == 9:
            raise SchemaError("no schema with id 9")
        return AvroSchema(json.dumps({1: FLIGHT, 2: LATER, 3: "string"}[schema_id]))

    values = [
        b"\0\0\0\0\1" + written(FLIGHT, {"carrier": "UA"}),
        b"\0\0\0\0\2" + written(LATER, {"carrier": "AA", "delay": 7}),
        b"\0\0\0\0\x09",
        b"\1\0\0\0\1",
        b"\0\0",
        b"\0\0\0\0\3\2x",
        None,
    ] * 2
    found = decode(AvroDecoder(columns_of("delay bigint, carrier string"), find), *values)
    assert [row and (row["delay"], row["carrier"]) for row in found.columns.to_pylist()] == [
        *((None, "UA"), (7, "AA"), None, None, None, None, None)
    ] * 2
    assert [row for row, _ in found.faults] == [2, 3, 4, 5, 9, 10, 11, 12]
    assert found.faults[0][1] == "schema 9: no schema with id 9"
    assert asked == [1, 2, 9, 3], "each once"


def test_a_field_that_the_writer_lacks_has_the_readers_default() -> None:
    reader = AvroSchema(json.dumps({**LATER, "fields": [
        *FLIGHT["fields"],
        {"name": "delay", "type": "int", "default": 5},
        {"name": "stops", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "gate", "type": "string", "default": "é"},
    ]}))  # fmt: skip
    decoder = AvroDecoder(reader.columns(), AvroSchema(json.dumps(FLIGHT)), defaults_of(reader))
    rows = decode(decoder, written(FLIGHT, {"carrier": "UA"}), b"\x7f").columns.to_pylist()
    assert rows == [{"carrier": "UA", "delay": 5, "stops": [], "note": None, "gate": "é"}, None]


def test_defaults_of_every_type_are_those_of_spark() -> None:
    forms: list[tuple[Any, Any, Any]] = [
        ({"type": "long", "logicalType": "timestamp-millis"}, 1234567, 1234567000),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1234567, 1234567),
        (["string", "int"], "s", {"member0": "s", "member1": None}),
        (["null", "string", "int"], 7, {"member0": None, "member1": 7}),
        (["int", "null"], 9, 9),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u0001\u0002", Decimal("2.58")),
        ({"type": "fixed", "name": "F", "size": 2}, "\u0001\u00ff", b"\x01\xff"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": ["null", "int"]}, {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        ({"type": "record", "name": "R", "fields": [{"name": "q", "type": "int"},
          {"name": "w", "type": "string", "default": "in"}]}, {"q": 1}, {"q": 1, "w": "in"}),
        ("float", 2, 2.0),
    ]  # fmt: skip
    fields = [{"name": f"c{n}", "type": kind, "default": given} for n, (kind, given, _) in enumerate(forms)]
    reader = AvroSchema(json.dumps({"type": "record", "name": "A", "fields": fields}))
    decoder = AvroDecoder(reader.columns(), AvroSchema(json.dumps(FLIGHT)), defaults_of(reader))
    found = decode(decoder, *[written(FLIGHT, {"carrier": "UA"})] * 2)
    assert not found.faults
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in found.columns.flatten()
    ]
    assert [column.to_pylist() for column in columns] == [[value] * 2 for _, _, value in forms]
    wrong = {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int", "default": "x"}]}
    with pytest.raises(SchemaError, match="a default that is not of its field's type"):
        defaults_of(AvroSchema(json.dumps(wrong)))


@pytest.mark.parametrize(
    ("union", "column"),
    [
        (["int", "null", "long"], "bigint"),
        (["float", "double"], "double"),
        (["null", "int", "string"], "struct<member0:int,member1:string>"),
    ],
)
def test_unions_of_several_types_are_columns_as_in_spark(union: list[str], column: str) -> None:
    schema = {"type": "record", "name": "U", "fields": [{"name": "u", "type": union}]}
    parsed = AvroSchema(json.dumps(schema))
    assert type_text(parsed.columns().field("u").type) == column
    rows = decode(AvroDecoder(parsed.columns(), parsed), *(written(schema, {"u": 3}), written(schema, {"u": None}))
                  if "null" in union else [written(schema, {"u": 3.0})]).columns.to_pylist()  # fmt: skip
    first = {"member0": 3, "member1": None} if "struct" in column else 3
    assert rows == [{"u": first}, {"u": None}][: len(rows)]


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x02", b"\x80" * 11, b"\x02\xff", b"\x01", b"\x02\xfe\xff\xff\xff\x0f", b"\x03\x02\x00\x00\x00\x00"],
)
def test_malformed_bytes_are_a_fault_whatever_they_announce(raw: bytes) -> None:
    schema = AvroSchema('{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"array","items":"string"}}]}')
    found = decode(AvroDecoder(schema.columns(), schema), raw, b"\x02\x02x\x00")
    assert found.columns.to_pylist() == [None, {"a": ["x"]}]
    assert [row for row, _ in found.faults] == [0]


def test_a_list_of_nothing_is_not_as_long_as_it_says() -> None:
    schema = AvroSchema('{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}')
    decoder = AvroDecoder(schema.columns(), schema)
    thousand = b"\xd0\x0f"
    found = decode(
        decoder, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", thousand * 40 + b"\x00", thousand * 5 + b"\x00"
    )
    assert [row for row, _ in found.faults] == [0, 1]
    assert len(found.columns.to_pylist()[2]["a"]) == 5000


def test_a_decimal_has_a_byte_and_a_time_the_whole_range_of_microseconds() -> None:
    kinds = ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
             {"type": "long", "logicalType": "timestamp-millis"})  # fmt: skip
    schema = AvroSchema(json.dumps({
        "type": "record", "name": "A", "fields": [{"name": f"c{n}", "type": kind} for n, kind in enumerate(kinds)]
    }))  # fmt: skip
    last = 9_223_372_036_854_775
    raw = [
        body + zigzag(at)
        for body, at in ((b"\x00", 0), (b"\x02\x07", last), (b"\x02\x07", -last), (b"\x02\x07", last + 1))
    ]
    found = decode(AvroDecoder(schema.columns(), schema), *raw)
    assert [row for row, _ in found.faults] == [0, 3]
    assert found.columns.field(1).cast(pa.int64()).to_pylist()[1:3] == [last * 1000, -last * 1000]


def zigzag(number: int) -> bytes:
    out = Writer()
    out.uvarint(number << 1 if number >= 0 else (-number << 1) - 1)
    return out.getvalue()


def test_a_boolean_is_true_by_one_only() -> None:
    """As in Avro's own reader."""
    schema = AvroSchema('{"type":"record","name":"A","fields":[{"name":"b","type":"boolean"}]}')
    found = decode(AvroDecoder(schema.columns(), schema), b"\x00", b"\x01", b"\x02", b"\xff")
    assert [row["b"] for row in found.columns.to_pylist()] == [False, True, False, False]


@pytest.mark.parametrize(
    "digits", [{}, {"precision": 2, "scale": 3}, {"precision": 0}, {"precision": 5}, {"precision": 2**31}]
)
def test_a_decimal_whose_digits_cannot_be_is_bytes(digits: dict[str, int]) -> None:
    """As Avro leaves out a logical type that is not valid."""
    kind = {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", **digits}
    schema = AvroSchema(json.dumps({"type": "record", "name": "A", "fields": [{"name": "d", "type": kind}]}))
    assert decode(AvroDecoder(schema.columns(), schema), b"\x01\x02").columns.to_pylist() == [{"d": b"\x01\x02"}]


@pytest.mark.parametrize("kind", [{"type": "bytes"}, {"type": "fixed", "name": "F", "size": 20}])
def test_a_decimal_of_more_digits_than_a_column_has_is_refused_and_passed_over(kind: dict[str, Any]) -> None:
    fields = [{"name": "d", "type": {**kind, "logicalType": "decimal", "precision": 40}}, {"name": "n", "type": "int"}]
    schema = AvroSchema(json.dumps({"type": "record", "name": "A", "fields": fields}))
    with pytest.raises(SchemaError, match="a decimal has at most 38 digits, not 40; leave the field out"):
        schema.columns()
    raw = (b"" if "size" in kind else b"\x28") + bytes(20) + b"\x0a"
    assert decode(AvroDecoder(columns_of("n int"), schema), raw).columns.to_pylist() == [{"n": 5}]


def test_the_size_of_a_block_counts_only_where_the_block_is_passed_over() -> None:
    """As in Avro's own reader."""
    fields = [{"name": "a", "type": {"type": "array", "items": "int"}}, {"name": "n", "type": "int"}]
    schema = AvroSchema(json.dumps({"type": "record", "name": "A", "fields": fields}))
    raw = b"\x03\xff\xff\xff\xff\x0f\x02\x04\x00\x0a"
    assert decode(AvroDecoder(schema.columns(), schema), raw).columns.to_pylist() == [{"a": [1, 2], "n": 5}]
    assert [row for row, _ in decode(AvroDecoder(columns_of("n int"), schema), raw).faults] == [0]


def test_a_type_that_contains_itself_is_passed_over_to_a_depth() -> None:
    tree = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "n", "type": "int"}, {"name": "t", "type": ["null", "T"]}],
    }
    schema = AvroSchema(json.dumps(tree))
    with pytest.raises(SchemaError, match="contains itself, which no column can"):
        schema.columns()
    decoder = AvroDecoder(columns_of("n int"), schema)
    found = decode(decoder, b"\x02\x02" * 100 + b"\x02\x00", b"\x02\x02" * 50_000 + b"\x02\x00")
    assert found.columns.to_pylist() == [{"n": 1}, None]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("carrier int", "carrier is string in the record's schema, which cannot be read as int"),
        ("carrier struct<a:int>", "carrier is string in the record's schema"),
        ("carrier array<string>", "carrier is string in the record's schema"),
    ],
)
def test_columns_that_the_records_do_not_have_are_refused(columns: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        AvroDecoder(columns_of(columns), AvroSchema(json.dumps(FLIGHT)))


@pytest.mark.parametrize("text", ["", "{", "7", '{"type": "record"}', '{"type": "what"}', '"string"', '["x"]'])
def test_a_text_that_is_no_schema_of_records_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        AvroSchema(text).columns()
