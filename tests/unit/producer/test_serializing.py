import json
from typing import Any

import pytest

from partita.producer.serializing import to_bytes, to_headers


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), (b"b", b"b"), ("é", "é".encode()), (bytearray(b"x"), b"x"), (memoryview(b"y"), b"y")],
)
def test_bytes_and_text_need_no_serializer(given: Any, expected: bytes | None) -> None:
    assert to_bytes(given, None, "value") == expected


def test_other_things_do() -> None:
    assert to_bytes({"a": 1}, lambda value: json.dumps(value), "value") == b'{"a": 1}'
    with pytest.raises(TypeError, match="the value is dict; expected bytes or str, or give a value_serializer"):
        to_bytes({"a": 1}, None, "value")
    seven: Any = lambda value: 7  # noqa: E731 (a serializer that breaks its contract)
    with pytest.raises(TypeError, match="the key returned int"):
        to_bytes("k", seven, "key")


def test_headers_come_as_pairs_or_as_a_dict() -> None:
    assert to_headers({"a": "1", "b": None}) == (("a", b"1"), ("b", None))
    assert to_headers([("a", b"1"), ("a", b"2")]) == (("a", b"1"), ("a", b"2"))
    assert to_headers(None) == ()
