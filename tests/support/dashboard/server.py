"""The dashboard behind a real socket, in a thread with a loop of its own; it can be stopped and started again."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette

from partita.dashboard.serve import listening_socket

CHROMIUM = shutil.which("chromium")
"""The browser of this machine; tests that need it are left out where there is none."""


class Served:
    """`with Served(make_app) as served: ...served.url...`; `make_app` is called on the server's own loop."""

    def __init__(self, make_app: Callable[[], Starlette]) -> None:
        self._make_app = make_app
        self._port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Served:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, at the same port as before if there was one."""
        bound = listening_socket("127.0.0.1", self._port)
        self._port = bound.getsockname()[1]
        started = threading.Event()

        async def run() -> None:
            self.loop = asyncio.get_running_loop()
            config = uvicorn.Config(self._make_app(), log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
            self._server = uvicorn.Server(config)
            self._server.startup = _then(self._server.startup, started)  # type: ignore[method-assign,assignment]  # told when it listens
            await self._server.serve(sockets=[bound])

        self._thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        self._thread.start()
        assert started.wait(60)

    def stop(self) -> None:
        """Stop listening and end all streams."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(60)
            self._server = None

    def on_loop(self, act: Callable[[], None]) -> None:
        """Call `act` on the server's loop and wait for it."""
        assert self.loop is not None
        done = threading.Event()

        def run() -> None:
            act()
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(60)


def _then(startup: Callable[..., Awaitable[None]], started: threading.Event) -> Callable[..., Awaitable[None]]:
    async def started_up(*args: Any, **named: Any) -> None:
        await startup(*args, **named)
        started.set()

    return started_up
