"""A cluster as producers and admin clients use it: metadata, connections, leaders, coordinators, retries.

`request(node_id, message)` sends to one node, or to the least loaded when `node_id` is None; `request_leader` finds the
node, and looks again when the answer says that it moved. Every wait ends at `timeout_ms`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from partita.errors import KafkaError, error_for
from partita.net.broker_news import role_in
from partita.net.config import ClientConfig, backoff_ms, parse_servers
from partita.net.connection import Connection
from partita.net.errors import Disconnected
from partita.net.pool import ConnectionPool
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.metadata_view import MetadataView, Node, TopicView
from partita.protocol.primitives import Message, Request

COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Cluster:
    """`async with Cluster("localhost:9092") as cluster:`. Belongs to one event loop."""

    def __init__(self, bootstrap: str | Sequence[str], config: ClientConfig | None = None) -> None:
        self.config = config or ClientConfig()
        self.bootstrap = parse_servers(bootstrap)
        self.view = MetadataView()
        self.pool = ConnectionPool(self.config)
        self.pool.view = self.view
        self.trouble: Disconnected | None = None
        """Why no broker could be reached the last time one was looked for; None while one can be."""
        self.on_trouble: Callable[[Disconnected | None], None] | None = None
        """Called when no broker can be reached any more, and with None when one can be again.

        Brokers that have not answered yet (NoAnswerYet) may be followed by ones that have failed.
        """
        self.pool.news.role_of = self._role_of
        self._coordinators: dict[tuple[int, str], Node] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at = 0.0
        self._wanted: set[str] | None = set()

    async def __aenter__(self) -> Cluster:
        await self.refresh([])
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; requests that wait for an answer fail with Disconnected."""
        if self._refreshing is not None:
            self._refreshing.cancel()
        self.pool.close()

    # Sending

    async def request(
        self,
        node_id: int | None,
        message: Request[R],
        version: int | None = None,
        *,
        max_version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Send once. Raises Disconnected (retriable) when the node cannot be reached or answers nothing."""
        connection = await (self._any_connection() if node_id is None else self.connection(node_id))
        return await connection.send(message, version, max_version=max_version, timeout_ms=timeout_ms)

    async def connection(self, node_id: int) -> Connection:
        """The open connection to a node, made if need be."""
        node = self.view.nodes.get(node_id)
        if node is None:
            raise Disconnected(f"node {node_id} is not in the cluster as known now")
        return await self.pool.connect(node_id, node.host, node.port)

    async def request_leader(
        self, topic: str, partition: int, message: Request[R], *, timeout_ms: int | None = None
    ) -> R:
        """Send to the partition's leader; connection failures are retried until the timeout."""

        async def once() -> R:
            leader = await self.leader_for(topic, partition)
            return await self.request(leader.id, message)

        return await self.retry(once, timeout_ms=timeout_ms)

    async def coordinator_connection(self, key: str, key_type: int = 0) -> Connection:
        """The open connection to a coordinator, for callers that judge errors by themselves: one attempt.

        Raises a KafkaError; a coordinator that cannot be reached is forgotten.
        """
        node = await self.coordinator_for(key, key_type)
        try:
            return await self.pool.connect(node.id, node.host, node.port)
        except Disconnected:
            self.forget_coordinator(key, key_type)
            raise

    async def retry(self, once: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Run `once` until it raises nothing retriable, with back-off; at the timeout its last error is raised."""
        loop = asyncio.get_running_loop()
        timeout = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = loop.time() + timeout / 1000
        attempts = 0
        last: KafkaError | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await once()
            except TimeoutError:
                silent = self.pool.troubles()
                text = f"no answer within {timeout} ms" + (f": {silent}" if silent else "")
                raise last or self.trouble or Disconnected(text) from None
            except KafkaError as error:
                if not error.retriable or loop.time() >= deadline:
                    raise
                last = error
                if ErrorCode(error.code).refresh_metadata:
                    self._refreshed_at = 0.0
            config = self.config
            wait = backoff_ms(config.retry_backoff_ms, config.retry_backoff_max_ms, attempts, random.uniform) / 1000
            attempts += 1
            await asyncio.sleep(max(0.0, min(wait, deadline - loop.time())))

    # Metadata

    async def topics(self, names: Iterable[str] | None, *, create: bool = False) -> dict[str, TopicView]:
        """Return fresh metadata of these topics (None: of all)."""
        await self.refresh(names, create=create)
        if names is None:
            return dict(self.view.topics)
        return {name: self.view.topics[name] for name in names if name in self.view.topics}

    async def refresh(self, names: Iterable[str] | None = (), *, create: bool = False) -> None:
        """Ask for metadata of these topics besides those known already (None: of all). Retries until the timeout."""
        wanted = None if names is None else sorted({*names, *self.view.topics})

        async def once() -> None:
            connection = await self._any_connection()
            topics = None if wanted is None else [MetadataRequestTopic(name=name) for name in wanted]
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
            version = connection.version_for(request)
            answer = await connection.send(request, version)
            self.view.update(answer, version)
            self._refreshed_at = asyncio.get_running_loop().time()

        await self.retry(once)

    async def leader_for(self, topic: str, partition: int, *, create: bool = False) -> Node:
        """The node that leads the partition. Raises a retriable KafkaError while there is none."""
        age = asyncio.get_running_loop().time() - self._refreshed_at
        leader = self.view.leader(topic, partition)
        if leader is None or self._refreshed_at == 0.0 or age * 1000 > self.config.metadata_max_age_ms:
            await self.refresh([topic], create=create)
            leader = self.view.leader(topic, partition)
        if leader is not None:
            return leader
        known = self.view.topics.get(topic)
        if known is None or known.error_code or self.view.partition(topic, partition) is None:
            code = known.error_code if known is not None and known.error_code else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise error_for(ErrorCode(code), f"{topic}-{partition}")
        raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader now")

    def expire_metadata(self) -> None:
        """Make the next `leader_for` ask again (after NOT_LEADER_OR_FOLLOWER and the like)."""
        self._refreshed_at = 0.0

    @property
    def user(self) -> str | None:
        """Whose rights the brokers look at, as far as the settings say."""
        return self.pool.config.security.user

    # Coordinators

    async def coordinator_for(self, key: str, key_type: int = 0) -> Node:
        """The coordinator of a group (type 0) or transactional id (1), cached until `forget_coordinator`."""
        found = self._coordinators.get((key_type, key))
        if found is not None:
            return found
        connection = await self._any_connection()
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
        version = connection.version_for(request)
        answer = await connection.send(request, version)
        told: FindCoordinatorResponse | Coordinator | None = (
            answer if version < 4 else next((c for c in answer.coordinators if c.key == key), None)
        )
        if told is None:
            raise error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"no coordinator named for {key!r}")
        if told.error_code:
            text = told.error_message or f"looking for the coordinator of {key!r}"
            operation = "WRITE" if key_type else "READ"
            raise error_for(ErrorCode(told.error_code), text, operation=operation, names=[key], user=self.user)
        node = Node(told.node_id, told.host, told.port)
        self._coordinators[key_type, key] = node
        return node

    def forget_coordinator(self, key: str, key_type: int = 0) -> None:
        """Look the coordinator up again when it is needed next."""
        self._coordinators.pop((key_type, key), None)

    def _role_of(self, node_id: int) -> str:
        coordinates = (
            f"{'transactional id' if kind else 'group'} {name!r}"
            for (kind, name), node in self._coordinators.items()
            if node.id == node_id
        )
        return role_in(self.view, node_id, coordinates)

    async def _any_connection(self) -> Connection:
        try:
            connection = await self.pool.connect_any(self.view.nodes.values(), self.bootstrap)
        except Disconnected as error:
            self._heard(error)
            raise
        self._heard(None)
        return connection

    def _heard(self, trouble: Disconnected | None) -> None:
        before, self.trouble = self.trouble, trouble
        if self.on_trouble is not None and type(before) is not type(trouble):
            self.on_trouble(trouble)
