"""The share consumer on an embedded broker: each way to acknowledge, and each wrong use (SG-P)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from partita import Broker, ConfigError, ShareConsumer
from partita.consumer.errors import (
    ConcurrentModificationError,
    DeadLetterError,
    IllegalStateError,
    RecordDeserializationError,
    WakeupError,
)
from partita.consumer.shell.dead_letters import Letter, LetterBox
from partita.errors import InvalidRecordStateError
from partita.offsets.topic_partition import TopicPartition
from support.every_case import every_case
from support.share.jobs import Jobs, counted, eventually, jobs, number, numbers, take


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # The tests turn the clock on by the length of a lock, more than once, and heartbeats come 5 s apart.
    with Broker(
        group_share_assignment_interval_ms=0,
        group_share_session_timeout_ms=3_600_000,
        group_share_max_session_timeout_ms=3_600_000,
    ) as made:
        yield made


@pytest.fixture
def work(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Jobs]:
    with jobs(broker, partitions=getattr(request, "param", 1)) as made:
        yield made


# Implicit mode


@pytest.mark.case("SG-P02", "SG-P04", "SG-P05", "SG-P06")
@pytest.mark.parametrize("work", [3], indirect=True)
def test_the_next_poll_and_a_commit_accept_the_records_of_the_last_poll(work: Jobs) -> None:
    work.put(*range(20))
    consumer = work.consumer("implicit")
    assert consumer.lock_timeout_ms() is None
    records = take(consumer, 20)
    assert numbers(records) == list(range(20))
    assert {record.delivery_count for record in records} == {1}
    assert consumer.lock_timeout_ms() == 30_000
    consumer.poll()
    outcome = consumer.commit_sync()
    assert set(outcome.values()) <= {None}
    assert consumer.commit_sync() == {}
    eventually(lambda: work.lag() == 0)


@pytest.mark.case("SG-P07")
def test_close_accepts_nothing_so_the_last_records_are_given_again(work: Jobs) -> None:
    work.put(1, 2, 3)
    first = work.consumer("implicit")
    assert numbers(take(first, 3)) == [1, 2, 3]
    first.close()
    again = take(work.consumer("implicit"), 3)
    assert numbers(again) == [1, 2, 3]
    assert {record.delivery_count for record in again} == {2}


def test_a_loop_accepts_a_record_when_the_next_one_is_asked_for(work: Jobs) -> None:
    work.put(*range(10))
    with work.consumer("implicit") as consumer:
        for record in consumer:
            if number(record) == 6:
                break
    assert numbers(take(work.consumer("implicit"), 4)) == [6, 7, 8, 9]


def test_a_loop_that_an_exception_leaves_gives_its_record_again(work: Jobs) -> None:
    work.put(*range(5))

    def divide(consumer: ShareConsumer[Any, Any]) -> None:
        for record in consumer:
            1 // (2 - number(record))

    with pytest.raises(ZeroDivisionError), work.consumer("implicit") as consumer:
        divide(consumer)
    assert counted(take(work.consumer("implicit"), 3)) == {2: 1, 3: 1, 4: 1}


# Explicit mode


@pytest.mark.case("SG-P08", "SG-P10", "SG-P12")
def test_each_record_is_acknowledged_by_itself_and_the_last_word_counts(work: Jobs) -> None:
    work.put(*range(4))
    consumer = work.consumer()
    accepted, released, rejected, changed = take(consumer, 4)
    accepted.accept()
    released.release()
    consumer.acknowledge(rejected, "reject")
    changed.release()
    consumer.acknowledge(changed)
    assert consumer.commit_sync() == {TopicPartition(work.topic, 0): None}
    assert numbers(take(consumer, 1, then="accept")) == [1]
    consumer.commit_sync()
    assert work.lag() == 0


@pytest.mark.case("SG-P09", "SG-P13")
def test_poll_refuses_while_a_record_is_not_acknowledged(work: Jobs) -> None:
    work.put(1, 2)
    consumer = work.consumer()
    first, second = take(consumer, 2)
    first.accept()
    with pytest.raises(IllegalStateError, match=r"record 1 of .* is not acknowledged.*with record:"):
        consumer.poll()
    second.accept()
    consumer.poll()


@pytest.mark.case("SG-P14")
def test_a_renewed_record_comes_first_with_its_count_unchanged(work: Jobs) -> None:
    work.put(1, 2)
    consumer = work.consumer()
    first, second = take(consumer, 2)
    first.accept()
    second.renew()
    again = take(consumer, 1)[0]
    assert (number(again), again.delivery_count) == (2, 1)
    again.accept()
    assert set(consumer.commit_sync().values()) == {None}
    assert work.lag() == 0


@pytest.mark.case("SG-P11")
def test_a_record_that_was_not_given_is_refused(work: Jobs) -> None:
    work.put(1)
    consumer = work.consumer()
    (record,) = take(consumer, 1)
    with pytest.raises(IllegalStateError, match=f"record 7 of {work.topic}-0 is not held by this consumer"):
        consumer.acknowledge((work.topic, 0, 7))
    consumer.acknowledge((work.topic, 0, 0), "accept")
    consumer.commit_sync()
    with pytest.raises(IllegalStateError, match=r"record 0 of .* cannot be acknowledged as release: it is answered"):
        record.release()


@pytest.mark.case("SG-P15")
def test_a_callback_hears_of_offsets_and_errors_inside_poll_and_commit(work: Jobs) -> None:
    work.put(1, 2)
    consumer = work.consumer()
    heard: list[tuple[dict[TopicPartition, list[int]], Any, int]] = []
    consumer.on_acknowledged(lambda offsets, error: heard.append((offsets, error, threading.get_ident())))
    for record in take(consumer, 2):
        record.accept()
    consumer.commit_async()
    eventually(lambda: bool(consumer.poll() or heard))
    assert heard == [({TopicPartition(work.topic, 0): [0, 1]}, None, threading.get_ident())]


def test_the_error_of_a_record_whose_lock_is_over_is_in_the_outcome_and_it_comes_again(work: Jobs) -> None:
    work.put(1)
    consumer = work.consumer()
    (record,) = take(consumer, 1)
    work.end_locks()
    record.accept()
    (error,) = consumer.commit_sync().values()
    assert isinstance(error, InvalidRecordStateError)
    (again,) = take(consumer, 1, then="accept")
    assert again.delivery_count == 2


@pytest.mark.case("SG-P16", "SG-P18")
def test_two_members_share_one_partition_and_close_gives_the_rest_to_the_other(work: Jobs) -> None:
    work.put(*range(8))
    one = work.consumer(max_poll_records=4, share_acquire_mode="record_limit")
    first = take(one, 4)
    other = work.consumer(max_poll_records=4, share_acquire_mode="record_limit")
    second = take(other, 4, then="accept")
    assert numbers([*first, *second]) == list(range(8))
    first[0].accept()
    one.close()
    rest = take(other, 3, then="accept")
    assert numbers(rest) == numbers(first[1:])
    assert {record.delivery_count for record in rest} == {2}


@pytest.mark.case("SG-P17")
def test_record_limit_gives_no_more_than_max_poll_records(work: Jobs) -> None:
    work.put(*range(10))
    consumer = work.consumer(max_poll_records=4, share_acquire_mode="record_limit")
    take(consumer, 4)
    assert {tp.partition: offsets for tp, offsets in consumer.held().items()} == {0: [0, 1, 2, 3]}


# Blocks


def test_a_block_accepts_and_releases_on_an_exception(work: Jobs) -> None:
    work.put(1, 2)
    consumer = work.consumer()
    good, bad = take(consumer, 2)
    with good:
        pass
    with pytest.raises(ZeroDivisionError), bad:
        1 // 0  # noqa: B018 - it raises
    (again,) = take(consumer, 1)
    assert (number(again), again.delivery_count) == (2, 2)
    with again:
        again.reject()
    consumer.commit_sync()
    eventually(lambda: work.lag() == 0)


def test_named_exceptions_reject_the_record_and_end_there(work: Jobs) -> None:
    work.put(1)
    consumer = work.consumer(dead_letter_topic=f"{work.topic}-dead")
    (record,) = take(consumer, 1)
    with record.rejecting(ValueError):
        int("no number")
    consumer.commit_sync()
    eventually(lambda: work.lag() == 0)
    (letter,) = work.broker.records(f"{work.topic}-dead")
    headers = dict(letter.headers)
    assert (letter.value, headers["dead-letter-offset"]) == (b"1", b"0")
    assert b"ValueError" in (headers["dead-letter-reason"] or b"")


def test_a_record_that_fails_at_its_last_delivery_becomes_a_dead_letter(work: Jobs) -> None:
    work.put(1)
    consumer = work.consumer(dead_letter_topic=f"{work.topic}-dead", dead_letter_deliveries=3)
    for delivery in (1, 2, 3):
        (record,) = take(consumer, 1)
        assert record.delivery_count == delivery
        with pytest.raises(ZeroDivisionError), record:
            1 // 0  # noqa: B018 - it raises
    consumer.commit_sync()
    eventually(lambda: work.lag() == 0)
    assert [letter.value for letter in work.broker.records(f"{work.topic}-dead")] == [b"1"]


def test_a_dead_letter_that_is_not_taken_leaves_the_record_to_others(work: Jobs) -> None:
    work.put(1)
    consumer = work.consumer(dead_letter_topic="no such name", default_api_timeout_ms=2_000)
    (record,) = take(consumer, 1)
    with pytest.raises(Exception, match="no such name"), record.rejecting(ValueError):
        raise ValueError("bad")
    (again,) = take(consumer, 1, then="accept")
    assert again.delivery_count == 2


def test_the_lock_is_renewed_while_a_block_works(work: Jobs) -> None:
    """The broker's clock jumps by two thirds of a lock, twice; the client renews in between by its own."""
    work.put(1)
    consumer = work.consumer(share_acquire_mode="record_limit")
    (record,) = take(consumer, 1)
    renewals = work.broker.control.observe("ShareAcknowledge")
    with record:
        for count in (1, 2):
            work.broker.control.advance_clock(20_000)
            record._hold.deadline_ms -= 20_000
            consumer._driver.step()
            renewals.wait(count)
    assert set(consumer.commit_sync().values()) <= {None}
    eventually(lambda: work.lag() == 0)


def test_kept_records_outlast_polls_and_arrow_batches_are_acknowledged(work: Jobs) -> None:
    work.put(*range(10))
    consumer = work.consumer()
    batch = None
    while batch is None:
        batch = consumer.poll_arrow(5.0, value="str")
    assert batch.column("value").to_pylist() == [str(n) for n in range(10)]
    assert batch.column("delivery_count").to_pylist() == [1] * 10
    consumer.keep(batch)
    assert not consumer.poll(), "kept records need not be acknowledged before the next poll"
    consumer.acknowledge(batch.slice(0, 8))
    consumer.acknowledge(batch.slice(8), "release")
    assert set(consumer.commit_sync().values()) == {None}
    again = take(consumer, 2)
    consumer.keep(again)
    with pytest.raises(IllegalStateError, match="another block works on it"):
        consumer.keep(again)
    for record in again:
        record.accept()
    consumer.commit_sync()
    assert (numbers(again), work.lag()) == ([8, 9], 0)


# Unreadable records


@pytest.mark.case("SG-P22")
def test_an_unreadable_record_is_released_after_those_before_it_were_given(work: Jobs) -> None:
    work.broker.produce(work.topic, "1", "two", "3")
    consumer = work.consumer("implicit", value_deserializer=int)
    assert [record.value for record in take(consumer, 1)] == [1]
    with pytest.raises(RecordDeserializationError, match=r"-0 at offset 1 .*released.*poison_policy") as caught:
        take(consumer, 1)
    assert caught.value.offset == 1
    assert [record.value for record in take(consumer, 1)] == [3]


@pytest.mark.parametrize("policy", ["skip", "dead_letter"])
def test_unreadable_records_are_rejected_if_the_policy_says_so(work: Jobs, policy: str) -> None:
    work.broker.produce(work.topic, "1", "two", "3")
    letters = {"dead_letter_topic": f"{work.topic}-dead"} if policy == "dead_letter" else {}
    consumer = work.consumer("implicit", value_deserializer=int, poison_policy=policy, **letters)
    assert [record.value for record in take(consumer, 2)] == [1, 3]
    consumer.commit_sync()
    eventually(lambda: work.lag() == 0)
    if letters:
        assert [letter.value for letter in work.broker.records(letters["dead_letter_topic"])] == [b"two"]


def test_a_letter_that_is_not_taken_holds_up_no_other_record(work: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their locks ran out while the letter waited, again and again, until the delivery limit would have ended them."""
    work.broker.produce(work.topic, "1", "two", "3", "4")
    dead = f"{work.topic}-dead"
    consumer = work.consumer("implicit", value_deserializer=int, poison_policy="dead_letter", dead_letter_topic=dead)
    held = consumer._core.fetching.holdings.all
    kept: list[list[bool]] = []

    async def refused(box: LetterBox, tp: TopicPartition, offset: int, letter: Letter) -> None:
        kept.append([consumer._core.fetching._is_kept(hold, is_alive=True) for _, hold in sorted(held.items())[-3:]])
        raise DeadLetterError(tp, offset, box.topic, OSError("no such topic"))

    with monkeypatch.context() as patch:
        patch.setattr(LetterBox, "put", refused)
        assert [record.value for record in take(consumer, 1)] == [1]
        with pytest.raises(DeadLetterError, match=r"at offset 1 .*no such topic"):
            consumer.poll(5.0)
        again = take(consumer, 2)
        with pytest.raises(DeadLetterError, match=r"at offset 1 .*no such topic"):
            consumer.poll(5.0)
    assert ([(one.value, one.delivery_count) for one in again], kept[0]) == ([(3, 1), (4, 1)], [True, True, True])
    consumer.poll(0.0)
    assert [letter.value for letter in work.broker.records(dead)] == [b"two"]
    eventually(lambda: work.lag() == 0)


# Wrong uses


def test_a_record_of_another_member_is_refused_and_stays_with_it(work: Jobs) -> None:
    work.put(0)
    mine, other = work.consumer(), work.consumer()
    (record,) = take(mine, 1)
    with pytest.raises(IllegalStateError, match=r"record 0 of .* is held by another share consumer"):
        other.acknowledge(record, "reject")
    with pytest.raises(IllegalStateError, match="is held by another share consumer"):
        other.keep([record])
    record.accept()
    assert set(mine.commit_sync().values()) == {None}
    eventually(lambda: work.lag() == 0)


@pytest.mark.case("SG-P01", "SG-P03")
def test_wrong_uses_say_what_to_do(work: Jobs) -> None:
    work.put(1)
    with ShareConsumer(**work.options()) as fresh, pytest.raises(IllegalStateError, match="subscribe to topics before"):
        fresh.poll()
    implicit = work.consumer("implicit")
    (record,) = take(implicit, 1)
    for wrong in (record.accept, record.__enter__, lambda: implicit.acknowledge(record)):
        with pytest.raises(IllegalStateError, match="needs share_acknowledgement_mode='explicit'"):
            wrong()
    with pytest.raises(ValueError, match="accept, release, reject, renew, not 'done'"):
        implicit.acknowledge(record, "done")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="a batch with the columns topic, partition and offset is expected, not 7"):
        work.consumer().acknowledge(7)
    with pytest.raises(TypeError, match="max_records must be a whole number, not '5'"):
        implicit.poll(max_records="5")  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="classes of exceptions such as ValueError"):
        record.rejecting()
    with pytest.raises(TypeError, match="takes a function of offsets and error"):
        implicit.on_acknowledged(7)  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.case("SG-P19", "SG-P20")
def test_one_thread_at_a_time_and_wakeup_from_any(work: Jobs) -> None:
    consumer = work.consumer()
    raised: list[BaseException] = []

    def poll() -> None:
        try:
            consumer.poll(60.0)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=poll)
    thread.start()
    eventually(lambda: consumer._core.fetching.is_polling)
    with pytest.raises(ConcurrentModificationError):
        consumer.poll()
    consumer.wakeup()
    thread.join(60)
    assert [type(error) for error in raised] == [WakeupError]


REFUSED = [
    ({"auto_offset_reset": "earliest"}, "share.auto.offset.reset"),
    ({"isolation_level": "read_committed"}, "share.isolation.level"),
    ({"enable_auto_commit": True}, "share_acknowledgement_mode"),
    ({"group_instance_id": "a"}, "no static members"),
    ({"session_timeout_ms": 1}, "share.session.timeout.ms"),
    ({"share_acknowledgement_mode": "sometimes"}, "implicit, explicit, not 'sometimes'"),
    ({"share_acquire_mode": "all"}, "batch_optimized, record_limit, not 'all'"),
    ({"poison_policy": "dead_letter"}, "needs a dead_letter_topic"),
    ({"group_id": ""}, "group_id must not be empty"),
]


@pytest.mark.case("SG-P21")
@every_case("options, told", REFUSED, lambda case: str(case[0]))
def test_options_that_a_share_group_does_not_have_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ShareConsumer(**{"bootstrap_servers": "127.0.0.1:1", "group_id": "g", **options})
