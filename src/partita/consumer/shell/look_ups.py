"""What a consumer asks the cluster without reading: offsets by time, both ends of partitions, topics.

A part of `AsyncConsumer`, whose shell and core it uses. (consumer.md 2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from partita.consumer.core import ConsumerCore
from partita.consumer.request import Operation
from partita.consumer.shell.driver import ConsumerShell
from partita.consumer.topic_partition import OffsetAndTimestamp, TopicPartition
from partita.errors import InvalidTopicError, error_for
from partita.protocol.error_codes import ErrorCode
from partita.protocol.metadata_view import TopicView

Partitions = Iterable[tuple[str, int]]
_LEGAL_ERRORS = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class LookUps:
    """Calls that leave subscription, positions and group alone."""

    _shell: ConsumerShell
    _core: ConsumerCore

    # Offsets of partitions

    async def offsets_for_times(
        self, timestamps: Mapping[tuple[str, int], int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first offset whose timestamp (ms) is not below; None when there is none."""
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise ValueError("timestamps are 0 or more; beginning_offsets and end_offsets give the ends")
        return await self._look_up({TopicPartition(*tp): ts for tp, ts in timestamps.items()}, timeout)

    async def beginning_offsets(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first kept offset of each partition, assigned or not. Raises ApiTimeoutError."""
        found = await self._look_up({TopicPartition(*tp): -2 for tp in partitions}, timeout)
        return {tp: at.offset for tp, at in found.items() if at is not None}

    async def end_offsets(self, partitions: Partitions, *, timeout: float | None = None) -> dict[TopicPartition, int]:
        """The high watermark of each partition; under read_committed the last stable offset. Raises ApiTimeoutError."""
        found = await self._look_up({TopicPartition(*tp): -1 for tp in partitions}, timeout)
        ends = {tp: at.offset for tp, at in found.items() if at is not None}
        with self._shell.io.lock:
            for tp, offset in ends.items():
                self._core.learn_end(tp, offset)
        return ends

    async def _look_up(
        self, targets: dict[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        with self._shell.owned():
            deadline_ms = self._shell.deadline_ms(timeout)
            with self._shell.io.lock:
                operation = self._core.lookups.ask(targets)
            found: dict[TopicPartition, OffsetAndTimestamp | None] = await self._shell.result(
                operation, deadline_ms, "looking up offsets", self._core.lookups.cancel
            )
            return {tp: found[tp] for tp in targets if tp in found}

    # The cluster

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[int]:
        """The topic's partition numbers; empty if there is no such topic."""
        with self._shell.owned():
            with self._shell.io.lock:
                known = self._core.metadata.view.topics.get(topic)
            if known is None or known.error_code:
                known = (await self._topics(frozenset({topic}), timeout)).get(topic)
            if known is None:
                return []
            if known.error_code not in _LEGAL_ERRORS:
                raise error_for(known.error_code, topic)
            return [p.partition for p in known.partitions]

    async def list_topics(self, *, timeout: float | None = None) -> dict[str, TopicView]:
        """Every topic this client may see."""
        with self._shell.owned():
            return await self._topics(None, timeout)

    async def _topics(self, names: frozenset[str] | None, timeout: float | None) -> dict[str, TopicView]:
        deadline_ms = self._shell.deadline_ms(timeout)
        with self._shell.io.lock:
            operation: Operation = self._core.metadata.look_up(names)
        found: dict[str, TopicView] = await self._shell.result(
            operation, deadline_ms, "asking for topics", self._core.metadata.cancel
        )
        for topic in found.values():
            if names is not None and topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                raise InvalidTopicError(topic.name)
        return found
