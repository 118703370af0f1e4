"""Child process: the Spark half, `partita pipeline run` with a file, until the parent says finish or is gone.

Run as `python -m partita.cli.demo_pipeline FILE.toml`. With the word `standby` behind it Spark starts and waits for a
line before it reads anything: so a replacement starts beside the session timeout of the one that was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from partita.cli.main import main
from partita.cli.pipeline import session_of
from partita.demo.worker import watch_parent
from partita.spark.pipeline import pipeline_file

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xverify:none"
"""A JVM that compiles once and lightly, and takes Spark's own jars as they are, starts in half the CPU time.

Not for a long job: it would run at half the speed.
"""
MASTER = "local[2]"


def run(file: str, is_standby: bool) -> None:
    """Be `partita pipeline run`; the parent's first line lets a standby begin, the next one ends the pipeline."""
    may_begin = threading.Event()

    def hear() -> None:
        if may_begin.is_set():
            os.kill(os.getpid(), signal.SIGINT)
        may_begin.set()

    if not is_standby:
        may_begin.set()
    watch_parent(hear)
    if is_standby:
        session_of(pipeline_file.parse(Path(file).read_text(encoding="utf-8"), file), MASTER)
        may_begin.wait()
    sys.argv = ["partita", "pipeline", "run", "--master", MASTER, "--json", file]
    main()


if __name__ == "__main__":
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_START)
    run(sys.argv[1], sys.argv[2:] == ["standby"])
