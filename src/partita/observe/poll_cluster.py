"""Polls a cluster: everything every 10 s, and the groups that users view every second.

Requests are batched: one per coordinator for many groups, one per leader for many partitions. A node, partition or
group that cannot be looked at keeps what was seen of it before, with the name of the error; the rest goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from partita.admin.client import AsyncAdmin
from partita.admin.share_groups import SHARE
from partita.admin.streams_groups import STREAMS
from partita.errors import KafkaError
from partita.net.cluster import Cluster
from partita.net.errors import Disconnected, VersionMismatch
from partita.now import Clock
from partita.observe import batched
from partita.observe.batched import CLASSIC, CONSUMER
from partita.observe.observed import Observed
from partita.observe.seen import CommitSeen, GroupSeen, LogSeen, NodeSeen, TopicPartition, TopicSeen
from partita.protocol.error_codes import ErrorCode
from partita.system_clock import SystemClock

VIEWED_EVERY_S, ALL_EVERY_S, SLOW_EVERY_S = 1.0, 10.0, 60.0
GROUPS_AT_ONCE = 100
"""Pages are answered between so many groups."""
T = TypeVar("T")
logger = logging.getLogger("partita.observe")


class ClusterPoller:
    """Fills an `Observed`. `await run()` goes on until cancelled; `await look()` looks once at everything."""

    def __init__(
        self,
        options: Mapping[str, Any],
        observed: Observed,
        clock: Clock | None = None,
        *,
        wants: Callable[[str], bool] = lambda group_id: True,
    ) -> None:
        self._options = {"default.api.timeout.ms": 5_000, "client.id": "partita-dashboard", **options}
        AsyncAdmin(self._options)  # raises ConfigError here rather than in the background
        self.observed = observed
        self._clock = clock or SystemClock()
        self._admin: AsyncAdmin | None = None
        self._slow_at_ms = 0
        self._wants = wants
        self._silent: dict[int, batched.Silent] = {}
        """The nodes that took too long in this look: they are not asked again before the next one."""
        self.on_pass: list[Callable[[Observed], Awaitable[None]]] = []
        """Called after every look at everything."""

    @property
    def admin(self) -> AsyncAdmin:
        """The admin client that is connected. Raises Disconnected while none is."""
        if self._admin is None:
            raise Disconnected(self.observed.trouble or "not connected yet")
        return self._admin

    async def run(self) -> None:
        """Look at everything every 10 s, and at groups on view every second. Never ends by itself."""
        loop = asyncio.get_running_loop()
        all_at = loop.time()
        try:
            while True:
                began = loop.time()
                if began >= all_at:
                    all_at = began + (ALL_EVERY_S if await self._safely(self.look) else VIEWED_EVERY_S)
                else:
                    await self._safely(self.look_at_viewed)
                await asyncio.sleep(max(0.05, began + VIEWED_EVERY_S - loop.time()))
        finally:
            await self.close()

    async def close(self) -> None:
        """Disconnect."""
        if self._admin is not None:
            await self._admin.close()
            self._admin = None

    async def look_safely(self) -> bool:
        """Poll everything once; a failure is stored in `observed.trouble`, and False is returned."""
        return await self._safely(self.look)

    async def _safely(self, look: Callable[[], Awaitable[None]]) -> bool:
        """Poll once; an unreachable cluster is reported to the readers and does not stop the loop."""
        try:
            await look()
        except (KafkaError, OSError, TimeoutError, ValueError) as error:
            self.observed.trouble = str(error) or type(error).__name__
            logger.info("the cluster cannot be looked at: %s", error)
            self.observed.publish(self.observed.seen_ms)
            return False
        return True

    # One look

    async def look(self) -> None:
        """Look at everything once. Raises KafkaError if no broker answers at all."""
        if self._admin is None:
            admin = AsyncAdmin(self._options)
            await admin.start()
            self._admin = admin
        cluster, seen = self._admin.cluster, self.observed
        self._silent.clear()
        await cluster.refresh(None)
        now_ms = self._clock.now().wall_ms
        self._take_nodes(cluster)
        await self._take_topics(cluster, slow=now_ms >= self._slow_at_ms)
        if now_ms >= self._slow_at_ms:
            self._slow_at_ms = now_ms + int(SLOW_EVERY_S * 1000)
        await self._take_groups(cluster)
        await self._take_transactions(cluster)
        seen.trouble = None
        seen.history.began_ms = seen.history.began_ms or now_ms
        seen.publish(self._clock.now().wall_ms)
        for listener in self.on_pass:
            await listener(seen)

    async def look_at_viewed(self) -> None:
        """Look again at the groups on view and the ends of their logs. Nodes that failed last time are left out."""
        viewed = self.observed.viewed(self._clock.now().wall_ms)
        if not viewed or self._admin is None:
            return
        cluster = self._admin.cluster
        by_node: dict[int, list[GroupSeen]] = {}
        for name in viewed:
            group = self.observed.groups[name]
            node = self.observed.nodes.get(group.coordinator)
            if node is not None and node.error is None:
                by_node.setdefault(group.coordinator, []).append(group)
        keys = {(c.topic, c.partition) for name in viewed for c in self.observed.groups[name].commits}
        await self._take_ends(cluster, keys)
        await batched.each_node(by_node, lambda node: self._describe(cluster, node, by_node[node]))
        self.observed.publish(self._clock.now().wall_ms)

    def _take_nodes(self, cluster: Cluster) -> None:
        seen = self.observed
        seen.cluster_id, seen.controller_id = cluster.view.cluster_id, cluster.view.controller_id
        nodes: dict[int, NodeSeen] = {}
        for node in cluster.view.nodes.values():
            known = seen.nodes.get(node.id) or NodeSeen(node.id, node.host, node.port)
            nodes[node.id] = replace(known, host=node.host, port=node.port, rack=node.rack)
        for gone in seen.nodes.keys() - nodes.keys():
            nodes[gone] = replace(seen.nodes[gone], error="not in the cluster's metadata any more")
        seen.nodes = dict(sorted(nodes.items()))

    def _heard(self, node: int, error: KafkaError | None) -> None:
        """A node answered, or failed to."""
        known = self.observed.nodes.get(node)
        if known is None:
            return
        if error is not None:
            self.observed.nodes[node] = replace(known, error=str(error))
            return
        connection = self.admin.cluster.pool.open_connection(node)
        apis = known.apis if connection is None else len(connection.versions)
        self.observed.nodes[node] = replace(known, apis=apis, error=None, seen_ms=self._clock.now().wall_ms)

    async def _each(self, nodes: Iterable[int], call: Callable[[int], Awaitable[T]]) -> dict[int, T | KafkaError]:
        """Ask all nodes at the same time, but for those that were silent in this look: their error is their answer."""
        answers = await batched.each_node([node for node in nodes if node not in self._silent], call)
        silent = {node: self._silent[node] for node in nodes if node in self._silent}
        self._silent |= {node: answer for node, answer in answers.items() if isinstance(answer, batched.Silent)}
        return {**answers, **silent}

    # Topics

    async def _take_topics(self, cluster: Cluster, *, slow: bool) -> None:
        seen = self.observed
        logs: dict[TopicPartition, LogSeen] = {}
        for view in cluster.view.topics.values():
            for part in view.partitions:
                before = seen.logs.get((view.name, part.partition)) or LogSeen(view.name, part.partition)
                error = batched.error_name(part.error_code) if part.error_code else None
                if error is None and part.leader not in cluster.view.nodes:
                    error = ErrorCode.LEADER_NOT_AVAILABLE.name
                logs[view.name, part.partition] = replace(
                    before, leader=part.leader, replicas=part.replicas, isr=part.isr, error=error
                )
        for gone in seen.logs.keys() - logs.keys():
            seen.history.forget_partition(gone)
        seen.logs = logs
        await self._take_ends(cluster, [key for key, log in logs.items() if log.error is None])
        if slow:
            await self._take_ends(cluster, [key for key, log in seen.logs.items() if log.error is None], oldest=True)
        retention = await self._retention(cluster) if slow else {}
        topics = {}
        for view in sorted(cluster.view.topics.values(), key=lambda view: view.name):
            known = seen.topics.get(view.name)
            options = retention.get(view.name)
            topics[view.name] = TopicSeen(
                view.name,
                view.is_internal,
                tuple(seen.logs[view.name, part.partition] for part in view.partitions),
                _milliseconds(options) if options is not None else known.retention_ms if known else None,
                options.get("cleanup.policy") if options is not None else known.cleanup_policy if known else None,
                batched.error_name(view.error_code) if view.error_code else None,
            )
        seen.topics = topics

    async def _take_ends(self, cluster: Cluster, keys: Iterable[TopicPartition], *, oldest: bool = False) -> None:
        """Ask leaders for the ends of these logs, or for their oldest records."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in keys:
            log = self.observed.logs.get(key)
            if log is not None and log.leader in cluster.view.nodes:
                by_leader.setdefault(log.leader, []).append(key)
        timestamp = batched.OLDEST if oldest else batched.LATEST
        answers = await self._each(
            by_leader, lambda node: batched.positions_at(cluster, node, by_leader[node], timestamp)
        )
        now_ms = self._clock.now().wall_ms
        for node, answer in answers.items():
            self._heard(node, answer if isinstance(answer, KafkaError) else None)
            for key in by_leader[node]:
                if isinstance(answer, KafkaError):
                    self.observed.logs[key] = replace(self.observed.logs[key], error=f"node {node}: {answer}")
                elif key in answer:
                    self._take_position(key, answer[key], now_ms, oldest=oldest)

    def _take_position(self, key: TopicPartition, position: batched.Position, now_ms: int, *, oldest: bool) -> None:
        log = self.observed.logs[key]
        if position.error is not None:
            self.observed.logs[key] = replace(log, error=position.error)
        elif oldest:
            is_empty = position.offset < 0
            start, at_ms = (log.end, None) if is_empty else (position.offset, position.timestamp)
            self.observed.logs[key] = replace(log, start=start, oldest_ms=at_ms)
        else:
            self.observed.take_log(replace(log, end=position.offset, error=None), now_ms)

    async def _retention(self, cluster: Cluster) -> dict[str, dict[str, str | None]]:
        try:
            return await batched.retention_of(cluster, sorted(cluster.view.topics))
        except (KafkaError, TimeoutError) as error:
            logger.info("options of topics cannot be read: %s", error)
            return {}

    # Groups

    async def _take_groups(self, cluster: Cluster) -> None:
        """List the groups of every node, then describe them; those of a node that fails stay as they were."""
        seen = self.observed
        listed = await self._each(cluster.view.nodes, lambda node: batched.groups_of(cluster, node))
        by_node: dict[int, list[GroupSeen]] = {}
        present: set[str] = set()
        for node, answer in listed.items():
            self._heard(node, answer if isinstance(answer, KafkaError) else None)
            for told in () if isinstance(answer, KafkaError) else answer:
                if not self._wants(told.group_id):
                    continue
                present.add(told.group_id)
                kind = told.group_type.lower() or CLASSIC
                fresh = GroupSeen(told.group_id, told.group_state, kind, told.protocol_type, "", node)
                by_node.setdefault(node, []).append(fresh)
        failed = {node: answer for node, answer in listed.items() if isinstance(answer, KafkaError)}
        for name, group in list(seen.groups.items()):
            if name in present:
                continue
            if group.coordinator in failed or group.coordinator not in listed:
                error = failed.get(group.coordinator) or f"node {group.coordinator} is not in the cluster"
                seen.groups[name] = replace(group, error=f"coordinator: {error}")
            else:
                seen.drop_group(name)
        await batched.each_node(by_node, lambda node: self._describe(cluster, node, by_node[node]))

    async def _describe(self, cluster: Cluster, node: int, groups: list[GroupSeen]) -> None:
        """Describe groups of one coordinator and read their commits. A failure is written onto each of them."""
        of_type: dict[str, list[str]] = {}
        for group in groups:
            of_type.setdefault(group.type, []).append(group.group_id)
        others = {group.group_id: group for group in groups if group.type not in (CLASSIC, CONSUMER)}
        described: dict[str, GroupSeen] = {}
        try:
            for kind in (CLASSIC, CONSUMER, STREAMS):
                if kind in of_type:
                    described |= await batched.describe(cluster, node, kind, of_type[kind])
            commits = await batched.commits_of(cluster, node, list(described)) if described else {}
            if share := of_type.get(SHARE):
                with suppress(VersionMismatch):  # brokers before 4.1 list share groups and do not describe them so
                    shared = await batched.describe(cluster, node, SHARE, share)
                    commits |= await batched.starts_of(cluster, node, share)
                    described |= shared
        except KafkaError as error:
            self._heard(node, error)
            for group in groups:
                before = self.observed.groups.get(group.group_id, group)
                self.observed.groups[group.group_id] = replace(before, error=f"node {node}: {error}")
            return
        now_ms = self._clock.now().wall_ms
        for number, (name, group) in enumerate({**others, **described}.items(), 1):
            self._take_group(group, commits.get(name, []), now_ms)
            if number % GROUPS_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _take_group(self, group: GroupSeen, commits: list[batched.Committed] | str, now_ms: int) -> None:
        seen = self.observed
        before = seen.groups.get(group.group_id)
        if group.error is not None:
            seen.groups[group.group_id] = replace(before or group, error=group.error)
            return
        if isinstance(commits, str):
            kept, error = (before.commits if before is not None else ()), f"offsets: {commits}"
        else:
            kept, error = _commits(before, commits, now_ms), None
        seen.take_group(replace(group, commits=kept, seen_ms=now_ms, error=error))

    # Transactions

    async def _take_transactions(self, cluster: Cluster) -> None:
        seen = self.observed
        answers = await self._each(cluster.view.nodes, lambda node: batched.transactions_of(cluster, node))
        found = {}
        errors = []
        for node, answer in answers.items():
            if isinstance(answer, VersionMismatch):
                errors.append("these brokers do not list transactions")
            elif isinstance(answer, KafkaError):
                errors.append(f"node {node}: {answer}")
                found.update(
                    {
                        name: replace(known, error=str(answer))
                        for name, known in seen.transactions.items()
                        if known.coordinator == node
                    }
                )
            else:
                found.update({transaction.transactional_id: transaction for transaction in answer})
        seen.transactions = dict(sorted(found.items()))
        seen.transactions_error = errors[0] if errors else None


def _commits(before: GroupSeen | None, told: list[batched.Committed], now_ms: int) -> tuple[CommitSeen, ...]:
    """The commits with the time at which each was first seen where it is."""
    known = {(c.topic, c.partition): c for c in before.commits} if before is not None else {}
    kept = []
    for commit in told:
        old = known.get((commit.topic, commit.partition))
        moved_ms = old.moved_ms if old is not None and old.offset == commit.offset else now_ms
        kept.append(CommitSeen(commit.topic, commit.partition, commit.offset, commit.metadata, moved_ms, commit.lag))
    return tuple(kept)


def _milliseconds(options: Mapping[str, str | None]) -> int | None:
    with suppress(TypeError, ValueError):
        return int(options.get("retention.ms") or "")
    return None
