"""The end of a share consumer: what it holds is released, its sessions end, it leaves the group.

The end of the interpreter does the same for consumers that were not closed.
"""

from __future__ import annotations

import time
import warnings
import weakref

from partita.consumer.sharing.core import ShareCore
from partita.consumer.shell.client_driver import LEAVING, LOG, ClientDriver, milliseconds
from partita.consumer.shell.sharing.acknowledging import Acknowledging
from partita.consumer.shell.waiting import BlockingWaiter, run_blocking
from partita.net.at_exit import SHARE_CONSUMERS, at_exit

_EXIT_SECONDS = 5.0
_OUTAGE_PATIENCE_MS = 1_000
CLOSED = "the share consumer is being closed"


async def close_share_consumer(driver: ClientDriver[ShareCore], acknowledging: Acknowledging, timeout: float) -> None:
    """Send what was acknowledged, release the rest, leave; all within the timeout. Cancelled, it does not wait."""
    timeout_ms = milliseconds(timeout)
    if driver.is_closed or driver.is_forked or driver.io.has_ended:
        driver.stop()
        driver.is_closed = True
        await driver.waiter.offload(acknowledging.close)
        return
    core, thread = driver.core, None
    with driver.owned(exclusive=True):
        patience_ms = _OUTAGE_PATIENCE_MS if core.outage.is_on else timeout_ms
        deadline_ms = driver.mono_ms() + min(patience_ms, timeout_ms, driver.config.request_timeout_ms)
        driver.ignore_wakeups()
        try:
            with driver.io.lock:
                core.fetching.close()
                driver.step()
            if not await driver.until(lambda: core.fetching.has_ended, deadline_ms):
                LOG.warning(
                    "%s: its share sessions did not end in time; locks end by themselves", driver.config.client_id
                )
            with driver.io.lock:
                leaving = set(core.membership.leave(CLOSED))
                driver.io.submit(leaving)
            await driver.until(lambda: not driver.io.in_flight & leaving, deadline_ms)
            await driver.dispatch()
        finally:
            thread = driver.stop()
            driver.is_closed = True
    await driver.waiter.offload(acknowledging.close)
    await driver.waiter.joined(thread)


async def unsubscribe(driver: ClientDriver[ShareCore]) -> None:
    """Leave the group. Records that wait here are released, those that were handed out are still to be acknowledged."""
    core = driver.core
    with driver.owned(exclusive=True), driver.io.lock:
        leaving = core.membership.leave("the share consumer unsubscribed")
        core.membership.subscribe(frozenset())
        core.fetching.release_waiting()
        driver.io.submit(leaving)
        driver.step()


def opened(driver: ClientDriver[ShareCore]) -> None:
    """Have the end of the interpreter close this consumer, unless it is closed or collected before."""
    _OPEN.add(driver)


def _close_at_exit() -> None:
    until = time.monotonic() + _EXIT_SECONDS
    for driver in list(_OPEN):
        if driver.is_closed or driver.is_forked or not driver.io.is_running:
            continue
        warnings.warn(f"share consumer {driver.config.client_id} was never closed", ResourceWarning, stacklevel=1)
        driver.take_over(BlockingWaiter())
        try:
            left = max(0.0, until - time.monotonic())
            run_blocking(close_share_consumer(driver, Acknowledging(driver), left))
        except BaseException:
            LOG.exception("%s: the end of the program could not close it in order", driver.config.client_id)
        if driver.io.thread is not None:
            LEAVING.append(driver.io.thread)
    for thread in LEAVING:
        thread.join(max(0.0, until - time.monotonic()))


_OPEN: weakref.WeakSet[ClientDriver[ShareCore]] = weakref.WeakSet()
at_exit(SHARE_CONSUMERS, _close_at_exit)
