"""Bugs other coordinators had around loading and leading, replayed on our shards."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from partita.broker.shard_life import State
from partita.group import partition_for
from partita.group.records.log_records import offset_key
from partita.group.requests import ListShardGroups
from partita.protocol.error_codes import ErrorCode
from partita.records.builder import build_batch
from support.broker.raw import commit_request
from support.broker.shard_world import ShardWorld, error_of, shard_world


@pytest.mark.case("BM-047")
def test_a_late_unload_of_an_older_leadership_does_not_wipe_the_newer_one() -> None:
    with shard_world(nodes=2) as world:
        world.commit(1)
        for node in (2, 1):
            world.do(partial(world.cluster.elect, world.partition(), node))
        newest = world.partition().leader_epoch
        world.do(lambda: world.groups.resigned(0, newest - 1))
        assert world.runner().state is State.ACTIVE
        assert world.committed() == 1


@pytest.mark.case("BM-048")
def test_the_old_coordinator_stops_answering_when_its_log_moves() -> None:
    with shard_world(nodes=2) as world:
        old = world.runner().node_id
        joined = world.stable()
        assert world.commit(1, "offsets", node=old) == 0
        world.do(lambda: world.cluster.elect(world.partition(), 3 - old))
        assert world.commit(2, "offsets", node=old) == ErrorCode.NOT_COORDINATOR
        assert world.heartbeat(joined, node=old) == ErrorCode.NOT_COORDINATOR
        assert world.committed("offsets") == 1


@pytest.mark.case("BM-052")
def test_unloading_one_partition_and_a_timer_during_a_load_touch_nothing_else() -> None:
    with shard_world(nodes=2, offsets_topic_num_partitions=2, offsets_load_buffer_size=1) as world:
        here, there = (next(g for g in map(str, range(99)) if partition_for(g, 2) == index) for index in (0, 1))
        stays = world.stable(here)
        for offset in (1, 2, 3):
            world.commit(offset, there)
        groups, cluster = world.groups, world.cluster

        def move_and_fire() -> State:
            cluster.elect(world.partition(1), 3 - world.runner(1).node_id)
            runner = groups.runners[1]
            runner.on_timer()
            groups.runners[0].on_timer()
            return runner.state

        assert world.do(move_and_fire) is State.LOADING
        for _ in range(20):
            world.do(lambda: None)
        assert world.committed(there) == 3
        assert world.heartbeat(stays, here) == 0
        world.do(lambda: groups.resigned(1))
        assert world.heartbeat(stays, here) == 0


@pytest.mark.case("BM-071")
def test_another_partition_count_at_restart_does_not_lose_the_groups(tmp_path: Path) -> None:
    """The topic keeps the count it was made with; the option only counts when it is made."""
    names = [f"group-{n}" for n in range(10)]

    def flush(index: int) -> None:
        world.partition(index).log.flush(world.cluster.clock.now())

    with shard_world(tmp_path, offsets_topic_num_partitions=3) as world:
        for number, name in enumerate(names):
            answer = world.begin_commit(number, name)
            for index in range(3):
                world.do(partial(flush, index))
            assert not hasattr(answer, "done") or answer.done()
    with shard_world(tmp_path, offsets_topic_num_partitions=7) as world:
        assert [world.committed(name) for name in names] == list(range(10))


@pytest.mark.case("BM-072")
def test_group_records_do_not_mind_the_brokers_timestamp_type() -> None:
    with shard_world(log_message_timestamp_type="LogAppendTime") as world:
        joined = world.stable()
        assert world.commit(5, "offsets") == 0
        world.do(lambda: world.cluster.elect(world.partition(), world.runner().node_id))
        assert world.committed("offsets") == 5
        assert world.heartbeat(joined) == 0


@pytest.mark.case("BM-049")
@pytest.mark.parametrize("slice_bytes", [1, 1 << 20])
def test_a_load_ends_where_the_log_ends_behind_its_last_record(tmp_path: Path, slice_bytes: int) -> None:
    """A cleaner took the tail away, and only an empty segment says where the log goes on."""
    with shard_world(tmp_path) as world:
        for offset in range(3):
            world.begin_commit(offset)
            world.sync()
        folder = tmp_path / world.partition().log.directory
    (folder / f"{9:020}.log").touch()
    with shard_world(tmp_path, offsets_load_buffer_size=slice_bytes) as world:
        assert world.partition().log.log_end_offset == 9
        for _ in range(20):
            world.do(lambda: None)
        assert world.runner().state is State.ACTIVE
        assert world.committed() == 2
        answer = world.begin_commit(7)
        world.sync()
        assert error_of(answer.result()) == 0
        assert world.committed() == 7
        assert world.partition().log.log_end_offset == 10


@pytest.mark.case("BM-059")
def test_a_load_that_fails_leaves_nothing_active_and_an_unload_without_an_epoch_is_fine() -> None:
    with shard_world() as world:
        assert world.commit(1) == 0
        damaged = build_batch([(0, offset_key("g", "t", 0), b"\x00\x03\x00", ())])
        end = world.partition().log.append(damaged, 0, world.cluster.clock.now()).base_offset
        reelect(world)
        assert world.runner().state is State.FAILED
        assert world.commit(2) == ErrorCode.NOT_COORDINATOR
        world.do(lambda: world.groups.resigned(0))
        assert world.commit(2) == ErrorCode.NOT_COORDINATOR
        world.partition().log.truncate_to(end)
        reelect(world)
        assert [group.group_id for group in world.ask(ListShardGroups(), "g", 5).groups] == ["g"]
        assert world.committed() == 1


@pytest.mark.case("BM-064")
def test_a_commit_checked_before_the_leadership_moved_away_and_back_is_told_the_truth() -> None:
    """What was decided is appended before the shard is given up, so the next leadership finds it."""
    with shard_world(nodes=2) as world:
        assert world.commit(1) == 0
        node = world.runner().node_id

        def commit_and_move_twice() -> object:
            ctx = world.ctx(8, node)
            answer = world.groups.ask(ctx, commit_request("g", 2), "g")
            world.cluster.elect(world.partition(), 3 - node)
            world.cluster.elect(world.partition(), node)
            return answer

        answer = world.do(commit_and_move_twice)
        assert error_of(answer.result()) == 0  # type: ignore[attr-defined]  # a waiting request is a future
        assert world.committed() == 2
        reelect(world)
        assert world.committed() == 2


def reelect(world: ShardWorld) -> None:
    world.do(lambda: world.groups.resigned(0))
    world.partition().leader_epoch += 1
    world.do(lambda: world.groups.elected(world.partition()))
