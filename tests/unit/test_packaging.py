"""What is installed where: optional codecs with one clear error, container files that call commands that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path
from runpy import run_path

import click
import pytest

import partita
from partita.cli.commands import cli
from partita.records import compression
from partita.records.compression import GZIP, LZ4, codec_number, compress, decompress

ROOT = Path(__file__).parents[2]


def test_lz4_without_its_package_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    monkeypatch.setattr(compression, "find_spec", lambda name: None)
    for call in (lambda: codec_number("lz4"), lambda: compress(LZ4, b"x")):
        with pytest.raises(ValueError, match=r"compression lz4 needs the package lz4; install it with: pip install"):
            call()


def test_lz4_is_read_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = compress(LZ4, b"x" * 100)
    monkeypatch.setitem(sys.modules, "lz4", None)
    assert bytes(decompress(LZ4, packed)) == b"x" * 100


def test_gzip_needs_nothing_but_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    packed = compress(GZIP, b"x" * 100)
    assert zlib.decompress(bytes(packed), 31) == b"x" * 100
    assert bytes(decompress(GZIP, packed)) == b"x" * 100


def test_pages_of_the_dashboard_are_in_the_package() -> None:
    """With the licences of what others wrote."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["partita"]
    package = ROOT / "src" / "partita"
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    files = {
        path for path in (package / "dashboard").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert len(files) > 15
    assert files <= packed


def check_call(words: list[str]) -> None:
    """Parse the words as a call of the command line. Raises UsageError for what does not exist."""
    context = click.Context(cli, info_name="partita")
    command = cli.get_command(context, words[0])
    assert command is not None
    command.make_parser(click.Context(command, parent=context)).parse_args(words[1:])


def test_the_container_calls_commands_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text()
    shell = json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.M)[0])[2]
    check_call(shell.removeprefix("exec partita ").removesuffix(' "$@"').split())
    check_call(json.loads(re.findall(r"HEALTHCHECK .* CMD (.*)$", text, re.M)[0])[1:])
    assert re.search(r"^USER (?!root)", text, re.M), "the broker does not run as root"


def test_the_composed_broker_is_called_as_the_command_line_says() -> None:
    text = (ROOT / "compose.yaml").read_text()
    words = re.findall(r"^      - (.*)$", text.partition("entrypoint:")[2].partition("    ports:")[0], re.M)
    assert words[0] == "partita"
    check_call(words[1:])


@pytest.mark.parametrize(
    ("tag", "changelog", "said"),
    [
        ("v0.2.0", "# Changelog\n\n## 0.2.0 (2026-12-01)\n", []),
        ("0.2.0", "## 0.2.0 (2026-12-01)", ["the tag 0.2.0 does not name version 0.2.0", "expected v0.2.0"]),
        ("v0.3.0", "## 0.2.0 (2026-12-01)", ["the tag v0.3.0 does not name version 0.2.0"]),
        ("v0.2.0", "## 0.2.0 (unreleased)", ["CHANGELOG.md calls 0.2.0 'unreleased'"]),
        ("v0.2.0", "## 0.1.0 (2026-12-01)", ["CHANGELOG.md has no section '## 0.2.0 (date)'"]),
    ],
)
def test_a_release_is_the_version_that_its_tag_names(tag: str, changelog: str, said: list[str]) -> None:
    faults = run_path(str(ROOT / "tools" / "release_check.py"))["faults"]
    found = " ".join(faults(tag, '__version__ = "0.2.0"\n', changelog))
    assert bool(found) == bool(said)
    assert all(part in found for part in said)


def test_the_version_has_one_home() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'^dynamic = \["version"', project, re.M)
    assert not re.search(r"^version = \"", project, re.M)
    faults = run_path(str(ROOT / "tools" / "release_check.py"))["faults"]
    version = partita.__version__
    package = (ROOT / "src" / "partita" / "__init__.py").read_text()
    assert faults(f"v{version}", package, f"## {version} (2026-12-01)") == []


def test_what_only_one_command_uses_is_an_extra() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (core,) = re.findall(r"^dependencies = (\[.*\])$", project, re.M)
    assert {re.split(r"[>=]", name)[0] for name in json.loads(core)} == {"crc32c", "cramjam", "click", "h11"}


def loaded_by(modules: str, *, beside: str) -> set[str]:
    """What a fresh interpreter loads for these modules and has not loaded for those beside them."""
    code = f"import {beside}, sys; others = set(sys.modules)\nimport {modules}\nprint(*set(sys.modules) - others)"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(started.stdout.split())
    assert modules.partition(",")[0] in found
    return found


def test_a_broker_starts_without_what_it_may_never_need() -> None:
    """Issue 18: time to start and idle memory, groups included; each of these is loaded at its first use."""
    late = {
        "bz2", "click", "difflib", "hashlib", "hmac", "ipaddress", "lzma", "pathlib", "random", "secrets", "shutil",
        "tomllib", "partita.broker.api.partition_errors", "partita.security.principal_rules", "partita.security.scram",
    }  # fmt: skip
    started = "partita.cli.main, partita.cli.service.serving, partita.broker.groups.coordinators"
    assert not late & loaded_by(started, beside="asyncio")


def test_a_client_starts_without_what_only_a_login_needs() -> None:
    """Issue 13, speed: each Python worker of Spark loads the client, as each command does."""
    standard = {"difflib", "email", "hashlib", "hmac", "http.client", "secrets", "urllib.request"}
    late = {*standard, "partita.net.secured.login"}
    assert not late & loaded_by("partita.net.cluster", beside="asyncio, logging")


def test_a_worker_of_the_build_that_is_not_forked_can_import_its_main_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """It set up the package once more: so did each worker of Cython's on macOS and, since Python 3.14, on Linux."""
    monkeypatch.chdir(ROOT)
    run_path("setup.py", run_name="__mp_main__")
