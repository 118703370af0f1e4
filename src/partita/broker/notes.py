"""Facts about events, as they happen: rebalances with their causes, control calls, nodes coming and going.

One place keeps the last ones and passes new ones to listeners: `Broker.notes()`, the JSON-lines file, the admin
endpoint.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from partita.group.notes import Note as GroupNote
    from partita.now import Clock
    from partita.transactions.notes import Note as TransactionNote

KEPT = 10_000
KEPT_WITH_MEMBERS = 500
"""How many notes keep the members of their group; older ones lose these, so that large groups do not fill memory."""

REFUSED_EVERY_S = 10
REFUSALS_MAX = 1_000
"""A refused member is noted every ten seconds; so many are remembered for that."""
TOPICS_PER_SECOND = 20
"""Notes of topics in one second at most: a client that creates thousands does not push out the notes of groups."""


class Notes:
    """The latest facts, oldest first. Every one is a dict of plain values with `note` (its kind), `wall_ms`, `seq`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._with_members: deque[dict[str, Any]] = deque()
        self._listeners: list[Callable[[dict[str, Any]], None]] = []
        self._file: TextIO | None = None
        self._next_seq = 0
        self._topics_second = self._topics_noted = 0
        self._refused: dict[tuple[str, str, str], int] = {}

    def write_to(self, path: str) -> None:
        """Also append every note to this file, one JSON object a line."""
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed in close()

    def publish(self, notes: tuple[GroupNote | TransactionNote, ...]) -> None:
        """Take what a coordinator's step noted."""
        for note in notes:
            plain = as_json(note)
            if plain["note"] != "MemberRefused" or self._is_news(plain):
                self._add(plain)

    def _is_news(self, note: dict[str, Any]) -> bool:
        """Whether this refusal was not noted lately: clients that are refused try again and again."""
        what = (note["group_id"], note["group_instance_id"] or note["client_id"], note["error"])
        second = note["wall_ms"] // 1000
        if second - self._refused.get(what, -REFUSED_EVERY_S) < REFUSED_EVERY_S:
            return False
        if len(self._refused) >= REFUSALS_MAX:
            self._refused.clear()
        self._refused[what] = second
        return True

    def control(self, what: str, **details: Any) -> None:
        """Note something that was caused from outside."""
        self._add({"note": "Control", "what": what, **details})

    def topics_changed(self, changes: Iterable[tuple[str, int]]) -> None:
        """Note topics with their number of partitions, 0 if deleted; of many that change at once, the first ones."""
        second = self._clock.now().wall_ms // 1000
        if second != self._topics_second:
            self._topics_second, self._topics_noted = second, 0
        for topic, partitions in islice(changes, TOPICS_PER_SECOND - self._topics_noted):
            self._topics_noted += 1
            self._add({"note": "TopicChanged", "topic": topic, "partitions": partitions})

    def trace(self, kind: str, group_id: str, **details: Any) -> None:
        """Note a request of a traced group, or its answer."""
        self._add({"note": kind, "group_id": group_id, **details})

    def login(self, what: str, **details: str) -> None:
        """Note a login, or one that failed."""
        self._add({"note": "Login", "what": what, **details})

    def denied(self, **details: str) -> None:
        """Note that a principal was refused a right."""
        self._add({"note": "Denied", **details})

    def disk(self, what: str, **details: object) -> None:
        """Note something about the data directory: an unclean start, a cut log, a damaged batch, a failure."""
        self._add({"note": "Disk", "what": what, **details})

    def since(self, seq: int = 0) -> list[dict[str, Any]]:
        """The kept notes from number `seq` on."""
        first = self._next_seq - len(self._kept)
        return list(islice(self._kept, max(0, seq - first), None))

    @property
    def next_seq(self) -> int:
        """The number that the next note will have."""
        return self._next_seq

    def listen(self, listener: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Call `listener` with each new note; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _add(self, note: dict[str, Any]) -> None:
        if "wall_ms" not in note:
            note["wall_ms"] = self._clock.now().wall_ms
        note["seq"] = self._next_seq
        self._next_seq += 1
        self._kept.append(note)
        if "held" in note:
            self._with_members.append(note)
            if len(self._with_members) > KEPT_WITH_MEMBERS:
                self._with_members.popleft()["held"] = None
        if self._file is not None:
            self._append(self._file, note)
        for listener in self._listeners:
            listener(note)

    def _append(self, file: TextIO, note: dict[str, Any]) -> None:
        """Append a note; a file that cannot be written is given up, so that the notes go on."""
        try:
            file.write(json.dumps(note) + "\n")
            file.flush()
        except OSError as error:
            self._file = None
            logging.getLogger("partita.broker").warning("notes are no longer written to %s: %s", file.name, error)
            with suppress(OSError):
                file.close()


def as_json(note: GroupNote | TransactionNote) -> dict[str, Any]:
    """Return the note as plain values, with its kind under `note`."""
    return {"note": type(note).__name__, **_plain_fields(note._fields, note)}


def _plain(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    names = getattr(value, "_fields", None)
    if names is None:
        return [_plain(item) for item in value]
    return _plain_fields(names, value)


def _plain_fields(names: tuple[str, ...], values: tuple[object, ...]) -> dict[str, Any]:
    # Most values are numbers and texts, and a note comes with each member that joins: they are not looked into.
    return {name: value if type(value) in _PLAIN else _plain(value) for name, value in zip(names, values, strict=True)}


_PLAIN = frozenset({str, int, bool, type(None)})
