"""`partita certs make`, a broker that shows what it made, and new certificates and users at SIGHUP."""

from __future__ import annotations

import ssl
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from partita import Admin
from partita.cli.commands import cli
from partita.errors import AuthenticationError, TlsError
from support.broker.process import BrokerProcess
from support.broker.secured import SecuredRaw


def made(folder: Path, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["certs", "make", str(folder), *words])
    assert result.exit_code == code, result.output
    return result.output


def test_an_authority_a_broker_and_its_clients_get_their_files(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    said = made(folder, "--name", "broker.test", "--name", "10.0.0.7", "--client", "svc-orders")
    assert f"partita broker --tls-dir {folder}" in said
    assert "for broker.test, 10.0.0.7" in said
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert files == {"ca.pem": 0o600, "server.pem": 0o600, "client-svc-orders.pem": 0o600}
    before = (folder / "server.pem").read_bytes()
    assert "is there already; --replace makes new ones" in made(folder, code=2)
    assert (folder / "server.pem").read_bytes() == before
    made(folder, "--replace")
    assert (folder / "server.pem").read_bytes() != before


def test_a_name_that_no_certificate_can_be_for_is_refused(tmp_path: Path) -> None:
    """It was a traceback, and left files that the next call would not replace."""
    assert "no certificate can be made for 'host:9092'" in made(tmp_path / "tls", "--name", "host:9092", code=2)
    made(tmp_path / "tls", "--name", "host")
    assert "no certificate can be made for ''" in made(tmp_path / "tls", "--replace", "--client", "", code=2)


def test_a_folder_without_certificates_is_refused_with_the_way_out(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["broker", "--port", "0", "--tls-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert f"there is no {tmp_path}/ca.pem; `partita certs make {tmp_path}` makes one" in result.output
    both = CliRunner().invoke(cli, ["broker", "--port", "0", "--tls", "--tls-dir", str(tmp_path)])
    assert "give one or the other" in both.output


def options(broker: BrokerProcess, folder: Path, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_ca_location": str(folder / "ca.pem"),
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": user,
        "sasl_password": password,
    }


def logs_in(given: dict[str, Any]) -> bool:
    try:
        with Admin(**given) as admin:
            return admin.list_topics() == []
    except AuthenticationError:
        return False


@pytest.mark.case("SE-A15", "SE-E12")
def test_new_certificates_and_users_are_read_at_sighup(tmp_path: Path) -> None:
    folder, users = tmp_path / "tls", tmp_path / "users"
    made(folder)
    users.write_text("alice=old\nbob=bob\n")
    with BrokerProcess("--tls-dir", str(folder), "--users", str(users)) as broker:
        old = options(broker, folder, "alice", "old") | {"ssl_ca_pem": (folder / "ca.pem").read_text()}
        del old["ssl_ca_location"]
        with Admin(**old) as stays:
            assert stays.list_topics() == []
            users.write_text("alice=new\ncarol=carol\n")
            made(folder, "--replace")
            broker.reload()
            _wait_for_certificate(broker, folder)
            with pytest.raises(TlsError, match="none of the trusted authorities"), Admin(**old) as refused:
                refused.list_topics()
            assert logs_in(options(broker, folder, "alice", "new"))
            assert logs_in(options(broker, folder, "carol", "carol"))
            assert not logs_in(options(broker, folder, "alice", "old"))
            assert not logs_in(options(broker, folder, "bob", "bob"))
            assert stays.list_topics() == [], "an open connection stays"
            users.write_text("")
            broker.reload()
            assert logs_in(options(broker, folder, "alice", "new")), "a file that names nobody changes nothing"


def _wait_for_certificate(broker: BrokerProcess, folder: Path) -> None:
    """Until the broker has read the new files; the users are read behind them, in the same turn."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            context = ssl.create_default_context(cafile=folder / "ca.pem")
            SecuredRaw(broker.port, tls=context).socket.close()
            return
        except ssl.SSLCertVerificationError:
            pass
    raise AssertionError("the broker has not read the new certificate")
