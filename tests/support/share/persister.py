"""A share coordinator in memory: what it stores, how often it is asked, and faults on request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import read_share_group_state as read_m
from partita.protocol.messages import write_share_group_state as write_m
from partita.share.partition.model import StateBatch
from support.share.merging import merge

Place = tuple[str, bytes, int]


@dataclass
class State:
    start: int = -1
    batches: tuple[StateBatch, ...] = ()
    completed: int = 0
    leader_epoch: int = -1
    writes: list[tuple[int, int, list[StateBatch]]] = field(default_factory=list)
    """Each write: start, completed, rows."""


class MemoryPersister:
    """Every share partition of a group in `groups` is initialized; others are unknown."""

    def __init__(self, *groups: str) -> None:
        self.groups = set(groups)
        self.states: dict[Place, State] = {}
        self.refusals: list[ErrorCode] = []
        """The errors of the next writes, the first one first."""
        self.read_refusals: list[ErrorCode] = []
        self.let_go = asyncio.Event()
        """Writes wait for it."""
        self.let_go.set()

    def of(self, place: Place) -> State:
        return self.states.setdefault(place, State())

    async def answer(self, request: Any) -> Any:
        return await (self.write if isinstance(request, write_m.WriteShareGroupStateRequest) else self.read)(request)

    async def read(self, request: read_m.ReadShareGroupStateRequest) -> read_m.ReadShareGroupStateResponse:
        results = []
        for topic in request.topics:
            rows = [self._read(request.group_id, topic.topic_id, asked) for asked in topic.partitions]
            results.append(read_m.ReadStateResult(topic_id=topic.topic_id, partitions=rows))
        return read_m.ReadShareGroupStateResponse(results=results)

    def _read(self, group: str, topic_id: bytes, asked: read_m.ReadStatePartition) -> read_m.ReadStatePartitionResult:
        code = ErrorCode.INVALID_REQUEST if group not in self.groups else ErrorCode.NONE
        if self.read_refusals:
            code = self.read_refusals.pop(0)
        if code:
            return read_m.ReadStatePartitionResult(partition=asked.partition, error_code=code)
        state = self.of((group, topic_id, asked.partition))
        state.leader_epoch = max(state.leader_epoch, asked.leader_epoch)
        rows = [
            read_m.ReadStateBatch(
                first_offset=b.first, last_offset=b.last, delivery_state=b.state, delivery_count=b.delivery_count
            )
            for b in state.batches
        ]
        return read_m.ReadStatePartitionResult(partition=asked.partition, start_offset=state.start, state_batches=rows)

    async def write(self, request: write_m.WriteShareGroupStateRequest) -> write_m.WriteShareGroupStateResponse:
        await self.let_go.wait()
        results = []
        for topic in request.topics:
            rows = [self._write(request.group_id, topic.topic_id, asked) for asked in topic.partitions]
            results.append(write_m.WriteStateResult(topic_id=topic.topic_id, partitions=rows))
        return write_m.WriteShareGroupStateResponse(results=results)

    def _write(
        self, group: str, topic_id: bytes, asked: write_m.WriteStatePartition
    ) -> write_m.WriteStatePartitionResult:
        state = self.of((group, topic_id, asked.partition))
        code = self.refusals.pop(0) if self.refusals else ErrorCode.NONE
        if asked.leader_epoch < state.leader_epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
        if not code:
            rows = [
                StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
                for b in asked.state_batches
            ]
            state.start = asked.start_offset
            state.completed = asked.delivery_complete_count
            state.batches = merge(state.batches, rows, state.start)
            state.writes.append((state.start, state.completed, rows))
        return write_m.WriteStatePartitionResult(partition=asked.partition, error_code=code)
