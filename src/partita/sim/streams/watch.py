"""The rules of a streams group, read off what the broker decides and answers, and what members run.

ST1 no task is active twice: not in the coordinator's state, and what a member runs is its own there; ST2 epochs never
go back, a restart included; ST3 a target has every task once, and standbys of it in other processes; ST4 topics that
are read together, and those of their state, have one number of partitions; ST5 stale members are refused, others are
not; ST6 members go only if they leave, are silent too long or keep what they must revoke; ST7 a topology stays; S10
every request is answered once; S29 a replay gives the same state.
What must happen is worked out in other words than the coordinator's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from partita.group.contract import Record, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.records.streams_group import StreamsGroup, StreamsMember, StreamsMemberState, Task
from partita.group.requests import StreamsBeat
from partita.group.state.topics import TopicImage, Topics
from partita.group.state.topology import Configured
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsTaskIds
from partita.protocol.messages.streams_group_log import StreamsGroupTopologyValue
from partita.protocol.primitives import Structure
from partita.sim.rules.rule import must
from partita.sim.rules.watch import LogRules
from partita.sim.shell.group_shards import WatchedCoordinator
from partita.sim.streams.member import GROUP, INTERNAL, LEFT, LEFT_STATIC, SOURCES, Member
from partita.sim.streams.plan import Plan
from partita.sim.world.asked import Asked
from partita.sim.world.world import World

_NOT_A_MEMBER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID)


class Watch:
    """One group in one log; `members` are the lives of its members by member id."""

    def __init__(self, world: World, plan: Plan) -> None:
        self.log = LogRules()
        self.members: dict[str, Member] = {}
        self.targets = 0
        """How many targets the group had."""
        self._world = world
        self._plan = plan
        self._image: TopicImage = Topics()
        self._open: dict[int, Asked] = {}
        self._stale: dict[int, str] = {}
        self._welcome: set[int] = set()
        self.told = 0
        """The highest epoch in an answer."""
        self._seen = (0, 0)
        """Epochs of group and target after the last step; of one coordinator."""
        self._topology: StreamsGroupTopologyValue | None = None
        self._dropped_ms: int | None = None
        """When the last coordinator ended."""
        self._heard_ms: dict[str, int] = {}
        """When each member was last heard, or loaded."""
        self._revokes_ms: dict[str, tuple[int, int]] = {}
        """Since when a member has to revoke, and in which epoch."""
        self._inside: frozenset[str] = frozenset()
        self._leaves: str | None = None
        """The member that leaves with the request that is being decided."""

    # The broker's side

    def sees(self, image: TopicImage) -> None:
        """A life of the broker begins, whose topics these are."""
        self._image = image

    def before(self, asked: Asked, coordinator: GroupCoordinator) -> None:
        """The broker is about to decide a group request."""
        self._open[asked.number] = asked
        wire, self._leaves = asked.wire, None
        if not isinstance(wire, StreamsGroupHeartbeatRequest):
            return
        group = coordinator.hard_state.streams_groups.get(GROUP)
        reason = _staleness(group, wire)
        if reason:
            self._stale[asked.number] = reason
        elif wire.member_epoch:
            self._welcome.add(asked.number)
        if not reason and wire.member_epoch == LEFT:
            self._leaves = wire.member_id
        elif not reason and wire.instance_id is not None and group is not None:
            self._leaves = group.static.get(wire.instance_id)  # its successor comes

    def after(self, asked: Asked, coordinator: GroupCoordinator, step: Step) -> None:
        """The broker has decided a group request."""
        wire = asked.wire
        group = coordinator.hard_state.streams_groups.get(GROUP)
        if isinstance(wire, StreamsGroupHeartbeatRequest) and group is not None and wire.member_id in group.members:
            beats = [reply.message for reply in step.replies if isinstance(reply.message, StreamsBeat)]
            if wire.member_epoch != LEFT_STATIC and any(not beat.response.error_code for beat in beats):
                self._heard_ms[wire.member_id] = self._world.now.mono_ms
                fit, is_current = _fit(coordinator)
                if fit is not None and is_current:
                    self._check_copartitioning(fit)

    def answered(self, asked: Asked, response: Structure) -> None:
        """The broker has answered a request."""
        must(not asked.is_answered, "S10", f"{type(asked.wire).__name__} is answered twice")
        asked.is_answered = True
        self._open.pop(asked.number, None)
        reason, is_welcome = self._stale.pop(asked.number, None), asked.number in self._welcome
        self._welcome.discard(asked.number)
        if not isinstance(response, StreamsBeat):
            return
        wire, answer = asked.wire, response.response
        assert isinstance(wire, StreamsGroupHeartbeatRequest), "only heartbeats are answered so"
        self._world.saw("=", asked.client, f"epoch {answer.member_epoch} error {answer.error_code}")
        who = f"{wire.member_id} in epoch {wire.member_epoch}"
        must(answer.error_code or not reason, "ST5", f"{who} is served: {reason}")
        is_fenced = is_welcome and answer.error_code in _NOT_A_MEMBER
        must(not is_fenced, "ST5", f"{who} is refused: {answer.error_message}")
        self.told = max(self.told, answer.member_epoch)

    def appended(self, records: tuple[Record, ...], coordinator: GroupCoordinator, cause: Asked | str | None) -> None:
        """Records were decided, to be appended: the log is compared as a whole."""

    def waking(self, coordinator: GroupCoordinator) -> None:
        """The broker is about to do what is due: no member asks to leave."""
        self._leaves = None

    def did_what_was_due(self, coordinator: GroupCoordinator, step: Step) -> None:
        """The broker has done what was due: `stepped` judges it."""

    def stepped(self, coordinator: GroupCoordinator) -> None:
        """The broker is between two steps."""
        group = coordinator.hard_state.streams_groups.get(GROUP)
        self._check_departures(group)
        if group is None:
            return
        self._check_active(group)
        self._check_epochs(group)
        must(self._topology in (None, group.topology), "ST7", f"the topology is {group.topology}")
        self._topology = group.topology
        fit, _ = _fit(coordinator)
        if fit is not None and group.members and group.assignment_epoch == group.epoch:
            self._check_target(group, fit)
        due_ms = coordinator.next_deadline_ms()
        for member_id in group.members:
            latest_ms = self._heard_ms.get(member_id, 0) + self._plan.session_ms
            must(due_ms is not None and due_ms <= latest_ms, "ST6", f"the session of {member_id} does not end")

    def _check_active(self, group: StreamsGroup) -> None:
        runs: dict[Task, str] = {}
        for member_id, member in group.members.items():
            for task in (*member.held.active, *member.revoking.active):
                other = runs.setdefault(task, member_id)
                must(other == member_id, "ST1", f"{task} is active in {other} and in {member_id}")
                must(group.active.get(task) == member.process_id, "ST1", f"{task} is in {group.active.get(task)}")
        must(len(runs) == len(group.active), "ST1", f"{sorted(group.active.keys() - runs.keys())} are in no member")
        for member_id, life in self.members.items():
            if life.is_inside and member_id in group.members:
                mine = sorted(task for task in life.active if runs.get(task) != member_id)
                must(not mine, "ST1", f"{member_id} runs {mine[:3]}, which the coordinator has elsewhere")

    def _check_epochs(self, group: StreamsGroup) -> None:
        seen, self._seen = self._seen, (group.epoch, group.assignment_epoch)
        self.targets += seen[1] < group.assignment_epoch
        must(self._seen >= seen and self._seen[1] >= seen[1], "ST2", f"epochs are {self._seen} after {seen}")
        must(group.assignment_epoch <= group.epoch, "ST2", f"the target of {group.epoch} is {group.assignment_epoch}")
        must(group.epoch >= self.told, "ST2", f"the epoch is {group.epoch}, and {self.told} was told")
        ahead = [name for name, member in group.members.items() if member.epoch > group.epoch]
        must(not ahead, "ST2", f"{ahead} are ahead of the group")

    def _check_target(self, group: StreamsGroup, subs: Mapping[str, Configured]) -> None:
        tasks = {(name, number) for name, sub in subs.items() for number in range(sub.tasks)}
        given = Counter(task for target in group.targets.values() for task in target.active)
        must(group.targets.keys() <= group.members.keys(), "ST3", f"targets of {sorted(group.targets)}")
        must(given.keys() == tasks, "ST3", f"nobody or too many get {sorted(given.keys() ^ tasks)[:3]}")
        must(max(given.values(), default=1) == 1, "ST3", f"a target has {given.most_common(1)} twice")
        places = Counter(
            (task, group.members[member_id].process_id)
            for member_id, target in group.targets.items()
            for role in target
            for task in role
        )
        must(max(places.values(), default=1) == 1, "ST3", f"a process is to have {places.most_common(1)} twice")
        standbys = Counter(task for target in group.targets.values() for task in target.standby)
        processes = len({member.process_id for member in group.members.values()})
        wanted = min(self._plan.standbys, processes - 1)
        few = [task for task in tasks if standbys[task] != wanted]
        must(not few, "ST3", f"{few[:3]} get not {wanted} standbys")

    def _check_copartitioning(self, subs: Mapping[str, Configured]) -> None:
        for name, sub in subs.items():
            internal = (*sub.repartition_sources.values(), *sub.changelogs.values())
            counts = {topic.name: topic.partitions for topic in internal}
            for source in sub.source_topics:
                found = self._image.get(source)
                counts[source] = 0 if found is None else found.partitions
            must({*counts.values()} == {sub.tasks}, "ST4", f"subtopology {name} has {sub.tasks} tasks for {counts}")

    def _check_departures(self, group: StreamsGroup | None) -> None:
        members: Mapping[str, StreamsMember] = {} if group is None else group.members
        now_ms = self._world.now.mono_ms
        for member_id in sorted(self._inside - members.keys()):
            is_silent = now_ms - self._heard_ms.get(member_id, 0) >= self._plan.session_ms
            since_ms, _ = self._revokes_ms.get(member_id, (now_ms, 0))
            is_slow = now_ms - since_ms >= self._plan.rebalance_ms
            must(is_silent or is_slow or member_id == self._leaves, "ST6", f"{member_id} is removed without a reason")
        self._inside = frozenset(members)
        for member_id in members:
            self._heard_ms.setdefault(member_id, now_ms)
        for known in (self._heard_ms, self._revokes_ms):
            for member_id in [name for name in known if name not in members]:
                del known[member_id]
        for member_id, member in members.items():
            if member.state is not StreamsMemberState.UNREVOKED:
                self._revokes_ms.pop(member_id, None)
            elif self._revokes_ms.get(member_id, (0, -1))[1] != member.epoch:
                self._revokes_ms[member_id] = (now_ms, member.epoch)

    def crashing(self, coordinator: GroupCoordinator, *, all_durable: bool, is_loaded: bool) -> None:
        """The process of the broker dies now."""
        self._open.clear()
        self._stale.clear()
        self._welcome.clear()
        if is_loaded:
            self.log.crashing(coordinator)

    def loaded(self, coordinator: GroupCoordinator, batches: list[bytes], *, is_orderly: bool) -> None:
        """A coordinator has replayed the log; `is_orderly`: the one before was unloaded in order."""
        self.log.loaded(coordinator, batches)
        group = coordinator.hard_state.streams_groups.get(GROUP)
        self._seen, self._leaves = (0, 0), None
        self._inside = frozenset(() if group is None else group.members)
        self._topology = None if group is None else group.topology
        self._revokes_ms.clear()
        now_ms = self._world.now.mono_ms
        # While there is no coordinator, nobody is silent. A session that had ended before it went ends at once.
        away_ms = now_ms - (now_ms if self._dropped_ms is None else self._dropped_ms)
        heard_ms = {name: ms + away_ms for name, ms in self._heard_ms.items()} if is_orderly else {}
        self._dropped_ms = None
        earliest_ms = now_ms - self._plan.session_ms
        self._heard_ms = {name: max(heard_ms.get(name, now_ms), earliest_ms) for name in self._inside}
        if group is not None or self.told:
            must(group is not None, "ST2", "the group is gone")
            self.stepped(coordinator)

    def dropped(self) -> None:
        """A shard is over: every request that waited for it has its answer."""
        if self._dropped_ms is None:
            self._dropped_ms = self._world.now.mono_ms
        waiting = [f"{type(asked.wire).__name__} of {asked.client}" for asked in self._open.values()]
        must(not waiting, "S10", f"the shard is over, and there is no answer to {waiting}")

    def topic_deleted(self, name: str) -> int:
        """A topic is deleted; the group has no offsets."""
        return 0

    def topic_forgotten(self, name: str, number: int) -> None:
        """The group has no offsets."""

    # Once faults have stopped

    def left(self, group: StreamsGroup | None, live: Iterable[Member]) -> list[str]:
        """Return why the group is not settled: every task runs in one member, with its standbys elsewhere."""
        if group is None or group.state != "Stable":
            return ["there is no group" if group is None else f"the group is {group.state}"]
        facts = {name: self._image.get(name) for name in SOURCES + INTERNAL}
        counts = {name: 0 if topic is None else topic.partitions for name, topic in facts.items()}
        wanted = counts[SOURCES[0]]
        left = [f"{name} has {count} partitions" for name, count in counts.items() if count != wanted]
        runs = Counter(task for member in live for task in member.active)
        left += [f"{task} runs {times} times" for task, times in runs.items() if times != 1]
        left += [f"{sub}-{n} runs nowhere" for sub in "01" for n in range(wanted) if (sub, n) not in runs]
        left += [f"{member.client.name} is told {member.statuses}" for member in live if any(member.statuses)]
        return left


def _fit(coordinator: GroupCoordinator) -> tuple[Mapping[str, Configured] | None, bool]:
    """The subtopologies if the topology fits the topics, and whether these are still the same."""
    assert isinstance(coordinator, WatchedCoordinator), "a coordinator of the simulation"
    fit, is_current = coordinator.streams_fit(GROUP)
    return (None if fit is None or fit.status is not None else fit.subtopologies), is_current


def _staleness(group: StreamsGroup | None, wire: StreamsGroupHeartbeatRequest) -> str:
    """Why this heartbeat must not succeed; empty if it may."""
    if wire.member_epoch == 0:
        holder = None if group is None or wire.instance_id is None else group.static.get(wire.instance_id)
        is_held = group is not None and holder is not None and group.members[holder].epoch != LEFT_STATIC
        return "its instance id is held" if is_held else ""
    if group is None:
        return "there is no group"
    name = wire.member_id if wire.instance_id is None else group.static.get(wire.instance_id, "")
    member = group.members.get(name)
    if member is None or name != wire.member_id:
        return f"{name or 'nobody'} is the member"
    if wire.member_epoch < 0 or wire.member_epoch == member.epoch:
        return ""
    roles = (wire.active_tasks, wire.standby_tasks)
    reported = [_tasks(role) for role in roles if role is not None]
    is_within = len(reported) == 2 and reported[0] <= member.held.active.keys() and reported[1] <= member.held.standby
    return "" if wire.member_epoch == member.previous_epoch and is_within else f"its epoch is {member.epoch}"


def _tasks(listed: Iterable[StreamsTaskIds]) -> set[Task]:
    return {(each.subtopology_id, number) for each in listed for number in each.partitions}
