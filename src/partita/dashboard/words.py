"""Numbers, times and names on the pages: short, the same everywhere, and harmless whatever a client sent."""

from __future__ import annotations

import re
from urllib.parse import quote

from partita.observe.history import Behind

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
UNKNOWN = "\N{EN DASH}"
_SUFFIXES = (".json", ".live")
"""How the other forms of a page end; a name that ends so has its last dot escaped."""


def number(value: float | None) -> str:
    """Return 1,234,567; `UNKNOWN` for None."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Per second, with one digit below ten."""
    return UNKNOWN if value is None else f"{value:,.0f}/s" if abs(value) >= 10 else f"{value:,.1f}/s"


def span(ms: float | None) -> str:
    """A length of time in its two largest units: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min, 4 d 3 h."""
    if ms is None:
        return UNKNOWN
    if ms < 10 * SECOND:
        return f"{ms / SECOND:.1f} s"
    for unit, name, smaller, lesser in (
        (DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min"), (MINUTE, "min", SECOND, "s"),
    ):  # fmt: skip
        if ms >= unit:
            rest = int(ms % unit // smaller)
            return f"{int(ms // unit)} {name}" + (f" {rest} {lesser}" if rest else "")
    return f"{ms / SECOND:.0f} s"


def behind(value: Behind | None) -> str:
    """How far behind in time, with ~ where it is an estimate."""
    if value is None:
        return UNKNOWN
    return ("~" if value.is_rough else "") + span(value.ms) if value.ms else "0 s"


def ago(ms: float | None) -> str:
    """Return how long ago something was: now, 12 s ago, never."""
    return "never" if ms is None else "now" if ms < 2 * SECOND else f"{span(ms)} ago"


def slug(name: str) -> str:
    """A name as one segment of a path, such that `unslug` gives it back, whatever characters it has."""
    text = re.sub(r"[~/\\\n]", lambda found: f"~{ord(found[0]):02X}", name)
    if text.endswith(_SUFFIXES) or text in (".", ".."):
        text = "~2E".join(text.rsplit(".", 1))
    return quote(text, safe="~@:+,;=!$'()*") if text else "~"


def unslug(text: str) -> str:
    """The name behind a decoded segment of a path."""
    return "" if text == "~" else re.sub(r"~([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), text)
