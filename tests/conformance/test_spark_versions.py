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

import pytest

from partita import Admin, Broker

pytestmark = [pytest.mark.conformance, pytest.mark.spark]

PROGRAMS = Path(__file__).parent.parent / "support" / "spark" / "core_programs.py"
VERSIONS = os.environ.get("PARTITA_SPARKS", "4.0.5").split()
INSTALL_LIMIT_S, LIMIT_S = 900, 900


@pytest.fixture(params=VERSIONS)
def pyspark(request: pytest.FixtureRequest) -> Path:
    """A folder with this release of pyspark alone, made once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita"
    folder = cache / f"pyspark-{request.param}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        installer = cache / "installer"
        venv.create(installer, with_pip=True)
        wanted = ["--no-deps", "--target", str(folder), f"pyspark=={request.param}"]
        subprocess.run([installer / "bin" / "pip", "install", "--quiet", *wanted], check=True, timeout=INSTALL_LIMIT_S)
        (folder / "whole").touch()
    return folder


def test_the_core_programs_run_on_an_older_spark(pyspark: Path, tmp_path: Path) -> None:
    with Broker() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            for topic in ("in", "out", "copy"):
                admin.create_topic(topic, 3)
        path = os.pathsep.join([str(pyspark), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "SPARK_HOME": str(pyspark / "pyspark")}
        command = [sys.executable, str(PROGRAMS), broker.bootstrap, str(tmp_path / "checkpoint")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout.splitlines()[-1])
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            committed = sum(row.committed_offset or 0 for row in admin.group_lag("g"))
    assert found.pop("spark") in str(pyspark)
    batches = [*found.pop("limited"), *found.pop("after_a_restart")]
    assert max(batches) <= 13, "a restart knows where it was, so its first batch is limited too"
    assert found == {"batch": 90, "filtered": 20, "written": 90, "available_now": True, "each_once": True}
    assert committed == 180
