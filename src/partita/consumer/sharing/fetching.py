"""Share fetches and acknowledgements: one session for each leader, and the records that came of them.

A leader is asked for records while the application polls and nothing is left to hand out. What was acknowledged travels
with that fetch, or alone as soon as the session is free. Locks of records that wait here, or that a handler works on,
are renewed at half their time, as long as the application comes back within max_poll_interval_ms; without that, records
that were fetched together with slow ones would be given again and again, and archived without ever being seen.
(Kafka: ShareConsumeRequestManager.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from partita.consumer.errors import CorruptRecordError
from partita.consumer.metadata import Metadata
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, CommitCallback, Event, Failed, Poll, Request
from partita.consumer.sharing.answers import Acquired, acquired_of
from partita.consumer.sharing.holding import Commit, Hold, Holdings, Parcel, Stage, Verdict
from partita.consumer.sharing.session import FINAL_EPOCH, PartitionId, Session
from partita.consumer.sharing.settings import ShareConfig
from partita.errors import KafkaError, error_for
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from partita.protocol.messages.share_fetch import ShareFetchResponse
from partita.protocol.metadata_view import Node
from partita.wording import Note

RECORD_LIMIT = 1


class _Asked(NamedTuple):
    """The context of a request. `is_final` ends the session."""

    session: Session
    parcels: list[Parcel]
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The partitions to read at one leader."""

    node: Node
    partitions: frozenset[PartitionId]


class ShareFetching:
    """`ready` holds what the next poll hands out: records, and errors where records cannot be read."""

    def __init__(
        self,
        config: ShareConfig,
        metadata: Metadata,
        member_id: str,
        events: list[Event],
        uniform: Callable[[float, float], float],
    ) -> None:
        self.holdings = Holdings()
        self.ready: deque[Hold | CorruptRecordError] = deque()
        self.assigned: frozenset[PartitionId] = frozenset()
        self.is_polling = False
        self.demand: int | None = None
        """Most records a pool of workers takes now, one leader after the other; None: max_poll_records."""
        self.is_closing = False
        self.polled_at_ms = 0
        self.lock_ms = 0
        """How long a record is locked, by the last answer; 0 before there was one."""
        self.callback: Callable[..., Any] | None = None
        self.can_renew = True
        self._has_renewed = False
        self._config = config
        self._metadata = metadata
        self._events = events
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._sessions: dict[int, Session] = {}
        self._last_node = -1
        self._head = {"group_id": config.group_id or "", "member_id": member_id}

    # Asking

    def poll(self, now: Now, poll: Poll) -> None:
        """At most one request to each leader: its session allows no more."""
        self._drop_ended_locks(now)
        self._renew(now, poll)
        wanted = {} if self.is_closing else self._wanted()
        for node_id in sorted({*wanted, *self._sessions}, key=self._in_turn):
            session = self._sessions.setdefault(node_id, Session(node_id))
            if session.in_flight is None:
                self._ask(session, wanted.get(node_id), now, poll)

    def _in_turn(self, node_id: int) -> tuple[bool, int]:
        """The leaders behind the last one that was asked come first."""
        return node_id <= self._last_node, node_id

    def _wanted(self) -> dict[int, Wanted]:
        found: dict[int, tuple[Node, set[PartitionId]]] = {}
        for topic_id, partition in self.assigned:
            name = self._metadata.view.name_of(topic_id)
            leader = None if name is None else self._metadata.view.leader(name, partition)
            if leader is None:
                self._metadata.request_update()
            else:
                found.setdefault(leader.id, (leader, set()))[1].add((topic_id, partition))
        return {node_id: Wanted(node, frozenset(some)) for node_id, (node, some) in found.items()}

    def _ask(self, session: Session, wanted: Wanted | None, now: Now, poll: Poll) -> None:
        node = self._metadata.view.nodes.get(session.node_id)
        if node is None:
            self._forget(session)
            return
        self._cut_lost(session, now)
        if self.is_closing and (session.epoch == 0 or not session.outbox):
            self._end(session, node, poll)
            return
        if now.mono_ms < session.not_before_ms:
            poll.wake_in(session.not_before_ms - now.mono_ms)
            return
        fetches = wanted is not None and self._may_fetch()
        places = wanted.partitions if wanted is not None else frozenset()
        rides = fetches and session.epoch > 0 and all(_rides(parcel, places) for parcel in session.outbox)
        if session.outbox and not rides:
            if session.epoch == 0:
                self._post(session, node, session.fetch(places, [], self._fetch_head(0)), [], poll, places)
            else:
                parcels = session.due_parcels()
                self._post(session, node, session.acknowledge(parcels, self._head), parcels, poll, session.partitions)
        elif fetches:
            parcels = session.due_parcels()
            most = self._config.max_poll_records if self.demand is None else self.demand
            self._post(session, node, session.fetch(places, parcels, self._fetch_head(most)), parcels, poll, places)
            self._last_node = session.node_id

    def _may_fetch(self) -> bool:
        if not self.is_polling or self.ready or self.demand == 0:
            return False
        is_limited = self._config.is_record_limit or self.demand is not None
        return not (is_limited and any(_is_fetching(session) for session in self._sessions.values()))

    def _fetch_head(self, most: int) -> dict[str, Any]:
        """The fields that say how much. Waiting is kept short against locks: a renewal waits behind the fetch."""
        config, wait_ms = self._config, self._config.fetch_max_wait_ms
        is_limited = config.is_record_limit or self.demand is not None
        return self._head | {
            "max_wait_ms": min(wait_ms, self.lock_ms // 4) if self.lock_ms else wait_ms,
            "min_bytes": config.fetch_min_bytes,
            "max_bytes": config.fetch_max_bytes,
            "max_records": most,
            "batch_size": max(1, most),
            "share_acquire_mode": RECORD_LIMIT if is_limited and most else 0,
        }

    def _end(self, session: Session, node: Node, poll: Poll) -> None:
        """End the session: the leader releases all that it still holds for this member."""
        if session.is_ended:
            return
        session.is_ended = True
        if session.epoch == 0:
            lost, session.outbox = session.outbox, []
            self._fail(lost, error_for(ErrorCode.SHARE_SESSION_NOT_FOUND))
            return
        session.epoch = FINAL_EPOCH
        message = session.acknowledge([], self._head)
        self._post(session, node, message, [], poll, session.partitions, is_final=True)

    def _post(
        self,
        session: Session,
        node: Node,
        message: Any,
        parcels: list[Parcel],
        poll: Poll,
        partitions: frozenset[PartitionId],
        *,
        is_final: bool = False,
    ) -> None:
        """Send this; from then on these are the partitions of the session, and the parcels are on their way.

        The stores stand in a row: Ctrl-C breaks off before all of them, or behind them, where the request is known.
        """
        left = [parcel for parcel in session.outbox if parcel not in parcels]
        request = poll.ask(Request(self, message, node, context=_Asked(session, parcels, is_final)))
        session.in_flight, session.outbox, session.partitions = request, left, partitions

    def _cut_lost(self, session: Session, now: Now) -> None:
        """A record whose lock is over is not acknowledged: the leader would refuse the others of its request, too."""
        for parcel in list(session.outbox):
            lost = [hold for hold in parcel.holds if self.is_lost(hold, now)]
            if not lost:
                continue
            rest = [hold for hold in parcel.holds if not self.is_lost(hold, now)]
            session.outbox.remove(parcel)
            if rest or parcel.ranges:
                kept = parcel.part(rest)
                kept.ranges = parcel.ranges
                session.outbox.append(kept)
            error = error_for(ErrorCode.INVALID_RECORD_STATE, f"the lock of {lost[0]} is over")
            refused = parcel.part(lost)
            if parcel.commit is not None:
                parcel.commit.open -= 1
            self._end_parcel(refused, error, now)

    # Locks

    def _drop_ended_locks(self, now: Now) -> None:
        """Records that wait here and whose lock is over belong to others: they are not handed out."""
        while self.ready and isinstance(first := self.ready[0], Hold) and self.is_lost(first, now):
            self.ready.popleft()
            self.holdings.drop(first)

    def is_lost(self, hold: Hold, now: Now) -> bool:
        """Is the lock of this record over, by this client's clock?"""
        return now.mono_ms >= hold.deadline_ms

    def _renew(self, now: Now, poll: Poll) -> None:
        is_alive = now.mono_ms < self.polled_at_ms + self._config.max_poll_interval_ms
        if not (self.can_renew and self.lock_ms and self.holdings.all):
            return
        half = self.lock_ms // 2
        due_ms = [
            hold.deadline_ms - half
            for hold in self.holdings.all.values()
            if not hold.is_renewing and self._is_kept(hold, is_alive=is_alive)
        ]
        if not due_ms:
            return
        if min(due_ms) > now.mono_ms:
            poll.wake_in(min(due_ms) - now.mono_ms)
            return
        for parcel in self.holdings.renewals(
            # Those that end a little later go along, so that a batch costs one request.
            lambda hold: self._is_kept(hold, is_alive=is_alive) and hold.deadline_ms - half <= now.mono_ms + half // 2
        ):
            self._put_out(parcel)

    def _is_kept(self, hold: Hold, *, is_alive: bool) -> bool:
        is_in_work = hold.stage is Stage.GIVEN and (hold.is_worked_on or hold.is_in_loop)
        return is_alive and (is_in_work or hold.stage is Stage.BUFFERED)

    # The application

    def send_said(self, commit: Commit | None = None) -> None:
        """Have everything sent that was said so far; `commit` hears of it."""
        self.holdings.send(commit, self._put_out)
        if commit is not None:
            commit.end_if_all_heard()

    def _put_out(self, parcel: Parcel) -> None:
        node_id = parcel.place.node_id
        self._sessions.setdefault(node_id, Session(node_id)).outbox.append(parcel)

    def take(self, most: int, now: Now) -> Iterator[Hold]:
        """Hand out up to `most` records. Raises CorruptRecordError where the next ones cannot be read."""
        for _ in range(most):
            self._drop_ended_locks(now)
            if not self.ready or isinstance(self.ready[0], CorruptRecordError):
                return
            hold = self.ready[0]
            assert isinstance(hold, Hold), "errors were looked for"
            self.holdings.give(hold)
            self.ready.popleft()  # last, so that Ctrl-C leaves none that is nowhere
            yield hold

    def give_back(self, holds: list[Hold]) -> None:
        """The application did not get these after all: they come first in the next poll."""
        for hold in reversed(holds):
            if hold.stage is Stage.GIVEN:
                if hold not in self.ready:
                    self.ready.appendleft(hold)
                hold.move(Stage.BUFFERED)
                hold.is_worked_on = hold.is_in_loop = False
                self.holdings.given.pop(hold.key, None)

    def release_waiting(self) -> None:
        """Release the records that were not handed out."""
        for hold in [one for one in self.ready if isinstance(one, Hold)]:
            self.holdings.give(hold)
            self.holdings.say(hold, Verdict.RELEASE)
        self.ready.clear()
        self.send_said()

    def close(self) -> None:
        """Release everything that was not acknowledged, and end the sessions."""
        self.is_closing, self.is_polling = True, False
        self.release_waiting()
        for hold in list(self.holdings.all.values()):
            if hold.stage is Stage.GIVEN and hold.verdict is None:
                hold.is_worked_on = False
                self.holdings.say(hold, Verdict.RELEASE)
        self.send_said()

    @property
    def has_ended(self) -> bool:
        """Are all sessions ended?"""
        return all(session.is_ended and session.in_flight is None for session in self._sessions.values())

    # Answers

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Settle the acknowledgements that the request carried, and take the records that came."""
        session, parcels, _ = request.context
        session.in_flight = None
        if response.error_code:
            self._refused(session, parcels, response, now)
            return
        session.failures = 0
        session.passed()
        if response.acquisition_lock_timeout_ms > 0:
            self.lock_ms = response.acquisition_lock_timeout_ms
        parts = {(t.topic_id, p.partition_index): p for t in response.responses for p in t.partitions}
        self._settle(parcels, parts, now)
        self._follow_hints(response)
        if isinstance(response, ShareFetchResponse):
            self._take_records(session, response, now)

    def _refused(self, session: Session, parcels: list[Parcel], response: Any, now: Now) -> None:
        """The request was not taken: begin a new session, which keeps the locks that this member has."""
        session.lost()
        code, group = response.error_code, self._config.group_id or ""
        error = error_for(code, response.error_message, operation="READ", names=[group])
        self._fail(parcels, error)
        match reaction("ShareFetch", code):
            case Reaction.NEW_SESSION:
                self._rest(session, now)
            case _:
                self._events.append(Failed(error))
                self._rest(session, now)

    def _rest(self, session: Session, now: Now) -> None:
        session.not_before_ms = now.mono_ms + self._backoff.after(session.failures)
        session.failures += 1

    def _settle(self, parcels: list[Parcel], parts: dict[PartitionId, Any], now: Now) -> None:
        for parcel in parcels:
            part = parts.get((parcel.place.topic_id, parcel.place.tp.partition))
            if part is None:
                code, text = int(ErrorCode.UNKNOWN_SERVER_ERROR), "the answer does not name the partition"
            elif hasattr(part, "acknowledge_error_code"):
                code, text = part.acknowledge_error_code, part.acknowledge_error_message
            else:
                code, text = part.error_code, part.error_message
            error = error_for(code, text, operation="READ", names=[parcel.place.tp.topic]) if code else None
            self._answered(parcel, error, now)

    def _try_parts(self, parcel: Parcel, error: KafkaError | None) -> bool:
        """One record that is not this member's any more fails all of its partition: try each half by itself."""
        is_mixed = error is not None and error.code is ErrorCode.INVALID_RECORD_STATE and len(parcel.holds) > 1
        session = self._sessions[parcel.place.node_id]
        if not is_mixed or session.is_ended or (parcel.renews and not self._has_renewed):
            return False
        middle = len(parcel.holds) // 2
        session.outbox += [parcel.part(some, is_alone=True) for some in (parcel.holds[:middle], parcel.holds[middle:])]
        if parcel.commit is not None:
            parcel.commit.open -= 1
        return True

    def _answered(self, parcel: Parcel, error: KafkaError | None, now: Now) -> None:
        """One parcel was done, or refused as a whole."""
        if not self._try_parts(parcel, error):
            self._end_parcel(parcel, error, now)

    def _end_parcel(self, parcel: Parcel, error: KafkaError | None, now: Now) -> None:
        said = [hold.record.offset for hold in parcel.holds if not hold.is_renewing]
        for hold in parcel.holds:
            if parcel.verdicts[hold.record.offset] is Verdict.RENEW:
                self._renewed(hold, error, now)
            elif hold.stage is Stage.SENT:
                self.holdings.drop(hold)
        if parcel.commit is not None:
            parcel.commit.heard(parcel.place.tp, error)
        if said and self.callback is not None:
            self._events.append(CommitCallback(self.callback, {parcel.place.tp: said}, error))
        elif said and error is not None and parcel.commit is None:
            text = f"{len(said)} acknowledgements of {parcel.place.tp} failed, so these come again: {error}"
            self._events.append(Note("acknowledgement_failed", text, {"partition": str(parcel.place.tp)}))

    def _renewed(self, hold: Hold, error: KafkaError | None, now: Now) -> None:
        if not hold.is_renewing:  # the application said renew: it gets the record again, first
            if error is None:
                hold.move(Stage.BUFFERED)
                hold.deadline_ms = now.mono_ms + self.lock_ms
                self.ready.appendleft(hold)
            else:
                self.holdings.drop(hold)
            return
        hold.is_renewing = False
        if error is None:
            self._has_renewed = True
            hold.deadline_ms = now.mono_ms + self.lock_ms
        else:
            # Most likely the group forbids renewing, or the lock is over. Once more would not help.
            self.can_renew = error.code is not ErrorCode.UNSUPPORTED_VERSION
            hold.is_worked_on = hold.is_in_loop = False

    def _fail(self, parcels: list[Parcel], error: KafkaError) -> None:
        for parcel in parcels:
            self._answered(parcel, error, Now(0, 0))

    def _take_records(self, session: Session, response: ShareFetchResponse, now: Now) -> None:
        has_error = False
        for topic in response.responses:
            name = self._metadata.view.name_of(topic.topic_id)
            for data in topic.partitions:
                if data.error_code:
                    has_error = True
                    self._partition_refused(name or f"topic id {topic.topic_id.hex()}", data.error_code)
                elif data.acquired_records and name is not None:
                    tp = TopicPartition(name, data.partition_index)
                    acquired = acquired_of(
                        tp, topic.topic_id, session.node_id, data, check_crcs=self._config.check_crcs
                    )
                    self._keep(session, acquired, now)
        if has_error:
            self._rest(session, now)

    def _keep(self, session: Session, acquired: Acquired, now: Now) -> None:
        deadline_ms = now.mono_ms + self.lock_ms
        for hold in acquired.holds:
            hold.deadline_ms = deadline_ms
            self.holdings.add(hold)
            self.ready.append(hold)
        if acquired.others.ranges:
            session.outbox.append(acquired.others)
        if acquired.fault is not None:
            self.ready.append(acquired.fault)

    def _partition_refused(self, topic: str, code: int) -> None:
        match reaction("ShareFetch, each partition", code):
            case Reaction.REFRESH:
                self._metadata.request_update()
            case Reaction.RAISE:
                self._events.append(Failed(error_for(code, topic, operation="READ", names=[topic])))

    def _follow_hints(self, response: ShareFetchResponse | ShareAcknowledgeResponse) -> None:
        """A broker that no longer leads names the new leader."""
        nodes = {n.node_id: Node(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints}
        for topic in response.responses:
            name = self._metadata.view.name_of(topic.topic_id)
            for part in topic.partitions:
                leader = part.current_leader
                if name is not None and leader.leader_id in nodes:
                    place = (name, part.partition_index, leader.leader_id, leader.leader_epoch)
                    self._metadata.view.move_leader(*place, nodes[leader.leader_id])

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came. The leader has ended the session and released its records, or will when it notices."""
        session, parcels, is_final = request.context
        session.in_flight = None
        session.lost()
        self._fail(parcels, error_for(ErrorCode.NETWORK_EXCEPTION, "the connection ended before the answer came"))
        if not is_final:
            self._metadata.request_update()
            self._rest(session, now)

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker speaks no version that would do: it has no share groups, or cannot renew or limit."""
        session, parcels, _ = request.context
        session.in_flight = None
        self._fail(parcels, error_for(ErrorCode.UNSUPPORTED_VERSION, str(error)))
        if not parcels:
            self._events.append(Failed(error))
            self._rest(session, now)

    def _forget(self, session: Session) -> None:
        """Its node is not in the cluster any more: locks there end by themselves."""
        session.is_ended = True
        session.lost()
        lost, session.outbox = session.outbox, []
        self._fail(lost, error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the leader is gone"))


def _rides(parcel: Parcel, places: frozenset[PartitionId]) -> bool:
    """May it travel in a fetch of these partitions?"""
    return not parcel.renews and (parcel.place.topic_id, parcel.place.tp.partition) in places


def _is_fetching(session: Session) -> bool:
    return session.in_flight is not None and type(session.in_flight.message).__name__ == "ShareFetchRequest"
