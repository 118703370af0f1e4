"""Worker and coordinator processes: start them, read their facts, stop and kill them. None outlives its parent."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partita.designs.journal import Fact

Hear = Callable[[Fact], None]


class Process:
    """One Python process whose facts are read in a thread."""

    def __init__(self, module: str, arguments: list[str], hear: Hear, errors: Path) -> None:
        self._errors = errors
        with errors.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=output, start_new_session=True,
            )  # fmt: skip
        self._thread = threading.Thread(target=self._listen, args=(hear,), daemon=True, name="worker-facts")
        self._thread.start()

    def _listen(self, hear: Hear) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            if line.startswith(b"{"):
                fields: dict[str, Any] = json.loads(line)
                hear(Fact(fields.pop("at"), fields.pop("member"), fields.pop("event"), fields))

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._popen.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; a stopped process counts as running."""
        return self._popen.poll() is None

    def order(self, **fields: Any) -> None:
        """Send one order."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(fields).encode() + b"\n")
        self._popen.stdin.flush()

    def pause(self) -> None:
        """SIGSTOP the process, like a long garbage collection."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a paused process (SIGCONT)."""
        self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
        self._thread.join(timeout=5)
        for stream in (self._popen.stdin, self._popen.stdout):
            assert stream is not None
            with contextlib.suppress(OSError):
                stream.close()
