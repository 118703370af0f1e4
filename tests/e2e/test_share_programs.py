"""Programs that process each record once and are ended in every way: none loses a record, none holds one of another.

Each program notes what it has processed; in the end every record was processed, and those that were processed twice are
the ones whose program ended before its acknowledgement was sent.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from partita import Broker, DeadLetterError, ShareConsumer, ShareRecord, WakeupError
from partita.consumer.errors import IllegalStateError
from partita.consumer.sharing.holding import Hold
from partita.consumer.shell.client_driver import ClientDriver as Driver
from support.every_case import every_case
from support.share.jobs import WITHIN_S, Jobs, eventually, jobs, number, numbers, take

COUNT = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(group_share_assignment_interval_ms=0) as made:
        yield made


@pytest.fixture
def work(broker: Broker) -> Iterator[Jobs]:
    with jobs(broker, partitions=3) as made:
        made.put(*range(COUNT))
        yield made


def finish(work: Jobs, done: Counter[int]) -> None:
    """A last member processes all that is left."""
    consumer = work.consumer(fetch_max_wait_ms=50)
    deadline = time.monotonic() + WITHIN_S
    while work.lag():
        assert time.monotonic() < deadline, f"{work.lag()} are left"
        for record in consumer.poll(0.2):
            with record:
                done[number(record)] += 1
        consumer.commit_sync()


def check(work: Jobs, done: Counter[int], twice_at_most: int) -> None:
    finish(work, done)
    assert set(done) == set(range(COUNT)), "a record was lost"
    again = sum(done.values()) - COUNT
    assert again <= twice_at_most, f"{again} records were processed again"


# Left early


def leave_by_break(consumer: ShareConsumer[Any, Any], done: Counter[int]) -> None:
    for record in consumer:
        done[number(record)] += 1
        if sum(done.values()) == 20:
            break


def leave_by_return(consumer: ShareConsumer[Any, Any], done: Counter[int]) -> None:
    for record in consumer:
        done[number(record)] += 1
        if sum(done.values()) == 20:
            return


def leave_by_raise(consumer: ShareConsumer[Any, Any], done: Counter[int]) -> None:
    for record in consumer:
        if sum(done.values()) == 20:
            raise ZeroDivisionError
        done[number(record)] += 1


def leave_by_closing_the_loop(consumer: ShareConsumer[Any, Any], done: Counter[int]) -> None:
    loop = iter(consumer)
    for _ in range(20):
        done[number(next(loop))] += 1
    loop.close()  # type: ignore[attr-defined]  # a generator


def leave_by_wakeup(consumer: ShareConsumer[Any, Any], done: Counter[int]) -> None:
    for record in consumer:
        done[number(record)] += 1
        if sum(done.values()) == 20:
            consumer.wakeup()


def leave_a_batch(consumer: ShareConsumer[Any, Any], done: Counter[int]) -> None:
    for record in take(consumer, 20)[:7]:
        done[number(record)] += 1


LEAVES: list[tuple[Callable[[ShareConsumer[Any, Any], Counter[int]], None], int]] = [
    (leave_by_break, 1),
    (leave_by_return, 1),
    (leave_by_raise, 0),
    (leave_by_closing_the_loop, 1),
    (leave_by_wakeup, 1),
    (leave_a_batch, 7),
]


@pytest.mark.case("SG-P24")
@pytest.mark.parametrize(("leave", "twice"), LEAVES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_loop_that_is_left_loses_nothing(
    work: Jobs, leave: Callable[[ShareConsumer[Any, Any], Counter[int]], None], twice: int
) -> None:
    done: Counter[int] = Counter()
    consumer = work.consumer("implicit")
    with suppress(ZeroDivisionError, WakeupError):
        leave(consumer, done)
    consumer.close()
    check(work, done, twice)


@pytest.mark.case("SG-P24")
def test_blocks_that_raise_give_their_records_again_and_the_others_are_done_once(work: Jobs) -> None:
    done: Counter[int] = Counter()
    consumer = work.consumer()
    failures = 0
    while work.lag():
        for record in consumer.poll(0.2):
            try:
                with record:
                    if number(record) % 7 == 0 and record.delivery_count < 3:
                        raise ZeroDivisionError
                    done[number(record)] += 1
            except ZeroDivisionError:
                failures += 1
        consumer.commit_sync()
    assert done == Counter(range(COUNT))
    assert failures == 2 * len(range(0, COUNT, 7))


# Cancelled


@pytest.mark.case("SG-P24")
def test_a_cancelled_task_releases_the_record_in_its_block(work: Jobs) -> None:
    done: Counter[int] = Counter()

    async def program() -> None:
        reached = asyncio.Event()

        async def process() -> None:
            async for record in consumer:
                async with record:
                    if sum(done.values()) == 20:
                        reached.set()
                        await asyncio.Event().wait()
                    done[number(record)] += 1

        async with work.async_consumer() as consumer:
            task = asyncio.create_task(process())
            await asyncio.wait_for(reached.wait(), WITHIN_S)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(program())
    check(work, done, 0)


@pytest.mark.case("SG-P24")
def test_a_poll_that_is_cancelled_again_and_again_loses_nothing(work: Jobs) -> None:
    """Deserializers run beside the loop, so a cancellation meets records that were taken and not handed out."""
    done: Counter[int] = Counter()

    async def program() -> None:
        async with work.async_consumer(value_deserializer=lambda data: data) as consumer:
            for attempt in range(2_000):
                poll = asyncio.create_task(consumer.poll(0.5))
                for _ in range(attempt % 7):
                    await asyncio.sleep(0)
                if not poll.done():
                    poll.cancel()
                found = (await asyncio.gather(poll, return_exceptions=True))[0]
                if isinstance(found, BaseException):
                    assert isinstance(found, asyncio.CancelledError), found
                    continue
                for record in found:
                    done[number(record)] += 1
                    record.accept()
                if sum(done.values()) == COUNT:
                    break
            await consumer.commit_sync()

    asyncio.run(program())
    check(work, done, 0)


# Workers


def stop_when(consumer: Any, is_so: Callable[[], bool]) -> threading.Thread:
    """Wake the consumer up once something is the case."""

    def watch() -> None:
        eventually(is_so)
        consumer.wakeup()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_workers_in_threads_process_each_record_and_take_no_more_than_they_can_work_on(work: Jobs) -> None:
    done: Counter[int] = Counter()
    lock = threading.Lock()
    held: list[int] = []
    consumer = work.consumer()

    def handle(record: Any) -> None:
        with lock:
            held.append(sum(map(len, consumer.held().values())))
            done[number(record)] += 1

    watch = stop_when(consumer, lambda: sum(done.values()) >= COUNT)
    consumer.work(handle, workers=4)
    watch.join(WITHIN_S)
    check(work, done, 0)
    assert max(held) <= 8, "four in work, and four whose acknowledgement is on its way"


def test_a_handler_that_fails_has_its_record_tried_again_and_then_buried(work: Jobs) -> None:
    done: Counter[int] = Counter()
    consumer = work.consumer(dead_letter_topic=f"{work.topic}-dead", dead_letter_deliveries=3)

    def handle(record: Any) -> None:
        if number(record) in (3, 5):
            raise ZeroDivisionError
        if number(record) == 9:
            raise KeyError("named")
        done[number(record)] += 1

    watch = stop_when(consumer, lambda: work.lag() == 0)
    consumer.work(handle, workers=3, rejected=KeyError)
    watch.join(WITHIN_S)
    assert done == Counter(set(range(COUNT)) - {3, 5, 9})
    letters = {int(one.value or b""): dict(one.headers) for one in work.broker.records(f"{work.topic}-dead")}
    assert set(letters) == {3, 5, 9}
    assert b"delivery 3 failed" in (letters[3]["dead-letter-reason"] or b"")


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(("of", "name"), [(ShareRecord, "_of"), (Hold, "move"), (Driver, "now")])
def test_ctrl_c_in_a_call_accepts_no_record_that_was_not_given_and_fails_for_ever(
    work: Jobs, monkeypatch: pytest.MonkeyPatch, of: type, name: str, loops: bool
) -> None:
    """The next poll accepted them, or every poll and `close` failed."""
    function, thread, called = getattr(of, name), threading.get_ident(), Counter[int]()

    def interrupted(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments[isinstance(arguments[0], type) :], **named)
        called[threading.get_ident()] += 1
        if called[thread] in (1, 5, 40) and threading.get_ident() == thread:
            called[thread] += 1
            raise KeyboardInterrupt
        return result

    done: Counter[int] = Counter()
    consumer = work.consumer("implicit", fetch_max_wait_ms=50, max_poll_records=5)
    monkeypatch.setattr(of, name, classmethod(interrupted) if name == "_of" else interrupted)
    deadline = time.monotonic() + WITHIN_S
    while len(done) < COUNT:
        assert time.monotonic() < deadline, f"{sorted(done)} came"
        with suppress(KeyboardInterrupt):
            for record in consumer if loops else consumer.poll(1.0):
                done[number(record)] += 1
                if len(done) == COUNT:
                    break
    monkeypatch.undo()
    consumer.close()
    assert set(done) == set(range(COUNT))


def test_a_pool_that_an_interrupt_ends_finishes_the_records_in_work(work: Jobs) -> None:
    done: Counter[int] = Counter()
    consumer = work.consumer()

    def handle(record: Any) -> None:
        done[number(record)] += 1
        if sum(done.values()) == 10:
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        consumer.work(handle, workers=4)
    consumer.close()
    check(work, done, 1)


def test_tasks_are_cancelled_with_the_pool_and_their_records_given_again(work: Jobs) -> None:
    done: Counter[int] = Counter()

    async def program() -> None:
        blocked = asyncio.Event()
        running = 0

        async def handle(record: Any) -> None:
            nonlocal running
            if sum(done.values()) < 20:
                done[number(record)] += 1
                return
            running += 1
            if running == 5:
                blocked.set()
            await asyncio.Event().wait()

        async with work.async_consumer() as consumer:
            pool = asyncio.create_task(consumer.work(handle, workers=5))
            await asyncio.wait_for(blocked.wait(), WITHIN_S)
            with pytest.raises(IllegalStateError, match="workers take the records"):
                await consumer.poll()
            pool.cancel()
            await asyncio.gather(pool, return_exceptions=True)

    asyncio.run(program())
    check(work, done, 0)


def test_a_handler_over_its_time_is_cancelled_and_its_record_goes_to_another(work: Jobs) -> None:
    done: Counter[int] = Counter()

    async def program() -> None:
        async def handle(record: Any) -> None:
            if number(record) == 5 and record.delivery_count == 1:
                await asyncio.Event().wait()
            done[number(record)] += 1
            if sum(done.values()) == COUNT:
                consumer.wakeup()

        async with work.async_consumer() as consumer:
            await consumer.work(handle, workers=3, time_limit=0.5)

    asyncio.run(program())
    check(work, done, 0)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"workers": 0}, ValueError, "workers is a whole number from 1 on, not 0"),
    ({"time_limit": 0}, ValueError, "a number of seconds above 0, or None"),
    ({"rejected": "ValueError"}, TypeError, "classes of exceptions such as"),
]


@every_case("options, kind, told", WRONG, lambda case: str(case[0]))
def test_wrong_terms_are_refused(options: dict[str, Any], kind: type[Exception], told: str) -> None:
    consumer: ShareConsumer[Any, Any] = ShareConsumer(bootstrap_servers="127.0.0.1:1", group_id="g")
    with pytest.raises(kind, match=told):
        consumer.work(print, **options)


# Two members, locks, faults


def test_no_two_members_ever_hold_one_record_under_one_lock(work: Jobs) -> None:
    """Four members release, accept and stall; the delivery counts of each record are 1, 2, 3 ... without a repeat."""
    seen: dict[int, list[int]] = {n: [] for n in range(COUNT)}
    members = [work.consumer(fetch_max_wait_ms=20) for _ in range(4)]
    turn = 0
    while work.lag():
        turn += 1
        for place, member in enumerate(members):
            for record in member.poll(0.05):
                seen[number(record)].append(record.delivery_count)
                if (number(record) + turn + place) % 3 and record.delivery_count < 4:
                    record.release()
                else:
                    record.accept()
            member.commit_sync()
    assert all(counts == list(range(1, len(counts) + 1)) for counts in seen.values()), seen
    assert all(seen.values())


def test_a_member_that_stalls_beyond_its_locks_loses_its_records_to_another(work: Jobs) -> None:
    done: Counter[int] = Counter()
    slow = work.consumer()
    for record in take(slow, 5):
        record.accept()
    work.broker.control.expire_locks(work.group)
    errors = slow.commit_sync()
    assert any(errors.values())
    slow.close()
    check(work, done, 0)


def test_records_that_reach_the_delivery_limit_are_archived(broker: Broker) -> None:
    with jobs(broker, share_delivery_count_limit=2) as work:
        work.put(1, 2, 3)
        consumer = work.consumer()
        for delivery in (1, 2):
            records = take(consumer, 3)
            assert (numbers(records), {record.delivery_count for record in records}) == ([1, 2, 3], {delivery})
            work.broker.control.expire_locks(work.group, work.topic)
            for record in records:
                record.accept()
            failed = any(consumer.commit_sync().values())
            assert failed is (delivery == 1), "what is behind the start of the group counts as done"
        eventually(lambda: work.lag() == 0)
        with pytest.raises(LookupError, match=r"holds no records of elsewhere; groups with records in work: .*workers"):
            work.broker.control.expire_locks(work.group, "elsewhere")


@pytest.mark.parametrize("api", ["ShareFetch", "ShareAcknowledge"])
@pytest.mark.parametrize("executed", [False, True])
def test_connections_that_are_cut_lose_nothing(work: Jobs, api: str, executed: bool) -> None:
    done: Counter[int] = Counter()
    work.broker.control.drop(api, 3, executed=executed, group_id=work.group)
    consumer = work.consumer(fetch_max_wait_ms=50)
    while work.lag():
        for record in consumer.poll(0.2):
            with record:
                done[number(record)] += 1
        consumer.commit_sync()
    assert set(done) == set(range(COUNT)), "a record was lost"


def test_a_letter_that_is_not_taken_keeps_its_record(work: Jobs) -> None:
    consumer = work.consumer(dead_letter_topic=f"{work.topic}-dead", default_api_timeout_ms=1_000)
    (first, *rest) = take(consumer, 1)
    for record in rest:
        record.release()
    work.broker.control.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", None, topic=f"{work.topic}-dead")
    with pytest.raises(DeadLetterError):
        consumer.dead_letter(first, "by hand")
    work.broker.control.clear_faults()
    consumer.dead_letter(first, "by hand")
    consumer.commit_sync()
    (letter,) = work.broker.records(f"{work.topic}-dead")
    assert dict(letter.headers)["dead-letter-reason"] == b"by hand"
    consumer.close()
    done = Counter([number(first)])
    check(work, done, 0)


# Killed

PROGRAM = """
import sys
from partita import ShareConsumer
bootstrap, group, topic = sys.argv[1:]
with ShareConsumer(bootstrap_servers=bootstrap, group_id=group, share_acknowledgement_mode="explicit") as consumer:
    consumer.subscribe(topic)
    for record in consumer:
        with record:
            print(int(record.value), flush=True)
"""


@pytest.mark.case("SG-P24")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_loses_nothing(work: Jobs, tmp_path: Path, how: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done: Counter[int] = Counter()
    with subprocess.Popen(
        [sys.executable, str(program), work.bootstrap, work.group, work.topic],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            done[int(line)] += 1
            if sum(done.values()) == 15:
                process.send_signal(how)
    check(work, done, COUNT)
