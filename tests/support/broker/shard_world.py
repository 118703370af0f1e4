"""A cluster whose shards are driven directly: its own loop, moved turn by turn, and a disk synced only when told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from partita.broker.api.context import RequestContext
from partita.broker.config import BrokerConfig
from partita.broker.groups.runner import ShardRunner
from partita.broker.running import RunningBroker
from partita.broker.storage.data_dir import DiskStore
from partita.broker.storage.memory_store import MemoryStore
from partita.broker.topics.catalogue import OFFSETS_TOPIC, Partition
from partita.broker.wire.listeners import PLAINTEXT, Endpoint, Listener
from partita.group.requests import FetchOffsets
from partita.log.log_config import Durability
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupResponse
from partita.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from partita.protocol.primitives import Structure
from support.broker.data_plane import QuietConnection
from support.broker.raw import commit_request, join_request, sync_request

T = TypeVar("T")


class ShardWorld:
    """Groups of one offsets partition (unless `offsets_topic_num_partitions` says otherwise), on real nodes."""

    def __init__(self, path: Path | None, nodes: int, **options: object) -> None:
        self.loop = asyncio.new_event_loop()
        options.setdefault("offsets_topic_num_partitions", 1)
        store = MemoryStore() if path is None else DiskStore(str(path), Durability.SYNC)

        async def start() -> RunningBroker:
            running = RunningBroker(BrokerConfig(options), store, nodes)
            cluster = running.cluster
            await running.start([Listener(PLAINTEXT, Endpoint("127.0.0.1", 0))])
            if cluster.catalogue.get("t") is None:
                cluster.create_topic("t", 1, 1)
            cluster.ensure_state_topic(OFFSETS_TOPIC)
            await running.upkeep.stop()
            return running

        self.running = self.loop.run_until_complete(start())
        self.cluster, self.groups = self.running.cluster, self.running.services.groups()

    def close(self) -> None:
        self.loop.run_until_complete(self.running.stop())
        self.loop.close()

    def do(self, act: Callable[[], T]) -> T:
        """Call something on the loop, then let the loop do what became ready."""

        async def call() -> T:
            result = act()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(call())

    def runner(self, index: int = 0) -> ShardRunner:
        return self.groups.runners[index]

    def partition(self, index: int = 0) -> Partition:
        return self.cluster.catalogue.by_name["__consumer_offsets"].partitions[index]

    def sync(self) -> None:
        """Let the disk catch up with the group log."""
        self.do(lambda: self.partition().log.flush(self.cluster.clock.now()))

    def begin(self, message: Structure, group_id: str, version: int, node: int | None = None) -> Any:
        """Ask the group's coordinator (or the node named); return its answer or a future of it."""
        runner = self.groups.runner_of(group_id)
        node_id = node or (runner.node_id if runner is not None else 1)
        ctx = self.ctx(version, node_id)
        return self.do(lambda: self.groups.ask(ctx, message, group_id))

    def ctx(self, version: int, node_id: int = 1) -> RequestContext:
        """What a handler gets for a request to a node."""
        node = self.cluster.nodes[node_id]
        return RequestContext(self.running.services, node, 0, version, client_id="c", connection=QuietConnection())

    def ask(self, message: Structure, group_id: str, version: int, node: int | None = None) -> Any:
        answer = self.begin(message, group_id, version, node)
        if isinstance(answer, asyncio.Future):
            return self.loop.run_until_complete(asyncio.wait_for(answer, 60))
        return answer

    def stable(self, group_id: str = "g", **fields: Any) -> JoinGroupResponse:
        """A stable group of one member."""
        request = join_request(group_id, **fields)
        answer = self.ask(request, group_id, 9)
        if answer.error_code == 79:
            request.member_id = answer.member_id
            answer = self.ask(request, group_id, 9)
        assert isinstance(answer, JoinGroupResponse)
        assert answer.error_code == 0
        assert self.ask(sync_request(group_id, answer), group_id, 5).error_code == 0
        return answer

    def begin_commit(self, offset: int, group_id: str = "g") -> Any:
        return self.begin(commit_request(group_id, offset), group_id, 8)

    def commit(self, offset: int, group_id: str = "g", node: int | None = None) -> int:
        return error_of(self.ask(commit_request(group_id, offset), group_id, 8, node))

    def begin_fetch(self, group_id: str = "g", *, require_stable: bool = False) -> Any:
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        return self.begin(FetchOffsets(group, require_stable=require_stable), group_id, 9)

    def committed(self, group_id: str = "g") -> int:
        """The committed offset, or minus the error code."""
        answer = self.begin_fetch(group_id)
        if isinstance(answer, asyncio.Future):
            answer = self.loop.run_until_complete(asyncio.wait_for(answer, 60))
        return -answer.error_code if answer.error_code else int(answer.topics[0].partitions[0].committed_offset)

    def heartbeat(self, joined: JoinGroupResponse, group_id: str = "g", node: int | None = None) -> int:
        request = HeartbeatRequest(group_id=group_id, generation_id=joined.generation_id, member_id=joined.member_id)
        return int(self.ask(request, group_id, 4, node).error_code)


def error_of(response: Any) -> int:
    """The error code of a response that has it on its first partition."""
    return int(response.topics[0].partitions[0].error_code)


@contextmanager
def shard_world(path: Path | None = None, nodes: int = 1, **options: object) -> Iterator[ShardWorld]:
    world = ShardWorld(path, nodes, **options)
    try:
        yield world
    finally:
        world.close()
