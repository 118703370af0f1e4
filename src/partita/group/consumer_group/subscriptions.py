"""Subscriptions of a group: a hash that changes with the subscribed topics, and the topics of regular expressions.

Expressions are matched outside the event loop, all of a group at once, by a job that holds only copies. Until its
outcome is applied a member has no topics from its expression. (Kafka: maybeUpdateRegularExpressions,
handleRegularExpressionsResult; specification section 20.7.)

The hash differs from Kafka's: brokers never compare hashes, and one that loads our log computes its own at the next
heartbeat. (KIP-1101 for the hash, KIP-848 for regular expressions.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from partita.expressions import ExpressionsMissing, InvalidExpression, Matches, compiled
from partita.group.contract import Lane
from partita.group.notes import Cause, GroupEpochBumped
from partita.group.records import consumer_log
from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember, ResolvedRegex
from partita.group.state.topics import TopicImage
from partita.group.state.turn import Turn
from partita.lazy import later
from partita.wording import What

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = later("hashlib")


def metadata_hash(image: TopicImage, names: Iterable[str]) -> int:
    """Return a hash that changes when one of these topics does; 0 if none exists. `names` are sorted."""
    digest = hashlib.blake2b(digest_size=8)
    nothing = True
    for name in names:
        topic = image.get(name)
        if topic is not None:
            nothing = False
            racks = [sorted(rack or "" for rack in replicas) for replicas in topic.racks]
            digest.update(repr((name, topic.topic_id, topic.partitions, racks)).encode())
    return 0 if nothing else int.from_bytes(digest.digest(), "big", signed=True)


class Counts(NamedTuple):
    """Future subscriber counts of every topic name and expression whose count changes."""

    names: dict[str, int]
    patterns: dict[str, int]


def counts_after(group: ConsumerGroup, leaves: Iterable[ConsumerMember], comes: Iterable[ConsumerMember]) -> Counts:
    """Return the counts after some members leave and others come, in time proportional to their subscriptions."""
    names: dict[str, int] = {}
    patterns: dict[str, int] = {}
    for members, by in ((leaves, -1), (comes, 1)):
        for member in members:
            for name in member.topics:
                names[name] = names.get(name, group.names.get(name, 0)) + by
            if member.regex:
                patterns[member.regex] = patterns.get(member.regex, group.patterns.get(member.regex, 0)) + by
    return Counts(names, patterns)


def hash_after(image: TopicImage, group: ConsumerGroup, counts: Counts, *, is_current: bool) -> int:
    """Return the hash of the group's subscription with these counts.

    If `is_current`, the group's hash belongs to `image` and is reused when the subscription is unchanged.
    """
    same_names = all((name in group.names) == bool(count) for name, count in counts.names.items())
    same_patterns = all((regex in group.patterns) == bool(count) for regex, count in counts.patterns.items())
    if is_current and same_names and same_patterns:
        return group.metadata_hash
    names = {name for name, count in {**group.names, **counts.names}.items() if count}
    patterns = [regex for regex, count in {**group.patterns, **counts.patterns}.items() if count]
    matched = (name for regex in patterns if regex in group.regexes for name in group.regexes[regex].topics)
    return metadata_hash(image, sorted(names.union(matched)))


def compile_expression(pattern: str) -> Matches:
    """Return a predicate that matches whole topic names. Raises InvalidExpression with a message for the member."""
    try:
        return compiled(pattern)
    except ExpressionsMissing:
        raise
    except InvalidExpression as reason:
        raise InvalidExpression(
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
        ) from None


MaySee: TypeAlias = Callable[[str], bool] | None
"""Whether the client may describe a topic; None: it may describe all."""
BATCH_REFRESH_MIN_MS = 10_000
"""Minimum time between two matches of a group's expressions. Not configurable in Kafka either."""

_EXPRESSIONS = Lane("regular expressions")


class MatchExpressions(NamedTuple):
    """All regular expressions of a group against all topic names."""

    group_id: str
    expressions: tuple[str, ...]
    names: tuple[str, ...]
    version: int
    """Version of the topic image that the names come from."""
    may_see: Callable[[str], bool] | None
    """Excludes topics that the requesting member may not describe; None: it may describe all."""

    @property
    def lane(self) -> Lane:
        """The lane of all expressions."""
        return _EXPRESSIONS

    def run(self) -> dict[str, tuple[str, ...]]:
        """Return the sorted names that each expression matches; an invalid expression matches nothing."""
        found: dict[str, tuple[str, ...]] = {}
        for expression in self.expressions:
            try:
                matches = compile_expression(expression)
            except InvalidExpression:
                found[expression] = ()
            else:
                found[expression] = tuple(sorted(filter(matches, self.names)))
        return found


def refresh(turn: Turn, group: ConsumerGroup, may_see: MaySee) -> None:
    """Start matching the group's expressions if it is due."""
    timers = turn.state.consumers[group.group_id]
    if not group.patterns or timers.matching or not _is_due(turn, group):
        return
    timers.matching = True
    image = turn.state.topics
    job = MatchExpressions(group.group_id, tuple(group.patterns), tuple(image.names()), image.version, may_see)
    turn.out.start(job)


def _is_due(turn: Turn, group: ConsumerGroup) -> bool:
    known = [group.regexes[regex] for regex in group.patterns if regex in group.regexes]
    last_ms = max((resolved.resolved_ms for resolved in known), default=None)
    if last_ms is not None and not turn.has_passed(BATCH_REFRESH_MIN_MS, last_ms):
        return False
    if len(known) < len(group.patterns) or last_ms is None:
        return True
    newest = max(resolved.version for resolved in known)
    if newest != turn.state.topics.version:
        return True
    return turn.has_passed(turn.state.config.group_consumer_regex_refresh_interval_ms, last_ms)


def matched(turn: Turn, job: MatchExpressions, found: Mapping[str, tuple[str, ...]]) -> None:
    """Record the outcome, and begin another epoch if any expression matches other topics than before."""
    group = turn.state.consumer_group(job.group_id)
    if group is None:
        return
    turn.state.consumers[job.group_id].matching = False
    resolved = {
        regex: ResolvedRegex(_visible(topics, job.may_see), job.version, turn.now.wall_ms)
        for regex, topics in found.items()
        if regex in group.patterns
    }
    before = {regex: group.regexes[regex].topics if regex in group.regexes else () for regex in resolved}
    records = [consumer_log.regex_record(job.group_id, regex, one) for regex, one in resolved.items()]
    has_changed = any(before[regex] != one.topics for regex, one in resolved.items())
    if has_changed:
        topics = {**group.regexes, **resolved}
        names = sorted(
            {*group.names, *(t for regex in group.patterns if regex in topics for t in topics[regex].topics)}
        )
        found_hash = metadata_hash(turn.state.topics, names)
        records.append(consumer_log.epoch_record(job.group_id, group.epoch + 1, found_hash))
    if not records or not turn.state.fits(records):
        return
    turn.write(records)
    if has_changed:
        cause = Cause(What.SUBSCRIPTION_CHANGED, detail="regular expressions were matched")
        turn.out.note(GroupEpochBumped(job.group_id, group.epoch, cause, turn.now.wall_ms))


def _visible(topics: tuple[str, ...], may_see: Callable[[str], bool] | None) -> tuple[str, ...]:
    return topics if may_see is None else tuple(filter(may_see, topics))
