"""The shell that every call of a consumer has around its core: ownership, waiting, callbacks, errors.

`Consumer` and `ShareConsumer` have cores of their own, and this in common.
"""

from __future__ import annotations

import base64
import itertools
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

from partita.consumer.client_core import ClientCore
from partita.consumer.config import ConsumerConfig
from partita.consumer.errors import (
    ApiTimeoutError,
    ConcurrentModificationError,
    IllegalStateError,
    WakeupError,
)
from partita.consumer.request import Assigned, CommitCallback, Event, Lost, Operation, Revoked
from partita.consumer.shell.io_thread import IoThread
from partita.consumer.shell.waiting import Waiter
from partita.errors import InvalidGroupIdError, MissingRightError, UnknownTopicOrPartitionError
from partita.net import broker_news
from partita.net.config import ClientConfig, parse_servers
from partita.net.faces import check_seconds
from partita.now import Clock, Now
from partita.system_clock import SystemClock
from partita.wording import Note

PASSED_OVER = (Exception, GeneratorExit)
"""Errors that do no harm in callbacks. SystemExit and KeyboardInterrupt end the program, in whose thread they run."""
_CLOSED = "the consumer is closed"
E = TypeVar("E", bound=BaseException | None)
C = TypeVar("C", bound=ClientCore)
LOG = logging.getLogger("partita.consumer")
_NUMBERS: dict[str, Iterator[int]] = {}
_STEP_AT_LEAST_MS = 10
_WARNED = frozenset((
    "acknowledgement_failed", "poll_interval_exceeded", "no_progress", "commit_failed", "topic_recreated",
    "unknown_partition", "unknown_topic", "no_effect", "handler_failed", "record_rejected", "time_limit",
)) | broker_news.WARNINGS  # fmt: skip


class ClientDriver(Generic[C]):
    """Core, I/O thread and the application's callbacks."""

    def __init__(
        self,
        config: ConsumerConfig,
        core: C,
        waiter: Waiter,
        *,
        strict: bool,
        clock: Clock | None,
        make_io: Callable[[C, ClientConfig, Clock], IoThread],
    ) -> None:
        self.config = config
        self.core = core
        self.waiter = waiter
        self.clock = clock or SystemClock()
        self.mono_ms = self.clock.mono_ms
        """The monotonic clock alone."""
        self.io = make_io(core, client_config(config), self.clock)
        self.on_note: Callable[[Note], Any] | None = None
        self.is_closed = False
        self.is_forked = False
        self._finalizer = weakref.finalize(self, _abandon, self.io, config.client_id)
        self._finalizer.atexit = False  # the hook of `closing` does more
        self.last_thread = 0
        """The thread that made the last call."""
        _DRIVERS.add(self)
        self._strict = strict
        self._call: Callable[[], _Call | None] = lambda: None
        """The call under way, as long as there is one."""
        self._taken: Event | None = None
        """The event taken last, until its callback begins. Those of rebalances the membership keeps."""
        self.calls = 0
        """Grows with every call of the application, so that a loop sees whether there was one since."""
        self._wakeup = False
        self._wakeups_off = False
        self._stepped_ms = 0

    def now(self) -> Now:
        """The instant by this consumer's clock."""
        return self.clock.now()

    def become(self, waiter: Waiter, *, strict: bool) -> None:
        """Serve the other face from now on."""
        self.waiter = waiter
        self._strict = strict

    # Ownership

    def owned(self, *, exclusive: bool = False) -> AbstractContextManager[None]:
        """One thread at a time; with asyncio one task at a time for calls that must not overlap.

        The consumer is owned as long as a `with` block keeps the result, so that no interruption leaves it owned.
        """
        if self.is_forked:
            raise IllegalStateError(
                "this consumer was made before fork(): its connections and its thread belong to the parent process; "
                "make a new consumer in the child"
            )
        if self.is_closed:
            raise IllegalStateError(_CLOSED)
        if self.io.has_ended:
            self.check()
        self.calls += 1
        self.last_thread = threading.get_ident()
        if not (exclusive or self._strict):
            return nullcontext()
        who = self.waiter.identity()
        with self.io.lock:
            call = self._call()
            if call is None:
                call = _Call(who)
                self._call = weakref.ref(call)
            elif call.who != who:
                raise ConcurrentModificationError(
                    "the consumer is used by another thread or task; only wakeup() may be"
                )
            return call

    def need_group(self, call: str) -> None:
        """Raise InvalidGroupIdError if the consumer has no group, which `call` needs."""
        if self.config.group_id is None:
            raise InvalidGroupIdError(f"{call} needs a group; give the consumer a group_id")

    def wakeup(self) -> None:
        """The only call another thread may make."""
        with self.io.lock:
            self._wakeup = True
            self.io.notify()

    def take_over(self, waiter: Waiter) -> None:
        """Serve the thread that ends the program; the one that used the consumer will not come back from its call."""
        self.become(waiter, strict=False)
        self._call = lambda: None

    def stop(self) -> threading.Thread | None:
        """End the I/O thread; returns it while it ends."""
        self._finalizer.detach()
        return self.io.stop()

    def ignore_wakeups(self) -> None:
        """Ignore `wakeup` from now on; closing must not be interrupted."""
        self._wakeups_off = True

    @property
    def is_woken(self) -> bool:
        """Was `wakeup` called, and not raised yet?"""
        return self._wakeup and not self._wakeups_off

    def check(self) -> None:
        """Raise errors that cannot wait: closed in a callback, a dead I/O thread, a wakeup, brokers that refuse us."""
        if self.is_closed:
            raise IllegalStateError(_CLOSED)
        if self.io.failure is not None:
            raise self.io.failure
        if self.is_woken:
            self._wakeup = False
            raise WakeupError("wakeup() was called")
        if self.core.refusal is not None and not self._wakeups_off:
            with self.io.lock:
                refusal = self.core.take_refusal()
            if refusal is not None:
                raise refusal

    # Waiting

    def step(self) -> None:
        """Let the core act on changes."""
        with self.io.lock:
            self._stepped_ms = self.mono_ms()
            self.io.step()

    def mark_stale(self) -> None:
        """Make the next poll step first, however recent the last step is."""
        self._stepped_ms = -_STEP_AT_LEAST_MS

    def step_if_stale(self) -> None:
        """Let the core act unless it did so less than 10 ms ago."""
        if self.mono_ms() - self._stepped_ms >= _STEP_AT_LEAST_MS or self.core.events:
            self.step()

    def deadline_ms(self, timeout: float | None) -> int:
        """When a call that may take `timeout` seconds has to end; None stands for default_api_timeout_ms."""
        if timeout is None:
            return self.mono_ms() + int(self.config.values["default_api_timeout_ms"])
        return self.mono_ms() + milliseconds(timeout)

    async def until(self, is_done: Callable[[], bool], deadline_ms: int) -> bool:
        """Wait until `is_done`; false at the deadline. Outages are logged meanwhile, not by the next poll."""
        seen = -1
        while True:
            with self.io.lock:
                has_turned, seen = 0 <= seen != self.io.activity, self.io.activity
                if not has_turned:
                    self.step()
                if is_done():
                    return True
                events = self.core.events
                outages = [e for e in events if isinstance(e, Note) and e.kind in broker_news.WARNINGS]
                for note in outages:
                    events.remove(note)
            for note in outages:
                self.take_note(note)
            self.check()
            left_ms = deadline_ms - self.mono_ms()
            if left_ms <= 0:
                return False
            await self.waiter.wait(self.io, seen, left_ms / 1000)

    async def result(
        self, operation: Operation, deadline_ms: int, what: str, cancel: Callable[[Operation], None] | None = None
    ) -> Any:
        """The operation's value; raises its error, or ApiTimeoutError."""
        try:
            done = await self.until(lambda: operation.is_done, deadline_ms)
        except BaseException:
            if cancel is not None:
                with self.io.lock:
                    cancel(operation)
            raise
        if not done:
            if cancel is not None:
                with self.io.lock:
                    cancel(operation)
            cause = operation.value if isinstance(operation.value, BaseException) else None
            if isinstance(cause, UnknownTopicOrPartitionError):
                raise cause
            raise ApiTimeoutError(f"{what} did not finish in time" + (f"; last: {cause}" if cause else "")) from cause
        if operation.error is not None:
            raise self.named(operation.error)
        return operation.value

    def named(self, error: E) -> E:
        """Return the error; a missing right gets the name of the user who lacks it."""
        if isinstance(error, MissingRightError):
            error.user = self.config.values["security"].user
        return error

    # Callbacks

    async def dispatch(self) -> None:
        """Run every callback that is due, on the caller's thread or task."""
        while True:
            with self.io.lock:
                event = self._next_event()
            if event is None:
                return
            if isinstance(event, Assigned | Revoked | Lost | CommitCallback):
                await self.waiter.shielded(self.hear(event))
            else:
                await self.hear(event)
            self._taken = None

    def _next_event(self) -> Event | None:
        """The one first that was taken when Ctrl-C came, before its callback began. Called with the lock held."""
        events, broken_off = self.core.events, self._taken
        if self._strict and broken_off is not None and not any(one is broken_off for one in events):
            events[:0] = [broken_off]
        self._taken = event = self.core.take_event()
        if isinstance(event, Assigned | Revoked | Lost):
            self._taken = None
        return event

    def beginning(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """The callback; once it has begun, its event is not taken again."""

        def begin(*arguments: Any) -> Any:
            self._taken = None
            return callback(*arguments)

        return begin

    async def hear(self, event: Event) -> None:
        """Run the callback of one event."""
        match event:
            case CommitCallback():
                try:
                    callback = self.beginning(event.callback)
                    await self.waiter.call(callback, dict(event.offsets), self.named(event.error))
                except PASSED_OVER:
                    LOG.exception("the callback of an asynchronous commit raised")
            case Note():
                self.take_note(event)

    def take_note(self, note: Note) -> None:
        """Log the note, and call the application's `on_note`."""
        level = logging.WARNING if note.kind in _WARNED else logging.INFO
        LOG.log(level, "%s: %s", self.config.client_id, note.text, extra={"kind": note.kind})
        if self._taken is note:
            self._taken = None
        if self.on_note is not None:
            try:
                self.on_note(note)
            except PASSED_OVER:
                LOG.exception("on_note's callback raised")


class _Call(nullcontext[None]):
    """A call of the application, or several of one owner inside each other."""

    def __init__(self, who: object) -> None:
        super().__init__()
        self.who = who


def milliseconds(timeout: float) -> int:
    """A timeout in seconds, which may be without end, in ms. Raises TypeError and ValueError."""
    return int(check_seconds(timeout) * 1000)


def _abandon(io: IoThread, client_id: str) -> None:
    """Warn and leave: the consumer was collected, or the interpreter ends, without `close` (clients 3.5)."""
    if io.is_running:
        warnings.warn(f"consumer {client_id} was never closed", ResourceWarning, stacklevel=2)
        io.abandon("the consumer was collected without close")
        LEAVING[:] = [*filter(threading.Thread.is_alive, LEAVING), *([io.thread] if io.thread else [])]


def _mark_forked() -> None:
    """In the child of a fork: the parent's consumers are not the child's (clients 3.5)."""
    for driver in list(_DRIVERS):
        driver.is_forked = True
        driver.io.activity += 1
        driver._finalizer.detach()


LEAVING: list[threading.Thread] = []
"""Threads of collected consumers, which leave their groups and end."""
_DRIVERS: weakref.WeakSet[ClientDriver[Any]] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked)


def client_config(config: ConsumerConfig) -> ClientConfig:
    """The options that connections need."""
    most = int(config.values["fetch_max_bytes"]) + (128 << 20)
    servers = parse_servers(config.values["bootstrap_servers"])
    return ClientConfig.of(
        config.values, config.client_id, bootstrap_servers=servers, response_max_bytes=min(most, 2**31 - 1)
    )


def new_member_id() -> str:
    """A random id as Kafka's clients make them: 22 characters of URL-safe base64, the first one no hyphen."""
    while (made := base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()).startswith("-"):
        pass
    return made


def name_of_client(config: ConsumerConfig) -> str:
    """consumer-<group>-<n>, or the instance id in place of the number, as Kafka names its clients."""
    group = config.group_id or "none"
    if config.group_instance_id is not None:
        return f"consumer-{group}-{config.group_instance_id}"
    return f"consumer-{group}-{next(_NUMBERS.setdefault(group, itertools.count(1)))}"
