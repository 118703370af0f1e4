"""A cluster without sockets: handlers are called as dispatch would call them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from partita.broker.api.context import RequestContext, handled
from partita.broker.config import BrokerConfig
from partita.broker.nodes import Node
from partita.broker.running import RunningBroker
from partita.broker.storage.memory_store import MemoryStore
from partita.broker.storage.store import Store
from partita.broker.topics.catalogue import Topic
from partita.broker.wire.contract import Answerer
from partita.broker.wire.listeners import PLAINTEXT, Endpoint
from partita.broker.wire.memo import Memo
from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from partita.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from partita.security.principals import ANONYMOUS, KafkaPrincipal


class NeverPaused:
    """A memo that is always in use."""

    active = False


class QuietConnection:
    """The handler's view of a connection that stays open until `close`."""

    def __init__(self) -> None:
        self.client_host = "/127.0.0.1"
        self.client_port = 0
        self.software = ("", "")
        self.identify(ANONYMOUS)
        self.closed = False
        self.callbacks: list[Callable[[], None]] = []

    def identify(self, principal: KafkaPrincipal, *, is_lent: bool = False) -> None:
        self.principal, self.is_lent = principal, is_lent
        self.recall = Memo(pause=NeverPaused()).recall(str(principal), self.client_host)

    def refuse(self, reason: str) -> None:
        raise AssertionError(f"the peer sent nothing, but {reason}")

    def answer_with(self, answerer: Answerer) -> None:
        raise AssertionError("no handler lets another one answer")

    def mute(self, seconds: float) -> None:
        """Nothing comes by this connection by itself."""

    def on_close(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def forget(self, callback: Callable[[], None]) -> None:
        self.callbacks.remove(callback)

    def abort(self) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        for callback in list(self.callbacks):
            callback()


class DataPlane:
    """Topics, and calls to handlers."""

    def __init__(self, store: Store | None = None, nodes: int = 1, **options: object) -> None:
        self.loop = asyncio.new_event_loop()
        self.store = store or MemoryStore()
        self.connection = QuietConnection()
        given = {name.replace("_", "."): value for name, value in options.items()}

        async def make() -> RunningBroker:
            return RunningBroker(BrokerConfig(given), self.store, nodes)

        self.running = self.loop.run_until_complete(make())
        self.cluster, self.services = self.running.cluster, self.running.services
        self.services.turns.clock = lambda: 0.0  # a slice has no end, however busy the machine is
        for node in self.cluster.nodes.values():
            node.is_alive = True
            node.endpoints = {PLAINTEXT: Endpoint("localhost", 9000 + node.node_id)}
        self.running.upkeep.start()

    def close(self) -> None:
        self.loop.run_until_complete(self.running.upkeep.stop())
        self.cluster.catalogue.close()
        self.loop.close()

    @property
    def node(self) -> Node:
        return next(iter(self.cluster.nodes.values()))

    def topic(self, name: str = "t", partitions: int = 1, **settings: Any) -> Topic:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        return self.cluster.create_topic(name, partitions, 1, dotted)

    def begin(self, handler: str, version: int, request: Any, node: Node | None = None) -> Any:
        """Call a handler; return what it returns: the response, None, or a future."""
        ctx = RequestContext(self.services, node or self.node, 0, version, client_id="test", connection=self.connection)

        async def call() -> Any:
            return handled(ctx, import_module(f"partita.broker.handlers.{handler}").handle, request)

        return self.loop.run_until_complete(call())

    def ask(self, handler: str, version: int, request: Any, node: Node | None = None) -> Any:
        """Call a handler and wait for the response."""
        answer = self.begin(handler, version, request, node)
        return self.loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer

    def turn(self) -> None:
        """Let the loop do what is ready."""
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.run_until_complete(asyncio.sleep(0))

    def produce(
        self, batch: bytes | None, topic: str = "t", partition: int = 0, *, acks: int = -1, version: int = 12
    ) -> PartitionProduceResponse:
        data = [PartitionProduceData(index=partition, records=batch)]
        request = ProduceRequest(
            acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        response: ProduceResponse = self.ask("produce", version, request)
        return response.responses[0].partition_responses[0]

    def fetch(self, offset: int, version: int = 12, **fields: Any) -> PartitionData:
        """Fetch partition 0 of topic t without a session and without waiting."""
        response: FetchResponse = self.ask("fetch", version, fetch_request([("t", 0, offset)], **fields))
        return response.responses[0].partitions[0]


def fetch_request(wanted: list[tuple[str | bytes, int, int]], **fields: Any) -> FetchRequest:
    """Ask for (topic name or id, partition, offset) each."""
    partition_fields = {key: fields.pop(key) for key in PARTITION_FIELDS if key in fields}
    partition_fields.setdefault("partition_max_bytes", 1 << 20)
    topics = [
        FetchTopic(
            **({"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}),
            partitions=[FetchPartition(partition=partition, fetch_offset=offset, **partition_fields)],
        )
        for topic, partition, offset in wanted
    ]
    fields = {"max_wait_ms": 0, "min_bytes": 1, **fields}
    return FetchRequest(topics=topics, **fields)


PARTITION_FIELDS = ("partition_max_bytes", "current_leader_epoch", "last_fetched_epoch")


@contextmanager
def data_plane(store: Store | None = None, nodes: int = 1, **options: object) -> Iterator[DataPlane]:
    plane = DataPlane(store, nodes, **options)
    try:
        yield plane
    finally:
        plane.close()
