"""The only member of a streams group, raw on the wire: it reads one topic and keeps one changelog."""

from __future__ import annotations

from typing import Any

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsEndpoint,
    StreamsGroupHeartbeatRequest,
    StreamsSubtopology,
    StreamsTopicInfo,
    StreamsTopology,
)
from support.broker.raw import Raw, commit_request

AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.max.session.timeout.ms": "3600000",
    "group.streams.session.timeout.ms": "3600000",
}
"""Options of a broker with which the member gets its tasks at once and stays without heartbeats."""
MEMBER = "member-00000000-0000-4000-8000-000000000001"
NOT_YET = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class StreamsApplication:
    """A member with a task for each of the topic's two partitions once `join` returns; its commits are at 1."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._port = int(bootstrap.rpartition(":")[2])
        self.group, self.topic, self.changelog = group, topic, f"{group}-changelog"

    def join(self) -> None:
        changelog = StreamsTopicInfo(name=self.changelog)
        sub = StreamsSubtopology(
            subtopology_id="0", source_topics=[self.topic], state_changelog_topics=[changelog]
        )  # fmt: skip
        join = StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=MEMBER, rebalance_timeout_ms=60_000, process_id="process-1",
            active_tasks=[], standby_tasks=[], warmup_tasks=[], client_tags=[],
            user_endpoint=StreamsEndpoint(host="localhost", port=7000),
            topology=StreamsTopology(epoch=1, subtopologies=[sub]),
        )  # fmt: skip
        with Raw(self._port, "app-client") as raw:
            raw.find(self.group)
            while (answer := raw.ask(join, 0)).error_code in NOT_YET:
                raw.find(self.group)
            assert answer.error_code == 0, answer
            while raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name=self.changelog)]), 9).topics[0].error_code:
                pass
            while not answer.active_tasks:
                answer = self._beat(raw, answer.member_epoch)
            for partition in range(2):
                epoch = answer.member_epoch
                commit = commit_request(
                    self.group, 1, self.topic, partition, member_id=MEMBER, generation_id_or_member_epoch=epoch
                )
                assert raw.ask(commit, 9).topics[0].partitions[0].error_code == 0

    def leave(self) -> None:
        with Raw(self._port) as raw:
            self._beat(raw, -1)

    def _beat(self, raw: Raw, epoch: int) -> Any:
        answer = raw.ask(StreamsGroupHeartbeatRequest(group_id=self.group, member_id=MEMBER, member_epoch=epoch), 0)
        assert answer.error_code == 0, answer
        return answer
