"""Transactions through the broker's handlers: what is rarely asked, asked wrongly, or asked at a bad moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partita.broker.requests.dispatch import Dispatcher
from partita.broker.storage.data_dir import DiskStore
from partita.broker.storage.memory_store import MemoryStore
from partita.broker.topics.catalogue import OFFSETS_TOPIC
from partita.broker.wire.listeners import PLAINTEXT
from partita.log.log_config import Durability
from partita.log.storage import StorageFull
from partita.protocol.error_codes import ErrorCode
from partita.protocol.framing import encode_request
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from partita.protocol.primitives import MalformedRequest
from support.broker.data_plane import NeverPaused, fetch_request
from support.broker.transactions import TransactionPlane, transaction_plane, wait_for

CODE = ErrorCode
NO_ID = "no producer id can be taken: the disk is full"
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
LOOKS_OFTEN: dict[str, Any] = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 5}


@pytest.fixture
def plane() -> Iterator[TransactionPlane]:
    with transaction_plane() as made:
        yield made


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-A04")
def test_the_versions_of_every_request_of_transactions(plane: TransactionPlane) -> None:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    answer = plane.ask("api_versions", 4, request)
    told = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert {key: told[key] for key in (22, 24, 25, 26, 27, 28, 61, 65, 66)} == {
        22: (0, 5), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 6), 61: (0, 0), 65: (0, 0), 66: (0, 2),
    }  # fmt: skip


@pytest.mark.case("TX-B10", "TX-B11")
def test_two_phase_commit_is_not_served_and_closes_the_connection(plane: TransactionPlane) -> None:
    """Kafka serves version 6 only where unstable versions are unlocked."""
    message = InitProducerIdRequest(transactional_id="p", transaction_timeout_ms=1000)
    frame = b"".join(encode_request(22, 6, 1, "c", message))[4:]
    dispatcher = Dispatcher(plane.services, plane.node, PLAINTEXT, NeverPaused())  # type: ignore[arg-type]  # never asked
    with pytest.raises(MalformedRequest, match="api key 22 version 6 is not served"):
        dispatcher.dispatch(plane.connection, frame)


# --- producer ids -----------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-N04", "TX-B02")
def test_after_a_restart_producer_ids_are_higher() -> None:
    """KAFKA-15552: an id that was given once is never given again."""
    store = MemoryStore()
    with transaction_plane(store) as plane:
        first = [plane.init(None)[1] for _ in range(3)]
    with transaction_plane(store) as plane:
        again = plane.init(None)[1]
    assert first == sorted(set(first))
    assert again > first[-1]


@pytest.mark.case("TX-B12")
def test_without_room_for_another_block_of_producer_ids_it_is_tried_again(
    plane: TransactionPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*lines: bytes, may_wait: bool = False) -> None:
        raise StorageFull("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(plane.store, "append_catalogue", full)
        assert plane.init(None) == (CODE.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
        assert plane.init("fresh") == (CODE.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert plane.init(None)[0] == 0
    assert plane.init("fresh")[0] == 0


@pytest.mark.case("TX-B12", "TX-N09")
def test_without_room_for_a_new_producer_id_a_timeout_waits_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The last epoch is followed by a new producer id. Whoever needs none is timed out all the same."""

    def full(*lines: bytes, may_wait: bool = False) -> None:
        raise StorageFull("the disk is full")

    with transaction_plane(transaction_state_log_num_partitions=1, **LOOKS_OFTEN) as plane:
        plane.start("q")
        producer_id, _ = plane.start()
        entry = plane.runner.coordinator.entries["p"]
        entry.transaction = replace(entry.transaction, epoch=32_766)
        last = (producer_id, 32_766)
        with monkeypatch.context() as patch:
            patch.setattr(plane.store, "append_catalogue", full)
            while plane.init(None)[0] == 0:
                pass
            q = plane.start("q", given=(producer_id - 1, 0))
            assert (plane.send(last, T0), plane.send(q, T1, name="q")) == ([0], [0])
            assert plane.end(last)[0] == plane.init()[0] == CODE.COORDINATOR_LOAD_IN_PROGRESS
            plane.cluster.clock.advance(60_001)
            wait_for(plane, lambda: plane.describe("q").transaction_state == "CompleteAbort")
            wait_for(plane, lambda: caplog.text.count(NO_ID) >= 2)
            assert plane.describe().transaction_state == "Ongoing"
            assert caplog.text.count(NO_ID) == 2, "at most every 10 seconds"
        wait_for(plane, lambda: plane.describe().transaction_state == "CompleteAbort")
        told = plane.describe()
        assert (told.transaction_state, told.producer_epoch, told.producer_id > producer_id) == (
            "CompleteAbort",
            0,
            True,
        )


# --- at a bad moment --------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-H09")
def test_a_marker_for_a_groups_shard_that_loads_is_to_be_sent_again(plane: TransactionPlane) -> None:
    topic, index = plane.offsets_log()
    plane.run(lambda: plane.services.groups().hold_load(index))
    assert plane.mark((77, 0), (topic, index)) == [CODE.NOT_LEADER_OR_FOLLOWER]
    plane.run(lambda: plane.services.groups().release_load(index))
    assert plane.mark((77, 0), (topic, index)) == [0]


@pytest.mark.case("TX-H11")
@pytest.mark.parametrize("partition", [T0, (OFFSETS_TOPIC, 0)])
def test_under_sync_a_marker_is_answered_once_the_disk_has_it(tmp_path: Path, partition: tuple[str, int]) -> None:
    store = DiskStore(str(tmp_path), Durability.SYNC)
    with transaction_plane(store, offsets_topic_num_partitions=1) as plane:
        topics = [WritableTxnMarkerTopic(name=partition[0], partition_indexes=[partition[1]])]
        marker = WritableTxnMarker(producer_id=77, producer_epoch=0, transaction_result=True, topics=topics)
        answer = plane.begin("write_txn_markers", 2, WriteTxnMarkersRequest(markers=[marker]))
        log = plane.log(*partition)
        assert (log.high_watermark, log.log_end_offset) == (0, 1)
        assert plane.loop.run_until_complete(answer).markers[0].topics[0].partitions[0].error_code == 0
        assert log.high_watermark == 1


@pytest.mark.case("TX-I21")
@pytest.mark.parametrize("version", [8, 11, 12])
def test_while_the_coordinator_loads_a_batch_is_to_be_sent_again(plane: TransactionPlane, version: int) -> None:
    given = plane.start()
    plane.add(given, T0)
    index = plane.runner.partition.index
    plane.run(lambda: plane.services.transactions().hold_load(index))
    assert plane.send(given, version=version) == [CODE.NOT_ENOUGH_REPLICAS]
    plane.run(lambda: plane.services.transactions().release_load(index))
    plane.run(lambda: None)
    assert plane.send(given, version=version) == [0]


@pytest.mark.parametrize(
    ("version", "code"), [(1, CODE.COORDINATOR_NOT_AVAILABLE), (2, CODE.COORDINATOR_LOAD_IN_PROGRESS)]
)
def test_while_the_coordinator_loads_offsets_are_to_be_sent_again(
    plane: TransactionPlane, version: int, code: ErrorCode
) -> None:
    """KAFKA-7296: producers of before 2.0 end at COORDINATOR_LOAD_IN_PROGRESS."""
    given = plane.start()
    index = plane.runner.partition.index
    plane.run(lambda: plane.services.transactions().hold_load(index))
    assert plane.commit_offset(given, version=version) == code


def test_a_coordinator_whose_node_stays_the_leader_does_not_load_again(plane: TransactionPlane) -> None:
    """KAFKA-15468"""
    plane.start()
    before, partition = plane.runner, plane.runner.partition
    plane.run(lambda: plane.cluster.elect(partition, partition.leader))
    assert plane.runner is before
    assert before.leader_epoch == partition.leader_epoch == 1


@pytest.mark.case("TX-S05", "TX-S01")
def test_while_a_marker_is_refused_everybody_is_told_to_wait_or_is_fenced(plane: TransactionPlane) -> None:
    """As on Kafka; there the id stays so until its coordinator loads, here until the partition takes the marker."""
    given = plane.start()
    plane.send(given, T0)
    markers = plane.services.transactions().markers
    write, markers.write = markers.write, lambda partition, marker: CODE.MESSAGE_TOO_LARGE
    assert plane.end(given)[0] == 0
    other, stale = (given[0] + 1, 1), (given[0], 7)
    assert [plane.end(one, version=3) for one in (other, stale)] == [
        CODE.INVALID_PRODUCER_ID_MAPPING,
        CODE.PRODUCER_FENCED,
    ]
    wait = CODE.CONCURRENT_TRANSACTIONS
    assert [plane.end(one)[0] for one in (other, stale)] == [wait, wait]
    assert plane.add(other, T0) == [wait]
    assert plane.init(given=other)[0] == wait
    markers.write = write
    wait_for(plane, lambda: plane.describe().transaction_state == "CompleteCommit")


@pytest.mark.case("TX-N11", "TX-N02")
def test_a_load_reads_what_is_not_durable_yet_and_serves_once_it_is(tmp_path: Path) -> None:
    with transaction_plane(DiskStore(str(tmp_path), Durability.SYNC)) as plane:
        plane.loop.run_until_complete(plane.running.upkeep.stop())
        request = InitProducerIdRequest(transactional_id="p", transaction_timeout_ms=60_000)
        asked = asyncio.ensure_future(plane.begin("init_producer_id", 5, request), loop=plane.loop)
        log = plane.runner.partition.log
        assert (log.high_watermark, log.log_end_offset) == (0, 1)
        plane.move()
        assert plane.loop.run_until_complete(asked).error_code == CODE.NOT_COORDINATOR
        assert plane.describe().error_code == CODE.COORDINATOR_LOAD_IN_PROGRESS
        plane.run(lambda: log.flush(plane.cluster.clock.now()))
        assert plane.describe().transaction_state == "Empty"


# --- what readers are told --------------------------------------------------------------------------------------------


@pytest.mark.case("TX-J06", "TX-J05")
@pytest.mark.parametrize("version", [4, 7, 12])
def test_the_aborted_transactions_of_a_fetch_come_by_first_offset(plane: TransactionPlane, version: int) -> None:
    producers = [plane.start(name) for name in "abcd"]
    for name, given in zip("abcd", producers, strict=True):
        assert plane.send(given, T0, name=name) == [0]
    for at in (2, 0, 3, 1):
        assert plane.end(producers[at], committed=False, name="abcd"[at])[0] == 0
    plane.send((-1, -1), T0, name=None, transactional=False)
    fetched = plane.ask("fetch", version, fetch_request([("t", 0, 0)], isolation_level=1)).responses[0].partitions[0]
    told = [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions]
    assert told == [(given[0], offset) for offset, given in enumerate(producers)]
    assert (fetched.last_stable_offset, fetched.high_watermark) == (9, 9)
    # the markers of the third, first and fourth transaction are at 4, 5 and 6
    late = plane.ask("fetch", version, fetch_request([("t", 0, 6)], isolation_level=1)).responses[0].partitions[0]
    assert [one.first_offset for one in late.aborted_transactions] == [1, 3]


# --- what other brokers lost ------------------------------------------------------------------------------------------


@pytest.mark.case("BM-165")
@pytest.mark.parametrize("level", [2, 0])
def test_a_sequence_number_of_an_aborted_transaction_is_no_duplicate_in_the_next_one(level: int) -> None:
    """Redpanda PR 5026: the write was answered from the cache of the aborted one, and lost."""
    with transaction_plane(partita_transaction_version=level) as plane:
        given = plane.start()
        assert plane.send(given, T0) == [0]
        plane.end(given, committed=False, version=5 if level else 4)
        given = plane.start(given=given) if level == 0 else (given[0], given[1] + 1)
        (answer,) = plane.send_for(given, T0)
        assert (answer.error_code, answer.base_offset) == (0, 2)


@pytest.mark.case("BM-167")
def test_a_commit_fails_where_the_coordinator_has_lost_the_transaction(plane: TransactionPlane) -> None:
    """Redpanda issue 6018: the transaction and the tail of the data were lost together, and the commit succeeded."""
    given = plane.start()
    assert plane.send(given, T0) == [0]
    state, data = plane.runner.partition.log, plane.log()

    def lose() -> None:
        state.truncate_to(1)
        data.truncate_to(0)

    plane.run(lose)
    plane.move()
    assert plane.end(given)[0] == CODE.INVALID_TXN_STATE
    assert plane.end(given, version=4) == CODE.INVALID_TXN_STATE
    assert plane.describe().transaction_state == "Empty"


# --- hostile ----------------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-R08")
def test_hostile_requests_are_refused_and_change_nothing(plane: TransactionPlane) -> None:
    canary = plane.start("canary")
    assert plane.send(canary, T0, name="canary") == [0]
    given = plane.start()
    for producer_id in (-1, -(2**63), 2**63 - 1):
        assert plane.end((producer_id, 0))[0] == CODE.INVALID_PRODUCER_ID_MAPPING
        assert plane.add((producer_id, 0), T0) == [CODE.INVALID_PRODUCER_ID_MAPPING]
    for epoch in (-32768, -1, 1, 32766, 32767):
        assert plane.end((given[0], epoch), version=3) == CODE.PRODUCER_FENCED
        assert plane.add((given[0], epoch), T0) == [CODE.PRODUCER_FENCED]
    for half in ((given[0], -1), (-1, given[1])):
        assert plane.init(given=half)[0] == CODE.INVALID_REQUEST
    many = [("t", index) for index in range(2, 20_000)]
    assert set(plane.add(given, *many)) == {CODE.UNKNOWN_TOPIC_OR_PARTITION}
    assert plane.init("x" * 32_767)[0] == 0
    assert {plane.init("loop")[0] for _ in range(200)} == {0}
    assert plane.states("p") == [("Empty", given[1])]
    assert plane.end(canary, name="canary")[0] == 0


@pytest.mark.case("TX-R08")
def test_a_forged_marker_of_an_unknown_producer_ends_nobodys_transaction(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.send(given, T0)
    assert plane.mark((given[0] + 500, 0), T0, committed=False) == [0]
    assert plane.mark((given[0], given[1]), T0, committed=False, level=2) == [CODE.INVALID_PRODUCER_EPOCH]
    assert plane.log().last_stable_offset == 0
    assert plane.end(given)[0] == 0
    assert [commits for _, _, commits in plane.markers()] == [False, True]


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_tell_how_transactions_stand_and_how_they_ended(plane: TransactionPlane) -> None:
    read = plane.running.metrics.read
    ids, own = "kafka_partita_Transactions_ids", "kafka_partita_Transactions_"
    open_one, markers = plane.start("open"), plane.services.transactions().markers
    assert plane.send(open_one, T0, name="open") == [0]
    given = plane.start()
    plane.send(given, U0)
    _, producer_id, epoch = plane.end(given)
    plane.send((producer_id, epoch), U0)
    write, markers.write = markers.write, lambda partition, marker: CODE.NOT_LEADER_OR_FOLLOWER
    plane.end((producer_id, epoch), committed=False)
    told = read()
    assert (told[f'{ids}{{state="Ongoing"}}'], told[f'{ids}{{state="PrepareAbort"}}']) == (1, 1)
    assert told[f"{own}markers_waiting"] == 1
    retries = "kafka_coordinator_transaction_TransactionMarkerChannelManager_Value"
    assert told[f'{retries}{{name="LogAppendRetryQueueSize"}}'] == 0
    assert told['kafka_server_ReplicaManager_Value{name="ProducerIdCount"}'] == 2
    assert (told[f"{own}committed"], told[f'{own}aborted{{by="producer"}}']) == (1, 1)
    late = 'kafka_server_ReplicaManager_Value{name="PartitionsWithLateTransactionsCount"}'
    assert told[late] == 0
    markers.write = write
    plane.runner.refuse_next_append = CODE.COORDINATOR_NOT_AVAILABLE
    wait_for(plane, lambda: read()[f'{retries}{{name="LogAppendRetryQueueSize"}}'] == 1)
    plane.cluster.clock.advance(900_000 + 300_000 + 1)
    assert read()[late] == 1
    plane.run(plane.services.clock_jumped)
    told = read()
    assert (told[f'{own}aborted{{by="timeout"}}'], told[f"{own}open_ms_max"]) == (1, 0)
