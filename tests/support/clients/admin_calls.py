"""Calls of the admin client as stories that hold on our broker and on Apache Kafka alike.

They are in the findings' table of what users of other clients would miss.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from partita import Admin, AsyncAdmin, Consumer, Producer
from partita.admin import SomeFailed
from partita.admin.results import GroupDescription, ReplicaSize
from partita.errors import (
    GroupIdNotFoundError,
    InvalidProducerEpochError,
    InvalidUpdateVersionError,
    ProducerFencedError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from partita.offsets.topic_partition import OffsetAndMetadata
from support.clients.broker import until


def log_dirs_have_the_size_of_each_replica(admin: Admin, bootstrap: str) -> None:
    admin.create_topic("sized", 2)
    admin.wait_for_topics("sized")
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("sized", b"x" * 1000, partition=1).result(60)
    (node,) = admin.describe_cluster().nodes
    until(lambda: len(replicas_of(admin, "sized")) == 2, "both logs are there")
    for asked in (None, [node.id]):
        (directory,) = admin.describe_log_dirs(asked)
        sizes = {(r.topic, r.partition): r for r in directory.replicas if r.topic == "sized"}
        assert (directory.node, directory.error) == (node.id, None)
        assert directory.total_bytes is not None
        assert directory.usable_bytes is not None
        assert directory.total_bytes >= directory.usable_bytes > 0
        assert sizes["sized", 0].size_bytes == 0
        assert sizes["sized", 1].size_bytes > 1000
        assert not sizes["sized", 1].is_future


def replicas_of(admin: Admin, topic: str) -> list[ReplicaSize]:
    return [replica for each in admin.describe_log_dirs() for replica in each.replicas if replica.topic == topic]


def features_are_described(admin: Admin) -> None:
    features = admin.describe_features()
    low, high = features.supported["group.version"]
    assert low <= features.finalized["group.version"] <= high
    assert features.epoch is not None


def feature_levels_are_checked_and_set(admin: Admin) -> None:
    before = admin.describe_features().finalized["group.version"]
    admin.update_features({"group.version": before}, validate_only=True)
    with pytest.raises(InvalidUpdateVersionError, match=r"group\.version"):
        admin.update_features({"group.version": 99})
    with pytest.raises(InvalidUpdateVersionError, match="downgrade"):
        admin.update_features({"group.version": 0})
    admin.update_features({"group.version": 0}, how="safe_downgrade", validate_only=True)
    assert admin.describe_features().finalized["group.version"] == before


def the_quorum_is_described(admin: Admin) -> None:
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id in [voter.id for voter in quorum.voters]
    assert quorum.nodes[quorum.leader_id][0].count(":") >= 2


def resources_with_options_are_listed(admin: Admin) -> None:
    admin.create_topic("listed")
    admin.wait_for_topics("listed")
    (node,) = admin.describe_cluster().nodes
    everything = {(resource.kind, resource.name) for resource in admin.list_config_resources()}
    assert {("topic", "listed"), ("broker", str(node.id)), ("broker_logger", str(node.id))} <= everything
    assert {resource.kind for resource in admin.list_config_resources(["topic"])} == {"topic"}
    with pytest.raises(ValueError, match="kind must be one of topic, broker"):
        admin.list_config_resources(["user"])


def topics_are_waited_for(admin: Admin) -> None:
    threading.Timer(0.3, lambda: admin.create_topic("awaited", 3)).start()
    admin.wait_for_topics(["awaited"], timeout=60)
    assert len(admin.describe_topics("awaited")[0].partitions) == 3
    with pytest.raises(UnknownTopicOrPartitionError, match="'never' at node"):
        admin.wait_for_topics("never", timeout=0.5)


def several_groups_in_one_call(admin: Admin) -> None:
    admin.create_topic("several", 2)
    admin.wait_for_topics("several")
    noted = OffsetAndMetadata(7, leader_epoch=0, metadata="by hand")
    admin.alter_group_offsets("several-a", {("several", 0): noted, ("several", 1): 3})
    admin.alter_group_offsets("several-b", {("several", 1): 4})
    offsets = admin.list_consumer_group_offsets(["several-a", "several-b", "several-none"])
    assert [(c.partition, c.offset, c.leader_epoch, c.metadata) for c in offsets["several-a"]] == [
        (0, 7, 0, "by hand"),
        (1, 3, -1, ""),
    ]
    assert [(c.partition, c.offset) for c in offsets["several-b"]] == [(1, 4)]
    assert offsets["several-none"] == []
    described = admin.describe_consumer_groups(["several-a", "several-b"])
    assert {name: group.state for name, group in described.items()} == {"several-a": "Empty", "several-b": "Empty"}
    with pytest.raises(SomeFailed) as failed:
        admin.describe_consumer_groups(["several-a", "several-none"])
    assert isinstance(failed.value.failures["several-none"], GroupIdNotFoundError)


def members_are_removed(admin: Admin, bootstrap: str) -> None:
    admin.create_topic("left", 2)
    admin.wait_for_topics("left")

    def stays_away(group: str, **options: Any) -> Consumer:
        """A member that is in the group and polls no more, as one whose process hangs."""
        consumer = Consumer(bootstrap_servers=bootstrap, group_id=group, **options)
        consumer.subscribe(["left"])
        until(lambda: consumer.poll(0.1) is not None and bool(consumer.assignment()), "the consumer is a member")
        return consumer

    with stays_away("left-static", group_instance_id="one"), stays_away("left-dynamic"):
        with pytest.raises(UnknownMemberIdError, match="no member 'two'"):
            admin.remove_members_from_consumer_group("left-static", instance_ids=["two"])
        admin.remove_members_from_consumer_group("left-static", instance_ids=["one"])
        assert members(admin, "left-static") == []
        (dynamic,) = members(admin, "left-dynamic")
        admin.remove_members_from_consumer_group("left-dynamic", member_ids=[dynamic])
        until(lambda: dynamic not in members(admin, "left-dynamic"), "the member has left")
    with stays_away("left-all", group_instance_id="one"):
        admin.remove_members_from_consumer_group("left-all", everyone=True)
        assert members(admin, "left-all") == []


def members(admin: Admin, group_id: str) -> list[str]:
    group: GroupDescription = admin.describe_group(group_id)
    return [member.member_id for member in group.members]


def a_transaction_is_terminated_by_force(admin: Admin, bootstrap: str) -> None:
    admin.create_topic("forced")
    admin.wait_for_topics("forced")
    with Producer(bootstrap_servers=bootstrap, transactional_id="forced") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("forced", b"never committed").result(60)
        assert state_of(admin, "forced") == "Ongoing"
        admin.force_terminate_transaction("forced")
        until(lambda: state_of(admin, "forced") in ("CompleteAbort", "Empty"), "the transaction has ended")
        with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
            producer.commit_transaction()
        with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
            consumer.assign([("forced", 0)])
            consumer.seek_to_beginning()
            assert not consumer.poll(1.0)


def state_of(admin: Admin, transactional_id: str) -> str:
    return admin.describe_transactions(transactional_id)[0].state


def the_calls_are_coroutines_too(bootstrap: str) -> None:
    async def story() -> None:
        async with AsyncAdmin(bootstrap_servers=bootstrap) as admin:
            quorum, features = await asyncio.gather(admin.describe_metadata_quorum(), admin.describe_features())
            assert quorum.voters
            assert features.supported

    asyncio.run(story())
