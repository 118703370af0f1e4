"""The one transaction of a task that writes exactly once: its id taken, its marker read, its rows and marker committed.

The rules are those of `partita.producer.transactions`; the meaning of markers is decided in
`partita.spark.planning.markers`. All methods run in the cluster's loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import nullcontext

from partita.errors import KafkaError, error_for
from partita.net.cluster import Cluster
from partita.net.errors import VersionMismatch
from partita.producer.config import ProducerConfig
from partita.producer.shell.transacting import carry_out
from partita.producer.transactions.calls import OPEN, TRANSACTION, Call, Member, TxnOffset
from partita.producer.transactions.core import Transactions
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_transactions import DescribeTransactionsRequest
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from partita.spark.planning.markers import Marker
from partita.spark.settings.positions import TopicPartition

STABLE_FROM, NAMES_UP_TO = 7, 9
"""Versions of OffsetFetch: the first that can wait for pending offsets, the last that speaks of topic names."""
PRODUCE_ADDED_UP_TO, PRODUCE_BY_NAME = 11, 12
AT_REST = ("CompleteCommit", "CompleteAbort")
WAIT_S_MAX = 1.0


class TaskTransaction:
    """Give it to a `TopicProducer` to write in."""

    def __init__(self, cluster: Cluster, transactional_id: str, *, timeout_ms: int, max_block_ms: int) -> None:
        self._cluster = cluster
        self._max_block_ms = max_block_ms
        self._state = Transactions(
            ProducerConfig.of(
                bootstrap_servers="none:0",
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                retry_backoff_ms=cluster.config.retry_backoff_ms,
                retry_backoff_max_ms=cluster.config.retry_backoff_max_ms,
            )
        )

    @property
    def transactional_id(self) -> str:
        """The id that every request names."""
        return self._state.transactional_id

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch, after `take`."""
        assert self._state.producer is not None, "the id is taken before anything is written"
        return self._state.producer

    @property
    def produce_version_max(self) -> int:
        """The highest version of Produce that may carry its batches."""
        return PRODUCE_BY_NAME if self._state.is_version_2 else PRODUCE_ADDED_UP_TO

    async def is_at_rest(self) -> bool:
        """Whether no attempt that has the id can still commit.

        True if none ever took the id, or if the last transaction's end is in every log. Brokers before release 3.0 do
        not report that; then False. Raises KafkaError.
        """
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])

        async def once() -> bool:
            connection = await self._cluster.coordinator_connection(self.transactional_id, TRANSACTION)
            try:
                answer = await connection.send(request)
            except VersionMismatch:
                return False
            except KafkaError:
                self._cluster.forget_coordinator(self.transactional_id, TRANSACTION)
                raise
            (told,) = answer.transaction_states
            if told.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return True
            if told.error_code:
                self._cluster.forget_coordinator(self.transactional_id, TRANSACTION)
                raise error_for(told.error_code, f"describing the transactional id {self.transactional_id!r}")
            return told.transaction_state in AT_REST

        return await self._cluster.retry(once, timeout_ms=self._max_block_ms)

    async def take(self) -> None:
        """Take the id: earlier attempts of the task are fenced, and their open transactions aborted first."""
        await self._finish(self._state.init())

    async def begin(self) -> None:
        """Open the transaction; nothing is sent."""
        self._state.begin()

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Make the partitions part of the transaction, where brokers leave that to clients. Raises KafkaError."""
        self._state.record_taken()
        wanted = list(partitions)
        async with asyncio.timeout(self._max_block_ms / 1000):
            while not all([self._state.may_send(*at) for at in wanted]):
                await self._step()
                if (error := self._state.drops_with()) is not None:
                    raise error

    async def commit(self, marker: Marker, group: str, at: TopicPartition) -> None:
        """Commit the rows and the marker together. Raises errors that no retry cured; the outcome may be open then."""
        offsets = {at: TxnOffset(marker.offset, metadata=marker.metadata)}
        await self._finish(self._state.send_offsets(offsets, Member(group)))
        await self._finish(self._state.commit())

    async def abort(self) -> None:
        """Abort an open transaction, so that readers need not wait for the timeout. Raises KafkaError."""
        if self._state.state in OPEN:
            await self._finish(self._state.abort())

    async def _finish(self, call: Call) -> None:
        async with asyncio.timeout(self._max_block_ms / 1000):
            while not call.is_done:
                await self._step()
        self._state.heard(call)
        if call.error is not None:
            raise call.error

    async def _step(self) -> None:
        """Send the one request that is due, or wait for its time."""
        ask, wait_ms = self._state.poll(int(asyncio.get_running_loop().time() * 1000), has_unfinished=False)
        if ask is not None:
            await carry_out(ask, self._state, self._cluster, nullcontext())
        elif wait_ms > 0:
            await asyncio.sleep(min(wait_ms / 1000, WAIT_S_MAX))


async def read_marker(cluster: Cluster, group: str, *, timeout_ms: int) -> Marker | None:
    """Return the newest marker of a group, once no transaction holds it back; None without one.

    A first marker that is pending is not seen: asked for all partitions, brokers report a pending offset only where
    one is committed already. Raises UnsupportedVersionError for brokers before 2.5, which cannot wait for pending
    offsets.
    """
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None)],
        group_id=group,
        topics=None,
        require_stable=True,
    )

    async def once() -> list[OffsetFetchResponsePartitions | OffsetFetchResponsePartition]:
        connection = await cluster.coordinator_connection(group)
        version = connection.version_for(request, NAMES_UP_TO)
        if version < STABLE_FROM:
            raise error_for(
                ErrorCode.UNSUPPORTED_VERSION, "exactlyOnce=true needs brokers of release 2.5 or later (OffsetFetch 7)"
            )
        try:
            answer = await connection.send(request, version)
        except KafkaError:
            cluster.forget_coordinator(group)
            raise
        told = answer.groups[0] if answer.groups else answer
        parts = [part for topic in told.topics for part in topic.partitions]
        code = next((c for c in (told.error_code, *(part.error_code for part in parts)) if c), 0)
        if code == ErrorCode.GROUP_ID_NOT_FOUND:
            return []
        if code:
            cluster.forget_coordinator(group)
            raise error_for(code, f"reading the marker of {group!r}")
        return list(parts)

    found = [part for part in await cluster.retry(once, timeout_ms=timeout_ms) if part.committed_offset >= 0]
    if not found:
        return None
    newest = max(found, key=lambda part: part.committed_offset)
    return Marker.of(newest.committed_offset, newest.metadata or "")


async def write_marker(cluster: Cluster, group: str, at: TopicPartition, marker: Marker) -> None:
    """Move the offset of a group without members; for the driver, when a batch is complete."""
    part = OffsetCommitRequestPartition(
        partition_index=at[1], committed_offset=marker.offset, committed_leader_epoch=-1, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=at[0], partitions=[part])],
    )

    async def once() -> None:
        connection = await cluster.coordinator_connection(group)
        try:
            answer = await connection.send(request, max_version=NAMES_UP_TO)
        except KafkaError:
            cluster.forget_coordinator(group)
            raise
        code = answer.topics[0].partitions[0].error_code
        if code:
            cluster.forget_coordinator(group)
            raise error_for(code, f"moving the marker of {group!r}")

    await cluster.retry(once)
