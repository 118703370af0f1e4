"""How stored state and newly written state become one, as the share coordinator does it."""

from collections.abc import Iterable
from itertools import pairwise

from partita.share.partition.model import StateBatch

Row = tuple[int, int, int, int]
"""First and last offset, delivery count, state: the order in which they are compared."""


def merge(stored: Iterable[StateBatch], new: Iterable[StateBatch], start: int) -> tuple[StateBatch, ...]:
    """On equal offsets the higher delivery count wins, then the higher state; what lies below the start goes."""
    rows = sorted((max(b.first, start), b.last, b.delivery_count, b.state) for b in [*stored, *new] if b.last >= start)
    done: list[Row] = []
    while (at := next((i for i, pair in enumerate(pairwise(rows)) if meet(*pair)), None)) is not None:
        done += rows[:at]
        rows = sorted([*joined(*rows[at : at + 2]), *rows[at + 2 :]])
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in done + rows)


def meet(one: Row, next_one: Row) -> bool:
    return next_one[0] <= one[1] or (next_one[0] == one[1] + 1 and one[2:] == next_one[2:])


def joined(one: Row, next_one: Row) -> list[Row]:
    """One row for equal ones; else the stronger one whole, and what remains of the other on both sides."""
    if one[2:] == next_one[2:]:
        return [(one[0], max(one[1], next_one[1]), *one[2:])]
    strong, weak = (one, next_one) if one[2:] > next_one[2:] else (next_one, one)
    before = [(weak[0], strong[0] - 1, *weak[2:])] if weak[0] < strong[0] else []
    after = [(strong[1] + 1, weak[1], *weak[2:])] if weak[1] > strong[1] else []
    return [*before, strong, *after]
