"""A member as Kafka Streams is one: it heartbeats, gives up tasks before it says so, and starts over when fenced.

Its application joins topics "left" and "right" and counts behind a repartition topic, so that it has two subtopologies,
one of them copartitioned, both with state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from partita.group.records.streams_group import Task
from partita.protocol.messages.streams_group_heartbeat import (
    StreamsCopartitionGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsSubtopology,
    StreamsTaskIds,
    StreamsTaskOffset,
    StreamsTopicInfo,
    StreamsTopology,
)
from partita.sim.streams.plan import Plan
from partita.sim.transactions.client import RETRY_MS, Client, Script
from partita.sim.world.world import Dice

GROUP = "g"
SOURCES = ("left", "right")
REPARTITION = "g-repartition"
INTERNAL = (REPARTITION, "g-joined-changelog", "g-counted-changelog")
LEFT, LEFT_STATIC = -1, -2
_GROUP_KEY, _VERSION = 0, 1
_OFFSETS_EVERY = 5


def topology(epoch: int = 1, *, is_other: bool = False) -> StreamsTopology:
    """The application's topology, or another one under the same group id."""
    joined = StreamsSubtopology(
        subtopology_id="0",
        source_topics=list(SOURCES),
        repartition_sink_topics=[REPARTITION],
        state_changelog_topics=[StreamsTopicInfo(name=INTERNAL[1])],
        copartition_groups=[StreamsCopartitionGroup(source_topics=[0, 1])],
    )
    counted = StreamsSubtopology(
        subtopology_id="1",
        repartition_source_topics=[StreamsTopicInfo(name=REPARTITION)],
        state_changelog_topics=[] if is_other else [StreamsTopicInfo(name=INTERNAL[2])],
    )
    return StreamsTopology(epoch=epoch, subtopologies=[joined, counted])


class Member:
    """One life of a member. `active`, `standby`: the tasks that it runs now."""

    def __init__(self, client: Client, plan: Plan, dice: Dice, wanted: StreamsTopology) -> None:
        self.client = client
        self.epoch = 0
        self.active: frozenset[Task] = frozenset()
        self.standby: frozenset[Task] = frozenset()
        self.statuses: list[int] = []
        """Of the last answer."""
        self.is_closing = False
        seat = client.name.partition(".")[0]
        self.instance = f"i-{seat}" if plan.static else None
        self.process = f"p{int(seat[1:]) // plan.threads}"
        self.is_healed = False
        """Whether it gives tasks up at once, and gets every answer."""
        self._plan = plan
        self._dice = dice
        self._topology = wanted
        self._beats = 0

    @property
    def is_inside(self) -> bool:
        """Whether it runs, and counts itself a member."""
        return not self.client.is_over and self.epoch > 0

    def work(self) -> Script:
        """Heartbeat until the process ends; then leave."""
        reports = False
        while not self.is_closing:
            answer = yield from self._asked(self._beat(reports=reports))
            self._beats += 1
            if answer is None:
                reports = self._dice.chance(0.8)
                yield self.client.pause_for(RETRY_MS)
                continue
            took = yield from self._took(answer)
            if not took and answer.error_code:
                reports = self._dice.chance(0.8)
                yield self.client.pause_for(RETRY_MS)
                continue
            reports = took
            if not took:
                yield self.client.pause_for(self._plan.heartbeat_ms)
        self._drop()
        leave = StreamsGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.client.name, member_epoch=LEFT, instance_id=self.instance
        )
        if self.instance is not None and self._dice.chance(0.7):
            leave.member_epoch = LEFT_STATIC
        yield from self._asked(leave)

    def _beat(self, *, reports: bool) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.client.name, member_epoch=self.epoch, instance_id=self.instance
        )
        is_join = self.epoch == 0
        if is_join:
            request.rebalance_timeout_ms = self._plan.rebalance_ms
            request.topology, request.process_id, request.client_tags = self._topology, self.process, []
        if is_join or reports or self._dice.chance(0.2):
            request.active_tasks, request.standby_tasks = _listed(self.active), _listed(self.standby)
            request.warmup_tasks = []
        if self._beats % _OFFSETS_EVERY == 0:
            request.task_offsets = [
                StreamsTaskOffset(subtopology_id=sub, partition=number, offset=self._beats)
                for sub, number in sorted(self.active | self.standby)
            ]
        return request

    def _took(self, answer: StreamsGroupHeartbeatResponse) -> Script:
        """Follow an answer; return whether there is something to report at once."""
        if answer.error_code:
            self._drop()
            return False
        self.epoch = answer.member_epoch
        self.statuses = [status.status_code for status in answer.status or ()]
        if answer.active_tasks is None:
            return False
        active, standby = _tasks(answer.active_tasks), _tasks(answer.standby_tasks or ())
        if self.active - active or self.standby - standby:
            yield self.client.pause_for(self._dice.between(0, 0 if self.is_healed else self._plan.revoke_ms))
        self.active, self.standby = active, standby
        return True

    def _drop(self) -> None:
        """It is no member any more, or stops: its tasks are lost."""
        self.epoch, self.active, self.standby, self.statuses = 0, frozenset(), frozenset(), []

    def _asked(self, message: StreamsGroupHeartbeatRequest) -> Script:
        """Ask the coordinator; None if no answer came, or one that says to ask again."""
        found: list[Any] = []
        self.client.with_coordinator(GROUP, _GROUP_KEY, found.append)
        yield lambda: bool(found)
        if not isinstance(found[0], int):
            return None
        slot = self.client.ask(found[0], message, _VERSION)
        yield slot.is_done
        if not self.is_healed and self._dice.chance(self._plan.misses):
            return None
        if slot.error is not None or slot.response.error_code in (14, 15, 16):
            self.client.forget_coordinator(GROUP, _GROUP_KEY)
            return None
        return slot.response


def _tasks(listed: Iterable[StreamsTaskIds]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, number) for each in listed for number in each.partitions)


def _listed(tasks: frozenset[Task]) -> list[StreamsTaskIds]:
    found: dict[str, list[int]] = {}
    for sub, number in sorted(tasks):
        found.setdefault(sub, []).append(number)
    return [StreamsTaskIds(subtopology_id=sub, partitions=numbers) for sub, numbers in found.items()]
