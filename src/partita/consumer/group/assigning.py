"""The group leader's work: read the members' subscriptions, run the assignor, write the assignments.

Pure functions over the JoinGroup answer. A member whose bytes cannot be decoded gets nothing; the others are served.
(Kafka: ConsumerCoordinator.onLeaderElected; consumer.md 5.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from partita.assignors.interface import (
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscription,
    TopicMetadata,
)
from partita.assignors.payloads import decode_assignment, decode_subscription
from partita.consumer.errors import ConsumerError, IllegalStateError
from partita.protocol.metadata_view import MetadataView
from partita.protocol.primitives import Buffer, MalformedRequest, Reader, Writer

COOPERATIVE_STICKY = "cooperative-sticky"
_SUCCESSOR = b"partita:successor:"
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


def with_counts(snapshot: Snapshot, counts: Mapping[str, int]) -> Snapshot:
    """The snapshot as it would be with these partition counts; racks are as they are now."""
    unknown: tuple[int, tuple[frozenset[str | None], ...]] = (0, ())
    return {topic: (count, snapshot.get(topic, unknown)[1]) for topic, count in counts.items()}


@dataclass(frozen=True, slots=True)
class Successor:
    """A note in a static member's share for the process that may take it over before the next generation."""

    counts: Mapping[str, int] | None = None
    """The group leader's share: how many partitions each topic had when it assigned."""
    must_rejoin: bool = False
    """The member has to give partitions up and join again, so that they can be given to others."""

    def encode(self) -> bytes | None:
        """User data of the share; None if there is nothing to say."""
        if self == Successor():
            return None
        writer = Writer()
        writer.int8(self.must_rejoin)
        writer.int8(self.counts is not None)
        for topic, count in sorted((self.counts or {}).items()):
            writer.string(topic)
            writer.int32(count)
        return _SUCCESSOR + writer.getvalue()

    @classmethod
    def of(cls, payload: Buffer) -> Successor:
        """Read the note of a share; empty if another client wrote the share."""
        try:
            _, user_data = decode_assignment(payload)
            if user_data is None or not user_data.startswith(_SUCCESSOR):
                return cls()
            reader = Reader(user_data, len(_SUCCESSOR))
            must_rejoin, has_counts = bool(reader.int8()), bool(reader.int8())
            counts: dict[str, int] = {}
            while reader.pos < len(user_data):
                topic = reader.string()
                counts[topic] = reader.int32()
        except MalformedRequest:
            return cls()
        return cls(counts if has_counts else None, must_rejoin)


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


def assignor_failed(assignor: Assignor | None, error: BaseException) -> ConsumerError:
    """The error poll raises when an assignor raised, even `sys.exit()`: it may run in a thread of ours."""
    if isinstance(error, ConsumerError):
        return error
    failure = IllegalStateError(f"assignor {assignor.name if assignor else ''}: {error!r}")
    failure.__cause__ = error
    return failure


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
