"""Requirements of a topology: partition counts of its internal topics, and the number of its tasks.

Repartition topics get as many partitions as the subtopologies that write them read; those that are read together get
the same number; a changelog gets that of its subtopology. (Kafka: InternalTopicManager, RepartitionTopics,
CopartitionedTopicsEnforcer, ChangelogTopics, release 4.4.0.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

from partita.group.requests import InternalTopic
from partita.group.state.topics import TopicImage
from partita.protocol.messages.streams_group_log import StreamsGroupTopologyValue, StreamsSubtopology, StreamsTopicInfo


class Status(IntEnum):
    """Codes of what a heartbeat's answer says of the group."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class InvalidTopology(Exception):
    """No topics could satisfy the topology; the text is for the member."""


class Configured(NamedTuple):
    """A subtopology of a topology whose topics fit."""

    tasks: int
    source_topics: Sequence[str]
    repartition_sources: Mapping[str, InternalTopic]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """Whether it has state, so that standbys make sense."""
        return bool(self.changelogs)


class Fit(NamedTuple):
    """How a topology fits the topics. `status` and `text` say what is amiss; None: its tasks can be assigned."""

    subtopologies: Mapping[str, Configured] | None
    missing: Mapping[str, InternalTopic]
    """Internal topics to create."""
    status: Status | None = None
    text: str = ""


class _Amiss(Exception):
    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status


def required_topics(topology: StreamsGroupTopologyValue) -> set[str]:
    """Return the names of all topics that are read or hold state."""
    return {
        name
        for sub in topology.subtopologies
        for name in (*sub.source_topics, *_names(sub.repartition_source_topics), *_names(sub.state_changelog_topics))
    }


def fit(topology: StreamsGroupTopologyValue, image: TopicImage) -> Fit:
    """Compare the topology with the topics. Raises InvalidTopology."""
    subs = sorted(topology.subtopologies, key=lambda sub: sub.subtopology_id)
    for sub in subs:
        _check_copartition_groups(sub)
    try:
        missing = sorted({name for sub in subs for name in sub.source_topics if image.get(name) is None})
        if missing:
            raise _Amiss(Status.MISSING_SOURCE_TOPICS, f"Source topics {summary(missing)} are missing.")
        counts = _Counts(subs, image)
        configured = {sub.subtopology_id: counts.configured(sub) for sub in subs}
        wanted = _missing(configured.values(), image)
    except _Amiss as amiss:
        return Fit(None, {}, amiss.status, str(amiss))
    if wanted:
        text = f"Internal topics are missing: {summary(sorted(wanted))}"
        return Fit(configured, wanted, Status.MISSING_INTERNAL_TOPICS, text)
    return Fit(configured, {})


def summary(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} additional topics" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _check_copartition_groups(sub: StreamsSubtopology) -> None:
    for group in sub.copartition_groups:
        of_sources = ("source", group.source_topics, len(sub.source_topics))
        of_repartitions = ("repartition source", group.repartition_source_topics, len(sub.repartition_source_topics))
        for what, indexes, count in (of_sources, of_repartitions):
            wrong = next((index for index in indexes if not 0 <= index < count), None)
            if wrong is not None:
                raise InvalidTopology(
                    f"A copartition group of subtopology {sub.subtopology_id} names {what} topic {wrong}; it has "
                    f"{count}, counted from 0."
                )


def _names(infos: Iterable[StreamsTopicInfo]) -> list[str]:
    return [info.name for info in infos]


def _missing(subs: Iterable[Configured], image: TopicImage) -> dict[str, InternalTopic]:
    wanted: dict[str, InternalTopic] = {}
    for sub in subs:
        for topic in (*sub.repartition_sources.values(), *sub.changelogs.values()):
            found = image.get(topic.name)
            if found is None:
                wanted[topic.name] = topic
            elif found.partitions != topic.partitions:
                raise _Amiss(
                    Status.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions}, "
                    f"found {found.partitions}",
                )
    return wanted


class _Counts:
    """Decides how many partitions the internal topics of a topology have."""

    def __init__(self, subs: Sequence[StreamsSubtopology], image: TopicImage) -> None:
        self._subs = subs
        self._image = image
        self._decided: dict[str, int] = {}
        self._decide_repartition_topics()
        self._enforce_copartitioning()
        for sub in subs:
            tasks = self._tasks(sub)
            self._decided.update(dict.fromkeys(_names(sub.state_changelog_topics), tasks))

    def configured(self, sub: StreamsSubtopology) -> Configured:
        """Return the subtopology with the counts."""
        return Configured(
            self._tasks(sub),
            sub.source_topics,
            {info.name: self._internal(info) for info in sub.repartition_source_topics},
            {info.name: self._internal(info) for info in sub.state_changelog_topics},
        )

    def _internal(self, info: StreamsTopicInfo) -> InternalTopic:
        settings = {each.key: each.value for each in info.topic_configs}
        partitions = info.partitions or self._decided[info.name]
        return InternalTopic(info.name, partitions, info.replication_factor, settings)

    def _partitions(self, name: str) -> int | None:
        """Return the partitions of a topic that exists, else what is decided."""
        found = self._image.get(name)
        return self._decided.get(name) if found is None else found.partitions

    def _tasks(self, sub: StreamsSubtopology) -> int:
        names = (*sub.source_topics, *_names(sub.repartition_source_topics))
        counts = [count for name in names if (count := self._partitions(name)) is not None]
        if not counts:
            raise InvalidTopology(f"No source topics found for subtopology {sub.subtopology_id}")
        return max(counts)

    def _decide_repartition_topics(self) -> None:
        """Decide what is fixed, then what is written; all that is read must be one of both."""
        decided = self._decided
        for sub in self._subs:
            decided.update((info.name, info.partitions) for info in sub.repartition_source_topics if info.partitions)
        self._follow_sinks()
        if any(name not in decided for sub in self._subs for name in sub.repartition_sink_topics):
            raise InvalidTopology(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                "topology that cannot be resolved."
            )
        if any(info.name not in decided for sub in self._subs for info in sub.repartition_source_topics):
            raise InvalidTopology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source "
                "topic is never used as a sink topic."
            )

    def _follow_sinks(self) -> None:
        """Go over the subtopologies, again and again, each as soon as it reads a topic whose count is known.

        The order decides, since one may read what several write. A heap of (pass, position) has only those that can go
        on: a long chain in the wrong order would otherwise need as many passes as it has links.
        """
        readers: dict[str, list[int]] = {}
        for position, sub in enumerate(self._subs):
            for info in sub.repartition_source_topics:
                readers.setdefault(info.name, []).append(position)
        ready = [(0, position) for position, sub in enumerate(self._subs) if self._read_by(sub) is not None]
        known = {position for _, position in ready}
        while ready:
            number, position = heappop(ready)
            count = self._read_by(self._subs[position])
            assert count is not None, "it is here because it reads a topic whose count is known"
            for name in self._subs[position].repartition_sink_topics:
                if name in self._decided:
                    continue
                self._decided[name] = count
                for reader in readers.get(name, ()):
                    if reader not in known:
                        known.add(reader)
                        heappush(ready, (number + (reader < position), reader))

    def _read_by(self, sub: StreamsSubtopology) -> int | None:
        repartition = (self._decided.get(info.name) for info in sub.repartition_source_topics)
        external = (self._partitions(name) for name in sub.source_topics)
        return max((count for count in (*repartition, *external) if count is not None), default=None)

    def _enforce_copartitioning(self) -> None:
        infos = [info for sub in self._subs for info in sub.repartition_source_topics]
        is_fixed: dict[str, bool] = {}
        for info in infos:
            is_fixed[info.name] = is_fixed.get(info.name, False) or bool(info.partitions)
        fixed_counts = {self._partitions(name) or 0 for name, fixed in is_fixed.items() if fixed}
        for sub in self._subs:
            for group in sub.copartition_groups:
                names = {sub.source_topics[index] for index in group.source_topics}
                names |= {sub.repartition_source_topics[index].name for index in group.repartition_source_topics}
                if names:
                    self._decided.update(self._enforced(names, is_fixed, fixed_counts))

    def _enforced(self, names: set[str], is_fixed: Mapping[str, bool], fixed_counts: set[int]) -> dict[str, int]:
        """Give repartition topics that are read together one number: that of the topics with a fixed one."""
        counts: dict[str, int] = {}
        for name in sorted(names):
            count = self._partitions(name)
            assert count is not None, f"{name} has no partitions yet"  # sources exist, repartition topics are decided
            counts[name] = count
        internal = {name: count for name, count in counts.items() if name in is_fixed}
        if len(internal) < len(counts):
            wanted = _same({name: count for name, count in counts.items() if name not in internal})
        elif fixed_counts:
            # Kafka compares all topics with a fixed number, not only those of this group.
            if len(fixed_counts) > 1:
                raise _differ(internal)
            (wanted,) = fixed_counts
        else:
            wanted = max(internal.values())
        for name, count in internal.items():
            if is_fixed[name] and count != wanted:
                text = (
                    f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions "
                    f"[{wanted}] of the source topic."
                )
                raise _Amiss(Status.INCORRECTLY_PARTITIONED_TOPICS, text)
        return dict.fromkeys(internal, wanted)


def _same(counts: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        raise _differ(counts)
    return next(iter(counts.values()))


def _differ(counts: Mapping[str, int]) -> _Amiss:
    listed = ", ".join(f"{name}={count}" for name, count in sorted(counts.items()))
    text = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
    return _Amiss(Status.INCORRECTLY_PARTITIONED_TOPICS, text)
