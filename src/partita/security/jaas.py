"""The `sasl.jaas.config` line: one login module with options, read as Kafka reads it. (Kafka: JaasConfig.)"""

from __future__ import annotations

import re
from dataclasses import dataclass

from partita.secret import Secret

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = r"""\s+ | //[^\n]* | /\*.*?\*/
      | (?P<quoted>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
      | (?P<word>[A-Za-z_$\u00a0-\U0010ffff][\w.$\-\u00a0-\U0010ffff]*)
      | (?P<other>.)"""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class JaasError(ValueError):
    """The line is not one login module with options; the text says where it goes wrong, without any value."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """The class that Java would load (never loaded here), its flag in lower case, and its options."""

    name: str
    flag: str
    options: dict[str, Secret]

    def plain(self, key: str) -> str | None:
        """An option that is no secret, such as the user name."""
        value = self.options.get(key)
        return None if value is None else value.reveal()


def parse_jaas(text: str) -> LoginModule:
    """The one login module of the line. Raises JaasError with Kafka's words."""
    tokens = _tokens(text)
    if not tokens:
        raise JaasError("Login module not specified in JAAS config")
    module, at = _module(tokens, 0)
    count = 1
    while at < len(tokens):
        _, at = _module(tokens, at)
        count += 1
    if count > 1:
        raise JaasError(f"JAAS config property contains {count} login modules, should be 1 module")
    return module


def _module(tokens: list[tuple[str, str]], at: int) -> tuple[LoginModule, int]:
    name = tokens[at][1]
    flag = tokens[at + 1][1] if at + 1 < len(tokens) else ""
    if flag.lower() not in _FLAGS:
        raise JaasError(f"Invalid login module control flag {flag!r} in JAAS config")
    at += 2
    options: dict[str, Secret] = {}
    while at < len(tokens) and tokens[at] != ("other", ";"):
        kind, key = tokens[at]
        shown = key if kind != "other" else "null"
        if kind == "other" or at + 2 >= len(tokens) or tokens[at + 1] != ("other", "=") or tokens[at + 2][0] == "other":
            raise JaasError(f"Value not specified for key {shown!r} in JAAS config")
        options[key] = Secret(tokens[at + 2][1])
        at += 3
    if at >= len(tokens):
        raise JaasError("JAAS config entry not terminated by semi-colon")
    return LoginModule(name, flag.lower(), options), at + 1


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    for match in re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL):
        kind = match.lastgroup
        if kind == "quoted":
            inner = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), match[0][1:-1], flags=re.DOTALL)
            found.append(("quoted", inner))
        elif kind is not None:
            found.append((kind, match[0]))
    return found
