"""An attack of `attacks.py`: a KIP-848 group of 5,000 members that subscribe to a thousand topics by a pattern.

It joins, converges, and loses members, which share a thread of the broker with every other group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from convergence import Fleet, Member
from groups import wait_for_coordinator

from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from hostile import Stage

MEMBERS, TOPICS, EACH, LEAVERS = 5_000, 1_000, 5, 50
TOPICS_AT_ONCE = 250
GROUP = "huge"


def huge_group(stage: Stage) -> Iterator[None]:
    """5,000 members, each with a connection of its own."""
    raw = stage.connect()
    for start in range(0, TOPICS, TOPICS_AT_ONCE):
        topics = [
            CreatableTopic(name=f"huge-{number}", num_partitions=EACH, replication_factor=1)
            for number in range(start, start + TOPICS_AT_ONCE)
        ]
        raw.ask(CreateTopicsRequest(timeout_ms=60_000, topics=topics), 5)
    wait_for_coordinator(GROUP, stage.port)
    fleet = Fleet([Member(GROUP, stage.port, regex="huge-.*") for _ in range(MEMBERS)], TOPICS * EACH)
    yield
    fleet.join()
    fleet.leave(LEAVERS)
    fleet.close()
