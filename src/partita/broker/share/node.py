"""The share groups of one node: sessions of members, and the share partitions that it leads.

A group whose last session ends leaves memory; its state is loaded again when it is fetched next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from partita.broker.share.calls import Place
from partita.broker.share.led import LedPartition, Shell
from partita.broker.share.settings import ShareSettings
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from partita.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from partita.share.sessions import Key, Member, Plan, ShareSession, ShareSessions

if TYPE_CHECKING:
    from partita.broker.topics.catalogue import Partition
    from partita.broker.wire.contract import ConnectionHandle
    from partita.protocol.primitives import Message

PARTITIONS_MAX = 100_000
"""How many partitions the sessions of one node remember together."""
REMEMBERED_MAX = 1_000
"""So many sessions of one connection are remembered before those that are over are looked for."""


class ShareNode:
    """Sessions and share partitions of one node."""

    def __init__(self, shell: Shell, settings: ShareSettings) -> None:
        self.settings = settings
        self.sessions: ShareSessions[ConnectionHandle] = ShareSessions(PARTITIONS_MAX)
        self.led: dict[str, dict[Key, LedPartition]] = {}
        """Share partitions in memory, by group."""
        self._shell = shell
        self._guests: dict[ConnectionHandle, _Guest] = {}

    def lead(self, group_id: str, key: Key, partition: Partition) -> LedPartition:
        """The share partition; it begins to load if it was not in memory."""
        of_group = self.led.setdefault(group_id, {})
        led = of_group.get(key)
        if led is None or led.place.leader_epoch != partition.leader_epoch:
            if led is not None:
                led.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                of_group = self.led.setdefault(group_id, {})
            place = Place(group_id, *key, partition.leader_epoch)
            led = of_group[key] = LedPartition(
                place, partition, self._shell, self.settings, partial(self._ended, group_id, key)
            )
        led.is_leaving = False
        return led

    def in_memory(self, group_id: str, key: Key) -> LedPartition | None:
        """The share partition, if it is in memory."""
        return self.led.get(group_id, {}).get(key)

    def opened(self, plan: Plan[ConnectionHandle]) -> None:
        """A session has begun: it ends with its connection."""
        connection = plan.session.owner
        guest = self._guests.get(connection)
        if guest is None:
            guest = self._guests[connection] = _Guest(self, connection)
        if len(guest.members) >= REMEMBERED_MAX:
            guest.forget_those_of_no_use()
        guest.members[plan.session.member] = plan.session

    def ended(self, session: ShareSession[ConnectionHandle]) -> list[asyncio.Future[ErrorCode]]:
        """A session is over: give back what its member holds in its partitions. Returns the writes under way."""
        group_id, member_id = session.member
        held = (self.in_memory(group_id, key) for key in session.partitions)
        writes = [led.release(member_id) for led in held if led is not None]
        return [write for write in writes if write is not None]

    def disconnected(self, connection: ConnectionHandle, members: Iterable[ShareSession[ConnectionHandle]]) -> None:
        """The connection is gone that opened these sessions."""
        self._guests.pop(connection, None)
        for session in members:
            if self.sessions.sessions.get(session.member) is session:
                self.sessions.remove(session.member)
                self.ended(session)
            group_id = session.member[0]
            if not self.sessions.has_group(group_id):
                for led in list(self.led.get(group_id, {}).values()):
                    led.leave()

    def changed(self, topic_id: bytes, index: int) -> None:
        """A partition has another leader, or is gone: what was known of it counts no more."""
        self._end((topic_id, index))

    def replaced(self, message: Message) -> None:
        """The group has begun stored state anew, or deleted it, by this request: what leaders hold counts no more."""
        if not isinstance(message, InitializeShareGroupStateRequest | DeleteShareGroupStateRequest):
            return
        for topic in message.topics:
            for part in topic.partitions:
                led = self.in_memory(message.group_id, (bytes(topic.topic_id), part.partition))
                if led is not None:
                    led.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def clock_jumped(self) -> None:
        """Do what the clock's new time makes due."""
        for led in self._all():
            led.on_timer()

    def stop(self) -> None:
        """Forget everything: the node stops."""
        for led in self._all():
            led.stop()
        for guest in self._guests.values():
            guest.connection.forget(guest.gone)
        self._guests.clear()

    def _all(self) -> list[LedPartition]:
        return [led for of_group in self.led.values() for led in of_group.values()]

    def _end(self, key: Key) -> None:
        for of_group in list(self.led.values()):
            led = of_group.get(key)
            if led is not None:
                led.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _ended(self, group_id: str, key: Key) -> None:
        of_group = self.led.get(group_id, {})
        of_group.pop(key, None)
        if not of_group:
            self.led.pop(group_id, None)


class _Guest:
    """A connection, and the sessions it has opened. One that is over counts while its group is in memory."""

    __slots__ = ("connection", "gone", "members", "node")

    def __init__(self, node: ShareNode, connection: ConnectionHandle) -> None:
        self.node = node
        self.connection = connection
        self.members: dict[Member, ShareSession[ConnectionHandle]] = {}
        self.gone = self._gone
        connection.on_close(self.gone)

    def forget_those_of_no_use(self) -> None:
        """Forget sessions that are over and whose groups have nothing in memory."""
        live, led = self.node.sessions.sessions, self.node.led
        self.members = {m: s for m, s in self.members.items() if live.get(m) is s or m[0] in led}

    def _gone(self) -> None:
        self.node.disconnected(self.connection, tuple(self.members.values()))
