"""A coordinator with KIP-848 groups and topics, driven in a few words; the whole of it loses nothing at a reload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from partita.assignors.interface import Assignor
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Job, Record, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.hard_state import HardState
from partita.group.requests import DescribeConsumerGroup
from partita.group.state.topics import TopicFacts, Topics
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import DescribedConsumerGroup
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from partita.protocol.primitives import Structure
from support.clock import ManualClock

Owned = Mapping[str, Sequence[int]]
START = ManualClock().now()


def topic_id(name: str, incarnation: int = 1) -> bytes:
    """The id of the topic with this name; another one for each time it is created."""
    return name.encode().rjust(15, b"\0") + bytes([incarnation])


class World:
    """One shard with group "g". Time moves by `wait`; jobs run at once, unless `holds_jobs`."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        assignors: Mapping[str, Assignor] | None = None,
        **options: Any,
    ) -> None:
        given = {"group_consumer_assignment_interval_ms": 0} | options
        self.config = GroupConfig(**given)
        self.topics = Topics()
        for name, partitions in (topics or {}).items():
            self.put(name, partitions)
        self.clock = ManualClock()
        self.log: list[Record] = []
        self._producers: list[tuple[int, int]] = []
        self.steps: list[Step] = []
        self.holds_jobs = False
        self.held: list[Job] = []
        self.may_see: Callable[[str], bool] | None = None
        self._assignors = assignors
        self._ids = 0
        self.coordinator = self._new()
        self.coordinator.resume(self.clock.now())

    def _new(self) -> GroupCoordinator:
        return GroupCoordinator(self.config, self._new_member_id, topics=self.topics, assignors=self._assignors)

    def _new_member_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}" if prefix else f"made-{self._ids}"

    def put(self, name: str, partitions: int | None, *, incarnation: int = 1, racks: Any = ()) -> None:
        """Create, extend or (None) delete a topic."""
        facts = None if partitions is None else TopicFacts(topic_id(name, incarnation), partitions, racks)
        self.topics.put(name, facts)

    @property
    def group(self) -> ConsumerGroup:
        return self.coordinator.consumer_groups["g"]

    def take(self, step: Step) -> Step:
        """Append the records, check that a replay of the log gives the same state, and run the jobs."""
        self.log += step.records
        self._producers += [step.producer or (-1, -1)] * len(step.records)
        self.steps.append(step)
        self.check()
        for job in step.jobs:
            if self.holds_jobs:
                self.held.append(job)
            else:
                self.take(self.coordinator.job_done(job, self.run(job), self.clock.now()))
        return step

    def run(self, job: Job) -> object:
        """The outcome of a job."""
        return job.run()

    def release_jobs(self) -> None:
        """Run what was held."""
        held, self.held = self.held, []
        for job in held:
            self.take(self.coordinator.job_done(job, self.run(job), self.clock.now()))

    def check(self) -> None:
        """A replay gives the same state, and nobody shares a partition."""
        mirror = HardState()
        for record, producer in zip(self.log, self._producers, strict=True):
            mirror.replay(record, *producer)
        assert mirror == self.coordinator.hard_state, "a replay of the log gives another state"
        for group in self.coordinator.consumer_groups.values():
            held = [p for m in group.members.values() for p in (*m.assigned, *m.revoking)]
            assert len(set(held)) == len(held), f"a partition has two owners: {group.members}"
            assert group.owners == mirror.consumer_groups[group.group_id].owners

    def ask(self, message: Structure, version: int = 1, client_id: str = "c") -> Any:
        """The answer to a request that is answered at once."""
        request = GroupRequest(message, version, client_id, "/h", may_see=self.may_see)
        step = self.take(self.coordinator.handle("token", request, self.clock.now()))
        (answer,) = [reply.message for reply in step.replies if reply.token == "token"]
        return answer

    def beat(
        self,
        member: str,
        epoch: int,
        topics: Sequence[str] | None = None,
        *,
        owned: Owned | None = None,
        instance: str | None = None,
        regex: str | None = None,
        timeout_ms: int = -1,
        assignor: str | None = None,
        rack: str | None = None,
        group: str = "g",
        version: int = 1,
    ) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat as it is on the wire."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=None if topics is None else list(topics),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None
            if owned is None
            else [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id(name), partitions=list(numbers))
                for name, numbers in owned.items()
            ],
        )
        answer = self.ask(request, version)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def join(self, member: str, topics: Sequence[str] | None = ("t",), **given: Any) -> ConsumerGroupHeartbeatResponse:
        """The first heartbeat of a member; a rebalance timeout of a minute unless said."""
        return self.beat(member, 0, topics, owned={}, **({"timeout_ms": 60_000} | given))

    def go_on(self, member: str, owned: Owned | None = None, **given: Any) -> ConsumerGroupHeartbeatResponse:
        """A later heartbeat, in the member's epoch."""
        return self.beat(member, self.group.members[member].epoch, owned=owned, **given)

    def settle(self, rounds: int = 12) -> None:
        """Every member heartbeats, does what it is told and says so, until nothing changes."""
        for _ in range(rounds):
            before = self.shape()
            for member_id in list(self.group.members):
                self.go_on(member_id, self.has(member_id))
            if self.shape() == before:
                return
        raise AssertionError(f"not settled: {self.group.members}")

    def shape(self) -> object:
        return [(m.member_id, m.epoch, m.state, sorted(m.assigned)) for m in self.group.members.values()]

    def has(self, member: str) -> dict[str, list[int]]:
        """What the member may own, by topic name."""
        found: dict[str, list[int]] = {}
        for topic, number in sorted(self.group.members[member].assigned):
            found.setdefault(self.topics.name_of(topic) or "?", []).append(number)
        return found

    def wait(self, ms: int) -> list[Step]:
        """Let time pass, and do what becomes due when it does."""
        end_ms = self.clock.now().mono_ms + ms
        done = []
        while (due_ms := self.coordinator.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.now().mono_ms))
            done.append(self.take(self.coordinator.on_deadline(self.clock.now())))
        self.clock.advance(end_ms - self.clock.now().mono_ms)
        return done

    def reload(self) -> None:
        """The shard is lost and loaded again from its log."""
        coordinator = self._new()
        for record in self.log:
            coordinator.replay(record)
        self.coordinator = coordinator
        self.take(coordinator.resume(self.clock.now()))

    def describe(self, group: str = "g") -> DescribedConsumerGroup:
        answer = self.ask(DescribeConsumerGroup(group))
        assert isinstance(answer, DescribedConsumerGroup)
        return answer

    def kinds(self, records: Iterable[Record]) -> str:
        """The kinds of the records by their numbers; a tombstone has a minus sign."""
        return " ".join(f"{'-' if value is None else ''}{int.from_bytes(key[:2], 'big')}" for key, value in records)


def told(answer: ConsumerGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """The assignment in an answer; None when it says that nothing has changed."""
    if answer.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}


def error(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)
