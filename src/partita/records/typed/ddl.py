"""Columns from text as SQL has it, "carrier string, dep_delay int", and back: Arrow's types for Spark's."""

from __future__ import annotations

import re
from difflib import get_close_matches

import pyarrow as pa
from pyarrow import types as kinds

SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(), "byte": pa.int8(), "smallint": pa.int16(), "short": pa.int16(),
    "int": pa.int32(), "integer": pa.int32(), "bigint": pa.int64(), "long": pa.int64(),
    "float": pa.float32(), "real": pa.float32(), "double": pa.float64(),
    "string": pa.string(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
NESTED = ("decimal", "array", "map", "struct")
_NAMES = {kind: name for name, kind in reversed(SIMPLE.items())}
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([\w-]+)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|([<>(),:]))")
_PRECISION_MAX = 38


class SchemaError(ValueError):
    """A text that is no list of columns."""


def columns_of(text: str) -> pa.Schema:
    """The columns of a text such as "carrier string, delays array<int>". Raises SchemaError."""
    reader = _Reader(text)
    fields = reader.fields("")
    if not fields:
        raise SchemaError("a schema names columns and their types, as in 'carrier string, dep_delay int'")
    return pa.schema(fields)


def type_text(kind: pa.DataType) -> str:
    """The type as SQL has it."""
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_map(kind):
        return f"map<{type_text(kind.key_type)},{type_text(kind.item_type)}>"
    if kinds.is_list(kind):
        return f"array<{type_text(kind.value_type)}>"
    if kinds.is_struct(kind):
        return f"struct<{','.join(f'{_quoted(field.name)}:{type_text(field.type)}' for field in kind)}>"
    return _NAMES.get(kind, str(kind))


def columns_text(schema: pa.Schema) -> str:
    """The text that `columns_of` reads as these columns."""
    return ", ".join(f"{_quoted(field.name)} {type_text(field.type)}" for field in schema)


def _quoted(name: str) -> str:
    if name.isidentifier() and name.isascii():
        return name
    quoted = name.replace("`", "``")
    return f"`{quoted}`"


class _Reader:
    """Walks the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, bool]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise SchemaError(f"{text[at:].strip():.30} is no part of a schema such as 'carrier string, delay int'")
            quoted, word, comment, sign = found.groups()
            self._tokens.append((quoted.replace("``", "`") if quoted else word or comment or sign, bool(quoted)))
            at = found.end()
        self._at = 0

    def fields(self, end: str) -> list[pa.Field]:
        """Columns until `end`."""
        fields: list[pa.Field] = []
        while self._at < len(self._tokens) or end:
            name, is_quoted = self._next("a column's name")
            if name == end and not is_quoted and not fields:
                break
            if name in ("<", ">", "(", ")", ",", ":") and not is_quoted:
                raise SchemaError(f"expected a column's name, found {name!r}")
            if name.lower() in (field.name.lower() for field in fields):
                raise SchemaError(f"the column {name} is named twice")
            self._take(":")
            kind = self._kind(name)
            if self._take("not") and not self._take("null"):
                raise SchemaError(f"column {name}: expected NULL behind NOT")
            if self._take("comment"):
                self._next("a comment")
            fields.append(pa.field(name, kind))
            if not self._take(","):
                if self._at < len(self._tokens) and not end:
                    raise SchemaError(f"expected a comma behind the column {name}, found {self._tokens[self._at][0]!r}")
                if end:
                    self._must(end)
                break
        return fields

    def _kind(self, name: str) -> pa.DataType:
        word = self._next(f"the type of the column {name}")[0].lower()
        if word in SIMPLE:
            return SIMPLE[word]
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word in NESTED:
            self._must("<")
            if word == "struct":
                return pa.struct(self.fields(">"))
            first = self._kind(name)
            if word == "map":
                self._must(",")
                kind = pa.map_(first, self._kind(name))
            else:
                kind = pa.list_(pa.field("element", first))
            self._must(">")
            return kind
        near = get_close_matches(word, (*SIMPLE, *NESTED), n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join((*SIMPLE, *NESTED))}"
        raise SchemaError(f"the column {name} has the type {word}, which cannot be decoded; {hint}")

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number()
            scale = self._number() if self._take(",") else 0
            self._must(")")
        if not 1 <= precision <= _PRECISION_MAX or scale > precision:
            raise SchemaError(f"decimal({precision},{scale}) has no values: at most 38 digits, of them the scale's")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        text = self._next("a number")[0]
        if not text.isdecimal():
            raise SchemaError(f"expected a number, found {text!r}")
        return int(text)

    def _next(self, wanted: str) -> tuple[str, bool]:
        if self._at == len(self._tokens):
            raise SchemaError(f"the schema ends where {wanted} should be")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, word: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at][0].lower() == word
        self._at += found
        return found

    def _must(self, sign: str) -> None:
        found = self._next(repr(sign))[0]
        if found != sign:
            raise SchemaError(f"expected {sign!r}, found {found!r}")
