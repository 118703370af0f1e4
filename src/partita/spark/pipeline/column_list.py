"""Check a SQL column list such as "carrier string, delay int" before Spark parses it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from partita.options import ConfigError

TYPES = frozenset(
    ("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real",
     "double", "date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "character", "char",
     "varchar", "binary", "decimal", "dec", "numeric", "void", "interval", "variant", "geography", "geometry",
     "array", "map", "struct")
)  # fmt: skip
"""The first words of Spark's types."""
RESERVED = frozenset(
    ("_key", "_value", "_topic", "_partition", "_offset", "_timestamp", "_error", "_reason", "_corrupt")
)
"""Columns that decoded records have besides their own, some only for a while."""
_COLUMN = re.compile(r"\s*(?:`([^`]+)`|([\w-]+))\s*(?::|\s)\s*([A-Za-z_]+)")
_INSIDE, _OUTSIDE = "<(", ">)"


def check_columns(text: str) -> None:
    """Raises ConfigError for a column without a type, of an unknown type, named twice, or with a reserved name.

    The contents of array, map and struct, and lists with comments, are left to Spark.
    """
    if "'" in text or '"' in text:
        return
    seen = set()
    for part in _parts(text):
        found = _COLUMN.match(part)
        if found is None:
            raise ConfigError(f"schema: {part.strip()!r} is not a name and a type, as in 'delay int'")
        name, kind = (found[1] or found[2]).lower(), found[3].lower()
        if kind not in TYPES:
            near = get_close_matches(kind, sorted(TYPES), n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"schema: column {name} has the type {found[3]!r}, which Spark does not know{hint}")
        if name in seen:
            raise ConfigError(f"schema names the column {name} twice")
        if name in RESERVED:
            raise ConfigError(f"schema names the column {name}, which every record has already")
        seen.add(name)


def _parts(text: str) -> Iterator[str]:
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in _INSIDE) - (letter in _OUTSIDE)
        if letter == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]
