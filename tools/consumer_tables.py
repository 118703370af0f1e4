"""Prints the consumer's tables from the code: `python tools/consumer_tables.py > docs/consumer-tables.md`.

A test compares the file with what this prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from partita.consumer.group.member import ALLOWED_MOVES, CONSUMER_MOVES
from partita.consumer.partition_state import NEXT_STATES
from partita.consumer.reactions import REACTIONS, Reaction
from partita.consumer.sharing.holding import STAGE_MOVES

INTRO = """# Decisions of the consumer

Printed from the code by `tools/consumer_tables.py`; do not edit. The coordinator's side is in
[group-tables.md](group-tables.md).

## States of a member

As in Kafka's `AbstractCoordinator.MemberState`. A heartbeat is sent in the last two.
"""

CONSUMER_INTRO = """
With `group_protocol="consumer"` (KIP-848) the states are those of Kafka's `MemberState` for that protocol, without
PREPARE_LEAVING and LEAVING. Heartbeats are sent in JOINING, RECONCILING, ACKNOWLEDGING and STABLE; in JOINING and
ACKNOWLEDGING they do not wait for the interval.
"""


def lines() -> Iterable[str]:
    """The page, line by line."""
    yield INTRO
    yield from moves(ALLOWED_MOVES)
    yield CONSUMER_INTRO
    yield from moves(CONSUMER_MOVES)
    yield "\n## States of an assigned partition\n"
    yield "Only a partition in FETCHING is fetched. Other moves are ignored.\n"
    yield from moves(NEXT_STATES)
    yield "\n## Stages of a record that a share consumer holds\n"
    yield from (f"- {stage.name}: {stage.value}" for stage in STAGE_MOVES)
    yield ""
    yield from moves({stage: to for stage, to in STAGE_MOVES.items() if to})
    yield "\n## What the consumer does about an error code\n"
    for verb in Reaction:
        yield f"- **{verb.name}**: {verb.value}"
    for request, row in REACTIONS.items():
        yield f"\n### {request}\n"
        for verb in dict.fromkeys(row.named.values()):
            yield f"- {verb.name}: {', '.join(code.name for code, done in row.named.items() if done is verb)}"
        if row.retriable is row.final:
            yield f"- {row.final.name}: any other"
        else:
            yield f"- {row.retriable.name}: any other retriable code"
            yield f"- {row.final.name}: any other final code"


def moves(table: Mapping[Any, Iterable[Any]]) -> Iterable[str]:
    """The states that may follow each state."""
    yield from (f"- {state.name} → {', '.join(to.name for to in after)}" for state, after in table.items())


def text() -> str:
    """The whole page."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    print(text(), end="")
