"""Where a consumer reads its partitions: seeking, positions, pausing, lag.

A part of `AsyncConsumer`, whose shell and core it uses. (consumer.md 2.)
"""

from __future__ import annotations

from partita.consumer.core import ConsumerCore
from partita.consumer.errors import ApiTimeoutError
from partita.consumer.partition_state import EARLIEST, LATEST, Position, Reset
from partita.consumer.shell.driver import ConsumerShell
from partita.consumer.shell.look_ups import Partitions
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition


class Positioning:
    """Calls about partitions that are assigned; most of them ask nobody."""

    _shell: ConsumerShell
    _core: ConsumerCore

    # Positions

    def seek(self, partition: tuple[str, int], offset: int | OffsetAndMetadata) -> None:
        """Go on reading there. Nothing is asked now; what is buffered from elsewhere is dropped.

        Raises IllegalStateError if the partition is not assigned, ValueError for an offset below 0.
        """
        target = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if target.offset < 0:
            raise ValueError(f"an offset is 0 or more, not {target.offset}")
        tp = TopicPartition(*partition)
        with self._shell.owned(), self._shell.io.lock:
            state = self._core.subscription.state(tp)
            if target.leader_epoch >= 0:
                self._core.positions.seek_to_committed(tp, state, target)
            else:
                state.seek(Position(target.offset))
            self._core.done.forget(tp)

    def seek_to_beginning(self, partitions: Partitions = ()) -> None:
        """Go to the first kept offset of these partitions (none given: all), at the next poll."""
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, partitions: Partitions = ()) -> None:
        """Go behind the last record of these partitions (none given: all), at the next poll."""
        self._reset(partitions, LATEST)

    def _reset(self, partitions: Partitions, reset: Reset) -> None:
        with self._shell.owned(), self._shell.io.lock:
            wanted = [TopicPartition(*tp) for tp in partitions] or list(self._core.subscription.assignment)
            for tp in wanted:
                self._core.subscription.state(tp)
            for tp in wanted:
                self._core.positions.reset(tp, reset)
                self._core.done.forget(tp)

    async def position(self, partition: tuple[str, int], *, timeout: float | None = None) -> int:
        """The next offset to be handed out; waits until it is known and valid.

        Raises IllegalStateError if the partition is not assigned, NoOffsetForPartitionError, ApiTimeoutError.
        """
        shell, tp = self._shell, TopicPartition(*partition)
        with shell.owned():
            deadline_ms = shell.deadline_ms(timeout)
            while True:
                with shell.io.lock:
                    self._core.positions.ask_for(tp)
                    state = self._core.subscription.state(tp)
                    if state.has_valid_position and state.position is not None:
                        return state.position.offset
                    seen = shell.io.activity
                    shell.step()
                    error = self._core.validation.errors.pop(0) if self._core.validation.errors else None
                    error = error or self._core.positions.error()
                if error is not None:
                    raise error
                shell.check()
                left_ms = deadline_ms - shell.now().mono_ms
                if left_ms <= 0:
                    raise ApiTimeoutError(f"the position of {tp} is not known in time")
                await shell.waiter.wait(shell.io, seen, left_ms / 1000)

    def pause(self, partitions: Partitions) -> None:
        """Return nothing from these partitions until `resume`; what is buffered is kept.

        An eager rebalance forgets it, a cooperative one does not. Raises IllegalStateError if one is not assigned.
        """
        self._set_paused(partitions, is_paused=True)

    def resume(self, partitions: Partitions) -> None:
        """Return records from these partitions again. Raises IllegalStateError for one that is not assigned."""
        self._set_paused(partitions, is_paused=False)

    def _set_paused(self, partitions: Partitions, *, is_paused: bool) -> None:
        with self._shell.owned(), self._shell.io.lock:
            states = [self._core.subscription.state(TopicPartition(*tp)) for tp in partitions]
            for state in states:
                state.is_paused = is_paused
            self._shell.step()

    def paused(self) -> set[TopicPartition]:
        """The assigned partitions that are paused."""
        with self._shell.owned(), self._shell.io.lock:
            return {tp for tp, state in self._core.subscription.assignment.items() if state.is_paused}

    # Lag

    def current_lag(self, partition: tuple[str, int]) -> int | None:
        """Records between the position and the end, as far as known now; asks for the end once if it is not."""
        with self._shell.owned(), self._shell.io.lock:
            lag = self._core.current_lag(TopicPartition(*partition))
            self._shell.step()
            return lag

    def lag(self) -> dict[TopicPartition, int]:
        """`current_lag` of every assigned partition for which it is known."""
        with self._shell.owned(), self._shell.io.lock:
            committed = self._shell.config.read_committed
            lags = {tp: s.lag(read_committed=committed) for tp, s in self._core.subscription.assignment.items()}
            return {tp: lag for tp, lag in lags.items() if lag is not None}
