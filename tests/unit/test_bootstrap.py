"""Setting up the environment: steps, stamps, and a Ctrl-C at each of them (findings 1 to 3 of a newcomer)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import bootstrap  # noqa: E402


class Installer:
    """Takes the place of pip and the compiler; the `fails_at`th call is interrupted."""

    def __init__(self, fails_at: int = 0) -> None:
        self.commands: list[list[str]] = []
        self._calls, self._fails_at = 0, fails_at

    def __call__(self, commands: Sequence[Sequence[str]], variables: Mapping[str, str]) -> None:
        self.commands += map(list, commands)
        self._calls += 1
        if self._calls == self._fails_at:
            raise KeyboardInterrupt


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one compiled part, where there is uv: without it each new environment gets a pip, for seconds."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uv").touch(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    source = tmp_path / "project" / "src" / "partita"
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, source.parent.parent / name)
    (source / "compiled.py").write_text('COMPILED = ("partita.quick",)\n')
    (source / "quick.py").write_text("A = 1\n")
    return source.parent.parent


def prepare(project: Path, purpose: str, installer: Installer, *, pure: bool = False) -> list[str]:
    """Set up; what was said."""
    said: list[str] = []
    bootstrap.Setup(project / ".venv", project, installer, said.append).prepare(purpose, pure=pure)
    return said


def test_each_step_says_its_number_and_its_size(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    assert prepare(project, "test", Installer()) == [
        "set-up 1/4: virtual environment",
        "set-up 2/4: Spark, a download of 456 MB; beside it the clients Partita is compared with, and the tools",
        "set-up 3/4: Partita",
        "set-up 4/4: the compiled parts",
    ]
    assert prepare(project, "test", Installer()) == []


def test_a_larger_purpose_serves_a_smaller_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    prepare(project, "dev", Installer())
    for purpose in ("taste", "demo", "test"):
        assert prepare(project, purpose, Installer()) == []


def test_an_environment_without_pip_gets_one_when_nothing_else_installs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(project, "taste", Installer())
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(bootstrap, "pip_serves_others", lambda: False)
    installer = Installer()
    prepare(project, "docs", installer)
    python = str(project / ".venv" / "bin" / "python")
    assert installer.commands[0] == [python, "-m", "ensurepip", "--default-pip"]
    assert {command[0] for command in installer.commands} == {python}


def test_a_new_purpose_keeps_what_is_compiled(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    prepare(project, "test", Installer())
    assert "set-up 4/4: the compiled parts" not in prepare(project, "dev", Installer())
    assert prepare(project, "test", Installer()) == []


def test_the_demo_compiles_nothing(project: Path) -> None:
    installer = Installer()
    prepare(project, "demo", installer)
    assert not any("build_ext" in command for command in installer.commands)


def test_an_edited_source_is_compiled_again_and_nothing_else(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    prepare(project, "test", Installer())
    (project / "src/partita/quick.py").write_text("A = 2\n")
    assert prepare(project, "test", Installer()) == ["set-up 1/1: the compiled parts"]


def test_a_compiled_form_without_a_source_is_removed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    gone, kept = (project / f"src/partita/{name}.cpython-311-x86_64-linux-gnu.so" for name in ("gone", "quick"))
    gone.touch()
    kept.touch()
    prepare(project, "test", Installer())
    assert (gone.exists(), kept.exists()) == (False, True)


def test_spark_is_installed_beside_the_rest_and_no_package_by_both(project: Path) -> None:
    installer = Installer()
    prepare(project, "test", installer)
    spark, rest = ([word for word in command if ">" in word] for command in installer.commands[:2])
    assert spark == ["pyspark>=4.0,<5"]
    assert not any("pyspark" in requirement or requirement.startswith("partita") for requirement in rest)
    assert {"pandas>=2.2", "kio>=0.6.5", "click>=8.1"} <= set(rest)


def test_a_pure_copy_takes_the_packages_of_another_environment_but_not_its_partita(project: Path) -> None:
    prepare(project, "test", Installer())
    others = next((project / ".venv").glob("lib/python*/site-packages"))
    (others / "other_package.py").touch()
    (others / "__editable__.partita.pth").write_text(f"{project / 'src'}\n")
    pure, installer = project / ".venv-pure", Installer()
    bootstrap.Setup(pure, project, installer, print).prepare("test", pure=True, over=project / ".venv")
    assert [command[-2:] for command in installer.commands] == [["--no-deps", str(project)]]
    found = "import importlib.util as u; print([bool(u.find_spec(name)) for name in ('other_package', 'partita')])"
    asked = subprocess.run([pure / "bin/python", "-I", "-c", found], capture_output=True, text=True, check=True)
    assert asked.stdout == "[True, False]\n"


@pytest.mark.parametrize("step", [1, 2, 3])
def test_after_an_interrupt_the_next_call_goes_on(project: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc")
    with pytest.raises(KeyboardInterrupt):
        prepare(project, "test", Installer(fails_at=step))
    again = Installer()
    assert prepare(project, "test", again)[-1].endswith("the compiled parts")
    installs = [command for command in again.commands if "build_ext" not in command]
    assert len(installs) == (0 if step == 3 else 3)
    assert prepare(project, "test", Installer()) == []


def test_an_environment_that_was_half_made_is_made_anew(project: Path) -> None:
    python = project / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    (project / ".venv/.partita-unfinished").touch()
    prepare(project, "taste", Installer())
    assert subprocess.run([python, "-c", "print(1)"], capture_output=True, text=True, check=True).stdout == "1\n"


def test_ctrl_c_is_one_line_and_status_130(tmp_path: Path) -> None:
    """The real program, interrupted while its first installer runs; nothing is downloaded."""
    stalling = tmp_path / "uv"
    stalling.write_text(f"#!/bin/sh\ntouch {tmp_path}/began\nexec sleep 60\n")
    stalling.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    hears = "import runpy, signal, sys; sys.argv = sys.argv[1:]; signal.signal(2, signal.default_int_handler); "
    hears += "runpy.run_path(sys.argv[0], run_name='__main__')"  # a suite in the background ignores the signal
    arguments = [str(ROOT / "tools/bootstrap.py"), "taste", "--venv", str(tmp_path / "venv")]
    command = [sys.executable, "-c", hears, *arguments]
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    while not (tmp_path / "began").exists():
        assert child.poll() is None, child.communicate()[0]
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert said.splitlines()[-1].endswith("was interrupted; the same command goes on")
    assert "Traceback" not in said
