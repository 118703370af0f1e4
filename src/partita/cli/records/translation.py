"""Offsets of a copied topic: the offset of the copy for an offset of the original. Pure.

A copy has other offsets than the original where the original has gaps (compaction, deleted records, transactions) or
the copy held records before. Copied stretches without a gap are kept as one entry each.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

Partition = tuple[str, int]
TEXT_PREFIX = "partita.mirror 1 "
TEXT_CHARACTERS_MAX = 2_000
"""How long a translation is as text: half of what Kafka's brokers take as metadata of a commit by default."""
_STRETCH = re.compile(r"(\d+):(\d+):(\d+)")


@dataclass(slots=True)
class Translation:
    """The offsets of one partition. Each stretch is (first original offset, first offset of the copy, length)."""

    stretches: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, original: int, copy: int) -> None:
        """Record that the record at `original` was written at `copy`. Both rise from call to call."""
        if self.stretches:
            first, first_copy, length = self.stretches[-1]
            if original == first + length and copy == first_copy + length:
                self.stretches[-1] = (first, first_copy, length + 1)
                return
        self.stretches.append((original, copy, 1))

    def committed(self, offset: int) -> int | None:
        """Return the committed offset of the copy that skips no record the group has not read.

        None if the offset lies before everything that was copied, where no translation is known.
        """
        place = bisect_right(self.stretches, (offset, -1, -1)) - 1
        following = self.stretches[place + 1] if place + 1 < len(self.stretches) else None
        if following is not None and following[0] == offset:
            return following[1]
        if place < 0:
            return None
        first, first_copy, length = self.stretches[place]
        return first_copy + min(offset - first, length)

    def as_text(self) -> str:
        """Return the newest stretches as text for the metadata of a commit, to be read after a restart."""
        kept: list[str] = []
        room = TEXT_CHARACTERS_MAX - len(TEXT_PREFIX)
        for first, first_copy, length in reversed(self.stretches):
            stretch = f"{first}:{first_copy}:{length}"
            room -= len(stretch) + 1
            if room < 0:
                break
            kept.append(stretch)
        return TEXT_PREFIX + ",".join(reversed(kept))

    @classmethod
    def from_text(cls, text: str | None) -> Translation:
        """Return the translation of `as_text`; an empty one for any other text."""
        if text is None or not text.startswith(TEXT_PREFIX):
            return cls()
        parts = [_STRETCH.fullmatch(part) for part in text.removeprefix(TEXT_PREFIX).split(",")]
        return cls([(int(part[1]), int(part[2]), int(part[3])) for part in parts if part is not None])
