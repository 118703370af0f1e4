"""Topics behind a rebalance: created, deleted or grown, or subscribed to by members that changed their mind.

Clients subscribe to the topics that exist. A topic that comes or goes therefore looks like another subscription of each
member: several members that change by the same topic at once, or a count of partitions, show what it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from partita.explain.absences import cause_of
from partita.explain.account import Cause
from partita.explain.facts import Assigned, Fact, Member, Partition, PartitionsCounted, Sure
from partita.explain.generations import Step
from partita.explain.wording import listed, partition_name
from partita.wording import What

MEMBERS_AGREE = 2
"""So many members do not change their minds about one topic in one rebalance; the topic has changed."""
NOTICED_WITHIN_MS = 600_000
"""Clients look for new topics every five minutes, each at its own time, and each causes a rebalance."""


@dataclass
class _Changes:
    """Changes of subscriptions between two generations: the topics that members added, and those they dropped."""

    added: dict[str, list[Member]] = field(default_factory=lambda: defaultdict(list))
    dropped: dict[str, list[Member]] = field(default_factory=lambda: defaultdict(list))


def subscription_causes(step: Step, before: Assigned) -> Iterator[Cause]:
    """Topics that came or went, then the members that changed their subscription by anything else."""
    changes = _changes(before, step.after)
    gone = {topic: cause for topic in sorted(changes.dropped) if (cause := _deleted(step, topic, changes)) is not None}
    come = {topic: cause for topic in sorted(changes.added) if (cause := _created(step, topic, changes)) is not None}
    yield from (*gone.values(), *come.values())
    for member in step.after.members:
        added = sorted(t for t, members in changes.added.items() if member in members and t not in come)
        dropped = sorted(t for t, members in changes.dropped.items() if member in members and t not in gone)
        if detail := change_of(added, dropped):
            evidence = f"its subscription differs: it {detail}"
            yield cause_of(member, What.SUBSCRIPTION_CHANGED, Sure.SEEN, evidence, detail=detail)


def change_of(added: Sequence[str], dropped: Sequence[str]) -> str:
    """Describe a change of subscription; empty if there is none."""
    parts = [f"added {listed(added)}"] if added else []
    return ", ".join([*parts, f"dropped {listed(dropped)}"] if dropped else parts)


def _changes(before: Assigned, after: Assigned) -> _Changes:
    found = _Changes()
    old = {member.member_id: member for member in before.members}
    for member in after.members:
        was = old.get(member.member_id)
        if was is None or was.topics is None or member.topics is None:
            continue
        for topic in set(member.topics) - set(was.topics):
            found.added[topic].append(member)
        for topic in set(was.topics) - set(member.topics):
            found.dropped[topic].append(member)
    return found


def _deleted(step: Step, topic: str, changes: _Changes) -> Cause | None:
    seen = [c for c in step.history.counts if c.topic == topic and c.at_ms > step.since_ms]
    if seen and seen[0].count == 0:
        meanwhile = seen[0].at_ms <= step.after.at_ms
        evidence = f"{topic} was deleted meanwhile" if meanwhile else f"{topic} does not exist any more"
        return Cause(What.TOPIC_DELETED, Sure.SEEN if meanwhile else Sure.INFERRED, detail=topic, evidence=(evidence,))
    return None if seen else _agreed(What.TOPIC_DELETED, topic, changes.dropped[topic], "dropped")


def _created(step: Step, topic: str, changes: _Changes) -> Cause | None:
    earlier = [c for c in step.history.counts if c.topic == topic and c.at_ms <= step.after.at_ms]
    if earlier and earlier[-1].count and earlier[-1].at_ms > _news_since_ms(step, topic):
        evidence = f"{topic} was created meanwhile"
        return Cause(What.TOPIC_CREATED, Sure.SEEN, detail=topic, evidence=(evidence,))
    return None if earlier else _agreed(What.TOPIC_CREATED, topic, changes.added[topic], "added")


def _news_since_ms(step: Step, topic: str) -> int:
    """When the group was assigned last without a member that had noticed the topic; at most ten minutes ago."""
    lacking = [a.at_ms for a in step.history.assigned if a.at_ms <= step.since_ms and topic not in _subscribed(a)]
    earliest_ms = min(step.since_ms, step.after.at_ms - NOTICED_WITHIN_MS)
    return max(earliest_ms, lacking[-1]) if lacking else step.since_ms


def _agreed(what: What, topic: str, members: list[Member], did: str) -> Cause | None:
    if len(members) < MEMBERS_AGREE:
        return None
    evidence = f"{len(members)} members {did} {topic} in the same rebalance"
    return Cause(what, Sure.INFERRED, detail=topic, evidence=(evidence,))


def gone_topics(facts: Iterable[Fact], existing: Collection[str], at_ms: int) -> Iterator[PartitionsCounted]:
    """Topics that members ever subscribed to and that do not exist at this time."""
    assigned = (fact for fact in facts if isinstance(fact, Assigned))
    subscribed = {topic for fact in assigned for member in fact.members for topic in member.topics or ()}
    for topic in sorted(subscribed - set(existing)):
        yield PartitionsCounted(at_ms, topic, 0)


# -- partitions --------------------------------------------------------------------------------------------------------


def partitions_of(assigned: Assigned) -> set[Partition]:
    """All partitions that a generation assigns."""
    return {partition for member in assigned.members for partition in member.partitions}


def other_topics(step: Step, before: Assigned, *, is_alone: bool) -> Iterator[Cause]:
    """A KIP-848 group keeps a hash of its topics: if its members ask for the same ones, the topics have changed.

    Beside another cause the change may just have been noticed.
    """
    after = step.after
    if after.topics_hash == before.topics_hash or _subscribed(after) != _subscribed(before):
        return
    new = listed([partition_name(partition) for partition in sorted(partitions_of(after) - step.known)])
    evidence = "its members subscribe to the same topics, and the hash that the group keeps of these has changed"
    yield Cause(What.TOPICS_CHANGED, Sure.SEEN if is_alone else Sure.UNKNOWN, detail=new, evidence=(evidence,))


def _subscribed(assigned: Assigned) -> set[str]:
    return {topic for member in assigned.members for topic in member.topics or ()}


def more_partitions(step: Step, *, is_alone: bool) -> Iterator[Cause]:
    """Partitions that were never assigned before, of topics that were.

    Beside another cause they may just have been noticed by the rebalance that it began; alone, another reason to rejoin
    that no record shows is possible, though rare.
    """
    new = partitions_of(step.after) - step.known
    counted = dict[str, int]()
    for topic, number in step.known if new else ():
        counted[topic] = max(counted.get(topic, 0), number + 1)
    fresh = sorted(partition for partition in new if partition[0] in counted and partition[1] >= counted[partition[0]])
    if fresh:
        names = listed([partition_name(partition) for partition in fresh])
        topics = {topic for topic, _ in fresh}
        meanwhile = {c.topic for c in step.history.counts if step.since_ms < c.at_ms <= step.after.at_ms}
        sure = Sure.SEEN if topics <= meanwhile else Sure.INFERRED if is_alone else Sure.UNKNOWN
        yield Cause(
            What.PARTITIONS_CHANGED, sure, detail=names,
            evidence=(f"{names} {'was' if len(fresh) == 1 else 'were'} assigned for the first time",),
        )  # fmt: skip
