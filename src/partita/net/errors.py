"""Errors of a connection. The first two are retriable: the request may or may not have been carried out."""

from __future__ import annotations

from partita.errors import NetworkError, UnsupportedVersionError


class Disconnected(NetworkError):
    """The connection failed or was closed before the answer came."""


class RequestTimedOut(Disconnected):
    """No answer within the request timeout; the connection was closed for it."""


class VersionMismatch(UnsupportedVersionError):
    """The broker serves no version of an API that we speak."""
