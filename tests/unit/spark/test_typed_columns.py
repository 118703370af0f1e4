"""Options of typed columns, and the columns that a task makes of its records."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import timestamp_pb2

from partita.errors import MessageTooLargeError
from partita.options import ConfigError
from partita.registry import HttpRegistry
from partita.registry.spark import registry_at
from partita.spark.planning.starts import SourceError
from partita.spark.reading import tables
from partita.spark.reading.pushed_filters import PushedFilters
from partita.spark.reading.typed_columns import Send, TypedColumns, looked_up
from partita.spark.settings.options import SourceOptions, parse_source
from partita.spark.spark_api import EqualTo, Filter, GreaterThan, In, IsNotNull, LessThan, arrow_schema

FLIGHTS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "flights"}
DELAYS = {"valueFormat": "json", "valueSchema": "carrier string, delay double"}


def options(**given: str) -> SourceOptions:
    return parse_source(FLIGHTS | given)


def records(*values: bytes | None) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b'{"id":%d}' % n for n in range(count)], pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["flights"] * count,
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(100, 100 + count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
        }
    )


def read(
    asked: SourceOptions, batch: pa.RecordBatch, *filters: Filter, send: Send | None = None
) -> list[dict[str, Any]]:
    assert asked.typed is not None
    schema = arrow_schema(tables.read_schema(asked.columns, asked.typed))
    return list(TypedColumns(asked.typed, filters, send)(batch, schema).to_pylist())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"valueFormat": "jsn"}, "json"),
        ({"valueFormat": "json"}, "valueFormat=json needs valueSchema"),
        ({"valueSchema": "a int"}, "valueSchema needs valueFormat: json"),
        ({"valueFormat": "avro"}, "valueFormat=avro needs valueSchema, of its records, or registry"),
        ({"valueFormat": "avro", "valueSchema": "a int"}, "must be the schema of Avro that the records have"),
        ({"valueFormat": "avro", "valueSchema": '{"type": "recrod"}'}, "valueSchema: "),
        ({**DELAYS, "registry": "schemas"}, "registry needs valueFormat or keyFormat to be avro"),
        ({"valueFormat": "avro", "keyFormat": "avro", "registry": "x"}, "give keySchema or valueSchema"),
        ({"onError": "column"}, "onError needs valueFormat or keyFormat"),
        ({"valueFormat": "json", "valueSchema": "a strng"}, "valueSchema: the column a has the type strng"),
        ({**DELAYS, "timeZone": "Mars"}, "timeZone must be a zone like UTC"),
        ({**DELAYS, "registry": "https://user:password@host"}, "registry holds a login, which Spark shows in plans"),
        ({**DELAYS, "registry": "https://a, https://${env:USER}:word@b"}, "registry holds a login"),
        ({**DELAYS, "registry": "https://token@host/x"}, "registry holds a login"),
        ({**DELAYS, "registry": "https://user:ends in :@host"}, "registry holds a login"),
        ({**DELAYS, "separator": ";"}, "separator needs valueFormat=csv or keyFormat=csv"),
        ({**DELAYS, "valueFormat": "csv", "separator": "ab"}, "separator must be one character of ASCII"),
        ({**DELAYS, "onErrors": "fail"}, "did you mean 'onError'"),
        ({**DELAYS, "onError": "deadLetter"}, "onError=deadLetter needs deadLetterTopic"),
        ({**DELAYS, "deadLetterTopic": "bad"}, "deadLetterTopic needs onError=deadLetter"),
        ({**DELAYS, "onError": "deadLetter", "deadLetterTopic": "b d"}, "deadLetterTopic"),
        ({**DELAYS, "onError": "deadLetter", "deadLetterTopic": "flights"}, "flights is read itself"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        options(**given)
    assert said in str(refused.value)


def test_a_name_that_stands_twice_is_refused_with_a_cure() -> None:
    twice = options(**DELAYS | {"valueSchema": "Offset int"})
    with pytest.raises(ConfigError, match="a column of the record too; name the record's columns that you want"):
        tables.read_schema(twice.columns, twice.typed)
    both = options(**DELAYS, keyFormat="json", keySchema="carrier string")
    with pytest.raises(ConfigError, match="the column carrier of the key is a column of the value too; leave it out"):
        tables.read_schema(both.columns, both.typed)


def test_decoded_columns_stand_before_those_of_the_record() -> None:
    keys = {"keyFormat": "json", "keySchema": "id int"}
    for asked, names in (
        (options(**DELAYS), ["carrier", "delay", "partition", "offset", "timestamp"]),
        (options(**DELAYS, **keys, columns="topic"), ["carrier", "delay", "id", "topic"]),
        (options(**keys, onError="column"), ["id", "value", "partition", "offset", "timestamp", "_error", "_key"]),
    ):
        assert tables.read_schema(asked.columns, asked.typed).names == names


def test_a_bad_record_fails_the_query_and_the_message_says_where_it_is() -> None:
    with pytest.raises(SourceError) as failed:
        read(options(**DELAYS), records(b"{}", b"nonsense"))
    assert str(failed.value).startswith("flights-3 at offset 101: value: this is no JSON object: at byte 0, 'nonsense'")
    assert "onError=column" in str(failed.value)


def test_a_bad_record_is_a_row_with_its_reason_and_its_bytes() -> None:
    asked = options(**DELAYS, onError="column", columns="offset")
    rows = read(asked, records(b'{"carrier":"UA"}', b'{"carrier":"AA","delay":"late"}'))
    assert rows[0] == {"carrier": "UA", "delay": None, "offset": 100, "_error": None, "_value": None}
    assert (rows[1]["carrier"], rows[1]["_value"]) == ("AA", b'{"carrier":"AA","delay":"late"}')
    assert rows[1]["_error"] == "value: delay is late, which is no double"


def test_rows_are_passed_on_when_the_letters_of_bad_records_are_sent() -> None:
    asked = options(**DELAYS, onError="deadLetter", deadLetterTopic="bad", columns="offset")
    sent: list[tuple[int, str]] = []

    def send(batch: pa.RecordBatch, reasons: Mapping[int, str]) -> None:
        sent.extend((batch.column("offset")[row].as_py(), reason) for row, reason in reasons.items())

    def refuse(batch: pa.RecordBatch, reasons: Mapping[int, str]) -> None:
        raise MessageTooLargeError(f"{len(reasons)} letters")

    batch = records(b'{"carrier":"UA"}', b"nonsense", b'{"delay":"late"}', None)
    assert [row["offset"] for row in read(asked, batch, send=send)] == [100, 103]
    assert [offset for offset, _ in sent] == [101, 102]
    assert sent[1][1] == "value: delay is late, which is no double"
    with pytest.raises(MessageTooLargeError, match="2 letters"):
        read(asked, batch, send=refuse)


def test_filters_on_decoded_columns_leave_out_only_what_they_exclude() -> None:
    values = (b'{"carrier":"UA","delay":30}', b'{"carrier":"AA","delay":-5}', b'{"delay":NaN}', b"{}", None)
    asked = options(**DELAYS, columns="offset")
    pushed = PushedFilters(frozenset({"carrier", "delay"}))
    delay, carrier = ("delay",), ("carrier",)
    for found, offsets in (
        (GreaterThan(delay, 0.0), [100, 102]),
        (EqualTo(carrier, "AA"), [101]),
        (In(carrier, ("AA", "UA")), [100, 101]),
        (IsNotNull(delay), [100, 101, 102]),
        (LessThan(carrier, 5), [100, 101, 102, 103, 104]),
    ):
        assert not pushed.take(found), "Spark applies it again"
        assert [row["offset"] for row in read(asked, records(*values), found)] == offsets
    assert len(pushed.of_decoded) == 5


def test_a_decoded_column_may_have_the_name_of_a_column_that_is_not_read() -> None:
    asked = options(valueFormat="json", valueSchema="partition int", columns="offset")
    pushed = PushedFilters(frozenset({"partition"}))
    found = EqualTo(("partition",), 7)
    assert not pushed.take(found)
    assert pushed.partitions is None, "it says nothing of the record's partition"
    assert [row["offset"] for row in read(asked, records(b'{"partition":7}', b"{}"), found)] == [100]


def test_a_login_of_the_registry_is_a_reference_until_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "https://a.example, https://me:${env:REGISTRY_WORD}@b.example/x@y"
    asked = options(valueFormat="avro", valueSchema="carrier string", registry=place)
    assert asked.typed is not None
    assert place in repr(asked), "nothing is resolved where options are kept"
    monkeypatch.delenv("REGISTRY_WORD", raising=False)
    with pytest.raises(ConfigError, match=r"registry: .*variable REGISTRY_WORD is not set"):
        registry_at(place)
    monkeypatch.setenv("REGISTRY_WORD", "hidden%21")
    found = registry_at(place)
    assert repr(found) == "HttpRegistry(https://a.example, https://b.example/x@y)"
    assert isinstance(found, HttpRegistry)
    assert found.__getstate__()[1][0] == ("me", "hidden!")


def test_a_secret_may_hold_what_ends_a_login_or_a_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "login").write_text("us@er:s/e,c?r#e:t\n")
    monkeypatch.setenv("WORD", "a/b@c")
    for place, login in (
        (f"https://${{dir:{tmp_path}:login}}@b.example/x", ("us@er", "s/e,c?r#e:t")),
        ("https://m%40e:${env:WORD}@b.example/x", ("m@e", "a/b@c")),
    ):
        found = registry_at(place)
        assert repr(found) == "HttpRegistry(https://b.example/x)"
        assert isinstance(found, HttpRegistry)
        assert found.__getstate__()[1][0] == login


def test_the_columns_of_bare_protobuf_are_those_of_its_message() -> None:
    text = f"google.protobuf.Timestamp {b64encode(timestamp_pb2.DESCRIPTOR.serialized_pb).decode()}"
    asked = options(valueFormat="protobuf", valueSchema=text, columns="offset")
    assert asked.typed is not None
    found = looked_up(asked.typed, asked.topics.names)
    assert tables.read_schema(asked.columns, found).names == ["seconds", "nanos", "offset"]
    wrong = options(valueFormat="protobuf", valueSchema="a int").typed
    assert wrong is not None
    with pytest.raises(ConfigError, match="valueSchema: expected a message's full name"):
        looked_up(wrong, ["flights"])
