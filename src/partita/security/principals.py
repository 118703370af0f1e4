"""Proven identity of a peer: type and name, printed as Kafka prints it. (Kafka: KafkaPrincipal.)"""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class KafkaPrincipal(NamedTuple):
    """A type and a name; `str()` is the name in rules: "User:alice". Both compare exactly, case included."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
"""The principal of unauthenticated clients."""
