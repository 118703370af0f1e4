from collections.abc import Callable
from typing import Any

import pytest

from partita.consumer.deserializers import NAMED as DESERIALIZERS
from partita.consumer.deserializers import deserializer
from partita.options import ConfigError
from partita.producer.serializing import NAMED, Headers, serializer, to_bytes, to_headers


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), (b"b", b"b"), ("é", "é".encode()), (bytearray(b"x"), b"x"), (memoryview(b"y"), b"y")],
)
def test_bytes_and_text_need_no_serializer(given: Any, expected: bytes | None) -> None:
    assert to_bytes(given, "value") == expected


def test_anything_else_needs_a_serializer() -> None:
    with pytest.raises(TypeError, match="the value is dict; expected bytes or str, or give a value_serializer"):
        to_bytes({"a": 1}, "value")


def test_headers_come_as_pairs_or_as_a_dict() -> None:
    assert to_headers({"a": "1", "b": None}) == (("a", b"1"), ("b", None))
    assert to_headers([("a", b"1"), ("a", b"2")]) == (("a", b"1"), ("a", b"2"))
    assert to_headers(None) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("str", "é"), ("json", {"a": [1, None, "é"]}), ("short", -2), ("int", 7), ("long", 2**40), ("double", 0.5)],
)
def test_what_a_named_serializer_writes_the_deserializer_of_that_name_reads(name: str, value: Any) -> None:
    """clients.md 5: named deserializers had no counterpart."""
    write, read = serializer(name, "value_serializer"), deserializer(name)
    assert write is not None
    assert read is not None
    written = write("t", [], value)
    assert isinstance(written, bytes)
    assert read("t", (), written) == value
    assert write("t", [], None) is None


def test_names_are_those_of_deserializers_and_of_javas_classes() -> None:
    assert NAMED.keys() == DESERIALIZERS.keys()
    assert serializer("bytes", "key_serializer") is None
    found = serializer("org.apache.kafka.common.serialization.LongSerializer", "key_serializer")
    assert found is not None
    assert found("t", [], 1) == bytes(7) + b"\x01"


@pytest.mark.parametrize(
    ("given", "message"),
    [("avro", "value_serializer: unknown serializer 'avro'; expected bytes, str, json"), (7, "must be a function")],
)
def test_what_is_no_serializer_is_refused_at_the_start(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        serializer(given, "value_serializer")


@pytest.mark.parametrize(("name", "value"), [("str", 7), ("int", "7"), ("short", 2**20)])
def test_a_value_of_another_type_is_named(name: str, value: Any) -> None:
    write = serializer(name, "value_serializer")
    assert write is not None
    with pytest.raises(TypeError, match=r"takes text|is no such number"):
        write("t", [], value)


class Framed:
    """Knows the topic, is called for None, and adds a header."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes:
        headers.append(("schema", b"7"))
        return f"{topic}:{data}".encode()


@pytest.mark.parametrize("given", [Framed, Framed()])
def test_a_serializer_object_gets_topic_and_headers_and_is_called_for_null(given: Any) -> None:
    write = serializer(given, "value_serializer")
    assert write is not None
    headers: Headers = []
    assert write("t", headers, None) == b"t:None"
    assert headers == [("schema", b"7")]


class OfKafkaPython2:
    def serialize(self, topic: str, data: Any) -> bytes:
        return b""

    def deserialize(self, topic: str, data: bytes) -> object:
        return data


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: serializer(OfKafkaPython2(), "value_serializer"), r"serialize of value_serializer is called with"),
        (lambda: serializer(lambda data, context: b"", "key_serializer"), r"key_serializer is called with \(data\)"),
        (
            lambda: deserializer(OfKafkaPython2()),
            r"called with \(topic, headers, data\), and yours takes \(topic: str, ",
        ),
        (lambda: deserializer(lambda topic, data: data), r"called with \(data\), and yours takes \(topic, data\)"),
    ],
)
def test_a_serializer_with_the_arguments_of_another_client_is_refused_at_the_start(
    make: Callable[[], object], told: str
) -> None:
    """It was found at the first record."""
    with pytest.raises(ConfigError, match=told):
        make()


def test_a_function_that_does_not_tell_its_arguments_is_taken() -> None:
    write = serializer(bytes, "value_serializer")
    assert write is not None
    assert write("t", [], [1]) == b"\x01"
