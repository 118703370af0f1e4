"""A transactional producer's rules: what is asked in which order, and what each error does. (transactions.md 20)"""

from __future__ import annotations

import itertools

import pytest

from partita.errors import (
    AbortableTransactionError,
    AuthenticationError,
    FatalTransactionError,
    InvalidProducerEpochError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
)
from partita.net.errors import Disconnected
from partita.producer.errors import TransactionAbortedError, TransactionMisuseError
from partita.producer.transactions.calls import MOVES, Member, State
from partita.producer.transactions.reactions import OTHERWISE, TABLE, Reaction, reaction
from partita.protocol.error_codes import ErrorCode
from support.every_case import every_case
from support.producer.transactional import TransactionalWorld as World

VERSIONS = pytest.mark.parametrize("level", [0, 2])


# The order of requests


@pytest.mark.case("TX-P01")
def test_at_version_2_partitions_join_by_themselves_and_every_end_raises_the_epoch() -> None:
    world = World(2)
    world.done(world.transactions.init())
    for _ in range(2):
        world.transactions.begin()
        for partition in range(3):
            world.send(partition=partition)
        world.done(world.transactions.commit())
    first = [f"Produce t-{p} 7/0 seq 0" for p in range(3)]
    second = [f"Produce t-{p} 7/1 seq 0" for p in range(3)]
    assert world.sent == ["InitProducerId v5", *first, "EndTxn v5", *second, "EndTxn v5"]


@pytest.mark.case("TX-P02")
def test_at_version_1_partitions_are_added_first_and_sequences_go_on() -> None:
    world = World(0)
    world.done(world.transactions.init())
    for _ in range(2):
        world.transactions.begin()
        world.send(partition=0)
        world.send(partition=1)
        world.settle()
        world.send(partition=0)
        world.done(world.transactions.commit())
    assert world.sent == [
        "InitProducerId v5",
        "AddPartitionsToTxn v3",
        *("Produce v11 t-0 7/0 seq 0", "Produce v11 t-1 7/0 seq 0", "Produce v11 t-0 7/0 seq 1", "EndTxn v4"),
        "AddPartitionsToTxn v3",
        *("Produce v11 t-0 7/0 seq 2", "Produce v11 t-1 7/0 seq 1", "Produce v11 t-0 7/0 seq 3", "EndTxn v4"),
    ]


@pytest.mark.case("TX-P03")
@VERSIONS
def test_offsets_go_to_the_groups_coordinator_in_the_members_name(level: int) -> None:
    world = World(level).begun()
    call = world.send_offsets()
    asks = []
    while not call.is_done:
        asks.append(world.ask())
        world.answer(asks[-1])
    commit = asks[-1]
    assert (commit.key, commit.key_type, commit.version_min) == ("g", 0, 3)
    message = commit.message
    assert (message.generation_id_or_member_epoch, message.member_id, message.group_instance_id) == (4, "m-1", "i-1")  # type: ignore[attr-defined]  # the request of an Ask is typed by what all have in common
    again = world.send_offsets()
    world.done(again)
    assert world.sent == (
        ["TxnOffsetCommit v5"] * 2 if level else ["AddOffsetsToTxn v4", "TxnOffsetCommit v4", "TxnOffsetCommit v4"]
    )
    world.done(world.transactions.commit())
    assert world.sent[-1] == ("EndTxn v5" if level else "EndTxn v4")


@pytest.mark.case("TX-P04")
@VERSIONS
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_empty_transaction_sends_nothing(level: int, end: str) -> None:
    world = World(level).begun()
    world.done(getattr(world.transactions, end)())
    assert world.sent == []
    assert world.state is State.READY


@pytest.mark.case("TX-P01")
def test_a_commit_waits_for_every_batch_and_does_not_linger() -> None:
    world = World(2, linger_ms=1000).begun()
    world.send()
    assert world.poll().sendings == []
    call = world.transactions.commit()
    poll = world.poll()
    assert poll.ask is None
    assert len(poll.sendings) == 1
    world.delivered(poll.sendings)
    world.done(call)
    world.transactions.begin()
    world.send()
    assert world.poll().sendings == [], "the next transaction lingers again (KAFKA-12870)"


@pytest.mark.case("TX-P11")
@VERSIONS
def test_an_abort_drops_what_was_not_sent_and_waits_for_what_was(level: int) -> None:
    world = World(level, max_in_flight_requests_per_connection=1).begun()
    sent = world.send(b"sent")
    poll = world.poll()
    if poll.ask is not None:
        world.answer(poll.ask)
        poll = world.poll()
    unsent = world.send(b"unsent")
    call = world.transactions.abort()
    assert world.poll().ask is None, "a batch is under way"
    assert isinstance(unsent.failure(), TransactionAbortedError)
    world.delivered(poll.sendings)
    world.done(call)
    assert sent.failure() is None
    assert not any("unsent" in line for line in world.sent)


@pytest.mark.case("TX-P22")
def test_a_record_that_was_acknowledged_stays_so_when_the_transaction_is_aborted() -> None:
    world = World().begun()
    record = world.send()
    world.settle()
    world.done(world.transactions.abort())
    assert record.metadata().offset == 0


@pytest.mark.case("TX-P18")
def test_the_next_batch_carries_the_producer_id_that_the_end_gave() -> None:
    world = World().begun()
    world.send()
    call = world.transactions.commit()
    world.delivered(world.poll().sendings)
    ask = world.ask()
    answer = world._answer_to(ask, lambda _: 0, 0)
    answer.producer_id, answer.producer_epoch = 99, 0
    world.transactions.on_answer(ask, answer, world.now)
    assert call.is_done
    world.transactions.heard(call)
    world.transactions.begin()
    world.send()
    world.settle()
    assert world.sent[-1] == "Produce t-0 99/0 seq 0"


@pytest.mark.case("TX-P19")
def test_a_feature_raised_between_transactions_is_used_after_a_raise_of_the_epoch() -> None:
    world = World(0).begun()
    world.send()
    world.transactions.learn(1, 2)
    world.done(world.transactions.commit())
    assert world.sent[-2:] == ["EndTxn v4", "InitProducerId v5"]
    world.transactions.begin()
    world.send()
    world.done(world.transactions.commit())
    assert world.sent[-2:] == ["Produce t-0 7/1 seq 0", "EndTxn v5"]


def test_older_news_of_features_are_passed_over() -> None:
    world = World(2)
    world.transactions.learn(-1, 0)
    world.done(world.transactions.init())
    assert world.transactions.is_version_2


# Misuse


@pytest.mark.case("TX-P05")
def test_calls_out_of_turn_are_refused_and_change_nothing() -> None:
    world = World()
    transactions = world.transactions
    for call in (world.send, transactions.begin, transactions.commit, transactions.abort, world.send_offsets):
        with pytest.raises(TransactionMisuseError, match="init_transactions first"):
            call()
        assert world.state is State.UNINITIALIZED
    world.ready()
    for call in (world.send, transactions.commit, transactions.abort, world.send_offsets, transactions.init):
        with pytest.raises(TransactionMisuseError, match="no transaction is open"):
            call()
        assert world.state is State.READY
    transactions.begin()
    with pytest.raises(TransactionMisuseError, match="a transaction is open"):
        transactions.begin()
    assert world.state is State.IN_TRANSACTION


@pytest.mark.case("TX-P12", "TX-P13")
def test_after_a_call_that_timed_out_only_the_same_call_is_allowed() -> None:
    world = World()
    first = world.transactions.init()
    with pytest.raises(TransactionMisuseError, match="outcome of init_transactions is not known"):
        world.transactions.begin()
    assert world.transactions.init() is first
    world.done(first)
    world.transactions.begin()
    world.send()
    commit = world.transactions.commit()
    world.settle()
    for call in (world.transactions.abort, world.transactions.begin, world.send):
        with pytest.raises(TransactionMisuseError, match="call commit_transaction again"):
            call()
    assert world.transactions.commit() is commit
    assert commit.is_done
    world.transactions.heard(commit)
    world.transactions.begin()


# Errors

CASES = {  # api: codes of TX-P08 and what they do
    "InitProducerId": {42: "fatal", 47: "fenced", 49: "fatal", 50: "fatal", 51: "again", 53: "init", 90: "fenced",
                       120: "init", 31: "init", 14: "again", 16: "again", 15: "again"},
    "AddPartitionsToTxn": {3: "again", 16: "again", 29: "abort", 48: "fatal", 49: "fatal", 51: "again", 53: "fatal",
                           47: "fenced", 90: "fenced", 120: "abort", 59: "abort", -1: "abort", 31: "fatal"},
    "AddOffsetsToTxn": {30: "abort", 51: "again", 90: "fenced", 120: "abort", 48: "fatal", 49: "fatal", 59: "abort",
                        53: "fatal", -1: "fatal"},
    "TxnOffsetCommit": {14: "again", 16: "again", 7: "again", 3: "again", 22: "abort", 25: "abort", 29: "fatal",
                        30: "abort", 47: "fenced", 48: "fatal", 49: "fatal", 53: "fatal", 82: "abort", 90: "fenced",
                        120: "abort", -1: "fatal"},
    "EndTxn": {16: "again", 47: "fenced", 48: "fatal", 49: "fatal", 51: "again", 53: "fatal", 59: "abort",
               90: "fenced", 120: "abort", -1: "fatal"},
}  # fmt: skip


@pytest.mark.case("TX-P06", "TX-P07", "TX-P08", "TX-P10", "TX-P24")
@every_case("api, code", [(api, code) for api, codes in CASES.items() for code in codes])
def test_what_an_error_of_a_coordinator_does(api: str, code: int) -> None:
    world = World(0)
    call = start(world, api)
    ask = world.ask()
    while ask.api != api:
        world.answer(ask)
        poll = world.poll()
        world.delivered(poll.sendings)
        ask = poll.ask or world.ask()
    world.answer(ask, code)
    outcome = CASES[api][code]
    if outcome == "again":
        assert world.ask(later=200).api == api
        if code in (15, 16) or (api, code) == ("TxnOffsetCommit", 7):
            assert world.transactions.take_lost() == [(ask.key, ask.key_type)]
        return
    if outcome == "init":
        assert world.state is State.UNINITIALIZED
        assert world.failed(call).code == ErrorCode(code)  # type: ignore[attr-defined]  # every failure here is a KafkaError
        world.done(world.transactions.init())
        return
    if outcome == "abort":
        check_abortable(world, api, code)
        return
    assert world.state is State.FATAL_ERROR
    kind = ProducerFencedError if outcome == "fenced" else FatalTransactionError
    if api in ("InitProducerId", "EndTxn"):
        world.transactions.heard(call)
    for again in (world.send, world.transactions.begin, world.transactions.commit, world.transactions.abort):
        with pytest.raises(kind):
            again()


def start(world: World, api: str):  # type: ignore[no-untyped-def]  # a Call, or a Delivery where a record starts it
    if api == "InitProducerId":
        return world.transactions.init()
    world.begun()
    if api == "AddPartitionsToTxn":
        return world.send()
    if api == "EndTxn":
        world.send()
        return world.transactions.commit()
    return world.send_offsets()


def check_abortable(world: World, api: str, code: int) -> None:
    """Every call but abort raises; abort works; the next transaction works. (TX-P10)"""
    assert world.state is State.ABORTABLE_ERROR
    transactions = world.transactions
    if api == "EndTxn":
        call = transactions.commit()
        assert isinstance(world.failed(call), AbortableTransactionError)
    for again in (transactions.commit, world.send, world.send_offsets):
        with pytest.raises(AbortableTransactionError) as caught:
            again()
    assert caught.value.txn_requires_abort
    assert ErrorCode(code) in (caught.value.code, getattr(caught.value.__cause__, "code", None))
    with pytest.raises(TransactionMisuseError, match="call abort_transaction"):
        transactions.begin()
    world.done(transactions.abort())
    assert (world.sent[-1] == "InitProducerId v5") == (code == 59)
    transactions.begin()
    world.send()
    world.done(transactions.commit())


@pytest.mark.case("TX-P20", "TX-P23")
@pytest.mark.parametrize(("level", "code"), [(0, 120), (0, 48), (2, 120), (2, 48)])
def test_an_abort_that_is_refused_is_fatal(level: int, code: int) -> None:
    world = World(level).begun()
    world.send()
    world.settle()
    call = world.transactions.abort()
    world.answer(world.ask(), code)
    assert isinstance(world.failed(call), FatalTransactionError)


@pytest.mark.case("TX-P25")
def test_at_version_1_nothing_is_ended_that_was_never_added() -> None:
    world = World(0).begun()
    world.send()
    world.answer(world.ask(), 29)
    world.done(world.transactions.abort())
    assert world.sent == ["AddPartitionsToTxn v3"]


@pytest.mark.case("TX-P25")
@pytest.mark.parametrize("code", [0, 48])
def test_an_add_whose_answer_was_lost_is_ended_whether_it_arrived_or_not(code: int) -> None:
    """Ours: Kafka's producer leaves such a transaction to its timeout."""
    world = World(0).begun()
    world.send()
    world.transactions.on_trouble(world.ask(), Disconnected("gone"), world.now)
    call = world.transactions.abort()
    world.answer(world.ask(), code)
    assert call.is_done
    assert call.error is None
    assert world.sent[-1] == "EndTxn v4"


@pytest.mark.case("TX-P17")
@pytest.mark.parametrize("level", [0, 2])
def test_a_lost_coordinator_is_looked_up_and_asked_again_with_growing_pauses(level: int) -> None:
    world = World(level).begun()
    world.send()
    world.settle()
    call = world.transactions.commit()
    for pause in (100, 200, 400, 800, 1000, 1000):
        world.transactions.on_trouble(world.ask(), Disconnected("gone"), world.now)
        assert world.transactions.take_lost() == [("tx", 1)]
        assert world.poll(pause - 1).ask is None
        world.now += 1
    world.done(call)


def test_the_first_partitions_of_a_transaction_wait_20_ms_for_the_one_before_to_end() -> None:
    world = World(0).begun()
    world.send(partition=0)
    world.answer(world.ask(), 51)
    assert world.poll().wait_ms == 20
    world.answer(world.ask(later=20))
    world.send(partition=1)
    world.delivered(world.poll().sendings)
    ask = world.ask() if world.sent[-1] != "AddPartitionsToTxn v3" else None
    assert ask is None, "the poll that sent the first batch asked for the second partition"


def test_of_several_partitions_the_gravest_error_decides() -> None:
    world = World(0).begun()
    for partition in range(3):
        world.send(partition=partition)
    world.answer(world.ask(), of=lambda p: (55, 29, 3)[p])
    assert world.state is State.ABORTABLE_ERROR
    with pytest.raises(AbortableTransactionError, match=r"may not WRITE topic .t. .TOPIC_AUTHORIZATION_FAILED"):
        world.transactions.commit()


def test_only_partitions_whose_offsets_failed_are_committed_again() -> None:
    world = World(2).begun()
    call = world.send_offsets()
    world.answer(world.ask(), of=lambda p: 14 if p else 0)
    assert "COORDINATOR_LOAD_IN_PROGRESS: TxnOffsetCommit" in str(world.transactions.trouble)
    again = world.ask(later=200)
    assert [p.partition_index for t in again.message.topics for p in t.partitions] == [1]  # type: ignore[attr-defined]  # the request of an Ask is typed by what all have in common
    world.answer(again)
    assert (call.is_done, world.transactions.trouble) == (True, None)


def test_offsets_without_a_member_need_no_newer_version() -> None:
    world = World(2).begun()
    world.send_offsets(Member("g"))
    assert world.ask().version_min == 0


def test_offsets_under_way_are_dropped_by_an_abort() -> None:
    world = World(2).begun()
    call, waiting = world.send_offsets(), world.send_offsets(Member("h"))
    ask = world.ask()
    abort = world.transactions.abort()
    assert isinstance(call.error, TransactionAbortedError)
    assert isinstance(waiting.error, TransactionAbortedError)
    world.answer(ask)
    world.done(abort)
    assert world.sent == ["TxnOffsetCommit v5", "EndTxn v5"]


PRODUCE = {29: "abort", 45: "abort", 47: "abort", 48: "abort", 59: "abort", 87: "abort", 120: "abort", -1: "abort",
           90: "fenced", 49: "fatal", 53: "fatal", 31: "fatal"}  # fmt: skip


@pytest.mark.case("TX-P06", "TX-P08", "TX-P09")
@pytest.mark.parametrize(("level", "code"), [(level, code) for level in (0, 2) for code in PRODUCE])
def test_what_an_error_of_a_batch_does(level: int, code: int) -> None:
    world = World(level).begun()
    record = world.send()
    poll = world.poll()
    if poll.ask is not None:
        world.answer(poll.ask)
        poll = world.poll()
    world.delivered(poll.sendings, code)
    assert record.failure() is not None
    outcome = PRODUCE[code]
    if outcome != "abort":
        kind = ProducerFencedError if outcome == "fenced" else FatalTransactionError
        with pytest.raises(kind) as caught:
            world.transactions.commit()
        assert caught.value.fatal
        return
    with pytest.raises(AbortableTransactionError) as failed:
        world.transactions.commit()
    if code == 47:
        assert isinstance(failed.value.__cause__, InvalidProducerEpochError)
    world.done(world.transactions.abort())
    ends = ["EndTxn v5"] if level else ["EndTxn v4", "InitProducerId v5"]
    assert world.sent[-len(ends) :] == ends
    world.transactions.begin()
    world.send()
    world.settle()
    assert world.sent[-1].endswith("7/1 seq 0")


@pytest.mark.case("TX-P08")
@pytest.mark.parametrize("code", [51, 6, 19, 14])
def test_a_batch_is_sent_again_unseen_until_its_time_is_over(code: int) -> None:
    world = World(2, delivery_timeout_ms=31_000, request_timeout_ms=30_000).begun()
    record = world.send()
    world.delivered(world.poll().sendings, code)
    assert not record.done()
    world.core.view.move_leader("t", 0, 1, 2, None)
    again = world.poll(1000).sendings
    assert world.sent[-1] == "Produce t-0 7/0 seq 0"
    world.delivered(again, code)
    world.poll(40_000)
    assert record.done()
    assert world.state is State.ABORTABLE_ERROR


def test_a_failed_batch_fails_a_commit_under_way() -> None:
    world = World().begun()
    world.send()
    call = world.transactions.commit()
    world.delivered(world.poll().sendings, 120)
    assert isinstance(world.failed(call), AbortableTransactionError)
    assert "EndTxn v5" not in world.sent
    world.done(world.transactions.abort())


def test_errors_of_batches_during_an_abort_change_nothing() -> None:
    world = World(0).begun()
    world.send()
    world.answer(world.ask())
    sendings = world.poll().sendings
    call = world.transactions.abort()
    world.delivered(sendings, 7)
    assert world.state is State.ABORTING
    world.done(call)
    assert world.sent[-2:] == ["EndTxn v4", "InitProducerId v5"], "the batch that is lost leaves a hole"


def test_a_record_that_is_too_large_spoils_the_transaction() -> None:
    world = World(max_request_size=1000).begun()
    with pytest.raises(Exception, match="more than max_request_size"):
        world.send(b"x" * 2000)
    assert world.state is State.ABORTABLE_ERROR


@pytest.mark.case("TX-P24")
def test_an_id_one_may_not_use_may_be_asked_for_again() -> None:
    world = World()
    call = world.transactions.init()
    world.transactions.on_trouble(world.ask(), TransactionalIdAuthorizationFailedError("no"), world.now)
    assert isinstance(world.failed(call), TransactionalIdAuthorizationFailedError)
    world.done(world.transactions.init())


def test_a_refused_login_is_fatal() -> None:
    world = World()
    call = world.transactions.init()
    world.transactions.on_trouble(world.ask(), AuthenticationError("wrong password"), world.now)
    assert isinstance(world.failed(call), FatalTransactionError)


def test_a_commit_stands_although_the_raise_of_the_epoch_behind_it_fails() -> None:
    world = World(0).begun()
    world.send()
    world.settle()
    world.transactions.learn(1, 2)
    call = world.transactions.commit()
    world.answer(world.ask())
    world.answer(world.ask(), 90)
    assert call.is_done
    assert call.error is None
    assert world.state is State.FATAL_ERROR


# Closing


@pytest.mark.case("TX-P16")
@VERSIONS
def test_a_purge_leaves_what_is_under_way_and_makes_the_transaction_abortable(level: int) -> None:
    """Otherwise a batch could come after the marker of its transaction."""
    world = World(level).begun()
    world.send()
    assert world.core.purge(in_queue=False, in_flight=True) == 0
    world.send()
    assert world.core.purge(in_queue=True, in_flight=True) > 0
    states = [world.state]
    world.done(world.transactions.abort())
    assert [*states, world.state] == [State.ABORTABLE_ERROR, State.READY]


def test_close_aborts_what_is_open_and_waits_for_what_is_ending() -> None:
    world = World()
    assert world.transactions.leave() is None
    world.begun()
    call = world.transactions.leave()
    assert call is not None
    world.done(call)
    assert world.transactions.leave() is None
    world.transactions.begin()
    world.send()
    commit = world.transactions.commit()
    assert world.transactions.leave() is commit
    world.done(commit)


def test_whoever_waits_is_told_when_the_producer_is_closed() -> None:
    world = World().begun()
    world.send()
    call = world.transactions.commit()
    world.transactions.give_up(Disconnected("closed"))
    assert isinstance(world.failed(call), FatalTransactionError)


# The tables


def test_every_move_is_one_of_the_table_and_an_error_is_reached_from_everywhere() -> None:
    assert set(MOVES) == set(State)
    assert all(State.FATAL_ERROR in to for state, to in MOVES.items() if state is not State.FATAL_ERROR)
    assert MOVES[State.FATAL_ERROR] == frozenset()


def test_every_error_code_has_a_reaction_in_every_request() -> None:
    assert TABLE.keys() == OTHERWISE.keys()
    for api, code in itertools.product(TABLE, ErrorCode):
        assert isinstance(reaction(api, code), Reaction)
        if api == "Produce":
            assert reaction(api, code) in (Reaction.ABORTABLE, Reaction.FATAL, Reaction.FENCED)


@pytest.mark.parametrize(("level", "together"), [(0, 1), (1, 1), (2, 3)])
def test_the_first_batch_of_an_epoch_leaves_alone_where_brokers_take_any_as_the_first(
    level: int, together: int
) -> None:
    """A fresh partition refuses two batches for a moment and takes the third: the first two could never be sent."""
    world = World(level, batch_size=1).begun()
    for _ in range(3):
        world.send()
    if level < 2:
        world.answer(world.ask())
    first = world.poll(later=50).sendings
    assert len(first) == together
    world.delivered(first[:1], code=6)
    world.delivered(first[1:], code=45)
    world.transactions.commit()
    world.settle_later()
    numbers = [int(line.rpartition(" ")[2]) for line in world.sent if line.startswith("Produce")]
    assert numbers[together:] == [0, 1, 2], "in order, each once more"
