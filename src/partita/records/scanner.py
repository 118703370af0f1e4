# cython: boundscheck=False, wraparound=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index"
"""Find the fields of records inside an inflated batch, by position, and check them on the way.

Compiled by Cython when a compiler is there (its types: scanner.pxd); the same file runs uncompiled.
Upstream: DefaultRecord.readFrom, ByteUtils.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython
_MASK_32: int = 0xFFFFFFFF


class RecordScanner:
    """Walks the records of one uncompressed payload; `advance` puts the next one's positions into the fields.

    `fault` says why the walk ended early. Sizes below 0 are nulls. Positions count from the payload's start.
    """

    __slots__ = (
        "data", "end", "fault", "header_count", "key_at", "key_size", "left", "offset_delta", "owner", "pos",
        "record_end", "timestamp_delta", "value_at", "value_size",
    )  # fmt: skip

    def __init__(self) -> None:
        self.owner: object = None
        self.fault: str | None = None
        self.pos = self.end = self.left = 0

    def open(self, payload: object, count: int) -> None:
        """Start over with another payload of `count` records."""
        if cython.compiled:
            view = payload
            self.owner = view
            self.data = cython.address(view[0])
            self.end = view.shape[0]
        else:
            self.data = bytes(payload)  # type: ignore[call-overload]  # any object with the buffer protocol
            self.end = len(self.data)
        self.pos = 0
        self.left = count
        self.fault = None if count >= 0 else f"negative record count {count}"

    def varint(self, bits: int) -> int:
        """A zig-zag varint of 32 or 64 bits; most take one byte or two."""
        pos = self.pos
        if pos < self.end:
            byte = self.data[pos]
            # One byte holds -64 to 63, which most lengths and deltas are.
            if byte < 0x80:
                self.pos = pos + 1
                zigzag: int = (byte >> 1) ^ -(byte & 1)
                return zigzag
            if pos + 1 < self.end and self.data[pos + 1] < 0x80:
                self.pos = pos + 2
                zigzag = (self.data[pos + 1] << 6 | (byte & 0x7F) >> 1) ^ -(byte & 1)
                return zigzag
        return self.long_varint(bits)

    def long_varint(self, bits: int) -> int:
        """A varint of any length; `varint` handles the short ones itself."""
        data = self.data
        pos = self.pos
        value = 0
        shift = 0
        while pos < self.end and shift < bits:
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if bits == 32:
                    # As Java's int: bits beyond the 32nd are lost, not refused.
                    value &= _MASK_32
                elif not cython.compiled:
                    value &= 0xFFFFFFFFFFFFFFFF
                self.pos = pos
                zigzag: int = (value >> 1) ^ -(value & 1)
                return zigzag
            shift += 7
        self.pos = pos
        self.fail_varint(0 if shift < bits else bits)
        return -1

    def advance(self) -> bool:
        """Find the next record; False when there is none or it is faulty."""
        if self.left <= 0 or self.fault is not None:
            return False
        self.left -= 1
        size = self.varint(32)
        # Compared by subtraction: a sum of two announced sizes could wrap around in C.
        if size < 0 or size > self.end - self.pos:
            return self.fail(b"record length", size)
        self.record_end = self.pos + size
        # The attributes of a record, of which no bit is used.
        self.pos += 1
        self.timestamp_delta = self.varint(64)
        self.offset_delta = self.varint(32)
        self.key_size = self.varint(32)
        self.key_at = self.pos
        if self.key_size > 0:
            if self.key_size > self.record_end - self.pos:
                return self.fail(b"key length", self.key_size)
            self.pos += self.key_size
        self.value_size = self.varint(32)
        self.value_at = self.pos
        if self.value_size > 0:
            if self.value_size > self.record_end - self.pos:
                return self.fail(b"value length", self.value_size)
            self.pos += self.value_size
        self.header_count = self.varint(32)
        if self.fault is not None:
            return False
        # A header has at least two bytes, so more of them than bytes are a lie; this keeps the count from being
        # believed.
        if self.header_count < 0 or self.header_count > self.record_end - self.pos:
            return self.fail(b"header count", self.header_count)
        return True if self.header_count else self.finish()

    def advance_header(self) -> bool:
        """Find the next header of the record found last; its key and value use the record's fields."""
        self.key_size = self.varint(32)
        self.key_at = self.pos
        if self.key_size < 0 or self.key_size > self.record_end - self.pos:
            return self.fail(b"header key length", self.key_size)
        self.pos += self.key_size
        self.value_size = self.varint(32)
        self.value_at = self.pos
        if self.value_size > 0:
            if self.value_size > self.record_end - self.pos:
                return self.fail(b"header value length", self.value_size)
            self.pos += self.value_size
        return self.fault is None

    def finish(self) -> bool:
        """After a record's headers: it must end where it said, and the last one where the payload ends."""
        if self.pos != self.record_end:
            return self.fail(b"record end", self.record_end)
        if self.left == 0 and self.pos != self.end:
            return self.fail(b"payload end", self.end)
        return self.fault is None

    def fail(self, what: bytes, found: int) -> bool:
        """Keep the error as `fault`, unless there is one already. Always returns False."""
        if self.fault is None:
            name = what.decode("ascii")
            self.fault = f"{name} {found} does not fit at byte {self.pos} of {self.end}"
        return False

    def fail_varint(self, bits: int) -> None:
        """`bits` is 0 where the varint ended too early."""
        self.fault = f"varint longer than {bits} bits" if bits else "record cut short"


def wrapped(value: int) -> int:
    """The number as 64 bits hold it; machine code wraps by itself."""
    if not cython.compiled and not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        value = (value + 0x8000000000000000) % 0x10000000000000000 - 0x8000000000000000
    return value
