"""Messages of Protobuf become typed columns, with the values that the protobuf library reads."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from partita.records.typed.ddl import SchemaError, columns_of
from partita.records.typed.decoding import Decoded
from partita.registry import FolderRegistry, ProtobufSerializer
from partita.registry.proto_columns import (
    bare_messages,
    columns_of_message,
    framed_messages,
    given_message,
    message_at,
)
from partita.registry.protobuf import is_repeated
from partita.registry.schema import Schema

SCALARS = [
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message"),
    *("bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
]
"""Types of Protobuf by their numbers, from 1 on."""
PLAIN = [kind for kind in SCALARS if kind not in ("group", "message", "enum")]
LABELS = descriptor_pb2.FieldDescriptorProto


def file_of(syntax: str) -> Any:
    """A file with a message of fields of all types: single, optional, repeated, in a map and in a message."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{syntax}.proto", package=f"test.{syntax}", syntax=syntax)
    file.dependency.append("google/protobuf/timestamp.proto")
    colour = file.enum_type.add(name="Colour")
    for number, name in ((0, "NONE"), (1, "RED"), (-2, "ODD")):
        colour.value.add(name=name, number=number)
    inner = file.message_type.add(name="Inner")
    outer = file.message_type.add(name="Outer")
    add(inner, "n", "int32"), add(inner, "s", "string"), add(inner, "more", "sint64", label="repeated")
    add(inner, "at", "message", type_name=".google.protobuf.Timestamp")
    for label in ("optional", "repeated"):
        for kind in PLAIN:
            add(outer, f"{label[:3]}_{kind}", kind, label=label)
        add(outer, f"{label[:3]}_enum", "enum", type_name=f".test.{syntax}.Colour", label=label)
        add(outer, f"{label[:3]}_inner", "message", type_name=f".test.{syntax}.Inner", label=label)
        add(outer, f"{label[:3]}_at", "message", type_name=".google.protobuf.Timestamp", label=label)
    for kind in ("int64", "string", "double"):
        entry = outer.nested_type.add(name=f"Of{kind.title()}Entry")
        entry.options.map_entry = True
        add(entry, "key", "string"), add(entry, "value", kind)
        name = f".test.{syntax}.Outer.{entry.name}"
        add(outer, f"of_{kind}", "message", type_name=name, label="repeated")
    if syntax == "proto2":
        for name, kind, default in (("d_int", "int32", "7"), ("d_text", "string", "dflt"), ("d_real", "float", "1.5")):
            add(outer, name, kind).default_value = default
    else:
        outer.oneof_decl.add(name="_maybe")
        add(outer, "maybe", "int32", proto3_optional=True, oneof_index=0)
    return file


def add(message: Any, name: str, kind: str, *, label: str = "optional", **more: Any) -> Any:
    return message.field.add(
        name=name,
        number=len(message.field) * (1 if message.options.map_entry else 3) + 1,
        type=SCALARS.index(kind) + 1,
        label=getattr(LABELS, f"LABEL_{label.upper()}"),
        **more,
    )


def described(file: Any, name: str = "Outer") -> str:
    return f"{file.package}.{name} {base64.b64encode(file.SerializeToString()).decode()}"


def class_of(file: Any, name: str = "Outer") -> Any:
    return message_factory.GetMessageClass(given_message(described(file, name)))


def decode(file: Any, raw: list[bytes | None], columns: str | None = None) -> Decoded:
    text = described(file)
    wanted = columns_of_message(given_message(text)) if columns is None else columns_of(columns)
    found = bare_messages(wanted, text).decode(pa.array(raw, pa.binary()))
    found.columns.validate(full=True)
    return found


def random_message(random: Random, kind: Any, depth: int = 0) -> Any:
    message = kind()
    for field in message.DESCRIPTOR.fields:
        if random.random() < 0.4:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values = getattr(message, field.name)
            for key in random.sample("abc", random.randrange(3)):
                values[key] = random_value(random, field.message_type.fields_by_name["value"])
        elif field.message_type is not None:
            for target in [getattr(message, field.name)] if not is_repeated(field) else range(random.randrange(3)):
                inner = getattr(message, field.name).add() if isinstance(target, int) else target
                if is_time(inner):
                    inner.seconds, inner.nanos = random.randrange(-(10**10), 10**10), random.randrange(10**9)
                else:
                    inner.CopyFrom(random_message(random, type(inner)))
        elif is_repeated(field):
            getattr(message, field.name).extend(random_value(random, field) for _ in range(random.randrange(4)))
        else:
            setattr(message, field.name, random_value(random, field))
    return message


def random_value(random: Random, field: Any) -> Any:
    kind = SCALARS[field.type - 1]
    if kind == "enum":
        return random.choice([0, 1, -2] if field.enum_type.is_closed else [0, 1, -2, 9])
    if kind == "bool":
        return random.random() < 0.5
    if kind in ("double", "float"):
        return random.choice((0.0, -0.0, 1.5, random.uniform(-9, 9)))
    if kind in ("string", "bytes"):
        text = random.choice(("", "plain", "grün", "😀" * 9))
        return text if kind == "string" else text.encode() + b"\xff"
    bits = 32 if "32" in kind else 64
    small = random.randrange(2**bits) >> random.randrange(bits + 1)
    return small if kind.startswith("u") or kind.startswith("fixed") else small - 2 ** (bits - 1)


def is_time(value: Any) -> bool:
    return getattr(getattr(value, "DESCRIPTOR", None), "full_name", "") == "google.protobuf.Timestamp"


def by_library(message: Any) -> dict[str, Any]:
    """The row that the library's view of a message makes."""
    return {field.name: _seen(message, field) for field in message.DESCRIPTOR.fields}


def _seen(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return sorted((key, _as_column(field.message_type.fields_by_name["value"], value[key])) for key in value)
    if is_repeated(field):
        return [_as_column(field, one) for one in value]
    if field.has_presence:
        has = message.HasField(field.name) or field.has_default_value
    else:
        has = field.name in {found.name for found, _ in message.ListFields()}
    return _as_column(field, value) if has else None


def _as_column(field: Any, value: Any) -> Any:
    kind = SCALARS[field.type - 1]
    if is_time(value):
        return value.seconds * 1_000_000 + value.nanos // 1000
    if field.message_type is not None:
        return by_library(value)
    if kind == "enum":
        named = field.enum_type.values_by_number.get(value)
        return f"UNKNOWN_ENUM_VALUE_{field.enum_type.name}_{value}" if named is None else named.name
    if kind in ("uint32", "fixed32", "uint64", "fixed64"):
        bits = 32 if "32" in kind else 64
        return (value ^ 1 << bits - 1) - (1 << bits - 1)
    return value


def rows_of(found: Decoded) -> Iterator[Any]:
    """The rows, with times as numbers and the entries of maps in order."""
    names = [field.name for field in found.columns.type]
    columns = [_plain(column).to_pylist() for column in found.columns.flatten()]
    for row in zip(*columns, strict=True):
        yield {n: sorted(v) if n.startswith("of_") and v is not None else v for n, v in zip(names, row, strict=True)}


def _plain(column: Any) -> Any:
    return column.cast(_with_numbers(column.type))


def _with_numbers(kind: Any) -> Any:
    """The type with whole numbers for times."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    return pa.int64() if pa.types.is_timestamp(kind) else kind


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_generated_messages_have_the_values_of_the_library(syntax: str) -> None:
    random = Random(7)
    kind = class_of(file_of(syntax))
    messages = [random_message(random, kind) for _ in range(400)]
    found = decode(file_of(syntax), [message.SerializeToString() for message in messages])
    assert not found.faults
    for ours, message in zip(rows_of(found), messages, strict=True):
        assert repr(ours) == repr(by_library(message))


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_damaged_messages_spoil_their_own_rows_only(syntax: str) -> None:
    random = Random(8)
    kind = class_of(file_of(syntax))
    raw = [random_message(random, kind).SerializeToString() for _ in range(300)]
    damaged = [bytearray(one) for one in raw]
    for one in damaged:
        one[random.randrange(len(one))] ^= 1 << random.randrange(8)
    mixed = [one for pair in zip(raw, map(bytes, damaged), strict=True) for one in pair]
    found = decode(file_of(syntax), list(mixed))
    assert list(rows_of(found))[::2] == list(rows_of(decode(file_of(syntax), list(raw))))
    assert {row % 2 for row, _ in found.faults} == {1}


def test_fields_come_in_any_order_packed_or_not_and_the_last_one_counts() -> None:
    file = file_of("proto3")
    number = {field.name: field.number for field in given_message(described(file)).fields}

    def tagged(name: str, wire: int, body: bytes) -> bytes:
        tag = number[name] << 3 | wire
        return bytes([tag & 0x7F | 0x80, tag >> 7]) + body

    raw = tagged("rep_int32", 0, b"\x07") + tagged("opt_string", 2, b"\x01a") + tagged("rep_int32", 2, b"\x02\x08\x09")
    raw += tagged("opt_string", 2, b"\x02bc") + tagged("opt_int32", 5, b"\0\0\0\0")
    found = decode(file, [raw, None], "opt_string string, rep_int32 array<int>, opt_int32 int, none date")
    assert found.columns.to_pylist() == [
        {"opt_string": "bc", "rep_int32": [7, 8, 9], "opt_int32": None, "none": None},
        None,
    ]
    assert decode(file, [tagged("opt_string", 2, b"\x01\xff")]).faults == [(0, "opt_string is no text in UTF-8")]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_messages_in_parts_are_merged_as_the_library_merges_them(syntax: str) -> None:
    random = Random(9)
    kind = class_of(file_of(syntax))
    raw: list[bytes | None] = []
    for _ in range(300):
        parts = [random_message(random, kind) for _ in range(random.randrange(2, 4))]
        for part in parts[1:]:
            # Of two entries with one key, the library keeps one, the column both.
            part.ClearField("of_int64"), part.ClearField("of_string"), part.ClearField("of_double")
            part.opt_at.ClearField("seconds"), part.opt_inner.at.ClearField(random.choice(("seconds", "nanos")))
        raw.append(b"".join(part.SerializeToString() for part in parts))
    found = decode(file_of(syntax), raw)
    assert not found.faults
    for ours, joined in zip(rows_of(found), raw, strict=True):
        assert repr(ours) == repr(by_library(kind.FromString(joined)))
    cut = decode(file_of(syntax), [one[:-1] for one in raw if one is not None])
    assert len(cut.faults) == len(raw)


def test_both_entries_of_a_map_with_one_key_are_kept() -> None:
    file = file_of("proto3")
    raw = b"".join(class_of(file)(of_int64={"k": value}).SerializeToString() for value in (1, 2))
    assert decode(file, [raw]).columns.to_pylist()[0]["of_int64"] == [("k", 1), ("k", 2)]


def test_parts_at_every_level_cost_no_more_than_their_bytes() -> None:
    """Reading each level twice would read the innermost one 2**40 times."""
    levels = 40
    file = descriptor_pb2.FileDescriptorProto(name="deep.proto", package="deep", syntax="proto3")
    for level in range(levels):
        message = file.message_type.add(name=f"M{level}" if level else "Outer")
        if level < levels - 1:
            add(message, "sub", "message", type_name=f".deep.M{level + 1}")
        add(message, "n", "int32")
    raw = class_of(file, f"M{levels - 1}")(n=5).SerializeToString()
    for level in reversed(range(levels - 1)):
        kind = class_of(file, f"M{level}" if level else "Outer")
        raw = kind(sub={}).SerializeToString() + kind(n=1).SerializeToString() + _in_sub(raw)
    found = decode(file, [raw])
    (row,) = found.columns.to_pylist()
    assert not found.faults
    assert row == _as_rows(class_of(file).FromString(raw))


def _in_sub(raw: bytes) -> bytes:
    size = len(raw)
    return b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + raw


def _as_rows(message: Any) -> dict[str, Any]:
    has_sub = "sub" in message.DESCRIPTOR.fields_by_name
    inner = {"sub": _as_rows(message.sub) if message.HasField("sub") else None} if has_sub else {}
    return inner | {"n": message.n or None}


def test_of_two_names_of_a_number_the_first_counts_and_defaults_may_have_64_bits() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="alias.proto", package="alias", syntax="proto2")
    state = file.enum_type.add(name="State")
    state.options.allow_alias = True
    for name, number in (("OFF", 0), ("ON", 1), ("RUNNING", 1)):
        state.value.add(name=name, number=number)
    message = file.message_type.add(name="Outer")
    add(message, "state", "enum", type_name=".alias.State")
    for kind in ("uint64", "fixed64", "uint32"):
        add(message, f"most_{kind}", kind).default_value = str(2 ** int(kind[-2:]) - 1)
    kind = class_of(file)
    found = decode(file, [kind(state=1).SerializeToString(), b""])
    assert list(rows_of(found)) == [by_library(kind(state=1)), by_library(kind())]
    assert found.columns.to_pylist()[0] == {"state": "ON", "most_uint64": -1, "most_fixed64": -1, "most_uint32": -1}


def test_a_required_field_that_is_missing_spoils_the_record_whatever_its_type() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="must.proto", package="must", syntax="proto2")
    inner, outer = file.message_type.add(name="Inner"), file.message_type.add(name="Outer")
    add(inner, "n", "int32", label="required")
    add(outer, "sub", "message", type_name=".must.Inner", label="required")
    kind = class_of(file)
    found = decode(file, [b"", kind(sub={"n": 5}).SerializeToString(), b"\x0a\0"])
    assert found.columns.field(0).to_pylist() == [None, {"n": 5}, None]
    assert found.faults == [(0, "the required field sub is missing"), (2, "the required field sub.n is missing")]


def test_googles_own_types_are_known_to_a_process_that_has_not_imported_them() -> None:
    """Its modules add them to the library; here tests have done so, a worker of Spark has not."""
    code = (
        "import sys; from partita.registry.proto_columns import columns_of_message, given_message; "
        "print(columns_of_message(given_message(sys.argv[1])).field('opt_at').type)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, described(file_of("proto3"))], capture_output=True, text=True, check=True
    )
    assert done.stdout == "timestamp[us, tz=UTC]\n"


def test_framed_messages_are_read_by_the_schema_and_the_message_they_name(tmp_path: Any) -> None:
    registry = FolderRegistry(tmp_path)
    file = file_of("proto3")
    pool = descriptor_pool.DescriptorPool()
    timestamp_file = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(timestamp_file)
    pool.Add(timestamp_file)
    pool.Add(file)
    outer, inner = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"test.proto3.{name}"))
        for name in ("Outer", "Inner")
    )
    of_inner = ProtobufSerializer(registry, inner).serialize("t", (), inner(n=5, s="x"))
    of_outer = ProtobufSerializer(registry, outer).serialize("t", (), outer(opt_int32=1))
    _, schema = registry.latest("t-value")
    assert columns_of_message(message_at(schema)).names == ["n", "s", "more", "at"]
    values = [of_inner, of_outer, b"\0\0\0\0\x63\0", b"bare", None]
    found = framed_messages(registry, columns_of("n int, s string")).decode(pa.array(values, pa.binary()))
    assert found.columns.to_pylist() == [{"n": 5, "s": "x"}, {"n": None, "s": None}, None, None, None]
    assert [row for row, _ in found.faults] == [2, 3]
    assert found.faults[1][1].startswith("expected a zero byte and a schema id")
    with pytest.raises(SchemaError, match="no message at"):
        message_at(schema, [9])


def test_columns_of_other_types_and_types_without_columns_are_refused() -> None:
    file = file_of("proto3")
    with pytest.raises(SchemaError, match="opt_int32 is int in the record's schema, which cannot be read as string"):
        decode(file, [b""], "opt_int32 string")
    with pytest.raises(SchemaError, match="rep_int32 is repeated"):
        decode(file, [b""], "rep_int32 int")
    add(file.message_type[0], "again", "message", type_name=".test.proto3.Inner")
    with pytest.raises(SchemaError, match="contains itself"):
        decode(file, [b""])
    with pytest.raises(SchemaError, match="expected a message's full name"):
        given_message("test.Outer nonsense!")
    with pytest.raises(SchemaError, match="is of type AVRO"):
        message_at(Schema("{}"))
