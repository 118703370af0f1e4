"""The source text of a pair of functions that read and write one struct, as straight lines.

A struct has up to two encodings: the plain one, and from some version on the flexible one with compact lengths
and tagged fields. Each becomes its own branch, in which a field costs one line; tests of the version remain only
where a field comes or goes within the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from partita.protocol.schema_file import Field, Versions
from partita.protocol.schema_types import STRUCT_CODES, default, is_empty_unless_said, is_number, least_size, method


def codec_source(name: str, fields: Sequence[Field], versions: Versions, flexible: Versions) -> list[str]:
    """Two functions: `_read_<name>(r, v)` and `_write_<name>(w, m, v)`."""
    return [
        "",
        f"def _read_{name}(r: Reader, v: int) -> {name}:",
        f"    m = {name}.__new__({name})",
        *_indent(_both_encodings(_read_body, fields, versions, flexible)),
        "    return m",
        "",
        f"def _write_{name}(w: Writer, m: {name}, v: int) -> None:",
        *_indent(_both_encodings(_write_body, fields, versions, flexible) or ["pass"]),
    ]


def _both_encodings(
    body: Callable[[Sequence[Field], Versions, bool], list[str]],
    fields: Sequence[Field],
    versions: Versions,
    flexible: Versions,
) -> list[str]:
    plain_span = Versions(versions.first, min(versions.last, flexible.first - 1)) if flexible else versions
    flexible_span = versions & flexible
    plain = body(fields, plain_span, False) if plain_span else []
    compact = body(fields, flexible_span, True) if flexible_span else []
    if plain_span and flexible_span:
        return [f"if v >= {flexible.first}:", *_indent(compact), "else:", *_indent(plain or ["pass"])]
    return plain + compact


def _indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


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


def _ordinary(fields: Sequence[Field], span: Versions) -> list[Field]:
    return [field for field in fields if field.tag is None and field.versions & span]


def _tagged(fields: Sequence[Field], span: Versions) -> list[Field]:
    found = [field for field in fields if field.tag is not None and field.tag_versions & span]
    return sorted(found, key=lambda field: field.tag or 0)


def _runs(fields: Sequence[Field], span: Versions) -> list[list[Field]]:
    """The ordinary fields; numbers that always follow each other are together, as they are read and written at once."""
    runs: list[list[Field]] = []
    for field in _ordinary(fields, span):
        joins = is_number(field) and not _condition(field.versions, span)
        if joins and runs and is_number(runs[-1][-1]) and not _condition(runs[-1][-1].versions, span):
            runs[-1].append(field)
        else:
            runs.append([field])
    return runs


def _fixed(run: Sequence[Field]) -> str:
    """The name of the Struct for these numbers; `generate.py` defines the used ones."""
    return "_fixed_" + "".join(STRUCT_CODES[field.type] for field in run)


# Reading


def _read_body(fields: Sequence[Field], span: Versions, flexible: bool) -> list[str]:
    lines = []
    for run in _runs(fields, span):
        if len(run) > 1:
            lines.append(f"{', '.join(f'm.{field.name}' for field in run)} = r.fixed({_fixed(run)})")
            continue
        (field,) = run
        value = _read(field, span & field.versions, flexible, tagged=False)
        condition = _condition(field.versions, span)
        lines.append(f"m.{field.name} = {value}" + (f" if {condition} else {default(field)}" if condition else ""))
    absent = [field for field in fields if field not in _ordinary(fields, span)]
    lines += [f"m.{field.name} = {_if_absent(field)}" for field in absent]
    return lines + _read_tags(_tagged(fields, span), span) if flexible else lines


def _if_absent(field: Field) -> str:
    return f"{field.type}()" if is_empty_unless_said(field) else default(field)


def _read(field: Field, span: Versions, flexible: bool, tagged: bool) -> str:
    """The expression that reads one field; whether null is allowed may depend on the version."""
    strict, accepting = _read_forms(field, span, flexible, tagged)
    nullable = field.nullable & span
    if not nullable:
        return strict
    condition = _condition(nullable, span)
    return f"({accepting} if {condition} else {strict})" if condition else accepting


def _read_forms(field: Field, span: Versions, flexible: bool, tagged: bool) -> tuple[str, str]:
    flexible = flexible and not field.is_plain
    one = f"_read_{field.type}(r, v)" if field.is_struct else f"r.{method(field.type, flexible, False)}()"
    if field.is_array:
        compact, size = "compact_" if flexible else "", least_size(field, span, flexible)
        if field.type == "int32":
            return f"r.{compact}int32_array()", f"r.{compact}nullable_int32_array()"
        many = f"[{one} for _ in r.each(n)]"
        return (
            f"[{one} for _ in r.each(r.{compact}count({size}))]",
            f"(None if (n := r.{compact}nullable_count({size})) < 0 else {many})",
        )
    if field.is_struct:
        present = "r.uvarint() != 0" if tagged else "r.int8() >= 0"
        return one, f"({one} if {present} else None)"
    if field.type == "records":
        return f'({one} or b"")', one  # where they may not be null, null is read as none
    return one, f"r.{method(field.type, flexible, True)}()"


def _read_tags(tagged: list[Field], span: Versions) -> list[str]:
    if not tagged:
        return ["r.skip_tags()"]
    lines = ["tag = -1", "for _ in range(r.uvarint()):", "    tag, end = r.tag(tag)"]
    for index, field in enumerate(tagged):
        condition = _condition(field.tag_versions, span)
        test = f"tag == {field.tag}" + (f" and {condition}" if condition else "")
        lines.append(f"    {'elif' if index else 'if'} {test}:")
        lines.append(f"        m.{field.name} = {_read(field, span & field.tag_versions, True, tagged=True)}")
    return [*lines, "    else:", "        r.pos = end", "    r.end_tag(end)"]


# Writing


def _write_body(fields: Sequence[Field], span: Versions, flexible: bool) -> list[str]:
    pairs = []
    for run in _runs(fields, span):
        if len(run) > 1:
            pairs.append(("", [f"w.buf += {_fixed(run)}.pack({', '.join(f'm.{field.name}' for field in run)})"]))
            continue
        (field,) = run
        lines = _write(field, span & field.versions, flexible, "w", tagged=False)
        pairs.append((_condition(field.versions, span), lines))
    return _guarded(pairs) + (_write_tags(_tagged(fields, span), span) if flexible else [])


def _guarded(pairs: list[tuple[str, list[str]]]) -> list[str]:
    """Join (condition, lines), neighbours with one condition under one `if`."""
    lines: list[str] = []
    for condition, run in groupby(pairs, key=lambda pair: pair[0]):
        body = [line for _, part in run for line in part]
        lines += [f"if {condition}:", *_indent(body)] if condition else body
    return lines


def _write(field: Field, span: Versions, flexible: bool, w: str, tagged: bool) -> list[str]:
    """The lines that write one field to the writer named `w`."""
    value = f"m.{field.name}"
    strict, accepting = _write_forms(field, flexible, w, tagged)
    if not field.nullable:
        return strict(value)
    nullable = field.nullable & span
    if nullable == span or accepting(value) == strict(value):
        return accepting(value)
    required = strict(f'{w}.required({value}, "{field.name}")')
    condition = _condition(nullable, span)
    return [f"if {condition}:", *_indent(accepting(value)), "else:", *_indent(required)] if nullable else required


_Lines = Callable[[str], list[str]]


def _write_forms(field: Field, flexible: bool, w: str, tagged: bool) -> tuple[_Lines, _Lines]:
    """How to write a value that cannot be null, and one that may be."""
    flexible = flexible and not field.is_plain
    if field.is_array:
        strict, null, present = _array_form(field, flexible, w), f"{w}.{'compact_' if flexible else ''}count(-1)", []
    elif field.is_struct:
        strict, mark = _struct_form(field, w), "uvarint" if tagged else "int8"
        null, present = f"{w}.{mark}({0 if tagged else -1})", [f"{w}.{mark}(1)"]
    else:
        return _primitive_form(field, flexible, False, w), _primitive_form(field, flexible, True, w)

    def accepting(value: str) -> list[str]:
        return [f"if {value} is None:", f"    {null}", "else:", *_indent([*present, *strict(value)])]

    return strict, accepting


def _primitive_form(field: Field, flexible: bool, nullable: bool, w: str) -> _Lines:
    return lambda value: [f"{w}.{method(field.type, flexible, nullable)}({value})"]


def _struct_form(field: Field, w: str) -> _Lines:
    return lambda value: [f"_write_{field.type}({w}, {value}, v)"]


def _array_form(field: Field, flexible: bool, w: str) -> _Lines:
    compact, item = "compact_" if flexible else "", _singular(field.name)
    if field.type == "int32":
        return lambda value: [f"{w}.{compact}int32_array({value})"]
    (one,) = (_struct_form(field, w) if field.is_struct else _primitive_form(field, flexible, False, w))(item)

    def lines(value: str) -> list[str]:
        items = value if value.startswith("m.") else "items"
        named = [] if items == value else [f"items = {value}"]
        return [*named, f"{w}.{compact}count(len({items}))", f"for {item} in {w}.each({items}):", f"    {one}"]

    return lines


def _singular(name: str) -> str:
    """The loop variable for one element of the array of this name."""
    return name[:-1] if name.endswith("s") else f"{name}_item"


def _write_tags(tagged: list[Field], span: Versions) -> list[str]:
    if not tagged:
        return ["w.uvarint(0)"]
    lines = ["tags: list[tuple[int, Writer]] = []"]
    for field in tagged:
        condition = _condition(field.tag_versions, span)
        test = _differs(field) + (f" and {condition}" if condition else "")
        body = _write(field, span & field.tag_versions, True, "t", tagged=True)
        lines += [f"if {test}:", *_indent(["t = Writer()", *body, f"tags.append(({field.tag}, t))"])]
    return [*lines, "w.tags(tags)"]


def _differs(field: Field) -> str:
    """A tagged field is written only when it does not have its default."""
    value = f"m.{field.name}"
    if is_empty_unless_said(field):
        return f"{value} != {field.type}()"
    if default(field) == "None":
        return f"{value} is not None"
    if field.is_array:
        return f"({value} is None or {value})" if field.nullable else value
    return value if default(field) == "False" else f"{value} != {default(field)}"
