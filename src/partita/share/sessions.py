"""Share sessions: which partitions a member fetches from one node, remembered between its requests.

A session belongs to a group and a member id, whether or not the group knows this member, and to the connection that
opened it. Its epoch counts the requests. (Kafka: ShareSessionCache, ShareSession, SharePartitionManager.newContext.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from partita.protocol.error_codes import ErrorCode

Key = tuple[bytes, int]
"""Topic id and partition."""
Member = tuple[str, str]
"""Group and member id."""
Owner = TypeVar("Owner")
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
EPOCH_MAX = 2**31 - 1


class ShareSession(Generic[Owner]):
    """One member's partitions on one node, in the order in which they were added."""

    __slots__ = ("epoch", "member", "owner", "partitions")

    def __init__(self, member: Member, owner: Owner) -> None:
        self.member = member
        self.owner = owner
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[Key, None] = {}

    def rotated(self) -> list[Key]:
        """The partitions, each request from another one on, so that a small answer reaches all of them."""
        keys = list(self.partitions)
        at = self.epoch % len(keys) if keys else 0
        return keys[at:] + keys[:at]


class Plan(NamedTuple, Generic[Owner]):
    """One request within its session. The answer shows partitions in `added` even without news."""

    session: ShareSession[Owner]
    fetched: Sequence[Key]
    added: frozenset[Key] = frozenset()
    is_final: bool = False
    """The session is over: what the member holds in its partitions is to be released."""
    is_new: bool = False
    """The session has begun with this request."""


class ShareSessions(Generic[Owner]):
    """The sessions of one node."""

    def __init__(self, partitions_max: int) -> None:
        """All sessions together remember at most so many partitions."""
        self.sessions: dict[Member, ShareSession[Owner]] = {}
        self.partition_count = 0
        self._partitions_max = partitions_max
        self._by_group: dict[str, int] = {}

    def fetch(
        self,
        member: Member,
        epoch: int,
        listed: Iterable[Key],
        forgotten: Iterable[Key],
        *,
        owner: Owner,
        sessions_max: int,
        has_acknowledgements: bool,
    ) -> Plan[Owner] | ErrorCode:
        """A ShareFetch: begin a session, go on with it, or end it.

        A session that is begun anew replaces the old one, whose records stay acquired.
        """
        if epoch == FINAL_EPOCH:
            return self.acknowledge(member, epoch)
        added = dict.fromkeys(listed)
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                return ErrorCode.INVALID_REQUEST
            self.remove(member)
            if len(self.sessions) >= sessions_max or self.partition_count + len(added) > self._partitions_max:
                return ErrorCode.SHARE_SESSION_LIMIT_REACHED
            session = self._open(member, owner)
        else:
            found = self._checked(member, epoch)
            if isinstance(found, ErrorCode):
                return found
            session = found
            new = sum(key not in session.partitions for key in added)
            if self.partition_count + new > self._partitions_max:
                return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        self._change(session, added, forgotten)
        fetched = session.rotated()
        _count_up(session)
        return Plan(session, fetched, frozenset(added), is_new=epoch == INITIAL_EPOCH)

    def acknowledge(self, member: Member, epoch: int) -> Plan[Owner] | ErrorCode:
        """A ShareAcknowledge, or the end of a session by either request."""
        if epoch == INITIAL_EPOCH:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session = self._checked(member, epoch)
        if isinstance(session, ErrorCode):
            return session
        if epoch == FINAL_EPOCH:
            self.remove(member)
            return Plan(session, (), is_final=True)
        _count_up(session)
        return Plan(session, ())

    def remove(self, member: Member) -> ShareSession[Owner] | None:
        """Forget a session; return it if there was one."""
        session = self.sessions.pop(member, None)
        if session is not None:
            self.partition_count -= len(session.partitions)
            group = member[0]
            self._by_group[group] -= 1
            if not self._by_group[group]:
                del self._by_group[group]
        return session

    def has_group(self, group: str) -> bool:
        """Whether any member of the group has a session."""
        return group in self._by_group

    def _open(self, member: Member, owner: Owner) -> ShareSession[Owner]:
        session = self.sessions[member] = ShareSession(member, owner)
        self._by_group[member[0]] = self._by_group.get(member[0], 0) + 1
        return session

    def _checked(self, member: Member, epoch: int) -> ShareSession[Owner] | ErrorCode:
        session = self.sessions.get(member)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch not in (session.epoch, FINAL_EPOCH):
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        return session

    def _change(self, session: ShareSession[Owner], added: Iterable[Key], forgotten: Iterable[Key]) -> None:
        before = len(session.partitions)
        session.partitions.update(dict.fromkeys(added))
        for key in forgotten:
            session.partitions.pop(key, None)
        self.partition_count += len(session.partitions) - before


def _count_up(session: ShareSession[Owner]) -> None:
    session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
