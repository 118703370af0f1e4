"""The driver of a `Consumer`: its core, and the callbacks of rebalances and commits."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.core import ConsumerCore
from partita.consumer.errors import ConsumerError
from partita.consumer.listener import CALLED_FOR, AnyListener, Interceptors
from partita.consumer.request import Assigned, Committed, Event, Lost, Revoked
from partita.consumer.shell.client_driver import LOG, ClientDriver, name_of_client, new_member_id
from partita.consumer.shell.io_thread import IoThread
from partita.consumer.shell.metrics import ConsumerMetrics
from partita.consumer.shell.waiting import Waiter
from partita.net.config import ClientConfig
from partita.now import Clock
from partita.offsets.topic_partition import TopicPartition
from partita.wording import Note


class ConsumerDriver(ClientDriver[ConsumerCore]):
    """One coroutine per call, written once for both faces."""

    def __init__(
        self,
        config: ConsumerConfig,
        waiter: Waiter,
        *,
        strict: bool,
        clock: Clock | None = None,
        make_io: Callable[[ConsumerCore, ClientConfig, Clock], IoThread] = IoThread,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        config.client_id = config.client_id or name_of_client(config)
        core = ConsumerCore(config, uniform, new_member_id())
        super().__init__(config, core, waiter, strict=strict, clock=clock, make_io=make_io)
        self.listener: AnyListener | None = None
        self._listening: object = None
        """The call of the listener that is under way."""
        self._called: Event | None = None
        """The event that the listener was called for last."""
        self.metrics = ConsumerMetrics(config, self.clock, core)
        self.io.on_answer = self.metrics.answered
        self.io.measure(self.metrics)
        self.interceptors = Interceptors(config.values["interceptor_classes"], config.values, _log_raised)
        self._is_talkative = False

    async def hear(self, event: Event) -> None:
        """Run the callback of one event."""
        match event:
            case Assigned() | Revoked() | Lost():
                await self._rebalance_callback(event)
            case Committed():
                self.beginning(self.interceptors.on_commit)(dict(event.offsets))
            case _:
                await super().hear(event)

    def take_note(self, note: Note) -> None:
        """Count it, log it, and call the application's `on_note`."""
        self.metrics.noted(note)
        super().take_note(note)

    def follow_log_level(self) -> None:
        """Have the core report on fetches while the log is at DEBUG."""
        is_talkative = LOG.isEnabledFor(logging.DEBUG)
        if is_talkative is not self._is_talkative:
            self._is_talkative = is_talkative
            self.core.fetching.on_remark(self._remark if is_talkative else None)

    def _remark(self, text: str) -> None:
        LOG.debug("%s: %s", self.config.client_id, text)

    def begin_poll(self) -> None:
        """Begin a poll of the application. Called with the lock held."""
        self.follow_log_level()
        self.core.begin_poll(self.now())
        if self._strict and not self._is_listening:
            self.core.membership.call_again()

    async def _rebalance_callback(self, event: Assigned | Revoked | Lost) -> None:
        error: BaseException | None = None
        started_ms = self.mono_ms()
        try:
            if self._called is not event:
                await self.call_listener(event)
        except asyncio.CancelledError:
            error = ConsumerError("it was cancelled before its end")
        except BaseException as raised:
            if self._called is not event and not isinstance(raised, Exception):
                raise  # Ctrl-C came before the call, which the next poll makes
            error = raised
        with self.io.lock:
            is_told = isinstance(error, Exception)
            self.core.callback_done(error if is_told else None, self.now())
            self.step()
        self.metrics.rebalance_callback(event, self.mono_ms() - started_ms)
        if error is not None and not isinstance(error, Exception):
            raise error

    async def call_listener(self, event: Assigned | Revoked | Lost) -> None:
        """Call the rebalance listener on the application's thread or task, but not from inside itself.

        Closing or unsubscribing in a callback gives up the partitions that the callback hears of.
        """
        if self.listener is None or self._is_listening:
            return
        listening = None
        try:
            listening = _LISTENING.set(call := object())
            self._listening = call
            await self._call_listener(self.listener, event)
        finally:
            # A task that the callback has begun keeps the variable, but is not inside the callback any more.
            self._listening = None
            if listening is not None:
                _LISTENING.reset(listening)

    @property
    def _is_listening(self) -> bool:
        return self._listening is not None and _LISTENING.get() is self._listening

    async def _call_listener(self, listener: AnyListener, event: Assigned | Revoked | Lost) -> None:
        method = listener.method(CALLED_FOR[type(event)])

        def begin(partitions: list[TopicPartition]) -> Any:
            self._called = event
            assert method is not None, "only a method is called"
            return method(partitions)

        if method is not None:
            await self.waiter.call(begin, list(event.partitions))


_LISTENING: ContextVar[object] = ContextVar("partita_consumer_listening", default=None)
"""The call of a rebalance listener that this thread or task is inside of, or that began this task."""


def _log_raised(text: str) -> None:
    LOG.warning("%s", text, exc_info=True)
