"""The offset of a stream: its JSON form, canonical and complete in itself.

`{"v":1,"t":{"<topic>":{"<partition>":[begin,end,leaderEpoch]}},"i":{"<topic>":"<id>"},"n":<ordinal>}`, topics and
numeric partitions sorted. Spark compares offsets as text, so the same offset must always give the same text; and the
end of a batch holds its own begin, so a logged batch can be planned again whatever happened to the group meanwhile.
`i` holds topic ids, to recognise a topic that was deleted and recreated; `n` counts batches with data; `g`, the member
epoch at planning, is there only for group members; `s` is how many records share a task of this batch, where the
cores of the session decided it and not the options alone; `d` says since when the topics of a pattern that the cluster
no longer shows are missing. The offsets of Spark's own Kafka connector,
`{"<topic>":{"<partition>":<end>}}`, are read too, so that its checkpoints can be continued.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from partita.protocol.primitives import ZERO_UUID
from partita.spark.settings.positions import TopicPartition

FORMAT_VERSION = 1
PARTITIONS_WARNING = 10_000
"""Above this many partitions the offset of each batch exceeds about 250 KB."""


class OffsetFormatError(ValueError):
    """An offset in the checkpoint is not one of ours, or comes from a newer release."""


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition in one batch: `begin` included, `end` not. Equal when there is nothing to read."""

    begin: int
    end: int
    leader_epoch: int = -1

    @property
    def size(self) -> int:
        """Number of offsets it spans."""
        return max(0, self.end - self.begin)

    def emptied(self) -> Range:
        """The same position with nothing to read."""
        return replace(self, begin=self.end)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The end of one batch, with the begin of the same batch. `ordinal` is -1 before the first batch with data."""

    ranges: Mapping[TopicPartition, Range]
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    ordinal: int = -1
    member_epoch: int | None = None
    shared_records: int | None = None
    gone_since_ms: Mapping[str, int] = field(default_factory=dict)

    def with_ends(self, ends: Mapping[TopicPartition, int]) -> StreamOffset:
        """The same offset with other ends for some of its partitions."""
        moved = {key: replace(self.ranges[key], end=end) for key, end in ends.items() if key in self.ranges}
        return replace(self, ranges={**self.ranges, **moved})


def encode(offset: StreamOffset) -> dict[str, Any]:
    """The offset as the dict that Spark writes as JSON text; equal offsets give equal text."""
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), found in sorted(offset.ranges.items()):
        topics.setdefault(topic, {})[str(partition)] = [found.begin, found.end, found.leader_epoch]
    document: dict[str, Any] = {"v": FORMAT_VERSION, "t": topics}
    ids = {t: _id_text(offset.topic_ids[t]) for t in topics if offset.topic_ids.get(t, ZERO_UUID) != ZERO_UUID}
    if ids:
        document["i"] = ids
    gone = {topic: offset.gone_since_ms[topic] for topic in topics if topic in offset.gone_since_ms}
    if gone:
        document["d"] = gone
    if offset.ordinal >= 0:
        document["n"] = offset.ordinal
    if offset.member_epoch is not None:
        document["g"] = offset.member_epoch
    if offset.shared_records is not None:
        document["s"] = offset.shared_records
    return document


def is_foreign(document: Mapping[str, Any]) -> bool:
    """Whether the offset was written by Spark's own Kafka connector: ends only, no begins, epochs or ids."""
    return bool(document) and all(
        isinstance(parts, Mapping) and all(isinstance(end, int) for end in parts.values())
        for parts in document.values()
    )


def decode(document: Mapping[str, Any]) -> StreamOffset:
    """Read an offset of `encode` or of Spark's connector. Raises OffsetFormatError for anything else."""
    if is_foreign(document):
        return _decode_foreign(document)
    version = document.get("v")
    if version != FORMAT_VERSION:
        raise OffsetFormatError(
            f"the checkpoint holds an offset of format {version!r}; this release reads format {FORMAT_VERSION} and "
            f"the offsets of Spark's Kafka connector: use the release that wrote it, or a new checkpointLocation"
        )
    try:
        ranges = {
            (topic, int(partition)): Range(*entry)
            for topic, partitions in document["t"].items()
            for partition, entry in partitions.items()
        }
        ids = {topic: _id_bytes(text) for topic, text in document.get("i", {}).items()}
        gone = dict(document.get("d", {}))
        return StreamOffset(ranges, ids, document.get("n", -1), document.get("g"), document.get("s"), gone)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OffsetFormatError(f"the checkpoint holds a damaged offset: {json.dumps(document)[:200]}") from error


def _decode_foreign(document: Mapping[str, Any]) -> StreamOffset:
    try:
        ends = {(topic, int(p)): int(end) for topic, parts in document.items() for p, end in parts.items()}
    except ValueError as error:
        raise OffsetFormatError(f"the checkpoint holds a damaged offset: {json.dumps(document)[:200]}") from error
    return StreamOffset({key: Range(begin=end, end=end) for key, end in ends.items()})


def names(partitions: Iterable[TopicPartition]) -> str:
    """topic-partition names for a message, sorted, at most twenty."""
    every = [f"{topic}-{partition}" for topic, partition in sorted(partitions)]
    return ", ".join(every[:20]) + (f" and {len(every) - 20} more" if len(every) > 20 else "")


def _id_text(topic_id: bytes) -> str:
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def _id_bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "==")
