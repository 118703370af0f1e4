"""Fetching: which broker is asked for what, the buffer of answers, and handing them out (consumer.md 9).

One Fetch in flight per broker; a broker that leads a partition with unpaused data in the buffer is not asked, so the
next fetch leaves when the last record of the previous one is handed out. (Kafka: AbstractFetch, FetchCollector.)
Must not know where positions come from, or what the application does with records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.errors import CorruptRecordError
from partita.consumer.fetch_answer import FetchAnswers, is_good_replica
from partita.consumer.fetch_session import FetchSession, FetchSlot, SessionRequest
from partita.consumer.fetched import CompletedFetch
from partita.consumer.metadata import Metadata
from partita.consumer.partition_state import PartitionState, Position
from partita.consumer.positions import Positions
from partita.consumer.request import Backoff, Poll, Request
from partita.consumer.subscription import Subscription
from partita.consumer.topic_partition import TopicPartition
from partita.errors import KafkaError
from partita.now import Now
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from partita.protocol.metadata_view import Node
from partita.records.batch import Record

NAMED_VERSION_MAX = 12
"""The last version that speaks of topics by name."""


@dataclass(slots=True)
class Collected:
    """What one poll hands out; `has_moved` also when only positions advanced."""

    records: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    has_moved: bool = False


@dataclass(slots=True)
class _Broker:
    session: FetchSession = field(default_factory=FetchSession)
    in_flight: Request | None = None
    failures: int = 0
    not_before_ms: int = 0


class Fetching:
    """`poll` asks, `collect` hands records out, `take_fetches` hands whole answers out."""

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: Subscription,
        metadata: Metadata,
        positions: Positions,
        uniform: Callable[[float, float], float],
    ) -> None:
        self._config = config
        self._subscription = subscription
        self._metadata = metadata
        self._positions = positions
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._brokers: dict[int, _Broker] = {}
        self._answers = FetchAnswers(config, subscription, metadata, positions)
        self.buffer: deque[CompletedFetch] = deque()
        self.is_closed = False

    @property
    def buffered_bytes(self) -> int:
        return sum(fetch.size for fetch in self.buffer)

    # Asking

    def poll(self, now: Now) -> Poll:
        poll = Poll()
        if self.is_closed or not self._subscription.assignment:
            return poll
        room = self._config.fetch_buffer_max_bytes - (self.buffered_bytes if self.buffer else 0)
        if room <= 0:
            return poll
        held = self._held_brokers()
        wanted: dict[int, dict[TopicPartition, FetchSlot]] = {}
        nodes: dict[int, Node] = {}
        for tp, state in self._subscription.assignment.items():
            if not state.is_fetchable or self._positions.is_blocked(tp):
                continue
            node = self._node_for(tp, state, now)
            if node is None:
                self._metadata.request_update()
                continue
            wait = self._answers.wait_ms(tp, now)
            if wait > 0:
                poll.wake_in(wait)
                continue
            if node.id in held:
                continue
            nodes[node.id] = node
            wanted.setdefault(node.id, {})[tp] = self._slot(tp, state)
        for node_id, slots in wanted.items():
            self._ask(nodes[node_id], slots, room, now, poll)
        return poll

    def _held_brokers(self) -> set[int]:
        """Brokers with a fetch in flight, or with data in the buffer that could be handed out."""
        held = {node_id for node_id, broker in self._brokers.items() if broker.in_flight is not None}
        for fetch in self.buffer:
            state = self._subscription.assignment.get(fetch.tp)
            if state is not None and not state.is_paused:
                held.add(fetch.node_id)
        return held

    def _node_for(self, tp: TopicPartition, state: PartitionState, now: Now) -> Node | None:
        view = self._metadata.view
        if state.preferred_replica >= 0:
            if now.mono_ms < state.preferred_until_ms and is_good_replica(view, tp, state.preferred_replica):
                return view.nodes[state.preferred_replica]
            if now.mono_ms < state.preferred_until_ms:
                self._metadata.request_update()
            state.preferred_replica = -1
        return view.leader(*tp)

    def _slot(self, tp: TopicPartition, state: PartitionState) -> FetchSlot:
        assert state.position is not None, "a fetchable partition has a position"
        view = self._metadata.view
        return FetchSlot(
            state.position.offset,
            self._config.max_partition_fetch_bytes,
            view.leader_epoch(*tp),
            view.topic_id(tp.topic),
        )

    def _ask(self, node: Node, slots: dict[TopicPartition, FetchSlot], room: int, now: Now, poll: Poll) -> None:
        broker = self._brokers.setdefault(node.id, _Broker())
        if now.mono_ms < broker.not_before_ms:
            poll.wake_in(broker.not_before_ms - now.mono_ms)
            return
        session = broker.session.build(slots)
        request = self._request(node, session, min(self._config.fetch_max_bytes, room))
        request.context = (broker, dict(broker.session.slots))
        broker.in_flight = request
        poll.requests.append(request)

    def _request(self, node: Node, session: SessionRequest, max_bytes: int) -> Request:
        topics: dict[str, FetchTopic] = {}
        for tp, slot in session.slots.items():
            topic = topics.setdefault(tp.topic, FetchTopic(topic=tp.topic, topic_id=slot.topic_id, partitions=[]))
            topic.partitions.append(
                FetchPartition(
                    partition=tp.partition,
                    current_leader_epoch=slot.leader_epoch,
                    fetch_offset=slot.offset,
                    partition_max_bytes=slot.max_bytes,
                )
            )
        forgotten: dict[tuple[str, bytes], ForgottenTopic] = {}
        for tp, topic_id in session.forgotten:
            key = (tp.topic, topic_id)
            gone = forgotten.setdefault(key, ForgottenTopic(topic=tp.topic, topic_id=topic_id, partitions=[]))
            gone.partitions.append(tp.partition)
        message = FetchRequest(
            max_wait_ms=self._config.fetch_max_wait_ms,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=max_bytes,
            isolation_level=1 if self._config.read_committed else 0,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
            rack_id=self._config.client_rack,
        )
        return Request(self, message, node, max_version=None if session.uses_topic_ids else NAMED_VERSION_MAX)

    # Answers

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        broker, slots = request.context
        if broker is None:
            return
        broker.in_flight = None
        completed = self._answers.read(broker.session, slots, request, response, now)
        if completed is None:
            broker.not_before_ms = now.mono_ms + (self._backoff.after(broker.failures - 1) if broker.failures else 0)
            broker.failures += 1
            return
        broker.failures = 0
        for fetch in completed:
            if fetch.size == 0 and fetch.error is None and not self.buffer:
                continue
            self.buffer.append(fetch)

    def on_disconnect(self, request: Request, now: Now) -> None:
        broker, slots = request.context
        if broker is None:
            return
        broker.in_flight = None
        broker.session.lost()
        broker.not_before_ms = now.mono_ms + (self._backoff.after(broker.failures - 1) if broker.failures else 0)
        broker.failures += 1
        self._metadata.request_update()
        for tp in slots:
            state = self._subscription.assignment.get(tp)
            if state is not None:
                state.preferred_replica = -1

    # Handing out

    def drop_unassigned(self) -> None:
        """Data of partitions that are no longer held is not worth its memory."""
        held = self._subscription.assignment
        if any(fetch.tp not in held for fetch in self.buffer):
            self.buffer = deque(fetch for fetch in self.buffer if fetch.tp in held)

    def drop_topics_but(self, topics: set[str]) -> None:
        """The subscription changed: data of other topics is no longer wanted."""
        self.buffer = deque(fetch for fetch in self.buffer if fetch.tp.topic in topics)

    def collect(self, max_records: int) -> Collected:
        """Records in the order of the answers; an error is raised when its turn comes and nothing precedes it."""
        collected = Collected()
        remaining = max_records
        set_aside: list[CompletedFetch] = []
        try:
            while remaining > 0 and self.buffer:
                fetch = self.buffer[0]
                state = self._ready(fetch)
                if state is None or state.is_paused:
                    self.buffer.popleft()
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
            self.buffer.extend(set_aside)
        return collected

    def _drop_empty(self) -> None:
        """Empty answers next in line hold their broker back for nothing."""
        while self.buffer and self.buffer[0].is_drained and self.buffer[0].error is None:
            self.buffer.popleft()

    def _ready(self, fetch: CompletedFetch) -> PartitionState | None:
        """The partition's state, if this data is still what it waits for (a paused one keeps its data)."""
        state = self._subscription.assignment.get(fetch.tp)
        if state is None or not state.has_valid_position or state.position is None:
            return None
        if state.position.offset != fetch.next_offset or state.pending_revocation or state.awaits_callback:
            return None
        return state

    def _take(self, fetch: CompletedFetch, limit: int, collected: Collected) -> list[Record] | None:
        if fetch.error is not None:
            if collected.records:
                return None
            self.buffer.popleft()
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
            collected.records.setdefault(fetch.tp, []).extend(records)
        if fetch.is_drained:
            self.buffer.popleft()
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
        """These were collected last but not handed out: hand them out again first, at their positions."""
        for tp, some in reversed(records.items()):
            state = self._subscription.assignment.get(tp)
            if state is None or state.position is None or not some:
                continue
            first = self.buffer[0] if self.buffer and self.buffer[0].tp == tp else None
            if first is None:
                first = CompletedFetch(tp, state.position.offset, None)
                self.buffer.appendleft(first)
            first.put_back(some)
            position = state.position
            state.advance(Position(some[0].offset, some[0].leader_epoch, position.leader, position.leader_epoch))

    def take_fetches(self) -> list[CompletedFetch]:
        """All answers that could be handed out, whole; the caller reports how far it got with `handed_out`."""
        fetches: list[CompletedFetch] = []
        set_aside: list[CompletedFetch] = []
        error: KafkaError | None = None
        while self.buffer and error is None:
            fetch = self.buffer.popleft()
            state = self._ready(fetch)
            if state is not None and state.is_paused:
                set_aside.append(fetch)
            elif state is not None and fetch.error is not None:
                error = fetch.error
                if fetches:
                    self.buffer.appendleft(fetch)
            elif state is not None and fetch.size:
                fetches.append(fetch)
        self.buffer.extend(set_aside)
        if error is not None and not fetches:
            raise error
        return fetches

    def handed_out(self, fetch: CompletedFetch, next_offset: int, epoch: int) -> None:
        """This answer went to the application up to `next_offset`."""
        state = self._subscription.assignment.get(fetch.tp)
        if state is None or state.position is None or not state.has_valid_position:
            return
        position = state.position
        if next_offset > position.offset:
            state.advance(Position(next_offset, epoch if epoch >= 0 else position.offset_epoch,
                                   position.leader, position.leader_epoch))  # fmt: skip
        self._subscription.move_to_end(fetch.tp)

    # Closing

    def close(self) -> list[Request]:
        """The requests that end the sessions at the brokers."""
        self.is_closed = True
        requests = []
        for node_id, broker in self._brokers.items():
            node = self._metadata.view.nodes.get(node_id)
            closing = broker.session.closing()
            if node is not None and closing is not None:
                request = self._request(node, closing, self._config.fetch_max_bytes)
                request.context = (None, {})
                request.message.max_wait_ms = 0
                requests.append(request)
        return requests
