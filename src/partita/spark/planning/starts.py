"""Positions to offsets, and which records count as lost.

`resolve_start` and `resolve_end` turn the user's options into one offset for each partition; `carry_on` continues a
stream from its last offset and lists every loss: records removed or truncated, topics deleted or recreated. Whether a
loss fails the query is for the caller to decide (failOnDataLoss).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from partita.protocol.primitives import ZERO_UUID
from partita.spark.planning.offsets import Range, StreamOffset, names
from partita.spark.settings.options import TopicSelection
from partita.spark.settings.positions import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTime,
    AtTimes,
    AtWord,
    Position,
    TopicPartition,
)


class SourceError(Exception):
    """A read that cannot be planned as asked."""


class DataLossError(SourceError):
    """Records that should have been read are gone, and failOnDataLoss is true. The message starts with `LossReason`."""


class LossReason(StrEnum):
    """Why records are gone. The value stands in brackets before each loss that a message names."""

    REMOVED = "REMOVED"
    TRUNCATED = "TRUNCATED"
    DELETED = "DELETED"
    RECREATED = "RECREATED"

    def because(self, text: str) -> str:
        """The loss as messages and logs name it."""
        return f"[{self.value}] {text}"


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition as the cluster reports it; `latest` is the last stable offset for read_committed."""

    earliest: int
    latest: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The selected partitions at one moment, and the ids of their topics."""

    partitions: Mapping[TopicPartition, PartitionFacts]
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resumption:
    """The ranges that each partition has to offer from its position; `losses` describe lost records."""

    ranges: Mapping[TopicPartition, Range]
    losses: tuple[str, ...] = ()


def missing(selection: TopicSelection, view: ClusterView) -> list[str]:
    """Return named topics or partitions that do not exist: topics, or partitions of an assign."""
    topics = {topic for topic, _ in view.partitions}
    lacking = [name for name in selection.names if name not in topics]
    return lacking + [f"{topic}-{p}" for topic, p in selection.assigned if (topic, p) not in view.partitions]


def times_wanted(position: Position | None, view: ClusterView) -> dict[TopicPartition, int]:
    """The timestamps that have to be looked up for this position."""
    if isinstance(position, AtTime):
        return dict.fromkeys(view.partitions, position.timestamp_ms)
    if isinstance(position, AtTimes):
        _check_complete("the ...ByTimestamp option", position.timestamps, view)
        return dict(position.timestamps)
    return {}


def resolve_start(
    position: Position,
    view: ClusterView,
    *,
    found_by_time: Mapping[TopicPartition, int | None],
    committed: Mapping[TopicPartition, int],
    time_or_latest: bool,
) -> dict[TopicPartition, int]:
    """One start offset for each partition of the view. Raises SourceError where there is none."""
    if isinstance(position, AtTime | AtTimes):
        none = [key for key in view.partitions if found_by_time.get(key) is None]
        if none and not (time_or_latest or (isinstance(position, AtTime) and position.ago)):
            raise SourceError(
                f"no record at or after the starting timestamp in {names(none)}; "
                f"startingOffsetsByTimestampStrategy=latest starts such partitions at their end"
            )
        return {key: _or(found_by_time.get(key), facts.latest) for key, facts in view.partitions.items()}
    if isinstance(position, AtOffsets):
        _check_complete("startingOffsets", position.offsets, view)
        starts = {key: _symbolic(offset, view.partitions[key]) for key, offset in position.offsets.items()}
        for key, start in sorted(starts.items()):
            if start > view.partitions[key].latest:
                end = view.partitions[key].latest
                raise SourceError(f"startingOffsets {start} of {names([key])} lies after its end, offset {end}")
        return starts
    if position.word == "committed":
        return {key: committed.get(key, facts.earliest) for key, facts in view.partitions.items()}
    return {
        key: facts.latest if position.word == "latest" else facts.earliest for key, facts in view.partitions.items()
    }


def resolve_end(
    position: Position, view: ClusterView, found_by_time: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, int]:
    """One end offset for each partition of the view; it may lie beyond the real end."""
    if isinstance(position, AtOffsets):
        _check_complete("endingOffsets", position.offsets, view)
        return {key: _symbolic(offset, view.partitions[key]) for key, offset in position.offsets.items()}
    return {key: _or(found_by_time.get(key), facts.latest) for key, facts in view.partitions.items()}


def carry_on(
    start: StreamOffset,
    view: ClusterView,
    selection: TopicSelection,
    *,
    new_starts: Mapping[TopicPartition, int],
    diverged_at: Mapping[TopicPartition, int],
) -> Resumption:
    """Return everything there is to read after `start`, for each partition of the view.

    Partitions that `start` lacks begin at `new_starts`, else at their earliest offset. `diverged_at` is the first
    offset that no longer belongs to the leader epoch of `start` (OffsetForLeaderEpoch). A selected partition that the
    view lacks is a loss and keeps its place, empty: if it comes back, it goes on from there.
    """
    ranges: dict[TopicPartition, Range] = {}
    losses: list[str] = []
    gone = sorted(start.ranges.keys() - view.partitions.keys())
    for key in gone:
        if selection.wants_partition(key):
            ranges[key] = start.ranges[key].emptied()
    if gone:
        was, now = ("was", "is") if len(gone) == 1 else ("were", "are")
        why = f"{was} deleted or {now} no longer subscribed"
        if selection.pattern is not None:
            why += ", or this user may no longer DESCRIBE the topic"  # a pattern sees only what is allowed
        losses.append(LossReason.DELETED.because(f"{names(gone)} {why}"))
    for key, facts in sorted(view.partitions.items()):
        if key not in start.ranges:
            begin = min(max(new_starts.get(key, facts.earliest), facts.earliest), facts.latest)
        elif was_recreated(key[0], start, view):
            begin = facts.earliest
            losses.append(
                LossReason.RECREATED.because(
                    f"topic {key[0]} was deleted and recreated (its id changed); {names([key])} starts again"
                )
            )
        else:
            begin = _adjusted(key, start.ranges[key].end, facts, diverged_at.get(key), losses)
        ranges[key] = Range(begin=begin, end=max(begin, facts.latest), leader_epoch=facts.leader_epoch)
    return Resumption(ranges, tuple(losses))


def until(
    targets: Mapping[TopicPartition, int], ranges: Mapping[TopicPartition, Range], start: StreamOffset
) -> dict[TopicPartition, Range]:
    """The ranges of an AvailableNow run, cut at its targets.

    A partition without a target is left for the next run: it stands where it goes on if `start` has it, which is the
    beginning in a topic that was recreated meanwhile; else it is left out.
    """
    cut: dict[TopicPartition, Range] = {}
    for key, found in ranges.items():
        if key in targets:
            cut[key] = replace(found, end=max(found.begin, min(found.end, targets[key])))
        elif key in start.ranges:
            cut[key] = replace(found, end=found.begin)
    return cut


def was_recreated(topic: str, start: StreamOffset, view: ClusterView) -> bool:
    """Whether the topic's id differs from the one in the offset. An unknown id never differs."""
    before, now = start.topic_ids.get(topic, ZERO_UUID), view.topic_ids.get(topic, ZERO_UUID)
    return ZERO_UUID not in (before, now) and before != now


def looks_wrong(start: StreamOffset, view: ClusterView, vanished: Collection[TopicPartition] = ()) -> bool:
    """Whether the view contradicts the offset in a way that a second look may explain, as while leaders move.

    `vanished` are partitions that repeated looks did not find, so their absence is not new.
    """
    return any(
        key not in vanished
        if key not in view.partitions
        else found.end > view.partitions[key].latest and not was_recreated(key[0], start, view)
        for key, found in start.ranges.items()
    )


def _adjusted(key: TopicPartition, begin: int, facts: PartitionFacts, diverged: int | None, losses: list[str]) -> int:
    if begin < facts.earliest:
        losses.append(
            LossReason.REMOVED.because(
                f"offsets {begin} to {facts.earliest} of {names([key])} were removed before they were read"
            )
        )
        return facts.earliest
    end = facts.latest if diverged is None else min(facts.latest, diverged)
    if begin > end:
        losses.append(
            LossReason.TRUNCATED.because(f"{names([key])} was truncated: its end was {begin} and is now {end}")
        )
        return max(end, facts.earliest)
    return begin


def _check_complete(what: str, given: Mapping[TopicPartition, int], view: ClusterView) -> None:
    if given.keys() != view.partitions.keys():
        lacking, odd = view.partitions.keys() - given.keys(), given.keys() - view.partitions.keys()
        parts = [f"missing: {names(lacking)}"] * bool(lacking) + [f"not among them: {names(odd)}"] * bool(odd)
        raise SourceError(f"{what} must name exactly the partitions that are read; {'; '.join(parts)}")


def _symbolic(offset: int, facts: PartitionFacts) -> int:
    return {LATEST: facts.latest, EARLIEST: facts.earliest}.get(offset, offset)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


DEFAULT_BATCH_START: Position = AtWord("earliest")
DEFAULT_STREAM_START: Position = AtWord("latest")
DEFAULT_END: Position = AtWord("latest")
