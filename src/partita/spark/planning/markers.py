"""Markers by which an exactly-once sink knows the rows already written: offsets of groups without members. Pure.

A task commits its rows and its marker in one transaction, so the marker is there if and only if the rows are. The
marker of Spark partition p is the offset of group `partita-NAME-p`: the batch's number plus one, with the number of
rows and a digest of them in its metadata. After a batch the driver moves the offset of group `partita-NAME`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

PREFIX = "partita-"
_METADATA = re.compile(r"v1:(\d+):([0-9a-f]{16})")
_MASK = (1 << 64) - 1


class SinkRefused(RuntimeError):
    """The rows of a batch must not be written: some of them are written already, or may be."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Number of rows, and the sum of their hashes: the same in any order and however Spark cuts them into batches."""

    rows: int = 0
    total: int = 0

    def plus(self, rows: int, total: int) -> Digest:
        """With more rows."""
        return Digest(self.rows + rows, (self.total + total) & _MASK)


@dataclass(frozen=True, slots=True)
class Marker:
    """The last batch that a task, or the driver, has finished. The driver's has no digest."""

    batch: int
    digest: Digest | None = None

    @property
    def offset(self) -> int:
        """The offset to commit."""
        return self.batch + 1

    @property
    def metadata(self) -> str:
        """The metadata to commit with the offset."""
        return "" if self.digest is None else f"v1:{self.digest.rows}:{self.digest.total:016x}"

    @classmethod
    def of(cls, offset: int, metadata: str) -> Marker:
        """Return the marker of a committed offset. Raises SinkRefused for metadata of another application."""
        if not metadata:
            return cls(offset - 1)
        found = _METADATA.fullmatch(metadata)
        if found is None:
            raise SinkRefused(f"the marker {metadata!r} is not one of this version of the sink; use a new sinkName")
        return cls(offset - 1, Digest(int(found[1]), int(found[2], 16)))


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Identity of a task and its batch."""

    sink: str
    batch: int
    partition: int

    @property
    def name(self) -> str:
        """The transactional id of the task, and the group of its marker."""
        return f"{driver_group(self.sink)}-{self.partition}"

    def __str__(self) -> str:
        return f"batch {self.batch}, partition {self.partition} of sink {self.sink!r}"


def driver_group(sink: str) -> str:
    """The group whose offset the driver moves when a batch is complete."""
    return f"{PREFIX}{sink}"


class Duty(Enum):
    """The duty of a task towards its rows."""

    WRITE = "write them"
    COMPARE = "they are written already; make sure that they are the same"


def duty_of(place: TaskPlace, own: Marker | None, driver: Marker | None, *, starts_with: int | None) -> Duty:
    """Return the duty that follows from the markers. `starts_with`: the user's first batch of this sink.

    Raises SinkRefused where writing could write twice.
    """
    newest = max((marker.batch for marker in (own, driver) if marker is not None), default=-1)
    if newest > place.batch:
        raise SinkRefused(
            f"{place}: batch {newest} is written already. The checkpoint is older than the sink, or it is another one: "
            "restore the newer checkpoint, or give the query a new sinkName if writing again is what you want"
        )
    if own is not None and own.batch == place.batch:
        return Duty.COMPARE
    if driver is not None and driver.batch == place.batch:
        raise SinkRefused(
            f"{place}: the batch is complete, and this task has no part in it. The query was planned differently when "
            "it ran first; give it the number of partitions that it had then"
        )
    if place.batch > 0 and newest < 0 and place.batch != starts_with:
        raise SinkRefused(
            f"{place}: no marker of an earlier batch is there. They expired (offsets.retention.minutes), or this sink "
            f"is new to the checkpoint: check what is written, then set sinkStart={place.batch}"
        )
    return Duty.WRITE


def check_same(place: TaskPlace, own: Marker, offered: Digest) -> None:
    """Raise SinkRefused unless these rows are the ones that were written."""
    if own.digest == offered:
        return
    written = "an unknown number of" if own.digest is None else f"{own.digest.rows}"
    raise SinkRefused(
        f"{place}: {written} rows are written already, and the {offered.rows} rows offered now are not the same. The "
        "query is not deterministic, or was planned differently when it ran first"
    )


def check_empty(place: TaskPlace, own: Marker | None, driver: Marker | None, *, starts_with: int | None) -> None:
    """Raise SinkRefused where the markers of a task without rows do not agree with writing nothing."""
    if own is not None and own.batch == place.batch:
        check_same(place, own, Digest())
    newest = max((marker.batch for marker in (own, driver) if marker is not None), default=-1)
    if newest > place.batch:
        duty_of(place, own, driver, starts_with=starts_with)
