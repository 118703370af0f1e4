"""SCRAM credentials from Python and the command line, against a broker of ours. (security-cases.md E)"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Admin, Broker, Consumer, Producer
from partita.admin import ScramCredential, ScramUser
from partita.cli.commands import cli
from partita.errors import AuthenticationError, UnacceptableCredentialError
from partita.options import ConfigError


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(users={"admin": "admin"}) as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(**broker.client_options("admin")) as connected:
        yield connected


def logs_in(broker: Broker, user: str, password: str, mechanism: str) -> bool:
    options = {**broker.client_options("admin"), "sasl_username": user, "sasl_password": password}
    try:
        with Admin(**{**options, "sasl_mechanism": mechanism}) as connected:
            connected.list_topics()
    except AuthenticationError:
        return False
    return True


@pytest.mark.case("SE-E01", "SE-E02", "SE-E11", "SE-E12", "SE-E13")
def test_credentials_are_set_changed_described_and_removed(broker: Broker, admin: Admin) -> None:
    admin.alter_scram_users({"carol": ScramUser("one"), "dave": ScramUser("d", "SCRAM-SHA-256", 8192)})
    assert admin.describe_scram_users(["carol", "dave", "nobody"]) == [
        ScramCredential("carol", "SCRAM-SHA-512", 4096),
        ScramCredential("dave", "SCRAM-SHA-256", 8192),
    ]
    assert logs_in(broker, "carol", "one", "SCRAM-SHA-512")
    assert not logs_in(broker, "carol", "one", "SCRAM-SHA-256")
    assert logs_in(broker, "dave", "d", "SCRAM-SHA-256")
    admin.alter_scram_users({"carol": ScramUser("two")})
    assert not logs_in(broker, "carol", "one", "SCRAM-SHA-512")
    assert logs_in(broker, "carol", "two", "SCRAM-SHA-512")
    admin.alter_scram_users(remove=[("carol", "SCRAM-SHA-512"), ("dave", "SCRAM-SHA-256")])
    assert {credential.user for credential in admin.describe_scram_users()} == {"admin", "partita-control"}


def test_a_running_client_goes_on_with_new_credentials(broker: Broker, admin: Admin) -> None:
    """The password changes at the broker and in the clients; then their connections break, and they log in anew."""
    admin.alter_scram_users({"grace": ScramUser("old")})
    admin.create_topic("kept")
    options = {**broker.client_options("admin"), "sasl_username": "grace", "sasl_password": "old"}
    options["sasl_mechanism"] = "SCRAM-SHA-512"
    with Producer(**options) as producer, Consumer(**options) as consumer, Admin(**options) as other:
        producer.send("kept", b"1").result(60)
        consumer.assign([("kept", 0)])
        consumer.seek_to_beginning()
        assert [record.value for record in consumer.poll(60)] == [b"1"]
        assert [topic.name for topic in other.list_topics()] == ["kept"]
        admin.alter_scram_users({"grace": ScramUser("new")})
        for client in (producer, consumer, other):
            client.set_sasl_credentials("grace", "new")
        for api in ("Produce", "Fetch", "Metadata"):
            broker.control.drop(api)
        producer.send("kept", b"2").result(60)
        assert [record.value for record in consumer.poll(60)] == [b"2"]
        assert [topic.name for topic in other.list_topics()] == ["kept"]
    with Admin(**broker.client_options("admin")) as again, pytest.raises(ConfigError, match="neither may be empty"):
        again.set_sasl_credentials("admin", "")


@pytest.mark.case("SE-E06", "SE-P12")
def test_what_is_refused_is_raised_and_no_password_is_shown(admin: Admin) -> None:
    with pytest.raises(UnacceptableCredentialError, match="Too few iterations"):
        admin.alter_scram_users({"eve": ScramUser("x", iterations=1)})
    with pytest.raises(ValueError, match="mechanism must be one of SCRAM-SHA-256, SCRAM-SHA-512"):
        admin.alter_scram_users({"eve": ScramUser("x", "PLAIN")})
    assert "hidden-word" not in repr(ScramUser("hidden-word"))


def test_the_command_line_sets_lists_and_removes_users(broker: Broker, tmp_path: Path) -> None:
    options = broker.client_options("admin", style="java")
    config, secret = tmp_path / "admin.properties", tmp_path / "secret"
    config.write_text("\n".join(f"{name}={value}" for name, value in options.items()))
    config.chmod(0o600)
    secret.write_text("word of frank\n")

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["users", *arguments, "-b", broker.bootstrap, "--command-config", str(config)])
        assert done.exit_code == 0, done.output
        return done.output

    assert "frank can log in by SCRAM-SHA-512" in run("set", "frank", "--new-password-file", str(secret))
    assert logs_in(broker, "frank", "word of frank", "SCRAM-SHA-512")
    assert "frank" in run("list")
    run("remove", "frank", "--yes")
    assert "frank" not in run("list")
    assert "no SCRAM credentials" in run("list", "frank")
