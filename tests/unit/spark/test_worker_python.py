"""The program that starts Python workers with the installed pyspark. Issue 13, item 6."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest

from partita.spark.worker_python import choose_python, quick_python, quick_workers, worker_python

LIBRARY = Path(pyspark.__file__).parent / "python" / "lib"
WHERE = "import os, sys, pyspark; print(pyspark.__file__, sys.executable, os.environ['PYTHONPATH'], sys.argv[1:])"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "to be restored")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
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


def test_the_zip_is_left_out_wherever_it_comes(cache: Path) -> None:
    """Spark puts its zips into the path of the processes that look for data sources twice."""
    zips = ":".join(str(path) for path in sorted(LIBRARY.glob("*.zip")))
    for path in (f"{zips}:/x.jar:{zips}:{zips}:/mine", f"/x.jar:/mine:{zips}"):
        assert started(path) == f"{pyspark.__file__} {sys.executable} /x.jar:/mine ['a b', '']"
    assert started(zips) == f"{pyspark.__file__} {sys.executable}  ['a b', '']"


def test_the_jar_that_holds_no_python_is_left_out(cache: Path) -> None:
    (jar,) = (LIBRARY.parent.parent / "jars").glob("spark-core_*.jar")
    with ZipFile(jar) as found:
        assert not [name for name in found.namelist() if name.endswith((".py", ".pyc"))]
    assert started(f"/mine:{jar}:/x.jar").endswith(" /mine:/x.jar ['a b', '']")


def test_numpy_starts_one_thread_unless_the_user_wants_more(cache: Path) -> None:
    command = [worker_python(), "-c", "import os; print(os.environ['OMP_NUM_THREADS'])"]
    for given, told in ((None, "1\n"), ("4", "4\n")):
        environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
        environment |= {"OMP_NUM_THREADS": given} if given else {}
        assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == told


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
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == worker_python() != sys.executable
    choose_python("spark://host:7077")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/theirs")
    choose_python("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == "/theirs"


def test_the_python_of_a_running_session_is_replaced_where_it_is_this_one(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By any name that it has in its folder, whether linked or copied."""
    ours, copied, linked, other = (cache / name for name in ("python", "python3", "python3.11", "python3.9"))
    for program, text in ((ours, "#!/bin/sh\n"), (copied, "#!/bin/sh\n"), (other, "#!/bin/sh\nexit\n")):
        program.write_text(text)
        program.chmod(0o755)
    linked.symlink_to(ours)
    monkeypatch.setattr(sys, "executable", str(ours))
    monkeypatch.setenv("PATH", str(cache), prepend=os.pathsep)
    for name in (str(ours), "python", "python3", "python3.11"):
        assert quick_python(name, "local[2]") == worker_python()
    assert quick_python("python3.9", "local[2]") == "python3.9"
    assert quick_python("python3", "spark://host:7077") == "python3"


def test_another_python_of_a_running_session_stays(cache: Path) -> None:
    elsewhere = cache / "python3"
    elsewhere.symlink_to(sys.executable)
    assert quick_python(str(elsewhere), "local[2]") == str(elsewhere)
    assert quick_python("/not/there/python3", "local[2]") == "/not/there/python3"
    assert quick_python("/bin/sh", "local[2]") == "/bin/sh"


def test_a_session_has_its_own_python_again_whatever_happens(cache: Path) -> None:
    context: Any = SimpleNamespace(pythonExec=sys.executable, master="local[2]")
    with quick_workers(context):
        assert context.pythonExec == worker_python()
    assert context.pythonExec == sys.executable
    with pytest.raises(KeyError), quick_workers(context):
        raise KeyError
    assert context.pythonExec == sys.executable
