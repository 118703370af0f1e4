"""State of one shard: its groups, the hard state behind them, and its wake-ups.

Deadlines are lazy: `arm` only ever moves a group's wake-up forward in time; see `partita.group.coordinator`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappush
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from partita.assignors.interface import Assignor
from partita.assignors.server_side import create_server_assignors
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Job, Record, Token
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.hard_state import HardState
from partita.group.records.log_records import batch_bytes
from partita.group.state.model import DEAD, NO_DEADLINE, Group
from partita.group.state.topics import TopicImage, Topics

if TYPE_CHECKING:
    from partita.group.records.share_group import ShareGroup, StateTopics
    from partita.group.records.streams_group import StreamsGroup, Task
    from partita.group.state.topology import Fit


class Revocation(NamedTuple):
    """Deadline to revoke partitions; the member is fenced if its epoch is then still the same."""

    epoch: int
    deadline_ms: int


class GroupTimers:
    """The deadlines of one group with epochs, in monotonic milliseconds, by member id."""

    __slots__ = ("computes_again_ms", "computing", "group_id", "revocations", "seen_version", "sessions", "wake_ms")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sessions: dict[str, int] = {}
        self.revocations: dict[str, Revocation] = {}
        self.seen_version = -1
        """Version of the topic image that the group was last compared with."""
        self.computing: Job | None = None
        """What computes a target outside the event loop; an outcome of another job is of a former group."""
        self.computes_again_ms = 0
        """Earliest time (monotonic) of the next computation there, after a failed attempt."""
        self.wake_ms = NO_DEADLINE

    def forget(self, member_id: str) -> None:
        """Drop what is known of a removed member."""
        self.sessions.pop(member_id, None)
        self.revocations.pop(member_id, None)

    def earliest(self) -> int:
        """Return the next deadline."""
        revocations = (revocation.deadline_ms for revocation in self.revocations.values())
        return min((*self.sessions.values(), *revocations, NO_DEADLINE))


class ConsumerTimers(GroupTimers):
    """The deadlines of one KIP-848 group."""

    __slots__ = ("joins", "matching", "syncs")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.joins: dict[str, int] = {}
        """Classic members that were asked to rejoin."""
        self.syncs: dict[str, int] = {}
        """Classic members that have to fetch their assignment."""
        self.matching = False
        """Whether its regular expressions are being matched outside the event loop."""

    def forget(self, member_id: str) -> None:
        """Drop what is known of a removed member."""
        super().forget(member_id)
        self.joins.pop(member_id, None)
        self.syncs.pop(member_id, None)

    def earliest(self) -> int:
        """Return the next deadline."""
        return min((*self.joins.values(), *self.syncs.values(), super().earliest()))


class ShareTimers(GroupTimers):
    """The deadlines of one share group: sessions only, for nothing is revoked."""

    __slots__ = ("initializing_ms", "settled")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.initializing_ms: dict[bytes, int] = {}
        """When the state of a topic's partitions was last asked for, by topic id."""
        self.settled: tuple[int, StateTopics] | None = None
        """The version of the topics and the group's record of them with which no subscribed partition lacked state."""


class TaskOffsets(NamedTuple):
    """Sums of changelog offsets by task, as a member reports them: where it is, and where the changelogs end."""

    now: Mapping[Task, int]
    end: Mapping[Task, int]


class StreamsTimers(GroupTimers):
    """The deadlines of one streams group, and what only its members' next words restore."""

    __slots__ = ("delayed_ms", "endpoint_epoch", "fit", "offsets", "shutdown_by")

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.delayed_ms = NO_DEADLINE
        """When the first target is computed, while it waits for more members."""
        self.fit: Fit | None = None
        """How the topology fits the topics."""
        self.offsets: dict[str, TaskOffsets] = {}
        """By member id."""
        self.endpoint_epoch = 0
        """Grows when endpoints of members, or the tasks there, change."""
        self.shutdown_by: str | None = None
        """The member that asked for a shutdown of the whole application."""

    def forget(self, member_id: str) -> None:
        """Drop what is known of a removed member."""
        super().forget(member_id)
        self.offsets.pop(member_id, None)

    def earliest(self) -> int:
        """Return the next deadline."""
        return min(super().earliest(), self.delayed_ms)


Timers = TypeVar("Timers", bound=GroupTimers)


class ByGroup(dict[str, Timers]):
    """The timers of groups of one type, by group id; they are made when a group is first looked up by `[]`."""

    def __init__(self, make: Callable[[str], Timers]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, group_id: str) -> Timers:
        timers = self[group_id] = self._make(group_id)
        return timers

    def forget(self, group_id: str) -> None:
        """Drop those of a group that is gone; a wake-up on its way finds nothing to do."""
        timers = self.pop(group_id, None)
        if timers is not None:
            timers.wake_ms = NO_DEADLINE


class Sweep:
    """A pass over groups that deletes offsets in slices; see `partita.group.offsets.expiration`."""

    __slots__ = ("group_ids", "since_ms", "topics", "written")

    def __init__(self, group_ids: Iterable[str], topics: frozenset[str] | None, since_ms: int) -> None:
        self.group_ids = deque(group_ids)
        self.topics = topics
        """Delete the offsets of these topics; None: delete expired offsets."""
        self.since_ms = since_ms
        """When it was requested, on the monotonic clock: its next slice is due at once."""
        self.written = 0
        """Offsets of the first group that this sweep has deleted."""


class ShardState:
    """The state of one shard. Hard state changes by `HardState.replay` alone; the rest is soft."""

    __slots__ = (
        "assignors", "config", "consumers", "expiry_deadline_ms", "group_settings", "groups", "groups_held", "hard",
        "new_member_id", "next_full_note_ms", "parked", "parked_count", "pending_count", "shares", "streams", "sweeps",
        "topics", "wakes", "wakes_made",
    )  # fmt: skip

    def __init__(
        self,
        config: GroupConfig,
        new_member_id: Callable[[str], str],
        groups_held: Callable[[], int] | None = None,
        *,
        topics: TopicImage | None = None,
        assignors: Mapping[str, Assignor] | None = None,
    ) -> None:
        self.config = config
        self.new_member_id = new_member_id
        self.groups_held = groups_held or self.count_groups
        """Returns the number of groups over all shards of the broker."""
        self.hard = HardState()
        self.groups: dict[str, Group] = {}
        """Classic groups, and those that only store offsets."""
        self.consumers = ByGroup(ConsumerTimers)
        """The deadlines of KIP-848 groups; the groups themselves are all hard state."""
        self.shares = ByGroup(ShareTimers)
        """The deadlines of share groups, which are all hard state, too."""
        self.streams = ByGroup(StreamsTimers)
        """The deadlines and soft state of streams groups."""
        self.parked: dict[int, tuple[Token, GroupRequest]] = {}
        """Requests that wait for the share coordinator, by number."""
        self.parked_count = 0
        """The number of the last one."""
        self.topics = Topics() if topics is None else topics
        self.group_settings: Mapping[str, Mapping[str, int | str]] = {}
        """Settings overridden per group, by group id."""
        self.assignors = assignors or create_server_assignors(config.group_consumer_assignors)
        """Server-side assignors of KIP-848 groups; the first is the default."""
        self.pending_count = 0
        """Number of member ids issued and not used yet, over all groups."""
        self.wakes: list[tuple[int, int, Group | GroupTimers]] = []
        """A heap of (deadline, tie breaker, group); an entry counts only while its group's `wake_ms` equals it."""
        self.wakes_made = 0
        self.expiry_deadline_ms = NO_DEADLINE
        self.next_full_note_ms = 0
        """Earliest time (monotonic) of the next note on refused groups: a client in a loop would flood the log."""
        self.sweeps: deque[Sweep] = deque()
        """Oldest first."""

    def count_groups(self) -> int:
        """Return the number of groups of this shard, of all types."""
        return len(self.groups) + len(self.consumers) + len(self.shares) + len(self.streams)

    @property
    def has_newer_groups(self) -> bool:
        """Whether any group is a KIP-848, share or streams group."""
        return bool(self.hard.consumer_groups or self.hard.share_groups or self.hard.streams_groups)

    def with_offsets(self) -> tuple[str, ...]:
        """Return the ids of the groups whose offsets are in the offsets topic: of all but share groups."""
        return (*self.groups, *self.consumers, *self.streams)

    def find(self, group_id: str, wall_ms: int) -> Group:
        """Return the group; an absent one as an empty group not held by the shard (see `is_absent` and `add`)."""
        group = self.groups.get(group_id)
        return Group(group_id, wall_ms) if group is None else group

    def is_absent(self, group: Group) -> bool:
        """Whether the shard does not hold this group."""
        return group.group_id not in self.groups

    @property
    def is_full(self) -> bool:
        """Whether the broker has reached `partita.groups.max` groups."""
        return self.groups_held() >= self.config.partita_groups_max

    def add(self, group: Group) -> None:
        """Add the group to the shard."""
        self.groups[group.group_id] = group

    def forget(self, group: Group) -> None:
        """Drop a group without members after its tombstones are written."""
        assert not group.members, f"{group.group_id} is dropped with members"
        self.pending_count -= len(group.pending)
        group.pending.clear()
        group.wake_ms = NO_DEADLINE
        group.state = DEAD
        del self.groups[group.group_id]

    def drop_pending(self, group: Group, member_id: str) -> bool:
        """Drop a pending member id; False if it is not pending."""
        if group.pending.pop(member_id, None) is None:
            return False
        self.pending_count -= 1
        return True

    def fits(self, records: list[Record]) -> bool:
        """Whether these records fit into one batch of the offsets topic."""
        return batch_bytes(records) <= self.config.max_message_bytes

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return the KIP-848 group with this id."""
        return self.hard.consumer_groups.get(group_id)

    def group_setting(self, group_id: str, name: str, otherwise: int) -> int:
        """Return the group's own value of a setting, or the broker's."""
        value = self.group_settings.get(group_id, {}).get(name, otherwise)
        assert isinstance(value, int), f"{name} is no number: {value!r}"
        return value

    def forget_timers(self, group_id: str) -> None:
        """Drop the deadlines of a deleted group with epochs."""
        for timers in (self.consumers, self.shares, self.streams):
            timers.forget(group_id)

    def share_group(self, group_id: str) -> ShareGroup | None:
        """Return the share group with this id."""
        return self.hard.share_groups.get(group_id)

    def streams_group(self, group_id: str) -> StreamsGroup | None:
        """Return the streams group with this id."""
        return self.hard.streams_groups.get(group_id)

    def has_other_type(self, group_id: str) -> bool:
        """Whether the id is that of a group that is not classic."""
        hard = self.hard
        return any(group_id in groups for groups in (hard.consumer_groups, hard.share_groups, hard.streams_groups))

    def epoch_group(self, group_id: str) -> ConsumerGroup | StreamsGroup | None:
        """Return the group with this id whose members commit offsets with a member epoch."""
        return self.hard.consumer_groups.get(group_id) or self.hard.streams_groups.get(group_id)

    def arm(self, group: Group | GroupTimers, deadline_ms: int) -> None:
        """Wake up for the group at `deadline_ms` (monotonic) at the latest."""
        if deadline_ms < group.wake_ms:
            group.wake_ms = deadline_ms
            self.wakes_made += 1
            heappush(self.wakes, (deadline_ms, self.wakes_made, group))
