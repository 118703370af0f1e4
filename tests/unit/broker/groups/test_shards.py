"""Shards of the coordinator: election, load, resignation, durability, failing appends."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from partita.broker.api.apis import SERVED
from partita.broker.api.context import handled
from partita.broker.shard_life import State
from partita.group import partition_for
from partita.group.records.log_records import CommittedOffset, offset_key, offset_value
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequestProtocol
from partita.protocol.messages.leave_group import LeaveGroupRequest
from partita.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from partita.records.builder import build_batch
from support.broker.raw import commit_request, join_request, sync_request
from support.broker.shard_world import ShardWorld, error_of, shard_world

NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.case("GC-M20")
def test_a_commit_whose_record_does_not_become_durable_in_time_is_not_available(tmp_path: Path) -> None:
    with shard_world(tmp_path, offsets_commit_timeout_ms=5000) as world:
        answer = world.begin_commit(7)
        world.do(lambda: world.running.advance_clock(4000))
        assert not answer.done()
        world.do(lambda: world.running.advance_clock(1000))
        assert error_of(answer.result()) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.sync()
        assert world.committed() == 7


@pytest.mark.case("GC-N09")
def test_an_offset_fetch_that_waits_too_long_is_told_to_look_elsewhere(tmp_path: Path) -> None:
    with shard_world(tmp_path) as world:
        world.begin_commit(7)
        answer = world.begin_fetch(require_stable=True)
        world.do(lambda: world.running.advance_clock(5000))
        assert answer.result().error_code == NOT_COORDINATOR


def test_no_reply_leaves_before_what_was_decided_before_it_is_durable(tmp_path: Path) -> None:
    with shard_world(tmp_path) as world:
        first = world.begin_commit(1)
        read = world.begin_fetch()
        second = world.begin_commit(2)
        assert not any(answer.done() for answer in (first, read, second))
        world.sync()
        assert all(answer.done() for answer in (first, read, second))
        assert read.result().topics[0].partitions[0].committed_offset == 1


@pytest.mark.case("GC-N07")
@pytest.mark.parametrize("require_stable", [False, True])
def test_a_fetch_waits_for_the_commit_in_flight_and_gives_its_offset(tmp_path: Path, require_stable: bool) -> None:
    """Kafka gives the old offset at once unless `requireStable` is set: decision 0031 says why we wait."""
    with shard_world(tmp_path) as world:
        world.begin_commit(1)
        world.sync()
        world.begin_commit(2)
        read = world.begin_fetch(require_stable=require_stable)
        assert not read.done()
        world.sync()
        assert read.result().topics[0].partitions[0].committed_offset == 2


def test_heartbeats_too_wait_for_the_log(tmp_path: Path) -> None:
    with shard_world(tmp_path) as world:
        world.begin_commit(1)
        heartbeat = world.begin(LeaveGroupRequest(group_id="g"), "g", 5)
        assert not heartbeat.done()
        world.sync()
        assert heartbeat.done()


def test_commits_of_one_loop_turn_share_a_batch() -> None:
    with shard_world() as world:
        requests = [world.groups.ask] * 3
        ctx = world.ctx(8)
        futures = world.do(lambda: [ask(ctx, commit_request("g", offset), "g") for offset, ask in enumerate(requests)])
        assert all(future.done() for future in futures)
        log = world.partition().log
        assert log.log_end_offset == 3
        assert log.read(0, 1 << 20)[57:61] == (3).to_bytes(4, "big")


@pytest.mark.case("GC-S07")
def test_a_commit_that_waits_at_resignation_gets_not_coordinator(tmp_path: Path) -> None:
    with shard_world(tmp_path) as world:
        answer = world.begin_commit(7)
        world.do(lambda: world.groups.resigned(0))
        assert error_of(answer.result()) == NOT_COORDINATOR


@pytest.mark.case("GC-S08")
def test_an_election_with_a_known_epoch_changes_nothing() -> None:
    with shard_world() as world:
        partition, groups = world.partition(), world.groups
        for _ in range(5):
            world.do(lambda: world.cluster.elect(partition, 1))
        runner = world.runner()
        assert runner.leader_epoch == 5
        for epoch in (5, 4):
            partition.leader_epoch = epoch
            world.do(lambda: groups.elected(partition))
            assert world.runner() is runner
            assert runner.leader_epoch == 5


@pytest.mark.case("GC-S09")
def test_a_resignation_with_a_known_epoch_changes_nothing() -> None:
    with shard_world() as world:
        partition, groups = world.partition(), world.groups
        for _ in range(5):
            world.do(lambda: world.cluster.elect(partition, 1))
        for epoch in (5, 4):
            world.do(partial(groups.resigned, 0, epoch))
            assert world.runner().state is State.ACTIVE
        world.do(lambda: groups.resigned(0, 6))
        assert 0 not in groups.runners
        partition.leader_epoch = 7
        world.do(lambda: groups.elected(partition))
        assert world.runner().state is State.ACTIVE
        world.do(lambda: groups.resigned(0))
        assert 0 not in groups.runners


@pytest.mark.case("GC-S10", "GC-B05", "GC-B06", "GC-P10")
def test_while_a_shard_loads_its_groups_are_loading_and_another_election_does_not_load_twice() -> None:
    with shard_world(nodes=2, offsets_load_buffer_size=1) as world:
        joined = world.stable()
        for offset in range(20):
            world.commit(offset, "other")
        other = 3 - world.runner().node_id
        world.loop.call_soon(lambda: world.cluster.elect(world.partition(), other))
        world.loop.run_until_complete(_one_turn())
        runner = world.runner()
        assert runner.state is State.LOADING
        assert world.groups.runner_of("g") is runner

        ctx = world.ctx(8, other)
        handle = world.groups.ask
        assert handle(ctx, join_request("g"), "g").error_code == LOADING
        assert error_of(handle(ctx, commit_request("g", 1), "g")) == LOADING
        assert handle(ctx, HeartbeatRequest(group_id="g", member_id="nobody"), "g").error_code == 0
        listed = handled(ctx, SERVED[16].handler, ListGroupsRequest())
        assert isinstance(listed, ListGroupsResponse)
        assert (listed.error_code, listed.groups) == (LOADING, [])
        world.cluster.elect(world.partition(), other)
        assert world.runner() is runner
        while runner.state is State.LOADING:
            world.loop.run_until_complete(_one_turn())
        assert runner.state is State.ACTIVE
        assert runner.leader_epoch == 2
        assert world.heartbeat(joined) == 0
        assert world.committed("other") == 19


async def _one_turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.case("GC-S11")
def test_leadership_lost_during_the_load_leaves_no_shard() -> None:
    with shard_world(nodes=2, offsets_load_buffer_size=1) as world:
        for offset in range(20):
            world.commit(offset)
        other = 3 - world.runner().node_id
        world.loop.call_soon(lambda: world.cluster.elect(world.partition(), other))
        world.loop.run_until_complete(_one_turn())
        loading = world.runner()
        assert loading.state is State.LOADING
        world.do(lambda: world.groups.resigned(0))
        for _ in range(50):
            world.loop.run_until_complete(_one_turn())
        assert loading.state is State.CLOSED  # type: ignore[comparison-overlap]  # it changed in between
        assert world.commit(1, node=other) == NOT_COORDINATOR


@pytest.mark.case("GC-S12")
def test_a_log_longer_than_the_load_buffer_with_a_larger_batch_loads_whole() -> None:
    with shard_world(offsets_load_buffer_size=256) as world:
        for offset in range(50):
            world.commit(offset)
        world.stable("big", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x" * 5000)])
        world.commit(77, "last")
        end = world.partition().log.log_end_offset
        world.do(lambda: world.groups.resigned(0))
        world.partition().leader_epoch += 1
        world.do(lambda: world.groups.elected(world.partition()))
        for _ in range(200):
            world.loop.run_until_complete(_one_turn())
        assert world.runner().state is State.ACTIVE
        assert (world.committed(), world.committed("last")) == (49, 77)
        assert world.runner().coordinator.groups["big"].members
        assert world.partition().log.log_end_offset == end


@pytest.mark.case("GC-S13")
def test_records_above_the_high_watermark_are_replayed_and_shown_once_durable(tmp_path: Path) -> None:
    with shard_world(tmp_path, nodes=2) as world:
        world.begin_commit(7)
        world.do(lambda: world.cluster.elect(world.partition(), 2))
        assert world.runner().coordinator.hard_state.offsets["g"]
        read = world.begin_fetch()
        assert not read.done()
        world.sync()
        assert read.result().topics[0].partitions[0].committed_offset == 7


@pytest.mark.case("GC-S18")
def test_a_shard_that_moves_leaves_the_groups_of_the_others_alone() -> None:
    with shard_world(nodes=2, offsets_topic_num_partitions=2) as world:
        here, there = (next(g for g in map(str, range(99)) if partition_for(g, 2) == index) for index in (0, 1))
        stays, moves = world.stable(here), world.stable(there)
        other = 3 - world.runner(1).node_id
        before = world.runner(0)
        world.do(lambda: world.cluster.elect(world.partition(1), other))
        assert world.runner(0) is before
        assert world.heartbeat(stays, here) == 0
        assert world.heartbeat(moves, there) == 0
        assert world.heartbeat(moves, there, node=3 - other) == NOT_COORDINATOR


@pytest.mark.case("GC-S20")
def test_an_append_that_lands_elsewhere_than_expected_reloads_the_shard() -> None:
    with shard_world() as world:
        assert world.commit(1) == 0
        foreign = CommittedOffset(99, -1, "", 0, -1, bytes(16))
        batch = build_batch([(0, offset_key("other", "t", 0), offset_value(foreign), ())])
        world.partition().log.append(batch, 0, world.cluster.clock.now())
        assert world.commit(2) == NOT_COORDINATOR
        assert world.committed("other") == 99
        assert world.committed() == 2


def test_a_failed_append_replays_the_shard_and_the_next_one_works() -> None:
    with shard_world() as world:
        joined = world.stable()
        assert world.commit(1, "other") == 0
        world.runner().fail_next_append = True
        assert world.commit(5, "other") == NOT_COORDINATOR
        assert world.committed("other") == 1
        assert world.heartbeat(joined) == 0
        assert world.commit(6, "other") == 0


@pytest.mark.case("GC-T38")
def test_a_heartbeat_of_a_kip_848_group_whose_write_fails_changes_nothing() -> None:
    """A declared deviation: the answer is NOT_COORDINATOR, where Kafka's is COORDINATOR_NOT_AVAILABLE."""

    def beat(world: ShardWorld, member: str, **fields: Any) -> Any:
        return world.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, **fields), "g", 1)

    def joins(world: ShardWorld, member: str) -> Any:
        return beat(world, member, rebalance_timeout_ms=9_000, subscribed_topic_names=["t"], topic_partitions=[])

    with shard_world(group_consumer_assignment_interval_ms=0) as world:
        first = joins(world, "a")
        world.runner().fail_next_append = True
        assert joins(world, "b").error_code == NOT_COORDINATOR
        again = beat(world, "a", member_epoch=first.member_epoch)
        assert (again.error_code, again.member_epoch, again.assignment) == (0, first.member_epoch, None)
        group = world.runner().coordinator.consumer_groups["g"]
        assert (group.epoch, list(group.members)) == (first.member_epoch, ["a"])
        assert joins(world, "b").member_epoch == first.member_epoch + 1


def test_a_generation_told_before_a_failed_append_is_not_told_again() -> None:
    """The replay is an unclean start: generation 2 was told and never written, so the next one is 3."""
    with shard_world() as world:
        first = world.stable()
        request = join_request("g", first.member_id)
        told = world.ask(request, "g", 9)
        assert (first.generation_id, told.generation_id) == (1, 2)
        world.runner().fail_next_append = True
        assert world.ask(sync_request("g", told), "g", 5).error_code == NOT_COORDINATOR
        assert world.ask(request, "g", 9).generation_id == 3


@pytest.mark.case("BM-096")
def test_an_append_that_ends_its_shard_leaves_no_request_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with shard_world() as world:
        runner = world.runner()

        def lose_the_log(*_: object) -> None:
            runner.fail("the log is lost")
            raise OSError("the log is lost")

        monkeypatch.setattr(runner, "_append", lose_the_log)
        answer = world.begin_commit(7)
        assert error_of(answer.result()) == NOT_COORDINATOR
        assert runner.state is State.FAILED


def test_what_was_not_appended_is_not_noted() -> None:
    with shard_world() as world:
        first = world.stable()
        told = world.ask(join_request("g", first.member_id), "g", 9)
        before = stable_generations(world)
        world.runner().fail_next_append = True
        assert world.ask(sync_request("g", told), "g", 5).error_code == NOT_COORDINATOR
        assert stable_generations(world) == before == [1]
        again = world.ask(join_request("g", first.member_id), "g", 9)
        assert world.ask(sync_request("g", again), "g", 5).error_code == 0
        assert stable_generations(world) == [1, again.generation_id]


def stable_generations(world: ShardWorld) -> list[int]:
    """Of every completed rebalance that was noted."""
    return [note["generation"] for note in world.cluster.notes.since() if note["note"] == "Rebalanced"]


@pytest.mark.case("GC-B08", "GC-R04", "BM-065")
def test_a_shard_whose_log_cannot_be_read_is_nobodys_until_a_higher_epoch_loads_it() -> None:
    with shard_world() as world:
        world.commit(1)
        key = offset_key("g", "t", 0)
        world.partition().log.append(build_batch([(0, key, b"\0\3\0", ())]), 0, world.cluster.clock.now())
        world.do(lambda: world.groups.resigned(0))
        world.partition().leader_epoch += 1
        world.do(lambda: world.groups.elected(world.partition()))
        assert world.runner().state is State.FAILED
        assert world.commit(2) == NOT_COORDINATOR
        good = offset_value(CommittedOffset(3, -1, "", 0, -1, bytes(16)))
        world.partition().log.delete_records_before(world.partition().log.log_end_offset)
        world.partition().log.append(build_batch([(0, key, good, ())]), 0, world.cluster.clock.now())
        world.partition().leader_epoch += 1
        world.do(lambda: world.groups.elected(world.partition()))
        assert world.committed() == 3


def test_silence_is_counted_across_a_move_so_that_moves_keep_nobody_alive() -> None:
    with shard_world(nodes=2) as world:
        joined = world.stable(session_timeout_ms=10_000)
        world.do(lambda: world.running.advance_clock(9_000))
        world.do(lambda: world.cluster.elect(world.partition(), 3 - world.runner().node_id))
        world.do(lambda: world.running.advance_clock(20_000))
        assert world.heartbeat(joined) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.case("BM-081")
@pytest.mark.parametrize("when", ["active", "loading", "killed"])
def test_a_topic_that_is_deleted_and_created_again_inherits_no_offset(tmp_path: Path, when: str) -> None:
    """B14, S25, S26, BM-081: told once the tombstones are durable; by shards that load later, and after a kill, too."""
    with shard_world(tmp_path / "data") as world:
        pending = world.begin_commit(7)
        world.sync()
        assert world.loop.run_until_complete(pending) is not None
        catalogue, groups = world.cluster.catalogue, world.groups
        if when == "loading":
            world.do(lambda: groups.resigned(0))
        world.do(lambda: catalogue.delete([catalogue.by_name["t"]]))
        waiting = groups.forgotten(["t"])
        assert waiting is not None
        assert not waiting.done(), "the tombstones are not durable yet"
        log = world.partition().log
        if when == "killed":
            # The tombstones were not written before the kill.
            log.truncate_to(log.durable_offset)
            shutil.copytree(tmp_path / "data", tmp_path / "killed")
        else:
            if when == "loading":
                world.do(lambda: world.cluster.elect(world.partition(), 1))
            world.sync()
            assert world.do(waiting.done)
            assert not catalogue.unforgotten
            world.do(lambda: world.cluster.create_topic("t", 1, 1))
            assert world.committed() == -1
    if when == "killed":
        with shard_world(tmp_path / "killed") as world:
            world.do(world.running.services.load_groups)
            world.sync()
            assert not world.cluster.catalogue.unforgotten
            assert world.committed() == -1


def test_a_commit_to_a_topic_created_again_outlives_the_deletion_of_another(tmp_path: Path) -> None:
    """S20: the tombstones of the first deletion are not durable yet when the second one comes."""
    with shard_world(tmp_path) as world:
        catalogue = world.cluster.catalogue
        world.do(lambda: world.cluster.create_topic("other", 1, 1))
        world.begin_commit(7)
        world.do(lambda: catalogue.delete([catalogue.by_name["t"]]))
        world.do(lambda: world.cluster.create_topic("t", 1, 1))
        answer = world.begin_commit(8)
        world.do(lambda: catalogue.delete([catalogue.by_name["other"]]))
        world.sync()
        assert error_of(answer.result()) == 0
        assert world.committed() == 8
        assert not catalogue.unforgotten


def test_a_commit_to_a_topic_created_again_outlives_a_kill_while_another_shard_has_not_forgotten(
    tmp_path: Path,
) -> None:
    groups = [next(g for g in map(str, range(99)) if partition_for(g, 2) == index) for index in (0, 1)]
    with shard_world(tmp_path / "data", offsets_topic_num_partitions=2) as world:
        catalogue = world.cluster.catalogue
        for group_id in groups:
            world.begin_commit(7, group_id)
        world.sync()
        world.do(lambda: catalogue.delete([catalogue.by_name["t"]]))
        again = world.do(lambda: world.cluster.create_topic("t", 1, 1))
        request = commit_request(groups[0], 8)
        request.topics[0].topic_id = again.topic_id
        answer = world.begin(request, groups[0], 8)
        world.sync()
        assert error_of(answer.result()) == 0
        assert catalogue.unforgotten == {"t"}, "the second shard's tombstone is not durable"
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
    with shard_world(tmp_path / "killed", offsets_topic_num_partitions=2) as world:
        world.do(world.running.services.load_groups)
        for partition in (world.partition(0), world.partition(1)):
            world.do(partial(partition.log.flush, world.cluster.clock.now()))
        assert [world.committed(group_id) for group_id in groups] == [8, -1]
        assert not world.cluster.catalogue.unforgotten


def test_whatever_goes_wrong_in_an_append_ends_in_a_replay_and_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    """Issue 11 item 3: no request stays unanswered, no memory runs ahead of the log; the traceback is logged."""
    with shard_world() as world:
        assert world.commit(1) == 0
        world.cluster.config.change("offsets.topic.compression.codec", 9)
        assert world.commit(2) == ErrorCode.NOT_COORDINATOR
        world.cluster.config.change("offsets.topic.compression.codec", None)
        assert world.committed() == 1
        assert world.commit(3) == 0
    assert [record for record in caplog.records if record.exc_info and "is replayed" in record.getMessage()]


def test_a_commit_that_is_to_stay_for_ever_stays() -> None:
    """H17, found by fuzzing: an old client may ask for any retention, and its end fits into the record."""
    with shard_world() as world:
        request = commit_request("g", 7)
        request.retention_time_ms = 2**63 - 1
        assert error_of(world.ask(request, "g", 2)) == 0
        assert world.committed() == 7


def test_a_request_that_fails_halfway_costs_its_shard_a_replay_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by fuzzing: the shard stayed in its load for ever, because the request that failed was still open."""

    def fail(committed: CommittedOffset) -> bytes:
        raise OverflowError("this offset cannot be written")

    with shard_world() as world:
        assert world.commit(7) == 0
        with monkeypatch.context() as patched:
            patched.setattr("partita.group.records.log_records.offset_value", fail)
            assert world.commit(8) == NOT_COORDINATOR
        runner = world.groups.runner_of("g")
        assert runner is not None
        assert runner.state is State.ACTIVE
        assert world.committed() == 7
        assert world.commit(9) == 0
        assert world.committed() == 9
