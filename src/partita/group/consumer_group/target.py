"""The target assignment of a group: each member's partitions, computed for the newest group epoch.

Assignors use topic names; the group's records use topic ids. (Kafka: TargetAssignmentBuilder; specification
sections 20.5 and 20.12.)

A target of a large group, or one by a user's assignor, would block the event loop, so it is a job: a step names it, the
shell runs it outside the loop and returns the outcome through `partita.group.coordinator.GroupCoordinator.job_done`.
Until then the group keeps its target. A job holds only copies, so that it can run in any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata, topic_sets
from partita.group.contract import Lane, Record
from partita.group.records import consumer_log
from partita.group.records.consumer_group import NO_PARTITIONS, ConsumerGroup, ConsumerMember, Target
from partita.group.state.topics import TopicImage

_AT_ONCE, _ALIKE_AT_ONCE = 200, 2_000
"""Most members and partitions that a built-in assignor handles on the event loop.

If all members subscribe alike, assigning takes 3 ms at most (`_ALIKE_AT_ONCE`). That is worth it, since a target
that is computed later reaches the members one heartbeat interval later.
"""
TARGETS = Lane("targets")
_USERS_MOST = 4


class AssignorFailed(Exception):
    """An assignor raised, or returned an invalid assignment."""


class Problem(NamedTuple):
    """Input of an assignor, independent of later changes to the group."""

    assignor: Assignor
    metadata: TopicMetadata
    subscriptions: Mapping[str, Subscription]
    topic_ids: Mapping[str, bytes]

    @property
    def size(self) -> int:
        """Approximate amount of work: members and partitions."""
        return len(self.subscriptions) + sum(self.metadata.partition_counts.values())

    @property
    def is_ours(self) -> bool:
        """Whether the assignor is built in."""
        return type(self.assignor).__module__.startswith("partita.assignors.")

    @property
    def is_alike(self) -> bool:
        """Whether all members subscribe to the same topics."""
        # By identity: `problem` gives members with equal topics one list, so no list is compared.
        return len({id(subscription.topics) for subscription in self.subscriptions.values()}) <= 1

    def run(self) -> dict[str, Target]:
        """Return the target of every member. Raises AssignorFailed."""
        try:
            assignment = self.assignor.assign(self.metadata, self.subscriptions)
        except Exception as error:
            raise AssignorFailed(f"{type(error).__name__}: {error}") from error
        try:
            return self._checked(assignment)
        except (AttributeError, TypeError, ValueError) as error:
            expected = "a dict from member ids to lists of (topic, partition)"
            raise AssignorFailed(f"{self.assignor.name} has to return {expected}: {error}") from error

    def _checked(self, assignment: Assignment) -> dict[str, Target]:
        """Return the assignment by topic ids; check that members are known and partitions subscribed to and unique."""
        strangers = sorted(map(repr, assignment.keys() - self.subscriptions.keys()))
        if strangers:
            raise AssignorFailed(f"{self.assignor.name} gave partitions to {strangers[0]}, no member of the group")
        taken: dict[tuple[str, int], str] = {}
        targets: dict[str, Target] = {}
        # One set for each distinct subscription, not for each member.
        sets = topic_sets(self.subscriptions)
        for member_id in self.subscriptions:
            wanted = sets[member_id]
            given = assignment.get(member_id, ())
            for topic, number in given:
                if topic not in wanted or not 0 <= number < self.metadata.partition_counts.get(topic, 0):
                    raise AssignorFailed(
                        f"{self.assignor.name} gave {topic}-{number} to {member_id}, who cannot have it"
                    )
                other = taken.setdefault((topic, number), member_id)
                if other != member_id:
                    raise AssignorFailed(f"{self.assignor.name} gave {topic}-{number} to {other} and to {member_id}")
            targets[member_id] = frozenset((self.topic_ids[topic], number) for topic, number in given)
        # A partition that the assignor forgot would be read by no member, silently: worse than an error.
        if len(taken) < sum(self.metadata.partition_counts.values()):
            counts = self.metadata.partition_counts.items()
            topic, number = next((t, n) for t, count in counts for n in range(count) if (t, n) not in taken)
            raise AssignorFailed(f"{self.assignor.name} gave {topic}-{number} to no member")
        return targets


class ComputeTarget(NamedTuple):
    """Computes the target for one epoch of a group."""

    group_id: str
    epoch: int
    problem: Problem

    @property
    def lane(self) -> Lane:
        """One lane per user assignor, and one for all built-in assignors."""
        if self.problem.is_ours:
            return TARGETS
        return Lane(f"assignor {self.problem.assignor.name}", _USERS_MOST, is_users=True)

    def run(self) -> dict[str, Target] | AssignorFailed:
        """Return the targets, or the failure of the assignor."""
        try:
            return self.problem.run()
        except AssignorFailed as error:
            return error


def runs_at_once(problem: Problem) -> bool:
    """Whether the heartbeat may solve the problem itself: only a small one, with a built-in assignor."""
    return problem.is_ours and problem.size <= (_ALIKE_AT_ONCE if problem.is_alike else _AT_ONCE)


def problem(
    group: ConsumerGroup,
    members: Iterable[ConsumerMember],
    previous: Mapping[str, Target],
    image: TopicImage,
    assignors: Mapping[str, Assignor],
) -> Problem:
    """Return the problem for these members, which may include changes not yet written to the group."""
    everyone = list(members)
    topics, distinct = _subscribed(group, everyone)
    facts = {name: image.get(name) for name in sorted({name for names in distinct for name in names})}
    known = {name: topic for name, topic in facts.items() if topic is not None}
    names = {topic.topic_id: name for name, topic in known.items()}
    exists = [[name for name in each if name in known] for each in distinct]
    subscriptions = {
        member.member_id: Subscription(
            topics=exists[topics[member.member_id]],
            owned_partitions=[
                (names[topic_id], number)
                for topic_id, number in sorted(previous.get(member.member_id, NO_PARTITIONS))
                if topic_id in names
            ],
            rack_id=member.rack_id,
            group_instance_id=member.instance_id,
        )
        for member in everyone
    }
    return Problem(
        assignor=assignors[chosen_assignor(everyone, assignors)],
        metadata=TopicMetadata(
            {name: topic.partitions for name, topic in known.items()},
            {name: topic.racks for name, topic in known.items() if topic.racks},
        ),
        subscriptions=subscriptions,
        topic_ids={name: topic.topic_id for name, topic in known.items()},
    )


def _subscribed(
    group: ConsumerGroup, members: Iterable[ConsumerMember]
) -> tuple[dict[str, int], list[tuple[str, ...]]]:
    """Return each member's index into the distinct subscriptions, and those subscriptions.

    Members with the same regular expression share one tuple, so its topics are not walked per member.
    """
    places: dict[tuple[str, ...], int] = {}
    found: dict[str, int] = {}
    last: tuple[str, ...] | None = None
    place = 0
    for member in members:
        names = group.topics_of(member)
        if names is not last:
            place = places.setdefault(names, len(places))
            last = names
        found[member.member_id] = place
    return found, list(places)


def chosen_assignor(members: Iterable[ConsumerMember], assignors: Mapping[str, Assignor]) -> str:
    """Return the assignor preferred by most members that name one; of equals, the first of the broker's."""
    votes = Counter(member.server_assignor for member in members)
    return max(assignors, key=lambda name: votes[name])


def target_records(
    group_id: str, targets: Mapping[str, Target], previous: Mapping[str, Target], epoch: int, wall_ms: int
) -> list[Record]:
    """Return a record for each changed target, and one for their epoch."""
    changed = [
        consumer_log.target_record(group_id, member_id, target)
        for member_id, target in targets.items()
        # Only what changed: in a group of ten thousand a rebalance of two members writes two records.
        if previous.get(member_id) != target
    ]
    return [*changed, consumer_log.target_epoch_record(group_id, epoch, wall_ms)]
