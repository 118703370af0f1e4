"""Reading a Fetch answer: session rules, leader hints, watermarks, and error codes (9.3-9.5, 15.3)."""

from __future__ import annotations

from collections.abc import Callable

from partita.consumer.config import ConsumerConfig
from partita.consumer.metadata import Metadata
from partita.consumer.partition_state import PartitionState
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.reading.completed_fetch import CompletedFetch
from partita.consumer.reading.fetch_session import FetchSession, FetchSlot
from partita.consumer.reading.positions import Positions
from partita.consumer.request import Request
from partita.consumer.subscription import Subscription
from partita.errors import error_for
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchResponse, PartitionData
from partita.protocol.metadata_view import Node


class FetchAnswers:
    """`read` turns an answer into completed fetches; partitions with errors rest for the retry back-off."""

    def __init__(
        self, config: ConsumerConfig, subscription: Subscription, metadata: Metadata, positions: Positions
    ) -> None:
        self._config = config
        self._subscription = subscription
        self._metadata = metadata
        self._positions = positions
        self._resting: dict[TopicPartition, int] = {}
        self.remark: Callable[[str], None] | None = None
        """Called with a line for the log when data of an answer is not used; None unless the log is at DEBUG."""

    @property
    def any_rests(self) -> bool:
        """Whether `wait_ms` may be more than 0 for any partition."""
        return bool(self._resting)

    def wait_ms(self, tp: TopicPartition, now: Now) -> int:
        """Milliseconds until a partition may be fetched again after an error."""
        if not self._resting:
            return 0
        until = self._resting.get(tp, 0)
        if until <= now.mono_ms:
            self._resting.pop(tp, None)
            return 0
        return until - now.mono_ms

    def read(
        self,
        session: FetchSession,
        slots: dict[TopicPartition, FetchSlot],
        request: Request,
        response: FetchResponse,
        now: Now,
    ) -> list[CompletedFetch] | None:
        """Return the data to hand out, in the order of the answer; None when the answer must not be used."""
        code = ErrorCode(response.error_code)
        parts = self._parts(session, response)
        throttled = response.throttle_time_ms > 0
        accepted = session.accept(code, response.session_id, set(parts), throttled=throttled)
        if reaction("Fetch", response.error_code) is Reaction.REFRESH:
            self._metadata.request_update()
        if not accepted:
            return None
        self._follow_hints(parts, response)
        node_id = request.node.id if request.node is not None else -1
        completed = []
        for tp, data in parts.items():
            slot, state = slots.get(tp), self._subscription.assignment.get(tp)
            if self.remark is not None and (slot is None or state is None):
                self.remark(f"ignored fetched records of {tp}: it was not asked for, or is no longer assigned")
            if slot is not None and state is not None:
                completed += self._partition(tp, state, slot, data, node_id, now)
        return completed

    def _parts(self, session: FetchSession, response: FetchResponse) -> dict[TopicPartition, PartitionData]:
        found: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = topic.topic or session.name_of(topic.topic_id) or f"topic id {topic.topic_id.hex()}"
            for data in topic.partitions:
                found[TopicPartition(name, data.partition_index)] = data
        return found

    def _follow_hints(self, parts: dict[TopicPartition, PartitionData], response: FetchResponse) -> None:
        """A broker that no longer leads names the new leader (KIP-951)."""
        nodes = {n.node_id: Node(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints}
        for tp, data in parts.items():
            leader = data.current_leader
            if data.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                self._metadata.view.move_leader(*tp, leader.leader_id, leader.leader_epoch, nodes.get(leader.leader_id))

    def _partition(
        self,
        tp: TopicPartition,
        state: PartitionState,
        slot: FetchSlot,
        data: PartitionData,
        node_id: int,
        now: Now,
    ) -> list[CompletedFetch]:
        position = state.position
        if not state.has_valid_position or position is None or position.offset != slot.offset:
            if self.remark is not None:
                stands = "unknown" if position is None or not state.has_valid_position else str(position.offset)
                self.remark(f"ignored fetched records of {tp} from {slot.offset}: the position is {stands}")
            return []
        do = reaction("Fetch, each partition", data.error_code)
        if do is Reaction.TAKE:
            self._learn(state, data, now)
            return [self._completed(tp, slot, data, node_id)]
        self._resting[tp] = now.mono_ms + self._config.retry_backoff_ms
        if do is Reaction.REFRESH:
            self._metadata.request_update()
            state.preferred_replica = -1
        elif do is Reaction.RESET:
            self._out_of_range(tp, state, slot)
        elif do is Reaction.RAISE:
            return [
                CompletedFetch(
                    tp,
                    slot.offset,
                    None,
                    node_id=node_id,
                    error=error_for(data.error_code, str(tp), operation="READ", names=[tp.topic]),
                )
            ]
        return []

    def _completed(self, tp: TopicPartition, slot: FetchSlot, data: PartitionData, node_id: int) -> CompletedFetch:
        aborted = None
        if self._config.read_committed:
            aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        return CompletedFetch(
            tp,
            slot.offset,
            memoryview(data.records or b""),
            node_id=node_id,
            aborted=aborted,
            check_crcs=self._config.check_crcs,
        )

    def _learn(self, state: PartitionState, data: PartitionData, now: Now) -> None:
        if data.high_watermark >= 0:
            state.high_watermark = data.high_watermark
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != state.preferred_replica:
            state.preferred_replica = data.preferred_read_replica
            state.preferred_until_ms = now.mono_ms + self._config.metadata_max_age_ms

    def _out_of_range(self, tp: TopicPartition, state: PartitionState, slot: FetchSlot) -> None:
        """A follower may lag behind; only the leader's word leads to a reset."""
        if state.preferred_replica >= 0:
            state.preferred_replica = -1
            del self._resting[tp]
        else:
            self._positions.out_of_range(tp, slot.offset)
