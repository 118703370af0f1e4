"""Fetching: requests per broker and their times (consumer.md 9).

One Fetch in flight per broker; a broker that leads a partition with unpaused data in the buffer is not asked, so the
next fetch leaves when the last record of the previous one is handed out. (Kafka: AbstractFetch, FetchCollector.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from partita.consumer.config import ConsumerConfig
from partita.consumer.metadata import Metadata
from partita.consumer.partition_state import PartitionState, Position
from partita.consumer.reading.fetch_answer import FetchAnswers
from partita.consumer.reading.fetch_buffer import FetchBuffer
from partita.consumer.reading.fetch_session import INITIAL_EPOCH, FetchSession, FetchSlot, SessionRequest
from partita.consumer.reading.positions import Positions
from partita.consumer.request import Backoff, Poll, Request
from partita.consumer.subscription import Subscription
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from partita.protocol.metadata_view import Node

NAMED_VERSION_MAX = 12
"""The last version that speaks of topics by name."""


@dataclass(slots=True)
class _Broker:
    session: FetchSession = field(default_factory=FetchSession)
    in_flight: Request | None = None
    failures: int = 0
    not_before_ms: int = 0


Wanted: TypeAlias = dict[int, tuple[Node, dict[TopicPartition, FetchSlot]]]
_LOOK = attrgetter("state", "position", "is_paused", "pending_revocation", "awaits_callback", "preferred_replica")
"""What decides of a partition whether it is fetched, and from where."""


class _Place(NamedTuple):
    """Broker and request of a partition while it stands at this position."""

    position: Position
    node: Node
    slot: FetchSlot


class Fetching:
    """`poll` asks the brokers; complete answers go into `buffer`, which hands them out."""

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: Subscription,
        metadata: Metadata,
        positions: Positions,
        buffer: FetchBuffer,
        uniform: Callable[[float, float], float],
    ) -> None:
        self._subscription = subscription
        self._buffer = buffer
        self._config = config
        self._metadata = metadata
        self._positions = positions
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._brokers: dict[int, _Broker] = {}
        self._places: dict[TopicPartition, _Place] = {}
        """Of the positions that leaders are asked for, until the metadata change: most stand still between fetches."""
        self._places_version = -1
        self._looks: object = None
        """All that `_last_wanted` depends on; None where that is time as well, or an answer that is still to come."""
        self._last_wanted: Wanted = {}
        self._leaders_known: tuple[int, int] = (-1, -1)
        """The versions of metadata and assignment at which every partition held has a leader."""
        self._answers = FetchAnswers(config, subscription, metadata, positions)
        self._remark: Callable[[str], None] | None = None
        self.is_closed = False
        self.is_stopped = False
        """The membership is lost: partitions still assigned may belong to others, as the next poll will report."""

    def on_remark(self, remark: Callable[[str], None] | None) -> None:
        """Call `remark` with a line for each fetch and for data that is dropped or held back; None ends that."""
        self._remark = self._answers.remark = self._buffer.remark = remark

    # Asking

    def poll(self, now: Now, poll: Poll) -> None:
        """One Fetch for each broker that may be asked now.

        The trick is which brokers are left out. A broker with a fetch in flight is, because its session allows only
        one. A broker that leads an unpaused partition with data in the buffer is, too: asked now, it would answer for
        its other partitions in many small pieces. It is asked when the last record of its previous answer has been
        handed out, and then for all its partitions at once. Partitions that are paused, rest after an error or have no
        position yet are left out of the request, so the session forgets them until they come back.
        """
        if self.is_closed or self.is_stopped or not self._subscription.assignment:
            return
        # A bound on memory that Kafka's consumer does not have: slow applications with many brokers would buffer for
        # all of them.
        room = self._config.fetch_buffer_max_bytes - (self._buffer.size)
        if room <= 0:
            return
        held = self._held_brokers()
        if self._are_all_held(held):
            return
        for node, slots in self._wanted(held, now, poll).values():
            self._ask(node, slots, room, now, poll)

    def _wanted(self, held: set[int], now: Now, poll: Poll) -> Wanted:
        """Every broker that may be asked, with what to ask it for, as found last time if nothing has changed since.

        To compare costs a quarter of a walk, which counts where thousands of partitions are at rest.
        """
        self._follow_metadata()
        assignment = self._subscription.assignment
        looks = held, self._places_version, self._subscription.version, list(map(_LOOK, assignment.values()))
        stays = not self._answers.any_rests and not self._positions.blocks_any
        if stays and self._looks == looks:
            return self._last_wanted
        wanted: Wanted = {}
        for tp, state in assignment.items():
            if not state.is_fetchable or self._positions.is_blocked(tp):
                continue
            place = self._places.get(tp)
            # Identity is enough: positions are immutable, and a new one is another object. Replicas chosen for a time
            # are looked at each time, since they expire.
            if place is None or place.position is not state.position or state.preferred_replica >= 0:
                place = self._place(tp, state, now)
                stays = stays and state.preferred_replica < 0
            if place is None:
                self._metadata.request_update()
                stays = False
                continue
            # A partition that answered an error rests alone; the others of its broker go on.
            wait = self._answers.wait_ms(tp, now)
            if wait > 0:
                poll.wake_in(wait)
                continue
            node_id = place.node.id
            if node_id in held:
                continue
            if node_id not in wanted:
                wanted[node_id] = place.node, {}
            wanted[node_id][1][tp] = place.slot
        self._looks, self._last_wanted = looks if stays else None, wanted
        return wanted

    def _held_brokers(self) -> set[int]:
        """Brokers with a fetch in flight, or with data in the buffer that could be handed out."""
        held = {node_id for node_id, broker in self._brokers.items() if broker.in_flight is not None}
        for fetch in self._buffer:
            state = self._subscription.assignment.get(fetch.tp)
            if state is not None and not state.is_paused:
                held.add(fetch.node_id)
        return held

    def _are_all_held(self, held: set[int]) -> bool:
        """Whether no partition can be asked for, so that none has to be looked at; an answer brings the next look."""
        view, versions = self._metadata.view, (self._metadata.view.version, self._subscription.version)
        if not held.issuperset(view.nodes):
            return False
        if self._leaders_known != versions and all(view.leader(*tp) for tp in self._subscription.assignment):
            self._leaders_known = versions
        return self._leaders_known == versions

    def _follow_metadata(self) -> None:
        """Forget the places when leaders, epochs or ids of topics may be others."""
        if self._places_version != self._metadata.view.version:
            self._places_version = self._metadata.view.version
            self._places.clear()

    def _node_for(self, tp: TopicPartition, state: PartitionState, now: Now) -> Node | None:
        view = self._metadata.view
        if state.preferred_replica >= 0:
            if now.mono_ms < state.preferred_until_ms and view.has_online_replica(*tp, state.preferred_replica):
                return view.nodes[state.preferred_replica]
            if now.mono_ms < state.preferred_until_ms:
                self._metadata.request_update()
            state.preferred_replica = -1
        return view.leader(*tp)

    def _place(self, tp: TopicPartition, state: PartitionState, now: Now) -> _Place | None:
        """Return which broker to ask for which slot; None while no leader is known."""
        node, view, position = self._node_for(tp, state, now), self._metadata.view, state.position
        if node is None:
            return None
        assert position is not None, "a fetchable partition has a position"
        size, epoch = self._config.max_partition_fetch_bytes, view.leader_epoch(*tp)
        place = _Place(position, node, FetchSlot(position.offset, size, epoch, view.topic_id(tp.topic)))
        if state.preferred_replica < 0:
            self._places[tp] = place
        return place

    def _ask(self, node: Node, slots: dict[TopicPartition, FetchSlot], room: int, now: Now, poll: Poll) -> None:
        broker = self._brokers.setdefault(node.id, _Broker())
        if now.mono_ms < broker.not_before_ms:
            poll.wake_in(broker.not_before_ms - now.mono_ms)
            return
        try:
            # All partitions wanted from this broker: the session sends only what changed, and names those that are
            # gone.
            session = broker.session.build(slots)
            request = self._request(node, session, min(self._config.fetch_max_bytes, room))
            # A copy of what was asked: positions may have moved by the time the answer comes, which is then dropped for
            # them.
            request.context = (broker, dict(broker.session.slots))
            broker.in_flight = poll.ask(request)
        except BaseException:
            # Ctrl-C: the broker never hears of these offsets, and would go on answering from its own. Stores alone,
            # which another Ctrl-C cannot break off.
            broker.session.epoch, broker.in_flight = INITIAL_EPOCH, None
            raise
        if self._remark is not None:
            places = ", ".join(f"{tp} from {slot.offset}" for tp, slot in slots.items())
            self._remark(f"fetching from node {node.id}: {places}")

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
        # One topic without an id, and the whole request speaks of names: a session must not mix them.
        return Request(self, message, node, max_version=None if session.uses_topic_ids else NAMED_VERSION_MAX)

    # Answers

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Buffer the answer; an answer that cannot be used makes the broker rest."""
        broker, slots = request.context
        # The answer to a closing of the session: nothing waits for it.
        if broker is None:
            return
        broker.in_flight = None
        completed = self._answers.read(broker.session, slots, request, response, now)
        if completed is None:
            self._rest(broker, now)
            return
        broker.failures = 0
        for fetch in completed:
            if fetch.size == 0 and fetch.error is None and not self._buffer:
                continue
            self._buffer.append(fetch)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: the session is reopened, at once the first time and then with back-off."""
        broker, slots = request.context
        if broker is None:
            return
        broker.in_flight = None
        # Whether the broker has seen the request is unknown, so the epoch of the session is, too: it is opened anew.
        broker.session.lost()
        self._rest(broker, now)
        self._metadata.request_update()
        for tp in slots:
            state = self._subscription.assignment.get(tp)
            if state is not None:
                # The replica may be gone; the leader names another one if there is a better.
                state.preferred_replica = -1

    def _rest(self, broker: _Broker, now: Now) -> None:
        """Ask again at once after the first failure, then with growing back-off."""
        broker.not_before_ms = now.mono_ms + (self._backoff.after(broker.failures - 1) if broker.failures else 0)
        broker.failures += 1

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
                # The application waits for close: the broker is not to wait for data that will not be read.
                request.message.max_wait_ms = 0
                requests.append(request)
        return requests
