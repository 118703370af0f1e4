"""Moves a member from its partitions to its target assignment, one reconciliation at a time.

With the consumer protocol the target comes with any heartbeat, as topic ids. Revoked partitions are committed first,
new ones assigned, the others fetched throughout. A topic id that the metadata does not know yet waits for the next
metadata; the rest goes ahead. (Kafka: AbstractMembershipManager.maybeReconcile; consumer.md 12.4.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partita.consumer.group.heartbeat_fields import TopicIdPartition
from partita.consumer.group.member import Member
from partita.consumer.group.rebalance import Commit, Script, commit_first, raise_later
from partita.consumer.metadata import Metadata
from partita.consumer.request import Assigned, Revoked
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition


class Reconciliation:
    """`target` is the coordinator's assignment, `held` the result of the last reconciliation, None before the first."""

    def __init__(self, member: Member, metadata: Metadata, commit: Commit, clock: Callable[[], Now]) -> None:
        self.target: frozenset[TopicIdPartition] = frozenset()
        self.held: frozenset[TopicIdPartition] | None = None
        self.number = 0
        """Grows with each successful reconciliation, and with each target that takes back what was not held yet."""
        self.is_halfway = False
        """Has a reconciliation begun and not succeeded?"""
        self._member = member
        self._metadata = metadata
        self._commit = commit
        self._clock = clock
        self._names: dict[bytes, str] = {}
        self._under_way: frozenset[TopicIdPartition] = frozenset()
        """Partitions that the reconciliation under way may have given to the application already."""
        self._looked_at = -1

    @property
    def is_reached(self) -> bool:
        """Is everything held that the coordinator wants, and nothing else?"""
        return self.held == self.target and not self.is_halfway

    @property
    def owned(self) -> tuple[int, frozenset[TopicIdPartition]]:
        """The partitions to report to the coordinator, with a number that grows when they have to be reported.

        Partitions that a target adds count as owned before it is reached: they may be taken before the answer to the
        report arrives, and a coordinator that does not know could meanwhile give them to another member.
        """
        return self.number, self._taken | frozenset(self._resolved().values())

    @property
    def _taken(self) -> frozenset[TopicIdPartition]:
        return (self.held or frozenset()) | self._under_way

    def forget(self) -> None:
        """The membership is over: nothing is held and nothing wanted."""
        self.target, self.held = frozenset(), None
        self._under_way = frozenset()
        self.is_halfway = False

    def take_target(self, partitions: Iterable[TopicIdPartition]) -> bool:
        """The coordinator wants this; one that is under way is finished first.

        Returns whether it takes back what the last target added and the application never got. No callback tells of
        that, and the coordinator gives it to no other member before it hears that this one does not have it.

        Deviation: Partita's KIP-848 consumer reports at once that it does not have partitions that were taken back
        before the application got them, where Kafka's does so with the application's next poll.
        """
        before, self.target = self.target, frozenset(partitions)
        takes_back = bool(before - self.target - self._taken)
        self.number += takes_back
        wanted = {topic_id for topic_id, _ in self.target}
        self._names = {topic_id: name for topic_id, name in self._names.items() if topic_id in wanted}
        self._looked_at = -1
        return takes_back

    def is_due(self) -> bool:
        """Does the known metadata allow a step? Asks for newer metadata if it is too little."""
        return self.is_halfway or self.held is None or frozenset(self._resolved().values()) != self.held

    def script(self) -> Script:
        """Move from the held partitions to the target, as far as its topics are known.

        A callback that raises ends it without a word to the coordinator; the next one calls it again, for the same
        partitions. So does the end of the membership meanwhile.
        """
        member, subscription = self._member, self._member.subscription
        before = member.memberships_lost
        wanted = self._resolved()
        self._under_way |= frozenset(wanted.values())
        self.is_halfway = True
        gone = tuple(sorted(tp for tp in subscription.assignment if tp not in wanted))
        for tp, state in subscription.assignment.items():
            state.pending_revocation = tp not in wanted
        if member.config.enable_auto_commit:
            yield from commit_first(member, self._commit, self._clock)
        if member.memberships_lost != before:
            return
        if gone:
            error = yield Revoked(gone)
            if error is None or member.memberships_lost != before:
                kept = [tp for tp in subscription.assignment if tp not in gone]
                subscription.assign_by_group(kept, await_callback=False)
            if error is not None or member.memberships_lost != before:
                raise_later(member, error)
                return
        subscription.assign_by_group([*subscription.assignment, *sorted(wanted)], await_callback=True)
        new = [tp for tp, state in subscription.assignment.items() if state.awaits_callback]
        error = yield Assigned(tuple(sorted(new)))
        if error is not None or member.memberships_lost != before:
            raise_later(member, error)
            return
        for tp in new:
            subscription.assignment[tp].awaits_callback = False
        self.held = frozenset(wanted.values())
        self.number += 1
        self._under_way = frozenset()
        self.is_halfway = False

    def _resolved(self) -> dict[TopicPartition, TopicIdPartition]:
        """The part of the target whose topics have known names, which are kept while they are wanted."""
        unknown = {topic_id for topic_id, _ in self.target} - self._names.keys()
        if unknown and self._looked_at != self._metadata.updates:
            self._looked_at = self._metadata.updates
            topics = self._metadata.view.topics.values()
            self._names |= {topic.topic_id: topic.name for topic in topics if topic.topic_id in unknown}
            if not unknown <= self._names.keys():
                self._metadata.request_update()
        return {
            TopicPartition(self._names[topic_id], partition): (topic_id, partition)
            for topic_id, partition in self.target
            if topic_id in self._names
        }
