"""The admin client on a real broker, over real sockets."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer
from partita.admin import NewTopic, SomeFailed, Target
from partita.admin.results import TopicListing
from partita.errors import (
    BrokerNotAvailableError,
    GroupIdNotFoundError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidRequestError,
    NonEmptyGroupError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from partita.net.errors import Disconnected


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as client:
        yield client


@pytest.fixture
def numbers(broker: Broker, admin: Admin) -> None:
    """Topic "numbers" with 10 records in partition 0 (timestamps 1000 to 1009) and none in partition 1."""
    admin.create_topic("numbers", 2)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(10):
            producer.send("numbers", b"%d" % number, partition=0, timestamp=1000 + number)


# Topics


def test_topics_are_created_listed_described_and_deleted(admin: Admin) -> None:
    created = admin.create_topics(NewTopic("b", 3, configs={"retention.ms": 60_000}), "a")
    assert [(topic.name, topic.partitions, topic.replication_factor) for topic in created] == [("b", 3, 1), ("a", 1, 1)]
    assert created[0].configs["retention.ms"] == "60000"
    assert [(topic.name, topic.partitions) for topic in admin.list_topics()] == [("a", 1), ("b", 3)]
    (described,) = admin.describe_topics("b")
    assert described.topic_id == created[0].topic_id
    assert [(part.partition, part.leader, part.isr) for part in described.partitions] == [
        (0, 1, [1]),
        (1, 1, [1]),
        (2, 1, [1]),
    ]
    admin.delete_topics(["a", "b"])
    assert admin.list_topics() == []


def test_what_a_broker_refuses_is_raised(admin: Admin) -> None:
    admin.create_topic("t", 2)
    with pytest.raises(TopicAlreadyExistsError, match="t"):
        admin.create_topic("t")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics("missing")
    with pytest.raises(UnknownTopicOrPartitionError, match="'missing'"):
        admin.describe_topics("missing")
    with pytest.raises(InvalidConfigError):
        admin.create_topic("u", configs={"retention.ms": "soon"})


def test_of_several_things_the_failed_ones_are_named(admin: Admin) -> None:
    admin.create_topic("t")
    with pytest.raises(SomeFailed) as failed:
        admin.create_topics("t", "u")
    assert list(failed.value.failures) == ["t"]
    assert [topic.name for topic in admin.list_topics()] == ["t", "u"]


def test_validate_only_creates_nothing(admin: Admin) -> None:
    admin.create_topics("t", validate_only=True)
    assert admin.list_topics() == []


def test_a_topic_grows(admin: Admin) -> None:
    admin.create_topic("t", 2)
    admin.create_partitions("t", 5)
    assert admin.list_topics()[0].partitions == 5
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions("t", 3)


def test_options_are_described_and_changed(admin: Admin) -> None:
    admin.create_topic("t")
    admin.alter_configs("topic", "t", {"retention.ms": 5_000, "cleanup.policy": "compact"})
    entries = {entry.name: entry for entry in admin.describe_configs("topic", "t")}
    assert (entries["retention.ms"].value, entries["retention.ms"].source) == ("5000", "topic")
    assert entries["max.message.bytes"].is_default
    admin.alter_configs("topic", "t", delete=["retention.ms"], append={"cleanup.policy": "delete"})
    entries = {entry.name: entry for entry in admin.describe_configs("topic", "t")}
    assert entries["retention.ms"].is_default
    assert set((entries["cleanup.policy"].value or "").split(",")) == {"compact", "delete"}
    assert "group.max.session.timeout.ms" in {entry.name for entry in admin.describe_configs("broker", "1")}
    with pytest.raises(InvalidConfigError):
        admin.alter_configs("topic", "t", {"retention.ms": "soon"})


def test_the_cluster_is_described() -> None:
    with Broker(nodes=3) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        cluster = admin.describe_cluster()
        assert [node.id for node in cluster.nodes] == [1, 2, 3]
        assert json.loads(json.dumps(cluster.as_json()))["nodes"][0]["host"] == "127.0.0.1"


# Offsets of partitions


def test_offsets_are_found_by_name_and_by_time(admin: Admin, numbers: None) -> None:
    def offset(spec: Any, partition: int = 0) -> int:
        return admin.list_offsets({("numbers", partition): spec})["numbers", partition].offset

    assert [offset(spec) for spec in ("earliest", "latest", 1004, 2000, "max_timestamp")] == [0, 10, 4, -1, 9]
    assert offset("latest", 1) == 0
    with pytest.raises(ValueError, match="an offset spec that is no time in ms must be one of latest"):
        offset("newest")
    with pytest.raises(UnknownTopicOrPartitionError, match="there is no topic 'missing'"):
        admin.list_offsets({("missing", 0): "latest"})
    with pytest.raises(UnknownTopicOrPartitionError, match="'numbers' has partitions 0 to 1"):
        admin.list_offsets({("numbers", 9): "latest"})


def test_records_are_deleted(admin: Admin, numbers: None) -> None:
    assert admin.delete_records({("numbers", 0): 4}) == {("numbers", 0): 4}
    assert admin.list_offsets({("numbers", 0): "earliest"})["numbers", 0].offset == 4
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({("numbers", 0): 400})
    assert admin.delete_records({("numbers", 0): -1}) == {("numbers", 0): 10}


# Groups


def test_a_working_group_is_described_with_its_lag(broker: Broker, admin: Admin, numbers: None) -> None:
    options: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "client_id": "reader"}
    with Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:
        consumer.subscribe(["numbers"])
        while not consumer.poll(1.0):
            pass
        consumer.commit({("numbers", 0): 7})
        (listed,) = admin.list_groups()
        assert (listed.group_id, listed.state, listed.type, listed.protocol_type) == (
            "g",
            "Stable",
            "classic",
            "consumer",
        )
        group = admin.describe_group("g")
        assert (group.state, group.protocol, group.coordinator.id) == ("Stable", "range", 1)
        (member,) = group.members
        assert (member.client_id, member.assignment) == ("reader", {"numbers": [0, 1]})
        lag = admin.group_lag("g")
        assert [(row.partition, row.committed_offset, row.log_end_offset, row.lag) for row in lag] == [
            (0, 7, 10, 3),
            (1, None, 0, None),
        ]
        assert {row.member_id for row in lag} == {member.member_id}
        with pytest.raises(NonEmptyGroupError, match="'g' is Stable: stop its members first"):
            admin.plan_reset("g", Target.earliest())
        with pytest.raises(NonEmptyGroupError):
            admin.delete_groups("g")
        assert admin.list_groups(states=["Empty"]) == []
    assert admin.describe_group("g").state == "Empty"
    assert [group.group_id for group in admin.list_groups(states=["Empty"])] == ["g"]
    assert [group.group_id for group in admin.list_groups(states="empty", types="Classic")] == ["g"]


def test_a_name_that_no_list_has_is_answered_with_the_nearest_one(admin: Admin) -> None:
    """`states=["stabel"]` was answered with an empty list, as if no group were stable."""
    with pytest.raises(ValueError, match=r"a state of groups must be one of Stable, .*'stabel'; did you mean 'Stable'"):
        admin.list_groups(states=["Empty", "stabel"])
    with pytest.raises(ValueError, match=r"a type of groups must be one of classic, .*; did you mean 'classic'"):
        admin.list_groups(types="clasic")
    kind: Any = "topics"
    for call in (admin.describe_configs, admin.alter_configs):
        with pytest.raises(ValueError, match=r"kind must be one of topic, .*, not 'topics'; did you mean 'topic'"):
            call(kind, "t")
    with pytest.raises(InvalidRequestError, match=r"no transaction is ever in state Ongoin$"):
        admin.list_transactions(states="Ongoin")


def test_what_a_cluster_does_not_have_is_not_asked_for_again(broker: Broker, admin: Admin) -> None:
    """Each took the whole default_api_timeout_ms, a minute; so did `partita topics configs` of a misspelt topic."""
    seen = [broker.control.observe(api) for api in ("DescribeConfigs", "IncrementalAlterConfigs")]
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic t not found"):
        admin.describe_configs("topic", "t")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.alter_configs("topic", "t", {"retention.ms": 1})
    assert [one.hits for one in seen] == [1, 1]
    of_node_9: list[Callable[[], object]] = [
        lambda: admin.describe_configs("broker", "9"),
        lambda: admin.alter_configs("broker", "9", {"log.retention.ms": 1}),
        lambda: admin.describe_log_dirs([1, 9]),
        lambda: admin.describe_features(9),
        lambda: admin.api_versions(9),
    ]
    for ask in of_node_9:
        with pytest.raises(BrokerNotAvailableError, match="the cluster has no node 9 now; its nodes are: 1"):
            ask()
    with pytest.raises(ValueError, match="a broker is named by its node id, such as '1', not 'one'"):
        admin.describe_configs("broker", "one")
    assert [one.hits for one in seen] == [1, 1]


def test_a_node_that_came_later_is_found() -> None:
    """Nobody asked for the metadata again: what named the node failed for a minute."""
    with Broker(nodes=2) as broker:
        broker.control.stop_node(2)
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            assert admin.list_topics() == []
            broker.control.start_node(2)
            assert admin.api_versions(2) == admin.api_versions(1)


def test_a_group_that_does_not_exist_is_named(admin: Admin) -> None:
    with pytest.raises(GroupIdNotFoundError, match="there is no group 'nobody'"):
        admin.describe_group("nobody")
    with pytest.raises(GroupIdNotFoundError):
        admin.group_lag("nobody")
    with pytest.raises(GroupIdNotFoundError):
        admin.delete_groups("nobody")
    assert admin.group_offsets("nobody") == []


def test_offsets_of_a_group_are_written_read_and_deleted(admin: Admin, numbers: None) -> None:
    admin.alter_group_offsets("g", {("numbers", 0): 4, ("numbers", 1): 0})
    assert [(c.topic, c.partition, c.offset) for c in admin.group_offsets("g")] == [
        ("numbers", 0, 4),
        ("numbers", 1, 0),
    ]
    assert [row.lag for row in admin.group_lag("g")] == [6, 0]
    admin.delete_group_offsets("g", [("numbers", 1)])
    assert [c.partition for c in admin.group_offsets("g")] == [0]
    admin.delete_groups("g")
    assert admin.list_groups() == []


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (Target.earliest(), [0, 0]),
        (Target.latest(), [10, 0]),
        (Target.offset(99), [10, 0]),
        (Target.shift_by(-2), [2, 0]),
        (Target.time(1007), [7, 0]),
        (Target.duration("PT1H", now_ms=3_601_005), [5, 0]),
        (Target.datetime("1970-01-01T00:00:01.003"), [3, 0]),
        (Target.current(), [4, 0]),
        (Target.offsets({("numbers", 0): 8}), [8]),
    ],
    ids=lambda value: value.kind.name.lower() if isinstance(value, Target) else None,
)
def test_a_reset_is_planned_first_and_then_applied(
    admin: Admin, numbers: None, target: Target, after: list[int]
) -> None:
    admin.alter_group_offsets("g", {("numbers", 0): 4, ("numbers", 1): 0})
    plan = admin.plan_reset("g", target)
    assert [move.after for move in plan.moves] == after
    assert [c.offset for c in admin.group_offsets("g")] == [4, 0]
    admin.apply_reset(plan)
    assert [c.offset for c in admin.group_offsets("g")][: len(after)] == after


def test_a_reset_of_a_new_group_names_topics(admin: Admin, numbers: None) -> None:
    with pytest.raises(ValueError, match="has committed nothing; name topics"):
        admin.plan_reset("new", Target.earliest())
    plan = admin.plan_reset("new", Target.latest(), ["numbers"])
    assert [(move.partition, move.before, move.after) for move in plan.moves] == [(0, None, 10), (1, None, 0)]
    plan = admin.plan_reset("new", Target.latest(), [("numbers", 0)])
    assert [move.partition for move in plan.moves] == [0]


def test_a_coordinator_that_moves_is_followed() -> None:
    with Broker(nodes=2) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic("t")
        admin.alter_group_offsets("g", {("t", 0): 1})
        broker.control.move_coordinator("g", 2 if broker.control.coordinator("g") == 1 else 1)
        assert [c.offset for c in admin.group_offsets("g")] == [1]
        assert [group.group_id for group in admin.list_groups()] == ["g"]


# The client itself


def test_the_asyncio_face_awaits(broker: Broker) -> None:
    async def story() -> list[TopicListing]:
        async with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
            await admin.create_topic("t", 2)
            return await admin.list_topics()

    (topic,) = asyncio.run(story())
    assert (topic.name, topic.partitions) == ("t", 2)


def test_a_closed_client_says_so(broker: Broker) -> None:
    admin = Admin(bootstrap_servers=broker.bootstrap)
    assert admin.list_topics() == []
    admin.close()
    admin.close()
    with pytest.raises(RuntimeError, match="closed"):
        admin.list_topics()


def test_a_cluster_that_cannot_be_reached_is_an_error_in_time() -> None:
    with (
        pytest.raises(Disconnected, match="cannot connect"),
        Admin(bootstrap_servers="localhost:1", default_api_timeout_ms=300),
    ):
        pass
