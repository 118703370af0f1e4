"""Columns of bytes become typed columns; a record that cannot be read affects no other."""

from __future__ import annotations

import math
import tracemalloc
from random import Random

import pyarrow as pa
import pytest

from partita.records.typed import odd_cells, odd_values
from partita.records.typed.ddl import SchemaError, columns_of, type_text
from partita.records.typed.decoding import CsvDecoder, Decoded, JsonDecoder
from partita.records.typed.odd_cells import quoted


def read(columns: str, *values: bytes | None, zone: str = "UTC") -> Decoded:
    found = JsonDecoder(columns_of(columns), zone).decode(pa.array(values, pa.binary()))
    found.columns.validate(full=True)
    return found


def test_fields_become_columns_in_the_order_of_the_schema_and_others_are_passed_over() -> None:
    value = b' {"x": [{"y": "}"}], "delay": -7, "carrier": "U\\u0041", "at": "2013-01-31 05:06:07.5", "rate": 1.25e2}'
    columns = "carrier string, delay int, at timestamp, rate double, missing date"
    (row,) = read(columns, value).columns.to_pylist()
    assert (row["carrier"], row["delay"], row["rate"], row["missing"]) == ("UA", -7, 125.0, None)
    assert row["at"].isoformat() == "2013-01-31T05:06:07.500000+00:00"


def test_a_record_that_breaks_off_inside_a_list_or_a_map_leaves_nothing_behind() -> None:
    good = b'{"p":{"k":1},"a":["x","y"],"s":"grow"}'
    broken = (b'{"p":{"lost":5', b'{"a":["lost",', b'{"p":{"lost":5},"a":["lost"],"s":"lost', b"[]", b"\xff")
    found = read("p map<string,int>, a array<string>, s string", *(v for bad in broken for v in (good, bad)), good)
    rows = found.columns.to_pylist()
    assert rows[::2] == [{"p": [("k", 1)], "a": ["x", "y"], "s": "grow"}] * 6
    assert rows[1::2] == [None] * 5
    assert [row for row, _ in found.faults] == [1, 3, 5, 7, 9]


def test_a_value_that_does_not_fit_is_null_beside_the_others_and_the_reason_names_it() -> None:
    found = read("d int, s string, a array<int>", b'{"s":"kept","d":"late","a":[1,"x"]}')
    assert found.columns.to_pylist() == [{"d": None, "s": "kept", "a": None}]
    assert found.faults == [(0, "d is late, which is no int")]


def test_null_and_blank_records_are_rows_of_nulls_without_a_fault() -> None:
    found = read("d int", None, b"", b" \n", b"{}")
    assert found.columns.field(0).to_pylist() == [None] * 4
    assert not found.faults


def test_a_slice_of_a_column_is_read_from_its_first_row_on() -> None:
    whole = pa.array([b'{"n":%d}' % n if n % 3 else None for n in range(100)], pa.binary())
    found = JsonDecoder(columns_of("n int")).decode(whole.slice(17, 30))
    assert found.columns.field(0).to_pylist() == [n if n % 3 else None for n in range(17, 47)]


def test_columns_grow_with_what_is_put_into_them() -> None:
    text = "".join(f'{{"k{n}": [{n}, {n}]}},' for n in range(3000))
    value = f'{{"z":[{text[:-1]}],"s":"{"long" * 9000}"}}'.encode()
    decoder = JsonDecoder(columns_of("z array<map<string,array<int>>>, s string"))
    for _ in range(2):
        (row,) = decoder.decode(pa.array([value])).columns.to_pylist()
        assert row["z"] == [[(f"k{n}", [n, n])] for n in range(3000)]
        assert len(row["s"]) == 36_000


def test_a_float_is_the_nearest_to_its_text_and_a_double_keeps_every_digit() -> None:
    texts = ("1.00000005960464477540", "0.1", "1e40", "-0.0", "16777217", "123456789.123456789e-3", "4.9e-324")
    values = [f'{{"f":{text},"d":{text}}}'.encode() for text in texts]
    found = read("f float, d double", *values).columns
    assert found.field(1).to_pylist() == [float(text) for text in texts]
    assert found.field(0).to_pylist()[0] == 1.0000001192092896
    assert found.field(0)[2].as_py() == math.inf


def test_times_without_a_zone_are_of_the_zone_given_also_where_clocks_jump() -> None:
    texts = ("2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-07-01T12:00:00Z", "2024-02-29", "2023-02-29")
    values = [f'{{"t":"{text}"}}'.encode() for text in texts]
    found = read("t timestamp", *values, zone="Europe/Berlin").columns.field(0)
    assert [at and f"{at:%m-%d %H:%M}" for at in found.to_pylist()] == [
        *("03-31 01:30", "10-27 00:30", "07-01 12:00", "02-28 23:00", None)
    ]


def test_every_day_of_four_centuries_is_the_day_of_the_calendar() -> None:
    days = pa.array(range(-200_000, 20_000, 7), pa.int32()).cast(pa.date32())
    values = pa.array([f'{{"y":"{day}"}}'.encode() for day in days.cast(pa.string()).to_pylist()], pa.binary())
    assert JsonDecoder(columns_of("y date")).decode(values).columns.field(0).equals(days)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names columns and their types"),
        ("delay", "ends where the type of the column delay should be"),
        ("delay intt", "did you mean int?"),
        ("a int b int", "expected a comma behind the column a"),
        ("a int, A string", "the column A is named twice"),
        ("a array<int", "ends where '>' should be"),
        ("a decimal(39,2)", "at most 38 digits"),
        ("a interval", "cannot be decoded"),
        ("a;int", "is no part of a schema"),
    ],
)
def test_a_schema_that_is_none_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        columns_of(text)
    assert said in str(refused.value)


def test_a_schema_is_written_as_it_was_read() -> None:
    text = "`a b`: decimal(5,2) not null comment 'x, y', r struct<x:int,y:map<string,array<double>>>, t timestamp_ntz"
    types = [type_text(field.type) for field in columns_of(text)]
    assert types == ["decimal(5,2)", "struct<x:int,y:map<string,array<double>>>", "timestamp_ntz"]
    assert columns_of(text).names == ["a b", "r", "t"]


def test_strings_of_json_are_what_python_makes_of_them_and_few_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [rb"\n", rb"\"", rb"\\", rb"\/", rb"\b", rb"\f", rb"\r", rb"\t", rb"\'", rb"\u0041", rb"\u00E9", rb"\u20ac"]
    whole += [rb"\uD83d\udE00", rb"\u0000", rb"\uffff", b"x", b"\xc3\xbc", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80"]
    whole += [b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"]
    malformed = [rb"\ud83d", rb"\ude00", b"\xed\xa0\x80", b"\xc3", b"\xff", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"]
    malformed += [b"\xc0\xaf", b"\xf0\x8f\xbf\xbf", b"\xe2\x82", b"\x80"]
    random = Random(31)
    texts = [b"".join(random.choices(whole, k=random.randrange(9))) for _ in range(2000)]
    texts += [b"".join(random.choices(whole + malformed, k=random.randrange(9))) for _ in range(2000)]
    in_python, asked = odd_values.text_of, list[bytes]()

    def text_of(raw: bytes) -> bytes:
        asked.append(raw)
        return in_python(raw)

    monkeypatch.setattr(odd_values, "text_of", text_of)
    found = read("s string", *(b'{"s":"%s"}' % text for text in texts))
    assert found.columns.field(0).cast(pa.binary()).to_pylist() == [in_python(text) for text in texts]
    assert len(asked) > 500
    assert not set(asked) & set(texts[:2000])


def test_keys_of_a_map_in_json_are_text() -> None:
    with pytest.raises(SchemaError, match="the keys of a map in JSON are text, not int"):
        JsonDecoder(columns_of("m map<int,string>"))


def read_csv(columns: str, *values: bytes | None, separator: str = ",") -> Decoded:
    found = CsvDecoder(columns_of(columns), separator=separator).decode(pa.array(values, pa.binary()))
    found.columns.validate(full=True)
    return found


def test_values_of_csv_become_columns_by_their_order() -> None:
    line = b'7;"a; \\"b\\"\n";-1.25;;true;"2013-01-31 05:06:07.5"'
    (row,) = read_csv(
        "n int, s string, d double, e int, b boolean, t timestamp", line, separator=";"
    ).columns.to_pylist()
    assert list(row.values())[:5] == [7, 'a; "b"\n', -1.25, None, True]
    assert row["t"].isoformat() == "2013-01-31T05:06:07.500000+00:00"


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (b'"a"b,c', ['"a"b', "c"]),
        (b'"a" ,"b', ["a", "b"]),
        (b'"a" b,c', ['"a" b', "c"]),
        (b'"a\\\\",b', ["a\\", "b"]),
        (b'a"b,"', ['a"b', '"']),
        (b"\xff,\xc3\xbc", ["\ufffd", "ü"]),
        (b"\xed\xa0\x80,x", ["\ufffd", "x"]),
        # Spark's parser looks at the quote that it goes on from once more where the record ends.
        (b'x,"aa" a"', ["x", '"aa" a""']),
        (b'"a" b"c,d', ['"a" b"c', "d"]),
        (b'x,"a" ""', ["x", '"a" ""']),
        (b'x,"a" bc"', ["x", '"a" bc"']),
    ],
)
def test_quotes_in_odd_places_are_read_as_spark_reads_them(line: bytes, values: list[str]) -> None:
    found = read_csv("a string, b string", line)
    assert [list(row.values()) for row in found.columns.to_pylist()] == [values]
    assert not found.faults


def test_a_record_of_many_rare_cells_is_copied_once_and_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work counted in bytes: a copy for each cell, or for each from there to the end, would be a million times it."""
    seen: list[tuple[bytes, int]] = []

    def counted(raw: bytes, at: int, separator: int) -> tuple[bytes, int]:
        value, stop = quoted(raw, at, separator)
        seen.append((raw, stop - at))
        return value, stop

    monkeypatch.setattr(odd_cells, "quoted", counted)
    line = b",".join([b'"a\\"b"', b'"c" d'] * 1000)
    (row,) = read_csv(",".join(f"c{n} string" for n in range(2000)), line).columns.to_pylist()
    assert list(row.values()) == ['a"b', '"c" d'] * 1000
    assert {id(raw) for raw, _ in seen} == {id(seen[0][0])}
    assert seen[0][0] == line
    assert sum(walked for _, walked in seen) < len(line)


def test_a_record_of_csv_with_other_values_than_wanted_keeps_those_that_fit() -> None:
    found = read_csv("n int, s string", b"1,a", b"2", b"3,c,d", b"x,e", b"", None, b"4000000000,f")
    assert [row and list(row.values()) for row in found.columns.to_pylist()] == [
        *([1, "a"], [2, None], [3, "c"], [None, "e"], None, None, [None, "f"])
    ]
    assert found.faults == [
        (1, "the record has 1 values, not 2"),
        (2, "the record has 3 values, not 2"),
        (3, "n is x, which is no int"),
        (6, "n is 4000000000, which is no int"),
    ]


@pytest.mark.parametrize(
    "number", ["9" * 5000, "-" + "9" * 5000, "1e999999999999999999999", "1e-999999999999999999999"]
)
def test_numbers_of_thousands_of_digits_spoil_their_own_values_only(number: str) -> None:
    """Python reads no int of more than 4300 digits, and a decimal no exponent of more than 18."""
    columns = "l bigint, t timestamp, m decimal(10,2), s array<string>"
    text = f'{{"l":{number},"t":{number},"m":{number},"s":[{number}]}}'.encode()
    found = read(columns, text, b'{"l":1,"s":[-0]}')
    assert [row for row, _ in found.faults] == [0]
    assert found.columns.field(0).to_pylist() == [None, 1]
    assert found.columns.field(2).to_pylist() == [None, None]
    assert found.columns.field(3).to_pylist()[1] == ["0"]
    found = read_csv("l bigint, m decimal(10,2)", f"{number},{number}".encode(), b"2,3", b"0" * 5000 + b"7,")
    assert [list(row.values()) for row in found.columns.to_pylist()] == [[None, None], [2, 3], [7, None]]
    assert [row for row, _ in found.faults] == [0]


def test_csv_has_no_nested_columns() -> None:
    with pytest.raises(SchemaError, match="column a: CSV cannot be decoded as array<int>"):
        read_csv("n int, a array<int>")


def test_rare_forms_of_values_in_json_are_those_of_spark() -> None:
    """Each was seen to differ from from_json on generated records."""
    forms = [
        ("date", '"255"', 255),
        ("date", '"-24"', -24),
        ("date", '"24 "', None),
        ("decimal(9,3)", '"\uff11,\u0663.5"', "13.500"),
        ("decimal(9,3)", "0e+309", "0.000"),
        ("decimal(9,3)", "1e-9999999999", None),
        ("binary", '"\\tQQ== QUI=\\u0000"', b"AAB"),
        ("binary", '"Q Q="', None),
        ("timestamp_ntz", '"\\b2024-01-01\\u007f"', 1704067200000000),
        ("timestamp", '"2000-05-04T03:05:59+01:0"', 957405959000000),
        ("timestamp", '"2000-05-04T03:05:59+100"', None),
        ("timestamp", '"2000-05-04T03:05:59GMT0"', 957409559000000),
        ("timestamp", '"9133-03-03T00:59:7ECT"', 226047715147000000),
        ("timestamp", '"10000-01-04"', 253402556400000000),
        ("timestamp", '"-0001-12-05 23:13:7.1EST"', -62169450412900000),
        ("string", '["\U0001f600\\ud800",4.9e-324]', '["\\uD83D\\uDE00\\uD800",4.9E-324]'),
        ("double", "-0e0", "-0.0"),
        ("string", '"\udcff\udced\udca0\udc80\\u0041"', "\ufffd\ufffdA"),
    ]
    texts = [f'{{"c{n}":{text}}}'.encode("utf-8", "surrogateescape") for n, (_, text, _) in enumerate(forms)]
    found = read(", ".join(f"c{n} {kind}" for n, (kind, _, _) in enumerate(forms)), *texts, zone="Europe/Berlin")
    values: list[object] = []
    for n, (kind, _, _) in enumerate(forms):
        column = found.columns.field(n)
        number = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}.get(kind)
        value = (column if number is None else column.cast(number))[n].as_py()
        values.append(str(value) if value is not None and kind in ("decimal(9,3)", "double") else value)
    assert values == [value for _, _, value in forms]


def test_digits_of_csv_are_of_any_script() -> None:
    (row,) = read_csv("n int, m decimal(3,1)", "\uff11\u0662,-\u0663.5".encode()).columns.to_pylist()
    assert (row["n"], str(row["m"])) == (12, "-3.5")


def test_days_are_no_dates_in_csv() -> None:
    assert read_csv("d date", b"255", b"1234567890", b"2024-02-29").columns.field(0).cast(pa.int32()).to_pylist() == [
        *(None, None, 19782)
    ]


def test_a_long_text_inside_a_list_takes_no_more_than_some_copies_of_it() -> None:
    """A step back kept for each character took 140 bytes for one."""
    text = b'["' + b"x" * 1_000_000 + b'"]'
    tracemalloc.start()
    try:
        assert odd_values.as_text(text) == text
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(text)
