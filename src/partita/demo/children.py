"""The demo's child processes: start, listen to their JSON lines, end. None outlives the parent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Listener = Callable[[str, dict[str, Any]], None]
PATIENCE_S = 20.0


class ChildFailed(RuntimeError):
    """A child process ended early or with an error."""


class Child:
    """One process of the demo, named after its part."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, listen: Listener, log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self._reader = asyncio.create_task(self._read(listen))
        self.is_ending = False

    @classmethod
    async def start(cls, name: str, module: str, arguments: list[str], listen: Listener, folder: Path) -> Child:
        """Run `python -m module` in `folder`; its standard error is added to a file in its logs."""
        log = folder / "logs" / f"{name}.log"
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, *arguments, stdin=asyncio.subprocess.PIPE, cwd=folder,
                stdout=asyncio.subprocess.PIPE, stderr=errors, start_new_session=True, limit=1 << 22,
            )  # fmt: skip
        return cls(name, process, listen, log)

    async def _read(self, listen: Listener) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.startswith(b"{"):
                listen(self.name, json.loads(line))

    def check(self) -> None:
        """Raise ChildFailed when the process ended without being asked to."""
        code = self.process.returncode
        if code is not None and code != 0 and not self.is_ending:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise ChildFailed(f"{self.name} ended with {code}; the end of {self.log}:\n{tail}")

    def kill(self) -> None:
        """SIGKILL for the process and its children, Spark's JVM among them: no goodbye, as a crashed machine."""
        self.is_ending = True
        os.killpg(self.process.pid, signal.SIGKILL)

    async def tell(self) -> None:
        """Ask the process to finish: most of them end then."""
        if self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.write(b"finish\n")
            await self.process.stdin.drain()

    async def finish(self) -> None:
        """Ask the process to finish and wait until it has; raise ChildFailed when it does not end well."""
        await self.tell()
        await asyncio.wait_for(self.process.wait(), 120)
        await self._reader
        self.check()

    async def stop(self) -> None:
        """End the process in any case: politely, then with force."""
        self.is_ending = True
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), PATIENCE_S)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        self._reader.cancel()
