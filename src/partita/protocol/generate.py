"""Write `messages/` from `schema/`: one typed class and a straight-line codec per message.

Run `python -m partita.protocol.generate` after changing a schema; `--check` only tells whether the checked-in
files are fresh (exit code 1 when not). The output is formatted by ruff when it is installed.
Must not know what any API means.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from partita.protocol.schema_file import Field, Schema, SchemaFile, Versions, parse

HERE = Path(__file__).parent
PYTHON_TYPES = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "int64"), "int"),
    "float64": "float", "boolean": "bool", "string": "str", "bytes": "Buffer", "records": "Buffer", "uuid": "bytes",
}  # fmt: skip
ZEROS = {"float64": "0.0", "boolean": "False", "string": '""', "bytes": 'b""', "records": 'b""', "uuid": "ZERO_UUID"}
PREFIXED = {"string", "bytes", "records"}
HEAD = """from __future__ import annotations

from typing import ClassVar

from partita.protocol.primitives import EMPTY, ZERO_UUID, Buffer, Message, Reader, Structure, Writer
"""


def main(argv: list[str]) -> int:
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
    command = [sys.executable, "-m", "ruff"]
    options = ["--quiet", "--stdin-filename", str(HERE / "messages" / "generated.py"), "-"]
    fixed = subprocess.run([*command, "check", "--fix-only", *options], input=code, capture_output=True, text=True)
    code = fixed.stdout if fixed.returncode == 0 else code
    done = subprocess.run([*command, "format", *options], input=code, capture_output=True, text=True, check=True)
    return done.stdout


def module_source(stem: str, file: SchemaFile) -> str:
    title = f"{file.api[1]} (API {file.api[0]})" if file.api else stem.replace("_", " ").capitalize()
    lines = [f'"""{title}. Generated from schema/{stem}.txt by partita.protocol.generate; do not edit."""', "", HEAD]
    written: set[str] = set()
    for schema in file.schemas:
        for struct in _structs(schema.fields):
            if struct.type not in written:
                written.add(struct.type)
                lines += _class(struct.type, struct.fields)
                lines += _codec(struct.type, struct.fields, struct.versions & schema.versions, schema.flexible)
        lines += _class(schema.name, schema.fields, schema, file.api)
        lines += _codec(schema.name, schema.fields, schema.versions, schema.flexible)
    return "\n".join(lines) + "\n"


def _structs(fields: Iterable[Field]) -> Iterator[Field]:
    for field in fields:
        if field.is_struct:
            yield from _structs(field.fields)
            yield field


def _class(name: str, fields: list[Field], schema: Schema | None = None, api: tuple[int, str] | None = None) -> list[str]:
    lines = ["", f"class {name}({'Message' if schema else 'Structure'}):"]
    lines.append(f"    __slots__ = ({''.join(f'{f.name!r}, ' for f in fields)})")
    if schema:
        lines += _constants(schema, api)
    parameters = "".join(f"{f.name}: {_annotation(f, True)} = {_default(f)}, " for f in fields)
    star = "*, " if fields else ""
    lines += ["", f"    def __init__(self, {star}{parameters}) -> None:"]
    lines += [f"        self.{f.name}: {_annotation(f)} = {_initial(f)}" for f in fields] or ["        pass"]
    if schema:
        lines += _entry_points(name)
    return lines


def _constants(schema: Schema, api: tuple[int, str] | None) -> list[str]:
    flexible = str(schema.flexible.first) if schema.flexible else "None"
    constants = [("API_KEY", "int", str(api[0]))] if api else []
    constants += [
        ("MIN_VERSION", "int", str(schema.versions.first)),
        ("MAX_VERSION", "int", str(schema.versions.last)),
        ("FLEXIBLE_FROM", "int | None", flexible),
    ]
    return [f"    {name}: ClassVar[{kind}] = {value}" for name, kind, value in constants]


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


def _annotation(field: Field, parameter: bool = False) -> str:
    base = PYTHON_TYPES.get(field.type, field.type)
    text = f"list[{base}]" if field.is_array else base
    optional = bool(field.nullable) or (parameter and field.is_struct and not field.is_array)
    return f"{text} | None" if optional else text


def _default(field: Field) -> str:
    """The parameter default; mutable ones are made fresh by `_initial`."""
    if field.default == "null":
        return "None"
    if field.is_array:
        return "EMPTY"
    if field.is_struct:
        return "None"
    if field.default is not None:
        return field.default.capitalize() if field.type == "boolean" else field.default
    return "None" if field.type == "records" and field.nullable else ZEROS.get(field.type, "0")


def _initial(field: Field) -> str:
    if field.is_array and field.default != "null":
        return f"[] if {field.name} is EMPTY else {field.name}"
    if field.is_struct and not field.is_array and not field.nullable:
        return f"{field.type}() if {field.name} is None else {field.name}"
    return field.name


def _codec(name: str, fields: list[Field], versions: Versions, flexible: Versions) -> list[str]:
    lines = ["", f"def _read_{name}(r: Reader, v: int) -> {name}:", f"    m = {name}()"]
    lines += _both_forms(_read_body, fields, versions, flexible)
    lines += ["    return m", "", f"def _write_{name}(w: Writer, m: {name}, v: int) -> None:"]
    return lines + _both_forms(_write_body, fields, versions, flexible)


def _both_forms(body: object, fields: list[Field], versions: Versions, flexible: Versions) -> list[str]:
    """The flexible and the plain encoding, each as straight lines, behind one version test."""
    plain_span = Versions(versions.first, min(versions.last, flexible.first - 1)) if flexible else versions
    flexible_span = versions & flexible
    make = body
    assert callable(make)
    plain = make(fields, plain_span, False) if plain_span else []
    compact = make(fields, flexible_span, True) if flexible_span else []
    if plain_span and flexible_span:
        return [
            f"    if v >= {flexible.first}:", *_indent(compact or ["pass"]), "    else:", *_indent(plain or ["pass"])
        ]  # fmt: skip
    return ["    " + line for line in plain + compact] or ["    pass"]


def _indent(lines: list[str]) -> list[str]:
    return ["        " + line for line in lines]


def _condition(wanted: Versions, span: Versions) -> str:
    """A test that holds for `wanted` within `span`; empty when it always does."""
    wanted = wanted & span
    if wanted == span:
        return ""
    if wanted.first == wanted.last:
        return f"v == {wanted.first}"
    if wanted.last == span.last:
        return f"v >= {wanted.first}"
    return f"v <= {wanted.last}" if wanted.first == span.first else f"{wanted.first} <= v <= {wanted.last}"


def _guarded(pairs: list[tuple[str, list[str]]]) -> list[str]:
    """Join (condition, lines), neighbours with one condition under one `if`."""
    lines: list[str] = []
    for condition, run in groupby(pairs, key=lambda pair: pair[0]):
        body = [line for _, part in run for line in part]
        lines += [f"if {condition}:", *("    " + line for line in body)] if condition else body
    return lines


def _ordinary(fields: list[Field], span: Versions) -> list[Field]:
    return [f for f in fields if f.tag is None and f.versions & span]


def _tagged(fields: list[Field], span: Versions) -> list[Field]:
    return sorted((f for f in fields if f.tag is not None and f.tag_versions & span), key=lambda f: f.tag or 0)


def _read_body(fields: list[Field], span: Versions, flexible: bool) -> list[str]:
    pairs = [
        (_condition(f.versions, span), [f"m.{f.name} = {_read(f, span & f.versions, flexible)}"])
        for f in _ordinary(fields, span)
    ]
    return _guarded(pairs) + (_read_tags(_tagged(fields, span), span) if flexible else [])


def _nullable_form(field: Field, span: Versions, forms: tuple[str, str]) -> str:
    """Choose between the null-accepting and the strict expression, by version if need be."""
    accepting, strict = forms
    nullable = field.nullable & span
    if not nullable:
        return strict
    condition = _condition(nullable, span)
    return f"({accepting} if {condition} else {strict})" if condition else accepting


def _method(kind: str, flexible: bool, nullable: bool) -> str:
    if kind not in PREFIXED:
        return kind
    return ("compact_" if flexible else "") + ("nullable_" if nullable or kind == "records" else "") + kind


def _read(field: Field, span: Versions, flexible: bool, tagged: bool = False) -> str:
    one = f"_read_{field.type}(r, v)" if field.is_struct else f"r.{_method(field.type, flexible, False)}()"
    if field.is_array:
        compact = "compact_" if flexible else ""
        strict = f"[{one} for _ in range(r.{compact}count())]"
        accepting = f"(None if (n := r.{compact}nullable_count()) < 0 else [{one} for _ in range(n)])"
        return _nullable_form(field, span, (accepting, strict))
    if field.is_struct:
        present = "r.uvarint() != 0" if tagged else "r.int8() >= 0"
        return _nullable_form(field, span, (f"({one} if {present} else None)", one))
    return _nullable_form(field, span, (f"r.{_method(field.type, flexible, True)}()", one))


def _read_tags(tagged: list[Field], span: Versions) -> list[str]:
    if not tagged:
        return ["r.skip_tags()"]
    lines = ["for _ in range(r.uvarint()):", "    tag = r.uvarint()", "    end = r.tag_end()"]
    for index, field in enumerate(tagged):
        condition = _condition(field.tag_versions, span)
        test = f"tag == {field.tag}" + (f" and {condition}" if condition else "")
        lines.append(f"    {'elif' if index else 'if'} {test}:")
        lines.append(f"        m.{field.name} = {_read(field, span & field.tag_versions, True, tagged=True)}")
    return [*lines, "    else:", "        r.pos = end", "    r.check_tag(end)"]


def _write_body(fields: list[Field], span: Versions, flexible: bool) -> list[str]:
    pairs = [
        (_condition(f.versions, span), _write(f, f"m.{f.name}", span & f.versions, flexible, "w"))
        for f in _ordinary(fields, span)
    ]
    return _guarded(pairs) + (_write_tags(_tagged(fields, span), span) if flexible else [])


def _write(field: Field, value: str, span: Versions, flexible: bool, w: str, tagged: bool = False) -> list[str]:
    nullable = field.nullable & span
    if field.is_array:
        return _write_array(field, value, span, flexible, w)
    if field.is_struct:
        lines = [f"_write_{field.type}({w}, {value}, v)"]
        if not nullable:
            return lines
        marks = (f"{w}.uvarint(0)", f"{w}.uvarint(1)") if tagged else (f"{w}.int8(-1)", f"{w}.int8(1)")
        return [f"if {value} is None:", f"    {marks[0]}", "else:", f"    {marks[1]}", f"    {lines[0]}"]
    strict, accepting = (f"{w}.{_method(field.type, flexible, null)}" for null in (False, True))
    if not nullable:
        checked = f"{w}.required({value}, {field.name!r})" if field.nullable and strict != accepting else value
        return [f"{strict}({checked})"]
    condition = _condition(nullable, span)
    if condition and strict != accepting:
        refused = f"{w}.required({value}, {field.name!r})"
        return [f"if {condition}:", f"    {accepting}({value})", "else:", f"    {strict}({refused})"]
    return [f"{accepting}({value})"]


def _write_array(field: Field, value: str, span: Versions, flexible: bool, w: str) -> list[str]:
    compact = "compact_" if flexible else ""
    write_one = f"_write_{field.type}({w}, item, v)" if field.is_struct else f"{w}.{_method(field.type, flexible, False)}(item)"
    if not field.nullable:
        return [f"{w}.{compact}count(len({value}))", f"for item in {value}:", f"    {write_one}"]
    condition = _condition(field.nullable & span, span) if field.nullable & span else "False"
    null = f"{w}.{compact}count(-1)"
    if condition == "False":
        loop = [f"items = {w}.required({value}, {field.name!r})"]
    elif condition:
        loop = [f"if {value} is None and not ({condition}):", f"    {w}.required({value}, {field.name!r})"]
    else:
        loop = []
    if condition == "False":
        return [*loop, f"{w}.{compact}count(len(items))", "for item in items:", f"    {write_one}"]
    return [
        *loop,
        f"if {value} is None:", f"    {null}", "else:",
        f"    {w}.{compact}count(len({value}))", f"    for item in {value}:", f"        {write_one}",
    ]  # fmt: skip


def _write_tags(tagged: list[Field], span: Versions) -> list[str]:
    if not tagged:
        return ["w.uvarint(0)"]
    lines = ["tags: list[tuple[int, Writer]] = []"]
    for field in tagged:
        condition = _condition(field.tag_versions, span)
        test = _differs(field) + (f" and {condition}" if condition else "")
        body = _write(field, f"m.{field.name}", span & field.tag_versions, True, "t", tagged=True)
        lines += [f"if {test}:", "    t = Writer()", *("    " + line for line in body), f"    tags.append(({field.tag}, t))"]
    return [*lines, "w.uvarint(len(tags))", "for number, content in tags:", "    w.tag(number, content)"]


def _differs(field: Field) -> str:
    """A tagged field is written only when it does not have its default."""
    value = f"m.{field.name}"
    if field.default == "null":
        return f"{value} is not None"
    if field.is_array:
        return f"({value} is None or len({value}) > 0)" if field.nullable else f"len({value}) > 0"
    if field.is_struct:
        return f"{value} is not None" if field.nullable else f"{value} != {field.type}()"
    return f"{value} != {_default(field)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
