"""What the group leader does: read the members' subscriptions, run the assignor, write the assignments.

Pure functions over the JoinGroup answer. A member whose bytes make no sense gets nothing; the others are served.
(Kafka: ConsumerCoordinator.onLeaderElected; consumer.md 5.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from partita.assignors.interface import (
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscription,
    TopicMetadata,
)
from partita.assignors.payloads import decode_subscription
from partita.consumer.errors import IllegalStateError
from partita.protocol.metadata_view import MetadataView
from partita.protocol.primitives import MalformedRequest

COOPERATIVE_STICKY = "cooperative-sticky"
Snapshot: TypeAlias = dict[str, tuple[int, tuple[frozenset[str | None], ...]]]


def take_snapshot(view: MetadataView, topics: Iterable[str], *, with_racks: bool) -> Snapshot:
    """Partition counts of the topics, and the racks of the replicas if this client has a rack itself."""
    snapshot: Snapshot = {}
    for topic in topics:
        known = view.topics.get(topic)
        if known is None or known.error_code or not known.partitions:
            continue
        racks: tuple[frozenset[str | None], ...] = ()
        if with_racks:
            racks = tuple(frozenset(_rack(view, node) for node in p.replicas) for p in known.partitions)
        snapshot[topic] = (len(known.partitions), racks)
    return snapshot


def topic_metadata(view: MetadataView, topics: Iterable[str]) -> TopicMetadata:
    """The topics as an assignor wants them."""
    counts: dict[str, int] = {}
    racks: dict[str, list[list[str | None]]] = {}
    for topic in topics:
        known = view.topics.get(topic)
        if known is None or known.error_code or not known.partitions:
            continue
        counts[topic] = len(known.partitions)
        racks[topic] = [[_rack(view, node) for node in p.replicas] for p in known.partitions]
    return TopicMetadata(counts, racks)


def read_subscriptions(members: Iterable[Any]) -> dict[str, Subscription]:
    """Each member's subscription; of an unreadable one nothing but the instance id is known."""
    found: dict[str, Subscription] = {}
    for member in members:
        try:
            found[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
        except MalformedRequest:
            found[member.member_id] = Subscription(topics=(), group_instance_id=member.group_instance_id)
    return found


def assign(
    assignor: Assignor, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription], protocol: RebalanceProtocol
) -> Assignment:
    """Run the assignor; a custom cooperative one must not hand over what is still owned. Raises IllegalStateError."""
    assignment = assignor.assign(metadata, subscriptions)
    if protocol is RebalanceProtocol.COOPERATIVE and assignor.name != COOPERATIVE_STICKY:
        _check_nothing_moved(assignor.name, assignment, subscriptions)
    return {member: assignment.get(member, []) for member in subscriptions}


def _check_nothing_moved(name: str, assignment: Assignment, subscriptions: Mapping[str, Subscription]) -> None:
    owner = {tp: member for member, s in subscriptions.items() for tp in s.owned_partitions}
    for member, partitions in assignment.items():
        for tp in partitions:
            if owner.get(tp, member) != member:
                raise IllegalStateError(
                    f"assignor {name} gives {tp[0]}-{tp[1]} to {member} while {owner[tp]} still owns it; "
                    "a cooperative assignor must leave it out for one round"
                )


def _rack(view: MetadataView, node_id: int) -> str | None:
    node = view.nodes.get(node_id)
    return None if node is None else node.rack
