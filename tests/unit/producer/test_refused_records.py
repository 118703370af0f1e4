"""One refused record takes nothing with it, and a batch that is too large is sent in parts. (D1, D2)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from partita.errors import InvalidRecordError, InvalidTimestampError, KafkaError, MessageTooLargeError
from partita.net.errors import Disconnected
from partita.producer.answers import OF_A_RECORD, TOO_LARGE, Place, Verdict, judge
from partita.producer.core import Sending
from partita.producer.delivery import Delivery
from partita.producer.errors import DeliveryTimeoutError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.produce import BatchIndexAndErrorMessage
from partita.records.batch import iter_records
from unit.producer.test_producer_core import World, sequences

E, V = ErrorCode, Verdict


def values(world: World, sendings: Sequence[Sending]) -> list[list[object]]:
    """What each of the requests, of one batch each, carries."""
    requests = [world.core.request_for(sending) for sending in sendings]
    return [[r.value for r in iter_records(q.topic_data[0].partition_data[0].records or b"")] for q in requests]


def one_batch(world: World, how_many: int) -> tuple[list[Delivery], Sending]:
    """Records 0, 1, 2 ... under way in one batch."""
    deliveries = [world.send(b"%d" % number) for number in range(how_many)]
    (sending,) = world.sent(later=10)
    return deliveries, sending


def named(*indexes: int) -> list[BatchIndexAndErrorMessage]:
    return [BatchIndexAndErrorMessage(batch_index=i, batch_index_error_message=f"record {i} is bad") for i in indexes]


def answered(world: World, base_offset: int = 0, later: int = 0) -> list[list[object]]:
    """Take every batch that comes from now on; return what each held."""
    taken = []
    while sendings := world.sent(later=later):
        for held, sending in zip(values(world, sendings), sendings, strict=True):
            taken.append(held)
            world.answer(sending, base_offset=base_offset)
            base_offset += len(held)
    return taken


# The table


@pytest.mark.parametrize(
    ("code", "place", "names", "verdict"),
    [
        (E.NONE, Place(), False, V.DELIVERED),
        (E.DUPLICATE_SEQUENCE_NUMBER, Place(is_single=False), False, V.DELIVERED),
        *((code, Place(is_transactional=t), False, V.FAILED) for code in TOO_LARGE for t in (False, True)),
        *(
            (code, Place(is_single=False, is_transactional=t), False, V.HALVES)
            for code in TOO_LARGE
            for t in (False, True)
        ),
        *((code, Place(is_single=False), False, V.HALVES) for code in OF_A_RECORD),
        *((code, Place(is_single=one), True, V.IN_PART) for code in OF_A_RECORD for one in (False, True)),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Place(), False, V.NEW_EPOCH),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Place(is_after_gap=True), False, V.BEHIND),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Place(is_first=False), False, V.BEHIND),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Place(is_first=False, is_transactional=True), False, V.BEHIND),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Place(is_transactional=True), False, V.FAILED),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, Place(is_sequenced=False), False, V.FAILED),
        (E.UNKNOWN_PRODUCER_ID, Place(), False, V.NEW_EPOCH),
        (E.UNKNOWN_PRODUCER_ID, Place(is_transactional=True), False, V.FAILED),
        (E.INVALID_PRODUCER_EPOCH, Place(is_first=False), False, V.NEW_EPOCH),
        (E.NOT_LEADER_OR_FOLLOWER, Place(is_single=False), False, V.AGAIN),
        (E.CORRUPT_MESSAGE, Place(), True, V.AGAIN),
        (E.TOPIC_AUTHORIZATION_FAILED, Place(is_single=False), False, V.FAILED),
    ],
)
def test_each_error_has_its_verdict(code: ErrorCode, place: Place, names: bool, verdict: Verdict) -> None:
    assert judge(code, place, names_records=names) is verdict


# Behind a refused batch


@pytest.mark.parametrize("options", [{}, {"retries": 1}])
def test_what_follows_a_refused_batch_is_sent_again_at_once_in_a_new_epoch(options: dict[str, Any]) -> None:
    """D1: 32 innocent records failed with OutOfOrderSequenceNumberError."""
    world = World(batch_size=1, **options)
    world.begin()
    for _ in range(3):
        refused, *innocent = [world.send(b"%d" % number) for number in range(5)]
        first, *others = world.sent()
        world.answer(first, E.MESSAGE_TOO_LARGE)
        for sending in others:
            world.answer(sending, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
        assert answered(world) == [[b"1"], [b"2"], [b"3"], [b"4"]]
        assert isinstance(refused.failure(), MessageTooLargeError)
        assert [delivery.failure() for delivery in innocent] == [None] * 4


def test_without_idempotence_what_follows_a_refused_batch_is_not_touched() -> None:
    world = World(batch_size=1, enable_idempotence=False)
    refused, innocent = world.send(b"0"), world.send(b"1")
    first, second = world.sent()
    world.answer(first, E.MESSAGE_TOO_LARGE)
    world.answer(second)
    assert isinstance(refused.failure(), MessageTooLargeError)
    assert innocent.done()
    assert innocent.failure() is None


def test_a_batch_that_may_be_written_keeps_its_number_when_a_later_one_is_refused() -> None:
    """Under another number it could come twice."""
    world = World(batch_size=1)
    world.begin()
    world.send(b"0")
    world.send(b"1")
    world.send(b"2")
    first, second, third = world.sent()
    world.core.on_failure(first, Disconnected("the answer is lost"), world.now)
    world.answer(second, E.MESSAGE_TOO_LARGE)
    world.answer(third, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (again,) = world.sent(later=100)
    assert sequences(world, [again]) == [(0, 1)]
    world.answer(again)
    (last,) = world.sent()
    assert sequences(world, [last]) == [(1, 0)]
    assert values(world, [last]) == [[b"2"]]


def expired() -> tuple[World, Delivery, Sending]:
    """The first of two records has timed out, and both may be in the log; the second one and how it is sent again."""
    world = World(batch_size=1, request_timeout_ms=10, delivery_timeout_ms=50, retry_backoff_ms=1)
    world.begin()
    lost = world.send(b"0")
    (first,) = world.sent()
    world.now += 30
    kept = world.send(b"1")
    (second,) = world.sent()
    for sending in (first, second):
        world.core.on_failure(sending, Disconnected("gone"), world.now)
    (again,) = world.sent(later=30)
    assert isinstance(lost.failure(), DeliveryTimeoutError)
    return world, kept, again


def test_after_a_time_out_a_batch_that_may_be_written_is_sent_under_its_number() -> None:
    """Kafka: TransactionManager.markSequenceUnresolved."""
    world, kept, again = expired()
    assert sequences(world, [again]) == [(0, 2)]
    world.answer(again, E.DUPLICATE_SEQUENCE_NUMBER, base_offset=-1)
    assert kept.failure() is None
    world.send(b"2")
    assert sequences(world, world.sent()) == [(1, 0)]


def test_after_a_time_out_a_gap_is_cured_by_a_new_epoch() -> None:
    world, kept, again = expired()
    world.answer(again, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (anew,) = world.sent(later=2)
    assert sequences(world, [anew]) == [(1, 0)]
    world.answer(anew)
    assert kept.failure() is None


# Records that the answer names


def test_the_records_that_the_answer_names_fail_and_the_others_go_on() -> None:
    world = World(linger_ms=10)
    world.begin()
    deliveries, sending = one_batch(world, 5)
    follower = world.send(b"5")
    (behind,) = world.sent(later=10)
    heard: list[int] = []
    for number, delivery in enumerate(deliveries):
        delivery.on_done(lambda number=number: heard.append(number))  # type: ignore[misc]  # mypy does not see the default
    world.answer(sending, E.INVALID_RECORD, record_errors=named(1, 3))
    for call in world.core.take_callbacks():
        call()
    assert heard == [1, 3]
    world.answer(behind, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (rest,) = world.sent()
    assert sequences(world, [rest]) == [(1, 0)]
    world.answer(rest, base_offset=7)
    (last,) = world.sent()
    assert sequences(world, [last]) == [(1, 3)]
    world.answer(last, base_offset=10)
    failures = [delivery.failure() for delivery in deliveries]
    assert [type(failure) for failure in failures if failure is not None] == [InvalidRecordError] * 2
    assert "t-0: record 3 is bad" in str(failures[3])
    delivered = [delivery.metadata().offset for delivery in (*deliveries, follower) if delivery.failure() is None]
    assert delivered == [7, 8, 9, 10]
    assert world.core.accumulator.used_bytes == 0
    assert world.core.unheard_count == 2


def test_a_batch_of_which_every_record_is_named_fails() -> None:
    world = World(linger_ms=10)
    world.begin()
    deliveries, sending = one_batch(world, 3)
    world.answer(sending, E.INVALID_TIMESTAMP, record_errors=named(0, 1, 2, 2, 17, -1))
    assert [type(delivery.failure()) for delivery in deliveries] == [InvalidTimestampError] * 3
    assert world.core.count_unfinished() == 0
    assert world.core.accumulator.used_bytes == 0
    world.send(b"next")
    assert sequences(world, world.sent(later=10)) == [(1, 0)]


@pytest.mark.parametrize("code", sorted(OF_A_RECORD))
@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_record_that_the_answer_does_not_name_is_found_by_halving(code: ErrorCode, is_idempotent: bool) -> None:
    """So brokers before Produce version 8 answer. The number of requests is bounded by the logarithm."""
    world = World(linger_ms=10, enable_idempotence=is_idempotent, max_in_flight_requests_per_connection=1)
    if is_idempotent:
        world.begin()
    deliveries, sending = one_batch(world, 64)
    sendings: Sequence[Sending] = [sending]
    written: list[object] = []
    requests = 0
    while sendings:
        for one, (held,) in zip(sendings, [values(world, [s]) for s in sendings], strict=True):
            requests += 1
            is_bad = b"37" in held
            world.answer(one, code if is_bad else E.NONE, base_offset=len(written))
            written += [] if is_bad else held
        sendings = world.sent(later=100)
    assert written == [b"%d" % number for number in range(64) if number != 37]
    assert [n for n, delivery in enumerate(deliveries) if delivery.failure() is not None] == [37]
    offsets = [delivery.metadata().offset for n, delivery in enumerate(deliveries) if n != 37]
    assert offsets == list(range(63))
    assert requests <= 2 * 6 + 1


# Batches that are too large


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_halves_of_a_batch_share_its_numbers_and_leave_in_order(codec: str) -> None:
    """D2: 313 of 400 records failed, of which each would have fitted."""
    world = World(linger_ms=10, compression_type=codec)
    world.begin()
    deliveries, sending = one_batch(world, 7)
    follower = world.send(b"7")
    (behind,) = world.sent(later=10)
    world.answer(sending, E.MESSAGE_TOO_LARGE)
    world.answer(behind, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    halves = world.sent()
    assert values(world, halves) == [[b"0", b"1", b"2"], [b"3", b"4", b"5", b"6"], [b"7"]]
    assert sequences(world, halves) == [(0, 1), (0, 4), (0, 8)]
    for half, offset in zip(halves, (20, 23, 27), strict=True):
        world.answer(half, base_offset=offset)
    assert [delivery.metadata().offset for delivery in (*deliveries, follower)] == list(range(20, 28))
    assert world.core.accumulator.used_bytes == 0


def test_a_second_half_is_not_overtaken_by_more_than_the_broker_remembers() -> None:
    world = World(linger_ms=10)
    world.begin()
    _, sending = one_batch(world, 2)
    others = [one_batch(world, 1)[1] for _ in range(3)]
    world.answer(sending, E.MESSAGE_TOO_LARGE)
    for other in others:
        world.answer(other, E.OUT_OF_ORDER_SEQUENCE_NUMBER)
    for _ in range(9):
        world.send(b"x" * 16_384)
    first, *rest = world.sent()
    world.core.on_failure(first, Disconnected("the answer is lost"), world.now)
    for sending in rest:
        world.answer(sending)
    assert sequences(world, [first, *rest]) == [(0, number) for number in range(1, 6)]
    (again,) = world.sent(later=100)
    assert sequences(world, [again]) == [(0, 1)]


def test_a_record_among_others_that_is_too_large_fails_alone() -> None:
    world = World(linger_ms=10)
    world.begin()
    deliveries, sending = one_batch(world, 4)
    sendings: Sequence[Sending] = [sending]
    while sendings:
        for one, (held,) in zip(sendings, [values(world, [s]) for s in sendings], strict=True):
            world.answer(one, E.MESSAGE_TOO_LARGE if b"1" in held else E.NONE, base_offset=50)
        sendings = world.sent()
    assert [type(delivery.failure()) for delivery in deliveries] == [
        type(None),
        MessageTooLargeError,
        *[type(None)] * 2,
    ]


def test_new_batches_are_no_larger_than_half_of_one_that_was_refused() -> None:
    """So a topic that takes less than batch.size costs a few refusals, not one for each batch."""
    world = World(linger_ms=10, batch_size=10_000)
    world.begin()
    for _ in range(9):
        world.send(b"x" * 1_000)
    (sending,) = world.sent(later=10)
    world.answer(sending, E.MESSAGE_TOO_LARGE)
    for _ in range(9):
        world.send(b"y" * 1_000)
    sizes = [len(held) for held in answered(world, later=10)]
    assert sizes == [4, 5, 4, 4, 1]


def test_whoever_waits_for_all_records_of_a_divided_batch_is_called_once_at_the_end() -> None:
    world = World(linger_ms=10)
    world.begin()
    _, sending = one_batch(world, 4)
    calls: list[int] = []
    assert world.core.watch_unfinished(lambda: calls.append(1)) == 1
    world.answer(sending, E.MESSAGE_TOO_LARGE)
    first, second = world.sent()
    for half, so_far in ((first, 0), (second, 1)):
        world.answer(half)
        for call in world.core.take_callbacks():
            call()
        assert len(calls) == so_far
    assert world.core.split_count == 1


def test_a_divided_batch_is_not_done_before_its_parts() -> None:
    world = World(linger_ms=10)
    world.begin()
    (one, _, _, four), sending = one_batch(world, 4)
    world.answer(sending, E.MESSAGE_TOO_LARGE)
    first, second = world.sent()
    world.answer(first, base_offset=3)
    assert one.done()
    assert not four.done()
    late: list[KafkaError | None] = []
    four.on_done(lambda: late.append(None))
    world.answer(second, base_offset=5)
    for call in world.core.take_callbacks():
        call()
    assert late == [None]
    assert four.metadata().offset == 6


@pytest.mark.parametrize("code", [E.MESSAGE_TOO_LARGE, E.INVALID_RECORD])
def test_a_division_keeps_the_time_out_and_counts_no_attempt(code: ErrorCode) -> None:
    world = World(linger_ms=0, retries=1, request_timeout_ms=10, delivery_timeout_ms=50)
    world.begin()
    world.core.accumulator.flushes += 1
    deliveries = [world.send(b"0"), world.send(b"1")]
    (sending,) = world.sent()
    world.answer(sending, code)
    halves = world.sent()
    world.core.on_failure(halves[0], Disconnected("gone"), world.now)
    world.core.on_failure(halves[1], Disconnected("gone"), world.now)
    assert [delivery.done() for delivery in deliveries] == [False, False]
    world.poll(later=50)
    assert [type(delivery.failure()) for delivery in deliveries] == [DeliveryTimeoutError] * 2
