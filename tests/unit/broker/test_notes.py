"""The file of notes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from partita.broker.notes import Notes
from support.clock import ManualClock


def test_every_note_is_a_line_of_the_file(tmp_path: Path) -> None:
    notes = Notes(ManualClock())
    notes.write_to(str(tmp_path / "n"))
    notes.control("move_leader", topic="t")
    notes.control("restart_node", node=1)
    lines = [json.loads(line) for line in (tmp_path / "n").read_text().splitlines()]
    assert lines == notes.since()
    assert [(line["seq"], line["what"]) for line in lines] == [(0, "move_leader"), (1, "restart_node")]
    notes.close()


def test_a_full_disk_ends_the_file_but_not_the_notes(caplog: pytest.LogCaptureFixture) -> None:
    notes = Notes(ManualClock())
    notes.write_to("/dev/full")
    heard: list[object] = []
    notes.listen(heard.append)
    notes.control("first")
    notes.control("second")
    assert len(heard) == len(notes.since()) == 2
    assert caplog.messages == ["notes are no longer written to /dev/full: [Errno 28] No space left on device"]
