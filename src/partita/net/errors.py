"""Errors of connections, and of the threads behind blocking clients.

Those of a connection are retriable but for the version: the request may or may not have been carried out.
"""

from __future__ import annotations

from partita.errors import KafkaError, NetworkError, UnsupportedVersionError


class Disconnected(NetworkError):
    """The connection failed or was closed before the answer came."""


class RequestTimedOut(Disconnected):
    """No answer within the request timeout; the connection was closed for it."""


class NoAnswerYet(Disconnected):
    """No broker has answered so far, and some may still do: connections to them are in the making."""


class WrongBroker(Disconnected):
    """Another cluster or another node answers at this address than the metadata says. (KIP-1242)"""


class VersionMismatch(UnsupportedVersionError):
    """The broker serves no version of an API that we speak."""


class ThreadEndedError(KafkaError):
    """The thread behind a blocking client has ended by an error, which is the cause. Make a new client."""

    def __str__(self) -> str:
        return str(self.args[0])


def words_of(error: BaseException | None) -> str:
    """The error's message without its code, to be put into another message."""
    return str(error.args[0]) if isinstance(error, KafkaError) and error.args else str(error)
