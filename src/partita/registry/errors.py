"""Errors of a schema registry and its framing."""

from __future__ import annotations

from partita.errors import KafkaError, NetworkError


class RegistryError(KafkaError):
    """The registry refuses, has no such schema, or the bytes are not framed as its serializers frame them."""

    def __str__(self) -> str:
        return str(self.args[0])


class RegistryUnavailableError(NetworkError):
    """The registry cannot be reached, fails, or refuses this user: no record is unreadable because of that."""

    def __str__(self) -> str:
        return str(self.args[0])
