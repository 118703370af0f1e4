"""What a group subscribes to: regular expressions, and a hash of the topics that tells when they have changed.

The hash is ours: nobody compares it with another broker's, and one that loads our log computes its own at the next
heartbeat. (KIP-1101 for the hash, KIP-848 for regular expressions.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from partita.expressions import ExpressionsMissing, InvalidExpression, Matches, compiled
from partita.group.records.consumer_group import ConsumerGroup, ConsumerMember
from partita.group.state.consumers import TopicImage


def metadata_hash(image: TopicImage, names: Iterable[str]) -> int:
    """A number that changes when one of these topics does; 0 if none of them exists. `names` are in order."""
    from hashlib import blake2b  # with all else that hashes, which no classic group needs

    digest = blake2b(digest_size=8)
    nothing = True
    for name in names:
        topic = image.get(name)
        if topic is not None:
            nothing = False
            racks = [sorted(rack or "" for rack in replicas) for replicas in topic.racks]
            digest.update(repr((name, topic.topic_id, topic.partitions, racks)).encode())
    return 0 if nothing else int.from_bytes(digest.digest(), "big", signed=True)


class Counts(NamedTuple):
    """How many members will subscribe to what, of everything whose count changes."""

    names: dict[str, int]
    patterns: dict[str, int]


def counts_after(group: ConsumerGroup, leaves: Iterable[ConsumerMember], comes: Iterable[ConsumerMember]) -> Counts:
    """The counts once some members are gone and others are there. Costs what these members subscribe to."""
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
    """The hash of what the group subscribes to with these counts.

    `is_current` says that the group's hash is one of `image`; it is taken if the group subscribes to the same.
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
    """Whether a whole topic name matches. Raises InvalidExpression with a message for the member."""
    try:
        return compiled(pattern)
    except ExpressionsMissing:
        raise
    except InvalidExpression as reason:
        raise InvalidExpression(
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."
        ) from None
