"""Everything one shard knows: its groups, the hard state behind them, and when it has to wake up.

Deadlines are lazy: `arm` only ever moves a group's wake-up forward in time; see `partita.group.deadlines`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappush

from partita.assignors.interface import Assignor
from partita.assignors.server_side import create_server_assignors
from partita.group.config import GroupConfig
from partita.group.contract import Record
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.hard_state import HardState
from partita.group.records.log_records import batch_bytes
from partita.group.state.consumers import ConsumerTimers, TopicImage, Topics
from partita.group.state.model import DEAD, NO_DEADLINE, Group


class Sweep:
    """Groups whose offsets are still to be looked at, in slices; see `partita.group.offsets.expiration`."""

    __slots__ = ("group_ids", "since_ms", "topics", "written")

    def __init__(self, group_ids: Iterable[str], topics: frozenset[str] | None, since_ms: int) -> None:
        self.group_ids = deque(group_ids)
        self.topics = topics
        """Forget the offsets of these topics; None: forget what has expired."""
        self.since_ms = since_ms
        """When it was asked for, on the monotonic clock: its next slice is due at once."""
        self.written = 0
        """Offsets of the first group that this sweep has forgotten."""


class ShardState:
    """The state of one shard. Hard state changes by `HardState.replay` alone; the rest is soft."""

    __slots__ = (
        "assignors",
        "config",
        "consumers",
        "expiry_deadline_ms",
        "group_settings",
        "groups",
        "groups_held",
        "hard",
        "new_member_id",
        "next_full_note_ms",
        "pending_count",
        "sweeps",
        "topics",
        "wakes",
        "wakes_made",
    )

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
        self.groups_held = groups_held or (lambda: len(self.groups) + len(self.consumers))
        """How many groups all shards of the broker have."""
        self.hard = HardState()
        self.groups: dict[str, Group] = {}
        """Classic ones, and those that only store offsets."""
        self.consumers: dict[str, ConsumerTimers] = {}
        """The deadlines of KIP-848 groups; the groups themselves are all hard state."""
        self.topics = Topics() if topics is None else topics
        self.group_settings: Mapping[str, Mapping[str, int]] = {}
        """Settings that groups have of their own, by group id."""
        self.assignors = assignors or create_server_assignors(config.group_consumer_assignors)
        """What shares partitions in KIP-848 groups; the first is the default."""
        self.pending_count = 0
        """Member ids handed out and not used yet, over all groups."""
        self.wakes: list[tuple[int, int, Group | ConsumerTimers]] = []
        """A heap of (deadline, tie breaker, group); an entry counts only while its group's `wake_ms` equals it."""
        self.wakes_made = 0
        self.expiry_deadline_ms = NO_DEADLINE
        self.next_full_note_ms = 0
        """No note says before that (monotonic) that new groups are refused: a client in a loop would flood the log."""
        self.sweeps: deque[Sweep] = deque()
        """Oldest first."""

    def find(self, group_id: str, wall_ms: int) -> Group:
        """The group; an absent one as an empty group that the shard does not hold yet (see `is_absent` and `add`)."""
        group = self.groups.get(group_id)
        return Group(group_id, wall_ms) if group is None else group

    def is_absent(self, group: Group) -> bool:
        """Does the shard not hold this group?"""
        return group.group_id not in self.groups

    @property
    def is_full(self) -> bool:
        """Does the broker hold as many groups as `partita.groups.max`?"""
        return self.groups_held() >= self.config.partita_groups_max

    def add(self, group: Group) -> None:
        """Hold the group from now on."""
        self.groups[group.group_id] = group

    def forget(self, group: Group) -> None:
        """Drop a group without members whose records are tombstones now."""
        assert not group.members, f"{group.group_id} is dropped with members"
        self.pending_count -= len(group.pending)
        group.pending.clear()
        group.wake_ms = NO_DEADLINE
        group.state = DEAD
        del self.groups[group.group_id]

    def drop_pending(self, group: Group, member_id: str) -> bool:
        """Forget an id that was handed out; False if it is not pending."""
        if group.pending.pop(member_id, None) is None:
            return False
        self.pending_count -= 1
        return True

    def fits(self, records: list[Record]) -> bool:
        """Would the offsets topic take these records as one batch?"""
        return batch_bytes(records) <= self.config.max_message_bytes

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The KIP-848 group with this id."""
        return self.hard.consumer_groups.get(group_id)

    def group_setting(self, group_id: str, name: str, otherwise: int) -> int:
        """A setting of the group itself, or the broker's."""
        return self.group_settings.get(group_id, {}).get(name, otherwise)

    def timers_of(self, group_id: str) -> ConsumerTimers:
        """The deadlines of a KIP-848 group."""
        timers = self.consumers.get(group_id)
        if timers is None:
            timers = self.consumers[group_id] = ConsumerTimers(group_id)
        return timers

    def forget_timers(self, group_id: str) -> None:
        """The KIP-848 group is no more."""
        timers = self.consumers.pop(group_id, None)
        if timers is not None:
            timers.wake_ms = NO_DEADLINE

    def arm(self, group: Group | ConsumerTimers, deadline_ms: int) -> None:
        """Wake for the group at `deadline_ms` (monotonic) at the latest."""
        if deadline_ms < group.wake_ms:
            group.wake_ms = deadline_ms
            self.wakes_made += 1
            heappush(self.wakes, (deadline_ms, self.wakes_made, group))
