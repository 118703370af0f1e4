"""Regular expressions of clients, by the rules of RE2: linear time, no look-ahead, no back references.

Python's own take more, and may need exponential time for a short name. A server that matches what clients send it
uses these.
"""

from __future__ import annotations

from collections.abc import Callable

Matches = Callable[[str], bool]


class InvalidExpression(ValueError):
    """A regular expression that RE2 does not take; the message is its reason."""


class ExpressionsMissing(InvalidExpression):
    """The package google-re2 is not installed; the message says how to install it."""


def compiled(pattern: str) -> Matches:
    """Whether a whole text matches. Raises InvalidExpression, also where the package google-re2 is missing."""
    try:
        import re2
    except ImportError:
        raise ExpressionsMissing(
            "regular expressions of clients need the package google-re2: pip install 'partita[regex]'"
        ) from None
    options = re2.Options()
    options.log_errors = False
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise InvalidExpression(
            reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        ) from None
    return lambda text: found.fullmatch(text) is not None
