"""Write `messages/` from `schema/`: one module per API, with a typed class and a straight-line codec per message.

Run `python -m partita.protocol.generate` after changing a schema; `--check` only checks that the committed files
are up to date (exit code 1 if not). The output is formatted by ruff, a development dependency.
`schema_file.py` describes the format of schema files; `codec_source.py`, that of codecs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from partita.protocol.codec_source import codec_source
from partita.protocol.schema_file import Field, Schema, SchemaFile, parse
from partita.protocol.schema_types import annotation, default

HERE = Path(__file__).parent
PRIMITIVES = ("EMPTY", "ZERO_UUID", "Buffer", "Message", "Reader", "Request", "Structure", "Writer")
"""Names that generated modules may import from primitives.py."""


def main(argv: list[str]) -> int:
    """Write the stale files, or only name them with `--check`; return the exit code."""
    stale = []
    for name, code in sources().items():
        target = HERE / "messages" / name
        code = formatted(code)
        if not target.exists() or target.read_text() != code:
            stale.append(name)
            if "--check" not in argv:
                target.write_text(code)
    verb = "stale, run python -m partita.protocol.generate" if "--check" in argv else "written"
    print(f"{verb}: {', '.join(stale)}" if stale else "messages are fresh")
    return 1 if stale and "--check" in argv else 0


def sources() -> dict[str, str]:
    """The code of every generated file, by file name; not formatted yet."""
    files = {source.stem: parse(source.read_text()) for source in sorted((HERE / "schema").glob("*.txt"))}
    modules = {f"{stem}.py": module_source(stem, file) for stem, file in files.items()}
    return modules | {"index.py": index_source(files)}


def index_source(files: dict[str, SchemaFile]) -> str:
    """A table of all APIs that can be read without importing a single message."""
    lines = ['"""Every API we have. Generated from schema/ by partita.protocol.generate; do not edit."""', ""]
    lines += ["INDEX: tuple[tuple[int, str, str, tuple[int, int], int | None], ...] = ("]
    lines += ["    # key, name, module, versions, flexible from"]
    for stem, file in sorted(files.items(), key=lambda item: item[1].api or (-1, "")):
        if file.api:
            request, response = file.schemas
            versions, flexible = request.versions, request.flexible
            if (versions, flexible) != (response.versions, response.flexible):
                raise ValueError(f"{stem}: request and response differ in their versions")
            since = flexible.first if flexible else None
            lines.append(f"    ({file.api[0]}, {file.api[1]!r}, {stem!r}, {(versions.first, versions.last)}, {since}),")
    return "\n".join([*lines, ")"]) + "\n"


def formatted(code: str) -> str:
    """Format with the project's own rules, so that generated files pass the same checks."""
    options = ["--quiet", "--stdin-filename", str(HERE / "messages" / "any.py"), "-"]
    command = [sys.executable, "-m", "ruff", "format", *options]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout


def module_source(stem: str, file: SchemaFile) -> str:
    """One module: structs before the messages that use them, each class followed by its codec."""
    body: list[str] = []
    written: set[str] = set()
    for schema in file.schemas:
        for struct, path in _structs(schema.fields):
            if struct.type not in written:
                written.add(struct.type)
                doc = f"{'One element' if struct.is_array else 'The value'} of {path} in {schema.name}."
                body += _class(struct.type, "Structure", struct.fields, [], doc)
                body += codec_source(struct.type, struct.fields, struct.versions & schema.versions, schema.flexible)
        response = _response_of(schema, file)
        base = f'Request["{response}"]' if response else "Message"
        body += _class(schema.name, base, schema.fields, _constants(schema, file.api), _doc(schema))
        body += _entry_points(schema.name)
        body += codec_source(schema.name, schema.fields, schema.versions, schema.flexible)
    title = f"{file.api[1]} (API {file.api[0]})" if file.api else stem.replace("_", " ").capitalize()
    code = "\n".join(body)
    used = [name for name in PRIMITIVES if re.search(rf"\b{name}\b", code)]
    forms = sorted(set(re.findall(r"\b_fixed_(\w+)", code)))
    head = [
        f'"""{title}. Generated from schema/{stem}.txt by partita.protocol.generate; do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        *(["from struct import Struct"] if forms else []),
        "from typing import ClassVar",
        "",
        f"from partita.protocol.primitives import {', '.join(used)}",
    ]
    head += ["", *(f'_fixed_{form} = Struct(">{form}")' for form in forms)]
    return "\n".join(head) + "\n" + code + "\n"


def _structs(fields: Iterable[Field], path: str = "") -> Iterator[tuple[Field, str]]:
    """Every struct below these fields with its dotted path, inner ones first."""
    for field in fields:
        if field.is_struct:
            yield from _structs(field.fields, f"{path}{field.name}.")
            yield field, path + field.name


def _response_of(schema: Schema, file: SchemaFile) -> str | None:
    """The name of the response in the same file that answers this request; None if this is no request."""
    responses = [other.name for other in file.schemas if other.kind == "response"]
    return responses[0] if schema.kind == "request" and responses else None


def _doc(schema: Schema) -> str:
    first, last = schema.versions.first, schema.versions.last
    versions = f"version {first}" if first == last else f"versions {first} to {last}"
    since = f", flexible from {schema.flexible.first}" if schema.flexible else ""
    what = {"data": "embedded data", "record": "part of a record", "header": "a header"}
    return f"{schema.name}, {what.get(schema.kind, f'a {schema.kind}')}: {versions}{since}."


def _class(name: str, base: str, fields: Sequence[Field], constants: list[str], doc: str) -> list[str]:
    parameters = ", ".join(f"{field.name}: {_parameter(field)}" for field in fields)
    attributes = [f"        self.{field.name}: {annotation(field)} = {_initial(field)}" for field in fields]
    slots = ", ".join(f'"{field.name}"' for field in fields) + ("," if len(fields) == 1 else "")
    return [
        "",
        f"class {name}({base}):",
        f'    """{doc}"""',
        "",
        f"    __slots__ = ({slots})",
        *constants,
        "",
        f"    def __init__(self{', *, ' if fields else ''}{parameters}) -> None:",
        *(attributes or ["        pass"]),
    ]


def _constants(schema: Schema, api: tuple[int, str] | None) -> list[str]:
    constants = [("API_KEY", "int", api[0])] if api else []
    constants += [("MIN_VERSION", "int", schema.versions.first), ("MAX_VERSION", "int", schema.versions.last)]
    flexible = schema.flexible.first if schema.flexible else None
    lines = [f"    {name}: ClassVar[{kind}] = {value}" for name, kind, value in constants]
    return [*lines, f"    FLEXIBLE_FROM: ClassVar[int | None] = {flexible}"]


def _entry_points(name: str) -> list[str]:
    return [
        "",
        "    def write(self, w: Writer, version: int) -> None:",
        f"        _write_{name}(w, self, version)",
        "",
        "    @classmethod",
        f"    def read(cls, r: Reader, version: int) -> {name}:",
        f"        return _read_{name}(r, version)",
    ]


def _parameter(field: Field) -> str:
    """Type and default of a parameter; a default that must be new each time is made by `_initial`."""
    value = default(field)
    if value == "[]":
        return f"{annotation(field)} = EMPTY"
    return f"{annotation(field)} | None = None" if value.endswith("()") else f"{annotation(field)} = {value}"


def _initial(field: Field) -> str:
    value = default(field)
    if value == "[]":
        return f"[] if {field.name} is EMPTY else {field.name}"
    return f"{value} if {field.name} is None else {field.name}" if value.endswith("()") else field.name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
