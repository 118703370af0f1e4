"""Calls to the share coordinator for one share partition: as messages, with retries, and errors as clients get them.

A coordinator that loads or moves answers soon, so a call that it refuses is made again after a short pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadStatePartition,
    ReadStateTopic,
)
from partita.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteStateBatch,
    WriteStatePartition,
    WriteStateTopic,
)
from partita.protocol.primitives import Message
from partita.share.partition.model import StateBatch, Write

log = logging.getLogger("partita.broker")

Persister: TypeAlias = Callable[[Message], Awaitable[Any]]
"""Asks the share coordinator. It may be slow, an answer holds an error for each share partition, and a broken
coordinator may raise. State counts as stored once a write was answered without an error; calls about one share
partition take effect in the order in which they were made. (Kafka: Persister.)"""
PAUSES_SECONDS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The pauses before a call is made again."""
_RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_TOLD = {
    **dict.fromkeys(_RETRIED, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The errors of the coordinator as clients get them; any other one is UNKNOWN_SERVER_ERROR."""
T = TypeVar("T")


class Place(NamedTuple):
    """One share partition, and the epoch of the leader that asks."""

    group_id: str
    topic_id: bytes
    partition: int
    leader_epoch: int


class Read(NamedTuple):
    """The stored state; `start` is -1 where none was decided."""

    state_epoch: int
    start: int
    batches: tuple[StateBatch, ...]


async def read_state(persister: Persister, place: Place) -> Read | ErrorCode:
    """Return the stored state, or the error for clients."""
    partition = ReadStatePartition(partition=place.partition, leader_epoch=place.leader_epoch)
    request = ReadShareGroupStateRequest(
        group_id=place.group_id, topics=[ReadStateTopic(topic_id=place.topic_id, partitions=[partition])]
    )

    async def ask() -> Read | ErrorCode:
        answer = (await persister(request)).results[0].partitions[0]
        if answer.error_code:
            return ErrorCode(answer.error_code)
        batches = (
            StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in answer.state_batches
        )
        return Read(answer.state_epoch, answer.start_offset, tuple(batches))

    return await _tried(ask, place)


async def write_state(persister: Persister, place: Place, state_epoch: int, writes: Sequence[Write]) -> ErrorCode:
    """Store writes of one share partition, in their order, as one; return the outcome for clients."""
    rows = [
        WriteStateBatch(
            first_offset=row.first, last_offset=row.last, delivery_state=row.state, delivery_count=row.delivery_count
        )
        for write in writes
        for row in write.batches
    ]
    partition = WriteStatePartition(
        partition=place.partition,
        state_epoch=state_epoch,
        leader_epoch=place.leader_epoch,
        start_offset=writes[-1].start,
        delivery_complete_count=writes[-1].completed,
        state_batches=rows,
    )
    request = WriteShareGroupStateRequest(
        group_id=place.group_id, topics=[WriteStateTopic(topic_id=place.topic_id, partitions=[partition])]
    )

    async def ask() -> ErrorCode:
        return ErrorCode((await persister(request)).results[0].partitions[0].error_code)

    return await _tried(ask, place)


async def _tried(ask: Callable[[], Awaitable[T | ErrorCode]], place: Place) -> T | ErrorCode:
    """Call, and call again while the coordinator is not there."""
    outcome: T | ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR
    for pause in (*PAUSES_SECONDS, None):
        try:
            outcome = await ask()
        except Exception:
            log.exception("the state of share group %r, partition %d, is out of reach", place.group_id, place.partition)
            return ErrorCode.UNKNOWN_SERVER_ERROR
        if outcome not in _RETRIED or pause is None:
            break
        await asyncio.sleep(pause)
    if not isinstance(outcome, ErrorCode) or outcome is ErrorCode.NONE:
        return outcome
    return _TOLD.get(outcome, ErrorCode.UNKNOWN_SERVER_ERROR)
