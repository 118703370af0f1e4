"""What bounds groups on a whole broker: `partita.groups.max`, and the offsets topic's own settings."""

from __future__ import annotations

from uuid import UUID

import pytest

from partita import Broker
from partita.broker.groups.reply_gate import shared_batches
from partita.group.contract import Record, Step
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.join_group import JoinGroupRequestProtocol
from partita.protocol.messages.sync_group import SyncGroupRequestAssignment
from support.broker.raw import commit_request, join_request, sync_request
from support.broker.shard_world import ShardWorld, error_of, shard_world

TOO_LARGE = int(ErrorCode.UNKNOWN_SERVER_ERROR)
"""What Kafka's coordinator makes of MESSAGE_TOO_LARGE (GC-C25, GC-I19, GC-M19)."""


def test_the_shards_of_a_broker_share_one_limit_of_groups() -> None:
    """Finding C7: until now each of 50 shards had a limit of its own."""
    with shard_world(offsets_topic_num_partitions=50, partita_groups_max=10) as world:
        codes = [world.commit(1, f"g{n}") for n in range(12)]
        assert codes == [0] * 10 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
        assert world.ask(join_request("g11"), "g11", 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert world.commit(2, "g9") == 0
        world.do(lambda: world.cluster.catalogue.configure_broker({"partita.groups.max": 11}))
        assert world.commit(1, "g11") == 0


def test_unused_member_ids_hold_no_room_for_long() -> None:
    """One client asked for an id in each of 10,000 groups: for half an hour, no client could begin a group."""
    with shard_world(offsets_topic_num_partitions=1, partita_groups_max=3) as world:
        assert world.commit(1, "kept") == 0
        ids = {group: world.ask(join_request(group), group, 9).member_id for group in ("a", "b")}
        assert world.ask(join_request("c"), "c", 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED, (
            "both may join still"
        )
        assert world.ask(join_request("b", ids["b"]), "b", 9).error_code == ErrorCode.NONE
        world.do(lambda: world.cluster.clock.advance(1_000))
        assert world.ask(join_request("c"), "c", 9).error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert world.ask(join_request("a", ids["a"]), "a", 9).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert world.ask(join_request("d"), "d", 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert world.commit(2, "kept") == 0


def test_ten_thousand_groups_are_the_default() -> None:
    with Broker() as broker:
        assert broker.cluster.config.int("partita.groups.max") == 10_000


def offsets_topic_takes(world: ShardWorld, max_bytes: int | None) -> None:
    topic = world.partition().topic
    given = {name: value for name, value in topic.config.own.items() if name != "max.message.bytes"}
    own = given if max_bytes is None else {**given, "max.message.bytes": max_bytes}
    world.do(lambda: world.cluster.catalogue.configure(topic, own))


@pytest.mark.case("GC-M19")
def test_a_commit_larger_than_the_offsets_topic_takes_is_refused() -> None:
    with shard_world() as world:
        assert world.commit(1) == 0
        offsets_topic_takes(world, 300)
        large = commit_request("g", 2, metadata="x" * 300)
        assert error_of(world.ask(large, "g", 8)) == TOO_LARGE
        assert world.committed() == 1
        assert world.commit(3) == 0
        offsets_topic_takes(world, None)
        assert error_of(world.ask(large, "g", 8)) == 0


@pytest.mark.case("GC-I19", "GC-C25")
def test_a_group_larger_than_the_offsets_topic_takes_is_refused() -> None:
    with shard_world() as world:
        world.commit(1, "other")
        offsets_topic_takes(world, 400)
        answer = world.ask(join_request("g" * 400), "g" * 400, 3)
        assert answer.error_code == TOO_LARGE
        joined = world.ask(join_request("g"), "g", 3)
        sync = sync_request("g", joined)
        sync.assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"x" * 400)]
        assert world.ask(sync, "g", 5).error_code == TOO_LARGE
        giant = [JoinGroupRequestProtocol(name="range", metadata=b"x" * 400)]
        again = world.ask(join_request("h", protocols=giant), "h", 3)
        assert world.ask(sync_request("h", again), "h", 5).error_code == TOO_LARGE


def test_the_brokers_largest_message_counts_where_the_topic_says_nothing() -> None:
    with shard_world(message_max_bytes=300) as world:
        assert error_of(world.ask(commit_request("g", 2, metadata="x" * 300), "g", 8)) == TOO_LARGE
        world.do(lambda: world.cluster.catalogue.configure_broker({"message.max.bytes": 1000}))
        assert error_of(world.ask(commit_request("g", 2, metadata="x" * 300), "g", 8)) == 0


def test_steps_share_no_batch_larger_than_the_offsets_topic_takes() -> None:
    steps = [Step(records=(Record(b"k", b"v" * 99),))] * 10
    assert [len(covered) for *_, covered in shared_batches(steps)] == [10]
    assert [len(covered) for *_, covered in shared_batches(steps, 1000)] == [5, 5]
    assert [len(covered) for *_, covered in shared_batches(steps, 150)] == [1] * 10


def test_member_ids_are_the_clients_name_and_a_random_uuid(broker: Broker) -> None:
    ids = broker.run(lambda: [broker.running.services.groups().new_member_id("my-app") for _ in range(200)])
    uuids = [UUID(member_id.removeprefix("my-app-")) for member_id in ids]
    assert len(set(uuids)) == 200
    assert {uuid.version for uuid in uuids} == {4}
    assert [f"my-app-{uuid}" for uuid in uuids] == ids
