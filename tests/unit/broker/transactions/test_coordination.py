"""Transactions through the broker's handlers: coordinator, log and markers together, every version of every request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from partita.broker.topics.catalogue import TRANSACTION_TOPIC
from partita.group import partition_for
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.init_producer_id import InitProducerIdRequest
from partita.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from partita.protocol.messages.list_transactions import ListTransactionsRequest
from partita.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from partita.records.builder import build_marker
from partita.records.header import iter_batches
from partita.transactions.contract import AddPartitions, EndTransaction
from support.broker.transactions import TransactionPlane, transaction_plane, wait_for

CODE = ErrorCode
T0, T1, U0, NOWHERE = ("t", 0), ("t", 1), ("u", 0), ("nowhere", 0)


@pytest.fixture
def plane() -> Iterator[TransactionPlane]:
    with transaction_plane() as made:
        yield made


def listed(plane: TransactionPlane, timestamp: int, isolation: int) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(isolation_level=isolation, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    return int(plane.ask("list_offsets", 9, request).topics[0].partitions[0].offset)


# --- coordinator, versions --------------------------------------------------------------------------------------------


@pytest.mark.case("TX-A01", "TX-A02", "TX-A03")
def test_each_id_has_its_partition_of_the_state_topic(plane: TransactionPlane) -> None:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["one", "two", ""])
    found = plane.ask("find_coordinator", 4, request).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in found] == [(k, 0, 1) for k in ("one", "two", "")]
    topic = plane.cluster.catalogue.by_name[TRANSACTION_TOPIC]
    assert (topic.is_internal, len(topic.partitions), topic.config.list("cleanup.policy")) == (True, 50, ("compact",))
    assert topic.config.text("compression.type") == "uncompressed"
    for name in ("my-group", "事务-1", "😀txn", "polygenelubricants"):
        plane.start(name)
        assert topic.partitions[partition_for(name, 50)].log.log_end_offset == 1


@pytest.mark.case("TX-A07")
def test_with_kafkas_defaults_the_first_question_makes_the_topic_and_waits() -> None:
    with transaction_plane() as plane:
        plane.cluster.config.kafka_defaults = True
        topic = plane.cluster.catalogue.by_name[TRANSACTION_TOPIC]
        plane.run(lambda: plane.cluster.catalogue.delete([topic]))
        assert plane.init()[0] == CODE.NOT_COORDINATOR
        assert [plane.find(), plane.find()] == [CODE.COORDINATOR_NOT_AVAILABLE, 0]
        assert plane.init()[0] == 0


@pytest.mark.case("TX-A05", "TX-T01")
@pytest.mark.parametrize(("level", "finalized"), [(2, [("transaction.version", 2, 2)]), (0, [])])
def test_the_feature_tells_clients_how_transactions_end(level: int, finalized: list[object]) -> None:
    with transaction_plane(partita_transaction_version=level) as plane:
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        for version in (2, 3, 4):
            answer = plane.ask("api_versions", version, request)
            ours = [f for f in answer.finalized_features if f.name == "transaction.version"]
            told = [(f.name, f.min_version_level, f.max_version_level) for f in ours]
            known = [f for f in answer.supported_features if f.name == "transaction.version"]
            supported = [(f.name, f.min_version, f.max_version) for f in known]
            assert told == (finalized if version > 2 else [])
            assert supported == ([("transaction.version", 0, 2)] if version > 3 else [])
            assert (answer.finalized_features_epoch >= 0) is (version > 2)


@pytest.mark.case("TX-A06", "TX-I13")
def test_clients_write_neither_the_state_topic_nor_markers(plane: TransactionPlane) -> None:
    assert plane.send((1, 0), (TRANSACTION_TOPIC, 0), transactional=False) == [CODE.INVALID_TOPIC_EXCEPTION]
    marker = build_marker(1, timestamp=0, producer_id=1, producer_epoch=0, coordinator_epoch=0)
    assert plane.produce(marker).error_code == CODE.INVALID_RECORD


@pytest.mark.case("TX-A08", "TX-A09", "TX-N18")
def test_a_loading_or_foreign_coordinator_says_so(plane: TransactionPlane) -> None:
    given = plane.start()
    index = plane.runner.partition.index
    plane.run(lambda: plane.services.transactions().hold_load(index))
    assert plane.init()[0] == CODE.COORDINATOR_LOAD_IN_PROGRESS
    assert plane.add(given, T0) == [CODE.COORDINATOR_LOAD_IN_PROGRESS]
    assert plane.end(given)[0] == CODE.COORDINATOR_LOAD_IN_PROGRESS
    assert plane.describe().error_code == CODE.COORDINATOR_LOAD_IN_PROGRESS
    assert plane.ask("list_transactions", 2, ListTransactionsRequest()).error_code == 14
    assert plane.send(given) == [CODE.NOT_ENOUGH_REPLICAS]
    assert plane.commit_offset(given) == CODE.COORDINATOR_LOAD_IN_PROGRESS
    plane.run(lambda: plane.services.transactions().release_load(index))
    epoch = plane.runner.leader_epoch
    plane.run(lambda: plane.services.transactions().resigned(index, epoch))
    plane.run(lambda: plane.services.transactions().elected(plane.runner.partition))
    assert plane.add(given, T0) == [0]
    plane.run(lambda: plane.services.transactions().resigned(index, epoch + 1))
    assert plane.init()[0] == CODE.NOT_COORDINATOR


# --- InitProducerId ---------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-B01", "TX-B02", "TX-B05", "TX-B03")
def test_an_idempotent_producer_always_gets_a_new_id(plane: TransactionPlane) -> None:
    ids = set()
    for version in range(6):
        for given in ((-1, -1), (5, 7)):
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=-1, producer_id=given[0], producer_epoch=given[1]
            )
            answer = plane.ask("init_producer_id", version, request)
            assert (answer.error_code, answer.producer_epoch) == (0, 0)
            ids.add(answer.producer_id)
        assert plane.init("", version=version) == (CODE.INVALID_REQUEST, -1, -1)
    ids |= {plane.init(None)[1] for _ in range(1200)}
    assert len(ids) == 1212
    assert plane.init("", (5, -1), timeout_ms=0)[0] == CODE.INVALID_REQUEST


@pytest.mark.case("TX-C03", "TX-C07", "TX-D05", "TX-F05")
def test_old_versions_are_told_of_a_fence_in_the_logs_word(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.add(given, T0)
    assert plane.init()[0] == CODE.CONCURRENT_TRANSACTIONS
    old, new = CODE.INVALID_PRODUCER_EPOCH, CODE.PRODUCER_FENCED
    assert [plane.add(given, T0, version=v)[0] for v in range(4)] == [old, old, new, new]
    assert [plane.verify(given, T0, version=v)[0] for v in (4, 5)] == [new, new]
    assert [plane.add_offsets(given, version=v) for v in range(5)] == [old, old, new, new, new]
    assert [plane.end(given, version=v) for v in range(5)] == [old, old, new, new, new]
    assert plane.init() == (0, given[0], 2)
    assert plane.end(given)[0] == new
    assert [plane.init(given=given, version=v)[0] for v in (3, 4, 5)] == [old, new, new]
    assert [plane.send(given, version=v)[0] for v in (10, 11, 12)] == [old, old, old]
    assert plane.commit_offset(given) == old


# --- adding -----------------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-D07", "TX-D08", "TX-D11", "TX-D13")
def test_one_bad_partition_keeps_all_from_being_added(plane: TransactionPlane) -> None:
    given = plane.start()
    assert plane.add(given, T0, NOWHERE, ("t", 9)) == [CODE.OPERATION_NOT_ATTEMPTED, 3, 3]
    assert plane.add(given, plane.offsets_log()) == [CODE.TOPIC_AUTHORIZATION_FAILED]
    assert plane.describe().transaction_state == "Empty"
    assert plane.verify(given, T0) == [CODE.TRANSACTION_ABORTABLE]
    assert plane.verify(given, T0, only=False) == [0]
    assert plane.verify(given, T0, T1) == [0, CODE.TRANSACTION_ABORTABLE]
    assert plane.runner.coordinator.entries["p"].transaction.client_version == 2
    plane.connection.client_host = "/10.0.0.7"
    assert plane.verify(given, T0) == [CODE.CLUSTER_AUTHORIZATION_FAILED]


@pytest.mark.case("TX-E01", "TX-E02", "TX-E03", "TX-E04", "TX-E09")
def test_offsets_join_the_transaction(plane: TransactionPlane) -> None:
    given = plane.start()
    for version in range(5):
        assert plane.add_offsets(given, version=version) == 0
    assert plane.add_offsets(given, "") == 0
    assert plane.runner.coordinator.entries["p"].transaction.partitions == {
        plane.offsets_log(), plane.offsets_log("")
    }  # fmt: skip
    assert plane.add_offsets((99, 0)) == CODE.INVALID_PRODUCER_ID_MAPPING
    assert plane.add_offsets(given, name="") == CODE.INVALID_REQUEST
    assert plane.add_offsets(given, name="q") == CODE.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.case("TX-E05", "TX-E06", "TX-E07", "TX-E08", "TX-J08")
def test_offsets_are_verified_and_appear_with_the_end(plane: TransactionPlane) -> None:
    given = plane.start()
    assert [plane.commit_offset(given, version=v) for v in (2, 3, 4)] == [48, 48, CODE.TRANSACTION_ABORTABLE]
    assert plane.commit_offset(given, 7) == 0
    assert plane.committed(stable=True) == -CODE.UNSTABLE_OFFSET_COMMIT
    assert plane.commit_offset((99, 0)) == CODE.INVALID_PRODUCER_ID_MAPPING
    assert plane.commit_offset(given, name="q", version=3) == CODE.INVALID_PRODUCER_ID_MAPPING
    assert plane.commit_offset((given[0], 5), version=3) == CODE.INVALID_PRODUCER_EPOCH
    code, *following = plane.end(given)
    assert (code, plane.committed(stable=True)) == (0, 7)
    after = (following[0], following[1])
    assert [plane.commit_offset(given, 8, version=v) for v in (3, 5)] == [CODE.INVALID_PRODUCER_EPOCH] * 2
    assert plane.commit_offset(after, 9, generation_id_or_member_epoch=4, member_id="nobody") == CODE.UNKNOWN_MEMBER_ID
    assert plane.describe().transaction_state == "Ongoing"
    assert plane.end(after)[0] == 0
    assert plane.committed() == 7


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_no_group_are_refused_before_the_transaction_is_looked_at(
    plane: TransactionPlane, version: int
) -> None:
    """As Apache Kafka 4.3.1, whoever the producer is and also while its coordinator loads (an audit)."""
    given = plane.start()
    refused = {plane.commit_offset(one, group="", version=version) for one in (given, (99, 0), (given[0], -1))}
    index = plane.runner.partition.index
    plane.run(lambda: plane.services.transactions().hold_load(index))
    refused.add(plane.commit_offset(given, group="", version=version))
    assert refused == {CODE.INVALID_GROUP_ID}


# --- the produce path -------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-I01", "TX-I02", "TX-I10", "TX-I20")
def test_a_transaction_begins_only_where_its_coordinator_knows_of_it(plane: TransactionPlane) -> None:
    """KAFKA-14402: a late batch opens no transaction that nobody ends."""
    given = plane.start()
    assert [plane.send(given, version=v)[0] for v in range(3, 11)] == [CODE.INVALID_TXN_STATE] * 8
    assert plane.send(given, version=11) == [CODE.TRANSACTION_ABORTABLE]
    assert plane.log().log_end_offset == 0
    assert plane.send(given) == [0]
    assert plane.describe().transaction_state == "Ongoing"
    written = len(plane.states())
    assert plane.send(given, sequence=1) == [0]
    assert len(plane.states()) == written
    assert plane.end(given, version=3) == 0
    assert plane.send(given, sequence=2, version=10) == [CODE.INVALID_TXN_STATE]
    assert plane.send(given, sequence=2, version=11) == [CODE.TRANSACTION_ABORTABLE]
    assert plane.send(given, sequence=2) == [0]


@pytest.mark.case("TX-I03", "TX-I04", "TX-I11", "TX-I12", "TX-I14")
def test_wrong_producers_are_refused(plane: TransactionPlane) -> None:
    given = plane.start()
    for version in (10, 11, 12):
        assert plane.send((given[0], 5), version=version) == [CODE.INVALID_PRODUCER_EPOCH]
        assert plane.send((given[0] + 1, 0), version=version) == [CODE.INVALID_PRODUCER_ID_MAPPING]
        assert plane.send(given, name="q", version=version) == [CODE.INVALID_PRODUCER_ID_MAPPING]
        assert plane.send(given, T0, T1, name=None, version=version) == [53, 53]
    assert plane.send((77, 0), transactional=False) == [0]
    assert plane.send(given, T0, U0, NOWHERE) == [0, 0, CODE.UNKNOWN_TOPIC_OR_PARTITION]
    assert plane.states()[-1] == ("Ongoing", 0)
    assert len(plane.states()) == 2


@pytest.mark.case("TX-I05", "TX-I08", "TX-I09", "TX-G02")
def test_the_next_transaction_starts_at_sequence_zero_of_the_next_epoch(plane: TransactionPlane) -> None:
    given = plane.start()
    assert plane.send(given) == [0]
    assert plane.send(given, sequence=1, transactional=False) == [CODE.INVALID_TXN_STATE]
    _, producer_id, epoch = plane.end(given)
    after = (producer_id, epoch)
    assert plane.send(given, sequence=1) == [CODE.INVALID_PRODUCER_EPOCH]
    assert plane.send(after, sequence=1) == [CODE.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert plane.send(after) == [0]
    assert plane.send(after) == [0]
    assert plane.log().log_end_offset == 3


@pytest.mark.case("TX-I15", "TX-H05")
def test_a_marker_behind_the_coordinators_back_is_found_out(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.send(given)
    assert plane.mark(given, T0, level=2) == [CODE.INVALID_PRODUCER_EPOCH]
    assert plane.mark(given, T0) == [0]
    assert plane.send(given, sequence=1, version=11) == [0]
    assert plane.end(given)[0] == 0
    assert [epoch for _, epoch, _ in plane.markers()] == [0, 1]


@pytest.mark.case("TX-I18", "TX-S02", "TX-S03", "TX-G10")
def test_while_markers_wait_everybody_is_told_to_come_again(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.send(given, T0)
    markers = plane.services.transactions().markers
    write = markers.write
    markers.write = lambda partition, marker: CODE.NOT_LEADER_OR_FOLLOWER
    assert plane.end(given) == (0, given[0], 1)
    after = (given[0], 1)
    assert plane.end(given)[0] == CODE.CONCURRENT_TRANSACTIONS
    assert plane.add(after, T0) == [CODE.CONCURRENT_TRANSACTIONS]
    assert plane.verify(after, T0) == [CODE.CONCURRENT_TRANSACTIONS]
    assert plane.init()[0] == CODE.CONCURRENT_TRANSACTIONS
    assert plane.send(after, T1, version=11) == [CODE.NOT_ENOUGH_REPLICAS]
    assert plane.send(after, T1) == [CODE.CONCURRENT_TRANSACTIONS]
    assert plane.log().last_stable_offset == 0
    markers.write = write
    wait_for(plane, lambda: plane.describe().transaction_state == "CompleteCommit")
    assert plane.end(given) == (0, given[0], 1)
    assert plane.log().last_stable_offset == 2


@pytest.mark.case("TX-I19")
def test_verification_can_be_switched_off_for_old_requests() -> None:
    with transaction_plane(transaction_partition_verification_enable=False) as plane:
        given = plane.start()
        assert plane.send(given, version=11) == [0]
        assert plane.describe().transaction_state == "Empty"
        assert plane.send(given, T1) == [0]
        assert plane.describe().transaction_state == "Ongoing"


# --- markers ----------------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-H01", "TX-H02", "TX-H03", "TX-H04", "TX-H06", "TX-H07", "TX-H08", "TX-H10")
def test_markers_written_by_hand_are_fenced_by_both_epochs(plane: TransactionPlane) -> None:
    assert plane.mark((70, 3), T0, NOWHERE, ("t", 9), coordinator=5, version=1) == [0, 3, 3]
    ((header, _),) = iter_batches(plane.log().read(0, 10_000))
    assert (header.is_control, header.is_transactional, header.base_sequence, header.codec) == (True, True, -1, 0)
    for epoch, coordinator, code in ((2, 5, 47), (3, 4, 52), (3, 5, 0), (4, 4, 52)):
        assert plane.mark((70, epoch), T0, coordinator=coordinator, committed=False) == [code]
    assert plane.markers() == [(70, 3, True), (70, 3, False)]
    assert plane.ask("write_txn_markers", 2, WriteTxnMarkersRequest()).markers == []
    plane.connection.client_host = "/10.0.0.7"
    assert plane.mark((70, 5), T0, coordinator=5) == [CODE.CLUSTER_AUTHORIZATION_FAILED]


@pytest.mark.case("TX-S01", "TX-S04")
def test_a_topic_for_small_messages_takes_markers_all_the_same(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.send(given, T0)
    plane.run(
        lambda: plane.cluster.catalogue.configure(plane.cluster.catalogue.by_name["t"], {"max.message.bytes": 10})
    )
    assert plane.end(given)[0] == 0
    assert plane.describe().transaction_state == "CompleteCommit"


@pytest.mark.case("TX-J09")
def test_a_deleted_topic_holds_no_transaction_back(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.send(given, T0, U0)
    plane.run(lambda: plane.cluster.catalogue.delete([plane.cluster.catalogue.by_name["u"]]))
    assert plane.end(given)[0] == 0
    assert plane.describe().transaction_state == "CompleteCommit"
    assert plane.log().last_stable_offset == 2


# --- readers ----------------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-J01", "TX-J02", "TX-J03", "TX-J04", "TX-J05")
def test_readers_see_what_is_stable(plane: TransactionPlane) -> None:
    older, younger = plane.start("a"), plane.start("b")
    plane.send((90, 0), transactional=False)
    plane.send(older, name="a")
    plane.send(younger, name="b")
    plane.send((91, 0), transactional=False)
    data = plane.fetch(0, isolation_level=1)
    assert (data.last_stable_offset, data.high_watermark, data.aborted_transactions) == (1, 4, [])
    assert [header.base_offset for header, _ in iter_batches(data.records or b"")] == [0]
    uncommitted = plane.fetch(0, isolation_level=0)
    assert (uncommitted.last_stable_offset, uncommitted.aborted_transactions) == (1, None)
    assert (listed(plane, -1, 1), listed(plane, -1, 0), listed(plane, -2, 1)) == (1, 4, 0)
    beyond = plane.fetch(2, isolation_level=1)
    assert (beyond.error_code, bytes(beyond.records or b"")) == (0, b"")
    plane.end(younger, name="b")
    assert plane.log().last_stable_offset == 1
    plane.end(older, committed=False, name="a")
    ended = plane.fetch(0, isolation_level=1)
    assert ended.last_stable_offset == ended.high_watermark == 6
    assert [(a.producer_id, a.first_offset) for a in ended.aborted_transactions or ()] == [(older[0], 1)]
    assert plane.fetch(5, isolation_level=1).aborted_transactions != []
    assert plane.fetch(0, isolation_level=0).aborted_transactions is None


@pytest.mark.case("TX-J07")
@pytest.mark.parametrize("committed", [True, False])
def test_every_partition_gets_its_marker(plane: TransactionPlane, committed: bool) -> None:
    given = plane.start()
    everywhere = (T0, T1, U0, ("u", 1))
    assert plane.send(given, *everywhere) == [0] * 4
    assert plane.commit_offset(given) == 0
    plane.end(given, committed)
    assert [plane.log(*where).log_end_offset for where in everywhere] == [2] * 4
    assert [len(plane.log(*where).producers.aborted) for where in everywhere] == [0 if committed else 1] * 4
    assert plane.committed() == (7 if committed else -1)


# --- describe, list ---------------------------------------------------------------------------------------------------


@pytest.mark.case("TX-L01", "TX-L04", "TX-L05", "TX-L08")
def test_ids_are_listed_and_described(plane: TransactionPlane) -> None:
    given = plane.start("a")
    plane.start("b")
    plane.send(given, T0, U0, name="a")
    described = plane.describe("a")
    assert [(t.topic, t.partitions) for t in described.topics] == [("t", [0]), ("u", [0])]
    assert (described.transaction_timeout_ms, described.transaction_start_time_ms > 0) == (60_000, True)
    assert [plane.describe(name).error_code for name in ("x", "")] == [105, 42]
    for version in range(3):
        found = plane.ask("list_transactions", version, ListTransactionsRequest()).transaction_states
        assert sorted((f.transactional_id, f.transaction_state) for f in found) == [("a", "Ongoing"), ("b", "Empty")]
    wrong = plane.ask("list_transactions", 2, ListTransactionsRequest(state_filters=["empty", "Empty"]))
    assert (wrong.unknown_state_filters, [f.transactional_id for f in wrong.transaction_states]) == (["empty"], ["b"])
    bad = plane.ask("list_transactions", 2, ListTransactionsRequest(transactional_id_pattern="("))
    assert bad.error_code == CODE.INVALID_REGULAR_EXPRESSION


@pytest.mark.case("TX-L09", "TX-L10", "TX-L11", "TX-K07")
def test_producers_of_a_partition_are_described(plane: TransactionPlane) -> None:
    def producers(name: str = "t", index: int = 0) -> Any:
        topic = DescribeProducersTopic(name=name, partition_indexes=[index])
        answer = plane.ask("describe_producers", 0, DescribeProducersRequest(topics=[topic]))
        (result,) = answer.topics[0].partitions
        if result.error_code:
            return result.error_code
        return [
            (p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
            for p in result.active_producers
        ]

    given = plane.start()
    assert producers() == []
    plane.send(given, count=3)
    assert producers() == [(0, 2, -1, 0)]
    plane.end(given)
    ((epoch, sequence, coordinator, start),) = producers()
    assert (epoch, sequence, coordinator >= 0, start) == (1, -1, True, -1)
    assert [producers("x"), producers("t", 9), producers("a/b")] == [3, 3, CODE.INVALID_TOPIC_EXCEPTION]


# --- timers, refused appends, loads -----------------------------------------------------------------------------------


@pytest.mark.case("TX-K01", "TX-K03")
def test_a_transaction_that_is_open_for_too_long_is_aborted(plane: TransactionPlane) -> None:
    given = plane.start(timeout_ms=1000)
    plane.send(given)
    plane.run(lambda: plane.running.advance_clock(11_100))
    assert plane.states()[-2:] == [("PrepareAbort", 1), ("CompleteAbort", 1)]
    assert plane.log().last_stable_offset == 2
    assert plane.send(given, sequence=1) == [CODE.INVALID_PRODUCER_EPOCH]
    assert plane.commit_offset(given) == CODE.INVALID_PRODUCER_EPOCH
    assert plane.end(given, version=3) == CODE.PRODUCER_FENCED
    assert plane.end(given)[0] == CODE.INVALID_TXN_STATE
    assert plane.end(given, committed=False) == (0, given[0], 1)


def test_a_timer_that_was_set_before_the_clock_jumped_is_set_again() -> None:
    """Simulator, seed 29: the next look at open transactions was as far away as the expiry of idle ids had been."""
    with transaction_plane(transaction_abort_timed_out_transaction_cleanup_interval_ms=20) as plane:
        plane.start()
        plane.run(lambda: plane.running.advance_clock(86_400_000))
        plane.send(plane.start(timeout_ms=1))
        wait_for(plane, lambda: plane.states()[-1][0] == "CompleteAbort")


def test_time_outs_of_all_shards_share_one_line_with_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are due at once, a turn of the loop does no more than one step of one shard, if that takes long."""
    with transaction_plane(transaction_abort_timed_out_transaction_cleanup_interval_ms=100) as plane:
        for name in "abcdef":
            plane.send(plane.start(name), name=name)
        assert len({plane.services.transactions().runner_of(name) for name in "abcdef"}) > 1
        seconds, turn = count(), [0]
        monkeypatch.setattr(plane.services.turns, "clock", lambda: next(seconds))
        ended: list[int] = []
        plane.cluster.notes.listen(lambda note: ended.append(turn[0]) if note["note"] == "TransactionEnded" else None)

        def until_all_are_due() -> None:
            plane.cluster.clock.advance(60_001)
            end = plane.loop.time() + 0.2
            while plane.loop.time() < end:
                pass

        def count_turns() -> None:
            turn[0] += 1
            plane.loop.call_soon(count_turns)

        plane.loop.call_soon(count_turns)
        plane.run(until_all_are_due)
        wait_for(plane, lambda: len(ended) == 6)
        assert len(set(ended)) == len({plane.services.transactions().runner_of(name) for name in "abcdef"})


def test_ends_of_many_transactions_take_turns_from_their_first_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred ends in one instant stopped the broker for five seconds: each wrote its first hundred at once."""
    names, parts = [f"id-{number}" for number in range(20)], (T0, T1, U0)
    with transaction_plane() as plane:
        given = {name: plane.start(name) for name in names}
        for name in names:
            assert plane.add(given[name], *parts, name=name) == [0, 0, 0]
        seconds, turn = count(), [0]
        monkeypatch.setattr(plane.services.turns, "clock", lambda: next(seconds))
        written: list[int] = []
        markers = plane.services.transactions().markers
        write = markers.write

        def count_marker(partition: Any, marker: Any) -> Any:
            written.append(turn[0])
            return write(partition, marker)

        def count_turns() -> None:
            turn[0] += 1
            plane.loop.call_soon(count_turns)

        def end_all() -> None:
            for name in names:
                plane.services.transactions().ask(EndTransaction(name, *given[name], True, 0))

        monkeypatch.setattr(markers, "write", count_marker)
        plane.loop.call_soon(count_turns)
        plane.run(end_all)
        wait_for(plane, lambda: markers.count_waiting() == 0)
        assert len(set(written)) == len(written) == len(names) * len(parts)


@pytest.mark.case("TX-M03")
def test_a_state_topic_that_takes_nothing_changes_nothing(plane: TransactionPlane) -> None:
    given = plane.start()
    topic = plane.cluster.catalogue.by_name[TRANSACTION_TOPIC]
    plane.run(lambda: plane.cluster.catalogue.configure(topic, {"max.message.bytes": 10}))
    assert plane.init("q")[0] == CODE.UNKNOWN_SERVER_ERROR
    assert plane.add(given, T0) == [CODE.UNKNOWN_SERVER_ERROR]
    assert plane.send(given) == [CODE.UNKNOWN_SERVER_ERROR]
    assert plane.describe().transaction_state == "Empty"
    plane.run(lambda: plane.cluster.catalogue.configure(topic, {}))
    assert plane.send(given) == [0]
    assert plane.end(given)[0] == 0


@pytest.mark.case("TX-N01", "TX-N02", "TX-N03", "TX-N16")
def test_a_coordinator_that_moves_knows_what_it_knew(plane: TransactionPlane) -> None:
    given = plane.start()
    plane.send(given)
    plane.commit_offset(given)
    plane.move()
    assert plane.describe().transaction_state == "Ongoing"
    assert plane.send(given, T1) == [0]
    assert plane.end(given) == (0, given[0], 1)
    plane.move()
    wait_for(plane, lambda: plane.describe().transaction_state == "CompleteCommit")
    assert plane.end(given) == (0, given[0], 1)
    assert plane.committed() == 7
    assert plane.init(given=(given[0], 1)) == (0, given[0], 2)
    plane.move()
    assert plane.init(given=(given[0], 1)) == (0, given[0], 2)


def test_a_commit_of_offsets_whose_transaction_ends_meanwhile_is_refused() -> None:
    """Adding the partition waits for the log; what ends the transaction then must not leave offsets behind."""
    with transaction_plane(partita_transaction_version=0) as plane:
        given = plane.start()
        ask = plane.services.transactions().ask

        def ended_meanwhile(request: Any, node_id: int | None = None) -> Any:
            outcome = ask(request, node_id)
            if not isinstance(request, AddPartitions):
                return outcome
            added: asyncio.Future[Any] = plane.loop.create_future()
            plane.loop.call_soon(added.set_result, outcome)
            plane.loop.call_soon(ask, EndTransaction("p", *given, True))
            return added

        plane.services.transactions().ask = ended_meanwhile  # type: ignore[method-assign]  # the seam of the question
        assert plane.commit_offset(given) == CODE.CONCURRENT_TRANSACTIONS
        wait_for(plane, lambda: plane.describe().transaction_state == "CompleteCommit")
        assert plane.commit_offset(given) == CODE.CONCURRENT_TRANSACTIONS
        assert plane.committed(stable=True) == -1
