"""The programs of other frameworks on docs/migrating.md, in an environment of their own, against our broker."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from partita import Broker

pytestmark = pytest.mark.conformance

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- not run: needs the framework[^>]+ -->\n```python\n(.*?)```", re.S)
PROGRAMS = BLOCK.findall((ROOT / "docs" / "migrating.md").read_text())
INSTALL_LIMIT_S, LIMIT_S = 600, 120


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of an environment with the frameworks, made once for each list of them."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["frameworks"]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita"
    made = cache / f"frameworks-{hashlib.sha256(repr((wanted, sys.version)).encode()).hexdigest()[:12]}"
    if not (made / "whole").exists():
        venv.create(made, clear=True, with_pip=True)
        command = [made / "bin" / "pip", "install", "--quiet", *wanted]
        subprocess.run(command, check=True, timeout=INSTALL_LIMIT_S)
        (made / "whole").touch()
    return made / "bin" / "python"


@pytest.mark.parametrize("name", ["faststream", "quixstreams", "faust"])
def test_a_program_of_the_framework_runs_on_partita(
    name: str, python: Path, partita_broker: Broker, tmp_path: Path
) -> None:
    """Issue 28 item 8: each program asserts for itself what it has seen."""
    (program,) = [block for block in PROGRAMS if re.search(rf"^(from|import) {name}\b", block, re.M)]
    text = f"bootstrap = {partita_broker.bootstrap!r}\n{program}"
    done = subprocess.run([python, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
