"""Runs the dashboard: the observer in the background, uvicorn in front."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette

from partita.dashboard.access import WILDCARDS, Access

SHUTDOWN_WITHIN_S = 2
AsyncLifespan = AbstractAsyncContextManager[None]


def in_background(
    *runners: Callable[[], Coroutine[Any, Any, None]], on_start: Callable[[], None] = lambda: None
) -> Callable[[Starlette], AsyncLifespan]:
    """Return a lifespan in which these run. They are cancelled at its end.

    `on_start` is called at its beginning: from then on a signal ends the server in order.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(runner()) for runner in runners]
        on_start()
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return lifespan


def listening_socket(host: str, port: int) -> socket.socket:
    """Listen before anything else is started, so early clients wait. Raises OSError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


def url_of(access: Access, bound: socket.socket) -> str:
    """Return the address of the dashboard for a browser."""
    name = "127.0.0.1" if access.host in WILDCARDS else f"[{access.host}]" if ":" in access.host else access.host
    return f"http://{name}:{bound.getsockname()[1]}/"


def serve(app: Starlette, bound: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=SHUTDOWN_WITHIN_S, lifespan="on",
        server_header=False,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[bound])
