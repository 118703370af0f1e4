"""Streams groups: the same heartbeats, raw on the wire, to Apache Kafka 4.4.0 and to Partita, answer by answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

from conformance.wire import RawClient
from partita import Admin
from partita.group.state.topology import Status
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsCopartitionGroup,
    StreamsEndpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsKeyValue,
    StreamsSubtopology,
    StreamsTaskIds,
    StreamsTaskOffset,
    StreamsTopicInfo,
    StreamsTopology,
)
from partita.protocol.primitives import Structure
from support.broker.process import broker_process
from support.group.streams_cases import ALL, CASES, told
from support.group.streams_cases import beat as beat_with
from support.kafka.node import KafkaNode, KafkaUnavailable

pytestmark = pytest.mark.conformance

HISTORIES = 120
TOPICS = {"words": 3, "colours": 3, "lines": 6}
OPTIONS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
}
"""Two things are not asked, since Kafka 4.4.0 fails there: endpoints of members where topics do not fit, and a request
under an instance id that another member has. It is refused, and takes that member's tasks from what Kafka remembers."""
LEFT_OUT = frozenset({"throttle_time_ms", "client_host", "authorized_operations"})


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[str, str]]:
    """The bootstrap addresses of Kafka and of Partita, with the same topics and options."""
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(KafkaNode(None, **OPTIONS)).bootstrap
        except KafkaUnavailable as reason:
            pytest.skip(f"no Apache Kafka to compare with: {reason}")
        ours = stack.enter_context(broker_process(*(f"--set={name}={value}" for name, value in OPTIONS.items())))
        for bootstrap in (kafka, ours):
            with Admin(bootstrap_servers=bootstrap) as admin:
                for topic, partitions in TOPICS.items():
                    admin.create_topic(topic, partitions=partitions)
        yield kafka, ours


def plain(value: Any) -> Any:
    """An answer as plain values, without what differs by nature; lists whose order Kafka leaves open are sorted."""
    if isinstance(value, Structure):
        return {name: plain(getattr(value, name)) for name in value.__slots__ if name not in LEFT_OUT}
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    return int(value) if isinstance(value, int) else value


def topology(kind: str, group: str) -> StreamsTopology:
    """A topology: a table of one topic, a count behind a repartition topic, a join, and some that cannot be."""

    def info(name: str, partitions: int = 0) -> StreamsTopicInfo:
        settings = [StreamsKeyValue(key="cleanup.policy", value="compact")] if "changelog" in name else []
        return StreamsTopicInfo(name=f"{group}-{name}", partitions=partitions, topic_configs=settings)

    first = StreamsSubtopology(subtopology_id="0", source_topics=["words"])
    second = StreamsSubtopology(subtopology_id="1", repartition_source_topics=[info("repartition")])
    if kind == "stateful":
        first.state_changelog_topics = [info("changelog")]
    elif kind == "counted":
        first.repartition_sink_topics = [f"{group}-repartition"]
        second.state_changelog_topics = [info("changelog")]
    elif kind == "joined":
        first.source_topics = ["words", "colours"]
        first.copartition_groups = [StreamsCopartitionGroup(source_topics=[0, 1])]
    elif kind == "uneven":
        first.source_topics = ["words", "lines"]
        first.copartition_groups = [StreamsCopartitionGroup(source_topics=[0, 1])]
    elif kind == "missing":
        first.source_topics = ["words", "absent"]
    elif kind == "endless":
        first.repartition_sink_topics = [f"{group}-other"]
    subs = [first, second] if kind in ("counted", "endless") else [first]
    return StreamsTopology(epoch=1, subtopologies=subs)


class Member:
    """A member as one side knows it: its epoch and tasks as last answered."""

    def __init__(self) -> None:
        self.epoch = 0
        self.tasks: tuple[list[StreamsTaskIds], ...] = ([], [], [])

    def took(self, answer: StreamsGroupHeartbeatResponse) -> None:
        if not answer.error_code:
            self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.tasks = (answer.active_tasks, answer.standby_tasks or [], answer.warmup_tasks or [])


class Side:
    """One broker, its connection, and the members of the history."""

    def __init__(self, connection: RawClient, members: int) -> None:
        self.connection = connection
        self.members = [Member() for _ in range(members)]

    async def ask(self, step: dict[str, Any], group: str) -> Any:
        member = self.members[step["member"]]
        request = beat(step, member, group)
        answer: Any = await self.connection.ask(request, 1)
        for _ in range(200):  # Kafka makes internal topics behind the answer
            statuses = [status.status_code for status in answer.status or ()]
            if Status.MISSING_INTERNAL_TOPICS not in statuses or "Unauthorized" in str(answer.status):
                break
            member.took(answer)
            names = [f"{group}-{name}" for name in ("changelog", "repartition")]
            await self.until_made(names if step["topology"] == "counted" else names[:1])
            await asyncio.sleep(0.05)
            again = beat({**step, "verb": "beat", "off": 0}, member, group)
            answer = await self.connection.ask(again, 1)
        member.took(answer)
        if step["verb"] in ("leave", "rest"):
            self.members[step["member"]] = Member()
        return answer

    async def until_made(self, names: list[str]) -> None:
        """Kafka makes one topic after the other, and a group that sees only one of them counts an epoch more."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        for _ in range(200):
            answer: Any = await self.connection.ask(asked, 9)
            if not any(topic.error_code for topic in answer.topics):
                break
            await asyncio.sleep(0.02)


def beat(step: dict[str, Any], member: Member, group: str) -> StreamsGroupHeartbeatRequest:
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=f"m{step['member']}{step['suffix']}",
        member_epoch=member.epoch,
        instance_id=step["instance"],
        endpoint_information_epoch=step["endpoint_epoch"],
    )
    if step["verb"] == "join":
        request.member_epoch = 0
        request.rebalance_timeout_ms = 60_000
        request.topology = topology(step["topology"], group)
        request.process_id = step["process"]
        request.active_tasks = request.standby_tasks = request.warmup_tasks = []
        request.client_tags = [StreamsKeyValue(key="zone", value=step["process"] or "")]
        request.rack_id = step["rack"]
        if step["endpoint"]:
            request.user_endpoint = StreamsEndpoint(host="localhost", port=7000 + step["member"])
    elif step["verb"] in ("leave", "rest"):
        request.member_epoch = -1 if step["verb"] == "leave" else -2
        request.shutdown_application = step["shutdown"]
    else:
        request.member_epoch += step["off"]
        if step["reports"]:
            request.active_tasks, request.standby_tasks, request.warmup_tasks = member.tasks
        if step["offsets"]:
            request.task_offsets = [StreamsTaskOffset(subtopology_id="0", partition=0, offset=step["offsets"])]
            request.task_end_offsets = [StreamsTaskOffset(subtopology_id="0", partition=0, offset=99)]
    return request


def history(seed: int) -> list[dict[str, Any]]:
    """Mostly sensible steps of up to four members in up to three processes, sometimes wrong on purpose."""
    random = Random(seed)
    kind = random.choice(
        ("plain", "stateful", "stateful", "counted", "counted", "joined", "uneven", "missing", "endless")
    )
    members = random.randint(1, 4)
    is_nameless = random.random() < 0.1
    static = [f"i{member}" if random.random() < 0.3 else None for member in range(members)]
    joined: set[int] = set()
    rested: set[int] = set()
    suffixes = [""] * members
    steps: list[dict[str, Any]] = []
    for _ in range(random.randint(8, 30)):
        member = random.randrange(members)
        verb = (
            "join" if member not in joined else random.choice(("beat", "beat", "beat", "beat", "join", "leave", "rest"))
        )
        if random.random() < 0.05:
            verb = random.choice(("beat", "leave"))
        if verb == "join" and member in rested:
            suffixes[member] = random.choice(("", "b"))
        rested = rested | {member} if verb == "rest" else rested - {member}
        joined = joined - {member} if verb in ("leave", "rest") else joined | {member} if verb == "join" else joined
        steps.append(
            {
                "member": member,
                "verb": verb,
                "topology": random.choice((kind, kind, kind, kind, kind, kind, "plain")),
                "process": None if is_nameless else f"p{member % random.choice((1, 2, 3))}",
                "rack": random.choice((None, None, "r1")),
                "instance": static[member],
                "suffix": suffixes[member],
                "endpoint": random.random() < 0.4 and kind not in ("uneven", "missing"),
                "endpoint_epoch": random.choice((-1, -1, 0, 1)),
                "shutdown": random.random() < 0.1,
                "off": random.choice((0, 0, 0, 0, 0, 0, -1, 1)),
                "reports": random.random() < 0.6,
                "offsets": random.choice((0, 0, 0, 5, 50)),
            }
        )
    return steps


async def play(seed: int, bootstraps: tuple[str, str]) -> list[str]:
    group, steps = f"streams-{seed}", history(seed)
    sides = [Side(await RawClient(f"client-{seed}").connect(bootstrap), 4) for bootstrap in bootstraps]
    differences: list[str] = []
    try:
        for side in sides:
            await side.connection.ask(FindCoordinatorRequest(key=group), 1)
        for number, step in enumerate(steps):
            answers = [plain(await side.ask(step, group)) for side in sides]
            asked = StreamsGroupDescribeRequest(group_ids=[group], include_topology_description=True)
            answers_of_describe = [plain(await side.connection.ask(asked, 1)) for side in sides]
            for what, (kafka, ours) in ((step["verb"], answers), ("describe", answers_of_describe)):
                if kafka != ours:
                    differences.append(f"seed {seed} step {number} {what} {step}\n  kafka {kafka}\n  ours  {ours}")
            if differences:
                break
    finally:
        for side in sides:
            side.connection.close()
    return differences


async def play_all(bootstraps: tuple[str, str]) -> list[str]:
    await ready(bootstraps)
    return [line for seed in range(HISTORIES) for line in await play(seed, bootstraps)]


async def ready(bootstraps: tuple[str, str]) -> None:
    """Return when both coordinators serve groups."""
    for bootstrap in bootstraps:
        connection = await RawClient("ready").connect(bootstrap)
        for seed in range(HISTORIES):
            await ready_for(connection, f"streams-{seed}")
        connection.close()


async def ready_for(connection: RawClient, group: str) -> None:
    """Return when the coordinator of this group serves it."""
    for _ in range(400):
        await connection.ask(FindCoordinatorRequest(key=group), 1)
        answer: Any = await connection.ask(
            StreamsGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=1), 1
        )
        if answer.error_code == 69:  # GROUP_ID_NOT_FOUND: loaded
            break
        await asyncio.sleep(0.05)


def test_every_answer_of_every_history_is_kafkas(both: tuple[str, str]) -> None:
    different = asyncio.run(play_all(both))
    assert not different, f"{len(different)} of {HISTORIES} histories differ:\n" + "\n".join(different[:20])


async def answers_to(case: str, bootstrap: str) -> list[dict[str, object]]:
    group = case.lower()
    connection = await RawClient(group).connect(bootstrap)
    await ready_for(connection, group)
    answers = [told(await connection.ask(step.request(group), 1)) for step in CASES[case]]
    connection.close()
    return answers


@pytest.mark.parametrize("side", [0, 1], ids=["kafka", "partita"])
def test_every_case_of_the_page_is_observed(both: tuple[str, str], side: int) -> None:
    wrong: list[str] = []
    for case, steps in CASES.items():
        answers = asyncio.run(answers_to(case, both[side]))
        for number, (step, answer) in enumerate(zip(steps, answers, strict=True)):
            if {name: answer[name] for name in step.expected} != step.expected:
                wrong.append(f"{case} step {number}: {answer}, expected {dict(step.expected)}")
    assert not wrong, "\n".join(wrong)


def test_kafka_sends_tasks_once_and_partita_to_a_member_that_lacks_them(both: tuple[str, str]) -> None:
    async def lacking(bootstrap: str) -> object:
        connection = await RawClient("lacking").connect(bootstrap)
        await ready_for(connection, "lacking")
        answers = [told(await connection.ask(step.request("lacking"), 1)) for step in (ALL, beat_with("a", 2, [0]))]
        connection.close()
        return answers[-1]["active"]

    assert [asyncio.run(lacking(bootstrap)) for bootstrap in both] == [None, [0, 1, 2]]
