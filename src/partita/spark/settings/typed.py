"""The options of typed columns: how keys and values are decoded, and what becomes of those that cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from partita.lazy import later
from partita.options import ConfigError
from partita.references import REFERENCE
from partita.spark.settings import table

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.records.typed import avro_schemas, ddl, odd_values
else:
    pa = later("pyarrow")
    avro_schemas = later("partita.records.typed.avro_schemas")
    ddl = later("partita.records.typed.ddl")
    odd_values = later("partita.records.typed.odd_values")

ERROR = "_error"
"""The column with the reason why a record could not be decoded; null for one that could."""
RAW = {"key": "_key", "value": "_value"}
"""Columns with the bytes of a record that could not be decoded; null for one that could."""
PLACE = ("partition", "offset", "timestamp")
"""The columns of a record that stay beside the decoded ones, unless `columns` names others."""
_LOGIN = re.compile("://(?:[^/:@]+|[^/:@]*:[^/]+)@")
"""A password, or a user without one, in a URL; references are left out of it before."""


@dataclass(frozen=True, slots=True)
class Form:
    """How keys or values are decoded, with the wanted columns as SQL has them.

    "" stands for all columns of the newest schema, or of a given message of Protobuf.

    `given` is a schema in the format's own words: the writer's or, of Avro with a `registry`, the reader's.
    """

    side: str
    format: str
    columns: str = ""
    given: str | None = None
    registry: str | None = None


@dataclass(frozen=True, slots=True)
class Typed:
    """The decoded sides of a record, values first; at least one."""

    forms: tuple[Form, ...]
    on_error: str = "fail"
    zone: str = "UTC"
    letter_topic: str | None = None
    separator: str = ","

    @property
    def error_columns(self) -> tuple[str, ...]:
        """The columns for records that could not be decoded: reason and bytes."""
        return (ERROR, *(RAW[form.side] for form in self.forms)) if self.on_error == "column" else ()

    @property
    def plain_columns(self) -> tuple[str, ...]:
        """The columns of a record that are there by default."""
        return PLACE if any(form.side == "value" for form in self.forms) else ("value", *PLACE)


def typed_of(values: Mapping[str, Any]) -> Typed | None:
    """Return how records are decoded; None: not at all. Raises ConfigError naming the option."""
    forms = tuple(form for side in ("value", "key") if (form := _form(side, values)) is not None)
    if not forms:
        odd = next((option.name for option in table.TYPED if values[option.name] != option.default), None)
        if odd is not None:
            raise ConfigError(f"{odd} needs valueFormat or keyFormat")
        return None
    if values["registry"] is not None and _LOGIN.search(REFERENCE.sub("", values["registry"])):
        raise ConfigError(
            "registry holds a login, which Spark shows in plans and in its catalog; put a reference there, as in "
            "https://${env:REGISTRY_LOGIN}@host for user:password"
        )
    if values["registry"] is not None and all(form.registry is None for form in forms):
        raise ConfigError("registry needs valueFormat or keyFormat to be avro or protobuf")
    if all(not form.columns for form in forms[-2:]) and len(forms) == 2:
        raise ConfigError("give keySchema or valueSchema, a list of columns: those of one side only can be looked up")
    if values["view"] != "records":
        raise ConfigError(f"view={values['view']} has columns of its own; leave out {forms[0].side}Format")
    if odd_values.instant("2000-01-01", values["timeZone"]) is None:
        raise ConfigError(f"timeZone must be a zone like UTC, Europe/Berlin or +01:00, not {values['timeZone']!r}")
    if values["onError"] == "deadLetter" and not values["deadLetterTopic"]:
        raise ConfigError("onError=deadLetter needs deadLetterTopic, the topic for records that cannot be decoded")
    if values["onError"] != "deadLetter" and values["deadLetterTopic"] is not None:
        raise ConfigError("deadLetterTopic needs onError=deadLetter")
    return Typed(forms, values["onError"], values["timeZone"], values["deadLetterTopic"], _separator(values, forms))


def _separator(values: Mapping[str, Any], forms: Sequence[Form]) -> str:
    separator: str = values["separator"]
    if separator != "," and all(form.format != "csv" for form in forms):
        raise ConfigError("separator needs valueFormat=csv or keyFormat=csv")
    check_separator(separator)
    return separator


def check_separator(separator: str) -> None:
    """Raises ConfigError for what cannot stand between values of CSV."""
    if len(separator) != 1 or not separator.isascii() or separator in '"\\\n':
        raise ConfigError(f"separator must be one character of ASCII that is no quote or backslash, not {separator!r}")


def _form(side: str, values: Mapping[str, Any]) -> Form | None:
    chosen, schema, registry = values[f"{side}Format"], values[f"{side}Schema"], values["registry"]
    if chosen is None:
        if schema is not None:
            raise ConfigError(f"{side}Schema needs {side}Format: {', '.join(table.FORMATS)}")
        return None
    if chosen not in table.WITH_REGISTRY:
        registry = None
    is_bare = chosen == "protobuf" and registry is None
    is_given = schema is not None and (is_bare or (chosen == "avro" and schema.lstrip()[:1] in ("{", "[", '"')))
    if schema is None and registry is None:
        cure = "of its records, or registry" if chosen in table.WITH_REGISTRY else "such as 'carrier string, delay int'"
        raise ConfigError(f"{side}Format={chosen} needs {side}Schema, {cure}")
    if chosen == "avro" and registry is None and not is_given:
        raise ConfigError(f"{side}Schema must be the schema of Avro that the records have, or give registry")
    try:
        if is_given:
            columns = None if is_bare else avro_schemas.AvroSchema(schema).columns()
        else:
            columns = schema and ddl.columns_of(schema)
    except ddl.SchemaError as error:
        raise ConfigError(f"{side}Schema: {error}") from None
    text = ddl.columns_text(columns) if columns else ""
    return Form(side, chosen, text, schema if is_given else None, registry)


def with_columns(typed: Typed, columns_of: Callable[[Form], pa.Schema]) -> Typed:
    """The same with the columns of the form that named none."""
    forms = (f if f.columns else replace(f, columns=ddl.columns_text(columns_of(f))) for f in typed.forms)
    return replace(typed, forms=tuple(forms))


def typed_fields(typed: Typed, plain: Sequence[str]) -> pa.Schema:
    """The decoded columns beside the record's columns `plain`. Raises ConfigError for a name that stands twice."""
    fields: list[pa.Field] = []
    taken = {name.lower(): "the record" for name in (*plain, *typed.error_columns)}
    for form in typed.forms:
        for field in ddl.columns_of(form.columns):
            owner = taken.get(field.name.lower())
            if owner is not None:
                cure = "name the record's columns that you want in columns, or " if owner == "the record" else ""
                raise ConfigError(
                    f"the column {field.name} of the {form.side} is a column of {owner} too; {cure}leave it out"
                )
            taken[field.name.lower()] = f"the {form.side}"
            fields.append(field)
    return pa.schema(fields)
