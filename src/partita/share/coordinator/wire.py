"""The state APIs' messages <-> requests of one share partition each, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from partita.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStatePartitionResult,
    DeleteStateResult,
)
from partita.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStatePartitionResult,
    InitializeStateResult,
)
from partita.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateBatch,
    ReadStatePartitionResult,
    ReadStateResult,
)
from partita.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryPartitionResult,
    ReadStateSummaryResult,
)
from partita.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStatePartitionResult,
    WriteStateResult,
)
from partita.protocol.primitives import Message
from partita.share.coordinator.model import ShareKey, ShareState, StateBatch
from partita.share.coordinator.requests import Delete, Initialize, Outcome, Read, StateRequest, Summarize, Write

Fields: TypeAlias = Any
"""A generated structure; the five APIs' differ in their classes, and in the fields of a partition."""


class _Api(NamedTuple):
    """How one API's messages are built; `fill` adds what the outcome's state has to the result of a partition."""

    response: type[Fields]
    result: type[Fields]
    partition_result: type[Fields]
    split: Callable[[ShareKey, Fields], StateRequest]
    fill: Callable[[Fields, ShareState], None]


def split(message: Message) -> Iterator[StateRequest | None]:
    """Yield a request for each share partition, and None for what else is walked; without a group there is none."""
    asked: Fields = message
    one = _APIS[type(message)].split
    for topic in asked.topics:
        yield None
        for part in topic.partitions if asked.group_id else ():
            yield one(ShareKey(asked.group_id, bytes(topic.topic_id), part.partition), part)
            yield from (None for _ in getattr(part, "state_batches", ()))


def merge(message: Message, outcomes: Sequence[Outcome]) -> Message:
    """Return the response to the message; `outcomes` go with what `split` yielded."""
    asked: Fields = message
    api = _APIS[type(message)]
    response = api.response()
    left = iter(outcomes)
    for topic in asked.topics if outcomes else ():
        rows = [_row(api, part.partition, next(left)) for part in topic.partitions]
        if rows:
            response.results.append(api.result(topic_id=topic.topic_id, partitions=rows))
    built: Message = response
    return built


def _row(api: _Api, partition: int, outcome: Outcome) -> Fields:
    row = api.partition_result(partition=partition, error_code=int(outcome.code), error_message=outcome.message)
    if outcome.state is not None:
        api.fill(row, outcome.state)
    return row


def _nothing(row: Fields, state: ShareState) -> None:
    """The API answers with an error code alone."""


def _state(row: Fields, state: ShareState) -> None:
    row.state_epoch, row.start_offset = state.state_epoch, state.start_offset
    row.state_batches = [
        ReadStateBatch(first_offset=first, last_offset=last, delivery_state=delivered, delivery_count=count)
        for first, last, delivered, count in state.batches
    ]


def _summary(row: Fields, state: ShareState) -> None:
    row.state_epoch, row.leader_epoch, row.start_offset = state.state_epoch, state.leader_epoch, state.start_offset
    row.delivery_complete_count = state.completed


def _write(key: ShareKey, part: Fields) -> Write:
    batches = tuple(
        StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in part.state_batches
    )
    return Write(key, part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count, batches)


_APIS: dict[type[Message], _Api] = {
    InitializeShareGroupStateRequest: _Api(
        InitializeShareGroupStateResponse,
        InitializeStateResult,
        InitializeStatePartitionResult,
        lambda key, part: Initialize(key, part.state_epoch, part.start_offset),
        _nothing,
    ),
    ReadShareGroupStateRequest: _Api(
        ReadShareGroupStateResponse,
        ReadStateResult,
        ReadStatePartitionResult,
        lambda key, part: Read(key, part.leader_epoch),
        _state,
    ),
    WriteShareGroupStateRequest: _Api(
        WriteShareGroupStateResponse, WriteStateResult, WriteStatePartitionResult, _write, _nothing
    ),
    DeleteShareGroupStateRequest: _Api(
        DeleteShareGroupStateResponse,
        DeleteStateResult,
        DeleteStatePartitionResult,
        lambda key, part: Delete(key),
        _nothing,
    ),
    ReadShareGroupStateSummaryRequest: _Api(
        ReadShareGroupStateSummaryResponse,
        ReadStateSummaryResult,
        ReadStateSummaryPartitionResult,
        lambda key, part: Summarize(key),
        _summary,
    ),
}
