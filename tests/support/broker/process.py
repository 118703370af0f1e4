"""`partita broker` in a process of its own, as users start it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType


class BrokerProcess:
    """A broker in memory on a free port: `with BrokerProcess() as broker`, then `broker.bootstrap`.

    With listeners among the options, these are the ports.
    """

    def __init__(self, *options: str) -> None:
        port = () if any("listeners=" in option for option in options) else ("--port", "0")
        command = [sys.executable, "-m", "partita.cli.main", "broker", "--memory", *port, *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.bootstrap = next(line.split()[1] for line in self._process.stdout if line.startswith("bootstrap"))

    def __enter__(self) -> BrokerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.thaw()
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def port(self) -> int:
        """Where its first listener listens."""
        return int(self.bootstrap.rpartition(":")[2])

    def resident_kib(self) -> int:
        """How much memory it holds. Linux only."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def reload(self) -> None:
        """Let it read certificates and users again."""
        self._process.send_signal(signal.SIGHUP)

    def freeze(self) -> None:
        """Stop it in its tracks: it accepts connections, by the system's queue, and answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        if sys.platform != "win32":
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def broker_process(*options: str) -> Iterator[str]:
    """A broker in memory on a free port; yields its bootstrap address and stops it afterwards."""
    with BrokerProcess(*options) as broker:
        yield broker.bootstrap
