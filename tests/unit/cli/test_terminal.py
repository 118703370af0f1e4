"""What came over the wire cannot control a terminal."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

import partita.cli
from partita.cli.terminal import PrintableFormatter, complain, print_table, redraw, say
from partita.wording import printable

EVIL = "g\x1b]0;owned\x07\x9b31m\u202e\r\n"
SAFE = r"g\x1b]0;owned\x07\x9b31m\u202e\r\n"


def test_control_characters_become_escapes() -> None:
    assert printable(EVIL) == SAFE
    assert printable("é 日本 👩\u200d🚀 \xa0") == "é 日本 👩\u200d🚀 \xa0"
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


def test_every_way_to_print_is_safe(capsys: pytest.CaptureFixture[str]) -> None:
    """broker.md section D: group ids with OSC and CSI sequences."""
    print_table(["group"], [(EVIL,)])
    say("\x1b[2J")
    complain(EVIL)
    written = capsys.readouterr()
    assert "\x1b" not in written.out + written.err
    assert written.out.splitlines() == ["GROUP", SAFE, r"\x1b[2J"]
    assert len(written.err.splitlines()) == 1


def test_log_lines_are_safe() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "client %s", (EVIL,), None)
    assert "\x1b" not in PrintableFormatter("%(message)s").format(record)


@pytest.mark.parametrize("text", ["ends\n2026-11-23 ERROR forged", "a\rb", "a\x85b", "a\u2028b", "a\tb\x1b[2J"])
def test_no_text_of_a_client_begins_a_line_of_the_log(text: str) -> None:
    """Neither as an argument, nor in an exception that is one, nor in a traceback. (An audit)"""
    formatter = PrintableFormatter("%(message)s")
    for given in (text, ValueError(text), [text]):
        record = logging.LogRecord("x", logging.WARNING, "", 0, "%d of %s: %.1f s", (7, given, 1.25), None)
        line = formatter.format(record)
        assert line.isprintable(), line
        assert line.startswith("7 of ")
        assert line.endswith(": 1.2 s")
    try:
        raise ValueError(text)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "it failed", (), sys.exc_info())
    first, *following = formatter.format(record).splitlines()
    assert first == "it failed"
    assert following[0] == "Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in following[1:])


def test_no_command_prints_by_itself() -> None:
    """Only `partita.cli.terminal` prints; elsewhere the escaping could be forgotten."""
    folder = Path(partita.cli.__file__).parent
    found = [
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if path.name != "terminal.py" and any(call in path.read_text() for call in ("click.echo(", " print("))
    ]
    assert found == []


def test_a_live_view_replaces_itself_and_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    redraw(["one", EVIL])
    assert capsys.readouterr().out == "one\ng\\x1b]0;owned\\x07\\x9b31m\\u202e\r\n\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((6, 3)))
    redraw(["one", EVIL, "cut away"])
    assert capsys.readouterr().out == "\x1b[Hone\x1b[K\ng\\x1b]\x1b[K\n\x1b[J"
