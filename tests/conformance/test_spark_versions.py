"""The core programs of the Spark source on older Sparks, each in a folder of its own, against our broker. Issue 31.

`make conformance` runs the oldest; PARTITA_SPARKS="4.0.5 4.1.4 4.2.1" runs these.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from partita import Admin, Broker

pytestmark = [pytest.mark.conformance, pytest.mark.spark]

PROGRAMS = Path(__file__).parent.parent / "support" / "spark" / "core_programs.py"
VERSIONS = os.environ.get("PARTITA_SPARKS", "4.0.5").split()
TYPED = Path(__file__).parents[1] / "e2e" / "test_spark_typed.py"
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
FEATURES = {
    "filters": "filters narrow what a batch reads",
    "limits with Trigger.AvailableNow": "`maxOffsetsPerTrigger` and the like",
    "lag in progress": "lag in a query's progress (`lag(query)`, `lag_seconds(query)`)",
}
"""What the programs find, and its row in the page's table of versions."""
INSTALL_LIMIT_S, LIMIT_S = 900, 900


@pytest.fixture(params=VERSIONS)
def pyspark(request: pytest.FixtureRequest) -> Path:
    return pyspark_of(request.param)


def pyspark_of(version: str) -> Path:
    """A folder with this release of pyspark alone, made once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita"
    folder = cache / f"pyspark-{version}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        installer = cache / "installer"
        venv.create(installer, with_pip=True)
        wanted = ["--no-deps", "--target", str(folder), f"pyspark=={version}"]
        subprocess.run([installer / "bin" / "pip", "install", "--quiet", *wanted], check=True, timeout=INSTALL_LIMIT_S)
        (folder / "whole").touch()
    return folder


def run_with(pyspark: Path, program: Path, *arguments: str) -> Any:
    """What the program prints last, as JSON."""
    return json.loads(printed_with(pyspark, str(program), *arguments)[-1])


def printed_with(pyspark: Path, *arguments: str) -> list[str]:
    """The lines that Python prints with this Spark."""
    path = os.pathsep.join([str(pyspark), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "SPARK_HOME": str(pyspark / "pyspark")}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout.splitlines()


def told(pyspark: Path) -> dict[str, bool]:
    """What the page says of this release, by row: its cell is a bare yes."""
    version = pyspark.name.removeprefix("pyspark-").rpartition(".")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    head = next(i for i, row in enumerate(rows) if row[:2] == ["", "4.0"])
    column = next(i for i, cell in enumerate(rows[head]) if version in cell.split(", "))
    return {row[0]: row[column] == "yes" for row in rows[head + 2 :] if len(row) == len(rows[head])}


def test_the_core_programs_run_on_an_older_spark(pyspark: Path, tmp_path: Path) -> None:
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            for topic in ("in", "out", "copy"):
                admin.create_topic(topic, 3)
        found = run_with(pyspark, PROGRAMS, broker.bootstrap, str(tmp_path / "checkpoint"))
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            committed = sum(row.committed_offset or 0 for row in admin.group_lag("g"))
    assert found.pop("spark") in str(pyspark)
    batches = [*found.pop("limited"), *found.pop("after_a_restart")]
    assert max(batches) <= 13, "a restart knows where it was, so its first batch is limited too"
    has = {name: found.pop(name) for name in FEATURES}
    print(f"\n{pyspark.name}: {has}")
    page = told(pyspark)
    assert has == {name: page[row] for name, row in FEATURES.items()}, "docs/spark.md says otherwise"
    assert found == {"batch": 90, "filtered": 20, "written": 90, "available_now": True, "each_once": True}
    assert committed == 180


def test_typed_columns_are_those_of_an_older_sparks_own_functions(pyspark: Path) -> None:
    printed = printed_with(pyspark, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TYPED))
    assert " passed" in printed[-1]
    assert told(pyspark)["typed columns, with the values of that release's `from_json` and `from_csv`"]
