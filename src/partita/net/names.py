"""Host names become addresses, and addresses become sockets: connected ones for clients, bound ones for servers.

The event loop is never asked to look a name up. uvloop does that in libuv's threads, and a process that is forked from
one with such threads dies of a signal when it exits. (Kafka: ClientUtils.resolve, ClusterConnectionStates.)
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import sys
import threading
from typing import Any

NEXT_ADDRESS_AFTER_S = 0.25
"""An address that has not answered for so long is tried no longer alone. (RFC 8305, Connection Attempt Delay)"""
_PORTS_TRIED_MAX = 20
_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
"""A family and what `connect` and `bind` take for it."""


async def look_up(host: str, port: int, *, to_listen: bool = False) -> list[Address]:
    """Return the addresses of a name, in the system's order, never empty; an address is returned as it is.

    `to_listen` makes an empty `host` mean every interface. Raises OSError for a name that is not known, UnicodeError
    for text that cannot be a name. A look-up whose caller is cancelled ends in its own thread.
    """
    flags = socket.AI_PASSIVE if to_listen else 0
    try:
        return _ask_system(host, port, flags | socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Address]] = loop.create_future()

    def ask() -> None:
        found: list[Address] | Exception
        try:
            found = _ask_system(host, port, flags)
        except Exception as error:
            found = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(_tell, answer, found)

    try:
        threading.Thread(target=ask, name="partita-look-up", daemon=True).start()
    except RuntimeError:  # the interpreter ends and starts no thread any more
        return _ask_system(host, port, flags)
    return await answer


async def connect(host: str, port: int) -> socket.socket:
    """A socket that is connected to the first address of `host` that answers; it does not block.

    The addresses are tried in their order: the next one at once when one refuses, and beside it when one is silent for
    `NEXT_ADDRESS_AFTER_S`. Raises OSError if none can be reached, UnicodeError. Waits as long as the system lets it:
    give a time-out.
    """
    waiting = await look_up(host, port)
    if len(waiting) == 1:
        return await _connect_to(waiting[0])
    failures: list[OSError] = []
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.get_running_loop().create_task(_connect_to(waiting.pop(0))))
            patience = NEXT_ADDRESS_AFTER_S if waiting else None
            done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                running.remove(attempt)
                if attempt.exception() is None:
                    return attempt.result()
                failures.append(_as_os_error(attempt.exception()))
    finally:
        for attempt in running:
            attempt.add_done_callback(_close_unused)
            attempt.cancel()
    raise _together(failures)


async def bind(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of `host`, bound to one port, not yet listening. An empty `host`: every interface.

    With port 0 the system chooses the port. Addresses that this machine does not have are passed over, unless it has
    none of them. Raises OSError.
    """
    addresses = await look_up(host, port, to_listen=True)
    for tries_left in reversed(range(_PORTS_TRIED_MAX if port == 0 else 1)):
        try:
            return _bind_all(addresses)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def reason(error: Exception) -> str:
    """Why a host was not reached, for a message: without the number of the error, which says no more."""
    if isinstance(error, socket.gaierror):
        return f"the name is not known ({error.strerror})"
    if isinstance(error, OSError):
        if error.errno is not None and error.errno in errno.errorcode:
            return os.strerror(error.errno)
        return error.strerror or str(error) or type(error).__name__
    return f"that cannot be the name of a host ({error})"


def _ask_system(host: str, port: int, flags: int) -> list[Address]:
    # Text is encoded as an international name first, by modules of Python that few processes need.
    name = host.encode() if flags & socket.AI_NUMERICHOST and host.isascii() else host
    found = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=flags)
    return list(dict.fromkeys((socket.AddressFamily(family), address) for family, _, _, _, address in found))


def _tell(answer: asyncio.Future[list[Address]], found: list[Address] | Exception) -> None:
    if answer.done():
        return
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


async def _connect_to(address: Address) -> socket.socket:
    family, where = address
    endpoint = socket.socket(family, socket.SOCK_STREAM)
    try:
        endpoint.setblocking(False)
        await _connected(endpoint, where)
    except BaseException:
        endpoint.close()
        raise
    return endpoint


async def _connected(endpoint: socket.socket, where: tuple[Any, ...]) -> None:
    """Connect as `sock_connect` of a loop does; uvloop's would look up even an address."""
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":  # whose loop has no writers, and no uvloop is made for it
        await loop.sock_connect(endpoint, where)
        return
    try:
        endpoint.connect(where)
    except BlockingIOError:
        is_writable = loop.create_future()
        loop.add_writer(endpoint, _set, is_writable)
        try:
            await is_writable
        finally:
            loop.remove_writer(endpoint)
        failure = endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, os.strerror(failure)) from None


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _close_unused(attempt: asyncio.Task[socket.socket]) -> None:
    """An attempt that came after the first one connected is not needed."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _as_os_error(error: BaseException | None) -> OSError:
    return error if isinstance(error, OSError) else OSError(str(error))


def _together(failures: list[OSError]) -> OSError:
    """One error for the failures of several addresses."""
    reasons = dict.fromkeys(map(reason, failures))
    return failures[-1] if len(reasons) == 1 else OSError("; ".join(reasons))


def _bind_all(addresses: list[Address]) -> list[socket.socket]:
    bound: list[socket.socket] = []
    absent: OSError | None = None
    try:
        for family, (host, port, *rest) in addresses:
            try:
                bound.append(_bind_one(family, (host, port or (bound[0].getsockname()[1] if bound else 0), *rest)))
            except OSError as error:
                if error.errno not in _NO_SUCH_ADDRESS:
                    raise
                absent = error
        if absent is not None and not bound:
            raise absent
    except BaseException:
        for endpoint in bound:
            endpoint.close()
        raise
    return bound


def _bind_one(family: socket.AddressFamily, where: tuple[Any, ...]) -> socket.socket:
    endpoint = socket.socket(family, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_REUSEADDR") and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            endpoint.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        endpoint.bind(where)
    except BaseException:
        endpoint.close()
        raise
    return endpoint
