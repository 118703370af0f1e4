"""Has the log been cut below a position? Asked of every new leader of a partition (KIP-320; consumer.md 8.3)."""

from __future__ import annotations

from partita.consumer.errors import LogTruncationError
from partita.consumer.metadata import Metadata
from partita.consumer.partition_state import AWAIT_VALIDATION, UNKNOWN, PartitionState, Position, Reset
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Poll, Request
from partita.consumer.subscription import Subscription
from partita.errors import KafkaError, TopicAuthorizationFailedError
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from partita.protocol.metadata_view import Node

NEVER_MS = 1 << 62


class Validation:
    """Checks positions in AWAIT_VALIDATION; `errors` holds the errors of the next poll."""

    def __init__(
        self, subscription: Subscription, metadata: Metadata, reset: Reset | None, retry_ms: int, request_ms: int
    ) -> None:
        self.errors: list[KafkaError] = []
        self._subscription = subscription
        self._metadata = metadata
        self._reset = reset
        self._retry_ms = retry_ms
        self._request_ms = request_ms
        self._checked: tuple[int, int] = (-1, -1)

    def poll(self, now: Now, poll: Poll) -> None:
        """The OffsetForLeaderEpoch requests to send now, one per leader."""
        self._follow_leaders()
        unsettled = self._subscription.unsettled
        if not unsettled:
            return
        by_node: dict[Node, dict[TopicPartition, Position]] = {}
        for tp, state in unsettled.items():
            if state.state is not AWAIT_VALIDATION or state.position is None:
                continue
            if now.mono_ms < state.next_retry_ms:
                poll.wake_in(min(state.next_retry_ms - now.mono_ms, 1 << 30))
                continue
            node = self._metadata.view.leader(*tp)
            if node is None:
                self._metadata.request_update()
                continue
            by_node.setdefault(node, {})[tp] = state.position
        for node, positions in by_node.items():
            poll.ask(self._request(node, positions))
            for tp in positions:
                unsettled[tp].next_retry_ms = now.mono_ms + self._request_ms

    def _follow_leaders(self) -> None:
        """Compare every position's leader with the metadata, when either has changed."""
        view = self._metadata.view
        seen = (view.version, self._subscription.version)
        if seen == self._checked:
            return
        self._checked = seen
        for tp, state in self._subscription.assignment.items():
            partition = view.partition(*tp)
            if state.position is not None and partition is not None and partition.leader >= 0:
                state.leader_changed(partition.leader, partition.leader_epoch, can_validate=True)

    def _request(self, node: Node, positions: dict[TopicPartition, Position]) -> Request:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for tp, position in positions.items():
            topics.setdefault(tp.topic, []).append(
                OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=position.leader_epoch,
                    leader_epoch=position.offset_epoch,
                )
            )
        message = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=parts) for name, parts in topics.items()]
        )
        return Request(self, message, node, context=positions)

    def on_response(self, request: Request, response: OffsetForLeaderEpochResponse, now: Now) -> None:
        """Compare the answer with the position; a position beyond the end was cut off."""
        asked: dict[TopicPartition, Position] = request.context
        for topic in response.topics:
            for answer in topic.partitions:
                tp = TopicPartition(topic.topic, answer.partition)
                state = self._subscription.assignment.get(tp)
                if tp not in asked or state is None or state.state is not AWAIT_VALIDATION:
                    continue
                if state.position == asked[tp]:
                    self._answered(tp, state, asked[tp], answer, now)

    def _answered(
        self, tp: TopicPartition, state: PartitionState, position: Position, answer: EpochEndOffset, now: Now
    ) -> None:
        do = reaction("OffsetForLeaderEpoch", answer.error_code)
        if do is Reaction.RAISE:
            self.errors.append(TopicAuthorizationFailedError(tp.topic, operation="READ"))
            state.next_retry_ms = now.mono_ms + self._retry_ms
        elif do is Reaction.REFRESH:
            self._metadata.request_update()
            state.next_retry_ms = now.mono_ms + self._retry_ms
        elif answer.end_offset == UNKNOWN or answer.leader_epoch == UNKNOWN:
            self._truncated(tp, state, position, None)
        elif answer.end_offset < position.offset:
            self._truncated(tp, state, position, answer)
        else:
            state.validated()

    def _truncated(
        self, tp: TopicPartition, state: PartitionState, position: Position, end: EpochEndOffset | None
    ) -> None:
        if self._reset is None:
            divergent = {} if end is None else {tp: end.end_offset}
            self.errors.append(LogTruncationError({tp: position.offset}, divergent))
            state.next_retry_ms = NEVER_MS
        elif end is None:
            state.request_reset(self._reset)
        else:
            state.seek(Position(end.end_offset, end.leader_epoch, position.leader, position.leader_epoch))

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: check again after the back-off."""
        self._metadata.request_update()
        for tp, position in request.context.items():
            state = self._subscription.assignment.get(tp)
            if state is not None and state.state is AWAIT_VALIDATION and state.position == position:
                state.next_retry_ms = now.mono_ms + self._retry_ms

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker cannot validate positions: they are taken as they are."""
        for tp in request.context:
            state = self._subscription.assignment.get(tp)
            if state is not None:
                state.validated()
