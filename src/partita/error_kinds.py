"""The kinds of errors a caller meets; `partita.errors` has a class for every error code, each of one of these kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from partita.lazy import later
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    import pickle
else:
    pickle = later("pickle")

E = TypeVar("E", bound="KafkaError")


class KafkaError(Exception):
    """An error with Kafka's own code. `retriable`: repeating may help; `txn_requires_abort`: an abort helps.

    Errors can be copied and pickled, whatever their constructors take, with their attributes and `__cause__`. A value
    that cannot be pickled, such as a user's own exception as the cause, is replaced by its text.
    """

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    fatal: ClassVar[bool] = False
    txn_requires_abort: ClassVar[bool] = False

    @property
    def retriable(self) -> bool:
        """True if the same call may succeed when it is repeated."""
        return self.code.retriable

    def __reduce__(self) -> tuple[Callable[..., KafkaError], tuple[Any, ...]]:
        attributes = {name: _portable(value) for name, value in vars(self).items()}
        return _made_again, (type(self), tuple(map(_portable, self.args)), attributes, _portable(self.__cause__))

    def __copy__(self) -> KafkaError:
        return _made_again(type(self), self.args, vars(self), self.__cause__)

    def __str__(self) -> str:
        is_wrapped = self.code is ErrorCode.UNKNOWN_SERVER_ERROR and (self.fatal or self.txn_requires_abort)
        text = super().__str__() or self.code.meaning
        return text if is_wrapped else f"{self.code.name}: {text}"


class MissingRightError(KafkaError):
    """An ACL is missing. Where the client knows which, `operation` and `names` name it, and `user` who lacks it."""

    resource: ClassVar[str] = ""
    option: ClassVar[str] = ""
    """Name of the resource in `partita acls add`."""

    def __init__(self, *told: str, operation: str = "", user: str | None = None) -> None:
        super().__init__(*told)
        self.operation, self.user = operation, user
        self.names = told if operation else ()

    def __str__(self) -> str:
        if not self.operation:
            return super().__str__()
        who = "this client" if self.user is None else f"user {self.user!r}"
        things = ", ".join(repr(name) for name in self.names)
        options = " ".join(f"{self.option} {name}" for name in self.names) or self.option
        return (
            f"{who} may not {self.operation} {self.resource}{' ' if things else ''}{things} ({self.code.name}). An "
            f"administrator can allow it: partita acls add --allow User:{self.user or 'NAME'} "
            f"--operation {self.operation} {options}"
        )


class FatalTransactionError(KafkaError):
    """A transactional producer cannot go on: close it. The cause, if the class does not say it, is chained."""

    fatal: ClassVar[bool] = True


class AbortableTransactionError(KafkaError):
    """The transaction cannot be committed: abort it. The cause, if the class does not say it, is chained."""

    txn_requires_abort: ClassVar[bool] = True


_KINDS: dict[ErrorCode, type[KafkaError]] = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: FatalTransactionError,
    ErrorCode.PRODUCER_FENCED: FatalTransactionError,
    ErrorCode.TRANSACTION_ABORTABLE: AbortableTransactionError,
}
_RESOURCES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ("topic", "--topic"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ("group", "--group"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ("the cluster", "--cluster"),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ("transactional id", "--transactional-id"),
}
"""Codes that say that a right is missing: on which resource, and the option of `partita acls` that names it."""


def class_of(code: ErrorCode, module: str) -> type[KafkaError]:
    """Make the class of this code for `module`: that of NETWORK_EXCEPTION is NetworkError."""
    words = code.name.removesuffix("_EXCEPTION").removesuffix("_ERROR").split("_")
    meaning = code.meaning[0].upper() + code.meaning[1:].rstrip(".") + "."
    fields: dict[str, Any] = {"code": code, "__doc__": meaning, "__module__": module}
    kind = _KINDS.get(code, KafkaError)
    if code in _RESOURCES:
        kind, (fields["resource"], fields["option"]) = MissingRightError, _RESOURCES[code]
    return type("".join(map(str.capitalize, words)) + "Error", (kind,), fields)


def _made_again(kind: type[E], arguments: tuple[Any, ...], attributes: dict[str, Any], cause: Any) -> E:
    """An error as it was, without a call of its constructor: that takes other things than what an error keeps."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    if cause is not None:
        error.__cause__ = cause
    return error


def _portable(value: Any) -> Any:
    """The value; in place of one that cannot be pickled, or not read back, its text, as an exception if it is one."""
    if value is None or isinstance(value, str | bytes | int):
        return value

    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return RuntimeError(f"{type(value).__name__}: {value}") if isinstance(value, BaseException) else repr(value)
    return value
