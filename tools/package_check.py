"""Build the source distribution and the pure wheel in a temporary folder; check them as an index and a user would.

Checks the metadata (`twine check --strict`), that the source distribution has what distributors need (tests, documents,
the changelog, the declarations of the compiled parts), and that the wheel works in a fresh virtual environment with the
dependencies it declares and pytest: `tools/installed_check.py` runs there, and README's blocks with it. No link of the
long description may be relative: an index has the text and no file beside it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUPTOOLS_MIN = 77
REPOSITORY = "https://example.org/partita"
RELATIVE_LINK = re.compile(r"\]\((?!https?://|#)[^)]*\)")
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


def _run(folder: str, *command: str) -> bool:
    """Run a command in a folder that is not the project's; print what it said if it failed."""
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"PARTITA_PURE": "1", "PARTITA_REPOSITORY": REPOSITORY}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-4000:] + done.stderr[-4000:])
    return done.returncode == 0


def _wheel_works(folder: str, wheel: Path) -> bool:
    """Install the wheel into a fresh virtual environment and use it there."""
    fresh = Path(folder, "fresh")
    venv.create(fresh, with_pip=True)
    python = str(fresh / ("Scripts" if os.name == "nt" else "bin") / "python")
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel), "pytest")
    check = (python, "-I", str(ROOT / "tools" / "installed_check.py"), str(ROOT / "README.md"))
    return _run(folder, *install) and _run(folder, *check)


def _metadata_faults(wheel: Path) -> list[str]:
    """What an index would show wrongly."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = opened.read(name).decode()
    found = [f"the long description has a relative link: {link}" for link in RELATIVE_LINK.findall(metadata)]
    found += [] if f"Project-URL: Source, {REPOSITORY}" in metadata else ["the metadata have no URL of the sources"]
    return found


def main() -> int:
    """Build and check; print what is wrong and return 1, or return 0."""
    with tempfile.TemporaryDirectory() as folder:
        built = _run(folder, sys.executable, "-m", "build", *_isolation(), "--outdir", folder, str(ROOT))
        files = [str(path) for path in Path(folder).iterdir()]
        if not built or not _run(folder, sys.executable, "-m", "twine", "check", "--strict", *files):
            return 1
        (archive,), (wheel,) = Path(folder).glob("*.tar.gz"), Path(folder).glob("*.whl")
        with tarfile.open(archive) as opened:
            names = {name.partition("/")[2] for name in opened.getnames()}
        wrong = _metadata_faults(wheel)
        print("".join(f"{fault}\n" for fault in wrong), end="")
        if wrong or not _wheel_works(folder, wheel):
            return 1
    missing = [name for name in EXPECTED if name not in names]
    strange = sorted(name for name in names if name.endswith(".so") or "__pycache__" in name)
    print("".join(f"the source distribution lacks {name}\n" for name in missing), end="")
    print("".join(f"the source distribution must not have {name}\n" for name in strange), end="")
    return int(bool(missing or strange))


if __name__ == "__main__":
    sys.exit(main())
