"""ListOffsets: finding offsets by time, at the beginning, at the end (consumer.md 2.2, 8.1, 15.3).

`list_offsets` builds the requests, one per leader. `OffsetLookups` answers the application's questions with them,
asking leaders again until each partition has an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from partita.consumer.metadata import Metadata
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Operation, Part, Poll, Request
from partita.errors import TopicAuthorizationFailedError
from partita.now import Now
from partita.offsets.topic_partition import OffsetAndTimestamp, TopicPartition
from partita.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from partita.protocol.metadata_view import Node

Targets: TypeAlias = Mapping[TopicPartition, int]
"""Partition to timestamp; -1 is the end, -2 the beginning."""

_NO_TOPICS: frozenset[str] = frozenset()


def list_offsets(
    part: Part, poll: Poll, targets: Targets, metadata: Metadata, *, read_committed: bool, timeout_ms: int, context: Any
) -> list[TopicPartition]:
    """Send one request per leader; return the partitions whose leader is not known."""
    by_node: dict[Node, dict[str, list[ListOffsetsPartition]]] = {}
    leaderless: list[TopicPartition] = []
    for tp, timestamp in targets.items():
        view = metadata.view.partition(*tp)
        node = metadata.view.leader(*tp)
        if view is None or node is None:
            leaderless.append(tp)
            continue
        by_node.setdefault(node, {}).setdefault(tp.topic, []).append(
            ListOffsetsPartition(
                partition_index=tp.partition, current_leader_epoch=view.leader_epoch, timestamp=timestamp
            )
        )
    for node, topics in by_node.items():
        message = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1 if read_committed else 0,
            topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
            timeout_ms=timeout_ms,
        )
        poll.ask(Request(part, message, node, context=context))
    return leaderless


def answers(response: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, Reaction, Any]]:
    """Each partition of an answer with its reaction."""
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            yield tp, reaction("ListOffsets", partition.error_code), partition


def asked(request: Request) -> dict[TopicPartition, int]:
    """Return the timestamps that a request asked for, by partition."""
    return {
        TopicPartition(topic.name, p.partition_index): p.timestamp
        for topic in request.message.topics
        for p in topic.partitions
    }


@dataclass(slots=True, eq=False)
class _Ask:
    open: dict[TopicPartition, int]
    operation: Operation
    found: dict[TopicPartition, OffsetAndTimestamp | None] = field(default_factory=dict)
    in_flight: set[TopicPartition] = field(default_factory=set)
    not_before_ms: int = 0
    attempts: int = 0


class OffsetLookups:
    """`ask(targets)`: its operation's value maps each partition to an OffsetAndTimestamp, or None."""

    def __init__(self, metadata: Metadata, backoff: Backoff, *, read_committed: bool, timeout_ms: int) -> None:
        self._metadata = metadata
        self._backoff = backoff
        self._read_committed = read_committed
        self._timeout_ms = timeout_ms
        self._asks: list[_Ask] = []

    @property
    def topics(self) -> frozenset[str]:
        """Topics whose metadata is needed while questions are open."""
        return frozenset(tp.topic for ask in self._asks for tp in ask.open) if self._asks else _NO_TOPICS

    def ask(self, targets: Targets) -> Operation:
        """Look up an offset for each partition; the operation's value holds the offsets."""
        operation = Operation()
        if targets:
            self._asks.append(_Ask({TopicPartition(*tp): ts for tp, ts in targets.items()}, operation))
        else:
            operation.succeed({})
        return operation

    def cancel(self, operation: Operation) -> None:
        """Drop this operation: its caller no longer waits for it."""
        self._asks = [a for a in self._asks if a.operation is not operation]

    def poll(self, now: Now, poll: Poll) -> None:
        """The ListOffsets requests to send now, one per leader."""
        for ask in self._asks:
            todo = {tp: ts for tp, ts in ask.open.items() if tp not in ask.in_flight}
            if not todo:
                continue
            if now.mono_ms < ask.not_before_ms:
                poll.wake_in(ask.not_before_ms - now.mono_ms)
                continue
            leaderless = list_offsets(
                self,
                poll,
                todo,
                self._metadata,
                read_committed=self._read_committed,
                timeout_ms=self._timeout_ms,
                context=ask,
            )
            ask.in_flight |= set(todo) - set(leaderless)
            # What the caller hears if its time ends before they turn up.
            ask.operation.value = next(filter(None, map(self._metadata.absence_of, leaderless)), None)
            if leaderless:
                self._metadata.request_update()

    def on_response(self, request: Request, response: ListOffsetsResponse, now: Now) -> None:
        """Note the found offsets; partitions whose leader moved are asked for again."""
        ask: _Ask = request.context
        ask.in_flight -= set(asked(request))
        is_again = False
        for tp, do, partition in answers(response):
            if tp not in ask.open:
                continue
            if do is Reaction.RAISE:
                ask.operation.fail(TopicAuthorizationFailedError(tp.topic, operation="READ"))
            elif do is Reaction.REFRESH:
                is_again = True
            else:
                del ask.open[tp]
                ask.found[tp] = _found(partition) if do is Reaction.TAKE else None
        if is_again:
            self._metadata.request_update()
            self._again(ask, now)
        if not ask.open:
            ask.operation.succeed(ask.found)
        if ask.operation.is_done:
            self.cancel(ask.operation)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: ask again after the back-off, with fresh metadata."""
        ask: _Ask = request.context
        ask.in_flight -= set(asked(request))
        self._metadata.request_update()
        self._again(ask, now)

    def _again(self, ask: _Ask, now: Now) -> None:
        ask.not_before_ms = now.mono_ms + self._backoff.after(ask.attempts)
        ask.attempts += 1


def _found(partition: Any) -> OffsetAndTimestamp | None:
    if partition.offset < 0:
        return None
    return OffsetAndTimestamp(partition.offset, partition.timestamp, partition.leader_epoch)
