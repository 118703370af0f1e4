"""State of one shard: its groups, the hard state behind them, and its wake-ups.

Deadlines are lazy: `arm` only ever moves a group's wake-up forward in time; see `partita.group.coordinator`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappush
from typing import NamedTuple, Protocol

from partita.assignors.interface import Assignor
from partita.assignors.server_side import create_server_assignors
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Record, Token
from partita.group.records.consumer_group import ConsumerGroup
from partita.group.records.hard_state import HardState
from partita.group.records.log_records import batch_bytes
from partita.group.records.share_group import ShareGroup
from partita.group.state.model import DEAD, NO_DEADLINE, Group


class TopicFacts(NamedTuple):
    """Id, partition count and racks of one topic."""

    topic_id: bytes
    partitions: int
    racks: Sequence[Sequence[str | None]] = ()
    """Racks of each partition's replicas, where known."""


class TopicImage(Protocol):
    """The topics of the cluster. `version` grows with every topic that is created, extended or deleted."""

    @property
    def version(self) -> int: ...

    def get(self, name: str) -> TopicFacts | None:
        """The topic with this name."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""

    def names(self) -> Iterable[str]:
        """Every topic's name."""


class Topics:
    """A mutable topic image for tests, the simulator, and shards without another image."""

    def __init__(self) -> None:
        self.version = 0
        self._topics: dict[str, TopicFacts] = {}
        self._names: dict[bytes, str] = {}

    def put(self, name: str, facts: TopicFacts | None) -> None:
        """Add or replace the topic; None removes it."""
        old = self._topics.pop(name, None)
        if old is not None:
            del self._names[old.topic_id]
        if facts is not None:
            self._topics[name] = facts
            self._names[facts.topic_id] = name
        self.version += 1

    def get(self, name: str) -> TopicFacts | None:
        """The topic with this name."""
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id; None if there is none."""
        return self._names.get(topic_id)

    def names(self) -> Iterable[str]:
        """Every topic's name."""
        return self._topics


class Revocation(NamedTuple):
    """Deadline to revoke partitions; the member is fenced if its epoch is then still the same."""

    epoch: int
    deadline_ms: int


class ConsumerTimers:
    """The deadlines of one KIP-848 group, in monotonic milliseconds, by member id."""

    __slots__ = (
        "computes_again_ms", "computing", "group_id", "joins", "matching", "revocations", "seen_version", "sessions",
        "syncs", "wake_ms",
    )  # fmt: skip

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sessions: dict[str, int] = {}
        self.revocations: dict[str, Revocation] = {}
        self.joins: dict[str, int] = {}
        """Classic members that were asked to rejoin."""
        self.syncs: dict[str, int] = {}
        """Classic members that have to fetch their assignment."""
        self.seen_version = -1
        """Version of the topic image that the group's epoch was last compared with."""
        self.matching = False
        """Whether its regular expressions are being matched outside the event loop."""
        self.computing = False
        """Whether a target is being computed outside the event loop."""
        self.computes_again_ms = 0
        """Earliest time (monotonic) of the next computation outside the event loop, after a failed attempt."""
        self.wake_ms = NO_DEADLINE

    def forget(self, member_id: str) -> None:
        """Drop the deadlines of a removed member."""
        for deadlines in (self.sessions, self.joins, self.syncs):
            deadlines.pop(member_id, None)
        self.revocations.pop(member_id, None)

    def earliest(self) -> int:
        """Return the next deadline."""
        revocations = (revocation.deadline_ms for revocation in self.revocations.values())
        return min((*self.sessions.values(), *self.joins.values(), *self.syncs.values(), *revocations, NO_DEADLINE))


class ShareTimers:
    """The deadlines of one share group, in monotonic milliseconds."""

    __slots__ = ("group_id", "initializing_ms", "seen_version", "sessions", "wake_ms")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sessions: dict[str, int] = {}
        """By member id."""
        self.initializing_ms: dict[bytes, int] = {}
        """When the state of a topic's partitions was last asked for, by topic id."""
        self.seen_version = -1
        """Version of the topic image that the group's epoch was last compared with."""
        self.wake_ms = NO_DEADLINE


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
        "new_member_id", "next_full_note_ms", "parked", "parked_count", "pending_count", "shares", "sweeps", "topics",
        "wakes", "wakes_made",
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
        self.groups_held = groups_held or (lambda: len(self.groups) + len(self.consumers) + len(self.shares))
        """Returns the number of groups over all shards of the broker."""
        self.hard = HardState()
        self.groups: dict[str, Group] = {}
        """Classic groups, and those that only store offsets."""
        self.consumers: dict[str, ConsumerTimers] = {}
        """The deadlines of KIP-848 groups; the groups themselves are all hard state."""
        self.shares: dict[str, ShareTimers] = {}
        """The deadlines of share groups, which are all hard state, too."""
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
        self.wakes: list[tuple[int, int, Group | ConsumerTimers | ShareTimers]] = []
        """A heap of (deadline, tie breaker, group); an entry counts only while its group's `wake_ms` equals it."""
        self.wakes_made = 0
        self.expiry_deadline_ms = NO_DEADLINE
        self.next_full_note_ms = 0
        """Earliest time (monotonic) of the next note on refused groups: a client in a loop would flood the log."""
        self.sweeps: deque[Sweep] = deque()
        """Oldest first."""

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

    def timers_of(self, group_id: str) -> ConsumerTimers:
        """Return the deadlines of a KIP-848 group."""
        timers = self.consumers.get(group_id)
        if timers is None:
            timers = self.consumers[group_id] = ConsumerTimers(group_id)
        return timers

    def forget_timers(self, group_id: str) -> None:
        """Drop the deadlines of a deleted KIP-848 group."""
        timers = self.consumers.pop(group_id, None)
        if timers is not None:
            timers.wake_ms = NO_DEADLINE

    def share_group(self, group_id: str) -> ShareGroup | None:
        """Return the share group with this id."""
        return self.hard.share_groups.get(group_id)

    def has_other_type(self, group_id: str) -> bool:
        """Whether the id is that of a KIP-848 group or of a share group."""
        return self.consumer_group(group_id) is not None or self.share_group(group_id) is not None

    def share_timers_of(self, group_id: str) -> ShareTimers:
        """Return the deadlines of a share group."""
        timers = self.shares.get(group_id)
        if timers is None:
            timers = self.shares[group_id] = ShareTimers(group_id)
        return timers

    def forget_share_timers(self, group_id: str) -> None:
        """Drop the deadlines of a deleted share group."""
        timers = self.shares.pop(group_id, None)
        if timers is not None:
            timers.wake_ms = NO_DEADLINE

    def arm(self, group: Group | ConsumerTimers | ShareTimers, deadline_ms: int) -> None:
        """Wake up for the group at `deadline_ms` (monotonic) at the latest."""
        if deadline_ms < group.wake_ms:
            group.wake_ms = deadline_ms
            self.wakes_made += 1
            heappush(self.wakes, (deadline_ms, self.wakes_made, group))
