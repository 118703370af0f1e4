"""Prints the layouts of requests, answers and records from the schemas: `python tools/layouts.py > docs/layouts.md`.

Each has a table of its fields by version and one dump of bytes, read field by field as the schema says. A test compares
the file with what this prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import partita.protocol
from partita.assignors.interface import Subscription
from partita.assignors.payloads import encode_assignment, encode_subscription
from partita.protocol.framing import encode_request, encode_response
from partita.protocol.messages import find_coordinator, group_log, join_group, offset_commit, sync_group
from partita.protocol.primitives import Reader
from partita.protocol.schema_file import Field, Schema, Versions, parse
from partita.protocol.schema_types import method

INTRO = """# Layouts on the wire and in the log

Printed from `src/partita/protocol/schema/` by `tools/layouts.py`; do not edit. Numbers are big-endian. Strings, bytes
and arrays begin with their length: two bytes for a string, four for the others, -1 for null. *Flexible* versions have
varints of one more, 0 for null, and end each structure with its number of tagged fields. `?` may be null (in
brackets: in which versions), `[]` is an array, `v7+` is from version 7 on; a dot is one level of structure. A field
without versions is in all of them. The member id of the dumps is 27 letters shorter than a real one.
"""
ROW, WIDEST = 12, 4
MEMBER = "one-1b4e28ba"
SUBSCRIPTION = encode_subscription(Subscription(["T"]), version=0)
ASSIGNMENT = encode_assignment([("T", 0), ("T", 1)], version=0)


class Piece(NamedTuple):
    """Some bytes: where they end, how deep their structure is, and what they are."""

    end: int
    depth: int
    text: str


SCHEMAS: dict[str, Schema] = {
    schema.name: schema
    for file in sorted((Path(partita.protocol.__file__).parent / "schema").glob("*.txt"))
    for schema in parse(file.read_text()).schemas
}


def kinds(field: Field, versions: range) -> str:
    """The type of a field, with the versions in which it may be null if those are not all of its own."""
    kind = ("[]" if field.is_array else "") + ("" if field.is_struct else field.type)
    null = span(field.nullable, field.versions, versions)
    tagged = "" if field.tag is None else f", tag {field.tag}"
    return f"{kind}{'' if null is None else '?'}{f' ({null})' if null else ''}{tagged}"


def span(some: Versions, of: Versions, served: range) -> str | None:
    """The versions `some` within `of` that are served: None if there are none, "" if they are all."""
    here = [version for version in served if of.first <= version <= of.last]
    found = [version for version in here if some.first <= version <= some.last]
    if not found:
        return None
    first, last = found[0], found[-1]
    if found == here:
        return ""
    if last == here[-1]:
        return f"v{first}+" if last > first else f"v{first}"
    return f"v{first}-{last}" if last > first else f"v{first}"


def rows(fields: Sequence[Field], versions: range, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Name, type and versions of each field; the versions only where the field is not in all of them."""
    for field in fields:
        where = span(field.versions, Versions(versions[0], versions[-1]), versions)
        if where is not None:
            yield "· " * depth + field.name, kinds(field, versions), where
            yield from rows(field.fields, versions, depth + 1)


def grid(schema: Schema) -> Iterator[str]:
    """The fields of all versions."""
    versions = range(schema.versions.first, schema.versions.last + 1)
    served = f"v{versions[0]}" if len(versions) == 1 else f"v{versions[0]}-{versions[-1]}"
    flexible = f", flexible from v{schema.flexible.first}" if schema.flexible else ""
    yield f"**{schema.name}**, {served}{flexible}:\n\n```text"
    yield from (f"{name:<31}{kind:<18}{where}".rstrip() for name, kind, where in rows(schema.fields, versions))
    yield "```"


def shown(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes | bytearray | memoryview) else repr(value)


def pieces(r: Reader, fields: Sequence[Field], version: int, flexible: bool, depth: int = 0) -> Iterator[Piece]:
    for field in fields:
        if field.tag is not None or not field.versions.first <= version <= field.versions.last:
            continue
        compact = flexible and not field.is_plain
        nullable = field.nullable.first <= version <= field.nullable.last
        if field.is_array:
            count = getattr(r, f"{'compact_' if compact else ''}{'nullable_' if nullable else ''}count")(1)
            yield Piece(r.pos, depth, f"{field.name}: {count}")
            for _ in range(count):
                if field.is_struct:
                    yield from pieces(r, field.fields, version, flexible, depth + 1)
                else:
                    value = getattr(r, method(field.type, compact, False))()
                    yield Piece(r.pos, depth + 1, shown(value))
        else:
            value = getattr(r, method(field.type, compact, nullable))()
            yield Piece(r.pos, depth, f"{field.name} = {shown(value)}")
    if flexible:
        count = r.uvarint()
        yield Piece(r.pos, depth, f"tagged fields: {count}")
        for _ in range(count):
            tag, size = r.uvarint(), r.uvarint()
            name = next(field.name for field in fields if field.tag == tag)
            r.pos += size
            yield Piece(r.pos, depth + 1, f"tag {tag}, {size} bytes: {name}")


def dump(data: bytes, found: Iterator[Piece], begin: int = 0) -> Iterator[str]:
    """The bytes from `begin` on with what they are; the schema must account for each of them."""
    yield "```text"
    for piece in found:
        part = data[begin : piece.end]
        lines = [part[at : at + ROW] for at in range(0, len(part), ROW)]
        for number, line in enumerate(lines[:WIDEST]):
            text = "· " * piece.depth + piece.text if not number else ""
            yield f"{begin + number * ROW:04x}  {line.hex(' ', -4):<{2 * ROW + ROW // 4}} {text}".rstrip()
        if len(lines) > WIDEST:
            yield f"      ... {len(part) - WIDEST * ROW} more"
        begin = piece.end
    assert begin == len(data), f"{len(data) - begin} bytes are left"
    yield "```"


def body(name: str, data: bytes, start: int, version: int, head: Sequence[Piece]) -> Iterator[Piece]:
    yield from head
    schema, r = SCHEMAS[name], Reader(data, start)
    flexible = bool(schema.flexible) and version >= schema.flexible.first
    yield from pieces(r, schema.fields, version, flexible)


def frame(name: str, version: int, header: str, data: bytes, api_version: int, is_whole: bool) -> Iterator[str]:
    """A whole frame, its length, header and body; or its body alone."""
    r = Reader(data, 4)
    head = [Piece(4, 0, f"length = {len(data) - 4}")]
    head += pieces(r, SCHEMAS[header].fields, version, version == SCHEMAS[header].flexible.first)
    yield from dump(data, body(name, data, r.pos, api_version, head if is_whole else []), 0 if is_whole else r.pos)


def exchange(request: Any, answer: Any, version: int, is_whole: bool = False) -> Iterator[str]:
    """The fields and bytes of a request and of its answer; with their headers if it `is_whole`."""
    name, key = type(request).__name__, request.API_KEY
    flexible = SCHEMAS[name].flexible.first <= version
    yield f"\n## {name.removesuffix('Request')}\n"
    yield from grid(SCHEMAS[name])
    yield f"\nA request of version {version}, {'from its length on' if is_whole else 'behind such a header'}:\n"
    data = b"".join(encode_request(key, version, 3, "one", request))
    yield from frame(name, 2 if flexible else 1, "RequestHeader", data, version, is_whole)
    yield ""
    yield from grid(SCHEMAS[type(answer).__name__])
    yield "\nIts answer:\n"
    data = b"".join(encode_response(key, version, 3, answer))
    yield from frame(type(answer).__name__, int(flexible), "ResponseHeader", data, version, is_whole)


def record(message: Any, version: int, title: str) -> Iterator[str]:
    """The bytes of a key or value, after its version."""
    data = version.to_bytes(2, "big") + message.encode(version)
    yield f"\n{title}:\n"
    yield from dump(data, body(type(message).__name__, data, 2, version, [Piece(2, 0, f"version = {version}")]))


def lines() -> Iterator[str]:
    yield INTRO.rstrip()
    yield from exchange(
        find_coordinator.FindCoordinatorRequest(coordinator_keys=["G"]),
        find_coordinator.FindCoordinatorResponse(
            coordinators=[find_coordinator.Coordinator(key="G", node_id=1, host="kafka-1", port=9092)]
        ),
        6,
        is_whole=True,
    )
    protocols = [join_group.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)]
    yield from exchange(
        join_group.JoinGroupRequest(
            group_id="G", session_timeout_ms=45_000, rebalance_timeout_ms=300_000, member_id=MEMBER,
            protocol_type="consumer", protocols=protocols,
        ),
        join_group.JoinGroupResponse(
            generation_id=1, protocol_type="consumer", protocol_name="range", leader=MEMBER, member_id=MEMBER,
            members=[join_group.JoinGroupResponseMember(member_id=MEMBER, metadata=SUBSCRIPTION)],
        ),
        9,
    )  # fmt: skip
    yield "\nThe metadata of protocol type consumer is a subscription, which only the leader's assignor reads:\n"
    yield from grid(SCHEMAS["ConsumerProtocolSubscription"])
    head = [Piece(2, 0, "version = 0")]
    yield "\nOf version 0:\n"
    yield from dump(SUBSCRIPTION, body("ConsumerProtocolSubscription", SUBSCRIPTION, 2, 0, head))
    yield from exchange(
        sync_group.SyncGroupRequest(
            group_id="G", generation_id=1, member_id=MEMBER, protocol_type="consumer", protocol_name="range",
            assignments=[sync_group.SyncGroupRequestAssignment(member_id=MEMBER, assignment=ASSIGNMENT)],
        ),
        sync_group.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=ASSIGNMENT),
        5,
    )  # fmt: skip
    version = int.from_bytes(ASSIGNMENT[:2], "big")
    yield "\nAn assignment:\n"
    head = [Piece(2, 0, f"version = {version}")]
    yield from dump(ASSIGNMENT, body("ConsumerProtocolAssignment", ASSIGNMENT, 2, version, head))
    partition = offset_commit.OffsetCommitRequestPartition(committed_offset=1_500, committed_leader_epoch=0)
    answered = offset_commit.OffsetCommitResponsePartition()
    yield from exchange(
        offset_commit.OffsetCommitRequest(
            group_id="G", generation_id_or_member_epoch=1, member_id=MEMBER,
            topics=[offset_commit.OffsetCommitRequestTopic(name="T", partitions=[partition])],
        ),
        offset_commit.OffsetCommitResponse(
            topics=[offset_commit.OffsetCommitResponseTopic(name="T", partitions=[answered])]
        ),
        9,
    )  # fmt: skip
    yield from records()


def records() -> Iterator[str]:
    """The records of `__consumer_offsets`."""
    yield "\n## OffsetCommit in `__consumer_offsets`\n"
    yield "The key:\n"
    yield from grid(SCHEMAS["OffsetCommitKey"])
    yield ""
    yield from grid(SCHEMAS["OffsetCommitValue"])
    yield from record(group_log.OffsetCommitKey(group="G", topic="T", partition=3), 1, "A key")
    value = group_log.OffsetCommitValue(
        offset=1_500, leader_epoch=0, commit_timestamp=1_700_000_000_000, topic_id=bytes(range(16))
    )
    yield from record(
        value, 4, "Its value in version 4, which is written unless the offset has an expiry of its own (version 1)"
    )
    yield "\n## GroupMetadata in `__consumer_offsets`\n"
    yield "The key is version 2 and the group's id. The value:\n"
    yield from grid(SCHEMAS["GroupMetadataValue"])
    member = group_log.GroupMetadataValueMember(
        member_id=MEMBER, client_id="one", client_host="/127.0.0.1", rebalance_timeout=300_000, session_timeout=45_000,
        subscription=SUBSCRIPTION, assignment=ASSIGNMENT,
    )  # fmt: skip
    group = group_log.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader=MEMBER,
        current_state_timestamp=1_700_000_000_000, members=[member],
    )  # fmt: skip
    yield from record(group, 3, "In version 3, which is written")


def text() -> str:
    """The page."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    print(text(), end="")
