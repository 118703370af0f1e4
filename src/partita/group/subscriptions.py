"""Which topics a classic group subscribes to, as far as its members' metadata says.

Only protocol type `consumer` has a known layout, and only its topic list is read, whatever the version.
(Kafka: ClassicGroup.computeSubscribedTopics, specification section 7.3.)
"""

from __future__ import annotations

from partita.group.model import Group
from partita.protocol.primitives import MalformedRequest, Reader


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The union over members as of the last generation; None when a member's metadata cannot be read."""
    if group.subscriptions is None:
        return None
    topics: set[str] = set()
    for metadata in dict.fromkeys(group.subscriptions):
        try:
            reader = Reader(metadata, 2)
            topics.update([reader.string() for _ in range(reader.count(2))])
        except MalformedRequest:
            return None
    return frozenset(topics)
