"""What a SASL exchange can fail with, before anybody knows which broker it was."""

from __future__ import annotations


class SaslError(Exception):
    """The other side's message is malformed, or does not prove what it should. The text never holds a secret."""
