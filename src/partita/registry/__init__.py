"""Schema-registry framing: Avro, JSON Schema and Protobuf for producer, consumer, poll_arrow and Spark.

Needs the extra `registry`. A registry is a service (`HttpRegistry`) or a folder (`FolderRegistry`).
"""

from partita.lazy import advised

try:
    from partita.registry.avro import AvroSerializer
    from partita.registry.deserializer import RegistryDeserializer
    from partita.registry.errors import RegistryError, RegistryUnavailableError
    from partita.registry.folder import FolderRegistry
    from partita.registry.http import HttpRegistry
    from partita.registry.json_schema import JsonSchemaSerializer
    from partita.registry.protobuf import ProtobufSerializer
except ModuleNotFoundError as error:
    raise advised(error) from None

__all__ = [
    "AvroSerializer",
    "FolderRegistry",
    "HttpRegistry",
    "JsonSchemaSerializer",
    "ProtobufSerializer",
    "RegistryDeserializer",
    "RegistryError",
    "RegistryUnavailableError",
]
