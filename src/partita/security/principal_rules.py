"""From the name in a client's certificate to the name of its principal: ssl.principal.mapping.rules.

Mirrors SslPrincipalMapper. Rules are `DEFAULT` or `RULE:pattern/replacement/[LU]`, with commas
between them; the first that matches the whole name counts. (security.md 5)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from partita.security.errors import NoMatchingRule

_SPLIT = re.compile(r"\s*(DEFAULT|RULE:(?:\\.|[^\\/])*/(?:\\.|[^\\/])*/[LU]?)\s*(,|$)")
_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_PIECE = re.compile(r"\\(.)|\$(\d+)|([^\\$]+)", re.DOTALL)


class PrincipalRulesError(ValueError):
    """The rules cannot be used; the message names the one that is wrong."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: tuple[str | int, ...]
    """Texts, and numbers of groups."""
    case: str
    """L, U or nothing."""

    def applied(self, name: str) -> str | None:
        if not self.pattern.fullmatch(name):
            return None
        result = self.pattern.sub(self._filled, name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _filled(self, match: re.Match[str]) -> str:
        return "".join(piece if isinstance(piece, str) else match[piece] or "" for piece in self.replacement)


class PrincipalRules:
    """The rules of a listener, compiled."""

    def __init__(self, text: str = "DEFAULT") -> None:
        """Raises PrincipalRulesError for an invalid list of rules, or a pattern that Python cannot compile."""
        self._rules = tuple(_parsed(rule) for rule in _split(text.strip()))

    def principal_name(self, distinguished_name: str) -> str:
        """Return the name mapped by the first matching rule. Raises NoMatchingRule."""
        for rule in self._rules:
            result = distinguished_name if rule is None else rule.applied(distinguished_name)
            if result is not None:
                return result
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules matches {distinguished_name}")


def _split(text: str) -> list[str]:
    rules, at = [], 0
    while at < len(text):
        found = _SPLIT.match(text, at)
        if found is None:
            raise PrincipalRulesError(f"ssl.principal.mapping.rules: {text[at:]!r} does not begin with a rule")
        rules.append(found[1])
        at = found.end()
    return rules


def _parsed(rule: str) -> _Rule | None:
    """The rule; None for DEFAULT."""
    if rule == "DEFAULT":
        return None
    found = _RULE.fullmatch(rule)
    assert found is not None, "a rule was cut out by the same pattern"
    pattern, replacement, case = found.groups()
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise PrincipalRulesError(f"ssl.principal.mapping.rules: {pattern!r} cannot be used: {error}") from None
    pieces = tuple(_pieces(replacement, compiled.groups))
    return _Rule(compiled, pieces, case)


def _pieces(replacement: str, groups: int) -> list[str | int]:
    """Java's replacement text: `$1` is a group if there is one of that number, a backslash quotes."""
    pieces: list[str | int] = []
    at = 0
    while at < len(replacement):
        found = _PIECE.match(replacement, at)
        if found is None:
            raise PrincipalRulesError(f"ssl.principal.mapping.rules: no group is named in {replacement[at:]!r}")
        at = found.end()
        quoted, digits, plain = found.groups()
        if digits is None:
            pieces.append(plain if quoted is None else quoted)
            continue
        taken = max((size for size in range(1, len(digits) + 1) if int(digits[:size]) <= groups), default=0)
        pieces += [int(digits[:taken]), digits[taken:]] if taken else ["$" + digits]
    return pieces
