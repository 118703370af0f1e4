# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index"
"""Walks over the records of one inflated batch that make no object per record: checks, and looks for a timestamp.

Both let other threads run meanwhile, so that a broker does them beside its event loop. Compiled by Cython when a
compiler is there (its types: walk.pxd); the same file runs uncompiled. Upstream: LogValidator.validateRecord,
FileRecords.searchForTimestamp.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

if not cython.compiled:
    from partita.records.scanner import RecordScanner, wrapped

REJECTED_MAX: int = 100
"""Maximum number of rejected records that are listed; further ones are only counted."""


class RecordWalk(RecordScanner):
    """Use one for one batch. `fault` says why a walk ended early.

    After `check`: `max_timestamp`, `keyless_count` and `mistimed_count`; `rejected(n)` gives the first ones' places.
    After `find`: `found_offset` and `found_timestamp`.
    """

    __slots__ = (
        "found_offset", "found_timestamp", "keyless_count", "max_timestamp", "mistimed_count", "places",
        "rejected_count",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.places = memoryview(bytearray(4 * REJECTED_MAX)).cast("i")
        self.rejected_count = self.keyless_count = self.mistimed_count = 0
        self.max_timestamp = self.found_offset = self.found_timestamp = -1

    def check(
        self,
        payload: object,
        count: int,
        base_timestamp: int,
        needs_key: bool,
        in_order: bool,
        earliest: int,
        latest: int,
    ) -> None:
        """Check every record: well formed, offsets 0, 1, 2 ... if `in_order`, a key if needed, a timestamp in bounds.

        A record that is not well formed, or out of order, is a fault and ends the walk; the others are counted.
        """
        self.open(payload, count)
        with cython.nogil:
            self.check_all(base_timestamp, needs_key, in_order, earliest, latest)

    def check_all(self, base_timestamp: int, needs_key: bool, in_order: bool, earliest: int, latest: int) -> None:
        """Check the opened payload, as `check` promises. Needs no GIL."""
        index = 0
        while self.advance():
            if in_order and self.offset_delta != index:
                self.fail(b"offset delta", self.offset_delta)
                return
            has_key = self.key_size >= 0
            timestamp = wrapped(base_timestamp + self.timestamp_delta)
            if self.header_count and not self.pass_headers():
                return
            if timestamp > self.max_timestamp:
                self.max_timestamp = timestamp
            place = index
            if needs_key and not has_key:
                self.keyless_count += 1
            elif timestamp != -1 and (timestamp < earliest or timestamp > latest):
                self.mistimed_count += 1
                place = ~index
            else:
                index += 1
                continue
            if self.rejected_count < REJECTED_MAX:
                self.places[self.rejected_count] = place
            self.rejected_count += 1
            index += 1

    def find(
        self, payload: object, count: int, base_offset: int, base_timestamp: int, timestamp: int, from_offset: int
    ) -> bool:
        """Whether a record from `from_offset` on has a timestamp of at least `timestamp`; the first one is found."""
        self.open(payload, count)
        self.found_offset = -1
        with cython.nogil:
            self.find_first(base_offset, base_timestamp, timestamp, from_offset)
        return self.found_offset >= 0

    def find_first(self, base_offset: int, base_timestamp: int, timestamp: int, from_offset: int) -> None:
        """Search the opened payload, as `find` promises. Needs no GIL."""
        while self.advance():
            offset = wrapped(base_offset + self.offset_delta)
            found = wrapped(base_timestamp + self.timestamp_delta)
            if found >= timestamp and offset >= from_offset:
                self.found_offset = offset
                self.found_timestamp = found
                return
            if self.header_count and not self.pass_headers():
                return

    def pass_headers(self) -> bool:
        """Pass over the headers of one record; False when they are malformed."""
        left = self.header_count
        while left > 0:
            if not self.advance_header():
                return False
            left -= 1
        return self.finish()

    def rejected(self) -> list[int]:
        """The places of the first rejected records in the batch, at most REJECTED_MAX; ~place of a mistimed one."""
        return [self.places[i] for i in range(min(self.rejected_count, REJECTED_MAX))]
