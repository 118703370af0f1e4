"""Questions to the share coordinator that follow from a step: the shell asks them, and the outcome is a later step.

A request that waits for one keeps its token here, so that it is answered once, also when the shard ends before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from partita.group.contract import STATES, GroupRequest, Lane, Token
from partita.group.state.turn import Turn
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteStatePartition,
    DeleteStateTopic,
)
from partita.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStatePartition,
    InitializeStateTopic,
)
from partita.protocol.primitives import Message, Structure

Codes = Mapping[tuple[bytes, int], ErrorCode]
"""Error codes by share partition."""


class AskStates(NamedTuple):
    """One question. `then(turn, asked, response)` takes the answer; the response is None if there was none."""

    group_id: str
    message: Message
    then: Callable[[Turn, AskStates, Any], None]
    waiting: int | None = None
    """The number of the request that waits for it."""

    @property
    def lane(self) -> Lane:
        """The lane of all of them."""
        return STATES

    def run(self) -> object:
        """Never called: the shell asks the share coordinator instead."""
        raise AssertionError("the shell asks the share coordinator")


def ask(turn: Turn, question: AskStates) -> None:
    """Let the shell ask once the step's records are appended."""
    turn.out.start(question)


def take(turn: Turn, asked: AskStates, outcome: object) -> None:
    """Take the outcome of a question: a response, or an exception."""
    asked.then(turn, asked, None if isinstance(outcome, BaseException) else outcome)


def park(turn: Turn, token: Token, request: GroupRequest) -> int:
    """Keep the token until `answer`; return its number."""
    state = turn.state
    state.parked_count += 1
    state.parked[state.parked_count] = (token, request)
    turn.out.parked += 1
    return state.parked_count


def answer(turn: Turn, asked: AskStates, response: Structure) -> None:
    """Answer the request that waits for this question."""
    assert asked.waiting is not None, "a request waits for it"
    token, _ = turn.state.parked.pop(asked.waiting)
    turn.out.parked -= 1
    turn.out.answer(token, response)


def refuse_all(turn: Turn, error: ErrorCode) -> None:
    """Refuse every request that waits: the shard ends."""
    parked, turn.state.parked = turn.state.parked, {}
    for token, request in parked.values():
        turn.out.parked -= 1
        turn.refuse(token, request, error)


def initialize_request(
    group_id: str, state_epoch: int, starts: Mapping[bytes, Mapping[int, int]]
) -> InitializeShareGroupStateRequest:
    """Return the request that begins state; `starts` are offsets by topic id and partition."""
    topics = [
        InitializeStateTopic(
            topic_id=topic_id,
            partitions=[
                InitializeStatePartition(partition=number, state_epoch=state_epoch, start_offset=offset)
                for number, offset in sorted(partitions.items())
            ],
        )
        for topic_id, partitions in starts.items()
    ]
    return InitializeShareGroupStateRequest(group_id=group_id, topics=topics)


def delete_request(group_id: str, topics: Mapping[bytes, Iterable[int]]) -> DeleteShareGroupStateRequest:
    """Return the request that forgets the state of these partitions, by topic id."""
    return DeleteShareGroupStateRequest(
        group_id=group_id,
        topics=[
            DeleteStateTopic(
                topic_id=topic_id, partitions=[DeleteStatePartition(partition=number) for number in sorted(numbers)]
            )
            for topic_id, numbers in topics.items()
        ],
    )


def codes_of(response: Any) -> Codes:
    """Return the error code of each share partition in a response; none without one."""
    return {
        (bytes(result.topic_id), part.partition): ErrorCode(part.error_code)
        for result in (response.results if response is not None else ())
        for part in result.partitions
    }
