"""Which offsets a stream commits to its group, and what a restart makes of offsets found there.

A position may be committed once Spark has the batch that ends there in its commit log, never earlier; so the group is
a mirror that may lag behind, but never leads. Commits carry metadata `spark:<query key>:<ordinal>` by which a later
run knows its own. Never lowers a value that this query wrote. Pure:
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

from partita.spark.options import SourceOptions
from partita.spark.planning.offsets import StreamOffset, names
from partita.spark.positions import TopicPartition


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed offset of a group."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def query_key(options: SourceOptions) -> str:
    """A short name that is the same in every run: the option queryName, else a hash of what is read for whom."""
    if options.query_name:
        return options.query_name.replace(":", "_")[:100]
    return f"{crc32(repr((options.group, options.topics)).encode()):08x}"


class CommitBook:
    """What this query has committed; decides what is due."""

    def __init__(self, key: str) -> None:
        self._prefix = f"spark:{key}:"
        self._ours: dict[TopicPartition, int] = {}

    def is_ours(self, found: Committed) -> bool:
        return found.metadata.startswith(self._prefix)

    def learn(self, found: Mapping[TopicPartition, Committed]) -> None:
        """Take note of what the group holds at the start of a run."""
        self._ours.update({key: c.offset for key, c in found.items() if self.is_ours(c)})

    def due(self, proven: StreamOffset) -> dict[TopicPartition, Committed]:
        """What to commit, now that everything before the ends of `proven` is complete. Often nothing."""
        metadata = f"{self._prefix}{max(0, proven.ordinal)}"
        return {
            key: Committed(found.end, found.leader_epoch, metadata)
            for key, found in proven.ranges.items()
            if found.end > self._ours.get(key, -1)
        }

    def sent(self, accepted: Mapping[TopicPartition, Committed]) -> None:
        """The broker has these now."""
        for key, committed in accepted.items():
            self._ours[key] = max(committed.offset, self._ours.get(key, -1))

    def adopt(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Positions set by somebody else that this run follows; they count as committed."""
        self._ours.update(offsets)

    def resume(
        self, start: StreamOffset, found: Mapping[TopicPartition, Committed], *, group_decides: bool
    ) -> tuple[dict[TopicPartition, int], tuple[str, ...]]:
        """After a restart: positions that replace ends of `start`, and remarks for the log.

        With the checkpoint as authority nothing is replaced; a foreign offset is only remarked on. With the group as
        authority its offset counts, but for one of ours below `start`: then we crashed between two commits.
        """
        replaced: dict[TopicPartition, int] = {}
        foreign: list[str] = []
        for key, have in sorted(start.ranges.items()):
            there = found.get(key)
            if there is None or there.offset == have.end:
                continue
            if self.is_ours(there) and there.offset < have.end:
                continue
            if not self.is_ours(there):
                foreign.append(f"{names([key])}: group {there.offset}, checkpoint {have.end}")
            if group_decides:
                replaced[key] = there.offset
        follows = "the group is followed" if group_decides else "the checkpoint is followed"
        remarks = (
            (f"the group's offsets were set by somebody else, {follows}: {'; '.join(foreign)}",) if foreign else ()
        )
        return replaced, remarks


def starts_from_group(
    found: Mapping[TopicPartition, Committed], wanted: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Committed positions for partitions that no checkpoint knows."""
    return {key: found[key].offset for key in wanted if key in found}
