"""A ZooKeeper client that keeps watches as Java's does: kazoo, typed, with what it leaves out.

kazoo drops every watch when a connection is lost, even if the session lives on, and calls each with a NONE event. Here
a NONE is no event: after reconnecting within the session every watched node is read again with a watch, and one event
is delivered where it has changed meanwhile. The result of a `multi` is read, since kazoo raises nothing.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import EventType
from kazoo.retry import KazooRetry

from partita.designs.rules.requests import (
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
)
from partita.designs.zookeeper.jars import NoZooKeeper

logging.getLogger("kazoo").setLevel(logging.CRITICAL)
logging.getLogger("kazoo").addHandler(logging.NullHandler())

T = TypeVar("T")
CONNECT_WITHIN_S = 15.0
_FAILURES: list[tuple[type[Exception], Failure]] = [
    (NoNodeError, Failure.NO_NODE),
    (NodeExistsError, Failure.NODE_EXISTS),
    (BadVersionError, Failure.BAD_VERSION),
    (NotEmptyError, Failure.NOT_EMPTY),
    (SessionExpiredError, Failure.SESSION_EXPIRED),
    (ConnectionLoss, Failure.CONNECTION_LOSS),
    (OperationTimeoutError, Failure.CONNECTION_LOSS),
]
_CHANGES = {
    EventType.CREATED: Change.CREATED,
    EventType.DELETED: Change.DELETED,
    EventType.CHANGED: Change.DATA,
    EventType.CHILD: Change.CHILDREN,
}


class Closed(Exception):
    """The client was closed while a call was waiting."""


@dataclass(eq=False)
class _Watch:
    """What one reading left with the server. Each has its own: an event ends those that were set before it."""

    zxid: int = 0
    """Of the node as it was read."""
    is_over: bool = False


class Client:
    """One session after another. Events and new sessions are delivered by a thread of their own, one at a time."""

    def __init__(
        self,
        address: str,
        *,
        session_timeout_ms: int,
        on_event: Callable[[WatchEvent], None] = lambda event: None,
        on_new_session: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_event = on_event
        self._on_new_session = on_new_session
        # Retried without end while the session may live on; an expired session is replaced by a new one.
        self._kazoo = KazooClient(
            address, timeout=session_timeout_ms / 1000, randomize_hosts=False,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_jitter=0.0, ignore_expire=True),
        )  # fmt: skip
        self._connected = threading.Event()
        self._is_closed = False
        self._silent_since: float | None = None
        self.restored = 0
        """How many watches were set again after lost connections."""
        self._session: int | None = None
        self._watched: dict[tuple[str, bool], _Watch] = {}
        self._seen_last: Any = None
        self._inbox: queue.SimpleQueue[WatchEvent | bool] = queue.SimpleQueue()
        self._kazoo.add_listener(self._state_changed)
        self._events_thread = threading.Thread(target=self._deliver, daemon=True, name="zookeeper-events")

    def start(self) -> None:
        """Connect. Raises NoZooKeeper when no server answers."""
        try:
            self._kazoo.start(timeout=CONNECT_WITHIN_S)
        except KazooTimeoutError:
            self._kazoo.close()
            raise NoZooKeeper(f"no ZooKeeper answers at {self._kazoo.hosts} within {CONNECT_WITHIN_S:g} s") from None
        self._session = self.session
        self._events_thread.start()

    @property
    def session(self) -> int:
        """The id of the session that this client has now."""
        found = self._kazoo.client_id
        return int(found[0]) if found else 0

    @property
    def credentials(self) -> tuple[int, bytes] | None:
        """Session id and password: with them the session can be taken over, or ended."""
        found: tuple[int, bytes] | None = self._kazoo.client_id
        return found

    @property
    def is_connected(self) -> bool:
        """Whether the server was reached within this session."""
        return self._connected.is_set()

    @property
    def silent_s(self) -> float:
        """For how long the connection has been lost; 0 while there is one."""
        since = self._silent_since
        return 0.0 if since is None else time.monotonic() - since

    def close(self) -> None:
        """End the session; its ephemeral nodes go at once."""
        self._is_closed = True
        self._connected.set()
        self._inbox.put(False)
        self._kazoo.stop()
        self._kazoo.close()

    def await_connection(self) -> None:
        """Wait until there is a session again, the same or a new one. Raises Closed."""
        self._connected.wait()
        if self._is_closed:
            raise Closed

    def ask(self, request: Request) -> Answer:
        """Carry one request out. Raises Closed after `close`."""
        try:
            return self._ask(request)
        except ConnectionClosedError:
            if self._is_closed:
                raise Closed from None
            return Failure.CONNECTION_LOSS
        except KazooException as error:
            return _failure(error)

    def _ask(self, request: Request) -> Answer:
        kazoo = self._kazoo
        match request:
            case Get() | Children() | Exists():
                return self._read(request)
            case Create(path, data, ephemeral):
                kazoo.create(path, data.encode(), ephemeral=ephemeral)
            case Put(path, data, version):
                kazoo.set(path, data.encode(), version=version)
            case Delete(path):
                kazoo.delete(path)
            case Multi(requests):
                return self._multi(requests)
        return None

    def _read(self, request: Get | Children | Exists) -> Answer:
        path, watch = request.path, _Watch()
        seen = partial(self._seen, watch) if request.watch else None
        answer: Answer
        if isinstance(request, Children):
            names, stat = self._kazoo.get_children(path, watch=seen, include_data=True)
            answer, watch.zxid = tuple(sorted(names)), stat.pzxid
        elif isinstance(request, Get):
            data, stat = self._kazoo.get(path, watch=seen)
            answer, watch.zxid = Node(data.decode(), stat.version, stat.ephemeralOwner), stat.mzxid
        else:
            stat = self._kazoo.exists(path, watch=seen)
            answer, watch.zxid = (Node("", stat.version), stat.mzxid) if stat else (Failure.NO_NODE, 0)
        if request.watch:
            self._watched[path, isinstance(request, Children)] = watch
        return answer

    def _multi(self, requests: tuple[Create | Put | Delete | Check, ...]) -> Answer:
        transaction = self._kazoo.transaction()
        for one in requests:
            match one:
                case Create(path, data, ephemeral):
                    transaction.create(path, data.encode(), ephemeral=ephemeral)
                case Put(path, data, version):
                    transaction.set_data(path, data.encode(), version=version)
                case Delete(path):
                    transaction.delete(path)
                case Check(path, version):
                    transaction.check(path, version)
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        known = [_failure(error) for error in failed if any(isinstance(error, kind) for kind, _ in _FAILURES)]
        if failed and not known:
            raise failed[0]
        return known[0] if known else None

    def _seen(self, watch: _Watch, event: Any) -> None:
        """Pass the event on, unless it only says that the connection is gone. kazoo's callback.

        kazoo calls for every watch that an event ends, with the same event; Java's client calls once.
        """
        change = _CHANGES.get(event.type)
        if change is None or watch.is_over:
            return
        watch.is_over = True
        if event is not self._seen_last:
            self._seen_last = event
            self._inbox.put(WatchEvent(change, event.path))

    def _state_changed(self, state: str) -> None:
        """kazoo's listener: must not call kazoo."""
        if state == KazooState.CONNECTED:
            self._silent_since = None
            if self._session is not None:
                self._inbox.put(True)
        elif not self._is_closed:
            self._silent_since = self._silent_since or time.monotonic()
            self._connected.clear()
            return
        self._connected.set()

    def _deliver(self) -> None:
        while True:
            fact = self._inbox.get()
            try:
                if isinstance(fact, WatchEvent):
                    self._on_event(fact)
                # An entry that is no event only wakes the thread: the client is closed, or connected again.
                elif self._is_closed:
                    return
                else:
                    self._connected_again()
            except (Closed, KazooException):
                if self._is_closed:
                    return

    def _connected_again(self) -> None:
        before, self._session = self._session, self.session
        if before != self._session:
            self._watched.clear()
            self._on_new_session()
            return
        for (path, of_children), watch in list(self._watched.items()):
            if watch.is_over:
                continue
            answer = self.ask(Children(path, watch=True) if of_children else Exists(path, watch=True))
            self.restored += 1
            # The new watch, or the old one if nothing could be read.
            again = self._watched[path, of_children]
            is_gone = answer is Failure.NO_NODE
            # Another zxid than before means a missed change.
            if (0 if is_gone else again.zxid) != watch.zxid and not again.is_over:
                for key in ((path, False), (path, True)) if is_gone else ((path, of_children),):
                    if key in self._watched:
                        self._watched[key].is_over = True
                change = Change.DELETED if is_gone else Change.CHILDREN if of_children else Change.DATA
                self._inbox.put(WatchEvent(change, path))


def _failure(error: Exception) -> Failure:
    for kind, failure in _FAILURES:
        if isinstance(error, kind):
            return failure
    raise error


def end_session(address: str, credentials: tuple[int, bytes]) -> None:
    """End another client's session at once, as its expiry would: take it over and close it."""
    other = KazooClient(address, client_id=credentials, randomize_hosts=False)
    other.start(timeout=CONNECT_WITHIN_S)
    other.stop()
    other.close()
