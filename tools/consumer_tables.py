"""Prints the consumer's tables from the code: `python tools/consumer_tables.py > docs/consumer-tables.md`.

A test compares the file with what this prints.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.consumer.group.member import ALLOWED_MOVES, CONSUMER_MOVES
from partita.consumer.partition_state import NEXT_STATES
from partita.consumer.reactions import REACTIONS, Reaction

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
    yield "| from | to |\n|---|---|"
    for state, targets in ALLOWED_MOVES.items():
        yield f"| {state.name} | {', '.join(target.name for target in targets)} |"
    yield CONSUMER_INTRO
    yield "| from | to |\n|---|---|"
    for state, targets in CONSUMER_MOVES.items():
        yield f"| {state.name} | {', '.join(target.name for target in targets)} |"
    yield "\n## States of an assigned partition\n"
    yield "Only a partition in FETCHING is fetched. Other moves are ignored.\n"
    yield "| from | to |\n|---|---|"
    for before, after in NEXT_STATES.items():
        yield f"| {before.name} | {', '.join(to.name for to in after)} |"
    yield "\n## What the consumer does about an error code\n"
    for verb in Reaction:
        yield f"- **{verb.name}**: {verb.value}"
    for request, row in REACTIONS.items():
        yield f"\n### {request}\n\n| code | reaction |\n|---|---|"
        for code, verb in row.named.items():
            yield f"| {code.name} ({int(code)}) | {verb.name} |"
        if row.retriable is row.final:
            yield f"| any other | {row.final.name} |"
        else:
            yield f"| any other retriable code | {row.retriable.name} |"
            yield f"| any other final code | {row.final.name} |"


def text() -> str:
    """The whole page."""
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    print(text(), end="")
