"""The same framing in Spark: columns of a topic decoded as they are read, in the executors.

decoded(spark.readStream.format("partita")..., {"value": deserializer}, "key binary, value struct<id: long>, ...")
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from partita.lazy import later
from partita.references import REFERENCE, resolve_option
from partita.registry.arrow_types import column_schema
from partita.registry.deserializer import RegistryDeserializer
from partita.registry.errors import RegistryError
from partita.registry.folder import FolderRegistry
from partita.registry.http import HttpRegistry
from partita.registry.schema import Registry, subject_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from partita.registry import proto_columns
else:
    proto_columns = later("partita.registry.proto_columns")

_LOGIN = re.compile(r"(?<=://)(?:\$\{[^}]*\}|[^/@])+(?=@)")
"""User and password in a URL, or references to them."""


def decoded(frame: DataFrame, columns: Mapping[str, RegistryDeserializer], schema: StructType | str) -> DataFrame:
    """The frame with these columns decoded; `schema` is that of the result, its columns are kept by name."""
    chosen = dict(columns)
    return frame.mapInArrow(lambda batches: decode_batches(batches, chosen), schema)


def decode_batches(
    batches: Iterator[pa.RecordBatch], columns: Mapping[str, RegistryDeserializer]
) -> Iterator[pa.RecordBatch]:
    """Each batch with these columns decoded."""
    for batch in batches:
        for name, deserializer in columns.items():
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, deserializer.to_arrow(batch.column(place)))
        yield batch


@cache
def registry_at(place: str) -> Registry:
    """The registry at URLs, one of which may hold user and password, or in a folder; one for a process and its answers.

    References in the place are resolved here. Raises ConfigError when there is nothing to refer to.
    """
    place = resolve_option("registry", _LOGIN.sub(_escaped, place))
    if "://" not in place:
        return FolderRegistry(place)
    parts = [urlsplit(one.strip()) for one in place.split(",")]
    logins = [(unquote(one.username), unquote(one.password or "")) for one in parts if one.username is not None]
    plain = [one._replace(netloc=one.netloc.rpartition("@")[2]).geturl() for one in parts]
    return HttpRegistry(plain, basic_auth=logins[0] if logins else None)


def _escaped(login: re.Match[str]) -> str:
    """A login with the values of its references, in which "/" or "," would end the login or the URL."""
    return REFERENCE.sub(lambda one: quote(resolve_option("registry", one[0]), safe=":%"), login[0])


def newest_columns(place: str, topic: str, *, is_key: bool, kind: str = "AVRO") -> pa.Schema:
    """The columns of the newest schema of a topic, of Protobuf those of its first message.

    Raises RegistryError or SchemaError for a schema that gives none.
    """
    registry, subject = registry_at(place), subject_of(topic, is_key=is_key)
    schema_id, schema = registry.latest(subject)
    if schema.type != kind:
        raise RegistryError(f"the newest schema of {subject} is of type {schema.type}, not {kind}")
    if kind == "PROTOBUF":
        return proto_columns.columns_of_message(proto_columns.message_at(registry.schema(schema_id)))
    return column_schema(registry, schema).columns()
