# cython: freethreading_compatible=True
"""One record's way to the broker, as whoever sent it sees it.

Compiled by Cython when a compiler is there (its types: delivery.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.producer.batch import Batch, NewRecord, RecordMetadata


class Delivery:
    """A record's batch, once it is in one, and its place there.

    `record` is what was sent, for as long as it has no batch. `owner` belongs to whoever hands deliveries out, and
    `is_heard` says whether somebody has looked at a failure.
    """

    __slots__ = (
        "_own_callbacks",
        "batch",
        "error",
        "index",
        "is_heard",
        "key_size",
        "owner",
        "record",
        "timestamp",
        "value_size",
    )

    def __init__(self, record: NewRecord | None = None, owner: object = None) -> None:
        self.record = record
        self.owner = owner
        self.batch: Batch | None = None
        self.index = 0
        self.error: Exception | None = None
        self.is_heard = False
        self._own_callbacks: list[Callable[[], object]] | None = None
        if record is not None:
            self.timestamp = record.timestamp
            self.key_size = -1 if record.key is None else len(record.key)
            self.value_size = -1 if record.value is None else len(record.value)

    def done(self) -> bool:
        """True once the record was delivered or has failed."""
        return self.error is not None or (self.batch is not None and self.batch.is_done)

    @property
    def callbacks(self) -> list[Callable[[], object]]:
        """What is called at the end; shared by the whole batch once the record is in one."""
        if self.batch is not None:
            return self.batch.callbacks
        if self._own_callbacks is None:
            self._own_callbacks = []
        return self._own_callbacks

    def failure(self) -> Exception | None:
        """Why the record was not delivered, if it is done and was not."""
        return self.error or (self.batch.error if self.batch is not None else None)

    def placed(self, batch: Batch, index: int) -> None:
        """The record has got its place in a batch, which holds its bytes from now on."""
        self.batch, self.index, self.record = batch, index, None
        if self._own_callbacks:
            batch.callbacks += self._own_callbacks
            self._own_callbacks = None

    def metadata(self) -> RecordMetadata:
        """Where the record is; only once it was delivered."""
        batch = self.batch
        assert batch is not None, "only a delivered record has metadata"
        return RecordMetadata(
            batch.topic,
            batch.partition,
            batch.base_offset + self.index if batch.base_offset >= 0 else -1,
            batch.log_append_time_ms if batch.log_append_time_ms >= 0 else self.timestamp,
            self.key_size,
            self.value_size,
        )
