"""Numbers, times and names as the pages say them."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.dashboard.site import HERE, STATIC
from partita.dashboard.words import UNKNOWN, ago, behind, number, rate, slug, span, unslug
from partita.observe.history import Behind
from partita.wording import count


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, UNKNOWN), (0, "0.0 s"), (430, "0.4 s"), (12_400, "12 s"), (60_000, "1 min"), (185_000, "3 min 5 s"),
        (7_800_000, "2 h 10 min"), (356_400_000, "4 d 3 h"),
    ],
)  # fmt: skip
def test_a_span_has_two_units(ms: float | None, said: str) -> None:
    assert span(ms) == said


def test_numbers_times_and_lags_are_said_shortly() -> None:
    assert [number(None), number(1234567), rate(3.25), rate(196.4), count(1, "group"), count(2, "group")] == [
        UNKNOWN, "1,234,567", "3.2/s", "196/s", "1 group", "2 groups",
    ]  # fmt: skip
    assert [ago(None), ago(300), ago(12_000)] == ["never", "now", "12 s ago"]
    assert [behind(None), behind(Behind(0)), behind(Behind(12_000)), behind(Behind(12_000, is_rough=True))] == [
        UNKNOWN, "0 s", "12 s", "~12 s",
    ]  # fmt: skip


@given(st.text(max_size=30))
def test_every_name_has_an_address_of_its_own(name: str) -> None:
    """A group id is any text: an address must lead back to it, and to no other page."""
    path = slug(name)
    assert "/" not in path
    assert "?" not in path
    assert "#" not in path
    assert not path.endswith((".json", ".live"))
    assert path not in ("", ".", "..")
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    assert unslug(unquote(path)) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x.json", "x.live", "~", "~2F", "a\nb", "<script>", "%2F", "ü"])
def test_names_that_look_like_something_else(name: str) -> None:
    assert unslug(unquote(slug(name))) == name


def test_htmx_waits_for_its_extension_before_it_looks_at_a_page() -> None:
    """Deferred, it starts by a timer, which may come before the next script: on a busy machine pages were not live."""
    base = (HERE / "templates" / "base.html").read_text()
    scripts = re.findall(r'<script src="/static/([\w.-]+)"( defer)?>', base)
    assert scripts[1:3] == [("htmx.min.js", ""), ("htmx-sse.min.js", "")]
    starts = (STATIC / "htmx.min.js").read_text()
    assert '"loading"===document.readyState?document.addEventListener("DOMContentLoaded",t):setTimeout(t)' in starts
