"""Asking the group for committed offsets: to start partitions, and for the application (consumer.md 8.2, 15.3).

Offsets that transactions have not settled yet are waited for (require_stable).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from partita.consumer.coordinator import Coordinator
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Operation, Poll, Request
from partita.errors import KafkaError, TopicAuthorizationFailedError, error_for
from partita.now import Now
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

NAMED_VERSION_MAX = 9
Found: TypeAlias = dict[TopicPartition, OffsetAndMetadata | None]
Asker: TypeAlias = tuple[str | None, int]
"""Member id and epoch of a member of the consumer protocol; (None, -1) for all other consumers."""
NOBODY: Asker = (None, -1)


@dataclass(slots=True, eq=False)
class _Ask:
    partitions: frozenset[TopicPartition]
    operations: list[Operation]
    lookups_failed: int
    in_flight: bool = False
    not_before_ms: int = 0
    attempts: int = 0


class CommittedOffsets:
    """`ask` starts a question; its operation's value maps every partition to its offset, or None."""

    def __init__(self, group_id: str, coordinator: Coordinator, backoff: Backoff, asker: Callable[[], Asker]) -> None:
        self._group_id = group_id
        self._asker = asker
        self._coordinator = coordinator
        self._backoff = backoff
        self._asks: list[_Ask] = []

    def ask(self, partitions: Iterable[TopicPartition]) -> Operation:
        """Ask for these partitions. Callers that ask for the same set share a request; each has its own operation."""
        wanted = frozenset(TopicPartition(*tp) for tp in partitions)
        operation = Operation()
        same = next((ask for ask in self._asks if ask.partitions == wanted), None)
        if same is not None:
            same.operations.append(operation)
        else:
            self._asks.append(_Ask(wanted, [operation], self._coordinator.failed_count))
        return operation

    def cancel(self, operation: Operation) -> None:
        """Stop waiting for this caller; the request continues while another caller waits."""
        for ask in self._asks:
            ask.operations = [one for one in ask.operations if one is not operation]
        self._asks = [ask for ask in self._asks if ask.operations]

    def poll(self, now: Now, poll: Poll) -> None:
        """The OffsetFetch requests to send now; without a coordinator it is looked up first."""
        for ask in list(self._asks):
            if ask.in_flight:
                continue
            if self._coordinator.node is None:
                self._coordinator.want()
                error = self._coordinator.error_since(ask.lookups_failed)
                if error is not None:
                    self._finish(ask, error=error)
            elif now.mono_ms < ask.not_before_ms:
                poll.wake_in(ask.not_before_ms - now.mono_ms)
            else:
                poll.ask(self._request(ask))
                ask.in_flight = True

    def _request(self, ask: _Ask) -> Request:
        by_topic: dict[str, list[int]] = {}
        for tp in sorted(ask.partitions):
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        topics = [OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in by_topic.items()]
        member_id, epoch = self._asker()
        group = OffsetFetchRequestGroup(group_id=self._group_id, member_id=member_id, member_epoch=epoch, topics=topics)
        message = OffsetFetchRequest(
            groups=[group],
            group_id=self._group_id,
            topics=[OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in by_topic.items()],
            require_stable=True,
        )
        node = self._coordinator.node
        return Request(self, message, node, to_coordinator=True, max_version=NAMED_VERSION_MAX, context=ask)

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Finish the question, or repeat it when the error may pass."""
        ask: _Ask = request.context
        ask.in_flight = False
        told = response if request.version < 8 else next((g for g in response.groups), None)
        code = told.error_code if told is not None else ErrorCode.UNKNOWN_SERVER_ERROR
        do = reaction("OffsetFetch", code)
        if do is Reaction.LOOK_UP:
            self._coordinator.mark_unknown()
        if told is not None and do is Reaction.TAKE:
            self._take(ask, told.topics, now)
        elif do is Reaction.RAISE:
            told = f"committed offsets of group {self._group_id!r}"
            self._finish(ask, error=error_for(code, told, operation="READ", names=[self._group_id]))
        elif self._is_another_now(request):
            ask.not_before_ms = now.mono_ms
        else:
            self._again(ask, now)

    def _is_another_now(self, request: Request) -> bool:
        """Does this member have another epoch by now than when it asked?"""
        group = request.message.groups[0]
        return self._asker() != (group.member_id, group.member_epoch)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: look the coordinator up and ask again."""
        request.context.in_flight = False
        self._coordinator.mark_unknown(was_disconnect=True)
        self._again(request.context, now)

    def _take(self, ask: _Ask, topics: Any, now: Now) -> None:
        found: Found = {tp: None for tp in sorted(ask.partitions)}
        unauthorized: set[str] = set()
        for topic in topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.name, part.partition_index)
                do = reaction("OffsetFetch, each partition", part.error_code)
                if do is Reaction.COLLECT:
                    unauthorized.add(topic.name)
                elif do is Reaction.RETRY:
                    self._again(ask, now)
                    return
                elif do is Reaction.RAISE:
                    is_missing = part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    told = f"{tp} does not exist" if is_missing else str(tp)
                    self._finish(ask, error=error_for(part.error_code, told))
                    return
                elif part.committed_offset >= 0 and tp in found:
                    found[tp] = OffsetAndMetadata(
                        part.committed_offset, part.committed_leader_epoch, part.metadata or ""
                    )
        if unauthorized:
            self._finish(ask, error=TopicAuthorizationFailedError(*sorted(unauthorized), operation="READ"))
        else:
            self._finish(ask, found)

    def _again(self, ask: _Ask, now: Now) -> None:
        ask.not_before_ms = now.mono_ms + self._backoff.after(ask.attempts)
        ask.attempts += 1

    def _finish(self, ask: _Ask, found: Found | None = None, *, error: KafkaError | None = None) -> None:
        self._asks = [a for a in self._asks if a is not ask]
        for operation in ask.operations:
            operation.fail(error) if error is not None else operation.succeed(found)
