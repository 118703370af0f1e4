"""Go programs that tests run, built once from published modules into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD_LIMIT_S = 900


def go_program(package: str, version: str, *how: str, module: Path | None = None) -> Path:
    """Return the program that `go HOW` makes of this package, such as `build`; skip the test where Go is missing.

    `module` is a Go module that requires the package at this version; one is made in the cache if none is given.
    """
    go = shutil.which("go", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/go/bin")))
    if go is None:
        pytest.skip(f"Go is needed to build {package}")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    program = cache / "partita" / f"{package.rpartition('/')[2]}-{version}" / "program"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    commands = [[*how, "-o", str(program), package]]
    if module is None:
        module = program.parent
        (module / "go.mod").write_text("module partita.tests\n")
        commands.insert(0, ["get", "-tool", f"{package}@{version}"])
    for command in commands:
        done = subprocess.run([go, *command], cwd=module, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
        assert done.returncode == 0, done.stderr[-2000:]
    return program
