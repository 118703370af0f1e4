"""kio, an independent codec, is the second witness: every API, every version, the same bytes both ways."""

import io
from importlib import import_module
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from support.every_case import every_case
from support.vectors.schemas import Described, described

NEWER_THAN_KIO = {
    "ApiVersions": 5, "DeleteGroups": 3, "StreamsGroupDescribe": 1, "StreamsGroupHeartbeat": 1,
    "StreamsGroupTopologyDescriptionUpdate": 0, "TxnOffsetCommit": 6,
}  # fmt: skip
"""The first version that kio does not know, of APIs that have one. Its messages and error codes end with Kafka 4.3."""
VERSIONS = [
    (message, version)
    for message in described()
    for version in message.versions
    if message.schema.kind in ("request", "response")
    and version < NEWER_THAN_KIO.get(message.schema.name.removesuffix("Request").removesuffix("Response"), 1 << 15)
]


def kios_class(message: Described, version: int) -> Any:
    name = message.module.__name__.rpartition(".")[2]
    module = import_module(f"kio.schema.{name}.v{version}.{message.schema.kind}")
    return getattr(module, message.schema.name)


def through_kio(cls: Any, encoded: bytes) -> bytes:
    """What kio writes after it has read our bytes."""
    decoded, used = entity_reader(cls)(memoryview(encoded), 0)
    assert used == len(encoded)
    written = io.BytesIO()
    entity_writer(cls)(written, decoded)
    return written.getvalue()


@every_case("message, version", VERSIONS, lambda case: f"{case[0].schema.name}-v{case[1]}")
@settings(max_examples=5)
@given(data=st.data())
def test_kio_and_we_write_the_same_bytes_and_read_each_others(
    message: Described, version: int, data: st.DataObject
) -> None:
    ours = data.draw(message.values(version))
    encoded = ours.encode(version)
    theirs = through_kio(kios_class(message, version), encoded)
    assert theirs.hex() == encoded.hex()
    assert message.cls.decode(theirs, version) == ours
