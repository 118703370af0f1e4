"""`partita broker` in a process of its own, as users start it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def broker_process(*options: str) -> Iterator[str]:
    """A broker in memory on a free port; yields its bootstrap address and stops it afterwards."""
    command = [sys.executable, "-m", "partita.cli.main", "broker", "--memory", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield next(line.split()[1] for line in process.stdout if line.startswith("bootstrap"))
        finally:
            process.terminate()
