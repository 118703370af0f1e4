"""Share groups through the broker's handlers, on a broker without sockets and a share coordinator in memory."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from partita.broker.storage.store import Store
from partita.protocol.messages import share_acknowledge as ack
from partita.protocol.messages import share_fetch as fetch
from partita.records.builder import build_batch
from partita.records.header import iter_batches
from support.broker.data_plane import QuietConnection
from support.broker.transactions import TransactionPlane
from support.share.persister import MemoryPersister, State

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0
Ack = tuple[int, ...]
"""First and last offset, then the types."""


class SharePlane(TransactionPlane):
    """Topics t and u with two partitions each; group `g` is initialized and begins at the earliest record."""

    def __init__(self, store: Store | None = None, persister: MemoryPersister | None = None, **options: object) -> None:
        super().__init__(store, 1, **options)
        self.persister = persister or MemoryPersister("g")
        self.services.persister = self.persister.answer
        self.setting("share.auto.offset.reset", "earliest")

    def setting(self, name: str, value: str | int, group: str = "g") -> None:
        """Give a group a setting of its own, without its checks."""
        groups = self.services.groups()
        own = dict(self.cluster.catalogue.kept.get("group-config", {}).get(group, {}))
        groups.group_configured(group, {**own, name: value})

    def close(self) -> None:
        self.services.node_stopped(self.node.node_id)
        self.loop.run_until_complete(asyncio.sleep(0))
        super().close()

    @property
    def t(self) -> bytes:
        return self.cluster.catalogue.by_name["t"].topic_id

    @property
    def state(self) -> State:
        """The stored state of t-0."""
        return self.persister.of(("g", self.t, 0))

    def put(self, count: int, *, batches: int = 1, partition: int = 0, ms: int | None = None) -> None:
        """Append batches of so many records to a partition of t."""
        stamp = self.cluster.clock.now().wall_ms if ms is None else ms
        for _ in range(batches):
            assert self.produce(build_batch([(stamp, None, b"v", ())] * count), partition=partition).error_code == 0

    def member(self, member_id: str = "m", group: str = "g") -> ShareMember:
        return ShareMember(self, member_id, group)

    def settle(self) -> None:
        """Let loads and writes end that need no time."""
        for _ in range(20):
            self.turn()

    def advance(self, ms: int) -> None:
        self.run(lambda: self.running.advance_clock(ms))
        self.settle()


class ShareMember:
    """A share consumer's requests. It counts its session's epoch, and has a connection of its own."""

    def __init__(self, plane: SharePlane, member_id: str, group: str) -> None:
        self.plane = plane
        self.group = group
        self.member_id = member_id
        self.epoch = 0
        self.connection = QuietConnection()

    def request(self, *partitions: int, acks: dict[int, list[Ack]] | None = None, **fields: Any) -> Any:
        """A ShareFetch of partitions of t, with acknowledgements by partition."""
        given = acks or {}
        topic = fields.pop("topic_id", self.plane.t)
        asked = [
            fetch.ShareFetchPartition(
                partition_index=index,
                acknowledgement_batches=[
                    fetch.AcknowledgementBatch(first_offset=each[0], last_offset=each[1], acknowledge_types=[*each[2:]])
                    for each in given.get(index, [])
                ],
            )
            for index in dict.fromkeys((*partitions, *given))
        ]
        defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        topics = [fetch.ShareFetchTopic(topic_id=topic, partitions=asked)] if asked else []
        return fetch.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=fields.pop("epoch", self.epoch),
            topics=topics,
            **{**defaults, **fields},
        )

    def begin(self, request: Any, handler: str = "share_fetch", version: int = 2) -> Any:
        """Send a request; return the answer, or the future of one that waits. The epoch counts on."""
        before, self.plane.connection = self.plane.connection, self.connection
        answer = self.plane.begin(handler, version, request)
        self.plane.connection = before
        self.plane.settle()
        if isinstance(answer, asyncio.Future) and answer.done() and not answer.cancelled():
            answer = answer.result()
        self.epoch = request.share_session_epoch + 1
        return answer

    def fetch(self, *partitions: int, version: int = 2, **fields: Any) -> Any:
        """A ShareFetch and its answer, at once unless `max_wait_ms` is given."""
        answer = self.begin(self.request(*partitions, **fields), version=version)
        return self.plane.loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer

    def open(self, *partitions: int, **fields: Any) -> Any:
        """Begin a session; return its first answer."""
        self.epoch = 0
        first = self.fetch(*(partitions or (0,)), **fields)
        assert first.error_code == 0, first
        return first

    def acknowledge(self, *acks: Ack, partition: int = 0, version: int = 2, **fields: Any) -> Any:
        """Acknowledge records of one partition of t; return the whole answer."""
        return self.settled(
            self.begin(self.acknowledgement(*acks, partition=partition, **fields), "share_acknowledge", version)
        )

    def acknowledgement(self, *acks: Ack, partition: int = 0, **fields: Any) -> Any:
        batches = [
            ack.AcknowledgementBatch(first_offset=each[0], last_offset=each[1], acknowledge_types=[*each[2:]])
            for each in acks
        ]
        asked = ack.ShareAcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)
        topic = ack.ShareAcknowledgeTopic(topic_id=fields.pop("topic_id", self.plane.t), partitions=[asked])
        return ack.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=fields.pop("epoch", self.epoch),
            topics=[topic],
            **fields,
        )

    def settled(self, answer: Any) -> Any:
        return self.plane.loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer

    def ack(self, *acks: Ack, **fields: Any) -> int:
        """The code of the partition that is acknowledged."""
        answer = self.acknowledge(*acks, **fields)
        assert answer.error_code == 0, answer
        return int(answer.responses[0].partitions[0].error_code)


def acquired(answer: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    """What a partition gave: first and last offset, delivery count."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for part in topic.partitions
        if part.partition_index == partition
        for each in part.acquired_records
    ]


def codes(answer: Any) -> dict[int, int]:
    """The code of each partition in an answer."""
    return {part.partition_index: part.error_code for topic in answer.responses for part in topic.partitions}


def sent(answer: Any) -> list[tuple[int, int]]:
    """First and last offset of each batch that was sent."""
    return [
        (header.base_offset, header.last_offset)
        for topic in answer.responses
        for part in topic.partitions
        for header, _ in iter_batches(part.records or b"")
    ]


@contextmanager
def share_plane(
    store: Store | None = None, persister: MemoryPersister | None = None, **options: object
) -> Iterator[SharePlane]:
    """A broker without sockets, for one block."""
    plane = SharePlane(store, persister, **options)
    try:
        yield plane
    finally:
        plane.close()
