"""Build the source distribution and the pure wheel in a temporary folder and check them as an index would.

Checks the metadata (`twine check --strict`) and that the source distribution has what distributors need: tests,
documents, the changelog and the declarations of the compiled parts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUPTOOLS_MIN = 77
EXPECTED = (
    "CHANGELOG.md", "LICENSE", "README.md", "docs/command-line.md", "tests/test_tidy.py", "tools/reference.py",
    "src/partita/py.typed", "src/partita/protocol/reader.pxd", "src/partita/protocol/schema/join_group.txt",
)  # fmt: skip


def _isolation() -> list[str]:
    """Nothing is downloaded if the tools that `pyproject.toml` asks for are here."""
    try:
        is_here = int(version("setuptools").partition(".")[0]) >= SETUPTOOLS_MIN and bool(version("Cython"))
    except PackageNotFoundError:
        is_here = False
    return ["--no-isolation"] if is_here else []


def main() -> int:
    """Build and check; print what is wrong and return 1, or return 0."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "build", *_isolation(), "--outdir", folder, str(ROOT)]
        environment = {**os.environ, "PARTITA_PURE": "1"}
        for command in (build, [sys.executable, "-m", "twine", "check", "--strict", f"{folder}/*"]):
            done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                print(done.stdout[-4000:] + done.stderr[-4000:])
                return 1
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            names = {name.partition("/")[2] for name in opened.getnames()}
    missing = [name for name in EXPECTED if name not in names]
    strange = sorted(name for name in names if name.endswith(".so") or "__pycache__" in name)
    print("".join(f"the source distribution lacks {name}\n" for name in missing), end="")
    print("".join(f"the source distribution must not have {name}\n" for name in strange), end="")
    return int(bool(missing or strange))


if __name__ == "__main__":
    sys.exit(main())
