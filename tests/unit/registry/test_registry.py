"""Schema-registry framing for producer, consumer, Arrow and Spark; a registry as a folder and as a service."""

from __future__ import annotations

import asyncio
import base64
import math
import pickle
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)

from partita import Broker, Consumer, KafkaError, Producer
from partita.consumer.errors import RecordDeserializationError
from partita.registry import (
    AvroSerializer,
    FolderRegistry,
    HttpRegistry,
    JsonSchemaSerializer,
    ProtobufSerializer,
    RegistryDeserializer,
    RegistryError,
    RegistryUnavailableError,
    http,
)
from partita.registry.framing import decode_indexes, encode_indexes, frame, unframe
from partita.registry.protobuf import as_dict
from partita.registry.schema import Reference, Schema
from partita.registry.spark import decode_batches
from support.registry_service import Service, proto_classes, registry_service

FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "carrier", "type": "string"},
        {"name": "delay", "type": ["null", "long"], "default": None},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "stops", "type": {"type": "array", "items": "string"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}
ROW: dict[str, Any] = {
    "carrier": "UA",
    "delay": None,
    "when": datetime(2013, 1, 1, tzinfo=UTC),
    "price": Decimal("12.50"),
    "tags": {"a": 1},
    "stops": ["EWR", "IAH"],
    "id": UUID(int=7),
    "kind": "B",
}
POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}


@pytest.fixture
def folder(tmp_path: Path) -> FolderRegistry:
    return FolderRegistry(tmp_path / "registry")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def test_the_frame_is_confluents() -> None:
    assert frame(7, b"x") == b"\x00\x00\x00\x00\x07x"
    assert frame(7, b"x", [0]) == b"\x00\x00\x00\x00\x07\x00x"
    assert frame(7, b"x", [1, 0]) == b"\x00\x00\x00\x00\x07\x04\x02\x00x"
    assert unframe(frame(7, b"x")) == (7, b"x")


@pytest.mark.parametrize("indexes", [[0], [1], [1, 0], [0, 0], [300, 2, 70]])
def test_message_indexes_come_back(indexes: list[int]) -> None:
    assert decode_indexes(encode_indexes(indexes) + b"rest") == (indexes, b"rest")


@pytest.mark.parametrize(
    ("data", "message"), [(b"{}", "got 2 bytes"), (b'{"a": 1}', "first byte 0x7b"), (b"", "got 0 bytes")]
)
def test_bytes_without_a_frame_are_named(folder: FolderRegistry, data: bytes, message: str) -> None:
    with pytest.raises(RegistryError, match=message):
        RegistryDeserializer(folder).deserialize("t", (), data)


@pytest.mark.parametrize("data", [b"\x80", b"\xff\xff\xff\xff\xff\xff", b"\x03", b"\xd2\x01", b"\x04\x02", b"\x02\x01"])
def test_damaged_message_indexes_are_refused(data: bytes) -> None:
    with pytest.raises(RegistryError, match=r"cut short|cannot be"):
        decode_indexes(data)


def test_avro_comes_back(folder: FolderRegistry) -> None:
    data = AvroSerializer(folder, FLIGHT).serialize("flights", [], ROW)
    assert data is not None
    assert data[:5] == b"\x00\x00\x00\x00\x01"
    assert RegistryDeserializer(folder).deserialize("flights", (), data) == ROW
    assert folder.latest("flights-value")[0] == 1


def test_null_stays_null(folder: FolderRegistry) -> None:
    assert AvroSerializer(folder, FLIGHT).serialize("t", [], None) is None
    assert JsonSchemaSerializer(folder, POINT).serialize("t", [], None) is None
    assert ProtobufSerializer(folder, proto_classes()[0]).serialize("t", [], None) is None
    assert RegistryDeserializer(folder).deserialize("t", (), None) is None


def test_a_reader_sees_records_by_its_own_schema(folder: FolderRegistry) -> None:
    data = AvroSerializer(folder, FLIGHT).serialize("flights", [], ROW)
    reader = {
        "type": "record",
        "name": "Flight",
        "fields": [{"name": "carrier", "type": "string"}, {"name": "new", "type": "int", "default": 5}],
    }
    assert RegistryDeserializer(folder, reader_schema=reader).deserialize("t", (), data) == {"carrier": "UA", "new": 5}
    strange = {"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "int"}]}
    with pytest.raises(RegistryError, match="reader's schema cannot read"):
        RegistryDeserializer(folder, reader_schema=strange).deserialize("t", (), data)


def test_an_avro_schema_may_use_others(folder: FolderRegistry) -> None:
    folder.register("kinds", Schema('{"type": "enum", "name": "Kind", "symbols": ["A"]}'))
    text = '{"type": "record", "name": "R", "fields": [{"name": "kind", "type": "Kind"}]}'
    folder.register("t-value", Schema(text, references=(Reference("Kind", "kinds", 1),)))
    data = AvroSerializer(folder, None).serialize("t", [], {"kind": "A"})
    assert RegistryDeserializer(folder).deserialize("t", (), data) == {"kind": "A"}


def test_what_the_schema_does_not_allow_is_refused(folder: FolderRegistry) -> None:
    with pytest.raises(RegistryError, match="does not fit Avro schema 1"):
        AvroSerializer(folder, FLIGHT).serialize("t", [], {"carrier": 7})
    with pytest.raises(RegistryError, match=r"at \$\.x: 'one' is not of type 'number'"):
        JsonSchemaSerializer(folder, POINT).serialize("t", [], {"x": "one"})
    with pytest.raises(RegistryError, match="expected a Other, got Leg"):
        ProtobufSerializer(folder, proto_classes()[0]).serialize("t", [], proto_classes()[1]())


@pytest.mark.parametrize("odd", [object(), float("nan")])
def test_what_fits_a_schema_and_is_no_json_is_refused_in_words(folder: FolderRegistry, odd: object) -> None:
    with pytest.raises(RegistryError, match="fits its JSON Schema, but is no JSON"):
        JsonSchemaSerializer(folder, {"type": "object"}).serialize("t", [], {"x": odd})


def test_a_serializer_that_must_not_register_takes_what_is_there(folder: FolderRegistry) -> None:
    with pytest.raises(RegistryError, match="there is no subject 't-value'"):
        AvroSerializer(folder, '"string"', register=False).serialize("t", [], "x")
    folder.register("t-value", Schema('"long"'))
    with pytest.raises(RegistryError, match="subject 't-value' has another schema"):
        AvroSerializer(folder, '"string"', register=False).serialize("t", [], "x")
    assert AvroSerializer(folder, '"long"', register=False).serialize("t", [], 1) == frame(1, b"\x02")


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\x04U", b"\x04UA" + bytes(40)])
def test_damaged_avro_is_refused(folder: FolderRegistry, payload: bytes) -> None:
    folder.register("t-value", Schema('"string"'))
    with pytest.raises(RegistryError, match=r"not what their Avro schema says|left over"):
        RegistryDeserializer(folder).deserialize("t", (), frame(1, payload))


def test_json_comes_back_and_is_checked(folder: FolderRegistry) -> None:
    data = JsonSchemaSerializer(folder, POINT, is_key=True).serialize("points", [], {"x": 1.5})
    assert data == frame(1, b'{"x":1.5}')
    assert folder.latest("points-key")[1].type == "JSON"
    read = RegistryDeserializer(folder)
    assert read.deserialize("points", (), data) == {"x": 1.5}
    with pytest.raises(RegistryError, match="no JSON"):
        read.deserialize("points", (), frame(1, b"{"))
    with pytest.raises(RegistryError, match="'x' is a required property"):
        read.deserialize("points", (), frame(1, b"{}"))
    with pytest.raises(RegistryError, match="no JSON Schema"):
        JsonSchemaSerializer(folder, {"type": 7})


def test_protobuf_comes_back_with_and_without_its_class(folder: FolderRegistry) -> None:
    _, leg = proto_classes()
    data = ProtobufSerializer(folder, leg).serialize("legs", [], leg(carrier="UA", delay_minutes=-3))
    assert data is not None
    assert data[5:8] == b"\x04\x02\x00"
    for read in (RegistryDeserializer(folder), RegistryDeserializer(folder, message=leg)):
        found = read.deserialize("legs", (), data)
        assert (found.carrier, found.delay_minutes) == ("UA", -3)
    with pytest.raises(RegistryError, match=r"no flights\.Flight\.Leg"):
        RegistryDeserializer(folder).deserialize("legs", (), data + b"\xff")
    with pytest.raises(RegistryError, match=r"no message at \[9\]"):
        RegistryDeserializer(folder).deserialize("legs", (), frame(1, b"", [9]))


def test_a_protobuf_schema_as_text_needs_the_class(folder: FolderRegistry) -> None:
    folder.register("legs-value", Schema('syntax = "proto3"; message A {}', "PROTOBUF"))
    with pytest.raises(RegistryUnavailableError, match=r"give the message's class: RegistryDeserializer\(registry, "):
        RegistryDeserializer(folder).deserialize("legs", (), frame(1, b"", [0]))


def test_columns_have_the_types_of_the_schema(folder: FolderRegistry) -> None:
    data = AvroSerializer(folder, FLIGHT).serialize("flights", [], ROW)
    column = RegistryDeserializer(folder).to_arrow(pa.array([data, None], pa.binary()))
    kinds = {field.name: str(field.type) for field in column.type}
    assert kinds == {
        "carrier": "string",
        "delay": "int64",
        "when": "timestamp[ms, tz=UTC]",
        "price": "decimal128(6, 2)",
        "tags": "map<string, int32>",
        "stops": "list<item: string>",
        "id": "string",
        "kind": "string",
    }
    first, second = column.to_pylist()
    assert (first["price"], first["tags"], first["id"]) == (Decimal("12.50"), [("a", 1)], str(UUID(int=7)))
    assert second is None


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}', "recursive type 'N'"),
        ('{"type": "record", "name": "N", "fields": [{"name": "n", "type": ["int", "string"]}]}', "a union of 2 types"),
    ],
)
def test_what_arrow_cannot_say_is_refused(folder: FolderRegistry, schema: str, message: str) -> None:
    data = AvroSerializer(folder, schema).serialize("t", [], {"n": None if "null" in schema else 1})
    with pytest.raises(RegistryError, match=message):
        RegistryDeserializer(folder).to_arrow(pa.array([data]))


def test_json_and_protobuf_have_columns_too(folder: FolderRegistry) -> None:
    _, leg = proto_classes()
    points = pa.array([JsonSchemaSerializer(folder, POINT).serialize("p", [], {"x": 1.5})])
    legs = pa.array([ProtobufSerializer(folder, leg).serialize("l", [], leg(carrier="UA"))])
    batch = pa.record_batch({"key": points, "value": legs})
    read = pickle.loads(pickle.dumps(RegistryDeserializer(folder)))
    (found,) = decode_batches(iter([batch]), {"key": read, "value": read})
    assert found.to_pylist() == [{"key": {"x": 1.5}, "value": {"carrier": "UA", "delay_minutes": 0}}]
    assert str(RegistryDeserializer(folder).to_arrow(pa.nulls(2, pa.binary())).type) == "null"


def every_kind() -> Any:
    """A message class with a field of each kind that JSON writes in other ways than Python."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="kinds.proto", package="kinds", syntax="proto3")
    imported = [timestamp_pb2, duration_pb2, wrappers_pb2, struct_pb2]
    file.dependency.extend(module.DESCRIPTOR.name for module in imported)
    values = file.enum_type.add(name="Side").value
    values.add(name="LEFT", number=0)
    values.add(name="RIGHT", number=1)
    kind = file.message_type.add(name="Kinds")
    entry = kind.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=field.TYPE_INT64, label=1)
    plain = {"big": field.TYPE_INT64, "blob": field.TYPE_BYTES, "not_a_number": field.TYPE_DOUBLE}
    for number, (name, of_type) in enumerate(plain.items(), 1):
        kind.field.add(name=name, number=number, type=of_type, label=1)
    kind.field.add(name="many", number=10, type=field.TYPE_SINT64, label=3)
    for number, (name, of_message, label) in enumerate(
        [("at", ".google.protobuf.Timestamp", 1), ("took", ".google.protobuf.Duration", 1),
         ("maybe", ".google.protobuf.Int64Value", 1), ("open", ".google.protobuf.Struct", 1),
         ("counts", ".kinds.Kinds.CountsEntry", 3), ("inner", ".kinds.Kinds", 1), ("absent", ".kinds.Kinds", 1)], 20,
    ):  # fmt: skip
        kind.field.add(name=name, number=number, type=field.TYPE_MESSAGE, label=label, type_name=of_message)
    kind.field.add(name="side", number=30, type=field.TYPE_ENUM, label=3, type_name=".kinds.Side")
    pool = descriptor_pool.DescriptorPool()
    for module in imported:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("kinds.Kinds"))


def test_protobuf_fields_are_what_python_has_for_them() -> None:
    """Issue 13, item 3: 64-bit numbers became text and bytes base64, as JSON has them."""
    kinds = every_kind()
    message = kinds(big=2**53 + 1, blob=b"\x00\xff", not_a_number=math.inf, many=[-1, 2**62], side=[1, 9])
    message.at.FromDatetime(datetime(2026, 1, 2))
    message.took.FromSeconds(90)
    message.maybe.value = 0
    message.open["a"] = True
    message.counts["k"] = 2**40
    message.inner.big = 7
    found = as_dict(message)
    inner = found.pop("inner")
    assert (inner["big"], inner["many"], "at" in inner) == (7, [], False)
    assert found == {
        "big": 2**53 + 1, "blob": b"\x00\xff", "not_a_number": math.inf, "many": [-1, 2**62], "side": ["RIGHT", "9"],
        "at": datetime(2026, 1, 2, tzinfo=UTC), "took": timedelta(seconds=90), "maybe": 0, "open": {"a": True},
        "counts": {"k": 2**40},
    }  # fmt: skip
    message.at.seconds = 2**60
    with pytest.raises(RegistryError, match=r"at is no google\.protobuf\.Timestamp"):
        as_dict(message)


def test_a_folder_that_is_not_there_makes_no_record_unreadable(tmp_path: Path) -> None:
    """Issue 13, item 3: every record of a pipeline went to the dead letters for a misspelt folder."""
    with pytest.raises(RegistryUnavailableError, match="there is no folder"):
        FolderRegistry(tmp_path / "shcemas").schema(1)
    with pytest.raises(RegistryError, match="there is no schema with id 1"):
        FolderRegistry(tmp_path).schema(1)
    (tmp_path / "schemas" / "2.json").mkdir(parents=True)
    with pytest.raises(RegistryUnavailableError, match="cannot be read: "):
        FolderRegistry(tmp_path).schema(2)


def test_producer_and_consumer_speak_it(folder: FolderRegistry, broker: Broker) -> None:
    with Producer(
        bootstrap_servers=broker.bootstrap,
        key_serializer=AvroSerializer(folder, '"string"', is_key=True),
        value_serializer=AvroSerializer(folder, FLIGHT),
    ) as producer:
        producer.send("flights", ROW, key="UA").result(60)
        producer.send("flights", None, key="UA").result(60)
    read = RegistryDeserializer(folder)
    consumer = Consumer(
        bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", key_deserializer=read, value_deserializer=read
    )
    with consumer:
        consumer.assign([("flights", 0)])
        found: list[Any] = []
        while len(found) < 2:
            found += consumer.poll(5)
        assert [(record.key, record.value) for record in found] == [("UA", ROW), ("UA", None)]
        consumer.seek(("flights", 0), 0)
        batch = None
        while batch is None:
            batch = consumer.poll_arrow(5, key=read, value=read)
        assert batch.column("key").to_pylist() == ["UA", "UA"]
        first, second = batch.column("value").to_pylist()
        assert (first["carrier"], second) == ("UA", None)


def test_a_bad_record_of_a_column_is_named(folder: FolderRegistry, broker: Broker) -> None:
    """Audit of the clients, "Smaller": an error of Arrow said neither partition nor offset."""
    good = AvroSerializer(folder, '"string"').serialize("columns", [], "x")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for data in (good, good, b"no frame", good):
            producer.send("columns", data, partition=0).result(60)
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("columns", 0)])
        with pytest.raises(RecordDeserializationError, match="value of columns-0 at offset 2") as caught:
            _ = [consumer.poll_arrow(10, value=RegistryDeserializer(folder)) for _ in range(5)]
        assert (caught.value.offset, caught.value.raw_value) == (2, b"no frame")


MOODS: list[int | dict[str, Any]] = [
    401, 408, 503, {}, {"status": "ok"}, {"schema": None}, {"schema": 5}, {"schema": {"type": "string"}},
    {"schema": "maintenance"}, {"schema": '"string"', "schemaType": "XML"}, {"schema": '"string"', "schemaType": 7},
    {"schema": '"string"', "references": 3}, {"schema": "{", "schemaType": "JSON"},
    {"schema": "maintenance", "schemaType": "PROTOBUF"},
]  # fmt: skip
"""What a registry, or something else at its address, may answer that says nothing of a record (audit, D3)."""


@pytest.mark.parametrize("mood", MOODS, ids=str)
def test_an_outage_of_the_registry_is_no_poison(
    mood: int | dict[str, Any], folder: FolderRegistry, broker: Broker
) -> None:
    """A password that has ended must not skip a whole topic, whatever the policy says of unreadable records."""
    topic = f"outage-{MOODS.index(mood)}"
    data = AvroSerializer(folder, '"string"').serialize(topic, [], "x")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, data, partition=0).result(60)
    with (
        registry_service(folder) as service,
        Consumer(
            bootstrap_servers=broker.bootstrap,
            auto_offset_reset="earliest",
            poison_policy="skip",
            retry_backoff_ms=20,
            value_deserializer=RegistryDeserializer(HttpRegistry(service.url)),
        ) as consumer,
    ):
        consumer.assign([(topic, 0)])
        service.answers_with = mood
        with pytest.raises(RecordDeserializationError, match="it is tried again by the next poll") as told:
            consumer.poll(10)
        assert (told.value.is_outage, told.value.retriable) == (True, True)
        with pytest.raises(KafkaError) as raw:
            consumer.poll_arrow(10, value=RegistryDeserializer(HttpRegistry(service.url)))
        assert isinstance(raw.value, RegistryUnavailableError)
        service.answers_with = 0
        assert [record.value for record in consumer.poll(10)] == ["x"]


def test_a_loop_that_polls_on_does_not_storm_the_registry(folder: FolderRegistry, broker: Broker) -> None:
    data = AvroSerializer(folder, '"string"').serialize("storm", [], "x")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send("storm", data, partition=0).result(60)
    with (
        registry_service(folder) as service,
        Consumer(
            bootstrap_servers=broker.bootstrap,
            auto_offset_reset="earliest",
            retry_backoff_ms=60_000,
            retry_backoff_max_ms=60_000,
            value_deserializer=RegistryDeserializer(HttpRegistry(service.url)),
        ) as consumer,
    ):
        consumer.assign([("storm", 0)])
        service.answers_with = 503
        with pytest.raises(RecordDeserializationError):
            consumer.poll(10)
        assert [len(consumer.poll(0)) for _ in range(50)] == [0] * 50
        assert consumer.poll_arrow(0.01) is None
        assert service.asked == 1


@pytest.mark.parametrize("columns", [False, True])
def test_a_slow_registry_does_not_hold_the_event_loop(columns: bool, folder: FolderRegistry, broker: Broker) -> None:
    topic = f"slow-{columns}"
    data = AvroSerializer(folder, '"string"').serialize(topic, [], "x")
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        producer.send(topic, data, partition=0).result(60)

    class Slow(FolderRegistry):
        def schema(self, schema_id: int) -> Schema:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loops[0]).result(60)  # the loop has to run meanwhile
            return super().schema(schema_id)

    async def read() -> list[object]:
        loops.append(asyncio.get_running_loop())
        slow = RegistryDeserializer(Slow(folder.folder))
        first = {} if columns else {"value_deserializer": slow}
        async with Consumer({"auto_offset_reset": "earliest", **first}, bootstrap_servers=broker.bootstrap) as consumer:
            consumer.assign([(topic, 0)])
            if not columns:
                return [record.value for record in await consumer.poll(20)]
            batch = await consumer.poll_arrow(20, value=slow)
            return [] if batch is None else batch.column("value").to_pylist()

    loops: list[asyncio.AbstractEventLoop] = []
    assert asyncio.run(read()) == ["x"]


def test_a_serializer_can_be_prepared(service: Service) -> None:
    registry = HttpRegistry(service.url, basic_auth=("alice", "secret"))
    avro, objects = AvroSerializer(registry, '"string"'), JsonSchemaSerializer(registry, POINT)
    messages = ProtobufSerializer(registry, proto_classes()[0])
    for number, prepare in enumerate((avro.prepare, objects.prepare, messages.prepare), start=1):
        prepare(f"t{number}")
        prepare(f"t{number}")
        assert service.asked == number
    service.answers_with = 503
    with pytest.raises(RegistryUnavailableError):
        avro.prepare("t9")


def test_what_is_no_registry_is_told(service: Service) -> None:
    """An address of something else must not make records unreadable: a page of a proxy answers 200 or 404."""
    registry = HttpRegistry(service.url, basic_auth=("alice", "secret"))
    for status in (200, 404):
        with pytest.raises(RegistryUnavailableError, match="does not answer as a schema registry"):
            http._checked(status, "<html>", service.url, "no schema with id 1")
    with pytest.raises(RegistryUnavailableError, match="does not answer as a schema registry"):
        http._checked(404, '{"detail": "Not Found"}', service.url, "no schema with id 1")
    service.answers_with = {"id": "one", "schema": '"int"'}
    with pytest.raises(RegistryUnavailableError, match="does not answer as a schema registry"):
        registry.latest("t-value")
    service.answers_with = 0
    registry.register("t-value", Schema('"int"'))
    with pytest.raises(RegistryError, match="has no schema with id 9"):
        registry.schema(9)


@pytest.fixture
def service(folder: FolderRegistry) -> Iterator[Service]:
    basic = "Basic " + base64.b64encode(b"alice:secret").decode()
    with registry_service(folder, authorization=basic) as running:
        yield running


def test_the_service_is_asked_once_for_each_schema(service: Service) -> None:
    registry = HttpRegistry([service.url], basic_auth=("alice", "secret"))
    schema = Schema('"string"')
    assert [registry.register("a b/c-value", schema) for _ in range(2)] == [1, 1]
    assert registry.schema(1) == schema
    assert service.asked == 1
    other = pickle.loads(pickle.dumps(registry))
    assert [other.schema(1) for _ in range(2)] == [schema, schema]
    assert other.latest("a b/c-value") == (1, schema)
    assert other.version("a b/c-value", 1) == schema
    assert service.asked == 4
    other.close()
    registry.close()


def test_refusals_of_the_service_name_the_cure(service: Service) -> None:
    with pytest.raises(RegistryUnavailableError, match=r"give basic_auth=\(user, password\)"):
        HttpRegistry(service.url).schema(1)
    registry = HttpRegistry(service.url, basic_auth=("alice", "secret"))
    service.registry.folder.mkdir()
    with pytest.raises(RegistryError, match="has no schema with id 9: there is no schema"):
        registry.schema(9)
    service.answers_with = 403
    with pytest.raises(RegistryUnavailableError, match="forbids it"):
        registry.schema(9)
    service.answers_with = 409
    with pytest.raises(RegistryError, match="refuses with 409: not today"):
        registry.register("t-value", Schema('"int"'))
    assert "secret" not in repr(registry)


def test_the_next_url_is_tried(service: Service) -> None:
    with socket.socket() as bound:  # nobody else takes the port, and nobody listens
        bound.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{bound.getsockname()[1]}"
        registry = HttpRegistry(f"{nobody}, {service.url}/", basic_auth=("alice", "secret"))
        assert registry.register("t-value", Schema('"int"')) == 1
        with pytest.raises(RegistryUnavailableError, match="cannot be asked: http") as told:
            HttpRegistry(nobody).schema(1)
    assert told.value.retriable


def test_versions_of_a_folder_count_from_one(folder: FolderRegistry) -> None:
    folder.register("t-value", Schema('"int"'))
    folder.register("t-value", Schema('"long"'))
    folder.register("u-value", Schema('"int"'))
    assert [folder.version("t-value", number).text for number in (1, 2)] == ['"int"', '"long"']
    assert folder.latest("u-value")[0] == 1
    with pytest.raises(RegistryError, match="has versions 1 to 2, not 3"):
        folder.version("t-value", 3)
