"""Rare forms of cells of CSV, as Spark reads them: escaped and unescaped quotes, other numbers.

Upstream: CsvParser of univocity with the settings of Spark's CSVOptions, UnivocityParser.
"""

from __future__ import annotations

import re
from math import inf, nan

from partita.records.typed.odd_values import DIGIT, Target, day, small, string_as, whole

_QUOTE, _ESCAPE, _SPACE = 0x22, 0x5C, 0x20
_WHOLE = re.compile(rf"[+-]?{DIGIT}+")
_REAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_NAMED = {
    "NaN": nan, "+NaN": nan, "-NaN": nan, "Inf": inf, "-Inf": -inf,
    "Infinity": inf, "+Infinity": inf, "-Infinity": -inf,
}  # fmt: skip
_DEPTH_MAX = 200


def quoted(raw: bytes, at: int, separator: int) -> tuple[bytes, int]:
    """The value of the quoted cell that begins at `at`, and the place of the separator or the end behind it.

    A quote in the middle that is not escaped makes the value begin with its quote, and end with the next separator. So
    does a quote that is the record's last byte.
    """
    if at == len(raw) - 1:
        return raw[at:], len(raw)
    cell = _Quoted(raw, at, separator)
    try:
        cell.read()
    except _EndError:
        return bytes(cell.out), len(raw)
    return bytes(cell.out), cell.pos - 1


class _EndError(Exception):
    """The record ends inside the cell, whose value is what was read of it."""


class _Quoted:
    """Walks over one cell: `byte` is the current one, `before` the one that decides about it; 0: none does."""

    def __init__(self, raw: bytes, at: int, separator: int) -> None:
        self.raw = raw
        self.separator = separator
        self.pos = at + 1
        self.byte = self.before = 0
        self.is_unescaped = False
        self.out = bytearray()

    def step(self) -> None:
        """Go on to the next byte."""
        if self.pos == len(self.raw):
            raise _EndError
        self.byte = self.raw[self.pos]
        self.pos += 1

    def read(self) -> None:
        """Read up to the closing quote and what may follow it."""
        self.step()
        while self.before != _QUOTE or (self.byte > _SPACE and self.byte != self.separator):
            if self.byte not in (_QUOTE, _ESCAPE):
                if self.before == _QUOTE:
                    self.out += bytes([_QUOTE, self.byte])
                    self.read_unescaped()
                    return
                if self.before == _ESCAPE:
                    self.out.append(_ESCAPE)
                while self.byte not in (_QUOTE, _ESCAPE):
                    self.out.append(self.byte)
                    self.step()
            else:
                self.resolve(0)
            self.before = self.byte
            self.step()
        if self.byte != self.separator:
            self.pass_space()

    def pass_space(self) -> None:
        """Leave out white space behind the closing quote; before anything else that quote is part of the value."""
        space = bytearray()
        while self.byte <= _SPACE and self.byte != self.separator:
            space.append(self.byte)
            self.step()
        if self.byte != self.separator:
            self.out += bytes([_QUOTE, *space, self.byte])
            is_quoted = self.byte != _QUOTE and self.raw[self.pos : self.pos + 1] == b'"'
            try:
                self.read_unescaped()
            except _EndError:
                if is_quoted:
                    # Upstream looks at the quote that it went on from once more.
                    self.out.append(_QUOTE)
                raise

    def read_unescaped(self) -> None:
        """The rest of a cell with a quote that is not escaped, up to the next separator."""
        self.out.insert(0, _QUOTE)
        self.step()
        while self.byte != self.separator:
            self.out.append(self.byte)
            self.step()

    def resolve(self, depth: int) -> None:
        """Append what a quote or an escape stands for behind the byte before it."""
        if self.before == _ESCAPE:
            self.out.append(self.byte)
            self.byte = 0
        elif self.byte == _QUOTE and self.before == _QUOTE:
            self.out.append(_QUOTE)
        elif self.before == _QUOTE:
            self.out.append(_QUOTE)
            self.read_bare(depth + 1)

    def read_bare(self, depth: int) -> None:
        """An escape behind the closing quote: read on as if there were no quotes."""
        if depth > _DEPTH_MAX:
            raise _EndError
        self.before = self.byte
        while self.byte != self.separator:
            if self.byte in (_QUOTE, _ESCAPE):
                self.resolve(depth)
            elif self.before == _QUOTE:
                self.out.append(_QUOTE)
                self.before = self.byte
                continue
            else:
                self.out.append(self.byte)
            self.before = self.byte
            self.step()


def cell_as(field: Target, text: str, zone: str) -> bytes | float | int | None:
    """A cell for this field's column, which is none of text; None: it does not fit."""
    match field.form:
        case "boolean":
            return {"true": 1, "false": 0}.get(text.lower())
        case "whole":
            number = whole(text) if _WHOLE.fullmatch(text) else None
            return number if number is not None and field.min <= number <= field.max else None
        case "real":
            plain = text.strip("".join(map(chr, range(_SPACE + 1))))
            found = _REAL.fullmatch(plain)
            if found is None:
                return _NAMED.get(plain if plain not in ("Inf", "-Inf") else text)
            return small(found[1]) if field.is_small else float(found[1])
        case "date":
            return day(text)
    return string_as(field, text.encode(), zone)
