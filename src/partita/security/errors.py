"""Errors of authentication that do not name the broker yet."""

from __future__ import annotations


class SaslError(Exception):
    """The other side's message is malformed, or does not prove what it should. The text never holds a secret."""


class NoMatchingRule(Exception):
    """No rule says what the name in a certificate becomes: the connection fails."""
