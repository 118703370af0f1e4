"""Plays deeds on a real broker, ours or Apache Kafka: each member is a process, and time is real time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from partita import Broker, Producer
from partita.admin import Admin
from partita.consumer.config import ConsumerConfig
from partita.designs.journal import Fact
from partita.designs.processes import Process
from partita.errors import GroupIdNotFoundError, KafkaError
from partita.offsets.topic_partition import TopicPartition
from partita.play.player import NEEDS_NOTES
from partita.play.stage import GROUP, Event, Seen, shown
from partita.play.words import StoryError

LOOK_EVERY_S, PATIENCE_S = 0.05, 60.0
_OWN_ID = "partita-play"
_NOT_KAFKA = "no client can ask a broker for that; play it on the simulator, or with --broker own"
_NO_NOTES = "only the notes of a Partita broker know that; play it on the simulator, or with --broker own"


class RealBroker:
    """The stage. Without `options` it is a broker of two nodes of our own, else the one that they lead to."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        """Raises KafkaError if the broker cannot be reached, StoryError if a group of that name is there."""
        self.name = "a broker" if options else "our own broker"
        self.seen = Seen()
        self._own = None if options else Broker(nodes=2)
        if self._own is not None:
            self._own.start()
            self._own.control.trace_group(GROUP)
        self._options = dict(options or {"bootstrap.servers": self._own.bootstrap if self._own else ""})
        self.refuses = {"crash-broker": "a real broker is not killed; play it on the simulator"}
        self.refuses |= dict.fromkeys(("seed", "fault", "heal", "digest"), "seeds belong to the simulator")
        if self._own is None:
            self.refuses |= dict.fromkeys(("move-coordinator", "fail-append"), _NOT_KAFKA)
            self.refuses |= dict.fromkeys(NEEDS_NOTES, _NO_NOTES)
        self._admin = Admin({**self._options, "client.id": _OWN_ID})
        if any(group.group_id == GROUP for group in self._admin.list_groups()):
            self._admin.close()
            raise StoryError(f"expected a broker without a group {GROUP}, came one that has it; delete the group first")
        self._folder = tempfile.TemporaryDirectory(prefix="partita-play-")
        self._processes: dict[str, Process] = {}
        self._topics: list[str] = []
        self._began_s = time.monotonic()
        self.began_wall_ms = time.time_ns() // 1_000_000

    @property
    def now_ms(self) -> int:
        """Milliseconds since the beginning."""
        return round((time.monotonic() - self._began_s) * 1000)

    def notes(self) -> Sequence[Mapping[str, Any]]:
        """The notes of our own broker."""
        notes = [] if self._own is None else self._own.notes()
        return [note for note in notes if note.get("client_id") != _OWN_ID]

    def advance(self, ms: int) -> None:
        """Wait."""
        time.sleep(ms / 1000)

    def until(self, holds: Callable[[], bool]) -> bool:
        """Whether it holds within a minute."""
        end_s = time.monotonic() + PATIENCE_S
        while not (is_so := holds()) and time.monotonic() < end_s:
            time.sleep(LOOK_EVERY_S)
        return is_so

    def members(self) -> list[str]:
        """The members of the group by their client ids."""
        try:
            return [member.client_id for member in self._admin.describe_group(GROUP).members]
        except GroupIdNotFoundError:
            return []

    def committed(self, place: TopicPartition) -> int | None:
        """The committed offset of a partition."""
        found = self._admin.group_offsets(GROUP)
        return next((one.offset for one in found if (one.topic, one.partition) == place), None)

    def digest(self) -> str:
        """There is none: no two histories of a real broker are alike."""
        return ""

    def deed(self, verb: str, name: str, number: int) -> None:
        """Do something to the broker."""
        match verb:
            case "topic":
                self._admin.create_topic(name, partitions=number)
                self._topics.append(name)
            case "records":
                topic, _, partition = name.rpartition("-")
                with Producer(self._options) as producer:
                    for value in range(number):
                        producer.send(topic, value=b"%d" % value, partition=int(partition))
            case "add-partitions":
                self._admin.create_partitions(name, number)
            case "delete-topic":
                self._admin.delete_topics(name)
                self._topics.remove(name)
            case "move-coordinator":
                assert self._own is not None, "refused elsewhere"
                control = self._own.control
                control.move_coordinator(GROUP, 3 - control.coordinator(GROUP))
            case "fail-append":
                assert self._own is not None, "refused elsewhere"
                self._own.control.fail_next_append(GROUP)

    def join(self, who: str, topics: Sequence[str], settings: Mapping[str, str]) -> None:
        """Start a process with a member."""
        options = {"auto.offset.reset": "earliest", **self._options, **settings}
        options |= {"group.id": GROUP, "client.id": who}
        ConsumerConfig.of({name: value for name, value in options.items() if name != "polls"})
        process = Process("partita.play.member", [who], self._heard, Path(self._folder.name) / f"{who}.log")
        process.order(options=options, topics=list(topics))
        self._processes[who] = process
        self._happens(who, "starts")

    def act(self, who: str, verb: str, words: Sequence[str], number: int) -> None:
        """Let a member do something. One that has ended does nothing."""
        process = self._processes[who]
        if not process.is_running:
            return
        match verb:
            case "crash":
                process.kill()
                self._happens(who, "crashes")
            case "stop":
                process.pause()
                self._happens(who, "stands still")
            case "continue":
                process.resume()
                self._happens(who, "goes on")
            case _:
                process.order(do=verb, words=list(words), number=number)

    def close(self) -> None:
        """Kill the members; delete what the story made."""
        for process in self._processes.values():
            process.kill()
        if self._own is not None:
            self._admin.close()
            self._own.stop()
        else:
            self._clean()
            self._admin.close()
        self._folder.cleanup()

    def _clean(self) -> None:
        for delete, names in ((self._admin.delete_groups, [GROUP]), (self._admin.delete_topics, self._topics)):
            try:
                delete(names)
            except KafkaError:
                continue  # the members' sessions have not ended, or nothing was made

    def _heard(self, fact: Fact) -> None:
        """Take a fact of a member's process, in the thread that reads them."""
        facts = fact.facts
        owned = tuple(TopicPartition(*place) for place in facts.get("owned", ()))
        text = facts.get("text", "")
        if "partitions" in facts:
            text = shown([TopicPartition(*place) for place in facts["partitions"]])
        at_ms = round((fact.at_s - self._began_s) * 1000)
        generation, count = facts.get("generation", -1), facts.get("count", 0)
        self.seen.add(Event(at_ms, fact.member, fact.event, text, owned, generation, count))

    def _happens(self, who: str, what: str) -> None:
        self.seen.add(Event(self.now_ms, who, what))
