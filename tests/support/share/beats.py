"""Share group members over a raw connection."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from support.broker.raw import WITHIN_SECONDS, Raw


def share_beat(raw: Raw, member: str, epoch: int, topics: Sequence[str] | None = None, *, group: str = "g") -> Any:
    """The answer to one heartbeat."""
    return raw.ask(
        ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=None if topics is None else list(topics),
        ),
        1,
    )


def share_join(raw: Raw, member: str = "a", topics: Sequence[str] = ("t",), *, group: str = "g") -> Any:
    """The answer of the heartbeat that gives the member its partitions.

    The broker's assignment interval has to be 0. It takes some heartbeats until a topic's state is there.
    """
    raw.find(group)
    answer = share_beat(raw, member, 0, topics, group=group)
    end = time.monotonic() + WITHIN_SECONDS
    while time.monotonic() < end:
        if answer.error_code or (answer.assignment is not None and answer.assignment.topic_partitions):
            return answer
        answer = share_beat(raw, member, answer.member_epoch, topics, group=group)
    raise AssertionError(f"no partitions within {WITHIN_SECONDS} s: {answer}")
