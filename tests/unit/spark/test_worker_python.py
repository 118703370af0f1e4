"""The program that starts Python workers with the installed pyspark. Issue 13, item 6."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from partita.spark.worker_python import choose_python, worker_python

LIBRARY = Path(pyspark.__file__).parent / "python" / "lib"
WHERE = "import os, sys, pyspark; print(pyspark.__file__, sys.executable, os.environ['PYTHONPATH'], sys.argv[1:])"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    return tmp_path


def started(path: str) -> str:
    environment = {**os.environ, "PYTHONPATH": path}
    command = [worker_python(), "-c", WHERE, "a b", ""]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_the_installed_pyspark_comes_before_the_zip_of_its_sources(cache: Path) -> None:
    assert Path(worker_python()).parent == cache / "partita"
    zips = [str(path) for path in sorted(LIBRARY.glob("*.zip"), reverse=True)]
    assert zips[0].endswith("pyspark.zip")
    told = started(":".join([*zips, "/x.jar", "/mine"]))
    assert told == f"{pyspark.__file__} {sys.executable} /x.jar:/mine ['a b', '']"


def test_another_spark_home_is_left_as_it_is(cache: Path) -> None:
    assert started("/other/python/lib/pyspark.zip:/mine").endswith(" /other/python/lib/pyspark.zip:/mine ['a b', '']")


def test_a_cache_that_cannot_be_written_means_this_python(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "file"))
    assert worker_python() == sys.executable


def test_executors_of_a_cluster_get_this_python_and_a_choice_of_the_user_stays(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_python("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == worker_python() != sys.executable
    choose_python("spark://host:7077")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/theirs")
    choose_python("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == "/theirs"
