"""Offsets to commit, in the forms that consumers commit and transactional producers send, checked.

What a poll returned and a record are known by their attributes, since producers take them without consumers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.wording import unsendable

T = TypeVar("T")
OFFSET_MAX, PARTITION_MAX = 2**63 - 1, 2**31 - 1


@runtime_checkable
class Polled(Protocol):
    """Records of a poll: `ConsumerRecords`."""

    @property
    def next_offsets(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The offset behind the last record of each partition."""


@runtime_checkable
class Passed(Protocol):
    """One record, behind which a group goes on: `ConsumerRecord`."""

    @property
    def topic(self) -> str:
        """The name of its topic."""

    @property
    def partition(self) -> int:
        """The number of its partition."""

    @property
    def offset(self) -> int:
        """Its place there."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of its batch; -1 if it is unknown."""


Committable: TypeAlias = Mapping[tuple[str, int], OffsetAndMetadata | int] | Polled | Passed


def offsets(given: Committable | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
    """Return the offsets to commit, by partition. Raises TypeError and ValueError, saying what is expected."""
    if given is None:
        return None
    if isinstance(given, Polled):
        return dict(given.next_offsets)
    if isinstance(given, Passed):
        tp = TopicPartition(given.topic, given.partition)
        return {tp: OffsetAndMetadata(given.offset + 1, given.leader_epoch)}
    if not isinstance(given, Mapping):
        raise TypeError(
            "commit takes a dict such as {('orders', 0): 42}, a record, or what a poll returned, "
            f"not {type(given).__name__}"
        )
    wanted = {
        tp: at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
        for tp, at in by_partition(given, "commit", "offsets").items()
    }
    for tp, at in wanted.items():
        if isinstance(at.offset, bool) or not isinstance(at.offset, int):
            raise TypeError(f"the offset to commit for {tp} must be a whole number, not {at.offset!r}")
        if not 0 <= at.offset <= OFFSET_MAX:
            bound = f"at most {OFFSET_MAX}" if at.offset > 0 else "0 or more"
            raise ValueError(f"cannot commit offset {at.offset} for {tp}; offsets are {bound}")
        if not isinstance(at.leader_epoch, int) or not isinstance(at.metadata, str):
            raise TypeError(f"OffsetAndMetadata takes an offset, a leader epoch and text, in this order, not {at!r}")
        if reason := unsendable(at.metadata):
            raise ValueError(f"the metadata to commit for {tp} {reason}")
    return wanted


def partition(given: tuple[str, int], call: str) -> TopicPartition:
    """The partition meant. Raises TypeError for anything but a (topic, partition) pair, ValueError for what is none."""
    if not is_pair(given):
        raise TypeError(f"{call} takes a (topic, partition) pair such as ('orders', 0), not {given!r}")
    topic, index = given
    if not isinstance(topic, str) or not topic.strip():
        raise ValueError(f"topic names must be text that is not blank, not {topic!r}")
    if not 0 <= index <= PARTITION_MAX:
        bound = f"at most {PARTITION_MAX}" if index > 0 else "0 or more"
        raise ValueError(f"a partition is {bound}, not {index} (of {topic})")
    return TopicPartition(topic, index)


def by_partition(given: Mapping[tuple[str, int], T], call: str, what: str) -> dict[TopicPartition, T]:
    """A mapping by partition. Raises TypeError, saying that its values are `what`."""
    if not isinstance(given, Mapping) or not all(map(is_pair, given)):
        raise TypeError(f"{call} takes a dict from (topic, partition) pairs to {what}, not {given!r}")
    return {partition(tp, call): value for tp, value in given.items()}


def is_pair(one: object) -> bool:
    """Whether this could be a topic with the number of a partition."""
    return isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], int) and not isinstance(one[1], bool)
