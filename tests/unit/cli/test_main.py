"""The `partita` command itself: what a wrong call is answered."""

from __future__ import annotations

import importlib
import io
import os
import signal
import socket
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from partita import Broker
from partita.cli.commands import cli
from partita.cli.connecting import patient_for
from partita.cli.main import main

produce = importlib.import_module("partita.cli.records.produce")


@pytest.fixture(autouse=True)
def _keep_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    """Run the installed command; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["partita", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("broker", "--bogus"), "partita broker: No such option '--bogus'"),
        (("broker", "--port", "70000"), "partita broker: Invalid value for '--port': 70000 is not in the range"),
        (("topics", "create"), "partita topics create: Missing argument 'NAME...'"),
        (("brokr",), "partita: No such command 'brokr'"),
        (("topic", "list"), "partita: No such command 'topic'. Did you mean 'topics'?"),
        (("consume", "t", "--set", "fetch"), "partita consume: --set expects NAME=VALUE, not 'fetch'"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    assert call(monkeypatch, *words) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(line)


def test_no_command_is_answered_with_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch) == 2
    assert "Commands:\n  broker" in capsys.readouterr().err


def test_help_ends_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "broker", "--help") == 0
    assert "--data-dir" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [("consume", "t"), ("consume", "t", "--group", "g"), ("produce", "t"), ("topics", "list")]
)
def test_no_broker_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("PARTITA_BOOTSTRAP", nobody)
        assert call(monkeypatch, *words, "-X", "socket.connection.setup.timeout.ms=300") == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"no broker answers at {nobody} (cannot connect to {nobody}: Connection refused)" in said


@pytest.mark.parametrize("words", [("cluster",), ("consume", "t"), ("top", "--looks", "1"), ("dashboard", "--once=-")])
def test_a_port_where_nobody_answers_is_told_as_such(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        somebody = f"127.0.0.1:{silent.getsockname()[1]}"
        options = ("-b", somebody, "-X", "socket.connection.setup.timeout.ms=150", "-X", "default.api.timeout.ms=200")
        assert call(monkeypatch, *words, *options) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{somebody} takes connections, and no Kafka broker answers there" in said
    assert f"partita doctor -b {somebody}" in said


def test_produce_gives_up_soon_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that falls silent while records are written: the producer's own patience is two minutes."""
    monkeypatch.setattr(produce, "GIVE_UP_AFTER_S", 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    with Broker(auto_create_topics_enable=True) as broker:
        broker.create_topics({"t": 1})
        broker.control.hold("Produce")
        assert call(monkeypatch, "produce", "t", "-b", broker.bootstrap) == 1
        broker.control.clear_faults()
    (said,) = capsys.readouterr().err.splitlines()
    assert "2 records for t-0 were not delivered within 1000 ms" in said
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_who_says_how_long_delivery_may_take_is_obeyed() -> None:
    assert patient_for({}, {}, 15)["delivery.timeout.ms"] == 15_000
    assert patient_for({"delivery_timeout_ms": "90000"}, {}, 15) == {}
    assert patient_for({}, {"request.timeout.ms": "40000"}, 15) == {}


def test_doctor_asks_for_no_cluster_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITA_CONFIG", os.devnull)
    monkeypatch.delenv("PARTITA_BOOTSTRAP", raising=False)
    done = CliRunner().invoke(cli, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "bootstrap" not in done.output


@pytest.mark.parametrize(
    "words",
    [
        *(["migrate", "--within"], ["exporter", "--every"], ["top", "--every"], ["groups", "watch", "--every"]),
        *(["groups", "trace", "g", "--seconds"], ["perf", "produce", "t", "--rate"], ["demo", "--rate"]),
    ],
    ids=" ".join,
)
def test_nan_is_no_number_of_seconds_or_records(words: list[str]) -> None:
    """It is neither below nor above a bound, so what waits for its end would wait for ever."""
    done = CliRunner().invoke(cli, [*words, "nan"])
    assert done.exit_code == 2
    assert "'nan' is not a number" in done.output
