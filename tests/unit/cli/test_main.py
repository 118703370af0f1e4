"""The `partita` command itself: what a wrong call is answered."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator

import pytest

from partita.cli.main import main


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
        assert call(monkeypatch, *words) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert f"no broker answers at {nobody}" in said
