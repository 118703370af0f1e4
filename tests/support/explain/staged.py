"""Stages incidents on one coordinator shard with a clock moved by hand; members assign as real ones with `range` do.

Every incident leaves both sources of facts: `notes` as a broker publishes them, and the records of the group's log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from partita.assignors.interface import Subscription, TopicMetadata
from partita.assignors.payloads import decode_subscription, encode_assignment, encode_subscription
from partita.assignors.registry import create_assignor
from partita.broker.notes import as_json
from partita.explain import Account, Fact, explain
from partita.group.config import GroupConfig
from partita.group.records.read_back import LogRecord
from partita.observe.log_facts import LogReader
from partita.observe.note_facts import facts_of_notes
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.group.shell import GroupShell

GROUP = "billing"
HEARTBEAT_MS = 3_000
COMMIT_MS = 5_000


@dataclass
class Process:
    """One consumer process: it joins, assigns if it leads, sends heartbeats and commits, until told otherwise."""

    name: str
    topics: tuple[str, ...]
    instance: str | None = None
    assignment: bytes | None = None
    """What it assigns to everybody as leader instead of what its assignor says."""
    member_id: str = ""
    generation: int = -1
    is_alive: bool = True
    polls: bool = True
    """Does its application poll? If not it sends heartbeats, but neither commits nor rejoins."""
    must_join: bool = True
    joining: int | None = None
    syncing: int | None = None
    partitions: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    next_beat_ms: int = 0
    next_commit_ms: int = 0


@dataclass
class Stage:
    """A group, its processes and their topics. `pass_ms` lets time go by, in steps of 100 ms."""

    topics: dict[str, int]
    assignor: str = "range"
    processes: list[Process] = field(default_factory=list)
    committed: int = 0

    def __post_init__(self) -> None:
        self.shell = GroupShell(GroupConfig(group_initial_rebalance_delay_ms=0), checks=False)
        self.records: list[LogRecord] = []

    # What a person or a fault does

    def start(self, name: str, *topics: str, instance: str | None = None, assignment: bytes | None = None) -> Process:
        """Start a process; it subscribes to these topics, or to all."""
        process = Process(name, topics or tuple(self.topics), instance, assignment)
        self.processes.append(process)
        return process

    def kill(self, name: str) -> None:
        """kill -9: nothing more is heard of it."""
        self.process(name).is_alive = False

    def stop(self, name: str, reason: str = "the consumer is being closed") -> None:
        """It commits, leaves and ends."""
        process = self.process(name)
        self._commit(process)
        if process.instance is None:
            self._leave(process, reason)
        process.is_alive = False

    def block(self, name: str) -> None:
        """Its application does not come back to poll; its heartbeats go on."""
        self.process(name).polls = False

    def give_up_polling(self, name: str) -> None:
        """max.poll.interval.ms is over: its heartbeat thread leaves, as clients do."""
        self._leave(self.process(name), "no poll for 300000 ms, max_poll_interval_ms is 300000: leaving group billing")

    def subscribe(self, name: str, *topics: str) -> None:
        """It wants other topics, and joins again."""
        process = self.process(name)
        process.topics, process.must_join = topics, True

    def add_partitions(self, topic: str, count: int) -> None:
        """The topic gets more partitions; the group leader sees it and joins again."""
        self.topics[topic] = count
        leader = self.shell.shard.groups[GROUP].leader_id
        process = next(p for p in self.processes if p.member_id == leader and p.is_alive)
        process.must_join, process.reason = True, "cached metadata has changed since the assignment"

    def process(self, name: str) -> Process:
        """The living process of this name."""
        return next(p for p in reversed(self.processes) if p.name == name and p.is_alive)

    # Time

    def pass_ms(self, ms: int) -> None:
        """Let time go by."""
        for _ in range(0, ms, 100):
            self._turn()
            self.shell.advance(100, self._write)
            self._write()

    def settle(self, ms: int = 10_000) -> None:
        """Long enough for everybody to be in one generation."""
        self.pass_ms(ms)

    def _turn(self) -> None:
        for process in self.processes:
            if process.is_alive:
                self._answers(process)
                self._act(process)

    def _write(self) -> None:
        """Note when the records of this turn were written."""
        entries = self.shell.log[self.committed :]
        self.committed = len(self.shell.log)
        for entry in entries:
            for key, value in entry.records:
                stamp = self.shell.clock.now().wall_ms
                self.records.append(LogRecord(key, value, 0, len(self.records), stamp, 0))

    def _send(self, process: Process, message: Any, version: int) -> int:
        token = self.shell.send(message, version, process.name)
        self._write()
        return token

    def _act(self, process: Process) -> None:
        now_ms = self.shell.clock.now().mono_ms
        if process.joining is not None or process.syncing is not None:
            return
        if process.must_join and process.polls:
            self._join(process)
        elif process.generation >= 0 and now_ms >= process.next_beat_ms:
            process.next_beat_ms = now_ms + HEARTBEAT_MS
            self._beat(process)
        elif process.generation >= 0 and process.polls and now_ms >= process.next_commit_ms:
            self._commit(process)

    def _join(self, process: Process) -> None:
        subscription = Subscription(topics=process.topics, generation_id=process.generation)
        message = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=300_000,
            member_id=process.member_id,
            group_instance_id=process.instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.assignor, metadata=encode_subscription(subscription))],
            reason=process.reason or None,
        )
        if process.generation >= 0:
            self._commit(process)
        process.must_join, process.reason = False, ""
        process.joining = self._send(process, message, 9)
        self._answers(process)

    def _answers(self, process: Process) -> None:
        answered = self.shell.answered
        if process.joining is not None and process.joining in answered:
            answer: Any = answered.pop(process.joining)
            process.joining = None
            if answer.error_code == 79:
                process.member_id, process.must_join = answer.member_id, True
            elif answer.error_code:
                process.member_id, process.generation, process.must_join = "", -1, True
            else:
                process.member_id, process.generation = answer.member_id, answer.generation_id
                self._sync(process, answer)
        if process.syncing is not None and process.syncing in answered:
            answer = answered.pop(process.syncing)
            process.syncing = None
            process.must_join = bool(answer.error_code)
            process.next_commit_ms = self.shell.clock.now().mono_ms + COMMIT_MS

    def _sync(self, process: Process, joined: Any) -> None:
        given = (
            self._shares(process, joined) if joined.leader == process.member_id and not joined.skip_assignment else {}
        )
        message = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=process.member_id,
            group_instance_id=process.instance,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in given.items()],
        )
        process.syncing = self._send(process, message, 5)
        self._answers(process)

    def _shares(self, process: Process, joined: Any) -> dict[str, bytes]:
        asked = {m.member_id: decode_subscription(m.metadata, m.group_instance_id) for m in joined.members}
        if process.assignment is not None:
            return dict.fromkeys(asked, process.assignment)
        shares = create_assignor(self.assignor).assign(TopicMetadata(dict(self.topics)), asked)
        return {member: encode_assignment(partitions) for member, partitions in shares.items()}

    def _beat(self, process: Process) -> None:
        message = HeartbeatRequest(
            group_id=GROUP, generation_id=process.generation, member_id=process.member_id,
            group_instance_id=process.instance,
        )  # fmt: skip
        answer: Any = self.shell.answered.pop(self._send(process, message, 4))
        if answer.error_code in (22, 25):
            process.member_id, process.generation = "", -1
        process.must_join |= answer.error_code != 0
        if process.instance is not None and answer.error_code == 82:
            process.is_alive = False

    def _commit(self, process: Process) -> None:
        process.next_commit_ms = self.shell.clock.now().mono_ms + COMMIT_MS
        held = [
            (topic, number)
            for member in self._held() if member["member_id"] == process.member_id
            for topic, numbers in member["partitions"].items() for number in numbers
        ]  # fmt: skip
        if held:
            topics = [
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=number, committed_offset=process.next_commit_ms // 100
                        )
                    ],
                )
                for topic, number in held
            ]
            message = OffsetCommitRequest(
                group_id=GROUP, generation_id_or_member_epoch=process.generation, member_id=process.member_id,
                group_instance_id=process.instance, topics=topics,
            )  # fmt: skip
            self.shell.answered.pop(self._send(process, message, 8))

    def _leave(self, process: Process, reason: str) -> None:
        members = [MemberIdentity(member_id=process.member_id, reason=reason)]
        self.shell.answered.pop(self._send(process, LeaveGroupRequest(group_id=GROUP, members=members), 5))
        process.member_id, process.generation, process.must_join = "", -1, True

    # What is known of it afterwards

    def _held(self) -> list[dict[str, Any]]:
        told = self.told("Rebalanced")
        return told[-1]["held"] if told else []

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The notes of one kind, as a broker publishes them."""
        return [note for note in self.notes if note["note"] == kind]

    @property
    def notes(self) -> list[dict[str, Any]]:
        """All notes, as a broker publishes them."""
        return [{**as_json(note), "seq": i} for i, note in enumerate(self.shell.notes)]

    def facts(self, *, told: bool) -> list[Fact]:
        """From the notes, or from the log alone."""
        reader = LogReader(lambda topic_id: None)
        commits = [fact for record in self.records for fact in reader.read(record)]
        return [*facts_of_notes(self.notes), *commits] if told else commits

    def accounts(self, *, told: bool = True) -> tuple[Account, ...]:
        """One account per rebalance so far."""
        return explain(self.facts(told=told))
