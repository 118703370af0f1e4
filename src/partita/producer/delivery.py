# cython: freethreading_compatible=True
"""One record's way to the broker, as its sender sees it.

Compiled by Cython when a compiler is there (its types: delivery.pxd); the same file runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.producer.batch import Batch, NewRecord, RecordMetadata

_NONE: list[Callable[[], object]] = []


class Delivery:
    """A record's batch, once it is in one, and its place there.

    `record` is the record sent, while it has no batch; `own_callbacks` are called at the end of a record that never
    gets one. The batch may be divided meanwhile, so it is asked where the record is now. `owner` belongs to the code
    that hands deliveries out, and `is_heard` says whether a failure was read.
    """

    __slots__ = (
        "batch", "error", "index", "is_heard", "key_size", "own_callbacks", "owner", "record", "timestamp",
        "value_size",
    )  # fmt: skip

    def __init__(self, record: NewRecord | None = None, owner: object = None) -> None:
        self.record = record
        self.owner = owner
        self.batch: Batch | None = None
        self.index = 0
        self.error: Exception | None = None
        self.is_heard = False
        self.own_callbacks: list[Callable[[], object]] = _NONE
        if record is not None:
            self.timestamp = record.timestamp
            self.key_size = -1 if record.key is None else len(record.key)
            self.value_size = -1 if record.value is None else len(record.value)

    def done(self) -> bool:
        """True once the record was delivered or has failed."""
        if self.error is not None:
            return True
        batch = self.batch
        return batch is not None and (batch.find(self.index)[0] if batch.moved else batch).is_done

    def on_done(self, call: Callable[[], object]) -> None:
        """Have `call` made at the end."""
        if self.batch is not None:
            batch, index = self.batch.find(self.index)
            batch.callbacks.append((index, call))
        else:
            self.own_callbacks = [*self.own_callbacks, call]

    def failure(self) -> Exception | None:
        """Why the record was not delivered, if it is done and was not."""
        return self.error or (self.batch.find(self.index)[0].error if self.batch is not None else None)

    def placed(self, batch: Batch, index: int) -> None:
        """The record has got its place in a batch, which holds its bytes from now on."""
        self.batch, self.index, self.record = batch, index, None
        if self.own_callbacks:
            batch.callbacks += [(index, call) for call in self.own_callbacks]
            self.own_callbacks = _NONE

    def metadata(self) -> RecordMetadata:
        """Place of the record, once it was delivered."""
        assert self.batch is not None, "only a delivered record has metadata"
        batch, index = self.batch.find(self.index)
        return RecordMetadata(
            batch.topic,
            batch.partition,
            batch.base_offset + index if batch.base_offset >= 0 else -1,
            batch.log_append_time_ms if batch.log_append_time_ms >= 0 else self.timestamp,
            self.key_size,
            self.value_size,
        )
