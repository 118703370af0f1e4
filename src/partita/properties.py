"""Java properties files, as `--command-config` of Kafka's own tools reads them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_KEY = r"((?:\\.|[^\\:=\s])*)\s*[:=]?\s*"
_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|(.))"


def parse_properties(text: str) -> dict[str, str]:
    r"""The properties of a file; a later one wins.

    Lines that begin with # or ! are comments, a \ at the end of a line continues it, a key ends at =, : or a space,
    and \n, \t, \u0041 and the like are escapes. Raises ValueError with the number of the line for a bad \u escape.
    """
    found = {}
    for number, line in _logical_lines(text):
        if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", line):
            raise ValueError(rf"line {number}: \u must be followed by four hexadecimal digits")
        key = re.match(_KEY, line, re.S)
        assert key is not None, "every line begins with a key, if an empty one"
        found[_unescape(key[1])] = _unescape(line[key.end() :])
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined where they are continued, without comments and empty ones; each with its first line's number."""
    whole, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        part = line.lstrip(" \t\f")
        if not whole:
            first = number
            if not part or part[0] in "#!":
                continue
        whole += part
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        if whole:
            yield first, whole
        whole = ""
    if whole:
        yield first, whole


def _unescape(text: str) -> str:
    def meant(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])

    return re.sub(_ESCAPE, meant, text, flags=re.S)
