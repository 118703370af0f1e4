"""Format strings and JSON lines of `partita consume` and `produce`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.cli.records.formats import Look, from_json, parse_delimiter, parse_format, to_json
from partita.records.batch import Record

RECORD = Record("orders", 2, 7, 1_700_000_000_123, 0, b"k", b"v\x1b[2J", (("h", b"\xff"), ("n", None)))


def render(text: str, record: Record = RECORD, **look: object) -> bytes:
    return parse_format(text).render(record, Look(**look))  # type: ignore[arg-type]  # keywords of two types


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"%t/%p@%o %k %s\n", b"orders/2@7 k v\x1b[2J\n"),
        (r"%v|%S|%K|%T|%e", b"v\x1b[2J|5|1|1700000000123|-1"),
        ("%T{iso}", b"2023-11-14T22:13:20.123Z"),
        ("%s{hex} %s{base64}", b"761b5b324a dhtbMko="),
        ("%h{hex}", b"h=ff,n="),
        (r"100%%\t\x41\0\\", b"100%\tA\0\\"),
        ("%s{x}", b"v\x1b[2J{x}"),
        ("", b""),
    ],
)
def test_a_format_string_as_in_kcat(text: str, expected: bytes) -> None:
    assert render(text) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("%q", "unknown field %q"),
        (r"\q", r"unknown escape \q"),
        ("100%", "ends with '%'"),
        ("a\\", "ends with"),
        ("%o{hex}", "%o cannot be followed by {hex}"),
        ("%s{iso}", "%s cannot be followed by {iso}"),
        ("%T{hex}", "%T cannot be followed by {hex}"),
    ],
)
def test_a_wrong_format_string_says_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"unknown|ends|followed") as refused:
        parse_format(text)
    assert told in str(refused.value)


def test_a_terminal_gets_no_control_characters_but_line_breaks() -> None:
    record = Record("t", 0, 0, 0, 0, b"\x9b5m", b"a\x1b]0;title\x07\nb\xff", ())
    assert render("%k %s", record, is_terminal=True) == rb"\x9b5m a\x1b]0;title\x07" + b"\n" + rb"b\xff"


def test_null_is_written_as_asked() -> None:
    tombstone = Record("t", 0, 0, 0, 0, None, None, ())
    assert render("[%k][%s]%S", tombstone) == b"[][]-1"
    assert render("[%k][%s]", tombstone, null=b"NULL") == b"[NULL][NULL]"


def test_a_delimiter_knows_escapes_and_is_not_a_format() -> None:
    assert parse_delimiter(r"%s\0") == b"%s\0"
    with pytest.raises(ValueError, match="--raw"):
        parse_delimiter("")


bytes_or_null = st.none() | st.binary(max_size=8)


@given(bytes_or_null, bytes_or_null, st.lists(st.tuples(st.text(max_size=4), bytes_or_null), max_size=3))
def test_json_gives_every_byte_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    """C1 of the newcomer's audit: a pipe of consume and produce loses nothing."""
    names = [(name.encode("utf-8", "replace").decode(), held) for name, held in headers]
    line = to_json(Record("t", 3, 4, 5, 0, key, value, tuple(names)))
    assert "\n" not in line
    read = from_json(line.encode())
    assert (read.key, read.value, list(read.headers), read.partition, read.timestamp) == (key, value, names, 3, 5)


def test_text_stays_readable_in_json() -> None:
    fields = json.loads(to_json(Record("t", 0, 0, 0, 0, "é".encode(), b"\xff", ())))
    assert (fields["key"], fields["value_base64"]) == ("é", "/w==")
    assert "value" not in fields


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "is not JSON"),
        (b"[]", "is not an object with a value"),
        (b'{"key": "k"}', "is not an object with a value"),
        (b'{"value_base64": "?"}', "value_base64 that is not base64"),
        (b'{"value": "", "headers": [["a"]]}', "headers that are not pairs"),
        (b'{"value": "", "headers": [["a", 1]]}', "header value that is not text"),
        (b'{"value": "", "partition": "1"}', "partition that is not a number"),
        (b'{"value": "", "timestamp": true}', "timestamp that is not a number"),
    ],
)
def test_a_wrong_line_says_what_is_wrong(line: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has) ") as refused:
        from_json(line)
    assert told in str(refused.value)


def test_other_json_values_become_their_text() -> None:
    assert from_json(b'{"value": {"n": 1}, "key": 5, "partition": -1}').value == b'{"n": 1}'
