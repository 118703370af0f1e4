"""Lines of CSV in every form that matters, for Spark's `from_csv` and for ours; and generated ones."""

from __future__ import annotations

from random import Random

NUMBERS = [
    "1", "-1", "+1", "0", "-0", "007", "1.0", "1.5", ".5", "5.", "1e2", "1E-3", "1e400", "-1e-400", " 1", "1 ", "127",
    "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648", "-2147483648", "9223372036854775807",
    "9223372036854775808", "16777217", "1.00000005960464477540", "123456789012345678901234567890", "0.1", "999.99",
    "999.995", "1000", "1.005", "-1.015", "1,000", '"1,000"', "1_0", "NaN", "nan", "-NaN", "+NaN", "Inf", "-Inf",
    "+Inf", "inf", "Infinity", "-Infinity", "1f", "1d", "1D", "x", "true", '"5"', '""', '"', "-", "+", "--1", "1-", "é",
    "0.00000000005", "1e50", "1e-50", '"1"2',
]  # fmt: skip
TIMES = [
    "2020-01-02T03:04:05Z", "2020-01-02 03:04:05", "2020-01-02T03:04:05.123456", "2020-01-02T03:04:05.1234567Z",
    "2020-01-02T03:04:05+02:00", "2020-01-02T03:04:05 Europe/Berlin", "2020-01-02", "2020-01", "2020", "2020-1-2",
    " 2020-01-02 ", "2020-01-02 junk", "2020-02-30", "2020-02-29", "x", "1577934245", "0001-01-01", "9999-12-31",
    "10000-01-01", "+10000-01-01", "-0001-01-01", "2020-01-02T25:00:00", "epoch", "2020/01/02", "2020-01-0\\u0032",
    "2020-01-02T03:04:05GMT+1", "2020-01-02T03:04", "2020-01-02T", '"2020-01-02"', '"2020-01-02 03:04:05"',
]  # fmt: skip
FORMS: dict[str, list[str | bytes]] = {
    "a string, b string, c string": [
        "x,y,z", "x,y", "x", "x,y,z,w", ",,", ",", "", "\n", "\n\nx,y,z", "x,y,z\n",
        "x,y,z\nu,v,w", "x,y,\n", '"', 'x,"', 'x,y,"',
        "\0", "\0\0x,y,z", "x,\0,z", "x\0,y,z", '"x"\0,y,z', "x,y,\0", " x , y ,z ",
        "x,y,z\r\n", '"x","y","z"',
        '"x,1","y\n2",z', '"x""y",b,c', '"x\\"y",b,c', '"x\\\\",b,c', '"x\\n",b,c', 'x\\,y,z',
        '"x"y,b,c', '"x" ,b,c', '"x" y,b,c', '"x', '"x,y,z', '"x\\', '"x\\"', 'x"y,b,c', 'x"y"z,b,c',
        ' "x",b,c', '"",b,""',
        '"",""', '"a\\"b"c,d,e', '"a"\\b,c,d', '"a"\\"b,c,d', '"\\"",b,c', '"a\tb"\t,c,d',
        "#x,y,z", b"\xef\xbb\xbfx,y,z",
        b"\xff,y,\xc3", '"ü",ß,"é\\"é"', "😀,x\x00y,z", b'"\xff\\"",b,c', "\t,\r,\x0b", "null,NULL,\\N", '"a"b"c",d,e',
        '"\n\n "\n\\" \n\n', '"a" b"', '"a" b"c', '"a" b"c,d', '"a" bc"', '"a" ""', '"a"  b" ', '"a" b""',
        '"a" "b",c,d', '"a"\n', '"a" \n,b', "a,,c", "a,b,c,,,",
    ],
    "y byte, h short, i int": [",".join([text] * 3) for text in NUMBERS],
    "l bigint, d double, f float": [",".join([text] * 3) for text in NUMBERS],
    "m decimal(5,2), z decimal(38,10), o boolean": [",".join([text] * 3) for text in [*NUMBERS, "True", "no"]],
    "t timestamp, d date, z timestamp_ntz": [",".join([text] * 3) for text in TIMES],
    "b binary, i int": ["abc,1", b"\xff\xc3\xa4,1", '"a\\"b",1', ",2", "AQID,x"],
}  # fmt: skip
"""Columns, and lines that are read as them."""
DIFFERENT: dict[str, list[str | bytes]] = {
    "d double": ["0x1p3"], "t timestamp": ["03:04:05"],
}  # fmt: skip
"""Where ours differs, as docs/spark-reading.md says."""
GENERATED = (
    "a string, i int, d double, l bigint, f float, m decimal(12,3), b boolean, t timestamp, y date, z timestamp_ntz"
)


def generated(count: int, seed: int) -> list[str | bytes]:
    """Lines of those columns, half of them with quotes; some of other lengths, or of signs by chance."""
    random = Random(seed)
    return [
        _by_chance(random)
        if random.random() < 0.5
        else ",".join(_quoted(random, _cell(random, n)) for n in _sizes(random))
        for _ in range(count)
    ]


def _by_chance(random: Random) -> str:
    signs = random.choice(['a",', '"\\,a', '"\\, \n', '",\\a1 \t\n\0'])
    return "".join(random.choice(signs) for _ in range(random.randrange(1, 14)))


def _sizes(random: Random) -> range:
    return range(random.choice((10, 10, 10, 10, 9, 11)))


def _quoted(random: Random, text: str) -> str:
    if random.random() < 0.5:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _cell(random: Random, place: int) -> str:
    if random.random() < 0.05:
        return random.choice(["", "x", " ", "1", "true", "NaN", "a,b", '"'])
    when = f"{random.randrange(1, 9999):04}-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
    clock = f"{random.randrange(24):02}:{random.randrange(60):02}:{random.randrange(60):02}"
    forms = [
        random.choice(("plain", "grün", "a\\b", "two words", 'a "quote"', "😀", "")),
        str(random.randrange(-(2**31), 2**31)),
        repr(random.choice((random.random(), random.uniform(-1e9, 1e9), random.expovariate(1e-30)))),
        str(random.randrange(-(2**63), 2**63) >> random.randrange(64)),
        repr(random.choice((random.randrange(1 << 26) / 8, random.random(), random.uniform(-1e40, 1e40)))),
        str(random.choice((random.randrange(10**10) / 1000, random.randrange(10**9), random.random()))),
        random.choice(("true", "FALSE", "True")),
        f"{when}{random.choice('T ')}{clock}{random.choice(('', '.5', '.1234567'))}{random.choice(('', 'Z'))}",
        when,
        f"{when}T{clock}",
    ]
    return forms[place] if place < len(forms) else "more"
