"""Requests composed of many items, by users with subsets of the rights, as stories that can be played on any broker.

What is compared are the facts that an answer tells, not how often: our broker answers once what is named repeatedly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from conformance.login_stories import Seen, Story
from conformance.security_sides import Side, acl, settle
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from partita.protocol.messages.delete_groups import DeleteGroupsRequest
from partita.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from partita.protocol.primitives import ZERO_UUID
from support.broker.compositions import (
    CONSUMERS,
    FAMILIES,
    GROUPS,
    MEMBER,
    NEW,
    TOPICS,
    Fact,
    Family,
    Item,
    Right,
    World,
    facts,
)
from support.broker.secured import SecuredRaw
from support.kafka.node import NEWER_TOPIC_OPTIONS, asks_from

VERSIONS_BEFORE = {0: 12, 1: 12, 3: 11, 8: 9, 9: 9, 24: 3}
"""The last version that names things in another way, besides the highest; OffsetFetch by id is version 10."""
LEFT_OUT = frozenset(
    {"host", "client_host", "node_id", "leader_id", "controller_id", "records", "high_watermark", "last_stable_offset",
     "offset", "end_offset", "log_start_offset", "low_watermark", "configs",
     "config_source"}
)  # fmt: skip
"""What stories before this one made different, or what differs from node to node."""

COMPLAINS_FIRST = {19, 20}
"""Of a topic to create or delete that is named twice Kafka complains before it looks at rights, ours afterwards."""


def compositions(items: Sequence[Item], *, has_all: bool) -> Iterator[tuple[str, list[Item] | None]]:
    """Nothing, all of it, each item alone and twice, pairs in both orders, every item twice."""
    yield "nothing", []
    if has_all:
        yield "everything", None
    for each in items:
        yield f"{_text(each)}", [each]
        yield f"{_text(each)} twice", [each, each]
    for one, other in combinations(items, 2):
        yield f"{_text(one)}, {_text(other)}", [one, other]
        yield f"{_text(other)}, {_text(one)}", [other, one]
    yield "all twice", [*items, *items]


def _text(item: Item) -> str:
    inside = (
        "" if item.inside == () else f" with {'all' if item.inside is None else [each.name for each in item.inside]}"
    )
    return f"{item.name}{' by id' * item.by_id}{' at' * item.is_cursor}{inside}"


def subsets(rights: Sequence[Right]) -> Iterator[tuple[Right, ...]]:
    """None, each alone, all but each, all."""
    seen = {(), tuple(rights)}
    yield ()
    for number, right in enumerate(rights):
        for chosen in ((right,), (*rights[:number], *rights[number + 1 :])):
            if chosen not in seen:
                seen.add(chosen)
                yield chosen
    yield tuple(rights)


def composed_story(family: Family) -> Story:
    """The story of one API."""

    def play(side: Side) -> Seen:
        low, high = side.served.get(family.key, (0, -1))
        before = VERSIONS_BEFORE.get(family.key, high)
        if family.key == 24:
            high = before  # of later versions Kafka answers none that names one transaction twice
        with side.user("admin") as admin:
            world = _filled(side, admin)
            for rights in subsets(family.rights):
                side.forbid_all()
                side.allow(*(acl("User:alice", operation, name, kind) for operation, kind, name in rights))
                may = [f"{operation.name} {kind.name} {name}" for operation, kind, name in rights]
                with side.user("alice") as alice:
                    for version in sorted({max(low, before), high}):
                        for label, items in compositions(family.items(version), has_all=family.has_all):
                            if family.key == 3 and len({item.by_id for item in items or ()}) > 1:
                                continue  # Kafka forgets the names where an id is given
                            world = _restored(side, admin, family, world)
                            told = alice.ask(family.build(world, version, items), version)
                            yield (
                                f"v{version} {label}, allowed {may}",
                                _comparable(facts(told, world.names), complains_first=family.key in COMPLAINS_FIRST),
                            )

    play.__name__ = f"composed_{family.key}"
    return play


def _comparable(told: set[Fact], *, complains_first: bool) -> list[str]:
    either = {ErrorCode.INVALID_REQUEST, ErrorCode.TOPIC_AUTHORIZATION_FAILED} if complains_first else set()
    newer = NEWER_TOPIC_OPTIONS if not asks_from(4, 4) else ()

    def entry(fact: Fact) -> str:
        is_refused = dict(fact).get("error_code") in either
        left_out = (
            LEFT_OUT | {"name"} if is_refused and dict(fact).get("topic_id", ZERO_UUID) != ZERO_UUID else LEFT_OUT
        )
        words = [
            (name, "refused" if value in either else ErrorCode(value).name if name.endswith("error_code") else value)
            for name, value in fact
            if name not in left_out
        ]
        return repr(words)

    return sorted({entry(fact) for fact in told if dict(fact).get("name") not in newer})


def _filled(side: Side, admin: SecuredRaw) -> World:
    """Offsets in two groups, two consumer groups, a producer of transactional id x."""
    _create(admin, TOPICS)
    parts = [OffsetCommitRequestPartition(committed_offset=7)]
    topics = [OffsetCommitRequestTopic(name=name, partitions=parts) for name in TOPICS]
    for group in GROUPS:
        admin.find(group)
        while admin.ask(OffsetCommitRequest(group_id=group, topics=topics), 8).topics[0].partitions[0].error_code:
            pass
    for group, names in zip(CONSUMERS, (["t"], ["t", "u"]), strict=True):
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=MEMBER, rebalance_timeout_ms=60_000, topic_partitions=[],
            subscribed_topic_names=names,
        )  # fmt: skip
        while admin.ask(request, 1).error_code:
            pass
    while admin.ask(FindCoordinatorRequest(key="x", key_type=1), 1).error_code:
        pass
    begun = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    while (answer := admin.ask(begun, 4)).error_code:
        pass
    return World(_ids(admin, TOPICS), (answer.producer_id, answer.producer_epoch))


def _restored(side: Side, admin: SecuredRaw, family: Family, world: World) -> World:
    """The world as it was, where the last request may have changed what the next one is about."""
    if family.key == 42:
        parts = [OffsetCommitRequestPartition(committed_offset=7)]
        topics = [OffsetCommitRequestTopic(name=name, partitions=parts) for name in TOPICS]
        for group in GROUPS:
            admin.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
    if family.key == 68:
        admin.ask(DeleteGroupsRequest(groups_names=["new"]), 2)
    if family.key == 19:
        gone = [DeleteTopicState(name=name) for name in NEW]
        admin.ask(DeleteTopicsRequest(topics=gone, timeout_ms=10_000), 6)
        settle(admin)
    if family.key == 20:
        settle(admin)
        _create(admin, TOPICS)
        settle(admin)
        return World(_ids(admin, TOPICS), world.producer)
    return world


def _create(admin: SecuredRaw, names: Sequence[str]) -> None:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    admin.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)


def _ids(admin: SecuredRaw, names: Sequence[str]) -> dict[str, bytes]:
    """The topics' ids, once all are known and led."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False)
    while True:
        found = admin.ask(asked, 12).topics
        if not any(topic.error_code or any(part.error_code for part in topic.partitions) for topic in found):
            return {topic.name: topic.topic_id for topic in found}


STORIES: tuple[Story, ...] = tuple(
    composed_story(FAMILIES[key])
    for key in (9, 3, 15, 32, 8, 28, 2, 0, 1, 10, 69, 75, 61, 65, 21, 24, 47, 68, 42, 19, 20)
)
