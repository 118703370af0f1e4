"""The log of the broker's events: one line per event, at a bounded rate, through `logging`.

It listens to the notes, and to topics, leaders and options directly. Each record carries its kind as `event` and the
values as `fields`, for formatters that write JSON. Nothing here is called per request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from partita.broker.measuring.event_sentences import SENTENCES
from partita.broker.nodes import Cluster
from partita.broker.topics.catalogue import Partition, Topic

log = logging.getLogger("partita.events")

WINDOW_SECONDS = 10.0
LINES_MAX = 50
"""How many lines of one kind are written in a window; the others are counted."""
LINE_CHARACTERS_MAX = 1000


class EventLog:
    """Follows one broker process from when it is made to `close`. `seconds` is a clock that never goes back."""

    def __init__(self, cluster: Cluster, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._window_ends = seconds() + WINDOW_SECONDS
        self._written: dict[str, int] = {}
        self._partitions: dict[bytes, int] = {topic.topic_id: len(topic.partitions) for topic in cluster.catalogue}
        self._stop_listening = cluster.notes.listen(self._hear)
        for note in cluster.notes.since(0):
            self._hear(note)
        cluster.catalogue.on_created(self._created)
        cluster.catalogue.on_deleted(self._deleted)
        cluster.on_leadership(self._elected)
        cluster.config.on_change(lambda name: self.write("OptionChanged", name=name))

    def write(self, kind: str, /, **fields: object) -> None:
        """Write the line of this kind, if its level is logged and there is room."""
        self._hear({"note": kind, **fields})

    def close(self) -> None:
        """Write the remaining lines; stop listening to notes."""
        self._stop_listening()
        self._tell_left_out()

    def _hear(self, note: Mapping[str, Any]) -> None:
        kind = note["note"]
        level, sentence = SENTENCES.get(kind, (logging.NOTSET, None))
        if sentence is None or not log.isEnabledFor(level):
            return
        if self._seconds() >= self._window_ends:
            self._tell_left_out()
        written = self._written[kind] = self._written.get(kind, 0) + 1
        if written <= LINES_MAX:
            fields = {name: value for name, value in note.items() if name not in ("note", "wall_ms", "seq")}
            line = _escaped(sentence(note)[:LINE_CHARACTERS_MAX])
            log.log(level, "%s", line, extra={"event": kind, "fields": fields})

    def _tell_left_out(self) -> None:
        for kind, written in self._written.items():
            if written > LINES_MAX:
                fields = {"kind": kind, "count": written - LINES_MAX}
                what = (
                    f"{fields['count']} more lines of {kind} were not written: {LINES_MAX} are in {WINDOW_SECONDS:g} s"
                )
                log.log(SENTENCES[kind][0], "%s", what, extra={"event": "LeftOut", "fields": fields})
        self._written.clear()
        self._window_ends = self._seconds() + WINDOW_SECONDS

    def _created(self, topic: Topic) -> None:
        """Called for a new topic, and for one with more partitions."""
        count = len(topic.partitions)
        kind = "TopicGrown" if topic.topic_id in self._partitions else "TopicCreated"
        self._partitions[topic.topic_id] = count
        self.write(kind, topic=topic.name, partitions=count)

    def _deleted(self, topics: list[Topic]) -> None:
        for topic in topics:
            self._partitions.pop(topic.topic_id, None)
            self.write("TopicDeleted", topic=topic.name)

    def _elected(self, partition: Partition) -> None:
        self.write(
            "LeaderElected", topic=partition.topic.name, partition=partition.index, leader=partition.leader,
            leader_epoch=partition.leader_epoch,
        )  # fmt: skip


def _escaped(text: str) -> str:
    """The text on one line: what clients and assignors have written into it may hold any character."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
