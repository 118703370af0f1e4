"""The kinds of errors a caller meets; `partita.errors` has a class for every error code, each of one of these kinds."""

from __future__ import annotations

from typing import ClassVar

from partita.protocol.error_codes import ErrorCode


class KafkaError(Exception):
    """What went wrong, by Kafka's own code. `retriable`: repeating may help; `txn_requires_abort`: an abort helps."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    fatal: ClassVar[bool] = False
    txn_requires_abort: ClassVar[bool] = False

    def __init_subclass__(cls, code: ErrorCode | None = None) -> None:
        if code is not None:
            cls.code = code

    @property
    def retriable(self) -> bool:
        """True if the same call may succeed when it is repeated."""
        return self.code.retriable

    def __str__(self) -> str:
        is_wrapped = self.code is ErrorCode.UNKNOWN_SERVER_ERROR and (self.fatal or self.txn_requires_abort)
        text = super().__str__() or self.code.meaning
        return text if is_wrapped else f"{self.code.name}: {text}"


class MissingRightError(KafkaError):
    """An ACL is missing. Where the client knows which, `operation` and `names` name it, and `user` who lacks it."""

    resource: ClassVar[str] = ""
    option: ClassVar[str] = ""
    """How `partita acls add` names the resource."""

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
