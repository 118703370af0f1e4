"""The coordinator of transactions, case by case."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from partita.expressions import InvalidExpression
from partita.protocol.error_codes import ErrorCode
from partita.transactions.contract import Filters, InitProducer
from partita.transactions.describe import pattern_of
from partita.transactions.log_records import read_record, record_of
from partita.transactions.model import State
from partita.transactions.notes import TransactionEnded
from partita.transactions.tables import END_V1, END_V2
from support.clock import ManualClock
from support.transactions.world import T0, T1, U0, World

CODE = ErrorCode
NONE, FENCED, MAPPING = CODE.NONE, CODE.PRODUCER_FENCED, CODE.INVALID_PRODUCER_ID_MAPPING
INVALID, WAIT, ABORTABLE = CODE.INVALID_TXN_STATE, CODE.CONCURRENT_TRANSACTIONS, CODE.TRANSACTION_ABORTABLE


def refused(code: ErrorCode) -> tuple[ErrorCode, int, int]:
    return (code, -1, -1)


def pid(world: World, name: str = "p") -> int:
    return world.known(name).producer_id


@pytest.mark.case("TX-B03", "TX-B04", "TX-B05")
@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (InitProducer("", 1), CODE.INVALID_REQUEST),
        (InitProducer("p", 0, 5, -1), CODE.INVALID_REQUEST),
        (InitProducer("", 0, -1, 5), CODE.INVALID_REQUEST),
        (InitProducer("p", 0), CODE.INVALID_TRANSACTION_TIMEOUT),
        (InitProducer("p", -1), CODE.INVALID_TRANSACTION_TIMEOUT),
        (InitProducer("p", 60_001), CODE.INVALID_TRANSACTION_TIMEOUT),
        (InitProducer("p", 2**31 - 1), CODE.INVALID_TRANSACTION_TIMEOUT),
        (InitProducer("p", 60_000), NONE),
    ],
)
def test_a_wrong_request_for_a_producer_id_is_refused(request_: InitProducer, code: ErrorCode) -> None:
    outcome = World(max_timeout_ms=60_000).ask(request_)
    assert outcome is not None
    assert outcome.code is code
    assert (outcome.producer_id >= 0) is (code is NONE)


@pytest.mark.case("TX-B06", "TX-B07", "TX-B08")
def test_every_fresh_process_gets_the_next_epoch_of_the_same_producer_id() -> None:
    world = World()
    first = world.init()
    assert first == (NONE, 4000, 0)
    assert world.init(timeout_ms=7000) == (NONE, 4000, 1)
    assert world.known().timeout_ms == 7000
    assert world.logged() == [("Empty", 0), ("Empty", 1)]
    stored = read_record(world.log[0])
    assert stored is not None
    assert stored.transaction is not None
    assert (stored.transaction.previous_producer_id, stored.transaction.start_ms) == (4000, -1)


@pytest.mark.case("TX-B09")
def test_an_unknown_id_with_an_old_epoch_gets_a_new_producer_id() -> None:
    assert World().init(given=(77, 12)) == (NONE, 4000, 0)


@pytest.mark.case("TX-C01", "TX-C02", "TX-C03", "TX-C04", "TX-C05")
def test_a_recovering_producer_gets_the_next_epoch_and_the_same_when_it_repeats_itself() -> None:
    """KIP-360."""
    world = World()
    world.init()
    assert world.init(given=(4000, 0)) == (NONE, 4000, 1)
    assert world.init(given=(4000, 0)) == (NONE, 4000, 1)
    assert world.logged() == [("Empty", 0), ("Empty", 1), ("Empty", 1)]
    for wrong in ((4000, 2), (4000, 32767), (4001, 1), (4001, 0)):
        assert world.init(given=wrong) == refused(FENCED)
    assert world.init() == (NONE, 4000, 2)
    assert world.init(given=(4000, 1)) == refused(FENCED)


@pytest.mark.case("TX-N03")
def test_the_repetition_is_recognised_after_a_failover_too() -> None:
    """KAFKA-20357."""
    world = World()
    world.init()
    assert world.init(given=(4000, 0)) == (NONE, 4000, 1)
    world.reload()
    assert world.init(given=(4000, 0)) == (NONE, 4000, 1)


@pytest.mark.case("TX-C06", "TX-C07")
def test_a_fresh_process_fences_an_open_transaction() -> None:
    world = World()
    world.init()
    world.add((4000, 0), T0)
    assert world.init() == refused(WAIT)
    assert world.logged()[-2:] == [("PrepareAbort", 1), ("CompleteAbort", 1)]
    assert world.markers == [(4000, 1, T0, False)]
    assert world.add((4000, 0), T0) is FENCED
    assert world.end((4000, 0)) is FENCED
    assert world.end((4000, 0), version=2) == refused(INVALID)
    assert world.init() == (NONE, 4000, 2)
    assert world.end((4000, 0), committed=False, version=2) == refused(FENCED)
    assert world.init(given=(4000, 0)) == refused(FENCED)
    assert [note.by for note in world.notes if hasattr(note, "by")] == ["successor"]


@pytest.mark.case("TX-C08", "TX-C09")
@pytest.mark.parametrize(("level", "answer"), [(2, (NONE, 4000, 1)), (0, refused(FENCED))])
def test_a_producer_that_fences_itself_is_a_repetition_under_version_2_alone(level: int, answer: object) -> None:
    world = World(level=level)
    world.init()
    world.add((4000, 0), T0)
    assert world.init(given=(4000, 0)) == refused(WAIT)
    assert world.init(given=(4000, 0)) == answer


@pytest.mark.case("TX-C10")
def test_a_fence_whose_record_is_refused_raises_the_epoch_once() -> None:
    """KAFKA-9666."""
    world = World(level=0)
    world.init()
    world.add((4000, 0), T0)
    world.refuses = CODE.COORDINATOR_NOT_AVAILABLE
    for _ in range(3):
        assert world.init() == refused(CODE.COORDINATOR_NOT_AVAILABLE)
    world.refuses = None
    assert world.end((4000, 0)) is FENCED
    assert world.init() == refused(WAIT)
    assert world.logged()[-1] == ("CompleteAbort", 1)
    assert world.init() == (NONE, 4000, 2)


@pytest.mark.case("TX-C11")
def test_of_two_processes_at_once_one_waits() -> None:
    world = World()
    world.holds_appends = True
    assert world.init() is None
    first = world.last_token
    assert world.init() == refused(WAIT)
    world.append()
    assert world.answers[first][:3] == (NONE, 4000, 0)


@pytest.mark.case("TX-D01", "TX-D02", "TX-D03", "TX-M01")
def test_partitions_are_added_once() -> None:
    world = World()
    world.init()
    start = world.clock.advance(5).wall_ms
    assert world.add((4000, 0), T0, T1) is NONE
    assert world.add((4000, 0), T1) is NONE
    assert len(world.log) == 2
    world.clock.advance(5)
    assert world.add((4000, 0), T1, U0) is NONE
    assert (world.known().state, world.known().start_ms, world.known().client_version) == (State.ONGOING, start, 0)
    assert world.known().partitions == {T0, T1, U0}


@pytest.mark.case("TX-D04", "TX-D05", "TX-D06", "TX-D10", "TX-E03")
def test_only_the_present_producer_adds_and_asks() -> None:
    """KAFKA-9600: a higher epoch is as wrong as a lower one."""
    world = World()
    world.init()
    world.init()
    for name, given, code in (
        ("q", (4000, 1), MAPPING),
        ("p", (4001, 1), MAPPING),
        ("p", (4000, 0), FENCED),
        ("p", (4000, 2), FENCED),
        ("", (4000, 1), CODE.INVALID_REQUEST),
    ):
        assert world.add(given, T0, name=name) is code
        assert world.verify(given, T0, name=name) is code
        assert world.end(given, name=name) is code
    assert len(world.log) == 2


@pytest.mark.case("TX-D09", "TX-D14")
def test_a_question_names_what_is_missing_and_ignores_moves_under_way() -> None:
    """KAFKA-14904."""
    world = World()
    world.init()
    assert world.verify((4000, 0), T0) == {T0: ABORTABLE}
    world.add((4000, 0), T0)
    assert world.verify((4000, 0), T0, T1) == {T1: ABORTABLE}
    world.holds_appends = True
    assert world.add((4000, 0), T1) is None
    assert world.verify((4000, 0), T0, T1) == {T1: ABORTABLE}
    assert world.add((4000, 0), U0) is WAIT
    assert len(world.log) == 2
    world.append()
    assert world.verify((4000, 0), T0, T1) == {}


@pytest.mark.case("TX-D11", "TX-D12")
def test_the_version_of_an_add_is_remembered_and_nothing_can_be_added() -> None:
    world = World()
    world.init()
    assert world.add((4000, 0), version=2) is NONE
    assert (world.known().state, world.known().client_version) == (State.ONGOING, 2)
    assert world.end((4000, 0)) is NONE
    assert world.logged()[-1] == ("CompleteCommit", 0)


def test_a_transaction_has_a_largest_number_of_partitions() -> None:
    world = World(partitions_max=2)
    world.init()
    assert world.add((4000, 0), T0, T1) is NONE
    assert world.add((4000, 0), T0, T1) is NONE
    assert world.add((4000, 0), U0) is ABORTABLE


@pytest.mark.case("TX-F01", "TX-F02", "TX-F03", "TX-F04", "TX-F05", "TX-F06")
@pytest.mark.parametrize("committed", [True, False])
def test_version_1_ends_keep_the_epoch(committed: bool) -> None:
    world = World()
    world.init()
    outcome = "Commit" if committed else "Abort"
    assert world.end((4000, 0), committed) is INVALID
    for _ in range(2):
        world.add((4000, 0), T0, T1)
        assert world.end((4000, 1), committed) is FENCED
        assert world.known().state is State.ONGOING
        assert world.end((4000, 0), committed) is NONE
        assert world.logged()[-2:] == [(f"Prepare{outcome}", 0), (f"Complete{outcome}", 0)]
        assert world.markers[-2:] == [(4000, 0, T0, committed), (4000, 0, T1, committed)]
        written = len(world.log)
        assert world.end((4000, 0), committed) is NONE
        assert world.end((4000, 0), not committed) is INVALID
        assert len(world.log) == written


@pytest.mark.case("TX-G01", "TX-G02", "TX-G04", "TX-G05", "TX-G06", "TX-G07")
@pytest.mark.parametrize("committed", [True, False])
def test_version_2_ends_raise_the_epoch_and_are_repeated_by_the_epoch_before(committed: bool) -> None:
    world = World()
    world.init()
    for epoch in range(3):
        world.add((4000, epoch), T0, version=2)
        assert world.end((4000, epoch), committed, 2) == (NONE, 4000, epoch + 1)
        assert world.markers[-1] == (4000, epoch + 1, T0, committed)
    written = len(world.log)
    assert world.end((4000, 2), committed, 2) == (NONE, 4000, 3)
    assert world.end((4000, 2), not committed, 2) == refused(INVALID)
    assert world.end((4000, 3), True, 2) == refused(INVALID)
    for wrong in (1, 4, 5):
        assert world.end((4000, wrong), committed, 2) == refused(FENCED)
    assert world.end((4001, 3), committed, 2) == refused(MAPPING)
    assert len(world.log) == written
    assert world.end((4000, 3), False, 2) == (NONE, 4000, 4)


@pytest.mark.case("TX-G03")
def test_version_2_aborts_what_was_never_begun() -> None:
    """KAFKA-18401."""
    world = World()
    world.init()
    world.init()
    assert world.end((4000, 0), True, 2) == refused(FENCED)
    assert world.end((4000, 0), False, 2) == refused(FENCED)
    assert world.end((4000, 1), True, 2) == refused(INVALID)
    now = world.clock.advance(7).wall_ms
    assert world.end((4000, 1), False, 2) == (NONE, 4000, 2)
    assert world.logged()[-2:] == [("PrepareAbort", 2), ("CompleteAbort", 2)]
    assert world.known().start_ms == now
    assert world.markers == []


@pytest.mark.case("TX-G08", "TX-G09")
def test_the_end_decides_the_version_of_the_transaction() -> None:
    world = World()
    world.init()
    world.add((4000, 0), T0)
    assert world.end((4000, 0), True, 2) == (NONE, 4000, 1)
    assert world.known().client_version == 2
    world.add((4000, 1), T0, version=2)
    assert world.end((4000, 1)) is NONE
    assert (world.known().client_version, world.known().epoch) == (0, 1)


@pytest.mark.case("TX-G10", "TX-N17")
def test_while_markers_are_written_everybody_waits() -> None:
    world = World()
    world.init()
    world.holds_markers = True
    world.add((4000, 0), T0, T1, version=2)
    assert world.end((4000, 0), True, 2) == (NONE, 4000, 1)
    assert world.end((4000, 0), True, 2) == refused(WAIT)
    assert world.end((9, 9), True, 2) == refused(WAIT)
    assert world.add((9, 9), T0) is WAIT
    assert world.verify((4000, 1), T0) is WAIT
    assert world.init() == refused(WAIT)
    world.write_markers([T0])
    world.write_markers([T0])
    assert world.coordinator.describe("p").partitions == (T1,)
    assert world.logged()[-1] == ("PrepareCommit", 1)
    world.write_markers()
    assert world.logged()[-1] == ("CompleteCommit", 1)
    assert world.end((4000, 0), True, 2) == (NONE, 4000, 1)
    world.add((4000, 1), T0, version=2)
    decided = world.known()
    world.take(world.coordinator.markers_done(decided, [T0], world.clock.now()))
    assert world.known() is decided


@pytest.mark.case("TX-G02", "TX-C05")
@pytest.mark.parametrize("committed", [True, False])
def test_a_fenced_producer_of_version_2_is_not_told_the_epoch_of_a_successor_of_version_1(committed: bool) -> None:
    """Found by the simulator: its end looks like a repetition, since the successor's own end raises no epoch."""
    world = World()
    world.init()
    assert world.init() == (NONE, 4000, 1)
    world.add((4000, 1), T0)
    assert world.end((4000, 1), committed) == NONE
    assert world.end((4000, 0), committed, 2) == refused(ErrorCode.PRODUCER_FENCED)
    world.reload()
    assert world.end((4000, 0), committed, 2) == refused(ErrorCode.PRODUCER_FENCED)


@pytest.mark.case("TX-N08", "TX-N09", "TX-N10", "TX-B02")
def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    """KAFKA-18660: also when the answer was lost."""
    world = World()
    world.init()
    jump_to(world, 32766)
    world.add((4000, 32766), T0, version=2)
    assert world.end((4000, 32766), True, 2) == (NONE, 4001, 0)
    assert world.logged()[-2:] == [("PrepareCommit", 32767), ("CompleteCommit", 0)]
    assert world.markers[-1] == (4000, 32767, T0, True)
    assert world.end((4000, 32766), True, 2) == (NONE, 4001, 0)
    assert world.end((4000, 32765), True, 2) == refused(MAPPING)
    jump_to(world, 32766)
    assert world.init() == (NONE, 4002, 0)


def jump_to(world: World, epoch: int) -> None:
    world.coordinator.entries["p"].transaction = replace(world.known(), epoch=epoch)


def test_a_fence_at_the_last_epoch_rotates() -> None:
    """KAFKA-19367, KAFKA-20090."""
    for level in (2, 0):
        world = World(level=level)
        world.init()
        jump_to(world, 32766)
        world.add((4000, 32766), T0)
        assert world.init() == refused(WAIT)
        assert world.markers == [(4000, 32767, T0, False)]
        code, producer_id, epoch = world.init()
        assert (code, producer_id > 4000, epoch < 2) == (NONE, True, True)


@pytest.mark.case("TX-K01", "TX-K02", "TX-K03")
def test_an_open_transaction_is_aborted_when_its_time_is_over() -> None:
    """KAFKA-6119: the epoch is raised, so the slow producer writes into no later one."""
    world = World(timeout_check_interval_ms=10)
    world.init(timeout_ms=1000)
    world.advance(800)
    world.add((4000, 0), T0, version=2)
    world.advance(600)
    world.add((4000, 0), T1, version=2)
    world.advance(400)
    assert world.known().state is State.ONGOING
    world.advance(10)
    assert world.logged()[-2:] == [("PrepareAbort", 1), ("CompleteAbort", 1)]
    assert world.add((4000, 0), T0) is FENCED
    assert world.end((4000, 0)) is FENCED
    assert world.end((4000, 0), True, 2) == refused(INVALID)
    assert world.end((4000, 0), False, 2) == (NONE, 4000, 1)
    world.advance(100_000)
    assert len(world.log) == 5
    assert [note.by for note in world.notes if hasattr(note, "by")] == ["timeout"]


@pytest.mark.case("TX-K08")
def test_a_timeout_leaves_an_end_under_way_alone() -> None:
    world = World(timeout_check_interval_ms=10)
    world.init(timeout_ms=1000)
    world.add((4000, 0), T0)
    world.holds_appends = True
    assert world.end((4000, 0)) is None
    world.advance(5000)
    world.append()
    assert world.logged()[-2:] == [("PrepareCommit", 0), ("CompleteCommit", 0)]


@pytest.mark.case("TX-N14")
def test_the_timeout_counts_from_the_start_also_after_a_load() -> None:
    world = World(timeout_check_interval_ms=10)
    world.init(timeout_ms=1000)
    world.add((4000, 0), T0)
    world.advance(900)
    world.reload()
    world.advance(110)
    assert world.logged()[-1] == ("CompleteAbort", 1)


def test_wide_transactions_that_time_out_together_are_aborted_a_few_at_a_time() -> None:
    """Twenty of them held the loop for 181 ms (decision 0276); a step has about 500 partitions at most."""
    world = World(timeout_check_interval_ms=10)
    for number in range(20):
        name = f"p{number}"
        _, producer_id, epoch = world.init(name, timeout_ms=1000)
        world.add((producer_id, epoch), *(("t", index) for index in range(300)), name=name)
    world.clock.advance(2000)
    step = world.coordinator.on_deadline(world.clock.now())
    assert len(step.writes) == 2
    assert world.coordinator.next_deadline_ms() == world.clock.now().mono_ms, "the others follow at once"
    world.take(step)
    world.advance(0)
    assert sum(isinstance(note, TransactionEnded) for note in world.notes) == 20
    due = world.coordinator.next_deadline_ms()
    assert due is not None
    assert due > world.clock.now().mono_ms


def test_what_was_open_when_a_copy_was_made_is_aborted_by_who_loads_it() -> None:
    """Its producer is fenced; what begins later in the copy is left alone by later loads."""
    world = World()
    world.init()
    world.add((4000, 0), T0)
    copied_ms = world.clock.now().wall_ms
    world.advance(1)
    world.reload(restored_ms=copied_ms)
    assert world.logged()[-1] == ("CompleteAbort", 1)
    world.init()
    world.add((4000, 2), T0)
    world.reload(restored_ms=copied_ms)
    assert world.logged()[-1] == ("Ongoing", 2)


def loaded_with_many(**fields: int) -> World:
    """A coordinator that has just loaded 20 wide transactions: decided, or with `restored_ms` open and copied."""
    world = World()
    for number in range(20):
        world.init(f"p{number}")
        world.add((4000 + number, 0), *((f"t{number}", index) for index in range(100)), name=f"p{number}")
    if not fields:
        world.holds_markers = True
        for number in range(20):
            world.end((4000 + number, 0), name=f"p{number}")
    world.holds_appends = world.holds_markers = True
    world.reload(**fields)
    return world


def test_what_a_load_has_found_is_done_in_steps() -> None:
    """All decided transactions went on in the one step of the load, whatever they held."""
    world = loaded_with_many()
    started = [len(world.orders)]
    assert world.coordinator.next_deadline_ms() == 0
    while world.coordinator.next_deadline_ms() == 0:
        world.take(world.coordinator.on_deadline(world.clock.now()))
        started.append(len(world.orders))
    assert started == [5, 10, 15, 20]
    world.holds_appends = world.holds_markers = False
    world.write_markers()
    assert {world.known(f"p{number}").state for number in range(20)} == {State.COMPLETE_COMMIT}


def test_what_was_copied_is_aborted_in_steps() -> None:
    world = loaded_with_many(restored_ms=2**60)
    assert len(world.waiting) == 5
    world.holds_appends = world.holds_markers = False
    world.advance(0)
    assert {world.known(f"p{number}").state for number in range(20)} == {State.COMPLETE_ABORT}
    assert [world.markers.count((4000, 1, ("t0", index), False)) for index in range(100)] == [1] * 100


def test_an_id_that_is_asked_about_before_its_turn_goes_first() -> None:
    """The producer of a copied transaction cannot commit what the copy may hold by half."""
    world = loaded_with_many(restored_ms=2**60)
    assert world.end((4019, 0), name="p19") is CODE.CONCURRENT_TRANSACTIONS
    assert [write.move.transactional_id for write in world.waiting][-1] == "p19"
    world.holds_appends = world.holds_markers = False
    world.advance(0)
    assert world.end((4019, 0), name="p19") is FENCED
    assert world.known("p19").state is State.COMPLETE_ABORT


def test_a_wall_clock_that_goes_back_stops_nothing() -> None:
    """KAFKA-8803."""
    world = World()
    world.init()
    world.add((4000, 0), T0)
    mono_ms, wall_ms = world.clock.now()
    world.clock = ManualClock(mono_ms, wall_ms - 3_600_000)
    assert world.end((4000, 0)) is NONE
    assert world.init() == (NONE, 4000, 1)


@pytest.mark.case("TX-K04", "TX-K05", "TX-K06")
def test_idle_ids_are_forgotten_and_open_ones_are_not() -> None:
    world = World(id_expiration_ms=1000, expiration_check_interval_ms=10)
    world.init("idle")
    world.init("open")
    world.add((4001, 0), T0, name="open")
    world.advance(1010)
    assert list(world.coordinator.entries) == ["open"]
    assert world.logged("idle")[-1] == ("-", -1)
    assert world.coordinator.describe("idle").code is CODE.TRANSACTIONAL_ID_NOT_FOUND
    assert world.add((4000, 0), T0, name="idle", version=2) is MAPPING
    assert world.init("idle", (4000, 0)) == (NONE, 4002, 0)


@pytest.mark.case("TX-K09")
def test_a_tombstone_that_is_refused_is_tried_again() -> None:
    world = World(id_expiration_ms=1000, expiration_check_interval_ms=10)
    world.init()
    world.refuses = CODE.COORDINATOR_NOT_AVAILABLE
    world.advance(1010)
    assert world.known().state is State.EMPTY
    world.refuses = None
    world.advance(10)
    assert world.coordinator.entries == {}


@pytest.mark.case("TX-K10", "TX-R07")
def test_many_ids_expire_a_few_at_a_time() -> None:
    """KAFKA-13099."""
    world = World(id_expiration_ms=1000, expiration_check_interval_ms=10)
    for i in range(1200):
        world.init(f"p{i}")
    world.clock.advance(1010)
    world.take(world.coordinator.on_deadline(world.clock.now()))
    assert len(world.coordinator.entries) == 700
    world.advance(0)
    assert world.coordinator.entries == {}


@pytest.mark.case("TX-M03")
def test_a_refused_record_changes_nothing() -> None:
    """KAFKA-14880: nor is anything left of an id that was never stored."""
    world = World()
    world.refuses = CODE.UNKNOWN_SERVER_ERROR
    assert world.init() == refused(CODE.UNKNOWN_SERVER_ERROR)
    assert world.coordinator.entries == {}
    world.refuses = None
    given = world.init()[1:]
    world.refuses = CODE.UNKNOWN_SERVER_ERROR
    assert world.add(given, T0) is CODE.UNKNOWN_SERVER_ERROR
    assert world.known().state is State.EMPTY
    world.refuses = None
    assert world.add(given, T0) is NONE
    assert world.end(given) is NONE


def test_a_completion_that_is_refused_is_tried_again() -> None:
    """KAFKA-5416: meanwhile the id stays pending."""
    world = World()
    world.init()
    world.add((4000, 0), T0)
    world.holds_markers = True
    world.end((4000, 0))
    world.refuses = CODE.COORDINATOR_NOT_AVAILABLE
    world.write_markers()
    assert world.init() == refused(WAIT)
    assert world.end((4000, 0)) is WAIT
    world.advance(500)
    world.refuses = None
    world.advance(500)
    assert world.logged()[-1] == ("CompleteCommit", 0)
    assert world.init() == (NONE, 4000, 1)


@pytest.mark.case("TX-N01", "TX-N02", "TX-N05", "TX-N06", "TX-C12", "TX-N13")
@pytest.mark.parametrize("committed", [True, False])
def test_a_load_sends_the_markers_of_what_is_decided_again(committed: bool) -> None:
    world = World()
    world.init()
    world.holds_markers = True
    world.add((4000, 0), T0, T1, version=2)
    world.reload()
    assert world.known().state is State.ONGOING
    assert world.orders == []
    world.end((4000, 0), committed, 2)
    world.write_markers([T0])
    world.reload()
    assert [order.partitions for order in world.orders] == [(T0, T1)]
    assert world.init() == refused(WAIT)
    world.write_markers()
    assert world.logged()[-1] == (f"Complete{'Commit' if committed else 'Abort'}", 1)
    world.reload()
    assert world.orders == []
    assert world.end((4000, 0), committed, 2) == (NONE, 4000, 1)


@pytest.mark.case("TX-N11", "TX-T01", "TX-T02", "TX-T03", "TX-T04")
def test_at_level_0_records_are_version_0_and_ends_keep_the_epoch() -> None:
    world = World(level=0, timeout_check_interval_ms=10)
    world.init(timeout_ms=1000)
    assert world.add((4000, 0), T0) is NONE
    assert world.end((4000, 0)) is NONE
    assert {record.value[:2] for record in world.log if record.value} == {b"\0\0"}
    world.add((4000, 0), T0)
    world.advance(1100)
    assert world.end((4000, 0)) is FENCED
    assert world.init(given=(4000, 0)) == refused(FENCED)
    assert world.init() == (NONE, 4000, 2)
    world.config = World().config
    world.reload()
    assert world.init() == (NONE, 4000, 3)


@pytest.mark.case("TX-T05")
@pytest.mark.parametrize("level", [0, 1])
def test_an_end_of_version_2_raises_the_epoch_at_every_level(level: int) -> None:
    """A client that has not heard of a lower level adds no partitions: only the epoch keeps its transactions apart."""
    world = World(level=level)
    world.init()
    assert world.add((4000, 0), T0, version=2) is NONE
    world.holds_markers = True
    assert world.end((4000, 0), True, 2) == (NONE, 4000, 1)
    world.reload()
    world.holds_markers = False
    world.write_markers()
    assert world.markers == [(4000, 1, T0, True)]
    assert world.end((4000, 0), True, 2) == (NONE, 4000, 1)
    assert world.add((4000, 1), T0) is NONE
    assert world.end((4000, 1)) is NONE
    assert (world.known().client_version, world.logged()[-1]) == (0, ("CompleteCommit", 1))


@pytest.mark.case("TX-L01", "TX-L02", "TX-L03", "TX-L04", "TX-L05", "TX-L06", "TX-L07", "TX-L08")
def test_describe_and_list_tell_what_is_stored() -> None:
    world = World()
    world.init("a1")
    world.init("b1")
    world.add((4001, 0), T1, T0, name="b1")
    world.clock.advance(100)
    described = world.coordinator.describe("b1")
    assert (described.code, described.partitions) == (NONE, (T0, T1))
    assert world.coordinator.describe("").code is CODE.INVALID_REQUEST
    for filters, names in (
        (Filters(), ["a1", "b1"]),
        (Filters(states=frozenset({"Ongoing"})), ["b1"]),
        (Filters(states=frozenset({"ongoing"})), []),
        (Filters(producer_ids=frozenset({4000})), ["a1"]),
        (Filters(states=frozenset({"Ongoing"}), producer_ids=frozenset({4000})), []),
        (Filters(open_longer_than_ms=99), ["a1", "b1"]),
        (Filters(open_longer_than_ms=100), ["a1"]),
        (Filters(matches=pattern_of("b.")), ["b1"]),
        (Filters(matches=pattern_of("b")), []),
        (Filters(matches=pattern_of("")), ["a1", "b1"]),
    ):
        found = world.coordinator.list(filters, world.clock.now())
        assert [one.transactional_id for one in found if one is not None] == names
    for bad in ("(", r"(a)\1", "x" * 1001):
        with pytest.raises(InvalidExpression):
            pattern_of(bad)
    world.end((4001, 0), name="b1")
    described = world.coordinator.describe("b1")
    assert described.partitions == ()
    assert described.transaction is not None
    assert described.transaction.start_ms > 0
    world.init("b1")
    assert world.known("b1").start_ms == -1


@pytest.mark.parametrize("pattern", ["(a|a)*b", ".*.*.*.*.*.*b"])
def test_a_pattern_costs_linear_time(pattern: str) -> None:
    """Whoever matches by trying one way after the other is not finished with these within an hour."""
    matches = pattern_of(pattern)
    assert matches is not None
    assert not matches("a" * 2000)


def test_without_the_package_every_pattern_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InvalidExpression, match="regex"):
        pattern_of("a")


def test_a_new_id_beyond_the_limit_is_refused_and_said_so_once_a_second() -> None:
    world = World(ids_max=1)
    world.init("a")
    for _ in range(3):
        assert world.init("b") == refused(CODE.COORDINATOR_NOT_AVAILABLE)
    assert world.init("a") == (NONE, 4000, 1)
    assert [type(note).__name__ for note in world.notes] == ["TransactionRefused"]


def test_the_tables_are_full() -> None:
    assert END_V1.keys() == END_V2.keys() == set(State)
    assert {len(row) for row in END_V1.values()} == {2}
    assert {len(row) for row in END_V2.values()} == {4}


def test_unloading_answers_whoever_waits() -> None:
    world = World()
    world.holds_appends = True
    assert world.init() is None
    token = world.last_token
    world.reload()
    assert world.answers[token].code is CODE.NOT_COORDINATOR


@pytest.mark.case("TX-N07", "TX-N05")
def test_a_decision_of_a_version_0_record_is_carried_out_at_the_records_epoch() -> None:
    world = World(level=0)
    given = world.init()[1:]
    assert world.add(given, T0) == 0
    world.holds_markers = True
    assert world.end(given) == 0
    assert all(record.value is not None and record.value[:2] == bytes(2) for record in world.log)
    world.reload()
    world.holds_markers = False
    world.write_markers()
    assert world.markers == [(*given, T0, True)]
    assert world.logged()[-1] == ("CompleteCommit", given[1])


@pytest.mark.case("TX-B11")
def test_a_transaction_without_timeout_is_never_timed_out() -> None:
    """What a two-phase commit stores (KIP-939), as a log of Kafka may hold it."""
    world = World()
    given = world.init()[1:]
    world.add(given, T0)
    opened = world.known()
    world.log.append(record_of(replace(opened, timeout_ms=2**31 - 1), 2))
    world.reload()
    world.advance(30 * 24 * 3_600_000)
    assert world.known().state is State.ONGOING
