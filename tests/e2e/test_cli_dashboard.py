"""`partita dashboard` as a command: TLS and SASL, a report, a missing library, wrong options."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita import Admin, Broker
from partita.cli.commands import cli
from support.clients.broker import until


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["dashboard", *words])
    return result.exit_code, result.output


@pytest.mark.partita(topics={"orders": 2})
def test_a_report_over_tls_and_sasl(partita_secure_broker: Broker, tmp_path: Path) -> None:
    """Issue 17 item 3: works over TLS and SASL."""
    options = partita_secure_broker.client_options("alice")
    with Admin(options) as admin:
        admin.alter_group_offsets("billing", {("orders", 0): 0})
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in options.items()))
    file.chmod(0o600)
    code, output = run("--command-config", str(file), "--once", str(tmp_path / "report.html"))
    assert (code, output) == (0, f"wrote {tmp_path / 'report.html'}\n")
    assert "billing" in (tmp_path / "report.html").read_text()
    (tmp_path / "plain.properties").write_text(f"bootstrap.servers={partita_secure_broker.bootstrap}\n")
    code, output = run("--command-config", str(tmp_path / "plain.properties"), "--once", "-")
    assert code == 1


def test_a_dashboard_that_is_stopped_ends_well_as_a_service_does(partita_broker: Broker) -> None:
    """It ended with status 130 at SIGTERM, which a service manager takes for a failure."""
    words = [sys.executable, "-m", "partita.cli.main", "dashboard", "-b", partita_broker.bootstrap, "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert "dashboard at http://127.0.0.1:" in process.stdout.readline()
        process.terminate()
        assert process.wait(60) == 0
        assert process.stdout.read() == ""


def test_a_missing_library_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "uvicorn" else find(name, package)

    monkeypatch.setattr("partita.cli.dashboard.find_spec", without)
    code, output = run("--once", "-")
    assert code == 1
    assert "the dashboard needs uvicorn; install it with: pip install 'partita[dashboard]'" in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "give a token as well (--token)"),
        (["--notes-from", "file:///etc/passwd"], "notes come from an address such as"),
        (["-X", "security.protocol=PLAINTXT"], "PLAINTXT"),
    ],
)
def test_wrong_options_are_one_line(words: list[str], said: str) -> None:
    code, output = run(*words)
    assert code == 2
    assert said in output


def test_a_cluster_that_is_not_there_is_one_line() -> None:
    code, output = run("-b", "127.0.0.1:1", "-X", "socket.connection.setup.timeout.ms=300", "--once", "-")
    assert code == 1
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--profile", "a", "--profile", "b", "--once", "-"], "--once and --notes-from are about one cluster"),
        (["--profile", "a", "--profile", "b", "-b", "h:1"], "--bootstrap names one cluster"),
        (["--profile", "a", "--profile", "c"], "there is no profile 'c'"),
        (["--webhook", "chat.example"], "a webhook is an address such as"),
    ],
)
def test_options_that_exclude_each_other_are_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles(tmp_path, monkeypatch, "127.0.0.1:1", "127.0.0.1:2")
    code, output = run(*words)
    assert (code, "Traceback" in output) == (2, False)
    assert said in output


def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """A file of profiles a, b and so on."""
    file = tmp_path / "partita.toml"
    named = zip("abc", addresses, strict=False)
    file.write_text("".join(f'[profiles.{name}]\nbootstrap = "{address}"\n' for name, address in named))
    monkeypatch.setenv("PARTITA_CONFIG", str(file))


@pytest.mark.partita(topics={"orders": 2})
def test_two_profiles_are_two_clusters(partita_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 28 item 5: --profile twice; one cluster that is not reached does not hide the other."""
    profiles(tmp_path, monkeypatch, partita_broker.bootstrap, "127.0.0.1:1")
    words = ["dashboard", "--profile", "a", "--profile", "b", "--port", "0", "--history", str(tmp_path / "seen.db")]
    command = [sys.executable, "-m", "partita.cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        url = re.findall(r"http://\S+/", process.stdout.readline())[0]

        def ready() -> dict[str, str | None]:
            try:
                with urllib.request.urlopen(f"{url}readyz", timeout=60) as answer:
                    return dict(json.load(answer)["trouble"])
            except urllib.error.HTTPError as error:
                return dict(json.load(error)["trouble"])

        until(lambda: ready()["b"] is not None, "the second is not reached")
        until(lambda: b"orders" in urllib.request.urlopen(f"{url}clusters/a/topics").read(), "a is seen")
        assert ready()["a"] is None
        records = urllib.request.urlopen(f"{url}clusters/a/topics/orders/0").read()
        assert b"There is no record here" in records
        process.terminate()
        assert process.wait(60) == 0
    assert sorted(path.name for path in tmp_path.glob("seen*.db")) == ["seen-a.db", "seen-b.db"]
