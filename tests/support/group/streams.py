"""A coordinator with a streams group, driven in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.group.records.streams_group import StreamsGroup
from partita.group.requests import DescribeStreamsGroup, InternalTopic, StreamsBeat
from partita.protocol.messages.streams_group_describe import StreamsDescribedGroup
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsSubtopology,
    StreamsTopicInfo,
    StreamsTopology,
)
from support.group.consumers import World

PLAIN = StreamsTopology(epoch=1, subtopologies=[StreamsSubtopology(subtopology_id="0", source_topics=["t"])])
STATEFUL = StreamsTopology(
    epoch=1,
    subtopologies=[
        StreamsSubtopology(
            subtopology_id="0", source_topics=["t"], state_changelog_topics=[StreamsTopicInfo(name="changelog")]
        )
    ],
)


def joining(
    member: str, process: str = "p", topology: StreamsTopology = PLAIN, **given: Any
) -> StreamsGroupHeartbeatRequest:
    """The first heartbeat of a member of group "g", as it is on the wire."""
    full: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    full |= given
    return StreamsGroupHeartbeatRequest(group_id="g", member_id=member, process_id=process, topology=topology, **full)


class StreamsWorld(World):
    """One shard with streams group "g"; topic "t" has three partitions. `missing` is what the last answer misses."""

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        self.missing: Mapping[str, InternalTopic] = {}
        at_once = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
        super().__init__({"t": 3} if topics is None else topics, **(at_once | options))

    @property
    def streams(self) -> StreamsGroup:
        return self.coordinator.hard_state.streams_groups["g"]

    def check(self) -> None:
        super().check()
        for group in self.coordinator.hard_state.streams_groups.values():
            held = [task for m in group.members.values() for task in (*m.held.active, *m.revoking.active)]
            assert len(set(held)) == len(held), f"a task is active twice: {group.members}"

    def beat_streams(self, member: str, epoch: int, **given: Any) -> StreamsGroupHeartbeatResponse:
        """One heartbeat as it is on the wire."""
        request = StreamsGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch, **given)
        answer = self.ask(request, 1)
        assert isinstance(answer, StreamsBeat)
        self.missing = answer.missing
        return answer.response

    def join_streams(
        self, member: str, process: str | None = "p", topology: StreamsTopology = PLAIN, **given: Any
    ) -> StreamsGroupHeartbeatResponse:
        """The first heartbeat of a member."""
        full = {"rebalance_timeout_ms": 60_000, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []} | given
        return self.beat_streams(member, 0, process_id=process, topology=topology, **full)

    def described_streams(self) -> StreamsDescribedGroup:
        answer = self.ask(DescribeStreamsGroup("g"))
        assert isinstance(answer, StreamsDescribedGroup)
        return answer


def tasks(answer: StreamsGroupHeartbeatResponse, role: str = "active") -> list[int] | None:
    """The tasks of subtopology 0 in an answer; None: as before."""
    listed = getattr(answer, f"{role}_tasks")
    return None if listed is None else [number for each in listed for number in each.partitions]
