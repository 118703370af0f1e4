"""KIP-848 groups: the same heartbeats are sent to Apache Kafka and to our broker, and their answers are compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from conformance.histories import TOPICS
from conformance.wire import RawClient
from partita import Broker
from partita.assignors.interface import Subscription
from partita.assignors.payloads import decode_assignment, encode_assignment, encode_subscription
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_groups import DescribeGroupsRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.kafka.node import KafkaNode, asks_from

APPLES, PEARS = TOPICS
INTERVAL_S = 1.0
"""`group.consumer.assignment.interval.ms`: a group gets one target in so long."""
TRIES = 5
Told = list[tuple[Any, ...]]
Script = Callable[["Player"], Awaitable[None]]


class Player:
    """One broker being asked about one group; `told` is what it answered, with topics by their names."""

    def __init__(self, client: RawClient, group: str, names: dict[bytes, str]) -> None:
        self.client = client
        self.group = group
        self.names = names
        self.ids = {name: topic_id for topic_id, name in names.items()}
        self.told: Told = []
        self.generation = -1
        """Of the last join of the classic protocol."""
        self.began = time.monotonic()
        self.is_in_time = True
        """Each stretch of the script was shorter than the interval, so both brokers were to make one target in it."""

    def end_of_stretch(self) -> None:
        """Note whether the steps since the last rest took too long."""
        self.is_in_time = self.is_in_time and time.monotonic() - self.began < INTERVAL_S

    async def rest(self) -> None:
        """Let the interval pass, so that the next step brings a new target."""
        self.end_of_stretch()
        await asyncio.sleep(INTERVAL_S + 0.1)
        self.began = time.monotonic()

    async def beat(
        self,
        member: str,
        epoch: int,
        topics: list[str] | None = None,
        *,
        owned: dict[str, list[int]] | None = None,
        version: int = 1,
        timeout_ms: int = -1,
        group: str | None = None,
        **given: Any,
    ) -> Any:
        partitions = None
        if owned is not None:
            partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=self.ids[name], partitions=numbers)
                for name, numbers in owned.items()
            ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group if group is None else group,
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=topics,
            topic_partitions=partitions,
            **given,
        )
        answer: Any = await self.client.ask(request, version)
        has = None
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            has = sorted((self.names.get(t.topic_id, "another topic"), sorted(t.partitions)) for t in parts)
        self.told.append(
            ("beat", ErrorCode(answer.error_code).name, answer.member_epoch, answer.heartbeat_interval_ms, has)
        )
        return answer

    async def join(self, member: str, topics: list[str] | None = None, **given: Any) -> Any:
        given = {"owned": {}, "timeout_ms": 60_000, "server_assignor": "range", **given}
        return await self.beat(member, 0, [APPLES] if topics is None else topics, **given)

    async def describe(self) -> None:
        answer: Any = await self.client.ask(ConsumerGroupDescribeRequest(group_ids=[self.group, "nobody", ""]), 1)
        for group in sorted(answer.groups, key=lambda group: group.group_id):
            members = sorted(
                (m.member_id, m.instance_id, m.member_epoch, tuple(sorted(m.subscribed_topic_names)), m.member_type,
                 _parts(m.assignment), _parts(m.target_assignment))
                for m in group.members
            )  # fmt: skip
            self.told.append(
                ("describe", ErrorCode(group.error_code).name, group.group_state, group.group_epoch,
                 group.assignment_epoch, group.assignor_name, members)
            )  # fmt: skip

    async def commit(self, member: str, epoch: int, version: int = 9) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = OffsetCommitRequestTopic(name=APPLES, partitions=[partition])
        request = OffsetCommitRequest(
            group_id=self.group, member_id=member, generation_id_or_member_epoch=epoch, topics=[topic]
        )
        answer: Any = await self.client.ask(request, version)
        self.told.append(("commit", ErrorCode(answer.topics[0].partitions[0].error_code).name))

    async def classic_join(self, member: str, metadata: bytes, instance: str | None = None) -> str:
        """JoinGroup of the classic protocol, twice if an id is given first; the member id."""
        protocols = [JoinGroupRequestProtocol(name="range", metadata=metadata)]
        for _ in range(2):
            request = JoinGroupRequest(
                group_id=self.group, member_id=member, group_instance_id=instance, protocol_type="consumer",
                session_timeout_ms=45_000, rebalance_timeout_ms=60_000, protocols=protocols,
            )  # fmt: skip
            answer: Any = await self.client.ask(request, 9)
            code = ErrorCode(answer.error_code)
            self.generation = answer.generation_id
            is_alone = answer.leader == answer.member_id
            self.told.append(("join", code.name, answer.generation_id, answer.protocol_name, is_alone))
            member = answer.member_id
            if code is not ErrorCode.MEMBER_ID_REQUIRED:
                break
        return member

    async def classic_sync(self, member: str, given: dict[str, list[int]] | None = None) -> list[int]:
        """SyncGroup of the classic protocol; the partitions of apples that the member has then."""
        assignments = [
            SyncGroupRequestAssignment(
                member_id=name, assignment=encode_assignment([(APPLES, number) for number in numbers])
            )
            for name, numbers in (given or {}).items()
        ]
        request = SyncGroupRequest(
            group_id=self.group, generation_id=self.generation, member_id=member, protocol_type="consumer",
            protocol_name="range", assignments=assignments,
        )  # fmt: skip
        answer: Any = await self.client.ask(request, 5)
        has = sorted(number for _, number in decode_assignment(answer.assignment)[0])
        self.told.append(("sync", ErrorCode(answer.error_code).name, answer.protocol_name, has))
        return has

    async def classic_beat(self, member: str) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=member)
        answer: Any = await self.client.ask(request, 4)
        self.told.append(("classic beat", ErrorCode(answer.error_code).name))

    async def look(self) -> None:
        """How the group is listed, and what classic tools are told of it."""
        listed: Any = await self.client.ask(ListGroupsRequest(), 5)
        self.told += [
            ("listed", g.protocol_type, g.group_state, g.group_type) for g in listed.groups if g.group_id == self.group
        ]
        described: Any = await self.client.ask(DescribeGroupsRequest(groups=[self.group]), 6)
        group = described.groups[0]
        self.told.append(("classic", ErrorCode(group.error_code).name, group.error_message, group.group_state))

    async def delete(self) -> None:
        answer: Any = await self.client.ask(DeleteGroupsRequest(groups_names=[self.group]), 2)
        self.told.append(("delete", ErrorCode(answer.results[0].error_code).name))


def _parts(assignment: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((t.topic_name, tuple(sorted(t.partitions))) for t in assignment.topic_partitions))


async def refused(player: Player) -> None:
    """T02 to T08: what no group takes."""
    await player.beat("m", 3)
    await player.join("", version=1)
    await player.join("m", timeout_ms=-1)
    await player.beat("m", 0, [APPLES], owned=None, timeout_ms=1)
    await player.beat("m", 0, [APPLES], owned={APPLES: [0]}, timeout_ms=1)
    await player.beat("m", 0, None, owned={}, timeout_ms=1)
    await player.beat("m", -3)
    await player.beat("m", -2)
    await player.join("m", rack_id=" ")
    await player.join("m", instance_id="")
    await player.join("m", group="")
    await player.join("m", server_assignor="foo")
    await player.join("m", subscribed_topic_regex="(a")
    await player.join("m")
    await player.beat("n", 3)
    await player.beat("m", 9)
    await player.beat("m", -1, group="nobody")


async def rebalance(player: Player) -> None:
    """T01, T10, T12 to T14, T18 to T20, T24, T35, T40: two members, one after the other."""
    everything = {APPLES: [0, 1, 2]}
    await player.join("a")
    await player.describe()
    await player.join("a")
    await player.beat("a", 2)
    await player.beat("a", 2, [APPLES], owned=everything, timeout_ms=60_000)
    await player.rest()
    await player.join("b")
    await player.beat("a", 2)
    await player.beat("a", 2, owned=everything)
    await player.describe()
    await player.beat("a", 2, owned={APPLES: [0, 1]})
    await player.beat("a", 2, owned={APPLES: [0, 1]})
    await player.beat("b", 3, owned={})
    await player.describe()
    await player.look()
    await player.rest()
    await player.beat("b", 3, [APPLES, PEARS])
    await player.describe()
    await player.delete()
    await player.beat("a", -1)
    await player.beat("b", -1)
    await player.look()
    await player.delete()
    await player.delete()


async def static_members(player: Player) -> None:
    """T25 to T27, T29: static members go, come back, and are impersonated."""
    await player.join("a", instance_id="i")
    await player.join("b", instance_id="i")
    for epoch in (2, -1, -2):
        await player.beat("b", epoch, instance_id="i")
        await player.beat("b", epoch, instance_id="none")
    await player.beat("a", -2, instance_id="i")
    await player.describe()
    await player.join("b", instance_id="i")
    await player.describe()
    await player.beat("b", -2, instance_id="i")
    await player.rest()
    await player.join("c", [APPLES, PEARS], instance_id="i")
    await player.describe()
    await player.beat("c", -1, instance_id="i")


async def together(player: Player) -> None:
    """T50: four members at once, one target for the last three."""
    for member in "abcd":
        await player.join(member)
    await player.describe()
    await player.rest()
    await player.beat("b", 2, owned={})
    await player.describe()


async def offsets(player: Player) -> None:
    """T41: who may commit."""
    await player.join("a")
    await player.commit("a", 2)
    await player.commit("a", 2, version=8)
    await player.commit("b", 2)
    await player.commit("a", 3)
    await player.commit("", -1)
    await player.beat("a", -1)
    await player.commit("", -1)


async def converted(player: Player) -> None:
    """U03, U07, U10: a classic member, joined by a new one that leaves again."""
    metadata = encode_subscription(Subscription([APPLES]))
    member = await player.classic_join("", metadata)
    await player.classic_sync(member, {member: [0, 1, 2]})
    await player.join("n")
    await player.classic_beat(member)
    owned = [(APPLES, number) for number in range(3)]
    await player.classic_join(member, encode_subscription(Subscription([APPLES], owned_partitions=owned)))
    kept = await player.classic_sync(member)
    await player.classic_beat(member)
    owned = [(APPLES, number) for number in kept]
    await player.classic_join(member, encode_subscription(Subscription([APPLES], owned_partitions=owned)))
    await player.classic_sync(member)
    await player.beat("n", 2, owned={})
    await player.look()
    await player.beat("n", -1)
    await player.classic_beat(member)
    await player.look()


async def converted_static(player: Player) -> None:
    """U12: a static member brings the new protocol, and takes it away again; nobody else notices."""
    metadata = encode_subscription(Subscription([APPLES]))
    member = await player.classic_join("", metadata, "i")
    await player.classic_sync(member, {member: [0, 1, 2]})
    await player.join("n", instance_id="i", server_assignor="uniform")
    await player.describe()
    await player.beat("n", 1, owned={APPLES: [0, 1, 2]})
    member = await player.classic_join("", metadata, "i")
    await player.look()
    await player.classic_sync(member)
    await player.classic_beat(member)


async def by_pattern(player: Player) -> None:
    """T43, T46: a pattern that also matches an internal topic, which has had its id since a coordinator was found."""
    await player.join("a", [], subscribed_topic_regex="(__consumer_offsets|pea.*)", server_assignor="uniform")
    await player.rest()
    await player.beat("a", 1)
    await player.describe()
    await player.beat("a", -1)


async def nothing_named(player: Player) -> None:
    """T01, T22: members without topics, and with topics that do not exist."""
    await player.join("a", [], server_assignor="uniform")
    await player.describe()
    await player.join("b", ["plums"], server_assignor="uniform")
    await player.describe()
    await player.beat("b", -1)
    await player.beat("a", -1)


async def emptied(player: Player) -> None:
    """A group without members waits for no target: 4.4.0."""
    await player.join("a")
    await player.join("b")
    await player.beat("a", -1)
    await player.describe()
    await player.beat("b", -1)
    await player.describe()
    await player.join("c")
    await player.describe()


async def another_assignor(player: Player) -> None:
    """Another preferred assignor is a new epoch: 4.4.0."""
    await player.join("a", [])
    await player.join("b", [], server_assignor="uniform")
    await player.describe()
    await player.join("c", [], server_assignor="uniform")
    await player.rest()
    await player.join("d", server_assignor="uniform")
    await player.beat("d", 5, server_assignor="range")
    await player.describe()


async def converted_to_another_assignor(player: Player) -> None:
    """U12 with another assignor than the group's: 4.4.0."""
    metadata = encode_subscription(Subscription([APPLES]))
    member = await player.classic_join("", metadata, "i")
    await player.classic_sync(member, {member: [0, 1, 2]})
    await player.join("n", instance_id="i")
    await player.describe()
    await player.classic_join("", metadata, "i")
    await player.look()


SCRIPTS: list[Script] = [
    refused,
    rebalance,
    static_members,
    together,
    offsets,
    converted,
    converted_static,
    by_pattern,
    nothing_named,
    *((emptied, another_assignor, converted_to_another_assignor) if asks_from(4, 4) else ()),
]


@pytest.fixture(scope="module")
def ours() -> Iterator[Broker]:
    with Broker(group_initial_rebalance_delay_ms=0, auto_create_topics_enable=False) as broker:
        broker.create_topics(dict.fromkeys(TOPICS, 3))
        yield broker


async def play(bootstrap: str, script: Script, group: str) -> Player:
    client = await RawClient("client").connect(bootstrap)
    try:
        topics = [MetadataRequestTopic(name=name) for name in TOPICS]
        found: Any = await client.ask(MetadataRequest(topics=topics), 12)
        for _ in range(200):
            asked: Any = await client.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)
            probed: Any = await client.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
            if not asked.coordinators[0].error_code and probed.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                break
            await asyncio.sleep(0.1)
        player = Player(client, group, {topic.topic_id: topic.name for topic in found.topics})
        await script(player)
        player.end_of_stretch()
        return player
    finally:
        client.close()


@pytest.mark.case(
    *("GC-U03", "GC-U07", "GC-U10", "GC-U12"),
    *(f"GC-T{number:02}" for number in (*range(1, 9), 10, 12, 13, 14, 18, 19, 20, *range(24, 28), 29, 35, 40, 41, 50)),
)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_our_broker_answers_as_kafka_does(kafka: KafkaNode, ours: Broker, script: Script) -> None:
    async def both(group: str) -> list[Player]:
        return list(await asyncio.gather(*(play(side.bootstrap, script, group) for side in (kafka, ours))))

    for turn in range(TRIES):  # a machine that stood still too long has played another story
        kafkas, mine = asyncio.run(both(f"next-{turn}-{script.__name__}"))
        if kafkas.is_in_time and mine.is_in_time:
            break
    assert mine.told == kafkas.told
