"""Errors of a consumer that are not a broker's error code.

All are `KafkaError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from partita.errors import KafkaError, OffsetOutOfRangeError, RebalanceInProgressError
from partita.offsets.topic_partition import TopicPartition


class ConsumerError(KafkaError):
    """An error of the client itself; no broker sent it."""

    def __str__(self) -> str:
        return Exception.__str__(self)

    @property
    def retriable(self) -> bool:
        """No: the same call would fail again."""
        return False


class IllegalStateError(ConsumerError):
    """The consumer is in no state for this call."""


class ConcurrentModificationError(ConsumerError):
    """A second thread used the consumer while the first was inside it; only `wakeup` and `done` allow that."""


class WakeupError(ConsumerError):
    """`wakeup()` was called."""


class ApiTimeoutError(ConsumerError, TimeoutError):
    """The call did not finish within its time. It may be repeated."""

    @property
    def retriable(self) -> bool:
        """Yes: the call may be repeated."""
        return True


class CommitFailedError(ConsumerError):
    """The group has moved on: these partitions may belong to another member, and nothing was committed."""


class RetriableCommitFailedError(ConsumerError):
    """An asynchronous commit failed in a way that may pass."""

    @property
    def retriable(self) -> bool:
        """Yes: the commit may be tried again."""
        return True


class RebalanceRunningError(RebalanceInProgressError):
    """A rebalance is under way: poll to finish it, then commit again."""


class NoOffsetForPartitionError(ConsumerError):
    """No committed offset, and auto.offset.reset is none: seek, or commit one."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = sorted(partitions)
        names = ", ".join(map(str, self.partitions))
        super().__init__(f"no offset is committed for {names} and auto_offset_reset is none; seek to where to start")


class OffsetsOutOfRangeError(OffsetOutOfRangeError):
    """The positions lie outside the logs, and auto.offset.reset is none."""

    def __init__(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)
        told = ", ".join(f"{tp} at {offset}" for tp, offset in sorted(self.offsets.items()))
        super().__init__(f"positions outside the log: {told}; auto_offset_reset is none, so seek")


class LogTruncationError(OffsetsOutOfRangeError):
    """The log was cut below the position (an unclean leader election); `divergent` says from where, if known."""

    def __init__(self, offsets: Mapping[TopicPartition, int], divergent: Mapping[TopicPartition, int]) -> None:
        super().__init__(offsets)
        self.divergent = dict(divergent)


class RecordDeserializationError(ConsumerError):
    """A key or value could not be deserialized. Seek past the record, unless `is_outage`.

    The position stays at the record; after `poll_arrow`, which takes records together, at the first of them.
    """

    def __init__(
        self,
        origin: str,
        tp: TopicPartition,
        offset: int,
        timestamp: int,
        raw: Mapping[str, Any],
        cause: BaseException,
        advice: str = "",
    ) -> None:
        self.origin = origin
        self.topic_partition = tp
        self.offset = offset
        self.timestamp = timestamp
        self.raw_key: bytes | None = raw["key"]
        self.raw_value: bytes | None = raw["value"]
        self.headers: list[tuple[str, bytes | None]] = list(raw["headers"])
        self.is_outage = is_outage(cause)
        """Whether the cause says nothing of the record, such as a schema registry that cannot be reached."""
        if self.is_outage:
            advice = "it is tried again by the next poll, whatever poison_policy says"
        advice = advice or f"seek to {offset + 1} to skip it, or set poison_policy"
        super().__init__(f"{origin.lower()} of {tp} at offset {offset} cannot be deserialized: {cause}; {advice}")

    @property
    def retriable(self) -> bool:
        """Yes if the cause is an outage: the next poll tries again."""
        return self.is_outage


def is_outage(cause: BaseException | None) -> bool:
    """Whether an error of a deserializer is retriable: then it says nothing about the record."""
    return bool(getattr(cause, "retriable", False))


class CorruptRecordError(ConsumerError):
    """Bytes of a partition that are no valid records. A `Consumer` stays there; seek past them to go on."""

    def __init__(
        self, tp: TopicPartition, offset: int, reason: str, advice: str = "seek to a later offset to skip it"
    ) -> None:
        self.topic_partition = tp
        self.offset = offset
        super().__init__(f"{tp} at offset {offset}: {reason}; {advice}")


class DeadLetterError(ConsumerError):
    """The dead-letter topic did not take a record.

    A `Consumer` stays at it and tries again with the next poll; a share consumer still holds it, behind its others.
    """

    def __init__(self, tp: TopicPartition, offset: int, topic: str, cause: BaseException) -> None:
        self.topic_partition = tp
        self.offset = offset
        super().__init__(
            f"{tp} at offset {offset} belongs in the dead-letter topic {topic!r}, which does not take it: {cause}; "
            f"fix that topic; a Consumer may seek to {offset + 1} to skip the record"
        )


class ProcessingError(ConsumerError):
    """The work on a record failed, as its future says (`done(record, after=future)`). The cause is attached."""

    def __init__(self, tp: TopicPartition, offset: int, cause: BaseException) -> None:
        self.topic_partition = tp
        self.offset = offset
        super().__init__(
            f"the work on {tp} at offset {offset} failed: {cause!r}; it is not committed, nor is anything behind it. "
            "Repeat it and call done(record), or call done(record) to go on without it"
        )
        self.__cause__ = cause


class RebalanceListenerError(ConsumerError):
    """A rebalance callback raised; the cause is attached. The assignment stands."""
