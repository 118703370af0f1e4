"""The facts that a subscription to metrics of clients can ask about, and the codecs that a push may use."""

from __future__ import annotations

from importlib.util import find_spec

from partita.broker.api.context import RequestContext
from partita.broker.client_metrics.clients import id_text
from partita.records import compression

COMPRESSION_TYPES = tuple(
    codec
    for codec in (compression.ZSTD, compression.LZ4, compression.GZIP, compression.SNAPPY)
    if codec != compression.LZ4 or find_spec("lz4") is not None
)
"""In the order of preference, as Kafka names them."""


def facts_of(ctx: RequestContext, instance_id: bytes) -> dict[str, str]:
    """Return the known facts about the client that asks."""
    name, version = ctx.connection.software
    return {
        "client_id": ctx.client_id,
        "client_instance_id": id_text(instance_id),
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": ctx.host,
        "client_source_port": str(ctx.connection.client_port),
    }
