"""Child process: the Spark half, `partita pipeline run` with a file, until the parent says finish or is gone.

Run as `python -m partita.cli.demo_pipeline FILE.toml`.
"""

from __future__ import annotations

import os
import signal
import sys

from partita.cli.main import main
from partita.demo.worker import watch_parent

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that compiles once and lightly starts twice as fast on two busy cores; not for a long job."""

if __name__ == "__main__":
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_START)
    watch_parent(lambda: os.kill(os.getpid(), signal.SIGINT))
    sys.argv = ["partita", "pipeline", "run", "--master", "local[2]", "--json", sys.argv[1]]
    main()
