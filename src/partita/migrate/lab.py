"""Runs a program as the members of a group on a broker of its own, does things to it, and measures what comes of it.

Each protocol has a new broker. A thread writes records to every partition all the time; `Reading` sees the requests.
A killed member's session is ended at once by the broker, and what was left of it is added to the pauses.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from partita import Broker, Producer
from partita.admin import Admin
from partita.admin.results import GroupDescription
from partita.admin.topics import id_text
from partita.broker.control.fault import Asked
from partita.errors import KafkaError
from partita.migrate.reading import Measured, Reading
from partita.offsets.topic_partition import TopicPartition
from partita.producer.shell.outcomes import DeliveryFuture
from partita.wording import count

LOOK_EVERY_S, QUIET_S, STEADY_S, END_WITHIN_S = 0.05, 1.0, 2.0, 30.0
PLACES = ("bootstrap", "protocol", "config", "n")
"""The words in braces of a command, also given as variables MIGRATE_BOOTSTRAP and so on."""
TAIL_LINES = 5
NOT_DONE = frozenset({2, 4})
"""Acknowledgements that give a record back, or hold it longer."""


class LabError(Exception):
    """A program did not do as it must; the message has the end of its output."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A program and its world: topics with numbers of partitions, members, records a second and partition."""

    command: tuple[str, ...]
    topics: Mapping[str, int]
    members: int = 2
    rate: int = 20
    values: tuple[bytes, ...] = (b"{}",)
    within_s: float = 60.0
    broker: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> list[TopicPartition]:
        """All partitions of the topics."""
        return [TopicPartition(topic, index) for topic, total in self.topics.items() for index in range(total)]


class Program:
    """One process of the program, and the ids of its members once they are known."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self.ids: set[str] = set()
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment},
                start_new_session=True,
            )  # fmt: skip

    def end(self, number: signal.Signals) -> None:
        """Send the signal to the process and its children, and wait until it has ended; then kill what is left."""
        for each in (number, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, each)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(END_WITHIN_S)

    def check(self) -> None:
        """Raise LabError if it has ended by itself."""
        if (status := self._popen.poll()) is not None:
            raise LabError(f"the program ended with status {status}: {self.tail()}")

    def tail(self) -> str:
        """The last lines of its output."""
        lines = self.log.read_text(errors="replace").split("\n")
        return " | ".join([line.strip() for line in lines if line.strip()][-TAIL_LINES:]) or "no output"


class Lab:
    """A group of the program on a broker of its own. `with Lab(...) as lab:` starts broker and records."""

    def __init__(self, plan: Plan, settings: Mapping[str, Mapping[str, str]], groups: Mapping[str, str]) -> None:
        """`settings`: those of {config}, by protocol; `groups`: settings of the group `group.id`."""
        self._plan, self._settings, self._of_group = plan, settings, groups
        self._broker = Broker(dict(plan.broker))
        self._programs: list[Program] = []
        self._group_id = ""
        self._unwritten: Exception | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="partita-migrate-")))
        self._stack.enter_context(self._broker)
        self._broker.create_topics(self._plan.topics)
        self._admin = self._stack.enter_context(Admin(bootstrap_servers=self._broker.bootstrap))
        group_id = self._settings["classic"].get("group.id")
        if group_id and self._of_group:
            with contextlib.suppress(KafkaError):  # the report says that the broker refuses it
                self._admin.alter_configs("group", group_id, self._of_group)
        self._names = {topic.topic_id: topic.name for topic in self._admin.describe_topics(*self._plan.topics)}
        self._reading = Reading(self._plan.partitions, _now_ms())
        for api in ("Fetch", "ShareFetch", "ShareAcknowledge"):
            self._broker.control.intercept(api, self._see)
        self._stack.callback(self._end_programs)
        self._stack.enter_context(self._records())

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # what is done

    def run(self, protocol: str) -> Iterator[Measured]:
        """A group of one protocol: it reads, a member joins, that one crashes, another leaves. Raises LabError."""
        self._form(protocol)
        yield self._measured(protocol, "nothing happens", self._rest)
        yield self._measured(protocol, "a member joins", lambda: self._start(protocol))
        yield self._measured(protocol, "a member crashes", lambda: self._end(self._programs[-1], signal.SIGKILL))
        yield self._measured(protocol, "a member leaves", lambda: self._end(self._programs[0], signal.SIGTERM))

    def upgrade(self) -> Measured:
        """Classic members, replaced one by one by members of the consumer protocol. Raises LabError if that fails."""
        self._form("classic")

        def replace() -> None:
            for number in range(self._plan.members):
                self._programs[0].end(signal.SIGTERM)
                del self._programs[0]  # not before: what is not in the list is not ended when the lab is
                self._start("consumer", number)
                self._settle()

        measured = self._measured("classic, then consumer", "members are replaced one by one", replace)
        left = [member.client_id for member in self._described().members if member.type != "consumer"]
        if left:
            raise LabError(f"after the restart of all these still speak the classic protocol: {', '.join(left)}")
        return measured

    def _form(self, protocol: str) -> None:
        for _ in range(self._plan.members):
            self._start(protocol)
            self._settle()
        spoken = next(each.type for each in self._admin.list_groups() if each.group_id == self._group_id)
        if spoken != protocol:
            raise LabError(f"the program formed a {spoken} group; it has to take {{protocol}} or MIGRATE_PROTOCOL")

    def _measured(self, protocol: str, deed: str, act: Callable[[], object]) -> Measured:
        self._broker.run(lambda: self._reading.begin(_now_ms()))
        act()
        self._settle()
        return self._broker.run(lambda: self._reading.measured(protocol, deed))

    def _rest(self) -> None:
        time.sleep(STEADY_S)

    def _start(self, protocol: str, number: int | None = None) -> None:
        """Start a process of the program; return when its members are in the group."""
        number = len(self._programs) if number is None else number
        config = self._folder / f"{protocol}-{number}.properties"
        config.write_text(_properties(self._settings[protocol], self._broker.bootstrap, number))
        values = dict(zip(PLACES, (self._broker.bootstrap, protocol, str(config), str(number)), strict=True))
        command = [_filled(word, values) for word in self._plan.command]
        environment = {f"MIGRATE_{name.upper()}": value for name, value in values.items()}
        before = self._ids()
        try:
            program = Program(command, environment, self._folder / f"{protocol}-{number}.log")
        except OSError as error:
            raise LabError(f"cannot start {command[0]!r}: {error.strerror or error}") from error
        self._programs.append(program)
        self._until(lambda: self._ids() - before, "no new member joined a group")
        program.ids = self._ids() - before

    def _end(self, program: Program, number: signal.Signals) -> None:
        """End a process. What it leaves behind in its group goes as at the end of its session, now."""
        owners: dict[TopicPartition, set[str]] = {}
        for member in self._described().members:
            for topic, indexes in member.assignment.items():
                for index in indexes:
                    owners.setdefault(TopicPartition(topic, index), set()).add(member.member_id)
        program.end(number)
        self._programs.remove(program)
        timers = self._broker.control.timers(self._group_id)
        left_ms = {timer["member_id"]: timer["left_ms"] or 0 for timer in timers}
        dead = program.ids & self._ids()
        for member_id in sorted(dead):
            self._broker.control.expire_session(self._group_id, member_id)
        waiting = {place: max(left_ms.get(each, 0) for each in ids) for place, ids in owners.items() if ids <= dead}
        self._broker.run(partial(self._reading.skip, waiting))

    def _settle(self) -> None:
        """Wait until the group is stable and every partition is read, for a while."""
        quiet_since: list[float] = []

        def is_quiet() -> bool:
            now_s = time.monotonic()
            steady = self._described().state == "Stable" and self._ids() >= set().union(
                *(program.ids for program in self._programs)
            )
            if not steady or not quiet_since:
                quiet_since[:] = [now_s] if steady else []
                return False
            since_ms = round(quiet_since[0] * 1000)
            return now_s - quiet_since[0] >= QUIET_S and self._broker.run(lambda: self._reading.is_read_since(since_ms))

        self._until(is_quiet, "the group did not come to rest with every partition being read")
        self._programs[-1].ids |= self._ids().difference(*(program.ids for program in self._programs))

    def _until(self, holds: Callable[[], object], otherwise: str) -> None:
        end_s = time.monotonic() + self._plan.within_s
        while not holds():
            for program in self._programs:
                program.check()
            if self._unwritten is not None:
                raise LabError(f"records cannot be written: {self._unwritten}")
            if time.monotonic() > end_s:
                tail = self._programs[-1].tail()
                raise LabError(f"{otherwise} within {self._plan.within_s:g} s; the program's output: {tail}")
            time.sleep(LOOK_EVERY_S)

    # what is seen

    def _described(self) -> GroupDescription:
        return self._admin.describe_group(self._group_id)

    def _ids(self) -> set[str]:
        """The members of the program's group; empty as long as there is none."""
        if not self._group_id:
            groups = [each.group_id for each in self._admin.list_groups() if each.state != "Empty"]
            if len(groups) > 1:
                raise LabError(f"the program has {count(len(groups), 'group')}, and the lab watches one: {groups}")
            self._group_id = groups[0] if groups else ""
        return set(self._broker.control.members(self._group_id)) if self._group_id else set()

    def _see(self, asked: Asked) -> None:
        """Take in a request, on the broker's loop."""
        now_ms = _now_ms()
        request: Any = asked.request
        for topic in request.topics:
            name = getattr(topic, "topic", "") or self._names.get(id_text(topic.topic_id), "")
            for partition in topic.partitions:
                if asked.api == "Fetch":
                    self._reading.fetched(TopicPartition(name, partition.partition), partition.fetch_offset, now_ms)
                    continue
                for batch in partition.acknowledgement_batches:
                    if NOT_DONE.issuperset(batch.acknowledge_types):
                        continue
                    place = TopicPartition(name, partition.partition_index)
                    self._reading.acknowledged(place, batch.first_offset, batch.last_offset, now_ms)

    @contextlib.contextmanager
    def _records(self) -> Iterator[None]:
        over = threading.Event()

        def write() -> None:
            with Producer(bootstrap_servers=self._broker.bootstrap, linger_ms=0) as producer:
                number = 0
                while not over.wait(1 / self._plan.rate):
                    value = self._plan.values[number % len(self._plan.values)]
                    try:
                        for topic, partition in self._plan.partitions:
                            producer.send(topic, value, partition=partition).add_done_callback(self._written)
                    except KafkaError as error:
                        self._unwritten = error
                        return
                    number += 1

        writer = threading.Thread(target=write, name="partita-migrate-records", daemon=True)
        writer.start()
        try:
            yield
        finally:
            over.set()
            writer.join()

    def _written(self, sent: DeliveryFuture) -> None:
        self._unwritten = sent.exception() or self._unwritten

    def _end_programs(self) -> None:
        for program in self._programs:
            program.end(signal.SIGKILL)


def _now_ms() -> int:
    return round(time.monotonic() * 1000)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _properties(settings: Mapping[str, str], bootstrap: str, number: int) -> str:
    """A properties file for one process, with its own group.instance.id, on a broker without TLS and logins."""
    lines = {name: value for name, value in settings.items() if not name.startswith(("sasl.", "ssl.", "security."))}
    lines["bootstrap.servers"] = bootstrap
    if "group.instance.id" in lines:
        lines["group.instance.id"] += f"-{number}"
    return "".join("{}={}\n".format(name, value.replace("\\", "\\\\")) for name, value in lines.items())
