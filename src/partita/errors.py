"""Errors a caller meets, one class per code, all of them `KafkaError`; `error_for(code, message)` makes them.

The classes are made from the table of codes. errors.pyi beside this file, written by `tools/error_classes.py`, shows
them to type checkers.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.error_kinds import AbortableTransactionError as AbortableTransactionError
from partita.error_kinds import FatalTransactionError as FatalTransactionError
from partita.error_kinds import KafkaError as KafkaError
from partita.error_kinds import MissingRightError as MissingRightError
from partita.error_kinds import class_of
from partita.protocol.error_codes import ErrorCode

_CLASSES = {code: class_of(code, __name__) for code in ErrorCode if code is not ErrorCode.NONE}
globals().update({kind.__name__: kind for kind in _CLASSES.values()})


class AuthenticationError(_CLASSES[ErrorCode.SASL_AUTHENTICATION_FAILED]):
    """A broker refuses this client, or cannot be trusted by it. Trying again is no help; the text names the cure."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else super().__str__()


class TlsError(AuthenticationError):
    """No trusted TLS connection to a broker can be made with these options."""


def error_for(
    code: int, message: str | None = "", *, operation: str = "", names: Iterable[str] = (), user: str | None = None
) -> KafkaError:
    """Return the error of this code, ready to raise; the code's meaning stands in for an empty message.

    If the code says that a right is missing, `operation`, `names` and `user` say which right, and stand in for the
    message.
    """
    kind = _CLASSES[ErrorCode(code)]
    if operation and issubclass(kind, MissingRightError):
        return kind(*names, operation=operation, user=user)
    return kind(message) if message else kind()
