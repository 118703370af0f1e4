"""The application's subscription and its assignment: topics, pattern or partitions, and the state of each partition.

Exactly one subscription type at a time (consumer.md 1, 2.2). The assignment is ordered; a partition that delivered
moves to the end, which shares the polls fairly. (Kafka: SubscriptionState.)
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from partita.consumer.errors import IllegalStateError
from partita.consumer.partition_state import FETCHING, Moves, PartitionState
from partita.offsets.topic_partition import TopicPartition


class SubscriptionType(Enum):
    """Form of the subscription."""

    NONE = "none"
    AUTO_TOPICS = "subscribe(topics)"
    AUTO_PATTERN = "subscribe(pattern=...)"
    AUTO_SERVER_PATTERN = "subscribe(pattern=SubscriptionPattern(...))"
    USER_ASSIGNED = "assign()"


_BY_USER = SubscriptionType.USER_ASSIGNED
_BY_GROUP = (SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN, SubscriptionType.AUTO_SERVER_PATTERN)


@dataclass(frozen=True, slots=True)
class SubscriptionPattern:
    """A regular expression that the broker matches against whole topic names, in RE2's syntax.

    Only with `group_protocol="consumer"`: the group's coordinator looks for new topics, so no member has to ask for all
    of them, and all members see the same ones.
    """

    pattern: str


class Subscription:
    """Topics wanted, partitions held. `assignment` maps partitions to their states in fetch order."""

    def __init__(self) -> None:
        self.type = SubscriptionType.NONE
        self.pattern: re.Pattern[str] | None = None
        self.server_pattern: str | None = None
        """The regular expression that the group's coordinator matches."""
        self.topics: frozenset[str] = frozenset()
        self.group_topics: frozenset[str] = frozenset()
        self.assignment: dict[TopicPartition, PartitionState] = {}
        self.pauses_all = False
        """Everything is paused, partitions that are still to come included."""
        self.version = 0
        self._assigned: tuple[int, frozenset[str]] = (0, frozenset())
        """The topics of the assignment, and the version that they belong to."""
        self._moves = Moves()
        self._unsettled: dict[TopicPartition, PartitionState] = {}
        self._unsettled_at = (0, 0)
        """The version and the number of moves that `_unsettled` belongs to."""

    @property
    def is_group(self) -> bool:
        """Are partitions shared by the group, not assigned by the application?"""
        return self.type in _BY_GROUP

    @property
    def needs_all_topics(self) -> bool:
        """Whether a pattern selects the topics, so that their names are not known here."""
        return self.pattern is not None or self.server_pattern is not None

    @property
    def metadata_topics(self) -> frozenset[str]:
        """Topics whose metadata is needed; a group leader needs those of all members."""
        if self.type is _BY_USER:
            if self._assigned[0] != self.version:
                self._assigned = self.version, frozenset(tp.topic for tp in self.assignment)
            return self._assigned[1]
        return self.topics | self.group_topics if self.group_topics else self.topics

    @property
    def unsettled(self) -> dict[TopicPartition, PartitionState]:
        """The partitions held that have no valid position: few or none of them while a consumer runs."""
        at = self.version, self._moves.count
        if self._unsettled_at != at:
            self._unsettled = {tp: state for tp, state in self.assignment.items() if state.state is not FETCHING}
            self._unsettled_at = at  # last, in case Ctrl-C breaks off the walk
        return self._unsettled

    def subscribe_topics(self, topics: Iterable[str]) -> None:
        """Read these topics. Raises IllegalStateError after another kind of subscription."""
        wanted = frozenset(topics)
        self._become(SubscriptionType.AUTO_TOPICS)
        self._set_topics(wanted)

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Read all topics whose whole name matches."""
        self._become(SubscriptionType.AUTO_PATTERN)
        self.pattern = pattern
        self._set_topics(frozenset())

    def subscribe_server_pattern(self, pattern: str) -> None:
        """Read all topics that the group's coordinator finds to match."""
        self._become(SubscriptionType.AUTO_SERVER_PATTERN)
        self.server_pattern = pattern

    def match_pattern(self, names: Iterable[str]) -> bool:
        """Take the names that match as a whole; true if that changed the subscription."""
        assert self.pattern is not None, "only a pattern subscription is matched against topics"
        matching = frozenset(name for name in names if self.pattern.fullmatch(name))
        changed = matching != self.topics
        self._set_topics(matching)
        return changed

    def adopt_topics(self, names: Iterable[str]) -> None:
        """Topics the leader assigned that match the pattern, though we have not seen them ourselves yet."""
        self._set_topics(self.topics | frozenset(names))

    def accepts(self, topic: str) -> bool:
        """Does the current subscription or pattern cover this topic?"""
        if self.server_pattern is not None:
            return True
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return topic in self.topics

    def assign_by_user(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions."""
        self._become(SubscriptionType.USER_ASSIGNED)
        self._install(partitions)

    def assign_by_group(self, partitions: Iterable[TopicPartition], *, await_callback: bool) -> None:
        """Install the group's assignment; partitions kept keep their state, new ones wait for the callback."""
        before = self.assignment
        self._install(partitions)
        for tp, state in self.assignment.items():
            if tp not in before:
                state.awaits_callback = await_callback

    def unsubscribe(self) -> None:
        """Read nothing any more."""
        self.type = SubscriptionType.NONE
        self.pattern = self.server_pattern = None
        self.topics = self.group_topics = frozenset()
        self._install(())

    def state(self, tp: TopicPartition) -> PartitionState:
        """The state of an assigned partition. Raises IllegalStateError when it is not assigned."""
        state = self.assignment.get(tp)
        if state is None:
            raise IllegalStateError(f"{TopicPartition(*tp)} is not assigned to this consumer")
        return state

    def start_over(self, topic: str) -> None:
        """Discard the state of this topic's partitions: they begin as newly assigned ones do."""
        for tp, state in self.assignment.items():
            if tp.topic == topic:
                self.assignment[tp] = state.renewed()
                state.in_hand = None
        self.version += 1

    def move_to_end(self, tp: TopicPartition) -> None:
        """The partition delivered: the others come first next time."""
        held = self.assignment
        if tp in held:
            # Out and in again within one call, so that Ctrl-C cannot come in between. An OrderedDict has a method for
            # it, and walks over all partitions, of which there are many, take twice as long.
            deque(map(held.__setitem__, (tp,), map(held.pop, (tp,))), maxlen=0)

    def _set_topics(self, topics: frozenset[str]) -> None:
        if topics != self.topics:
            self.topics = topics
            self.version += 1

    def _install(self, partitions: Iterable[TopicPartition]) -> None:
        before = self.assignment
        self.assignment = {TopicPartition(*tp): before.get(tp) or self._new_state() for tp in partitions}
        for tp in before.keys() - self.assignment.keys():
            before[tp].in_hand = None
        self.version += 1

    def _new_state(self) -> PartitionState:
        state = PartitionState(self._moves)
        state.is_paused = self.pauses_all
        return state

    def _become(self, kind: SubscriptionType) -> None:
        if self.type not in (SubscriptionType.NONE, kind):
            raise IllegalStateError(
                f"the consumer reads what {self.type.value} said, which excludes {kind.value}; call unsubscribe() first"
            )
        self.type = kind
