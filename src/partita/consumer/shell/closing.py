"""Leaving in order: callbacks, commit, LeaveGroup, fetch sessions, sockets, all within the time given (5.9, 5.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.consumer.errors import WakeupError
from partita.consumer.group.commits import Kind
from partita.consumer.request import Request
from partita.consumer.shell.driver import LOG, ConsumerDriver
from partita.errors import KafkaError

if TYPE_CHECKING:
    from partita.consumer.shell.delivery import Delivery


async def leave_group(
    driver: ConsumerDriver, reason: str, *, static_too: bool = False, remain: bool = False
) -> list[Request]:
    """Tell the listener, leave, and forget the subscription; a callback's error is raised after all that."""
    core = driver.core
    error: BaseException | None = None
    with driver.io.lock:
        event = core.membership.begin_leave()
    if event is not None:
        try:
            await driver.call_listener(event)  # type: ignore[arg-type]
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
    """Everything that close does; the first error that was held back is raised at the end."""
    if driver.is_closed:
        return
    with driver.owned(exclusive=True):
        held_back: list[BaseException] = []
        request_timeout_ms: int = driver.config.request_timeout_ms
        deadline_ms = driver.now().mono_ms + min(int(timeout * 1000), request_timeout_ms)
        driver.ignore_wakeups()
        try:
            await _commit(driver, deadline_ms)
            await _leave(driver, membership, deadline_ms, held_back)
            await _close_sessions(driver, deadline_ms)
            await driver.dispatch()
        except (Exception, WakeupError) as error:
            held_back.append(error)
        finally:
            driver.io.stop()
            driver.is_closed = True
            driver.interceptors.close()
            delivery.close()
    if held_back:
        raise held_back[0]


async def _commit(driver: ConsumerDriver, deadline_ms: int) -> None:
    core = driver.core
    with driver.io.lock:
        wanted = driver.config.enable_auto_commit and bool(core.offsets_to_commit())
        operation = core.commits.commit(Kind.CLOSE, None) if wanted else None
        driver.step()
    if operation is not None:
        try:
            await driver.result(operation, deadline_ms, "the commit on close", core.commits.cancel)
        except KafkaError as error:
            LOG.warning("%s: the commit on close failed: %s", driver.config.client_id, error)
    await driver.until(lambda: not core.commits.has_async_pending, deadline_ms)
    await driver.dispatch()


async def _leave(driver: ConsumerDriver, membership: str, deadline_ms: int, held_back: list[BaseException]) -> None:
    core = driver.core
    if not core.subscription.is_group:
        return
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
    await driver.until(lambda: not driver.io.in_flight & set(requests), deadline_ms)


async def _close_sessions(driver: ConsumerDriver, deadline_ms: int) -> None:
    with driver.io.lock:
        requests = driver.core.fetching.close()
        driver.io.submit(requests)
    if deadline_ms > driver.now().mono_ms:
        patience_ms = min(deadline_ms, driver.now().mono_ms + 200)
        await driver.until(lambda: not driver.io.in_flight & set(requests), patience_ms)
