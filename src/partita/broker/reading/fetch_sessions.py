"""Incremental fetch sessions (KIP-227): what a client asked for is remembered, and only news is answered.

A session has an id, an epoch that counts its requests, and partitions in the order they are served; those that gave
data go to the end, so that every one gets its turn. (Kafka: FetchSession.scala.)

Deviation: Partita ends a fetch session with its connection or after 2 minutes without use, and remembers 100,000
partitions per node in all sessions, where Kafka counts sessions only and keeps them until their slot is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from partita.broker.wire.turns import let_go
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

if TYPE_CHECKING:
    from partita.broker.wire.contract import ConnectionHandle

Key = tuple[bytes | str, int]
"""Topic id (version 13+) or name, and partition."""
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_MAX_EPOCH = 2**31 - 1
EXPIRES_MS = 120_000
"""A session that is not used for so long ends: clients fetch at least every 30 seconds."""
PARTITIONS_MAX = 100_000
"""Number of partitions that the sessions of one node remember together. (H26)"""
_IDS_FROM = 13


class Wanted:
    """One partition of a fetch, and the state last sent to the client."""

    __slots__ = ("asked", "high_watermark", "log_start_offset", "topic")

    def __init__(self, topic: bytes | str, asked: FetchPartition) -> None:
        self.topic = topic
        self.asked = asked
        self.high_watermark = -1
        self.log_start_offset = -1

    def is_news(self, data: PartitionData) -> bool:
        """Whether an incremental answer must show this."""
        return bool(
            data.records
            or data.error_code
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.epoch >= 0
        )

    def told(self, data: PartitionData) -> None:
        """Remember the partition's part of an answer."""
        # After an error whatever comes next is news.
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset


class Session:
    """One client's fetch session."""

    __slots__ = ("connection", "epoch", "last_used_ms", "on_close", "partitions", "session_id", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        partitions: dict[Key, Wanted],
        *,
        uses_topic_ids: bool,
        now_ms: int,
        connection: ConnectionHandle,
        on_close: Callable[[], None],
    ) -> None:
        self.session_id = session_id
        self.connection = connection
        self.on_close = on_close
        self.epoch = 1
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.last_used_ms = now_ms


class FetchPlan:
    """The partitions of one request, and how its answer is put together."""

    __slots__ = ("_is_incremental", "_partitions", "session")

    def __init__(self, partitions: dict[Key, Wanted], session: Session | None, *, is_incremental: bool) -> None:
        self._partitions = partitions
        self._is_incremental = is_incremental
        self.session = session

    @property
    def session_id(self) -> int:
        """The number for the answer; 0 without a session."""
        return 0 if self.session is None else self.session.session_id

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Wanted]:
        return iter(tuple(self._partitions.values()))

    def let_go(self) -> Iterator[None]:
        """Give back the partitions, in steps, unless a session keeps them."""
        if self.session is None:
            yield from let_go(self._partitions)

    def shows(self, wanted: Wanted, data: PartitionData) -> bool:
        """Whether the answer shows this, which is then remembered. To be called once, for the answer that is sent."""
        if self.session is None:
            return True
        if self._is_incremental and not wanted.is_news(data):
            return False
        wanted.told(data)
        key = (wanted.topic, data.partition_index)
        if data.records and key in self._partitions:
            self._partitions[key] = self._partitions.pop(key)
        return True


class FetchSessions:
    """The sessions of one node, at most `slots` of them, with at most PARTITIONS_MAX partitions together."""

    def __init__(
        self,
        slots: int,
        new_number: Callable[[], int] | None = None,
        work_off: Callable[[Iterator[object]], None] | None = None,
    ) -> None:
        self._slots = slots
        self._work_off = work_off or deque[object](maxlen=0).extend
        self._new_number = new_number or (lambda: Random().getrandbits(31))
        self.sessions: dict[int, Session] = {}
        """By id, the one used longest ago first."""
        self.partition_count = 0

    def plan(
        self,
        request: FetchRequest,
        version: int,
        now_ms: int,
        connection: ConnectionHandle,
        named: dict[Key, Wanted] | None = None,
    ) -> FetchPlan | ErrorCode:
        """Return the request's partitions, with its session taken into account, or the error of the whole request.

        `named` has what `wanted` gives of each topic, for a caller that has gone through them in slices.
        """
        self._expire(now_ms)
        uses_topic_ids = version >= _IDS_FROM
        if named is None:
            named = dict(found for topic in request.topics for found in wanted(topic, version))
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.end(request.session_id)
            partitions = named
            session = None
            if request.session_epoch == INITIAL_EPOCH and partitions and self._has_room(len(partitions)):
                session = self._open(partitions, uses_topic_ids, now_ms, connection)
            return FetchPlan(partitions, session, is_incremental=False)
        session = self.sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return self._go_on(session, request, named, now_ms)

    def end(self, session_id: int) -> None:
        """Forget a session. Nothing happens when there is none of this id."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= len(session.partitions)
            session.connection.forget(session.on_close)
            self._work_off(let_go(session.partitions))

    def _go_on(
        self, session: Session, request: FetchRequest, named: dict[Key, Wanted], now_ms: int
    ) -> FetchPlan | ErrorCode:
        before = len(session.partitions)
        for key, new in named.items():
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = new
            else:
                known.asked = new.asked
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if session.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                session.partitions.pop((topic, index), None)
        self.partition_count += len(session.partitions) - before
        if self.partition_count > PARTITIONS_MAX:
            self.end(session.session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if not session.partitions:
            self.end(session.session_id)
            return FetchPlan({}, None, is_incremental=False)
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        # The dictionary keeps the order of use: the first entry is the one that expires first.
        self.sessions[session.session_id] = self.sessions.pop(session.session_id)
        session.last_used_ms = now_ms
        return FetchPlan(session.partitions, session, is_incremental=True)

    def _expire(self, now_ms: int) -> None:
        """End the sessions that were not used for too long."""
        while self.sessions:
            oldest = next(iter(self.sessions.values()))
            if now_ms - oldest.last_used_ms < EXPIRES_MS:
                return
            self.end(oldest.session_id)

    def _has_room(self, partitions: int) -> bool:
        return len(self.sessions) < self._slots and self.partition_count + partitions <= PARTITIONS_MAX

    def _open(
        self, partitions: dict[Key, Wanted], uses_topic_ids: bool, now_ms: int, connection: ConnectionHandle
    ) -> Session:
        session_id = 0
        while session_id == 0 or session_id in self.sessions:
            session_id = self._new_number()
        session = Session(
            session_id,
            partitions,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
            connection=connection,
            on_close=partial(self.end, session_id),
        )
        self.sessions[session_id] = session
        self.partition_count += len(partitions)
        connection.on_close(session.on_close)
        return session


def wanted(topic: FetchTopic, version: int) -> Iterator[tuple[Key, Wanted]]:
    """Each partition that a request names of the topic; the last entry of one counts."""
    name = topic.topic_id if version >= _IDS_FROM else topic.topic
    for asked in topic.partitions:
        yield (name, asked.partition), Wanted(name, asked)
