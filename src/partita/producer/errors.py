"""Errors of records and producers besides those a broker answers. All are `KafkaError`."""

from __future__ import annotations

from partita.errors import KafkaError, MessageTooLargeError, RequestTimedOutError


class DeliveryTimeoutError(RequestTimedOutError):
    """The record could not be delivered within delivery.timeout.ms. It may have been written all the same."""


class NoMetadataError(RequestTimedOutError):
    """The topic or partition did not turn up in the cluster within max.block.ms."""


class BufferExhaustedError(RequestTimedOutError):
    """The buffer stayed full for max.block.ms: records come faster than they can be sent."""


class RecordTooLargeError(MessageTooLargeError):
    """The record alone is larger than max.request.size or buffer.memory."""


class UndeliveredError(KafkaError):
    """Closing the producer left records undelivered. `count` says how many, `cause` why the last of them failed.

    Counts the records that `close` gave up, and those that failed earlier if their futures were never read.
    """

    def __init__(self, message: str, count: int = 0, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.count = count
        self.cause = cause

    def __str__(self) -> str:
        return str(self.args[0])


class ProducerClosedError(KafkaError):
    """The producer was closed before the record was sent, or `send` was called after close."""

    def __str__(self) -> str:
        return str(self.args[0])


class PurgedError(KafkaError):
    """The record was taken back by `purge`. If it was under way, it may have been written all the same."""

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def retriable(self) -> bool:
        """No: it was the caller's wish."""
        return False


class TransactionAbortedError(KafkaError):
    """The record was not sent, as its transaction was aborted before."""

    def __str__(self) -> str:
        return str(self.args[0])


class TransactionTimeoutError(RequestTimedOutError):
    """A call of a transaction did not end within max.block.ms; it continues. Repeat it to learn the outcome."""


class TransactionMisuseError(KafkaError, RuntimeError):
    """A call that does not fit the state of the transaction: `commit_transaction` before `begin_transaction`, say."""

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def retriable(self) -> bool:
        """No: the same call would fail again."""
        return False
