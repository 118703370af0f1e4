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
_ESCAPE = re.compile(rb"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_TOKEN = re.compile(
    rb"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<odd>NaN|[-+]?(?:Infinity|INF))"""
    rb"""|(?P<number>-?[0-9]+(?P<real>\.[0-9]+)?(?P<power>[eE][-+]?[0-9]+)?)|(?P<space>[ \t\r\n]+)""",
    re.DOTALL,
)
_ODD = {b"NaN": nan, b"Infinity": inf, b"+Infinity": inf, b"+INF": inf, b"-Infinity": -inf, b"-INF": -inf}
_NOT_PLAIN = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_INSTANT = re.compile(
    r"(?P<year>[+-]?[0-9]{4,7})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?P<rest>[ T].*)?)?)?", re.DOTALL
)
_TIME = re.compile(
    r"[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?P<zone>[^0-9.].*)?)?)?", re.DOTALL
)
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?")
_YEARS_400_DAYS = 146_097
_WIDE = Context(prec=100_000, rounding=ROUND_HALF_UP)
_DECIMAL_MAX = 38
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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


def text_of(raw: bytes) -> bytes:
    """The text of a string in UTF-8: escapes resolved, malformed bytes replaced; half a pair of surrogates is "?"."""
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text.encode()
    parts, done = [], 0
    encoded = text.encode()
    for found in _ESCAPE.finditer(encoded):
        parts.append(encoded[done : found.start()].decode())
        parts.append(chr(int(found[1], 16)) if found[1] else _MEANT.get(found[2].decode(), found[2].decode()))
        done = found.end()
    parts.append(encoded[done:].decode())
    pairs = "".join(parts).encode("utf-16-le", "surrogatepass")
    return re.sub("[\ud800-\udfff]", "?", pairs.decode("utf-16-le", "surrogatepass")).encode()


def as_text(raw: bytes) -> bytes:
    """JSON as the text of a column: without white space, numbers and strings as Jackson writes them."""
    return _TOKEN.sub(_token, raw)


def _token(found: re.Match[bytes]) -> bytes:
    if found["text"] is not None:
        text = text_of(found["text"][1:-1]).decode()
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
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}"


def _java_real(value: float) -> bytes:
    """A double as Java writes it: a point always, an exponent below 0.001 and from ten million on."""
    if value != value or value in (inf, -inf):
        return b'"NaN"' if value != value else b'"Infinity"' if value > 0 else b'"-Infinity"'
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
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
    if number.adjusted() + 1 > _DECIMAL_MAX:
        return None
    if number.adjusted() < -1 - max(scale, 0) or not number:
        return 0
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
            return day(text)
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
    """Base64 in groups of four letters; a padded group may stand anywhere."""
    if len(raw) % 4:
        return None
    try:
        return b"".join(b64decode(part, validate=True) for part in re.findall(rb"[^=]*={0,2}", raw) if part)
    except ValueError:
        return None


def instant(text: str, zone: str | None) -> int | None:
    """Microseconds since 1970 of a timestamp; one without a zone is of `zone`. Without `zone` it must have none."""
    found = _INSTANT.fullmatch(text.strip())
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
        offset = _offset_s(zone if named is None else named.strip(), seconds)
        if offset is None:
            return None
        seconds -= offset
    at = seconds * 1_000_000 + micros
    return at if -(2**63) <= at < 2**63 else None


def day(text: str) -> int | None:
    """Days since 1970 of a date; a time behind it does not count."""
    found = _INSTANT.fullmatch(text.strip())
    return None if found is None else _days(found)


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
    for prefix in ("UTC", "GMT", "UT", "Z"):
        if zone == prefix:
            return 0
        if zone.startswith(prefix) and prefix != "Z":
            zone = zone.removeprefix(prefix)
            break
    found = _OFFSET.fullmatch(zone)
    if found is not None:
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        size = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or size > 18 * 3600:
            return None
        return -size if found[1] == "-" else size
    try:
        known = ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        return None
    try:
        local = _EPOCH + timedelta(seconds=local_s)
    except OverflowError:
        return None
    # Where clocks jump Python takes the offset before, as Java does.
    ahead = local.replace(tzinfo=known).utcoffset()
    return None if ahead is None else int(ahead.total_seconds())
