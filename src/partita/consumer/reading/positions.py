"""Starting positions of partitions: its committed offset, else the reset policy (consumer.md 4.3, 8.1, 8.2).

A committed offset that cannot be read is asked for again, never taken for "none"; only an answer without one leads to
a reset. A reset's answer counts only if that very reset is still wanted. (Kafka: OffsetFetcher.)
"""

from __future__ import annotations

from partita.consumer.config import ConsumerConfig
from partita.consumer.errors import NoOffsetForPartitionError, OffsetsOutOfRangeError
from partita.consumer.metadata import Metadata
from partita.consumer.partition_state import (
    AWAIT_RESET,
    FETCHING,
    INITIALIZING,
    UNKNOWN,
    PartitionState,
    Position,
    Reset,
)
from partita.consumer.reactions import Reaction
from partita.consumer.reading.committed_offsets import CommittedOffsets
from partita.consumer.reading.list_offsets import answers, list_offsets
from partita.consumer.request import Operation, Poll, Request
from partita.consumer.subscription import Subscription
from partita.errors import KafkaError, TopicAuthorizationFailedError
from partita.now import Now
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.protocol.messages.list_offsets import ListOffsetsResponse


class Positions:
    """Finds positions for assigned partitions that have none. `error()` returns the error that a poll raises.

    After `assign` nothing is looked up before the application polls (`is_started`): it may seek first.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: Subscription,
        metadata: Metadata,
        committed: CommittedOffsets,
    ) -> None:
        self._config = config
        self._subscription = subscription
        self._metadata = metadata
        self._committed = committed
        self.is_started = True
        self._asking: Operation | None = None
        self._asked_version = -1
        self._asked_for: set[TopicPartition] = set()
        self._without_offset: set[TopicPartition] = set()
        self._out_of_range: dict[TopicPartition, int] = {}
        self._errors: list[KafkaError] = []

    def poll(self, now: Now, poll: Poll) -> None:
        """Ask for committed offsets, and send the resets that are due."""
        if not self.is_started:
            return
        unsettled = self._subscription.unsettled
        if not unsettled and self._asking is None:
            return
        self._initialize()
        targets: dict[TopicPartition, int] = {}
        resets: dict[TopicPartition, Reset] = {}
        for tp, state in unsettled.items():
            if state.state is not AWAIT_RESET or state.reset is None:
                continue
            if now.mono_ms < state.next_retry_ms:
                poll.wake_in(state.next_retry_ms - now.mono_ms)
                continue
            targets[tp] = state.reset.timestamp_at(now.wall_ms)
            resets[tp] = state.reset
        if targets:
            self._ask_for(targets, resets, now, poll)

    def ask_for(self, tp: TopicPartition) -> None:
        """The application wants this position now, perhaps inside the callback that announces the partition."""
        self.is_started = True
        self._asked_for.add(tp)

    @property
    def may_report(self) -> bool:
        """Whether `error` may have one."""
        return bool(self._errors or self._without_offset or self._out_of_range)

    def error(self) -> KafkaError | None:
        """Return the error to raise: most are raised once, offsets missing or out of range until a seek."""
        if self._errors:
            return self._errors.pop(0)
        if not self._without_offset and not self._out_of_range:
            return None
        assignment = self._subscription.assignment
        missing = [tp for tp in self._without_offset if _is(assignment.get(tp), INITIALIZING)]
        if missing:
            return NoOffsetForPartitionError(missing)
        outside = {tp: offset for tp, offset in self._out_of_range.items() if self.is_blocked(tp)}
        self._out_of_range = outside
        return OffsetsOutOfRangeError(outside) if outside else None

    @property
    def blocks_any(self) -> bool:
        """Whether `is_blocked` may hold for any partition."""
        return bool(self._out_of_range)

    def is_blocked(self, tp: TopicPartition) -> bool:
        """Whether the position is outside the log and no policy applies: not fetched until the application seeks."""
        if not self._out_of_range:
            return False
        state = self._subscription.assignment.get(tp)
        position = None if state is None else state.position
        return position is not None and self._out_of_range.get(tp) == position.offset

    def out_of_range(self, tp: TopicPartition, offset: int) -> None:
        """The leader says the position is outside its log."""
        state = self._subscription.assignment.get(tp)
        if state is None or state.state is not FETCHING or state.position is None or state.position.offset != offset:
            return
        if self._config.reset is None:
            self._out_of_range[tp] = offset
        else:
            state.request_reset(self._config.reset)

    def reset(self, tp: TopicPartition, reset: Reset) -> None:
        """The application wants this partition at the beginning or the end."""
        self._subscription.state(tp).request_reset(reset)

    # Committed offsets

    def _initialize(self) -> None:
        if self._asking is not None:
            self._take_committed(self._asking)
        waiting = self._waiting()
        if not waiting or self._asking is not None:
            return
        if self._config.group_id is None:
            self._start_without_offset(waiting)
        else:
            self._asked_version = self._subscription.version
            self._asking = self._committed.ask(waiting)

    def _waiting(self) -> list[TopicPartition]:
        return [
            tp
            for tp, state in self._subscription.unsettled.items()
            if state.state is INITIALIZING
            and (not state.awaits_callback or tp in self._asked_for)
            and tp not in self._without_offset
        ]

    def _take_committed(self, operation: Operation) -> None:
        if not operation.is_done:
            if self._asked_version != self._subscription.version:
                self._committed.cancel(operation)
                self._asking = None
            return
        self._asking = None
        if operation.error is not None:
            assert isinstance(operation.error, KafkaError), "offset fetches fail with Kafka errors"
            self._errors.append(operation.error)
            return
        found: dict[TopicPartition, OffsetAndMetadata | None] = operation.value
        missing = []
        for tp, offset in found.items():
            state = self._subscription.assignment.get(tp)
            if state is None or state.state is not INITIALIZING:
                continue
            if offset is None:
                missing.append(tp)
            else:
                self.seek_to_committed(tp, state, offset)
        self._start_without_offset(missing)

    def seek_to_committed(self, tp: TopicPartition, state: PartitionState, offset: OffsetAndMetadata) -> None:
        """Take this offset, checked against the current leader if its epoch is known."""
        view = self._metadata.view
        if offset.leader_epoch >= 0 and view.saw_epoch(*tp, offset.leader_epoch):
            self._metadata.request_update()
        state.seek_unvalidated(self._at_current_leader(tp, offset.offset, offset.leader_epoch))

    def _at_current_leader(self, tp: TopicPartition, offset: int, offset_epoch: int = UNKNOWN) -> Position:
        """This offset as a position that counts as checked with the leader the metadata names now."""
        partition = self._metadata.view.partition(*tp)
        if partition is None:
            return Position(offset, offset_epoch)
        return Position(offset, offset_epoch, partition.leader, partition.leader_epoch)

    def _start_without_offset(self, partitions: list[TopicPartition]) -> None:
        for tp in partitions:
            if self._config.reset is None:
                self._without_offset.add(tp)
            else:
                self._subscription.assignment[tp].request_reset(self._config.reset)

    def forget(self) -> None:
        """The assignment changed: earlier errors about partitions without offsets no longer count."""
        self._without_offset.clear()
        self._asked_for.clear()

    # Resets

    def _ask_for(
        self, targets: dict[TopicPartition, int], resets: dict[TopicPartition, Reset], now: Now, poll: Poll
    ) -> None:
        leaderless = list_offsets(
            self,
            poll,
            targets,
            self._metadata,
            read_committed=self._config.read_committed,
            timeout_ms=self._config.request_timeout_ms,
            context=resets,
        )
        for tp in targets.keys() - set(leaderless):
            self._subscription.assignment[tp].next_retry_ms = now.mono_ms + self._config.request_timeout_ms
        if leaderless:
            self._metadata.request_update()

    def on_response(self, request: Request, response: ListOffsetsResponse, now: Now) -> None:
        """Take the offset of a reset, if that very reset is still wanted."""
        resets: dict[TopicPartition, Reset] = request.context
        retry: list[TopicPartition] = []
        for tp, do, answer in answers(response):
            state = self._subscription.assignment.get(tp)
            if tp not in resets or state is None or state.state is not AWAIT_RESET or state.reset is not resets[tp]:
                continue
            if do is Reaction.RAISE:
                self._errors.append(TopicAuthorizationFailedError(tp.topic, operation="READ"))
                retry.append(tp)
            elif do is Reaction.REFRESH:
                retry.append(tp)
            elif do is Reaction.TAKE and answer.offset >= 0:
                self._metadata.view.saw_epoch(*tp, answer.leader_epoch)
                state.seek(self._at_current_leader(tp, answer.offset))
        self._retry(retry, resets, now)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: try the resets again after the back-off."""
        self._retry(list(request.context), request.context, now)

    def _retry(self, partitions: list[TopicPartition], resets: dict[TopicPartition, Reset], now: Now) -> None:
        if not partitions:
            return
        self._metadata.request_update()
        for tp in partitions:
            state = self._subscription.assignment.get(tp)
            if state is not None and state.state is AWAIT_RESET and state.reset is resets[tp]:
                state.next_retry_ms = now.mono_ms + self._config.retry_backoff_ms


def _is(state: PartitionState | None, wanted: object) -> bool:
    return state is not None and state.state is wanted
