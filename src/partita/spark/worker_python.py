"""The Python that Spark starts for its workers on this machine: this one, without the parts that slow its start.

Spark puts the file pyspark.zip in front of the path of every Python process that it starts. The zip holds sources
alone, so each of them compiles what it imports of pyspark: half a second of CPU time for a process whose work may take
a tenth of that. A jar of Spark without any Python follows, whose list of files takes 50 ms to read. And numpy, which
pyarrow imports, starts a thread for each core. A query starts such a process for its source, a session one for each
kind of planner.
"""

from __future__ import annotations

import filecmp
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from partita.cached_programs import cached_program

if TYPE_CHECKING:
    from pyspark import SparkContext

_STARTER = """#!/bin/sh
# Starts Python with the installed pyspark, whose modules are compiled, in place of the zip of the same sources.
export OMP_NUM_THREADS="${{OMP_NUM_THREADS:-1}}"
path=:$PYTHONPATH:
for file in {unwanted}; do
    while case $path in *":$file:"*) true ;; *) false ;; esac; do
        path=${{path%%":$file:"*}}:${{path#*":$file:"}}
    done
done
path=${{path#:}}
export PYTHONPATH="${{path%:}}"
exec {python} "$@"
"""


def worker_python() -> str:
    """A program for PYSPARK_PYTHON on this machine: this Python, on which the installed pyspark comes first.

    The program lies in the user's cache directory and does nothing where SPARK_HOME is not the installed pyspark.
    Without a directory to put it, or on Windows, it is this Python itself. For local masters alone: the executors of a
    cluster need a Python of their own machine.
    """
    found = find_spec("pyspark")
    home = Path(found.origin).parent if found is not None and found.origin else None
    if os.name != "posix" or home is None or not (home / "python" / "lib").is_dir():
        return sys.executable
    unwanted = sorted([*home.glob("python/lib/*.zip"), *home.glob("jars/spark-core_*.jar")])
    text = _STARTER.format(
        unwanted=" ".join(shlex.quote(str(path)) for path in unwanted),
        python=shlex.quote(sys.executable),
    )
    try:
        starter = cached_program(f"python-{sha256(text.encode()).hexdigest()[:12]}", text)
    except OSError:
        return sys.executable
    return str(starter) if os.access(starter, os.X_OK) else sys.executable


def choose_python(master: str) -> None:
    """Set PYSPARK_PYTHON unless it names another Python: for a local master to `worker_python()`, else to this Python.

    Spark would start workers with the python3 of the PATH, which may lack pyarrow. PYSPARK_DRIVER_PYTHON, where unset,
    becomes the same: with it Spark starts the process that looks for data sources.
    """
    chosen, quick = os.environ.get("PYSPARK_PYTHON"), worker_python()
    ours = quick if master.startswith("local") else sys.executable
    if chosen in (None, quick, sys.executable):
        os.environ["PYSPARK_PYTHON"] = ours
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", ours)


def quick_python(chosen: str, master: str) -> str:
    """Return the replacement for the Python of a running session: `worker_python()` where that is the same Python.

    It stays unchanged on a cluster, and where the session chose another Python than this one.
    """
    found = shutil.which(chosen)
    if not master.startswith("local") or found is None:
        return chosen
    # A virtual environment may have copies of one Python by several names.
    same_place = Path(found).absolute().parent == Path(sys.executable).parent
    return worker_python() if same_place and filecmp.cmp(found, sys.executable) else chosen


@contextmanager
def quick_workers(context: SparkContext) -> Iterator[None]:
    """Run registrations in a session on `quick_python` inside the block; the user's own functions keep their Python."""
    chosen = context.pythonExec
    context.pythonExec = quick_python(chosen, str(context.master))
    try:
        yield
    finally:
        context.pythonExec = chosen
