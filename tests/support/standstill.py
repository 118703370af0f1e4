"""Stop a process now and then, as a loaded machine and a garbage collector do: tests that depend on luck fail then.

Usage: standstill.py PID. Stops it for 20 to 500 ms, some forty times in a minute, until it has ended.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time


def main(pid: int) -> None:
    """Return when the process is no longer the parent of this one."""
    while os.getppid() == pid:
        time.sleep(random.uniform(0.5, 2))
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(random.uniform(0.02, 0.5))
        finally:
            os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    main(int(sys.argv[1]))
