# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True, freethreading_compatible=True
# mypy: disable-error-code="attr-defined, index, assignment, arg-type, no-any-return"
"""The grammar of JSON as Jackson reads it for Spark: single quotes, NaN and infinities are allowed, and nothing else.

Compiled by Cython when a compiler is there (its types: json_text.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from partita.records.uncompiled import cython

_DEPTH_MAX: int = 999
"""Deeper nesting in a record's value is refused: Jackson takes 1000 levels, and the record is one of them."""
_DIGITS_MAX: int = 18
_POWER_MAX: int = 100_000
_ESCAPES = b"\"'\\/bfnrt"
_MEANT = memoryview(bytes(range(0x62)) + b"\bcde\fghijklm\nopq\rs\t")
"""What the letter of an escape stands for."""


class JsonText:
    """Walks over one value after the other.

    The last string is from `begin` to `stop`, the last number from `begin` to `pos`, both counted from the start of all
    data.
    """

    __slots__ = (
        "begin", "brackets", "data", "digits", "end", "exponent", "has_escape", "has_high", "is_long", "is_negative",
        "is_real", "mantissa", "pos", "start", "stop",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pos = self.end = self.start = self.begin = self.stop = 0
        self.brackets = memoryview(bytearray(_DEPTH_MAX + 1))

    def open(self, data: memoryview) -> None:
        """Start with other data, which is not empty."""
        if cython.compiled:
            self.data = cython.address(data[0])
        else:
            self.data = bytes(data)

    def broken(self) -> str:
        """The reason why the record is malformed."""
        where = self.pos - self.start
        near = bytes(self.data[self.pos : min(self.pos + 20, self.end)]).decode("utf-8", "replace")
        return f"this is no JSON object: at byte {where}, {near!r}" if near else f"the JSON ends at byte {where}"

    def skip_space(self) -> None:
        """Pass over white space."""
        while self.pos < self.end:
            byte = self.data[self.pos]
            if byte > 0x20 or (byte != 0x20 and byte != 0x0A and byte != 0x0D and byte != 0x09):
                return
            self.pos += 1

    def next_byte(self) -> int:
        """The next byte that is no white space, which stays; 0 at the end."""
        if self.pos < self.end and self.data[self.pos] > 0x20:
            return self.data[self.pos]
        self.skip_space()
        return self.data[self.pos] if self.pos < self.end else 0

    def read_key(self) -> bool:
        """Find the name that begins here, in either kind of quotes."""
        byte = self.next_byte()
        return (byte == 0x22 or byte == 0x27) and self.find_string(byte)

    def skip_value(self) -> bool:
        """Pass over the value that begins here, checking all of it; False when it is malformed."""
        depth = 0
        while True:
            byte = self.next_byte()
            if byte == 0x7B or byte == 0x5B:
                if depth == _DEPTH_MAX:
                    return False
                self.pos += 1
                self.brackets[depth] = byte + 2
                depth += 1
                if self.next_byte() != byte + 2:
                    if byte == 0x7B and not self.skip_name():
                        return False
                    continue
            elif byte == 0x22 or byte == 0x27:
                if not self.find_string(byte):
                    return False
            elif not self.skip_word(byte):
                return False
            depth = self.skip_behind_value(depth)
            if depth <= 0:
                return depth == 0

    def skip_behind_value(self, depth: int) -> int:
        """Pass over closing brackets, or a comma and the next name; return what is still open; -1 if malformed."""
        while depth > 0:
            byte = self.next_byte()
            if byte == 0x2C:
                self.pos += 1
                return depth if self.brackets[depth - 1] != 0x7D or self.skip_name() else -1
            if byte != self.brackets[depth - 1]:
                return -1
            self.pos += 1
            depth -= 1
        return 0

    def skip_name(self) -> bool:
        """Pass over a name and its colon."""
        if not self.read_key() or self.next_byte() != 0x3A:
            return False
        self.pos += 1
        return True

    def skip_word(self, byte: int) -> bool:
        """Pass over a number or a word."""
        before = self.pos
        if byte == 0x2D or 0x30 <= byte <= 0x39:
            begin, self.begin = self.begin, before
            found = self.find_number()
            self.begin = begin
            if found:
                return True
            self.pos = before
        if byte == 0x6E:
            return self.is_word(b"null", 4)
        if byte == 0x74:
            return self.is_word(b"true", 4)
        if byte == 0x66:
            return self.is_word(b"false", 5)
        return self.find_odd_number()

    def is_word(self, word: bytes, size: int) -> bool:
        """Pass over this word if it stands here."""
        if self.end - self.pos < size:
            return False
        for index in range(size):
            if self.data[self.pos + index] != word[index]:
                return False
        self.pos += size
        return True

    def find_odd_number(self) -> bool:
        """Pass over NaN or an infinity, of which Jackson knows these."""
        return (
            self.is_word(b"NaN", 3) or self.is_word(b"Infinity", 8) or self.is_word(b"-Infinity", 9)
            or self.is_word(b"+Infinity", 9) or self.is_word(b"-INF", 4) or self.is_word(b"+INF", 4)
        )  # fmt: skip

    def find_string(self, quote: int) -> bool:
        """Find where the string that begins here ends, and whether its bytes can be taken as they are."""
        at = self.pos + 1
        data, end = self.data, self.end
        high = 0
        self.begin = at
        self.has_escape = False
        while at < end:
            byte = data[at]
            if byte == quote:
                self.stop = at
                self.pos = at + 1
                self.has_high = high >= 0x80
                return True
            if byte < 0x20:
                break
            high |= byte
            if byte == 0x5C:
                self.has_escape = True
                size = self.escape_size(at)
                if size == 0:
                    break
                at += size
            else:
                at += 1
        self.pos = at
        return False

    def escape_size(self, at: int) -> int:
        """The length of the escape that begins here; 0 for none."""
        if at + 1 >= self.end:
            return 0
        byte = self.data[at + 1]
        if byte != 0x75:
            return 2 if byte in _ESCAPES else 0
        if at + 6 > self.end:
            return 0
        for index in range(at + 2, at + 6):
            byte = self.data[index]
            if not (0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x46 or 0x61 <= byte <= 0x66):
                return 0
        return 6

    def resolve(self, text: bytearray, at: int, end: int) -> int:
        """Put what they stand for in place of the escapes of this string; return its new end.

        -1, with part of it done, for malformed bytes and for half a pair of surrogates.
        """
        out = at
        while at < end:
            code = text[at]
            at += 1
            if code >= 0x80:
                size = continuation(text, at, end)
                if size == 0:
                    return -1
                text[out] = code
                for _ in range(size):
                    out += 1
                    text[out] = text[at]
                    at += 1
                out += 1
                continue
            if code == 0x5C:
                code = text[at]
                at += 1
                if code != 0x75:
                    code = _MEANT[code]
                else:
                    code = unit(text, at)
                    at += 4
                    if 0xD800 <= code < 0xE000:
                        low = 0
                        if code < 0xDC00 and at + 6 <= end and text[at] == 0x5C and text[at + 1] == 0x75:
                            low = unit(text, at + 2)
                        if not 0xDC00 <= low < 0xE000:
                            return -1
                        at += 6
                        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            out = put_code(text, out, code)
        return out

    def find_number(self) -> bool:
        """Read the number that begins here as mantissa and power of ten. `is_long`: it has too many digits for that."""
        at = self.pos
        self.mantissa = self.exponent = self.digits = 0
        self.is_negative = self.data[at] == 0x2D
        self.is_real = self.is_long = False
        if self.is_negative:
            at += 1
        first = at
        at = self.find_digits(first, 0)
        if at == first or (self.data[first] == 0x30 and at > first + 1):
            return False
        if at < self.end and self.data[at] == 0x2E:
            self.is_real = True
            first = at + 1
            at = self.find_digits(first, 1)
            if at == first:
                return False
        self.pos = at
        return at == self.end or (self.data[at] | 0x20) != 0x65 or self.find_power()

    def find_digits(self, at: int, places: int) -> int:
        """Append the digits that begin here to the mantissa, each so many places behind the point; return their end."""
        mantissa = self.mantissa
        while at < self.end:
            digit = self.data[at] - 0x30
            if digit < 0 or digit > 9:
                break
            if self.digits < _DIGITS_MAX:
                mantissa = mantissa * 10 + digit
                self.exponent -= places
                if mantissa:
                    self.digits += 1
            else:
                self.is_long = True
            at += 1
        self.mantissa = mantissa
        return at

    def find_power(self) -> bool:
        """Read the power of ten that begins here with its letter."""
        at = self.pos + 1
        self.is_real = True
        is_minus = at < self.end and self.data[at] == 0x2D
        if at < self.end and (is_minus or self.data[at] == 0x2B):
            at += 1
        first = at
        power = 0
        while at < self.end and 0x30 <= self.data[at] <= 0x39:
            if power < _POWER_MAX:
                power = power * 10 + (self.data[at] - 0x30)
            at += 1
        self.pos = at
        self.exponent += -power if is_minus else power
        return at > first


def continuation(text: bytearray, at: int, end: int) -> int:
    """How many bytes of one character of UTF-8 follow the one before `at`; 0 when it is malformed."""
    first = text[at - 1]
    size = 1 if 0xC2 <= first < 0xE0 else 2 if 0xE0 <= first < 0xF0 else 3 if 0xF0 <= first < 0xF5 else 0
    if size == 0 or at + size > end:
        return 0
    second = text[at]
    least = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    most = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    if not least <= second <= most:
        return 0
    for index in range(at + 1, at + size):
        if text[index] & 0xC0 != 0x80:
            return 0
    return size


def unit(text: bytearray, at: int) -> int:
    """The number that four hexadecimal digits make."""
    found = 0
    for index in range(at, at + 4):
        byte = text[index]
        found = found * 16 + (byte - 0x30 if byte < 0x3A else (byte | 0x20) - 0x57)
    return found


def put_code(text: bytearray, at: int, code: int) -> int:
    """Write a character in UTF-8; return where it ends."""
    if code < 0x80:
        text[at] = code
        return at + 1
    size = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    for index in range(size - 1, 0, -1):
        text[at + index] = 0x80 | (code & 0x3F)
        code >>= 6
    text[at] = (0xF00 >> size & 0xFF) | code
    return at + size
