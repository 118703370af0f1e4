"""The programs of other frameworks in docs/, in an environment of their own, against our broker."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from partita import Broker
from partita.testing.containers import KafkaContainer

pytestmark = pytest.mark.conformance

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- not run: needs [^>]+test_frameworks.py runs it -->\n```python\n(.*?)```", re.S)
PAGES = ("migrating.md", "testing-with-partita.md")
MIGRATING, TESTING = (BLOCK.findall((ROOT / "docs" / page).read_text()) for page in PAGES)
INSTALL_LIMIT_S, LIMIT_S = 600, 120
CALLS = {
    "with_kraft", "with_cluster_id", "with_env", "with_envs", "with_name", "with_exposed_ports", "start", "stop",
    "get_bootstrap_server", "get_container_host_ip", "get_exposed_port", "get_logs",
}  # fmt: skip
"""The calls of the drop-in that take the same arguments as testcontainers'."""


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with the frameworks, made once for each list of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["frameworks"]]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita"
    made = cache / f"frameworks-{hashlib.sha256(repr((wanted, sys.version)).encode()).hexdigest()[:12]}"
    if not (made / "whole").exists():
        venv.create(made, clear=True, with_pip=True)
        command = [made / "bin" / "pip", "install", "--quiet", *wanted]
        subprocess.run(command, check=True, timeout=INSTALL_LIMIT_S)
        (made / "whole").touch()
    return made / "bin" / "python"


@pytest.mark.parametrize(
    ("page", "name"),
    [(MIGRATING, "faststream"), (MIGRATING, "quixstreams"), (MIGRATING, "faust"), (TESTING, "faststream")],
    ids=["faststream", "quixstreams", "faust", "faststream's test broker"],
)
def test_a_program_of_the_framework_runs_on_partita(
    page: list[str], name: str, python: Path, partita_broker: Broker, tmp_path: Path
) -> None:
    """Issue 28 item 8: each program asserts for itself what it has seen."""
    (program,) = [block for block in page if re.search(rf"^(from|import) {name}\b", block, re.M)]
    text = f"bootstrap = {partita_broker.bootstrap!r}\n{program}"
    done = subprocess.run([python, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_tests_of_django_run_on_partita(python: Path, tmp_path: Path) -> None:
    conftest, tests = TESTING[:2]
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_orders.py").write_text(tests)
    (tmp_path / "settings.py").write_text('SECRET_KEY = "x"\nKAFKA_BOOTSTRAP_SERVERS = ""\n')
    # Not src itself: an installer may have left the package's entry points there, and the plugin would load twice.
    (tmp_path / "partita").symlink_to(ROOT / "src" / "partita")
    command = [str(python), "-m", "pytest", "-q", "-p", "partita.testing.plugin", "--ds", "settings", "test_orders.py"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_drop_in_takes_what_the_container_of_testcontainers_takes(python: Path) -> None:
    names = [name for name, member in vars(KafkaContainer).items() if inspect.isfunction(member) and name in CALLS]
    program = (
        "import inspect, json, sys\nfrom testcontainers.kafka import KafkaContainer\n"
        "print(json.dumps({n: [*inspect.signature(getattr(KafkaContainer, n)).parameters] for n in sys.argv[1:]}))"
    )
    done = subprocess.run([python, "-c", program, *names], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    theirs = {name: parameters[1:] for name, parameters in json.loads(done.stdout).items()}
    ours = {name: [*inspect.signature(getattr(KafkaContainer, name)).parameters][1:] for name in names}
    assert theirs == ours
    assert set(names) == CALLS
