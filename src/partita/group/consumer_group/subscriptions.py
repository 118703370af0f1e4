"""Subscriptions of a group: regular expressions, and a hash that changes with the subscribed topics.

The hash differs from Kafka's: brokers never compare hashes, and one that loads our log computes its own at the next
heartbeat. (KIP-1101 for the hash, KIP-848 for regular expressions.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from partita.expressions import ExpressionsMissing, InvalidExpression, Matches, compiled
from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember
from partita.group.state.consumers import TopicImage
from partita.lazy import later

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
