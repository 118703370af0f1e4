"""The log of the broker's events: one line per event, at a bounded rate, through `logging`.

It listens to the notes, and to topics, leaders and options directly. Each record carries its kind as `event` and the
values as `fields`, for formatters that write JSON. Nothing here is called per request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from partita.broker.nodes import Cluster
from partita.broker.topics.catalogue import Partition, Topic

log = logging.getLogger("partita.events")

WINDOW_SECONDS = 10.0
LINES_MAX = 50
"""Number of lines of one kind in a window; the others are counted."""
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


Note: TypeAlias = Mapping[str, Any]
Sentence: TypeAlias = Callable[[Note], str]

CAUSES_MAX = 5
"""Number of causes that a line names."""


def _cause(cause: Note) -> str:
    who = cause.get("group_instance_id") or cause.get("client_id") or ""
    member = cause.get("member_id") or ""
    named = f" ({who}, {member})" if who and member else f" ({who or member})" if who or member else ""
    detail = f": {cause['detail']}" if cause.get("detail") else ""
    return f"{cause['what']}{named}{detail}"


def _causes(note: Note) -> str:
    causes = note["causes"]
    more = f", and {len(causes) - CAUSES_MAX} more" if len(causes) > CAUSES_MAX else ""
    return "; ".join(map(_cause, causes[:CAUSES_MAX])) + more


def _rebalanced(note: Note) -> str:
    waited = note["join_phase_ms"] + note["sync_phase_ms"]
    return (
        f"group {note['group_id']} is at generation {note['generation']} with {note['members']} members "
        f"({note['protocol_name']}) after {waited} ms: {_causes(note)}"
    )


def _details(note: Note) -> str:
    left_out = ("note", "what", "wall_ms", "seq")
    return ", ".join(f"{name}={value}" for name, value in note.items() if name not in left_out)


INFO, WARNING = logging.INFO, logging.WARNING
SENTENCES: Mapping[str, tuple[int, Sentence]] = {
    "RebalanceStarted": (
        INFO, lambda n: f"group {n['group_id']} rebalances after generation {n['generation']}: {_cause(n['cause'])}"),
    "Rebalanced": (INFO, _rebalanced),
    "MemberGone": (INFO, lambda n: f"group {n['group_id']} has lost a member: {_cause(n['cause'])}"),
    "MemberFenced": (
        INFO,
        lambda n: f"group {n['group_id']}: instance {n['group_instance_id']} is now {n['new_member_id']}, "
        f"{n['old_member_id']} is fenced"),
    "MemberRefused": (
        WARNING,
        lambda n: f"group {n['group_id']} refuses {n['group_instance_id'] or n['client_id']}: {n['error']}"
        f"{': ' if n['detail'] else ''}{n['detail']}"),
    "GroupEpochBumped": (INFO, lambda n: f"group {n['group_id']} is at epoch {n['epoch']}: {_cause(n['cause'])}"),
    "TargetComputed": (
        INFO,
        lambda n: f"group {n['group_id']} has a target for epoch {n['epoch']} by {n['assignor']}: "
        f"{n['members']} members, {n['moved']} partitions move"),
    "AssignorRaised": (
        WARNING, lambda n: f"group {n['group_id']} keeps its target, as assignor {n['assignor']} failed: {n['error']}"),
    "GroupConverted": (
        INFO, lambda n: f"group {n['group_id']} speaks the {n['protocol']} protocol now, with {n['members']} members"),
    "OffsetsExpired": (
        INFO, lambda n: f"group {n['group_id']}: committed offsets of {n['partitions']} partitions have expired"),
    "OffsetClamped": (
        WARNING,
        lambda n: f"group {n['group_id']}: {n['topic']}-{n['partition']} had lost records below the committed offset "
        f"{n['committed_offset']}; {n['log_end_offset']} is committed now"),
    "GroupDeleted": (INFO, lambda n: f"group {n['group_id']} is gone: {n['why']}"),
    "GroupRefused": (
        WARNING, lambda n: f"group {n['group_id']} found no room: there are {n['groups_max']} (partita.groups.max)"),
    "TransactionalIdsExpired": (INFO, lambda n: f"{n['ids']} transactional ids have expired"),
    "TransactionRefused": (
        WARNING, lambda n: f"transactional id {n['transactional_id']} found no room: there are {n['ids_max']}"),
    "Disk": (WARNING, lambda n: f"disk: {n['what']}; {_details(n)}"),
    "Control": (INFO, lambda n: f"control: {n['what']}; {_details(n)}"),
    "TopicCreated": (INFO, lambda n: f"topic {n['topic']} is created with {n['partitions']} partitions"),
    "TopicGrown": (INFO, lambda n: f"topic {n['topic']} has {n['partitions']} partitions now"),
    "TopicDeleted": (INFO, lambda n: f"topic {n['topic']} is deleted"),
    "LeaderElected": (
        INFO,
        lambda n: f"{n['topic']}-{n['partition']} is led by "
        f"{'nobody' if n['leader'] < 0 else n['leader']} at leader epoch {n['leader_epoch']}"),
    "OptionChanged": (INFO, lambda n: f"option {n['name']} is changed"),
    "Started": (INFO, lambda n: f"the broker has started; {_details(n)}"),
    "Stopping": (INFO, lambda n: "the broker is stopping"),
    "Stopped": (INFO, lambda n: "the broker has stopped"),
}  # fmt: skip
"""By kind of note: the level and the text of its line."""
