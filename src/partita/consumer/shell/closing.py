"""Leaving in order: callbacks, commit, LeaveGroup, fetch sessions, sockets, all within the time given (5.9, 5.10)."""

from __future__ import annotations

import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from partita.consumer.errors import ApiTimeoutError, WakeupError
from partita.consumer.group.commits import Kind
from partita.consumer.request import Request
from partita.consumer.shell.client_driver import LEAVING, LOG, milliseconds
from partita.consumer.shell.driver import ConsumerDriver
from partita.consumer.shell.waiting import AsyncWaiter, BlockingWaiter, run_blocking
from partita.net.at_exit import CONSUMERS, at_exit

_PATIENCE_MS, _OUTAGE_PATIENCE_MS, _LOOK_AGAIN_MS = 3_000, 1_000, 250
_EXIT_SECONDS = 5.0
"""Time that the end of the interpreter waits for unclosed consumers."""
_MEMBERSHIPS = ("default", "leave_group", "remain_in_group")
_SESSIONS_MS = 200
"""Time that closing waits for the ends of fetch sessions."""

if TYPE_CHECKING:
    from partita.consumer.shell.delivery import Delivery


async def leave_group(
    driver: ConsumerDriver, reason: str, *, static_too: bool = False, remain: bool = False, shield: bool = True
) -> list[Request]:
    """Call the listener, leave the group, and forget the subscription; a callback's error is raised after all that."""
    core = driver.core
    error: BaseException | None = None
    with driver.io.lock:
        event = core.membership.begin_leave()
    if event is not None:
        try:
            hearing = driver.call_listener(event)  # type: ignore[arg-type]  # begin_leave gives no other event
            await (driver.waiter.shielded(hearing) if shield else hearing)
        except BaseException as raised:
            error = raised
    with driver.io.lock:
        requests = core.membership.leave(reason, static_too=static_too, remain=remain)
        core.subscription.unsubscribe()
        core.forget_subscription()
        driver.io.submit(requests)
        driver.step()
    if error is not None:
        raise error
    return requests


async def close_consumer(driver: ConsumerDriver, delivery: Delivery, timeout: float, membership: str) -> None:
    """Everything that close does; the first error that was held back is raised at the end.

    Cancelled or interrupted it leaves the group without waiting for anything.
    """
    timeout_ms = milliseconds(timeout)
    if membership not in _MEMBERSHIPS:
        raise ValueError(f"membership is one of {', '.join(_MEMBERSHIPS)}, not {membership!r}")
    if driver.is_forked:
        driver.is_closed = True
    if driver.io.has_ended:
        driver.stop()
        driver.is_closed = True
        driver.interceptors.close()
        await driver.waiter.offload(delivery.close)
    if driver.is_closed:
        return
    thread = None
    with driver.owned(exclusive=True):
        held_back: list[BaseException] = []
        request_timeout_ms: int = driver.config.request_timeout_ms
        deadline_ms = driver.mono_ms() + min(timeout_ms, request_timeout_ms)
        patience = _Patience(driver, deadline_ms)
        driver.ignore_wakeups()
        has_left = False
        try:
            await driver.waiter.callbacks_ended(timeout)
            await _commit(driver, patience)
            leaving = await _leave(driver, membership, held_back)
            if driver.is_closed:  # by the callback that heard of the end
                return
            ending = _end_sessions(driver)
            await patience.until(lambda: not driver.io.in_flight & leaving)
            has_left = True
            if deadline_ms > driver.mono_ms():
                patience_ms = min(deadline_ms, driver.mono_ms() + _SESSIONS_MS)
                await driver.until(lambda: not driver.io.in_flight & ending, patience_ms)
            await driver.dispatch()
        except (Exception, WakeupError) as error:
            held_back.append(error)
        finally:
            if not has_left:
                driver.io.abandon("the consumer was closed in a hurry")
            thread = driver.stop()
            if not driver.is_closed:
                driver.is_closed = True
                driver.interceptors.close()
    await driver.waiter.offload(delivery.close)
    await driver.waiter.joined(thread)
    if held_back:
        raise held_back[0]


class _Patience:
    """Waits until the deadline, but in all only a few seconds without a sign of the cluster or of a coordinator."""

    def __init__(self, driver: ConsumerDriver, deadline_ms: int) -> None:
        self._driver = driver
        self._deadline_ms = deadline_ms
        self._alive_ms = driver.mono_ms()

    async def until(self, is_done: Callable[[], bool]) -> bool:
        """Wait until something is the case; false when there is no more patience, at once if it has run out before."""
        driver, core = self._driver, self._driver.core
        while True:
            if core.coordinator.node is not None:
                self._alive_ms = max(self._alive_ms, driver.io.answered_ms)
            patience_ms = _OUTAGE_PATIENCE_MS if core.outage.is_on else _PATIENCE_MS
            until_ms = min(self._deadline_ms, self._alive_ms + patience_ms)
            if await driver.until(is_done, min(until_ms, driver.mono_ms() + _LOOK_AGAIN_MS)):
                return True
            if driver.mono_ms() >= until_ms:
                return False


async def _commit(driver: ConsumerDriver, patience: _Patience) -> None:
    core = driver.core
    with driver.io.lock:
        core.commits.is_patient = False
        wanted = driver.config.enable_auto_commit and bool(core.offsets_to_commit())
        operation = core.commits.commit(Kind.CLOSE, None) if wanted else None
        driver.step()
    if operation is not None:
        await patience.until(lambda: operation.is_done)
        failure = operation.error if operation.is_done else ApiTimeoutError("no broker answered it in time")
        if failure is not None:
            with driver.io.lock:
                core.commits.cancel(operation)
            LOG.warning("%s: the commit on close failed: %s", driver.config.client_id, failure)
    await patience.until(lambda: not core.commits.has_async_pending)
    await driver.dispatch()


async def _leave(driver: ConsumerDriver, membership: str, held_back: list[BaseException]) -> set[Request]:
    """Have the requests sent that leave the group, and return them."""
    core = driver.core
    if not core.subscription.is_group:
        return set()
    requests: list[Request] = []
    try:
        requests = await leave_group(
            driver,
            "the consumer is being closed",
            static_too=membership == "leave_group",
            remain=membership == "remain_in_group",
        )
    except Exception as error:
        held_back.append(error)
    return set(requests)


def _end_sessions(driver: ConsumerDriver) -> set[Request]:
    """Have the fetch sessions ended, and return those requests that no fetch holds back.

    A broker answers a connection in order, so behind a fetch that waits for data the answer would take as long as that
    fetch. There the request goes over the idle connection to the coordinator, if that is the same node; else it is
    written and not waited for.
    """
    core, io = driver.core, driver.io
    with io.lock:
        requests = core.fetching.close()
        busy = {request.node for request in io.in_flight if request.part is core.fetching}
        awaited = set()
        for request in requests:
            request.to_coordinator = request.node in busy and request.node == core.coordinator.node
            if request.to_coordinator or request.node not in busy:
                awaited.add(request)
        io.submit(requests)
    return awaited


# The end of the interpreter


def opened(driver: ConsumerDriver, delivery: Delivery) -> None:
    """Have the end of the interpreter close this consumer, unless it is closed or collected before."""
    _OPEN[driver] = weakref.ref(delivery)


def _close_at_exit() -> None:
    """Close unclosed consumers: commit, leave the groups; and let collected consumers leave theirs.

    If a traceback ended the program, or another thread used the consumer, what the last poll gave is not known to be
    processed, and the commit says that it is still to be read.
    """
    until = time.monotonic() + _EXIT_SECONDS
    is_clean = getattr(sys, "last_value", None) is None
    for driver, reference in list(_OPEN.items()):
        delivery = reference()
        if delivery is None or driver.is_closed or driver.is_forked or not driver.io.is_running:
            continue
        warnings.warn(f"consumer {driver.config.client_id} was never closed", ResourceWarning, stacklevel=1)
        if isinstance(driver.waiter, AsyncWaiter):
            driver.listener = None  # it belongs to an event loop that has ended
        driver.take_over(BlockingWaiter())
        if not is_clean or driver.last_thread != threading.get_ident():
            delivery.take_back()
        try:
            run_blocking(close_consumer(driver, delivery, max(0.0, until - time.monotonic()), "default"))
        except BaseException:
            LOG.exception("%s: the end of the program could not close it in order", driver.config.client_id)
        if driver.io.thread is not None:
            LEAVING.append(driver.io.thread)  # closed in a hurry it still writes that it leaves
    for thread in LEAVING:
        thread.join(max(0.0, until - time.monotonic()))


_OPEN: weakref.WeakKeyDictionary[ConsumerDriver, weakref.ref[Delivery]] = weakref.WeakKeyDictionary()
at_exit(CONSUMERS, _close_at_exit)
