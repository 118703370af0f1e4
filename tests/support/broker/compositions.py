"""Requests of every API that names many things, composed of items; and the facts that their answers tell.

A composition names items several times, in every order, by name and by id; the rights layer has to hold for each as it
does for the items alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from partita.protocol.messages import (
    add_partitions_to_txn,
    alter_configs,
    alter_share_group_offsets,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_topics,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_producers,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    txn_offset_commit,
)
from partita.protocol.primitives import ZERO_UUID, Message, Structure
from partita.records.builder import build_batch
from partita.security.rights.acls import Operation, ResourceType

TOPIC, GROUP, CLUSTER, TX = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
TOPICS, NO_TOPIC, NEW = ("t", "u"), "nowhere", ("new", "newer")
GROUPS, CONSUMERS, IDS = ("g", "h"), ("k", "l"), ("x", "y")
MEMBER = "A" * 22
TOKEN_OWNERS = ("carol", "dave")
_NOW_MS = int(time.time() * 1000)
_UNKNOWN_ID = b"\7" * 16
Right = tuple[Operation, ResourceType, str]


class Item(NamedTuple):
    """One thing that a request names. `inside` are the topics of a group; None stands for all of them."""

    name: str
    by_id: bool = False
    inside: tuple[Item, ...] | None = ()
    kind: int = 2
    is_cursor: bool = False


@dataclass(frozen=True)
class World:
    """The topics by id, and a producer of transactional id x."""

    ids: Mapping[str, bytes]
    producer: tuple[int, int]
    names: dict[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.update({topic_id: name for name, topic_id in self.ids.items()})

    def id_of(self, item: Item) -> bytes:
        """The id that the request gives; zero for what is named."""
        return self.ids.get(item.name, _UNKNOWN_ID) if item.by_id else ZERO_UUID


Build = Callable[[World, int, Sequence[Item] | None], Message]


@dataclass(frozen=True)
class Family:
    """An API, the rights that it asks for, and its items. `build` makes a request; None asks for everything."""

    key: int
    rights: tuple[Right, ...]
    build: Build
    items: Callable[[int], tuple[Item, ...]]
    has_all: bool = False
    first_version: int = 0


def _named(*names: str) -> Callable[[int], tuple[Item, ...]]:
    return lambda version: tuple(Item(name) for name in names)


def _by_id_from(first: int, *, both: bool = False) -> Callable[[int], tuple[Item, ...]]:
    """Topics by name, from version `first` on by id, or by `both`."""

    def items(version: int) -> tuple[Item, ...]:
        named = tuple(Item(name) for name in (*TOPICS, NO_TOPIC))
        by_id = tuple(Item(name, by_id=True) for name in (*TOPICS, NO_TOPIC))
        return named if version < first else named + by_id if both else by_id

    return items


_TOPIC_ITEMS = _named(*TOPICS, NO_TOPIC)


def _on(kind: ResourceType, operation: Operation, *names: str) -> tuple[Right, ...]:
    return tuple((operation, kind, name) for name in names)


def _cluster(operation: Operation) -> Right:
    return operation, CLUSTER, "kafka-cluster"


def _describe_tokens(world: World, version: int, items: Sequence[Item] | None) -> Message:
    owners = None if items is None else [
        describe_delegation_token.DescribeDelegationTokenOwner(principal_type="User", principal_name=item.name)
        for item in items
    ]  # fmt: skip
    return describe_delegation_token.DescribeDelegationTokenRequest(owners=owners)


def _produce(world: World, version: int, items: Sequence[Item] | None) -> Message:
    records = build_batch([(_NOW_MS, None, b"v", [])])
    data = [
        produce.TopicProduceData(
            name=item.name, topic_id=world.id_of(item), partition_data=[produce.PartitionProduceData(records=records)]
        )
        for item in items or ()
    ]
    return produce.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data)


def _fetch(world: World, version: int, items: Sequence[Item] | None) -> Message:
    asked = fetch.FetchPartition(partition_max_bytes=1 << 20)
    topics = [fetch.FetchTopic(topic=item.name, topic_id=world.id_of(item), partitions=[asked]) for item in items or ()]
    return fetch.FetchRequest(max_wait_ms=0, max_bytes=1 << 24, topics=topics)


def _list_offsets(world: World, version: int, items: Sequence[Item] | None) -> Message:
    asked = list_offsets.ListOffsetsPartition(timestamp=-1)
    return list_offsets.ListOffsetsRequest(
        topics=[list_offsets.ListOffsetsTopic(name=item.name, partitions=[asked]) for item in items or ()]
    )


def _metadata(world: World, version: int, items: Sequence[Item] | None) -> Message:
    topics = [
        metadata.MetadataRequestTopic(name=None if item.by_id else item.name, topic_id=world.id_of(item))
        for item in items or ()
    ]
    is_all = items is None and version > 0
    return metadata.MetadataRequest(
        topics=None if is_all else topics,
        allow_auto_topic_creation=True,
        include_topic_authorized_operations=version >= 8,
    )


def _offset_commit(world: World, version: int, items: Sequence[Item] | None) -> Message:
    part = offset_commit.OffsetCommitRequestPartition(committed_offset=5)
    topics = [
        offset_commit.OffsetCommitRequestTopic(name=item.name, topic_id=world.id_of(item), partitions=[part])
        for item in items or ()
    ]
    return offset_commit.OffsetCommitRequest(group_id="g", topics=topics)


def _offset_fetch(world: World, version: int, items: Sequence[Item] | None) -> Message:
    if version < 8:
        topics = [offset_fetch.OffsetFetchRequestTopic(name=item.name, partition_indexes=[0]) for item in items or ()]
        return offset_fetch.OffsetFetchRequest(group_id="g", topics=None if items is None and version > 1 else topics)
    groups = []
    for item in items or ():
        asked = [
            offset_fetch.OffsetFetchRequestTopics(name=each.name, topic_id=world.id_of(each), partition_indexes=[0, 1])
            for each in item.inside or ()
        ]
        topics_of = None if item.inside is None else asked
        groups.append(offset_fetch.OffsetFetchRequestGroup(group_id=item.name, topics=topics_of))
    return offset_fetch.OffsetFetchRequest(groups=groups)


def _offset_fetch_items(version: int) -> tuple[Item, ...]:
    if version < 8:
        return _TOPIC_ITEMS(version)
    topics = tuple(Item(name, by_id=version >= 10) for name in (*TOPICS, NO_TOPIC))
    insides = (None, (), *((topic,) for topic in topics), topics)
    return tuple(Item(group, inside=inside) for group in GROUPS for inside in insides)


def _find_coordinator(world: World, version: int, items: Sequence[Item] | None) -> Message:
    names = [item.name for item in items or ()]
    return find_coordinator.FindCoordinatorRequest(key=names[0] if names else "", coordinator_keys=names)


def _describe_groups(world: World, version: int, items: Sequence[Item] | None) -> Message:
    return describe_groups.DescribeGroupsRequest(
        groups=[item.name for item in items or ()], include_authorized_operations=version >= 3
    )


def _create_topics(world: World, version: int, items: Sequence[Item] | None) -> Message:
    topics = [
        create_topics.CreatableTopic(name=item.name, num_partitions=1, replication_factor=1) for item in items or ()
    ]
    return create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000)


def _delete_topics(world: World, version: int, items: Sequence[Item] | None) -> Message:
    states = [
        delete_topics.DeleteTopicState(name=None if item.by_id else item.name, topic_id=world.id_of(item))
        for item in items or ()
    ]
    names = [item.name for item in items or ()]
    return delete_topics.DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000)


def _delete_records(world: World, version: int, items: Sequence[Item] | None) -> Message:
    part = delete_records.DeleteRecordsPartition(offset=1)
    topics = [delete_records.DeleteRecordsTopic(name=item.name, partitions=[part]) for item in items or ()]
    return delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=10_000)


def _epochs(world: World, version: int, items: Sequence[Item] | None) -> Message:
    part = offset_for_leader_epoch.OffsetForLeaderPartition()
    topics = [offset_for_leader_epoch.OffsetForLeaderTopic(topic=item.name, partitions=[part]) for item in items or ()]
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=topics)


def _add_partitions(world: World, version: int, items: Sequence[Item] | None) -> Message:
    producer_id, epoch = world.producer
    if version < 4:
        old = [add_partitions_to_txn.V3AndBelowTopic(name=item.name, partitions=[0]) for item in items or ()]
        return add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch, v3_and_below_topics=old,
        )  # fmt: skip
    transactions = [
        add_partitions_to_txn.AddPartitionsToTxnTransaction(
            transactional_id="x", producer_id=producer_id, producer_epoch=epoch,
            topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name=item.name, partitions=[0])],
        )
        for item in items or ()
    ]  # fmt: skip
    return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=transactions)


def _txn_offset_commit(world: World, version: int, items: Sequence[Item] | None) -> Message:
    part = txn_offset_commit.TxnOffsetCommitRequestPartition(committed_offset=5)
    topics = [
        txn_offset_commit.TxnOffsetCommitRequestTopic(name=item.name, topic_id=world.id_of(item), partitions=[part])
        for item in items or ()
    ]
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=world.producer[0], producer_epoch=world.producer[1],
        topics=topics,
    )  # fmt: skip


_RESOURCES = (Item("t"), Item("u"), Item(NO_TOPIC), Item("g", kind=32), Item("1", kind=4))
_OPTION = {2: "retention.ms", 32: "consumer.session.timeout.ms", 4: "log.cleaner.backoff.ms"}


def _describe_configs(world: World, version: int, items: Sequence[Item] | None) -> Message:
    resources = [
        describe_configs.DescribeConfigsResource(
            resource_type=item.kind, resource_name=item.name, configuration_keys=[_OPTION[item.kind]]
        )
        for item in items or ()
    ]
    return describe_configs.DescribeConfigsRequest(resources=resources)


def _alter_configs(world: World, version: int, items: Sequence[Item] | None) -> Message:
    resources = [
        alter_configs.AlterConfigsResource(
            resource_type=item.kind,
            resource_name=item.name,
            configs=[alter_configs.AlterableConfig(name=_OPTION[item.kind], value="50000")],
        )
        for item in items or ()
    ]
    return alter_configs.AlterConfigsRequest(resources=resources)


def _incremental(world: World, version: int, items: Sequence[Item] | None) -> Message:
    resources = [
        incremental_alter_configs.AlterConfigsResource(
            resource_type=item.kind,
            resource_name=item.name,
            configs=[incremental_alter_configs.AlterableConfig(name=_OPTION[item.kind], value="50000")],
        )
        for item in items or ()
    ]
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)


def _create_partitions(world: World, version: int, items: Sequence[Item] | None) -> Message:
    topics = [
        create_partitions.CreatePartitionsTopic(name=item.name, count=3, assignments=None) for item in items or ()
    ]
    return create_partitions.CreatePartitionsRequest(topics=topics, timeout_ms=10_000)


def _delete_groups(world: World, version: int, items: Sequence[Item] | None) -> Message:
    return delete_groups.DeleteGroupsRequest(groups_names=[item.name for item in items or ()])


def _offset_delete(world: World, version: int, items: Sequence[Item] | None) -> Message:
    part = offset_delete.OffsetDeleteRequestPartition()
    topics = [offset_delete.OffsetDeleteRequestTopic(name=item.name, partitions=[part]) for item in items or ()]
    return offset_delete.OffsetDeleteRequest(group_id="g", topics=topics)


def _describe_producers(world: World, version: int, items: Sequence[Item] | None) -> Message:
    topics = [describe_producers.DescribeProducersTopic(name=item.name, partition_indexes=[0]) for item in items or ()]
    return describe_producers.DescribeProducersRequest(topics=topics)


def _describe_transactions(world: World, version: int, items: Sequence[Item] | None) -> Message:
    return describe_transactions.DescribeTransactionsRequest(transactional_ids=[item.name for item in items or ()])


def _heartbeat(world: World, version: int, items: Sequence[Item] | None) -> Message:
    names = [item.name for item in items or ()]
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="new", member_id=MEMBER, rebalance_timeout_ms=60_000, topic_partitions=[],
        subscribed_topic_names=names,
    )  # fmt: skip


def _describe_consumer_groups(world: World, version: int, items: Sequence[Item] | None) -> Message:
    return consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[item.name for item in items or ()])


def _share_heartbeat(world: World, version: int, items: Sequence[Item] | None) -> Message:
    names = [item.name for item in items or ()]
    return share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id="new", member_id=MEMBER, subscribed_topic_names=names
    )


def _describe_streams_groups(world: World, version: int, items: Sequence[Item] | None) -> Message:
    return streams_group_describe.StreamsGroupDescribeRequest(group_ids=[item.name for item in items or ()])


def _share_fetch(world: World, version: int, items: Sequence[Item] | None) -> Message:
    m = share_fetch
    topics = [
        m.ShareFetchTopic(topic_id=world.id_of(item), partitions=[m.ShareFetchPartition(partition_index=0)])
        for item in items or ()
    ]
    return m.ShareFetchRequest(group_id="g", member_id=MEMBER, max_records=1, batch_size=1, topics=topics)


def _share_acknowledge(world: World, version: int, items: Sequence[Item] | None) -> Message:
    m = share_acknowledge
    batch = m.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    topics = [
        m.ShareAcknowledgeTopic(
            topic_id=world.id_of(item),
            partitions=[m.ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])],
        )
        for item in items or ()
    ]
    return m.ShareAcknowledgeRequest(group_id="g", member_id=MEMBER, share_session_epoch=1, topics=topics)


def _describe_share_groups(world: World, version: int, items: Sequence[Item] | None) -> Message:
    return share_group_describe.ShareGroupDescribeRequest(group_ids=[item.name for item in items or ()])


def _describe_share_offsets(world: World, version: int, items: Sequence[Item] | None) -> Message:
    m = describe_share_group_offsets
    groups = [m.DescribeShareOffsetsGroup(group_id=item.name, topics=None) for item in items or ()]
    return m.DescribeShareGroupOffsetsRequest(groups=groups)


def _alter_share_offsets(world: World, version: int, items: Sequence[Item] | None) -> Message:
    m = alter_share_group_offsets
    topics = [
        m.AlterShareOffsetsTopic(topic_name=item.name, partitions=[m.AlterShareOffsetsPartition(start_offset=1)])
        for item in items or ()
    ]
    return m.AlterShareGroupOffsetsRequest(group_id="g", topics=topics)


def _delete_share_offsets(world: World, version: int, items: Sequence[Item] | None) -> Message:
    m = delete_share_group_offsets
    topics = [m.DeleteShareOffsetsTopic(topic_name=item.name) for item in items or ()]
    return m.DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)


def _describe_topic_partitions(world: World, version: int, items: Sequence[Item] | None) -> Message:
    m = describe_topic_partitions
    cursors = [
        m.DescribeTopicPartitionsCursor(topic_name=item.name, partition_index=1)
        for item in items or ()
        if item.is_cursor
    ]
    return m.DescribeTopicPartitionsRequest(
        topics=[m.DescribeTopicPartitionsTopic(name=item.name) for item in items or () if not item.is_cursor],
        response_partition_limit=2000,
        cursor=cursors[0] if cursors else None,
    )


def _described_pages(version: int) -> tuple[Item, ...]:
    return (*_TOPIC_ITEMS(version), *(Item(name, is_cursor=True) for name in (*TOPICS, NO_TOPIC)))


_CONFIGURED = (
    *_on(TOPIC, Operation.ALTER_CONFIGS, *TOPICS),
    (Operation.ALTER_CONFIGS, GROUP, "g"),
    _cluster(Operation.ALTER_CONFIGS),
)
_SHOWN = (
    *_on(TOPIC, Operation.DESCRIBE_CONFIGS, *TOPICS),
    (Operation.DESCRIBE_CONFIGS, GROUP, "g"),
    _cluster(Operation.DESCRIBE_CONFIGS),
)
_CREATED = (
    _cluster(Operation.CREATE),
    *_on(TOPIC, Operation.CREATE, *NEW),
    (Operation.DESCRIBE_CONFIGS, TOPIC, NEW[0]),
)
_CREATED_BY_METADATA = (
    *_on(TOPIC, Operation.DESCRIBE, *TOPICS, NO_TOPIC),
    (Operation.CREATE, TOPIC, NO_TOPIC),
    _cluster(Operation.CREATE),
)
_GROUP_AND_TOPICS = ((Operation.READ, GROUP, "g"), *_on(TOPIC, Operation.READ, *TOPICS))
_WRITTEN = (_cluster(Operation.CLUSTER_ACTION), (Operation.WRITE, TX, "x"), *_on(TOPIC, Operation.WRITE, *TOPICS))
_OF_TOKENS = (
    *_on(ResourceType.USER, Operation.DESCRIBE_TOKENS, *(f"User:{owner}" for owner in TOKEN_OWNERS)),
    *_on(ResourceType.DELEGATION_TOKEN, Operation.DESCRIBE, *(f"token of {owner}" for owner in TOKEN_OWNERS)),
)
FAMILIES: dict[int, Family] = {
    family.key: family
    for family in (
        Family(0, _on(TOPIC, Operation.WRITE, *TOPICS), _produce, _by_id_from(13)),
        Family(1, _on(TOPIC, Operation.READ, *TOPICS), _fetch, _by_id_from(13)),
        Family(2, _on(TOPIC, Operation.DESCRIBE, *TOPICS), _list_offsets, _TOPIC_ITEMS),
        Family(3, _CREATED_BY_METADATA, _metadata, _by_id_from(12, both=True), has_all=True),
        Family(8, _GROUP_AND_TOPICS, _offset_commit, _by_id_from(10)),
        Family(
            9,
            (*_on(GROUP, Operation.DESCRIBE, *GROUPS), *_on(TOPIC, Operation.DESCRIBE, *TOPICS)),
            _offset_fetch,
            _offset_fetch_items,
            has_all=True,
        ),
        Family(10, _on(GROUP, Operation.DESCRIBE, *GROUPS), _find_coordinator, _named(*GROUPS)),
        Family(15, _on(GROUP, Operation.DESCRIBE, *GROUPS), _describe_groups, _named(*GROUPS)),
        Family(19, _CREATED, _create_topics, _named(*NEW, "t")),
        Family(
            20,
            (*_on(TOPIC, Operation.DESCRIBE, *TOPICS), *_on(TOPIC, Operation.DELETE, *TOPICS)),
            _delete_topics,
            _by_id_from(6, both=True),
        ),
        Family(21, _on(TOPIC, Operation.DELETE, *TOPICS), _delete_records, _TOPIC_ITEMS),
        Family(
            23, (_cluster(Operation.CLUSTER_ACTION), *_on(TOPIC, Operation.DESCRIBE, *TOPICS)), _epochs, _TOPIC_ITEMS
        ),
        Family(24, _WRITTEN, _add_partitions, _TOPIC_ITEMS),
        Family(28, (_WRITTEN[1], *_GROUP_AND_TOPICS), _txn_offset_commit, _TOPIC_ITEMS),
        Family(41, _OF_TOKENS, _describe_tokens, _named(*TOKEN_OWNERS, "nobody"), has_all=True),
        Family(32, _SHOWN, _describe_configs, lambda version: _RESOURCES),
        Family(33, _CONFIGURED, _alter_configs, lambda version: _RESOURCES),
        Family(37, _on(TOPIC, Operation.ALTER, *TOPICS), _create_partitions, _TOPIC_ITEMS),
        Family(42, _on(GROUP, Operation.DELETE, *GROUPS), _delete_groups, _named(*GROUPS)),
        Family(44, _CONFIGURED, _incremental, lambda version: _RESOURCES),
        Family(
            47, ((Operation.DELETE, GROUP, "g"), *_on(TOPIC, Operation.READ, *TOPICS)), _offset_delete, _TOPIC_ITEMS
        ),
        Family(61, _on(TOPIC, Operation.READ, *TOPICS), _describe_producers, _TOPIC_ITEMS),
        Family(
            65,
            (*_on(TX, Operation.DESCRIBE, *IDS), *_on(TOPIC, Operation.DESCRIBE, *TOPICS)),
            _describe_transactions,
            _named(*IDS),
        ),
        Family(
            68,
            ((Operation.READ, GROUP, "new"), *_on(TOPIC, Operation.DESCRIBE, *TOPICS)),
            _heartbeat,
            _TOPIC_ITEMS,
            first_version=1,
        ),
        Family(
            69,
            (*_on(GROUP, Operation.DESCRIBE, *CONSUMERS), *_on(TOPIC, Operation.DESCRIBE, *TOPICS)),
            _describe_consumer_groups,
            _named(*CONSUMERS),
        ),
        Family(
            76,
            ((Operation.READ, GROUP, "new"), *_on(TOPIC, Operation.DESCRIBE, *TOPICS)),
            _share_heartbeat,
            _TOPIC_ITEMS,
        ),
        Family(89, _on(GROUP, Operation.DESCRIBE, *CONSUMERS), _describe_streams_groups, _named(*CONSUMERS)),
        Family(77, _on(GROUP, Operation.DESCRIBE, *CONSUMERS), _describe_share_groups, _named(*CONSUMERS)),
        Family(78, _GROUP_AND_TOPICS, _share_fetch, _by_id_from(1)),
        Family(79, _GROUP_AND_TOPICS, _share_acknowledge, _by_id_from(1)),
        Family(90, _on(GROUP, Operation.DESCRIBE, *GROUPS), _describe_share_offsets, _named(*GROUPS)),
        Family(91, _GROUP_AND_TOPICS, _alter_share_offsets, _TOPIC_ITEMS),
        Family(
            92,
            ((Operation.DELETE, GROUP, "g"), *_on(TOPIC, Operation.READ, *TOPICS)),
            _delete_share_offsets,
            _TOPIC_ITEMS,
        ),
        Family(75, _on(TOPIC, Operation.DESCRIBE, *TOPICS), _describe_topic_partitions, _described_pages, has_all=True),
    )
}
NAMES_ONE_THING = {
    14: "SyncGroup", 16: "ListGroups", 22: "InitProducerId", 38: "CreateDelegationToken", 39: "RenewDelegationToken",
    40: "ExpireDelegationToken", 66: "ListTransactions", 88: "StreamsGroupHeartbeat",
}  # fmt: skip
"""APIs whose rights depend on more than the whole request, and that yet have nothing to compose."""

LEFT_OUT = frozenset(
    {"throttle_time_ms", "cluster_id", "port", "member_id", "producer_id", "log_append_time_ms", "member_epoch",
     "base_offset", "transaction_start_time_ms", "last_timestamp", "group_epoch", "assignment_epoch", "error_message"}
)  # fmt: skip
Fact = tuple[tuple[str, Any], ...]


def facts(answer: Message | Structure, names: Mapping[bytes, str]) -> set[Fact]:
    """Every entry of an answer with the entries that it stands in, as plain values; how often and where is left out.

    What the answer says as a whole is a fact by itself: an error of the group, say, beside a topic that is refused.
    """
    return set(_facts(answer, names, None))


def _facts(value: Message | Structure, names: Mapping[bytes, str], above: Fact | None) -> Iterator[Fact]:
    mine: list[tuple[str, Any]] = []
    below: list[Any] = []
    for slot in _slots(value):
        if slot in LEFT_OUT:
            continue
        inner = getattr(value, slot)
        if isinstance(inner, list) and inner and isinstance(inner[0], Structure):
            below += inner
        elif isinstance(inner, list):
            mine += [(slot, tuple(inner))] if inner else []
        elif isinstance(inner, Structure):
            below.append(inner)
        else:
            mine.append((slot, _plain(slot, inner, names)))
    here = (*(above or ()), *mine)
    yield here
    for each in below:
        yield from _facts(each, names, () if above is None else here)


def _slots(value: Message | Structure) -> list[str]:
    return [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if not name.startswith("_")]


def _plain(slot: str, value: Any, names: Mapping[bytes, str]) -> Any:
    if slot == "topic_id" and value != ZERO_UUID:
        return names.get(value, "another topic")
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value
