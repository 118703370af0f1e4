"""Positions as people name them."""

from __future__ import annotations

import pytest

from partita.cli.records.where import Kind, Where, parse_where

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Where(Kind.EARLIEST)),
        ("Beginning", Where(Kind.EARLIEST)),
        ("latest", Where(Kind.LATEST)),
        ("end", Where(Kind.LATEST)),
        ("42", Where(Kind.OFFSET, 42)),
        ("-5", Where(Kind.LAST, 5)),
        ("@1700000000000", Where(Kind.TIME, NOW_MS)),
        ("1h ago", Where(Kind.TIME, NOW_MS - HOUR_MS)),
        ("1.5 hours", Where(Kind.TIME, NOW_MS - HOUR_MS * 3 // 2)),
        ("30 min ago", Where(Kind.TIME, NOW_MS - HOUR_MS // 2)),
        ("250ms", Where(Kind.TIME, NOW_MS - 250)),
        ("2d", Where(Kind.TIME, NOW_MS - 48 * HOUR_MS)),
        ("PT1H", Where(Kind.TIME, NOW_MS - HOUR_MS)),
        ("2023-11-14T22:13:20", Where(Kind.TIME, NOW_MS)),
        ("2023-11-14T23:13:20+01:00", Where(Kind.TIME, NOW_MS)),
        ("99999999 weeks", Where(Kind.TIME, 0)),
    ],
)
def test_a_position_is_understood(text: str, expected: Where) -> None:
    assert parse_where(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "yesterdayish", "1 fortnight", "--5", "P", "@now"])
def test_nonsense_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected earliest, latest"):
        parse_where(text, NOW_MS)


@pytest.mark.parametrize(
    ("where", "at_time", "offset"),
    [
        (Where(Kind.EARLIEST), None, 10),
        (Where(Kind.LATEST), None, 20),
        (Where(Kind.OFFSET, 15), None, 15),
        (Where(Kind.OFFSET, 3), None, 10),
        (Where(Kind.OFFSET, 30), None, 20),
        (Where(Kind.LAST, 4), None, 16),
        (Where(Kind.LAST, 99), None, 10),
        (Where(Kind.TIME, 5), 12, 12),
        (Where(Kind.TIME, 5), None, 20),
    ],
)
def test_a_position_lies_within_the_log(where: Where, at_time: int | None, offset: int) -> None:
    assert where.offset(10, 20, at_time) == offset
