"""Scripts of the clients: a producer that feeds the topic, and members that take records and answer for them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from partita.protocol.messages import share_acknowledge as ack
from partita.protocol.messages import share_fetch as fetch
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from partita.records.builder import build_batch
from partita.sim.rules.rule import must
from partita.sim.sharing.ledger import ACCEPT, REJECT, RELEASE, Ledger, Offset
from partita.sim.sharing.plan import Plan
from partita.sim.transactions.client import RETRY_MS, Client, Script, Slot, Wait
from partita.sim.world.network import Link
from partita.sim.world.world import World

TOPIC, GROUP, PARTITIONS = "t", "g", 2
GROUP_KEY = 0
FEED_MS = 400
WAIT_MS = 500
HEALED_RECORDS_MAX = 500
"""Of one fetch once faults have stopped: a single member that takes records one by one is too slow for the backlog."""
SHARE_VERSION, PRODUCE_VERSION, HEARTBEAT_VERSION = 2, 12, 1


@dataclass
class Stage:
    """One run as its clients see it."""

    world: World
    plan: Plan
    ledger: Ledger
    is_producing: bool = True
    is_healed: bool = False


@dataclass
class _Session:
    """A member's session with one node; its epoch counts on with each request."""

    epoch: int = 0
    partitions: set[int] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    """Those that the node has not heard of yet."""
    link: Link | None = None
    """The connection that opened it. It ends with this one, though the member goes on with it on the next one."""


def feed(stage: Stage, client: Client) -> Script:
    """Write batches of some records to both partitions."""
    while stage.is_producing:
        partition = stage.world.dice.between(0, PARTITIONS - 1)
        leader = yield from client.leader_of(TOPIC, partition)
        records = build_batch([(stage.world.now.wall_ms, None, b"v", ())] * stage.world.dice.between(1, 6))
        data = [PartitionProduceData(index=partition, records=records)]
        topic = TopicProduceData(name=TOPIC, partition_data=data)
        slot = yield from _ask(client, leader, ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]), 12)
        if slot.error is not None or slot.response.responses[0].partition_responses[0].error_code:
            yield from _look_again(client)
        yield client.pause_for(stage.world.dice.between(0, FEED_MS))


class Member:
    """One member: it takes from every partition, at the node that leads it."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self._stage = stage
        self._client = client
        self._name = client.name
        self._dice = stage.world.dice
        self._sessions: dict[int, _Session] = {}
        self._topic_id = b""

    def work(self) -> Script:
        """Join, then take records and answer for them until the process ends."""
        yield from self._join()
        while True:
            for partition in range(PARTITIONS):
                leader = yield from self._client.leader_of(TOPIC, partition)
                session = self._sessions.setdefault(leader, _Session())
                if partition not in session.partitions:
                    session.partitions.add(partition)
                    session.added.add(partition)
            for node, session in list(self._sessions.items()):
                yield from self._take(node, session)
            yield self._client.pause_for(self._dice.between(0, 200))

    def _join(self) -> Script:
        """Beat until partitions are assigned: then their state is there. The member does not leave."""
        epoch = 0
        while not self._topic_id:
            found: list[Any] = []
            self._client.with_coordinator(GROUP, GROUP_KEY, found.append)
            yield lambda found=found: bool(found)  # type: ignore[misc]  # mypy does not see the default
            if isinstance(found[0], int):
                beat = ShareGroupHeartbeatRequest(
                    group_id=GROUP, member_id=self._name, member_epoch=epoch, subscribed_topic_names=[TOPIC]
                )
                slot = yield from _ask(self._client, found[0], beat, HEARTBEAT_VERSION)
                answer = slot.response
                epoch = answer.member_epoch if answer is not None and not answer.error_code else 0
                if answer is None or answer.error_code:
                    self._client.forget_coordinator(GROUP, GROUP_KEY)
                elif answer.assignment is not None and answer.assignment.topic_partitions:
                    self._topic_id = answer.assignment.topic_partitions[0].topic_id
            yield self._client.pause_for(RETRY_MS)

    def _take(self, node: int, session: _Session) -> Script:
        plan, ledger = self._stage.plan, self._stage.ledger
        most = HEALED_RECORDS_MAX if self._stage.is_healed else plan.records_max
        asked_ms, unrest = self._stage.world.now.mono_ms, ledger.unrest
        topics = [
            fetch.ShareFetchTopic(
                topic_id=self._topic_id,
                partitions=[fetch.ShareFetchPartition(partition_index=number) for number in sorted(session.added)],
            )
        ]
        message = fetch.ShareFetchRequest(
            group_id=GROUP,
            member_id=self._name,
            share_session_epoch=session.epoch,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=most,
            batch_size=most,
            share_acquire_mode=int(plan.is_exact),
            topics=topics if session.added else [],
        )
        session.added.clear()
        slot = yield from self._asked(node, session, message)
        if slot is None:
            return
        parts = [part for topic in slot.responses for part in topic.partitions]
        for index, got in ((part.partition_index, got) for part in parts for got in part.acquired_records):
            for offset in range(got.first_offset, got.last_offset + 1):
                ledger.given(self._name, (index, offset), got.delivery_count, asked_ms, unrest)
        if self._client.link_to(node) is not session.link:
            ledger.session_ended(self._name)
        if any(part.error_code for part in parts):
            self._drop(node)
            yield from _look_again(self._client)
            return
        for index, got in ((part.partition_index, got) for part in parts for got in part.acquired_records):
            yield from self._answer_for(node, session, index, got.first_offset, got.last_offset)

    def _answer_for(self, node: int, session: _Session, partition: int, first: int, last: int) -> Script:
        """Accept, give back, reject or keep a range of records."""
        plan, dice = self._stage.plan, self._dice
        if self._sessions.get(node) is not session:
            return
        lot = 1.0 if self._stage.is_healed else dice.uniform(0, 1)
        if lot < plan.stalls:
            yield self._client.pause_for(int(plan.lock_ms * dice.uniform(0.8, 1.5)))
        kind = ACCEPT if lot >= plan.stalls + plan.gives_back + plan.rejects else RELEASE
        kind = REJECT if plan.stalls + plan.gives_back <= lot < plan.stalls + plan.gives_back + plan.rejects else kind
        wheres: list[Offset] = [(partition, offset) for offset in range(first, last + 1)]
        self._stage.ledger.answers(self._name, wheres, kind)
        batch = ack.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
        asked = ack.ShareAcknowledgePartition(partition_index=partition, acknowledgement_batches=[batch])
        message = ack.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self._name,
            share_session_epoch=session.epoch,
            topics=[ack.ShareAcknowledgeTopic(topic_id=self._topic_id, partitions=[asked])],
        )
        answer = yield from self._asked(node, session, message)
        if answer is not None and not answer.responses[0].partitions[0].error_code:
            self._stage.ledger.stored(wheres, kind)

    def _asked(self, node: int, session: _Session, message: Any) -> Generator[Wait, None, Any]:
        """Send a request of the session; None if there was no good answer: then the session is over."""
        slot = yield from _ask(self._client, node, message, SHARE_VERSION)
        session.epoch += 1
        if slot.error is None and not slot.response.error_code:
            session.link = session.link or self._client.link_to(node)
            return slot.response
        self._drop(node)
        yield from _look_again(self._client)
        return None

    def _drop(self, node: int) -> None:
        """The session is over, as far as the member knows; its connection closes with it."""
        self._sessions.pop(node, None)
        self._client.hang_up(node, 0)
        self._stage.ledger.session_ended(self._name)


def _ask(client: Client, node: int, message: Any, version: int) -> Generator[Wait, None, Slot]:
    slot = client.ask(node, message, version)
    yield slot.is_done
    must(slot.is_done(), "SI6", "a client goes on without an answer")
    return slot


def _look_again(client: Client) -> Script:
    """Ask for the leaders anew."""
    done: list[bool] = []
    client.refresh([TOPIC], lambda: done.append(True))
    yield lambda: bool(done)
    yield client.pause_for(RETRY_MS)
