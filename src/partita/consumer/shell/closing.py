"""Leaving in order: callbacks, commit, LeaveGroup, fetch sessions, sockets, all within the time given (5.9, 5.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita.consumer.errors import WakeupError
from partita.consumer.group.pending_commit import Kind
from partita.consumer.request import Request
from partita.consumer.shell.driver import LOG, ConsumerShell
from partita.errors import KafkaError

if TYPE_CHECKING:
    from partita.consumer.shell.delivery import Delivery


async def leave_group(
    shell: ConsumerShell, reason: str, *, static_too: bool = False, remain: bool = False
) -> list[Request]:
    """Tell the listener, leave, and forget the subscription; a callback's error is raised after all that."""
    core = shell.core
    error: BaseException | None = None
    with shell.io.lock:
        event = core.membership.begin_leave()
    if event is not None:
        try:
            await shell.call_listener(event)  # type: ignore[arg-type]
        except BaseException as raised:
            error = raised
    with shell.io.lock:
        requests = core.membership.leave(reason, static_too=static_too, remain=remain)
        core.subscription.unsubscribe()
        core.forget_subscription()
        shell.io.submit(requests)
        shell.step()
    if error is not None:
        raise error
    return requests


async def close_consumer(shell: ConsumerShell, delivery: Delivery, timeout: float, membership: str) -> None:
    """Everything that close does; the first error that was held back is raised at the end."""
    if shell.is_closed:
        return
    with shell.owned(exclusive=True):
        held_back: list[BaseException] = []
        request_timeout_ms: int = shell.config.request_timeout_ms
        deadline_ms = shell.now().mono_ms + min(int(timeout * 1000), request_timeout_ms)
        shell.ignore_wakeups()
        try:
            await _commit(shell, deadline_ms)
            await _leave(shell, membership, deadline_ms, held_back)
            await _close_sessions(shell, deadline_ms)
            await shell.dispatch()
        except (Exception, WakeupError) as error:
            held_back.append(error)
        finally:
            shell.io.stop()
            shell.is_closed = True
            shell.interceptors.close()
            delivery.close()
    if held_back:
        raise held_back[0]


async def _commit(shell: ConsumerShell, deadline_ms: int) -> None:
    core = shell.core
    with shell.io.lock:
        wanted = shell.config.enable_auto_commit and bool(core.offsets_to_commit())
        operation = core.commits.commit(Kind.SYNC, None) if wanted else None
        shell.step()
    if operation is not None:
        try:
            await shell.result(operation, deadline_ms, "the commit on close", core.commits.cancel)
        except KafkaError as error:
            LOG.warning("%s: the commit on close failed: %s", shell.config.client_id, error)
    await shell.until(lambda: not core.commits.has_async_pending, deadline_ms)
    await shell.dispatch()


async def _leave(shell: ConsumerShell, membership: str, deadline_ms: int, held_back: list[BaseException]) -> None:
    core = shell.core
    if not core.subscription.is_group:
        return
    requests: list[Request] = []
    try:
        requests = await leave_group(
            shell,
            "the consumer is being closed",
            static_too=membership == "leave_group",
            remain=membership == "remain_in_group",
        )
    except Exception as error:
        held_back.append(error)
    await shell.until(lambda: not shell.io.in_flight & set(requests), deadline_ms)


async def _close_sessions(shell: ConsumerShell, deadline_ms: int) -> None:
    with shell.io.lock:
        requests = shell.core.fetching.close()
        shell.io.submit(requests)
    if deadline_ms > shell.now().mono_ms:
        patience_ms = min(deadline_ms, shell.now().mono_ms + 200)
        await shell.until(lambda: not shell.io.in_flight & set(requests), patience_ms)
