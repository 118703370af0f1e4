"""Follows the notes of a Partita broker over its control endpoint, and keeps them as facts about groups."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Mapping
from typing import Any

from partita.observe.kept import Kept
from partita.observe.note_facts import NoteReader

EVERY_S = 1.0
TIMEOUT_S = 5.0
BYTES_MAX = 64 * 1024 * 1024


class BrokerNotes:
    """The notes behind an address such as http://127.0.0.1:9644. `problem` says why the last look failed."""

    def __init__(self, address: str, kept: Kept, *, token: str = "") -> None:
        self._address = address.rstrip("/")
        self._token = token
        self._kept = kept
        self._reader = NoteReader()
        self._next_seq = 0
        self.problem = ""

    def read(self) -> None:
        """Take the notes that came since the last call; at first, all that the broker has. Raises OSError."""
        request = urllib.request.Request(
            f"{self._address}/notes?since={self._next_seq}", headers={"Authorization": f"Bearer {self._token}"}
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            lines = answer.read(BYTES_MAX).splitlines()
        for line in lines:
            if line.strip():
                self.take(json.loads(line))

    def take(self, note: Mapping[str, Any]) -> None:
        """Take one note."""
        self._next_seq = max(self._next_seq, note.get("seq", -1) + 1)
        for fact in self._reader.read(note):
            self._kept.add(fact)

    async def follow(self) -> None:
        """Look once a second until the task is cancelled; a broker that does not answer is asked again."""
        while True:
            try:
                await asyncio.to_thread(self.read)
                self.problem = ""
            except (OSError, ValueError) as error:
                self.problem = f"no notes from {self._address}: {error}"
            await asyncio.sleep(EVERY_S)
