"""Rare forms of values, as Spark reads them: escapes, other dates and zones, long numbers, numbers in quotes.

None stands for a value that does not fit. Upstream: JacksonParser, SparkDateTimeUtils.
"""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import copysign, inf, nan
from struct import pack, unpack
from typing import Protocol
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1)
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_TOKEN = re.compile(
    rb"""(?P<text>"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')|(?P<odd>NaN|[-+]?(?:Infinity|INF))"""
    rb"""|(?P<number>-?[0-9]+(?P<real>\.[0-9]+)?(?P<power>[eE][-+]?[0-9]+)?)|(?P<space>[ \t\r\n]+)""",
    re.DOTALL,
)
_ODD = {b"NaN": nan, b"Infinity": inf, b"+Infinity": inf, b"+INF": inf, b"-Infinity": -inf, b"-INF": -inf}
_NOT_PLAIN = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INSTANT = re.compile(
    r"(?P<year>[+-]?[0-9]{4,7})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?P<rest>[ T].*)?)?)?", re.DOTALL
)
_TIME = re.compile(
    r"[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?P<zone>[^0-9.].*)?)?)?", re.DOTALL
)
_OFFSET = re.compile("[+-](?:[0-9]{1,2}(?::[0-9]{1,2}|:[0-9]{2}:[0-9]{2})?|(?:[0-9]{2}){2,3})")
_PREFIX = re.compile("^(?:UTC|GMT|UT)(?=[+-])")
_YEARS_400_DAYS = 146_097
_YEARS_400_S = _YEARS_400_DAYS * 86_400
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which Python's dates have."""
_SHORT_ZONES = {
    "EST": "-05:00", "HST": "-10:00", "MST": "-07:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""Names of three letters that Java knows."""
_WIDE = Context(prec=100_000, rounding=ROUND_HALF_UP)
_DECIMAL_MAX = 38
_EXPONENTS = range(1 - 2**31, 2**31 + 1)
"""Those of Java's decimals."""
DIGIT = r"[^\D\U00010000-\U0010ffff]"
"""Digits of any script, but none that Java has as two characters."""
_DECIMAL = re.compile(rf"[+-]?(?:{DIGIT}+\.?{DIGIT}*|\.{DIGIT}+)(?:[eE][+-]?{DIGIT}+)?")
_INT = re.compile(rf"[+-]?{DIGIT}+")
_QUADS = re.compile(rb"(?:[\0-\x20]*+[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*+[\0-\x20]*+")
"""Base64 in groups of four letters, with white space between them; a padded group may stand anywhere."""
_SPACE = "".join(map(chr, (*range(0x21), 0x7F)))
"""What may stand around a date or a time."""
_GREGORIAN_DAYS = -141_427
"""The first day of Gregory's calendar; before it, days that are written as numbers are of another one."""


class Target(Protocol):
    """The column that a value is for."""

    @property
    def form(self) -> str:
        """Its kind, by the words of `json_rows`."""

    @property
    def min(self) -> int:
        """The least whole number that it takes."""

    @property
    def max(self) -> int:
        """The largest."""

    @property
    def precision(self) -> int:
        """Digits of a decimal."""

    @property
    def scale(self) -> int:
        """Those of them behind the point."""

    @property
    def is_small(self) -> bool:
        """Whether its floating-point numbers have 32 bits."""


def as_java(raw: bytes) -> str:
    """The text of UTF-8 with malformed bytes replaced; to Java half a pair of surrogates is one such place."""
    return _SURROGATE.sub(b"\xef\xbf\xbd", raw).decode("utf-8", "replace")


def text_of(raw: bytes) -> bytes:
    """The text of a string in UTF-8: escapes resolved, malformed bytes replaced; half a pair of surrogates is "?"."""
    text = as_java(raw)
    return re.sub("[\ud800-\udfff]", "?", _resolved(text)).encode() if "\\" in text else text.encode()


def _resolved(text: str) -> str:
    """A text whose escapes stand for what they mean, also for half a pair of surrogates."""
    parts, done = [], 0
    encoded = text.encode()
    for found in _ESCAPE.finditer(encoded):
        parts.append(encoded[done : found.start()].decode())
        parts.append(chr(int(found[1], 16)) if found[1] else _MEANT.get(found[2].decode(), found[2].decode()))
        done = found.end()
    parts.append(encoded[done:].decode())
    pairs = "".join(parts).encode("utf-16-le", "surrogatepass")
    return pairs.decode("utf-16-le", "surrogatepass")


def as_text(raw: bytes) -> bytes:
    """JSON as the text of a column: without white space, numbers and strings as Jackson writes them."""
    return _TOKEN.sub(_token, raw)


def _token(found: re.Match[bytes]) -> bytes:
    if found["text"] is not None:
        text = _resolved(as_java(found["text"][1:-1]))
        return f'"{_NOT_PLAIN.sub(_escaped, text)}"'.encode()
    if found["odd"] is not None:
        return _java_real(_ODD[found["odd"]])
    if found["number"] is not None:
        is_real = found["real"] is not None or found["power"] is not None
        if is_real:
            return _java_real(float(found["number"]))
        return b"0" if found["number"] == b"-0" else found["number"]
    return b""


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return _SHORT.get(found[0]) or "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _java_real(value: float) -> bytes:
    """A double as Java writes it: a point always, an exponent below 0.001 and from ten million on."""
    if value != value or value in (inf, -inf):
        return b'"NaN"' if value != value else b'"Infinity"' if value > 0 else b'"-Infinity"'
    # Java has two digits at least, the nearest ones.
    short = f"{value:.1e}"
    sign, digits, exponent = Decimal(short if float(short) == value else repr(value)).as_tuple()
    assert isinstance(exponent, int), "it is finite"
    minus = "-" if sign else ""
    text = "".join(map(str, digits)).lstrip("0").rstrip("0")
    if not text:
        return f"{minus}0.0".encode()
    point = exponent + len("".join(map(str, digits)).lstrip("0"))
    if not -2 <= point <= 7:
        return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}".encode()
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}".encode()
    return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}".encode()


def number_as(field: Target, text: bytes) -> float | int | None:
    """A number for this field's column."""
    if field.form == "real":
        return _ODD[text] if text in _ODD else small(text.decode()) if field.is_small else _double(text)
    if field.form == "decimal":
        return unscaled(text.decode(), field.precision, field.scale)
    number = whole(text.decode())
    if number is None:
        return None
    if field.form == "timestamp":
        # The product wraps around, as Java's does.
        return (number * 1_000_000 + 2**63) % 2**64 - 2**63
    return number if field.min <= number <= field.max else None


def whole(text: str) -> int | None:
    """A whole number, if 64 bits hold it. Python reads no int of thousands of digits; a decimal has no such bound."""
    number = Decimal(text)
    return int(number) if -(2**63) <= number < 2**63 else None


def _double(text: bytes) -> float:
    value = float(text)
    return value if value or b"." in text or b"e" in text.lower() else 0.0


def small(text: str) -> float:
    """The float of 32 bits that is nearest; by way of 64 bits a tie may be none in the text."""
    double = float(text)
    if double in (inf, -inf):
        return double
    try:
        near: float = unpack("f", pack("f", double))[0]
    except OverflowError:
        return copysign(inf, double)
    if near == double or (unpack("q", pack("d", double))[0] & 0x1FFFFFFF) != 0x10000000:
        return near
    exact = Decimal(text)
    if exact == Decimal(double):
        return near
    bits = unpack("i", pack("f", near))[0]
    is_too_small = abs(exact) > abs(Decimal(double)) and abs(near) < abs(double)
    is_too_large = abs(exact) < abs(Decimal(double)) and abs(near) > abs(double)
    moved: float = unpack("f", pack("i", bits + is_too_small - is_too_large))[0]
    return moved


def unscaled(text: str, precision: int, scale: int) -> int | None:
    """A decimal without its point, rounded half up to the scale."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent that no decimal has
        return None
    if number.as_tuple().exponent not in _EXPONENTS:
        return None
    if not number or number.adjusted() < -1 - max(scale, 0):
        return 0
    if number.adjusted() + 1 > _DECIMAL_MAX:
        return None
    found = int(number.scaleb(scale, _WIDE).quantize(Decimal(1), context=_WIDE))
    return found if abs(found) < 10**precision else None


def string_as(field: Target, raw: bytes, zone: str) -> bytes | float | int | None:
    """A string for this field's column, which is none of text."""
    text = raw.decode()
    match field.form:
        case "timestamp":
            return instant(text, zone)
        case "local timestamp":
            return instant(text, None)
        case "date":
            found = day(text)
            return _numbered_day(text) if found is None else found
        case "binary":
            return _bytes(raw)
        case "real":
            # Names alone: numbers in quotes are refused.
            return {"NaN": nan, "Infinity": inf, "+Infinity": inf, "+INF": inf, "-Infinity": -inf, "-INF": -inf}.get(
                text
            )
        case "decimal":
            plain = text.replace(",", "")
            return unscaled(plain, field.precision, field.scale) if _DECIMAL.fullmatch(plain) else None
    return None


def _bytes(raw: bytes) -> bytes | None:
    if _QUADS.fullmatch(raw) is None:
        return None
    return b"".join(map(b64decode, re.findall(rb"[^=]+={0,2}", re.sub(rb"[\0-\x20]+", b"", raw))))


def instant(text: str, zone: str | None) -> int | None:
    """Microseconds since 1970 of a timestamp; one without a zone is of `zone`. Without `zone` it must have none."""
    found = _INSTANT.fullmatch(text.strip(_SPACE))
    if found is None or len(found["year"].lstrip("+-")) > 6:
        return None
    days = _days(found)
    clock = _TIME.fullmatch(found["rest"]) if found["rest"] else None
    if days is None or (found["rest"] and clock is None):
        return None
    hour = minute = second = micros = 0
    named = None
    if clock is not None:
        hour, minute, second = (int(part or 0) for part in clock.groups()[:3])
        micros = int((clock[4] or "")[:6].ljust(6, "0"))
        named = clock["zone"]
    if hour > 23 or minute > 59 or second > 59 or (named is not None and zone is None):
        return None
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    if zone is not None:
        offset = _offset_s(zone if named is None else named.strip(_SPACE[:-1]), seconds)
        if offset is None:
            return None
        seconds -= offset
    at = seconds * 1_000_000 + micros
    return at if -(2**63) <= at < 2**63 else None


def day(text: str) -> int | None:
    """Days since 1970 of a date; a time behind it does not count."""
    found = _INSTANT.fullmatch(text.strip(_SPACE))
    return None if found is None else _days(found)


def _numbered_day(text: str) -> int | None:
    """Days since 1970 that are written as such: other numbers than those of four to seven digits, which are years."""
    number = whole(text) if _INT.fullmatch(text) else None
    return number if number is not None and _GREGORIAN_DAYS <= number < 2**31 else None


def _days(found: re.Match[str]) -> int | None:
    """Days of a date of any year: the calendar repeats itself after 400 years."""
    year = int(found["year"])
    cycles, within = divmod(year, 400)
    try:
        inside = date(within + 400, int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        return None
    return inside.toordinal() - date(1970, 1, 1).toordinal() + (cycles - 1) * _YEARS_400_DAYS


def _offset_s(zone: str, local_s: int) -> int | None:
    """Seconds by which this zone is ahead of UTC when its clocks show that time; None for an unknown zone."""
    zone = _SHORT_ZONES.get(zone, zone)
    if zone in ("UTC", "GMT", "UT", "Z"):
        return 0
    offset = _PREFIX.sub("", zone)
    if _OFFSET.fullmatch(offset):
        parts = offset[1:].split(":") if ":" in offset else [offset[1:3], offset[3:5], offset[5:]]
        hours, minutes, seconds = (int(part or 0) for part in (*parts, "", "")[:3])
        size = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or size > 18 * 3600:
            return None
        return -size if offset[0] == "-" else size
    try:
        known = ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        return None
    if not _FIRST_S <= local_s <= _LAST_S:
        # Clocks change as 400 years before or after.
        local_s = local_s % _YEARS_400_S + _YEARS_400_S * (1 if local_s > 0 else -4)
    local = _EPOCH + timedelta(seconds=local_s)
    # Where clocks jump Python takes the offset before, as Java does.
    ahead = local.replace(tzinfo=known).utcoffset()
    return None if ahead is None else int(ahead.total_seconds())
