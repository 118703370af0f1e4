"""Which cluster a command talks to: options, environment, profiles."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from partita.cli.address import Address, address_options, find_address, profile_file, read_profiles

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


@pytest.mark.case("SE-Q07")
def test_options_come_from_the_call_then_the_file_then_the_environment(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("bootstrap.servers=filed:1\nsasl.username=filed\nrequest.timeout.ms=2\ngroup.id=g\n")
    monkeypatch.setenv("PARTITA_BOOTSTRAP", "env:1")
    for name in ("SASL_USERNAME", "REQUEST_TIMEOUT_MS", "CLIENT_ID"):
        monkeypatch.setenv(f"PARTITA_{name}", "3")
    address = find_address(None, None, {"request.timeout.ms": "1"}, config_file=properties)
    assert address == Address("filed:1", {"client.id": "3", "sasl.username": "filed", "request.timeout.ms": "1"})
    assert find_address("given:1", None).options["sasl.username"] == "3"
    assert find_address(None, "far", config_file=properties).servers == "far:1,far:2"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sasl.jass.config=x", "unknown option 'sasl.jass.config'; did you mean 'sasl.jaas.config'?"),
        ("a=\\u00", "line 1"),
    ],
)
def test_a_wrong_properties_file_is_named_with_its_fault(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(click.UsageError) as refused:
        find_address(None, None, config_file=path)
    assert told in refused.value.format_message()
    with pytest.raises(click.UsageError, match="cannot read"):
        find_address(None, None, config_file=tmp_path / "nothing")


def test_a_secret_that_others_may_read_is_warned_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "client.properties"
    path.write_text("sasl.password=secret")
    path.chmod(0o644)
    find_address("x:1", None, config_file=path)
    said = capsys.readouterr().err
    assert "others may read it" in said
    assert "secret\n" not in said
    path.chmod(0o600)
    find_address("x:1", None, config_file=path)
    assert capsys.readouterr().err == ""


def test_a_password_comes_from_a_file_or_from_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Address] = []

    @click.command()
    @address_options
    def command(bootstrap: Address) -> None:
        seen.append(bootstrap)

    path = tmp_path / "password"
    path.write_text("from file\n")
    user = ["-b", "x:1", "-X", "sasl.username=u"]
    monkeypatch.setattr("partita.cli.address.is_asked", lambda: True)
    for words, typed in (
        (["--password-file", str(path)], None),
        ([], "typed\n"),
        (["-X", "sasl.password=given"], None),
    ):
        result = CliRunner().invoke(command, [*user, *words], input=typed)
        assert result.exit_code == 0, result.output
    assert [address.options["sasl.password"] for address in seen] == ["from file", "typed", "given"]
