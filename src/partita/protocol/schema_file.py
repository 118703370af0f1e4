"""Read the compact schema files: one API or record family each, all versions in one.

A message starts in column 0: `kind Name first-last [flexible first+]`. Its fields follow, indented by two
spaces a level, in wire order: `name type [versions] [null versions] [tag number [versions]] [plain] [= default]`.
Types: int8 int16 uint16 int32 int64 float64 boolean string bytes records uuid, or a struct's name, whose fields
follow one level deeper; `[]` before makes an array, `?` behind makes it nullable (`null` narrows the versions). A
tagged nullable struct without a default is null in a new message, and read as an empty one where its tag is missing.
Versions are `2`, `2-5` or `2+`; left out: all of the parent's. `plain`: never in the flexible encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field

PRIMITIVES = {"int8", "int16", "uint16", "int32", "int64", "float64", "boolean", "string", "bytes", "records", "uuid"}


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range; empty when first > last."""

    first: int
    last: int

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.first, other.first), min(self.last, other.last))


NEVER = Versions(0, -1)


@dataclass(slots=True)
class Field:
    """One field of a message or struct. `tag` is None for ordinary fields."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions = NEVER
    tag: int | None = None
    tag_versions: Versions = NEVER
    is_plain: bool = False
    """Encoded as before flexible versions, even in them."""
    default: str | None = None
    fields: list[Field] = dataclass_field(default_factory=list)

    @property
    def is_struct(self) -> bool:
        """True if the field holds a struct, or an array of them."""
        return self.type not in PRIMITIVES


@dataclass(slots=True)
class Schema:
    """One message: a request, response, header, record key, record value or embedded data."""

    kind: str
    name: str
    versions: Versions
    flexible: Versions
    fields: list[Field]


@dataclass(slots=True)
class SchemaFile:
    """Everything one schema file says; `api` is (key, name) or None."""

    api: tuple[int, str] | None
    schemas: list[Schema]


def parse(text: str) -> SchemaFile:
    """Parse one schema file. Raises ValueError naming the line that cannot be read."""
    parsed = SchemaFile(None, [])
    levels: list[tuple[list[Field], Versions]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        try:
            if depth == 0 and words[0] == "api":
                parsed.api = (int(words[1]), words[2])
            elif depth == 0:
                schema = _schema(words)
                parsed.schemas.append(schema)
                levels = [(schema.fields, schema.versions)]
            else:
                del levels[depth:]
                fields, versions = levels[depth - 1]
                fields.append(_field(words, versions))
                levels.append((fields[-1].fields, fields[-1].versions))
        except (ValueError, IndexError) as error:
            raise ValueError(f"line {number}: cannot read {line.strip()!r}: {error}") from error
    return parsed


def _schema(words: list[str]) -> Schema:
    kind, name, versions, *rest = words
    span = _versions(versions, NEVER)
    flexible = NEVER
    if rest:
        if rest[0] != "flexible":
            raise ValueError(f"'flexible' expected, not {rest[0]!r}")
        flexible = _versions(rest[1], span)
    return Schema(kind, name, span, flexible, [])


def _versions(text: str, parent: Versions) -> Versions:
    if text.endswith("+"):
        return Versions(int(text[:-1]), parent.last)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


def _field(words: list[str], parent: Versions) -> Field:
    name, kind, *rest = words
    nullable = kind.endswith("?")
    kind = kind.removesuffix("?")
    found = Field(name, kind.removeprefix("[]"), kind.startswith("[]"), parent)
    if rest and rest[0][0].isdigit():
        found.versions = _versions(rest.pop(0), parent)
    found.nullable = found.versions if nullable else NEVER
    while rest:
        word = rest.pop(0)
        if word == "null":
            found.nullable = _versions(rest.pop(0), parent)
        elif word == "tag":
            found.tag = int(rest.pop(0))
            narrowed = bool(rest) and rest[0][0].isdigit()
            found.tag_versions = _versions(rest.pop(0), parent) if narrowed else found.versions
        elif word == "plain":
            found.is_plain = True
        elif word == "=":
            found.default = " ".join(rest)
            rest = []
        else:
            raise ValueError(f"unknown word {word!r}")
    return found
