"""The consumer's I/O thread: one event loop that owns all sockets and keeps the core going.

It sends the core's requests, feeds answers back, and sleeps until the core's next turn, whatever the application's
thread does; so heartbeats never wait for user code. The core is guarded by one lock, held for single steps only and
never across a wait. Decision 40 says why there is a thread of its own although the faces touch the core directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from partita.consumer.client_core import ClientCore
from partita.consumer.errors import ConsumerError
from partita.consumer.request import Poll, Request
from partita.errors import AuthenticationError
from partita.net.access import Access
from partita.net.broker_news import role_in
from partita.net.config import ClientConfig
from partita.net.connection import Connection
from partita.net.errors import Disconnected, VersionMismatch, words_of
from partita.net.loop_thread import close_broken, run_unendingly
from partita.net.metrics import NetworkMetrics
from partita.net.pool import ConnectionPool
from partita.now import Clock
from partita.protocol.metadata_view import Node
from partita.wording import Note

if TYPE_CHECKING:
    from partita.consumer.shell.metrics import ConsumerMetrics

LOG = logging.getLogger("partita.consumer")
_LEAVE_WITHIN_S = 0.2
"""Time that an abandoned consumer keeps its connections for its LeaveGroup."""


class IoThread:
    """Drives a core in a thread of its own.

    Call `step()` after each change by the application. `activity` grows when waiters should look again.
    """

    def __init__(self, core: ClientCore, config: ClientConfig, clock: Clock) -> None:
        self.core = core
        self.clock = clock
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.news = threading.Condition(self.lock)
        """Of the waits that turns of the thread do not end unless the core has news: most polls."""
        self.activity = 0
        self.failure: BaseException | None = None
        self.waiters: list[Callable[[], None]] = []
        self.news_waiters: list[Callable[[], None]] = []
        self.in_flight: set[Request] = set()
        self._unsent: deque[Request] = deque()
        """Requests that are decided, and that the thread is to send."""
        self.on_answer: Callable[[Request, Any, int], None] | None = None
        self.answered_ms = 0
        """When the last answer of any broker came."""
        self.has_ended = False
        """Has the thread ended by an error, which `failure` names?"""
        self._is_over = False
        self._config = config
        self._access = Access(config.security)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pool: ConnectionPool | None = None
        self._network: NetworkMetrics | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms = 0
        self._turn_is_due = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None

    def measure(self, metrics: ConsumerMetrics) -> None:
        """Count connections, their traffic and the thread's wake-ups there."""
        self._network = metrics.network
        metrics.open_connections = lambda: 0 if self._pool is None else self._pool.open_count

    # Called by the application's thread, holding the lock

    def step(self) -> None:
        """Let the core decide now; the I/O thread does what it asks."""
        if self._is_over:
            return
        # Ctrl-C may come at any line, and what the core takes for sent has to be sent: the thread runs before that.
        loop = self._running_loop()
        now = self.clock.now()
        poll = Poll()
        try:
            self.core.poll(now, poll)
            self._unsent += poll.requests
            self.in_flight.update(poll.requests)
        except BaseException:
            self.core.on_broken_off(poll.requests, {*self._unsent, *self.in_flight}, now)
            loop.call_soon_threadsafe(self._turn)
            raise
        due_ms = now.mono_ms + poll.wait_ms
        drops = self.core.take_drops()
        if self._unsent or drops or due_ms < self._armed_ms:
            loop.call_soon_threadsafe(self._carry_out, drops, due_ms)

    def submit(self, requests: Iterable[Request]) -> None:
        """Send these besides the core's requests."""
        some = list(requests)
        if some and not self._is_over:
            self._unsent += some
            self.in_flight.update(some)
            self._running_loop().call_soon_threadsafe(self._carry_out, [], self._armed_ms)

    def stop(self) -> threading.Thread | None:
        """Close every connection and have the thread end; returns it. What was submitted before is written first."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None or self._is_over:
            return None
        self._is_over = True
        loop.call_soon_threadsafe(self._shut_down)
        return thread if thread is not threading.current_thread() else None

    def abandon(self, why: str) -> None:
        """Leave the group and end the thread without waiting, for a consumer that was never closed.

        May be called from a finalizer, so it takes no lock in the caller's thread.
        """
        loop = self._loop
        if loop is not None and not self._is_over:
            self._is_over = True
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._leave_and_shut_down, why)

    @property
    def is_running(self) -> bool:
        """Whether there is a thread that was not asked to end."""
        return self._thread is not None and not self._is_over

    @property
    def thread(self) -> threading.Thread | None:
        """The thread, if there is one."""
        return self._thread

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = _new_loop()
            thread = threading.Thread(target=self._run, args=(loop,), name="partita-consumer-io", daemon=True)
            self._loop, self._thread = loop, thread
        if self._thread is not None and self._thread.ident is None:  # Ctrl-C may have come in between
            self._thread.start()
        return self._loop

    # The thread

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._network is not None:
            self._network.runs_on(threading.get_ident())
        try:
            run_unendingly(loop, lambda: False)
        except BaseException as error:
            self.has_ended = self._is_over = True
            self._died(error)
        finally:
            close_broken(loop)

    def _carry_out(self, drops: list[Node], due_ms: int) -> None:
        for node in drops:
            self._connections().drop(("coordinator", node.id))
        while self._unsent:
            self._send(self._unsent.popleft())
        self._arm(due_ms)

    def _turn(self) -> None:
        self._turn_is_due = False
        if self._ending is not None:
            return
        if self._network is not None:
            self._network.count("select", self.clock.mono_ms())
        try:
            with self.lock:
                now = self.clock.now()
                poll = self.core.poll(now)
                drops = self.core.take_drops()
                self._unsent += poll.requests
                self.in_flight.update(poll.requests)
                self.notify(is_news=self.core.has_news)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._carry_out(drops, now.mono_ms + poll.wait_ms)
        except BaseException as error:
            self._died(error)

    def _turn_soon(self) -> None:
        if not self._turn_is_due and self._loop is not None and self._ending is None:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _arm(self, due_ms: int) -> None:
        if self._timer is not None and not self._timer.cancelled():
            if due_ms >= self._armed_ms:
                return
            self._timer.cancel()
        self._armed_ms = due_ms
        wait_ms = max(0, due_ms - self.clock.mono_ms())
        assert self._loop is not None, "timers are armed by the thread"
        self._timer = self._loop.call_later(wait_ms / 1000, self._turn)

    def _send(self, request: Request) -> None:
        connection = None
        if request.node is not None:
            connection = self._connections().open_connection(_key(request, request.node))
        if connection is not None:
            self._post(connection, request)
        else:
            assert self._loop is not None, "requests are sent by the thread"
            task = self._loop.create_task(self._connect_and_post(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect_and_post(self, request: Request) -> None:
        pool = self._connections()
        try:
            if request.node is not None:
                node = request.node
                connection = await pool.connect(_key(request, node), node.host, node.port)
            else:
                nodes = list(self.core.metadata.view.nodes.values())
                connection = await pool.connect_any(nodes, self._config.bootstrap_servers)
        except VersionMismatch as error:
            self._unsupported(request, error)
        except AuthenticationError as error:
            self._refused(request, error)
        except Disconnected as error:
            self._lost(request, words_of(error))
        except asyncio.CancelledError:
            if self._ending is not None:
                raise
            self._lost(request)  # the connection was dropped while it was being opened
        else:
            self._post(connection, request)
            only = request.node
            if only is not None and request.to_coordinator and self.core.metadata.view.nodes.keys() == {only.id}:
                pool.prepare(only.id, only.host, only.port)

    def _post(self, connection: Connection, request: Request) -> None:
        try:
            request.version = connection.version_for(request.message, request.max_version)
            request.sent_at_ms = self.clock.mono_ms()
            future = connection.post(request.message, request.version, timeout_ms=request.timeout_ms)
        except Disconnected:
            self._lost(request)
        except (VersionMismatch, ValueError) as error:
            self._unsupported(request, error)
        else:
            future.add_done_callback(partial(self._answered, request))

    def _answered(self, request: Request, future: asyncio.Future[Any]) -> None:
        if future.cancelled() or future.exception() is not None:
            self._lost(request)
            return
        try:
            with self.lock:
                self.in_flight.discard(request)
                now = self.clock.now()
                self.answered_ms = now.mono_ms
                if self.on_answer is not None:
                    self.on_answer(request, future.result(), self.answered_ms - request.sent_at_ms)
                self.core.on_response(request, future.result(), now)
        except BaseException as error:
            self._died(error)
        self._turn_soon()

    def _lost(self, request: Request, unreachable: str = "") -> None:
        with self.lock:
            self.in_flight.discard(request)
            if unreachable and request.node is None:
                self.core.on_unreachable(request, unreachable, self.clock.now())
            else:
                self.core.on_disconnect(request, self.clock.now())
        self._turn_soon()

    def _unsupported(self, request: Request, error: BaseException) -> None:
        with self.lock:
            self.in_flight.discard(request)
            self.core.on_unsupported(request, error, self.clock.now())
        self._turn_soon()

    def _refused(self, request: Request, error: AuthenticationError) -> None:
        with self.lock:
            self.in_flight.discard(request)
            self.core.on_refused(request, error, self.clock.now())
            self.notify()
        self._turn_soon()

    def _connections(self) -> ConnectionPool:
        if self._pool is None:
            self._pool = ConnectionPool(self._config, self._access)
            self._pool.metrics = self._network
            self._pool.view = self.core.metadata.view
            self._pool.news.heard = self._note
            self._pool.news.role_of = self._role_of
        return self._pool

    def _note(self, kind: str, text: str, fields: dict[str, Any]) -> None:
        with self.lock:
            self.core.events.append(Note(kind, text, fields))
            self.notify()

    def _role_of(self, node_id: int) -> str:
        core = self.core
        with self.lock:
            coordinator = core.coordinator.node
            is_coordinator = coordinator is not None and coordinator.id == node_id
            return role_in(core.metadata.view, node_id, [f"group {core.config.group_id!r}"] if is_coordinator else ())

    def notify(self, *, is_news: bool = True) -> None:
        """Wake all waiting calls, or all but those that wait for news. Called with the lock held."""
        self.activity += 1
        for changed, waiters in ((self.changed, self.waiters), (self.news, self.news_waiters))[: 1 + is_news]:
            changed.notify_all()
            for waiter in waiters:
                waiter()
            waiters.clear()

    def _died(self, error: BaseException) -> None:
        """Record an error that breaks the thread, and raise it in every call instead of spinning or hanging."""
        with self.lock:
            if self.failure is None:
                LOG.error("the I/O thread of %s met an error", self._config.client_id, exc_info=error)
                self.failure = ConsumerError(f"the consumer's I/O thread met an error it cannot go on from: {error!r}")
                self.failure.__cause__ = error
            self.notify()

    def _leave_and_shut_down(self, why: str) -> None:
        with self.lock:
            requests = self.core.membership.leave(why)
            self._unsent += requests
            self.in_flight.update(requests)
        self._carry_out([], self._armed_ms)
        asyncio.get_running_loop().call_later(_LEAVE_WITHIN_S if requests else 0, self._shut_down)

    def _shut_down(self) -> None:
        """From here on no turn begins: what closing connections fail is not asked again."""
        loop = asyncio.get_running_loop()
        self._ending = loop.create_task(_stop_when_idle(loop))
        if self._timer is not None:
            self._timer.cancel()
        if self._pool is not None:
            self._pool.close()


async def _stop_when_idle(loop: asyncio.AbstractEventLoop) -> None:
    """Let cancelled tasks and closing connections finish, then stop."""
    others = asyncio.all_tasks(loop) - {asyncio.current_task(loop)}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    loop.call_soon(loop.stop)


def _key(request: Request, node: Node) -> Hashable:
    """The coordinator has a connection of its own, so that heartbeats never queue behind fetches."""
    return ("coordinator", node.id) if request.to_coordinator else node.id


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop when it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
