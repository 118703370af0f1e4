"""Fetch: limits, isolation, epochs, long polls, sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from partita.broker.api import context
from partita.broker.reading import fetch_sessions
from partita.broker.reading.long_polls import FEW
from partita.broker.wire import turns
from partita.log.partition_log import PartitionLog
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchRequest, FetchResponse, ForgottenTopic, ReplicaState
from partita.records.batch import ABORT, build_marker, iter_batches
from support.broker.data_plane import DataPlane, QuietConnection, data_plane, fetch_request
from support.log.logs import at, batch

SIZE = len(batch("v0"))


@pytest.fixture
def plane() -> Iterator[DataPlane]:
    with data_plane() as made:
        made.topic(partitions=3)
        yield made


def put(plane: DataPlane, *values: str, partition: int = 0, topic: str = "t") -> None:
    for value in values:
        assert plane.produce(batch(value), topic, partition).error_code == 0


def offsets(records: object) -> list[int]:
    return [header.base_offset for header, _ in iter_batches(records)]  # type: ignore[arg-type]  # bytes, as the answer was encoded


@pytest.mark.parametrize("version", range(4, 13))
def test_records_and_offsets_are_answered_at_every_version(plane: DataPlane, version: int) -> None:
    put(plane, "v0", "v1")
    data = plane.fetch(1, version)
    assert (data.error_code, data.high_watermark, data.last_stable_offset, data.log_start_offset) == (0, 2, 2, 0)
    assert offsets(data.records) == [1]
    assert data.aborted_transactions is None


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_are_named_by_id_from_version_13(plane: DataPlane, version: int) -> None:
    put(plane, "v0")
    topic_id = plane.cluster.catalogue.by_name["t"].topic_id
    response = plane.ask("fetch", version, fetch_request([(topic_id, 0, 0), (b"\x07" * 16, 0, 0)]))
    assert [(t.topic_id, t.partitions[0].error_code) for t in response.responses] == [
        (topic_id, 0),
        (b"\x07" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    response.encode(version)


@pytest.mark.parametrize(("offset", "code"), [(0, 0), (2, 0), (3, 1), (-1, 1)])
def test_an_offset_outside_the_log_is_out_of_range(plane: DataPlane, offset: int, code: int) -> None:
    put(plane, "v0", "v1")
    assert plane.fetch(offset).error_code == code


def test_limits_are_kept_but_one_batch_always_comes(plane: DataPlane) -> None:
    put(plane, *(f"v{i}" for i in range(9)))
    assert offsets(plane.fetch(3, partition_max_bytes=1).records) == [3]
    assert offsets(plane.fetch(3, partition_max_bytes=2 * SIZE).records) == [3, 4]
    assert offsets(plane.fetch(3, max_bytes=1).records) == [3]


def test_only_the_first_partition_with_data_may_exceed_the_limit(plane: DataPlane) -> None:
    put(plane, "v0", "v1", partition=1)
    put(plane, "v0", partition=2)
    wanted: list[tuple[str | bytes, int, int]] = [("t", 0, 0), ("t", 1, 0), ("t", 2, 0)]
    response = plane.ask("fetch", 12, fetch_request(wanted, max_bytes=SIZE - 1))
    assert [len(p.records) for t in response.responses for p in t.partitions] == [0, SIZE, 0]


@pytest.mark.case("BM-162")
def test_read_committed_stops_at_the_first_open_transaction_and_lists_the_aborted(plane: DataPlane) -> None:
    """BM-162, S38."""
    log = plane.cluster.catalogue.by_name["t"].partitions[0].log
    fields: dict[str, Any] = {"producer_epoch": 0, "is_transactional": True, "base_sequence": 0}
    log.append(batch("a", producer_id=1, **fields), 0, at(0))
    log.append(build_marker(ABORT, timestamp=0, producer_id=1, producer_epoch=0, coordinator_epoch=0), 0, at(0))
    log.append(batch("b", producer_id=2, **fields), 0, at(0))
    committed, uncommitted = plane.fetch(0, isolation_level=1), plane.fetch(0, isolation_level=0)
    assert (offsets(committed.records), offsets(uncommitted.records)) == ([0, 1], [0, 1, 2])
    assert committed.last_stable_offset == 2
    assert [(a.producer_id, a.first_offset) for a in committed.aborted_transactions or []] == [(1, 0)]


@pytest.mark.parametrize("level", [-1, 2])
def test_an_unknown_isolation_level_is_refused(plane: DataPlane, level: int) -> None:
    put(plane, "v0")
    wanted: list[tuple[str | bytes, int, int]] = [("t", 0, 0)]
    for version in (4, 12):
        answer = plane.ask("fetch", version, fetch_request(wanted, isolation_level=level))
        codes = {part.error_code for topic in answer.responses for part in topic.partitions}
        assert (answer.error_code, codes)[version == 4] in (-1, {-1})


@pytest.mark.parametrize(("known", "code"), [(-1, 0), (1, 0), (0, 74), (2, 75)])
@pytest.mark.case("BM-170")
def test_the_clients_leader_epoch_is_checked(plane: DataPlane, known: int, code: int) -> None:
    """BM-170: FENCED_LEADER_EPOCH 74, UNKNOWN_LEADER_EPOCH 75."""
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    partition.leader_epoch = 1
    assert plane.fetch(0, current_leader_epoch=known).error_code == code


def test_a_history_that_diverged_is_told(plane: DataPlane) -> None:
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    put(plane, "v0", "v1")
    partition.leader_epoch = 3
    put(plane, "v2")
    data = plane.fetch(3, last_fetched_epoch=0)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, bytes(data.records or b"")) == (0, 2, b"")
    assert plane.fetch(2, last_fetched_epoch=0).diverging_epoch.epoch == -1
    assert plane.fetch(3, last_fetched_epoch=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.case("SE-P17")
def test_whoever_claims_to_be_a_replica_is_refused(plane: DataPlane) -> None:
    """H27."""
    put(plane, "v0")
    assert plane.fetch(0, replica_id=1).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic_id = plane.cluster.catalogue.by_name["t"].topic_id
    request = fetch_request([(topic_id, 0, 0)], replica_state=ReplicaState(replica_id=1))
    response = plane.ask("fetch", 15, request)
    assert response.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_another_leader_is_named_from_version_16() -> None:
    with data_plane(nodes=2) as two:
        partition = two.topic().partitions[0]
        other = next(node for node in two.cluster.nodes.values() if node.node_id != partition.leader)
        topic_id = partition.topic.topic_id
        response = two.ask("fetch", 16, fetch_request([(topic_id, 0, 0)]), node=other)
        data = response.responses[0].partitions[0]
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == partition.leader
        assert [node.node_id for node in response.node_endpoints] == [partition.leader]


# -- long polls --------------------------------------------------------------------------------------------------------


def wait(plane: DataPlane, **fields: object) -> object:
    return plane.begin("fetch", 12, fetch_request([("t", 0, 0), ("t", 1, 0)], max_wait_ms=60_000, **fields))


def test_an_empty_fetch_waits_for_the_next_append(plane: DataPlane) -> None:
    future = wait(plane)
    plane.turn()
    assert not future.done()  # type: ignore[attr-defined]  # a waiting fetch is a future
    put(plane, "v0", partition=1)
    plane.turn()
    response = future.result()  # type: ignore[attr-defined]  # a waiting fetch is a future
    assert [len(p.records) for t in response.responses for p in t.partitions] == [0, SIZE]
    assert not plane.services.long_polls().waiting
    assert not plane.connection.callbacks


def test_a_fetch_waits_for_min_bytes(plane: DataPlane) -> None:
    future = wait(plane, min_bytes=2 * SIZE)
    put(plane, "v0")
    plane.turn()
    assert not future.done()  # type: ignore[attr-defined]  # a waiting fetch is a future
    put(plane, "v0", partition=1)
    plane.turn()
    assert future.done()  # type: ignore[attr-defined]  # a waiting fetch is a future


def test_what_is_there_is_answered_when_time_is_up(plane: DataPlane) -> None:
    put(plane, "v0")
    response = plane.ask("fetch", 12, fetch_request([("t", 0, 0)], max_wait_ms=5, min_bytes=1000))
    assert offsets(response.responses[0].partitions[0].records) == [0]


def test_an_error_in_one_partition_ends_the_wait(plane: DataPlane) -> None:
    response = plane.begin("fetch", 12, fetch_request([("t", 0, 0), ("t", 9, 0)], max_wait_ms=60_000))
    assert isinstance(response, FetchResponse)


def test_a_waiting_fetch_reads_the_partitions_that_moved_and_no_others(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5: an append must not cost a look at every partition of every waiting fetch."""
    future = wait(plane, min_bytes=3 * SIZE)
    reads: list[str] = []
    read = PartitionLog.read

    def counted(self: PartitionLog, *args: int, **more: Any) -> memoryview:
        reads.append(self.directory)
        return read(self, *args, **more)

    monkeypatch.setattr(PartitionLog, "read", counted)
    moved = plane.cluster.catalogue.by_name["t"].partitions[1].log
    put(plane, "v0", partition=1)
    plane.turn()
    put(plane, "v0", partition=1)
    plane.turn()
    assert reads == [moved.directory] * 2
    assert not future.done()  # type: ignore[attr-defined]  # a future
    put(plane, "v0")
    plane.turn()
    assert [len(p.records) for t in future.result().responses for p in t.partitions] == [SIZE, 2 * SIZE]  # type: ignore[attr-defined]  # a future


def test_a_fetch_of_many_partitions_leaves_others_their_turn(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: whether it waits or answers, it is read in slices."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    width = FEW + 1
    plane.topic("wide", partitions=width)
    order: list[str] = []
    read = PartitionLog.read

    def noted(self: PartitionLog, *args: int, **more: Any) -> memoryview:
        order.append("r")
        return read(self, *args, **more)

    def other_work() -> None:
        order.append("o")
        if not task.done():
            plane.loop.call_soon(other_work)

    monkeypatch.setattr(PartitionLog, "read", noted)
    request = fetch_request([("wide", partition, 0) for partition in range(width)], max_wait_ms=60_000)
    future = plane.begin("fetch", 12, request)
    task = asyncio.ensure_future(future, loop=plane.loop)
    plane.loop.call_soon(other_work)
    while order.count("r") < width:
        plane.turn()
    assert not task.done()
    put(plane, "v0", topic="wide", partition=7)
    while not task.done():
        plane.turn()
    assert order.count("r") == 2 * width + 1, "one more than all of them twice: the partition that moved"
    assert max(map(len, "".join(order).split("o"))) == 1
    sizes = [len(p.records) for t in task.result().responses for p in t.partitions]
    assert (sizes[7], sum(sizes)) == (SIZE, SIZE)
    assert not plane.services.long_polls().waiting


def test_what_comes_while_a_wide_fetch_is_read_wakes_it(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: a record of a partition that was read already must not wait for the end of the poll."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    width = FEW + 1
    plane.topic("wide", partitions=width)
    request = fetch_request([("wide", partition, 0) for partition in range(width)], max_wait_ms=60_000)
    task = asyncio.ensure_future(plane.begin("fetch", 12, request), loop=plane.loop)
    for _ in range(width + 2):  # until the first partition has been read
        plane.turn()
    put(plane, "v0", topic="wide", partition=0)
    while not task.done() and not plane.services.long_polls().waiting:
        plane.turn()
    assert not plane.services.long_polls().waiting, "it does not wait"
    sizes = [len(p.records) for t in task.result().responses for p in t.partitions]
    assert (sizes[0], sum(sizes)) == (SIZE, SIZE)


def test_a_fetch_counts_what_there_is_and_not_what_one_answer_holds(plane: DataPlane) -> None:
    """A log in memory answers with one of its blocks at a time; waiting would not make that more."""
    big = batch("v" * 40_000)
    for _ in range(3):
        assert plane.produce(big, "t", 0).error_code == 0
    there = len(big) * 3
    for min_bytes, waits in ((there, False), (there + 1, True)):
        answer = plane.begin(
            "fetch", 12, fetch_request([("t", 0, 0)], max_wait_ms=60_000, min_bytes=min_bytes, max_bytes=1 << 20)
        )
        assert isinstance(answer, FetchResponse) is not waits
    data = plane.fetch(0, 12)
    assert 0 < len(data.records or b"") < there, "it is less than what there is"


def test_many_wide_fetches_together_leave_others_their_turn(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: slices of different requests stand in one line; others do not wait for one of each."""
    monkeypatch.setattr(turns, "ROUND_SECONDS", 0.0)
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    width, count = 40, 6
    plane.topic("wide", partitions=width)
    order: list[str] = []
    read = PartitionLog.read

    def noted(self: PartitionLog, *args: int, **more: Any) -> memoryview:
        order.append("r")
        return read(self, *args, **more)

    def other_work() -> None:
        order.append("o")
        if not all(task.done() for task in tasks):
            plane.loop.call_soon(other_work)

    monkeypatch.setattr(PartitionLog, "read", noted)
    request = fetch_request([("wide", partition, 0) for partition in range(width)], max_wait_ms=0)
    begun = [plane.begin("fetch", 12, request) for _ in range(count)]
    tasks = [asyncio.ensure_future(answer, loop=plane.loop) for answer in begun]
    plane.loop.call_soon(other_work)
    plane.loop.run_until_complete(asyncio.gather(*tasks))
    assert order.count("r") == count * width
    assert max(map(len, "".join(order).split("o"))) == 1


def test_a_wide_session_is_planned_read_and_answered_in_slices(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3 of an audit: 49,000 partitions were planned in one piece of 20 ms and answered in one of 30 ms."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    width, waited = 40, []
    wait = plane.services.turns.wait

    def counted(go_on: Any) -> None:
        waited.append(go_on)
        wait(go_on)

    monkeypatch.setattr(plane.services.turns, "wait", counted)
    request = fetch_request([("nowhere", index, 0) for index in range(width)], max_wait_ms=0, session_epoch=0)
    answer = plane.ask("fetch", 12, request)
    assert len(answer.responses[0].partitions) == width
    assert len(waited) == 4 * width, "each partition, in a topic of its own, is named, read and answered"


def test_a_closed_connection_ends_the_wait(plane: DataPlane) -> None:
    future = wait(plane)
    plane.connection.close()
    assert future.cancelled()  # type: ignore[attr-defined]  # a waiting fetch is a future
    assert not plane.services.long_polls().waiting


@pytest.mark.parametrize("width", [1, FEW + 1])
def test_a_fetch_of_a_connection_that_is_gone_does_not_wait(plane: DataPlane, width: int) -> None:
    """It was read in slices, and its client left meanwhile: it was watched for as long as the broker ran."""

    class Gone(QuietConnection):
        def on_close(self, callback: Callable[[], None]) -> None:
            callback()

        def forget(self, callback: Callable[[], None]) -> None:
            """There is nothing to forget."""

    plane.connection = Gone()
    plane.topic("wide", partitions=width)
    request = fetch_request([("wide", partition, 0) for partition in range(width)], max_wait_ms=60_000)
    with pytest.raises(asyncio.CancelledError):
        plane.ask("fetch", 12, request)
    assert not plane.services.long_polls().waiting
    assert not plane.services.long_polls()._watched


def at_each_turn(plane: DataPlane, value: Callable[[], int], last: int) -> list[int]:
    """The value at each turn of the loop until it is `last`."""

    async def look() -> list[int]:
        seen = [value()]
        while seen[-1] != last:
            await asyncio.sleep(0)
            seen.append(value())
        return seen

    return plane.loop.run_until_complete(look())


def test_very_many_partitions_are_watched_and_let_go_in_slices(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll of 5,000 partitions held the loop for 9 ms when it began to wait, and for 2 ms when its client left."""
    monkeypatch.setattr(context, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    width = FEW + 1
    plane.topic("wide", partitions=width)
    watching = [0]

    def noted(change: int, method: Any) -> Any:
        def call(self: PartitionLog, watcher: Any) -> None:
            watching.append(watching[-1] + change)
            method(self, watcher)

        return call

    monkeypatch.setattr(PartitionLog, "watch", noted(1, PartitionLog.watch))
    monkeypatch.setattr(PartitionLog, "unwatch", noted(-1, PartitionLog.unwatch))
    request = fetch_request([("wide", partition, 0) for partition in range(width)], max_wait_ms=60_000)
    task = asyncio.ensure_future(plane.begin("fetch", 12, request), loop=plane.loop)
    begun = at_each_turn(plane, lambda: watching[-1], width)
    plane.connection.close()
    ended = at_each_turn(plane, lambda: watching[-1], 0)
    assert max(abs(after - before) for before, after in pairwise(begun + ended)) == 1
    assert task.cancelled()


def test_requests_that_wait_look_again_one_after_the_other(plane: DataPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record woke all that waited for it in one turn of the loop, and time was up for all in one."""
    monkeypatch.setattr(turns, "ROUND_SECONDS", 0.0)
    futures = [wait(plane) for _ in range(4)]

    def done() -> int:
        return sum(future.done() for future in futures)  # type: ignore[attr-defined]  # waiting fetches are futures

    put(plane, "v0")
    assert set(at_each_turn(plane, done, len(futures))) >= {2, 3, 4}


def test_the_partitions_of_an_ended_session_are_let_go_in_slices(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To free 49,000 partitions of a session at once took 6 ms."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)
    width = 5
    request = fetch_request([("nowhere", index, 0) for index in range(width)], max_wait_ms=0, session_epoch=0)
    session_id = plane.ask("fetch", 12, request).session_id
    kept = plane.services.fetch_sessions(plane.node.node_id).sessions[session_id].partitions
    plane.connection.close()
    assert set(at_each_turn(plane, lambda: len(kept), 0)) == set(range(width + 1))


def test_an_election_wakes_those_who_wait() -> None:
    with data_plane(nodes=2) as two:
        partition = two.topic().partitions[0]
        leader = two.cluster.nodes[partition.leader]
        future = two.begin("fetch", 12, fetch_request([("t", 0, 0)], max_wait_ms=60_000), node=leader)
        other = next(node.node_id for node in two.cluster.nodes.values() if node is not leader)
        two.cluster.elect(partition, other)
        two.turn()
        assert future.result().responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- sessions ----------------------------------------------------------------------------------------------------------


def opened(plane: DataPlane, wanted: list[tuple[str | bytes, int, int]], version: int = 12) -> int:
    response = plane.ask("fetch", version, fetch_request(wanted, session_epoch=0))
    assert response.session_id > 0
    return int(response.session_id)


def go_on(plane: DataPlane, session_id: int, epoch: int, request: FetchRequest | None = None) -> FetchResponse:
    request = request or fetch_request([])
    request.session_id, request.session_epoch = session_id, epoch
    response: FetchResponse = plane.ask("fetch", 12, request)
    return response


def told(response: FetchResponse) -> list[tuple[int, list[int]]]:
    return [(p.partition_index, offsets(p.records)) for t in response.responses for p in t.partitions]


def test_an_incremental_answer_holds_only_news(plane: DataPlane) -> None:
    session_id = opened(plane, [("t", 0, 0), ("t", 1, 0)])
    assert told(go_on(plane, session_id, 1)) == []
    put(plane, "v0", partition=1)
    assert told(go_on(plane, session_id, 2)) == [(1, [0])]
    assert told(go_on(plane, session_id, 3, fetch_request([("t", 1, 1)]))) == []


def test_partitions_join_and_leave_a_session(plane: DataPlane) -> None:
    session_id = opened(plane, [("t", 0, 0)])
    put(plane, "v0", partition=2)
    assert told(go_on(plane, session_id, 1, fetch_request([("t", 2, 0)]))) == [(2, [0])]
    forget = fetch_request([], forgotten_topics_data=[ForgottenTopic(topic="t", partitions=[2])])
    assert told(go_on(plane, session_id, 2, forget)) == []
    put(plane, "v0", partition=0)
    assert told(go_on(plane, session_id, 3)) == [(0, [0])]
    both = fetch_request([("t", 2, 0)], forgotten_topics_data=[ForgottenTopic(topic="t", partitions=[2])])
    assert told(go_on(plane, session_id, 4, both)) == [(0, [0])]


def test_partitions_that_gave_data_are_served_last_the_next_time(plane: DataPlane) -> None:
    session_id = opened(plane, [("t", 0, 0), ("t", 1, 0)])
    for partition in (0, 1):
        put(plane, "v0", "v1", partition=partition)
    assert told(go_on(plane, session_id, 1, fetch_request([], max_bytes=1)))[0] == (0, [0])
    assert told(go_on(plane, session_id, 2, fetch_request([], max_bytes=1)))[0] == (1, [0])


def test_unknown_sessions_and_wrong_epochs_are_refused(plane: DataPlane) -> None:
    session_id = opened(plane, [("t", 0, 0)])
    assert go_on(plane, session_id + 1, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(plane, session_id, 2).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    request = fetch_request([], session_id=session_id, session_epoch=1)
    assert plane.ask("fetch", 13, request).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert go_on(plane, session_id, 1).error_code == 0


def test_a_session_ends_when_asked_to_or_when_it_is_empty(plane: DataPlane) -> None:
    first, second = opened(plane, [("t", 0, 0)]), opened(plane, [("t", 1, 0)])
    assert go_on(plane, first, -1).session_id == 0
    forget = fetch_request([], forgotten_topics_data=[ForgottenTopic(topic="t", partitions=[1])])
    assert go_on(plane, second, 1, forget).session_id == 0
    assert not plane.services.fetch_sessions(1).sessions


def test_sessions_are_limited_and_old_ones_make_room(plane: DataPlane) -> None:
    """H26."""
    from partita.broker.reading.fetch_sessions import FetchPlan, FetchSessions

    sessions = FetchSessions(2)

    def ask(now_ms: int) -> int:
        plan = sessions.plan(fetch_request([("t", 0, 0)], session_epoch=0), 12, now_ms, plane.connection)
        assert isinstance(plan, FetchPlan)
        return plan.session_id

    first, second, third = ask(0), ask(1), ask(2)
    assert min(first, second) > 0
    assert third == 0
    assert ask(120_000) > 0
    assert first not in sessions.sessions
    assert second in sessions.sessions


def test_sessions_remember_a_bounded_number_of_partitions_together(
    plane: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A6: one connection, or thirty, may not make the broker remember millions of partitions."""
    monkeypatch.setattr(fetch_sessions, "PARTITIONS_MAX", 5)
    wide: list[tuple[str | bytes, int, int]] = [("t", partition, 0) for partition in range(4)]
    first = opened(plane, wide)
    assert first > 0
    response = plane.ask("fetch", 12, fetch_request(list(wide), session_epoch=0))
    assert response.session_id == 0, "it is answered, and nothing is remembered"
    assert len(response.responses[0].partitions) == 4
    more = fetch_request([("t", partition, 0) for partition in range(4, 7)])
    assert go_on(plane, first, 1, more).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert plane.services.fetch_sessions(1).partition_count == 0


def test_a_session_ends_with_its_connection_and_when_it_is_not_used(plane: DataPlane) -> None:
    """A6."""
    sessions = plane.services.fetch_sessions(1)
    opened(plane, [("t", 0, 0)])
    plane.connection.close()
    assert (len(sessions.sessions), sessions.partition_count) == (0, 0)
    old = opened(plane, [("t", 0, 0)])
    plane.running.advance_clock(fetch_sessions.EXPIRES_MS)
    new = opened(plane, [("t", 1, 0)])
    assert list(sessions.sessions) == [new]
    assert go_on(plane, old, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(plane.connection.callbacks) == 1, "the expired session asks nothing of its connection any more"


def test_a_sessions_error_is_told_until_it_is_gone(plane: DataPlane) -> None:
    session_id = opened(plane, [("t", 0, 0)])
    partition = plane.cluster.catalogue.by_name["t"].partitions[0]
    leader, partition.leader = partition.leader, -1
    assert len(told(go_on(plane, session_id, 1))) == 1
    partition.leader = leader
    assert told(go_on(plane, session_id, 2)) == [(0, [])]
    assert told(go_on(plane, session_id, 3)) == []
