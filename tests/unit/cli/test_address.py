"""Which cluster a command talks to: options, environment, profiles."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from partita.cli.address import Address, find_address, profile_file, read_profiles

FILE = """
default = "local"
[profiles.local]
bootstrap = "local:1"
[profiles.far]
bootstrap.servers = "far:1,far:2"
security.protocol = "PLAINTEXT"
"request.timeout.ms" = 5000
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    monkeypatch.setenv("PARTITA_CONFIG", str(path))
    for name in ("PARTITA_BOOTSTRAP", "PARTITA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return path


FAR = {"security.protocol": "PLAINTEXT", "request.timeout.ms": 5000}


@pytest.mark.parametrize(
    ("servers", "profile", "environment", "expected"),
    [
        (None, None, {}, Address("local:1")),
        (None, "far", {"PARTITA_BOOTSTRAP": "env:1"}, Address("far:1,far:2", FAR)),
        (None, None, {"PARTITA_BOOTSTRAP": "env:1", "PARTITA_PROFILE": "far"}, Address("env:1")),
        (None, None, {"PARTITA_PROFILE": "far"}, Address("far:1,far:2", FAR)),
        ("given:1", None, {"PARTITA_PROFILE": "far"}, Address("given:1")),
        ("given:1", "far", {}, Address("given:1", FAR)),
    ],
)
def test_the_first_that_is_given_wins(
    file: Path, monkeypatch: pytest.MonkeyPatch, servers: str | None, profile: str | None,
    environment: dict[str, str], expected: Address,
) -> None:  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_address(servers, profile) == expected


def test_without_anything_it_is_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PARTITA_BOOTSTRAP", "PARTITA_PROFILE", "PARTITA_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert profile_file() == tmp_path / "partita" / "config.toml"
    assert find_address(None, None) == Address("127.0.0.1:9092")
    with pytest.raises(click.UsageError, match="there is no profile file"):
        find_address(None, "far")


def test_options_of_the_call_win_over_the_profile(file: Path) -> None:
    address = find_address(None, "far", {"request.timeout.ms": "7"})
    assert address.client_options(group_id="g") == {
        "bootstrap.servers": "far:1,far:2", "client.id": "partita-cli", "security.protocol": "PLAINTEXT",
        "request.timeout.ms": "7", "group.id": "g",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = ", "cannot read the profile file"),
        ("profile = 1", "expected default and"),
        ("profiles = 1", "expected tables such as"),
        ("[profiles.a]\nbootstap = 'x:1'", "profile 'a': unknown option 'bootstap'"),
        ("[profiles.a]\nclient.id = 'x'", "profile 'a' needs one bootstrap"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(click.UsageError) as refused:
        read_profiles(path)
    assert told in refused.value.format_message()
    assert str(path) in refused.value.format_message()


def test_a_misspelt_profile_is_answered_with_the_names(file: Path) -> None:
    with pytest.raises(click.UsageError, match="profiles there: far, local"):
        find_address(None, "fra")
