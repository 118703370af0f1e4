"""Write src/partita/errors.py, one class for each error code, from the table of codes. `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from partita.protocol.error_codes import ErrorCode

FILE = Path(__file__).resolve().parent.parent / "src" / "partita" / "errors.py"
HEAD = '''"""Errors a caller meets, one class per code, all of them `KafkaError`; `error_for(code, message)` makes them.

Written by `tools/error_classes.py` from `partita.protocol.error_codes`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.error_kinds import AbortableTransactionError as AbortableTransactionError
from partita.error_kinds import FatalTransactionError as FatalTransactionError
from partita.error_kinds import KafkaError as KafkaError
from partita.error_kinds import MissingRightError as MissingRightError
from partita.protocol.error_codes import ErrorCode


def error_for(
    code: int, message: str | None = "", *, operation: str = "", names: Iterable[str] = (), user: str | None = None
) -> KafkaError:
    """The error of this code, ready to raise; the code's meaning stands in for an empty message.

    If the code says that a right is missing, `operation`, `names` and `user` say which right, and stand in for the
    message.
    """
    kind = _CLASSES[ErrorCode(code)]
    if operation and issubclass(kind, MissingRightError):
        return kind(*names, operation=operation, user=user)
    return kind(message) if message else kind()
'''
FOOT = """
_PARENTS = (KafkaError, FatalTransactionError, AbortableTransactionError, MissingRightError)
_CLASSES = {kind.code: kind for parent in _PARENTS for kind in parent.__subclasses__() if "code" in vars(kind)}
"""
KINDS = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "FatalTransactionError",
    ErrorCode.PRODUCER_FENCED: "FatalTransactionError",
    ErrorCode.TRANSACTION_ABORTABLE: "AbortableTransactionError",
}
"""Codes whose error says what a transaction needs."""
RESOURCES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ("topic", "--topic"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ("group", "--group"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ("the cluster", "--cluster"),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ("transactional id", "--transactional-id"),
}
"""Codes that say that a right is missing: on which resource, and the option of `partita acls` that names it."""
BELOW = {
    ErrorCode.SASL_AUTHENTICATION_FAILED: '''
class AuthenticationError(SaslAuthenticationFailedError):
    """A broker refuses this client, or cannot be trusted by it. Trying again is no help; the text names the cure."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else super().__str__()


class TlsError(AuthenticationError):
    """No trusted TLS connection to a broker can be made with these options."""
'''
}
"""Classes of Partita's own, below that of a code."""


def text() -> str:
    """The whole file."""
    codes = [code for code in ErrorCode if code is not ErrorCode.NONE]
    return "\n\n".join([HEAD, *map(_class, codes)]).rstrip("\n") + "\n\n" + FOOT


def _class(code: ErrorCode) -> str:
    kind = "MissingRightError" if code in RESOURCES else KINDS.get(code, "KafkaError")
    head = f"class {name_of(code)}({kind}, code=ErrorCode.{code.name}):"
    lines = [f"{head}  # fmt: skip # noqa: E501" if len(head) > 120 else head, f'    """{_sentence(code.meaning)}"""']
    if code in RESOURCES:
        resource, option = RESOURCES[code]
        lines += ["", f'    resource, option = "{resource}", "{option}"']
    below = f"\n{BELOW[code]}" if code in BELOW else ""
    return "\n".join(lines) + "\n" + below


def name_of(code: ErrorCode) -> str:
    """The class of a code: NETWORK_EXCEPTION is NetworkError."""
    words = code.name.removesuffix("_EXCEPTION").removesuffix("_ERROR")
    return "".join(word.capitalize() for word in words.split("_")) + "Error"


def _sentence(meaning: str) -> str:
    return meaning[0].upper() + meaning[1:].rstrip(".") + "."


def main(argv: list[str]) -> int:
    """Write the file, or compare it; return the exit code."""
    if "--check" in argv:
        is_current = FILE.exists() and FILE.read_text() == text()
        print("src/partita/errors.py is current" if is_current else "stale: run python tools/error_classes.py")
        return 0 if is_current else 1
    FILE.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
