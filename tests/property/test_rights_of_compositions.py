"""Whatever a request is composed of, nothing is told or changed beyond what its items do alone. (An audit's F2)

A user with any subset of the rights that an API asks for sends a composition of items to one broker, and each item
alone to another one like it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita import Broker
from partita.broker.api.apis import SERVED
from partita.broker.api.needs import Needs
from partita.broker.security.delegation_tokens import DelegationTokens, issued
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, V3AndBelowTopic
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.list_groups import ListGroupsRequest
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from partita.protocol.primitives import ZERO_UUID
from partita.security.principals import USER, KafkaPrincipal
from partita.security.rights.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from support.broker.askers import allow, forbid_all, raw_as, secured
from support.broker.compositions import (
    CONSUMERS,
    FAMILIES,
    GROUPS,
    MEMBER,
    NAMES_ONE_THING,
    TOKEN_OWNERS,
    TOPICS,
    Fact,
    Family,
    Item,
    Right,
    World,
    facts,
)
from support.broker.raw import Raw

COMPLAINTS = {ErrorCode.INVALID_REQUEST, ErrorCode.OPERATION_NOT_ATTEMPTED}
"""With these a broker says that a composition makes no sense, or stops at a part of it that is refused."""
CHANGING = {0, 3, 8, 19, 20, 21, 24, 28, 33, 37, 42, 44, 47, 68, 76, 91, 92}
"""The APIs whose requests change something."""
Key = tuple[Any, ...]


class Played:
    """A broker with content, and one user with some rights."""

    def __init__(self, broker: Broker, rights: Sequence[Right]) -> None:
        self.broker = broker
        self.admin = raw_as(broker, "admin")
        self.world = _filled(broker, self.admin)
        self.grant(rights)
        self.alice = raw_as(broker, "alice")

    def grant(self, rights: Sequence[Right]) -> None:
        """Let alice have these rights and no others."""
        forbid_all(self.broker)
        allow(self.broker, *(
            AclBinding(kind, name, "User:alice", operation, Permission.ALLOW, PatternType.LITERAL)
            for operation, kind, name in rights
        ))  # fmt: skip

    def ask(self, family: Family, version: int, items: Sequence[Item] | None) -> set[Fact]:
        """What alice is told."""
        answer = self.alice.ask(family.build(self.world, version, items), version)
        return facts(answer, self.world.names)

    def state(self) -> dict[Key, Any]:
        """What may be changed, by what it belongs to."""
        found: dict[Key, Any] = {}
        for topic in self.admin.ask(MetadataRequest(topics=None), 12).topics:
            if topic.is_internal:
                continue
            found["topic", topic.name] = len(topic.partitions), topic.topic_id == self.world.ids.get(topic.name)
            for moment in (-1, -2):
                asked = [
                    ListOffsetsPartition(partition_index=n, timestamp=moment) for n in range(len(topic.partitions))
                ]
                request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic.name, partitions=asked)])
                for part in self.admin.ask(request, 7).topics[0].partitions:
                    found["log", topic.name, part.partition_index, moment] = part.offset
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in (*GROUPS, "new")]
        for group in self.admin.ask(OffsetFetchRequest(groups=groups), 8).groups:
            for topic in group.topics:
                for part in topic.partitions:
                    found["offset", group.group_id, topic.name, part.partition_index] = part.committed_offset
        found |= {("group", each.group_id): each.group_state for each in self.admin.ask(ListGroupsRequest(), 4).groups}
        found |= self.broker.run(self._settings)
        return found

    def _settings(self) -> dict[Key, Any]:
        catalogue, config = self.broker.cluster.catalogue, self.broker.cluster.config
        shown: dict[Key, Any] = {("settings", name): dict(each.config.own) for name, each in catalogue.by_name.items()}
        shown["settings of groups",] = repr(catalogue.kept.get("group-config", {}))
        shown["settings of the broker",] = dict(config.of_nodes), dict(config.cluster_wide)
        return shown


def _filled(broker: Broker, admin: Raw) -> World:
    """Two topics, offsets in two groups, two consumer groups, a transaction."""
    broker.run(lambda: [broker.cluster.create_topic(name, 2, 1) for name in TOPICS])
    ids = broker.run(lambda: {name: broker.cluster.catalogue.by_name[name].topic_id for name in TOPICS})
    producer = admin.transactional("x")
    for group in GROUPS:
        admin.find(group)
        for topic in TOPICS:
            assert admin.commit(group, 7, topic) == 0
    world = World(ids, producer)
    admin.ask(FAMILIES[0].build(world, 13, [Item(name, by_id=True) for name in TOPICS]), 13)
    joined = {"k": ["t"], "l": ["t", "u"]}
    for group in CONSUMERS:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=MEMBER, rebalance_timeout_ms=60_000, topic_partitions=[],
            subscribed_topic_names=joined[group],
        )  # fmt: skip
        assert admin.ask(request, 1).error_code == 0
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[V3AndBelowTopic(name=name, partitions=[1]) for name in TOPICS],
    )  # fmt: skip
    admin.ask(added, 3)
    broker.run(lambda: _lend(broker.running.services.delegation_tokens()))
    return world


def _lend(tokens: DelegationTokens) -> None:
    for owner in TOKEN_OWNERS:
        user = KafkaPrincipal(USER, owner)
        tokens.add(issued(f"token of {owner}", user, user, (), -1, tokens.now_ms(), tokens.lifetimes), {})


@contextmanager
def played(rights: Sequence[Right]) -> Iterator[Played]:
    with secured(delegation_token_secret_key="key") as broker:
        one = Played(broker, rights)
        with one.admin, one.alice:
            yield one


@st.composite
def composed(draw: st.DrawFn, family: Family) -> tuple[int, list[Item] | None, list[Right]]:
    """A version, items or None for everything, and rights, some of them on every name."""
    api = SERVED[family.key]
    version = draw(st.integers(max(api.min_version, family.first_version), api.max_version))
    listed = st.lists(st.sampled_from(family.items(version)), max_size=5)
    items = draw(st.none() | listed if family.has_all else listed)
    # Everything there is has topics of the broker's own; who may see them by a wildcard is told of them.
    names = st.just(False) if family.has_all else st.booleans()
    given = [right for right in family.rights if draw(st.booleans())]
    return version, items, [(operation, kind, "*" if draw(names) else name) for operation, kind, name in given]


def alone(family: Family, version: int, items: Sequence[Item] | None) -> list[list[Item]]:
    """Each item by itself, a group with one topic at a time; everything stands for each item that there is."""
    named = [item for item in items or () if not item.is_cursor]
    if not named and (items is None or asks_for_all(family, version)):
        named = [item for item in family.items(version) if not item.is_cursor]
    if family.key == 9 and version >= 8:
        topics = [topic for item in family.items(version) for topic in item.inside or ()]
        named = [Item(item.name, inside=inside) for item in named for inside in ((), *((each,) for each in topics))]
    return [[item] for item in dict.fromkeys(named)] + ([] if asks_for_all(family, version) else [[]])


def asks_for_all(family: Family, version: int) -> bool:
    """Whether an empty list asks for everything."""
    return family.key == 75 or (family.key == 3 and version == 0)


def is_complaint(fact: Fact) -> bool:
    """Whether the entry only says that it makes no sense; a name and an id together would tell something."""
    shown = dict(fact)
    is_pair = bool(shown.get("name")) and shown.get("topic_id", ZERO_UUID) != ZERO_UUID
    return bool({shown.get("error_code"), shown.get("partition_error_code")} & COMPLAINTS) and not is_pair


def check(family: Family, version: int, items: list[Item] | None, rights: list[Right]) -> None:
    """Play the composition and its items, each on a broker of its own."""
    with played(rights) as together, played(rights) as apart:
        before = together.state(), apart.state()
        compare(family, version, items, together, apart)
        changed, allowed = (differing(*pair) for pair in zip(before, (together.state(), apart.state()), strict=True))
        assert changed <= allowed, "changed beyond what the items change alone"


def compare(family: Family, version: int, items: list[Item] | None, together: Played, apart: Played) -> None:
    """Hold what the composition tells to what its items tell alone."""
    told = together.ask(family, version, items)
    singly = set[Fact]().union(*(apart.ask(family, version, one) for one in alone(family, version, items)))
    beyond = {fact for fact in told - singly if not is_complaint(fact)}
    assert not beyond, "told beyond what the items tell alone"


def differing(before: dict[Key, Any], after: dict[Key, Any]) -> set[Key]:
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def test_every_api_with_rights_of_its_own_is_composed() -> None:
    """A right that the whole request needs holds whatever is in it."""
    by_item = {key for key, api in SERVED.items() if not all(isinstance(need, Needs) for need in api.declared.rights)}
    assert by_item == FAMILIES.keys() | NAMES_ONE_THING.keys()


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: SERVED[family.key].name)
def test_a_composition_tells_and_changes_no_more_than_its_items(family: Family) -> None:
    """Requests that change nothing share a broker, so that many more of them can be tried."""
    with ExitStack() as stack:
        shared = None if family.key in CHANGING else stack.enter_context(played(()))

        @settings(max_examples=20 if shared is None else 200)
        @given(composed(family))
        def compose(given: tuple[int, list[Item] | None, list[Right]]) -> None:
            version, items, rights = given
            if shared is None:
                check(family, version, items, rights)
            else:
                shared.grant(rights)
                compare(family, version, items, shared, shared)

        compose()


_GROUP_ALONE = [(Operation.DESCRIBE, ResourceType.GROUP, "g")]


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize("insides", [(None, ()), ((), None), (None, None), (None, (Item("t"),))])
def test_a_group_named_twice_tells_no_topic_that_is_hidden(
    version: int, insides: tuple[tuple[Item, ...] | None, ...]
) -> None:
    """OffsetFetch kept one change to the answer for each group id: the entry that asked for all was shown whole."""
    items = [
        Item("g", inside=inside and tuple(each._replace(by_id=version == 10) for each in inside)) for inside in insides
    ]
    with played(_GROUP_ALONE) as one:
        answer = one.alice.ask(FAMILIES[9].build(one.world, version, items), version)
        parts = [part for group in answer.groups for topic in group.topics for part in topic.partitions]
        assert {(part.error_code, part.committed_offset) for part in parts} <= {(29, -1)}
        assert [bool(group.error_code) for group in answer.groups] == [False] * len(answer.groups)
    check(FAMILIES[9], version, items, _GROUP_ALONE)
