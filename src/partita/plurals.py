"""Numbers with their nouns, for everything that a person reads."""

from __future__ import annotations


def count(number: int, noun: str, plural: str = "") -> str:
    """1 member, 2 members, 1,200 records. `plural` is for nouns that do not just take an "s"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
