"""Answers that wait to be handed out, in their order: records up to a limit, or whole answers (consumer.md 9).

Data counts only while its partition stands at the fetched position. (Kafka: FetchCollector.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from partita.consumer.errors import CorruptRecordError
from partita.consumer.partition_state import PartitionState, Position
from partita.consumer.reading.completed_fetch import CompletedFetch
from partita.consumer.subscription import Subscription
from partita.errors import KafkaError
from partita.offsets.topic_partition import TopicPartition
from partita.records.batch import Record


@dataclass(slots=True)
class Collected:
    """The records that one poll hands out; `has_moved` also when only positions advanced."""

    records: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    has_moved: bool = False


class FetchBuffer:
    """`collect` hands records out, `take_fetches` hands whole answers out; both move positions."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._answers: deque[CompletedFetch] = deque()
        self.remark: Callable[[str], None] | None = None
        """Called with a line for the log when data is dropped or held back; None unless the log is at DEBUG."""

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[CompletedFetch]:
        return iter(self._answers)

    @property
    def size(self) -> int:
        """Bytes of all answers held."""
        return sum(fetch.size for fetch in self._answers)

    def append(self, fetch: CompletedFetch) -> None:
        """Hand this answer out after those that came before it."""
        self._answers.append(fetch)

    def drop_unassigned(self) -> None:
        """Drop the data of partitions that are no longer held."""
        held = self._subscription.assignment
        if any(fetch.tp not in held for fetch in self._answers):
            self._answers = deque(fetch for fetch in self._answers if fetch.tp in held)

    def drop_topics_but(self, topics: set[str]) -> None:
        """The subscription changed: data of other topics is no longer wanted."""
        self._answers = deque(fetch for fetch in self._answers if fetch.tp.topic in topics)

    def drop(self, partitions: Container[TopicPartition]) -> None:
        """Data of these partitions is no longer wanted."""
        self._answers = deque(fetch for fetch in self._answers if fetch.tp not in partitions)

    def collect(self, max_records: int) -> Collected:
        """Records in the order of the answers; an error is raised when its turn comes and nothing precedes it."""
        collected = Collected()
        remaining = max_records
        set_aside: list[CompletedFetch] = []
        try:
            while remaining > 0 and self._answers:
                fetch = self._answers[0]
                state = self._ready(fetch)
                if state is None or state.is_paused:
                    self._answers.popleft()
                    if state is not None:
                        set_aside.append(fetch)
                    continue
                records = self._take(fetch, remaining, collected)
                if records is None:
                    break
                remaining -= len(records)
                self._advance(fetch, state, records, collected)
            self._drop_empty()
        finally:
            self._answers.extend(set_aside)
        return collected

    def _drop_empty(self) -> None:
        """Empty answers next in line hold their broker back for nothing."""
        while self._answers and self._answers[0].is_drained and self._answers[0].error is None:
            self._answers.popleft()

    def _ready(self, fetch: CompletedFetch) -> PartitionState | None:
        """The partition's state, if it still waits for this data (a paused one keeps it)."""
        state = self._subscription.assignment.get(fetch.tp)
        if self.remark is not None:
            self._tell(fetch, state, self.remark)
        if state is None or not state.has_valid_position or state.position is None:
            return None
        if state.position.offset != fetch.next_offset or state.pending_revocation or state.awaits_callback:
            return None
        return state

    def _tell(self, fetch: CompletedFetch, state: PartitionState | None, remark: Callable[[str], None]) -> None:
        """Say why these records are not returned, if they are not."""
        what = f"records of {fetch.tp} from {fetch.next_offset}"
        if state is None:
            remark(f"dropped {what}: it is no longer assigned")
        elif not state.has_valid_position or state.position is None:
            remark(f"dropped {what}: it has no valid position")
        elif state.position.offset != fetch.next_offset:
            remark(f"dropped {what}: the position is {state.position.offset}")
        elif state.pending_revocation:
            remark(f"dropped {what}: it is being revoked")
        elif state.awaits_callback:
            remark(f"dropped {what}: on_assigned has not been called yet")
        elif state.is_paused:
            remark(f"held back {what}: it is paused")

    def _take(self, fetch: CompletedFetch, limit: int, collected: Collected) -> list[Record] | None:
        if fetch.error is not None:
            if collected.records:
                return None
            self._answers.popleft()
            raise fetch.error
        if fetch.is_drained:
            return []
        try:
            return fetch.take(limit)
        except CorruptRecordError:
            if collected.records:
                return None
            raise

    def _advance(
        self, fetch: CompletedFetch, state: PartitionState, records: list[Record], collected: Collected
    ) -> None:
        self._move(fetch, state, collected)
        if records:
            before = collected.records.setdefault(fetch.tp, records)
            if before is not records:
                before += records
        if fetch.is_drained:
            self._answers.popleft()
            if fetch.size:
                self._subscription.move_to_end(fetch.tp)

    def _move(self, fetch: CompletedFetch, state: PartitionState, collected: Collected) -> None:
        position = state.position
        assert position is not None, "only valid positions advance"
        if fetch.next_offset != position.offset:
            epoch = fetch.last_epoch if fetch.last_epoch >= 0 else position.offset_epoch
            state.advance(Position(fetch.next_offset, epoch, position.leader, position.leader_epoch))
            collected.has_moved = True

    def put_back(self, records: dict[TopicPartition, list[Record]]) -> None:
        """Put back records that were collected last but not handed out; they come first again, at their positions."""
        for tp, some in reversed(records.items()):
            state = self._subscription.assignment.get(tp)
            if state is None or state.position is None or not some:
                continue
            first = self._answers[0] if self._answers and self._answers[0].tp == tp else None
            if first is None:
                first = CompletedFetch(tp, state.position.offset, None)
                self._answers.appendleft(first)
            first.put_back(some)
            position = state.position
            state.advance(Position(some[0].offset, some[0].leader_epoch, position.leader, position.leader_epoch))

    def pass_over(self, tp: TopicPartition, offset: int, end: int) -> None:
        """Go on at `end`, without the record that was put back at `offset`, unless the position is elsewhere by now."""
        state = self._subscription.assignment.get(tp)
        if state is None or state.position is None or state.position.offset != offset:
            return
        first = next((fetch for fetch in self._answers if fetch.tp == tp), None)
        if first is not None and first.next_offset == offset and end == offset + 1:
            first.take(1)
            end = first.next_offset
        position = state.position
        state.advance(Position(end, position.offset_epoch, position.leader, position.leader_epoch))

    def take_fetches(self) -> list[CompletedFetch]:
        """All answers that could be handed out, whole; the caller reports how far it got with `handed_out`."""
        fetches: list[CompletedFetch] = []
        set_aside: list[CompletedFetch] = []
        error: KafkaError | None = None
        while self._answers and error is None:
            fetch = self._answers.popleft()
            state = self._ready(fetch)
            if state is not None and state.is_paused:
                set_aside.append(fetch)
            elif state is not None and fetch.error is not None:
                error = fetch.error
                if fetches:
                    self._answers.appendleft(fetch)
            elif state is not None and fetch.size:
                fetches.append(fetch)
        self._answers.extend(set_aside)
        if error is not None and not fetches:
            raise error
        return fetches

    def give_back(self, fetch: CompletedFetch) -> None:
        """An answer that was taken whole and did not reach the application: the next one to hand out."""
        self._answers.appendleft(fetch)

    def handed_out(self, fetch: CompletedFetch, next_offset: int, epoch: int) -> None:
        """Note that this answer went to the application up to `next_offset`."""
        state = self._subscription.assignment.get(fetch.tp)
        if state is None or state.position is None or not state.has_valid_position:
            return
        position = state.position
        if next_offset > position.offset:
            state.advance(Position(next_offset, epoch if epoch >= 0 else position.offset_epoch,
                                   position.leader, position.leader_epoch))  # fmt: skip
        self._subscription.move_to_end(fetch.tp)
