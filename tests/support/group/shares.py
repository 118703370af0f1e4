"""A coordinator with a share group and a share coordinator beside it, driven in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partita.group.contract import Job
from partita.group.records.share_group import ShareGroup
from partita.group.requests import DescribeShareGroup
from partita.group.share.asking import AskStates
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_group_describe import DescribedShareGroup
from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from partita.share.coordinator.coordinator import ShareConfig, ShareCoordinator
from partita.share.coordinator.requests import Outcome
from partita.share.coordinator.wire import merge, split
from support.group.consumers import World


class ShareWorld(World):
    """One shard with share group "g". The share coordinator answers at once, with `refusal` if there is one."""

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        self.refusal: ErrorCode | Exception | None = None
        self.states = ShareCoordinator(ShareConfig(), self._partitions_of)
        super().__init__(topics, **({"group_share_assignment_interval_ms": 0} | options))

    def _partitions_of(self, topic: bytes) -> int:
        facts = self.topics.get(self.topics.name_of(topic) or "")
        return 0 if facts is None else facts.partitions

    def run(self, job: Job) -> object:
        assert isinstance(job, AskStates), "share groups have no other jobs"
        if isinstance(self.refusal, Exception):
            return self.refusal
        outcomes = []
        for request in split(job.message):
            if request is None:
                continue
            if self.refusal is not None:
                outcomes.append(Outcome(self.refusal))
                continue
            outcome, records = self.states.handle(request, self.clock.now().wall_ms)
            for record in records:
                self.states.replay(record, 0)
            outcomes.append(outcome)
        return merge(job.message, outcomes)

    @property
    def share(self) -> ShareGroup:
        return self.coordinator.hard_state.share_groups["g"]

    def share_beat(
        self,
        member: str,
        epoch: int,
        topics: Sequence[str] | None = None,
        *,
        rack: str | None = None,
        group: str = "g",
    ) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=None if topics is None else list(topics),
        )
        answer = self.ask(request, 1)
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        return answer

    def described_share(self, group: str = "g") -> DescribedShareGroup:
        answer = self.ask(DescribeShareGroup(group))
        assert isinstance(answer, DescribedShareGroup)
        return answer

    def written(self) -> str:
        """The kinds of all records since the last call."""
        kinds, self.log_seen = self.kinds(self.log[self.log_seen :]), len(self.log)
        return kinds

    log_seen = 0

    def shared(self, answer: ShareGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """The assignment in an answer by topic name; None when it says that nothing has changed."""
        if answer.assignment is None:
            return None
        return {
            self.topics.name_of(topic.topic_id) or "?": topic.partitions for topic in answer.assignment.topic_partitions
        }
