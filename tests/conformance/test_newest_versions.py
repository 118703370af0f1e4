"""Requests that newer releases answer otherwise, in the newest version that both brokers serve, asked of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from conformance.wire import RawClient
from partita import Admin, Broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.describe_cluster import DescribeClusterRequest
from partita.protocol.messages.describe_transactions import DescribeTransactionsRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.kafka.node import KafkaNode, settle

pytestmark = pytest.mark.conformance

TOPIC = "newest"
MEMBER, OTHER = "AAAAAAAAAAAAAAAAAAAAAA", "BAAAAAAAAAAAAAAAAAAAAA"
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


@pytest.fixture(scope="module")
def bootstraps(kafka: KafkaNode) -> Iterator[tuple[str, str]]:
    with Broker() as broker:
        for bootstrap in (kafka.bootstrap, broker.bootstrap):
            with Admin(bootstrap_servers=bootstrap) as admin:
                admin.create_topics(TOPIC)
        with Admin(bootstrap_servers=kafka.bootstrap) as admin:
            settle(admin)
        yield kafka.bootstrap, broker.bootstrap


class Side:
    """One broker; requests go out in the newest version that both have."""

    def __init__(self, client: RawClient, versions: dict[int, int]) -> None:
        self.client = client
        self.versions = versions

    async def ask(self, message: Any, version: int | None = None) -> Any:
        return await self.client.ask(message, self.versions[message.API_KEY] if version is None else version)

    async def until_ready(self, message: Any, code_of: Any) -> Any:
        """Ask until the coordinator has loaded and has ended what it was at; every broker gets there."""
        while True:
            answer = await self.ask(message)
            if code_of(answer) not in NOT_YET:
                return answer


@asynccontextmanager
async def sides(bootstraps: tuple[str, str]) -> AsyncIterator[list[Side]]:
    clients = [await RawClient("newest").connect(bootstrap) for bootstrap in bootstraps]
    asking = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    answers: list[Any] = [await client.ask(asking, 3) for client in clients]
    told = [{api.api_key: api.max_version for api in answer.api_keys} for answer in answers]
    common = {key: min(told[0][key], told[1][key]) for key in told[0].keys() & told[1].keys()}
    try:
        yield [Side(client, common) for client in clients]
    finally:
        for client in clients:
            client.close()


def on_both(bootstraps: tuple[str, str], story: Any) -> None:
    """Both brokers answer every step of a story alike."""

    async def play() -> list[dict[str, object]]:
        async with sides(bootstraps) as both:
            return [{name: said async for name, said in story(side)} for side in both]

    kafka, partita = asyncio.run(play())
    assert partita == kafka
    assert len(kafka) > 5


def test_a_client_says_which_broker_it_means(bootstraps: tuple[str, str]) -> None:
    async def story(side: Side) -> AsyncIterator[tuple[str, object]]:
        cluster = (await side.ask(DescribeClusterRequest(), 1)).cluster_id
        for name, meant in {"right": cluster, "wrong": "other", "empty": "", "none": None}.items():
            for node in (-1, 1, 7, -2):
                for software in ("t", ""):
                    request = ApiVersionsRequest(
                        client_software_name=software, client_software_version="1", cluster_id=meant, node_id=node
                    )
                    answer = await side.ask(request)
                    yield f"{name} {node} {software}", (ErrorCode(answer.error_code), bool(answer.api_keys))

    on_both(bootstraps, story)


def test_epochs_of_members_and_groups_that_are_not_there(bootstraps: tuple[str, str]) -> None:
    def heartbeat(group: str, member: str, epoch: int, **fields: Any) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)

    async def story(side: Side) -> AsyncIterator[tuple[str, object]]:
        for group in ("absent", "here", "left"):
            asking = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            await side.until_ready(asking, lambda answer: answer.coordinators[0].error_code)
        joining: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000, "subscribed_topic_names": [TOPIC], "topic_partitions": [],
        }  # fmt: skip
        for group in ("here", "left"):
            joined = await side.until_ready(heartbeat(group, MEMBER, 0, **joining), lambda answer: answer.error_code)
            yield f"{group} joined", (ErrorCode(joined.error_code), joined.member_epoch)
        for name, step in {
            "leaves": heartbeat("left", MEMBER, -1), "leaves again": heartbeat("left", MEMBER, -1),
            "left": heartbeat("left", MEMBER, 5), "other": heartbeat("here", OTHER, 1),
            "absent": heartbeat("absent", MEMBER, 5), "leaves absent": heartbeat("absent", MEMBER, -1),
            "static leaves absent": heartbeat("absent", MEMBER, -2, instance_id="i"),
        }.items():  # fmt: skip
            answer = await side.ask(step)
            yield name, (ErrorCode(answer.error_code), answer.error_message)
        for group in ("here", "left", "absent", ""):
            answer = await side.ask(DeleteGroupsRequest(groups_names=[group]))
            yield f"delete {group}", [(ErrorCode(r.error_code), r.error_message) for r in answer.results]

    on_both(bootstraps, story)


def test_offsets_of_a_transaction(bootstraps: tuple[str, str]) -> None:
    async def story(side: Side) -> AsyncIterator[tuple[str, object]]:
        for key, kind in (("newest", 1), ("members", 0), ("simple", 0), ("gone", 0)):
            asking = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            await side.until_ready(asking, lambda answer: answer.coordinators[0].error_code)
        init = InitProducerIdRequest(
            transactional_id="newest", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        producer = await side.until_ready(init, lambda answer: answer.error_code)
        join = ConsumerGroupHeartbeatRequest(
            group_id="members", member_id=MEMBER, member_epoch=0, rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC], topic_partitions=[],
        )  # fmt: skip
        epoch = (await side.until_ready(join, lambda answer: answer.error_code)).member_epoch
        topic_id = await topic_id_of(side)

        async def commit(group: str, member: str = "", epoch: int = -1, partition: int = 0, **fields: Any) -> ErrorCode:
            part = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=3, committed_metadata="")
            given = {"topic_id": topic_id, "name": TOPIC, **fields}
            request = TxnOffsetCommitRequest(
                transactional_id="newest", group_id=group, producer_id=producer.producer_id,
                producer_epoch=given.pop("producer_epoch", producer.producer_epoch), member_id=member,
                generation_id_or_member_epoch=epoch,
                topics=[TxnOffsetCommitRequestTopic(partitions=[part], **given)],
            )  # fmt: skip
            answer = await side.until_ready(request, lambda answer: answer.topics[0].partitions[0].error_code)
            return ErrorCode(answer.topics[0].partitions[0].error_code)

        nothing = TxnOffsetCommitRequest(
            transactional_id="newest", group_id="simple", producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
        )  # fmt: skip
        described = DescribeTransactionsRequest(transactional_ids=["newest"])
        yield "no topics", (await side.ask(nothing)).topics
        yield "not begun", (await side.ask(described)).transaction_states[0].transaction_state
        yield "no group", await commit("gone", "m", 5)
        yield "begun", (await side.ask(described)).transaction_states[0].transaction_state
        yield "simple", await commit("simple")
        yield "simple, a member", await commit("simple", "m", 5)
        yield "member", await commit("members", MEMBER, epoch)
        yield "old epoch", await commit("members", MEMBER, epoch - 1)
        yield "new epoch", await commit("members", MEMBER, epoch + 1)
        yield "no epoch", await commit("members", MEMBER)
        yield "other member", await commit("members", OTHER, epoch)
        yield "no member", await commit("members")
        yield "no group id", await commit("")
        yield "no topic", await commit("simple", topic_id=bytes([9] * 16), name="plums")
        yield "zero id", await commit("simple", topic_id=bytes(16), name="")
        yield "no partition", await commit("simple", partition=7)
        yield "fenced", await commit("simple", producer_epoch=-1)

    on_both(bootstraps, story)


async def topic_id_of(side: Side) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    answer: bytes = (await side.ask(request, 12)).topics[0].topic_id
    return answer
