"""A small model of ZooKeeper in virtual time: nodes, sessions, one-shot watches, and servers that lag behind.

Writes have one order. Each server applies them after its lag and answers reads from what it has applied; a session
sees its own writes, since their answers wait until its server has applied them. A watch is kept by the server of its
session and fires when that server applies a change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from partita.designs.rules.requests import (
    ANY_VERSION,
    Answer,
    Change,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Failure,
    Get,
    Multi,
    Node,
    Put,
    Request,
    WatchEvent,
    Write,
)

READS = (Get, Children, Exists)
Watch = tuple[int, str]


@dataclass(slots=True)
class Stored:
    """A node of the tree. `session` owns an ephemeral one."""

    data: str
    version: int = 0
    session: int | None = None
    children: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Entry:
    """One write in the common order, accepted at `at_ms`. Without a write it ends the session."""

    at_ms: int
    session: int
    write: Write | None


class Tree:
    """The nodes as one server has them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Stored] = {"/": Stored("")}

    def read(self, request: Request) -> Answer:
        """Answer Get, Children or Exists."""
        node = self.nodes.get(request.path) if isinstance(request, READS) else None
        if node is None:
            return Failure.NO_NODE
        if isinstance(request, Children):
            return tuple(sorted(node.children))
        return Node(node.data, node.version, node.session or 0)

    def refusal(self, write: Write | Check, session: int) -> Failure | None:
        """Why a single write would fail now."""
        if isinstance(write, Create):
            return self._refuse_create(write)
        assert not isinstance(write, Multi), "a multi is looked at piece by piece"
        node = self.nodes.get(write.path)
        if node is None:
            return Failure.NO_NODE
        if isinstance(write, Delete):
            return Failure.NOT_EMPTY if node.children else None
        return Failure.BAD_VERSION if write.version not in (ANY_VERSION, node.version) else None

    def _refuse_create(self, write: Create) -> Failure | None:
        if write.path in self.nodes:
            return Failure.NODE_EXISTS
        return None if parent_of(write.path) in self.nodes else Failure.NO_NODE

    def apply(self, write: Write, session: int) -> tuple[Failure | None, list[WatchEvent]]:
        """Carry a write out, all of it or nothing; say what watches would see."""
        pieces = write.requests if isinstance(write, Multi) else (write,)
        before = {path: self._copy(path) for piece in pieces for path in (piece.path, parent_of(piece.path))}
        events: list[WatchEvent] = []
        for piece in pieces:
            refused = self.refusal(piece, session)
            if refused is not None:
                self._restore(before)
                return refused, []
            events += self._carry_out(piece, session)
        return None, events

    def _carry_out(self, piece: Create | Put | Delete | Check, session: int) -> list[WatchEvent]:
        match piece:
            case Create(path, data, ephemeral):
                self.nodes[path] = Stored(data, session=session if ephemeral else None)
                self.nodes[parent_of(path)].children.add(path.rpartition("/")[2])
                return [WatchEvent(Change.CREATED, path), WatchEvent(Change.CHILDREN, parent_of(path))]
            case Put(path, data):
                node = self.nodes[path]
                node.data, node.version = data, node.version + 1
                return [WatchEvent(Change.DATA, path)]
            case Delete(path):
                return self._remove(path)
            case Check():
                return []

    def end(self, session: int) -> list[WatchEvent]:
        """Remove the ephemeral nodes of a session."""
        gone = [path for path, node in self.nodes.items() if node.session == session]
        return [event for path in gone for event in self._remove(path)]

    def _remove(self, path: str) -> list[WatchEvent]:
        del self.nodes[path]
        self.nodes[parent_of(path)].children.discard(path.rpartition("/")[2])
        return [WatchEvent(Change.DELETED, path), WatchEvent(Change.CHILDREN, parent_of(path))]

    def _copy(self, path: str) -> Stored | None:
        node = self.nodes.get(path)
        return node and Stored(node.data, node.version, node.session, set(node.children))

    def _restore(self, before: dict[str, Stored | None]) -> None:
        for path, node in before.items():
            if node is None:
                self.nodes.pop(path, None)
            else:
                self.nodes[path] = node


class Server:
    """One server: its tree, how far it is in the common order, and the watches of its sessions."""

    def __init__(self, lag_ms: int) -> None:
        self.lag_ms = lag_ms
        self.tree = Tree()
        self.applied = 0
        self.watches: dict[tuple[str, bool], list[int]] = {}

    def fire(self, event: WatchEvent) -> list[int]:
        """The sessions whose watch this event ends. A node that goes ends the watches on its children too."""
        keys = [(event.path, event.change is Change.CHILDREN)]
        if event.change is Change.DELETED:
            keys.append((event.path, True))
        fired: list[int] = []
        for key in keys:
            fired += [session for session in self.watches.pop(key, []) if session not in fired]
        return fired


class ZooKeeperModel:
    """ZooKeeper with a server for each lag. Time is given with each call and never goes back."""

    def __init__(self, lags_ms: Sequence[int] = (0,)) -> None:
        self.log: list[Entry] = []
        self.leader = Tree()
        self.servers = [Server(lag_ms) for lag_ms in lags_ms]
        self.server_of: dict[int, Server] = {}
        self.events: deque[tuple[int, int, WatchEvent]] = deque()
        self._next_session = 1

    def connect(self, server: int = 0) -> int:
        """A new session at one of the servers."""
        session, self._next_session = self._next_session, self._next_session + 1
        self.server_of[session] = self.servers[server]
        return session

    def ask(self, session: int, request: Request, now_ms: int) -> tuple[Answer, int]:
        """The answer, and when the session gets it. A session that has ended gets SESSION_EXPIRED."""
        server = self.server_of.get(session)
        if server is None:
            return Failure.SESSION_EXPIRED, now_ms
        self.advance(now_ms)
        if isinstance(request, READS):
            answer = server.tree.read(request)
            if request.watch and (answer is not Failure.NO_NODE or isinstance(request, Exists)):
                waiting = server.watches.setdefault((request.path, isinstance(request, Children)), [])
                waiting += [session] if session not in waiting else []
            return answer, now_ms
        failure, _ = self.leader.apply(request, session)
        if failure is None:
            self.log.append(Entry(now_ms, session, request))
            self.advance(now_ms)
        return failure, now_ms + server.lag_ms

    def end(self, session: int, now_ms: int) -> None:
        """Close or expire a session: its ephemeral nodes go, its watches never fire."""
        server = self.server_of.pop(session, None)
        if server is None:
            return
        self.advance(now_ms)
        for waiting in server.watches.values():
            waiting[:] = [other for other in waiting if other != session]
        self.leader.end(session)
        self.log.append(Entry(now_ms, session, None))
        self.advance(now_ms)

    def advance(self, now_ms: int) -> None:
        """Let every server apply what it has received by now. What watches saw is appended to `events`."""
        due = [(self.log[i].at_ms + s.lag_ms, i, s) for s in self.servers for i in range(s.applied, len(self.log))]
        for at_ms, index, server in sorted(due, key=lambda one: one[:2]):
            if at_ms > now_ms:
                break
            entry = self.log[index]
            server.applied = index + 1
            _, seen = (
                server.tree.apply(entry.write, entry.session)
                if entry.write is not None
                else (None, server.tree.end(entry.session))
            )
            for event in seen:
                self.events.extend((at_ms, session, event) for session in server.fire(event))

    def next_change_ms(self) -> int | None:
        """When the next server has something to apply; None if all have applied everything."""
        return min(
            (self.log[s.applied].at_ms + s.lag_ms for s in self.servers if s.applied < len(self.log)), default=None
        )


def parent_of(path: str) -> str:
    """The path above; "/" is its own parent."""
    return path.rpartition("/")[0] or "/"
