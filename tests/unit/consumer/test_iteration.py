"""Loops over the consumer: no record is given twice, and each counts as passed once more is asked for (0130)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.consumer.errors import DeadLetterError, WakeupError
from partita.consumer.shell.waiting import run_blocking
from partita.errors import KafkaError
from support.consumer.world import HOLD, World

T0, T1 = ("t", 0), ("t", 1)


def group(world: World, **options: Any) -> Any:
    consumer = world.consumer(group_id="g", **options)
    consumer.subscribe(["t"])
    return consumer


def take(consumer: Any, count: int) -> list[int]:
    """The offsets of a loop that breaks off in the body of the record behind these."""
    found: list[int] = []
    for record in consumer:
        if len(found) == count:
            break
        found.append(record.offset)
    return found


@pytest.fixture
def world() -> World:
    world = World({"t": 1})
    for _ in range(10):
        world.append("t", 0, 100)
    return world


def test_a_loop_that_breaks_and_closes_is_gone_on_where_it_broke(world: World) -> None:
    with group(world) as consumer:
        assert take(consumer, 10) == list(range(10))
    assert take(group(world), 3) == [10, 11, 12]


def test_commit_in_the_body_says_that_this_record_is_still_to_be_read(world: World) -> None:
    consumer = group(world, enable_auto_commit=False)
    for record in consumer:
        consumer.commit()
        assert consumer.committed([T0])[T0].offset == record.offset == consumer.position(T0) - 1
        if record.offset == 9:
            break


@pytest.mark.parametrize("auto", [True, False])
def test_commit_of_the_record_in_the_body_says_that_it_is_done(world: World, auto: bool) -> None:
    with group(world, enable_auto_commit=auto) as consumer:
        for record in consumer:
            if record.offset == 9:
                consumer.commit(record)
                break
    assert take(group(world), 1) == [10]


def test_commit_of_what_a_poll_returned(world: World) -> None:
    consumer = group(world, enable_auto_commit=False, max_poll_records=30)
    records = consumer.poll(1.0)
    consumer.poll(1.0)
    consumer.commit(records)
    assert consumer.committed([T0])[T0].offset == 30
    with pytest.raises(TypeError, match=r"a dict such as .*not list"):
        consumer.commit([T0])


def test_an_exception_under_with_leaves_the_record_to_be_read_again(world: World) -> None:
    def work() -> None:
        with group(world) as consumer:
            for record in consumer:
                assert record.offset < 7 or 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()
    assert take(group(world), 1) == [7]


def broken_at(loop: Iterator[Any], offset: int) -> list[int]:
    """The offsets that a loop gave, which was left by `break` in the body of the record at `offset`."""
    found: list[int] = []
    for record in loop:
        found.append(record.offset)
        if record.offset == offset:
            break
    return found


def polled(consumer: Any) -> Any:
    return next(iter(consumer.poll(1.0))).offset


def polled_as_arrow(consumer: Any) -> Any:
    pytest.importorskip("pyarrow")
    while (batch := consumer.poll_arrow(1.0)) is None:
        pass
    return batch.column("offset").to_pylist()[0]


async def _next_of(loop: AsyncIterator[Any]) -> Any:
    async for record in loop:
        return record.offset
    raise AssertionError("the loop ended")


GOING_ON: dict[str, Callable[[Any], Any]] = {
    "for": lambda consumer: broken_at(iter(consumer), 5)[0],
    "next": lambda consumer: next(consumer).offset,
    "iter": lambda consumer: next(iter(consumer)).offset,
    "until_end": lambda consumer: next(consumer.until_end()).offset,
    "poll": polled,
    "poll_arrow": polled_as_arrow,
    "hold": lambda consumer: next(iter(consumer.hold(consumer.poll(1.0)).__enter__())).offset,
    "async for": lambda consumer: run_blocking(_next_of(aiter(consumer._calls))),
    "anext": lambda consumer: run_blocking(anext(consumer._calls)).offset,
}


@pytest.mark.parametrize("how", GOING_ON)
@pytest.mark.parametrize("first", ["for", "next", "until_end"])
def test_whatever_follows_a_break_goes_on_behind_the_record_that_was_given(world: World, first: str, how: str) -> None:
    """Finding D7: the record of the body that broke off was given a second time."""
    consumer = group(world, max_poll_records=20)
    match first:
        case "for":
            broken_at(iter(consumer), 4)
        case "next":
            assert [next(consumer).offset for _ in range(5)] == [0, 1, 2, 3, 4]
        case _:
            broken_at(consumer.until_end(), 4)
    assert consumer.position(T0) == 5
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == 4, "its body may not have finished"
    assert GOING_ON[how](consumer) == 5


@pytest.mark.parametrize("count", [5, 20])
def test_a_record_left_by_break_is_passed_by_the_poll_that_follows(world: World, count: int) -> None:
    consumer = group(world, max_poll_records=20, enable_auto_commit=False)
    broken_at(iter(consumer), count - 1)
    consumer.poll(0, max_records=0)
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == count - 1, "this poll takes part in the group, and asks for nothing"
    consumer.pause()
    assert not consumer.poll(0.1)
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == count - 1, "this one keeps the membership during the work"
    consumer.resume()
    given = consumer.poll(1.0, max_records=1)
    assert [record.offset for record in given] == [count]
    consumer.commit({T0: count})
    assert consumer.position(T0) == count + 1


def test_a_body_that_raised_is_not_given_its_record_again_unless_it_seeks(world: World) -> None:
    consumer = group(world)
    tried: list[int] = []
    while len(tried) < 6:
        try:
            for record in consumer:
                tried.append(record.offset)
                assert record.offset != 2
                if len(tried) == 6:
                    break
        except AssertionError:
            if tried.count(2) == 1:
                consumer.seek(T0, record.offset)
    assert tried == [0, 1, 2, 2, 3, 4]


def test_a_killed_member_leaves_the_record_of_its_body_to_the_next(world: World) -> None:
    consumer = group(world, auto_commit_interval_ms=100)
    broken_at(iter(consumer), 4)
    consumer.commit()
    consumer._driver.io.stop()
    world.run(60_000)
    assert polled(group(world)) == 4


def test_arrow_after_a_loop_over_a_paused_partition_gives_nothing_twice(world: World) -> None:
    pytest.importorskip("pyarrow")
    consumer = group(world, max_poll_records=20)
    broken_at(iter(consumer), 4)
    consumer.pause([T0])
    assert consumer.poll_arrow(0.1) is None
    consumer.commit()
    assert consumer.committed([T0])[T0].offset == 4
    consumer.resume([T0])
    assert polled_as_arrow(consumer) == 5


def test_at_end_and_the_lag_say_in_the_body_that_nothing_follows(world: World) -> None:
    consumer = group(world)
    for record in consumer:
        assert consumer.lag()[T0] == 999 - record.offset
        if consumer.at_end():
            break
    assert record.offset == 999


def test_a_poll_after_a_loop_returns_what_is_in_hand_first(world: World) -> None:
    consumer = group(world, max_poll_records=20)
    broken_at(iter(consumer), 2)
    assert [r.offset for r in consumer.poll(1.0, max_records=4)] == [3, 4, 5, 6]
    assert consumer.position(T0) == 7
    rest = consumer.poll(1.0)
    assert [r.offset for r in rest] == list(range(7, 20))
    assert rest.next_offsets[T0].offset == 20
    assert next(iter(consumer.poll(1.0))).offset == 20


def test_a_seek_in_the_body_drops_the_rest_in_hand(world: World) -> None:
    consumer = group(world)
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if record.offset == 2:
            consumer.seek(T0, 500)
        if len(seen) == 5:
            break
    assert seen == [0, 1, 2, 500, 501]


def test_a_loop_goes_on_behind_what_a_loop_in_its_body_was_given(world: World) -> None:
    consumer = group(world)
    given: list[tuple[str, int]] = []
    for record in consumer:
        given.append(("outer", record.offset))
        if record.offset == 2:
            for inner in consumer:
                given.append(("inner", inner.offset))
                if inner.offset == 4:
                    break
        if record.offset == 6:
            break
    outer = [("outer", 0), ("outer", 1), ("outer", 2)]
    assert given == [*outer, ("inner", 3), ("inner", 4), ("outer", 5), ("outer", 6)]
    assert consumer.position(T0) == 7


def test_a_partition_paused_in_the_body_is_kept_and_comes_back(world: World) -> None:
    world.create("t", 2)
    world.append("t", 1, 5)
    consumer = group(world, max_poll_records=10)
    seen: list[tuple[int, int]] = []
    for record in consumer:
        seen.append((record.partition, record.offset))
        if seen == [(0, 0), (0, 1)]:
            consumer.pause([T0])
        if len(seen) == 7:
            consumer.resume([T0])
        if len(seen) == 10:
            break
    assert seen == [(0, 0), (0, 1), *((1, n) for n in range(5)), (0, 2), (0, 3), (0, 4)]


def test_a_rebalance_in_the_middle_of_a_batch_comes_at_the_next_record(world: World) -> None:
    world.create("t", 2)
    world.append("t", 1, 100)
    first = group(world, heartbeat_interval_ms=100)
    loop = iter(first)
    assert [next(loop).offset for _ in range(5)] == [0, 1, 2, 3, 4]
    second = group(world)
    for _ in range(10):
        second.poll(0.2)
        world.run(200)
        if second.assignment():
            break
        passed = next(loop)
    assert second.assignment(), "a slow loop must not hold the group until its batch is over"
    (gone,) = second.assignment()
    handed = [next(loop) for _ in range(20)]
    assert {(r.topic, r.partition) for r in handed} == first.assignment()
    assert gone not in {(r.topic, r.partition) for r in handed}
    resumed = {tp: at.offset for tp, at in first.committed([T0, T1]).items() if at is not None}
    assert resumed[T0] == passed.offset if gone == T0 else passed.offset < 100


def test_records_go_on_while_a_cooperative_rebalance_waits_for_an_answer(world: World) -> None:
    """Every poll of the loop returned at once and gave nothing: it kept a processor busy until the answer came."""
    consumer = group(world, partition_assignment_strategy=["cooperative-sticky"], heartbeat_interval_ms=100)
    loop = iter(consumer)
    assert next(loop).offset == 0
    world.script("OffsetCommit", HOLD)
    consumer.enforce_rebalance("test")
    polls: list[int] = []
    usual = consumer._driver.metrics.poll_started

    def counted() -> None:
        polls.append(1)
        usual()

    consumer._driver.metrics.poll_started = counted
    assert [next(loop).offset for _ in range(50)] == list(range(1, 51))
    assert len(polls) < 5


def test_the_last_record_of_a_batch_survives_a_break_a_pause_and_a_poll(world: World) -> None:
    """It was in nobody's hand any more once a poll had found its partition paused: never read, though not passed."""
    consumer = group(world, max_poll_records=5)
    assert broken_at(iter(consumer), 4) == [0, 1, 2, 3, 4]
    consumer.pause()
    assert not consumer.poll(0.1)
    consumer.resume()
    assert broken_at(iter(consumer), 6) == [5, 6]


@pytest.mark.parametrize("arrow", [False, True])
def test_no_automatic_commit_covers_what_a_poll_is_about_to_return(world: World, arrow: bool) -> None:
    """While a poll put a bad record aside, the timer of the commits could fire: a crash then lost the whole poll."""
    consumer = group(world, auto_commit_interval_ms=1_000, value_deserializer=readable, poison_policy="dead_letter",
                     dead_letter_topic="t-dead", max_poll_records=20)  # fmt: skip

    class Slow:
        async def send(self, error: Any) -> None:
            world.run(3_000)

        def close(self) -> None: ...

    consumer._calls._delivery._dead_letters = Slow()
    while not consumer.assignment():
        consumer.poll(0.1, max_records=0)
    if arrow:
        pytest.importorskip("pyarrow")
        world.run(3_000)
        first = consumer.poll_arrow(1.0).column("offset").to_pylist()[0]
    else:
        first = next(iter(consumer.poll(1.0))).offset
    world.run(10)
    committed = [p.committed_offset for s in world.sent("OffsetCommit") for t in s.message.topics for p in t.partitions]
    assert max(committed, default=0) <= first
    consumer.poll(0.1, max_records=0)
    world.run(1_500)


def test_a_loop_counts_as_polling(world: World) -> None:
    """One slow record after the other is no silence, as long as each is within max_poll_interval_ms."""
    consumer = group(world, max_poll_interval_ms=10_000, session_timeout_ms=6_000)
    lost: list[Any] = []
    consumer.subscribe(["t"], on_lost=lost.extend)
    loop = iter(consumer)
    for _ in range(10):
        next(loop)
        world.run(9_000)
    assert not lost
    assert len(world.sent("JoinGroup")) == 2


def test_auto_commit_runs_while_a_batch_is_worked_on(world: World) -> None:
    consumer = group(world, auto_commit_interval_ms=1_000)
    loop = iter(consumer)
    for _ in range(8):
        next(loop)
        world.run(500)
    next(loop)
    world.run(50)
    assert consumer.committed([T0])[T0].offset >= 5


class Cancelled(BaseException):
    """Stands for a cancelled task or Ctrl-C: comes out of a wait."""


def unreadable(offset: int) -> bool:
    return offset % 11 == 5


def readable(data: bytes) -> bytes:
    if unreadable(int(data[1:])):
        raise ValueError("this record cannot be read")
    return data


class Loops:
    """Members of one group that loop, break, fail and come back; `completed` counts what they were done with.

    They are done with a record that a loop gave when they ask for more, however they left its body. What a member was
    given and was not done with when it ended, or when the partition was taken away, has to come again; what stays its
    own must not.
    """

    def __init__(self, assignor: str) -> None:
        self.world = World({"t": 2})
        self.options = {
            "partition_assignment_strategy": [assignor],
            "max_poll_records": 7,
            "heartbeat_interval_ms": 300,
            "auto_commit_interval_ms": 2_000,
            "value_deserializer": readable,
            "poison_policy": "dead_letter",
            "dead_letter_topic": "t-dead",
        }
        self.completed: Counter[tuple[int, int]] = Counter()
        self.letters: Counter[tuple[int, int]] = Counter()
        self.has_failed = False
        self.members: list[Any] = [self.new_member()]
        self.loops: list[Iterator[Any] | None] = [None]
        self.current: list[Any] = [None]
        """The record that each member was given last by a loop, and has not asked behind."""

    def _within(self, member: int, seconds: float, do: Any) -> Any:
        """Call, and end the call with a wakeup after so much virtual time; None then."""
        is_over = False
        consumer = self.members[member]

        def wake() -> None:
            if not is_over:
                consumer.wakeup()

        self.world.after(round(seconds * 1000), wake)
        try:
            return do()
        except WakeupError:
            self.end_loop(member)
            return None
        except KafkaError:
            self.end_loop(member)
            return None
        finally:
            is_over = True

    def end_loop(self, member: int) -> None:
        """`break`, or an exception that the application catches: the loop is over, and the next call goes on."""
        self.loops[member] = None

    def complete(self, partition: int, offset: int) -> None:
        self.completed[partition, offset] += 1

    def ask(self, member: int) -> None:
        """The member asks for more: it is done with the record before."""
        done, self.current[member] = self.current[member], None
        if done is not None:
            self.complete(done.partition, done.offset)

    def given(self, member: int, partition: int, offset: int) -> None:
        seen = self.members[member].seen
        assert (partition, offset) not in seen, f"{partition}-{offset} came twice to a member that kept the partition"
        seen.add((partition, offset))

    def iterate(self, member: int, loop: Iterator[Any], count: int) -> None:
        """So many records of a loop, which is left in the body of the last one."""
        for _ in range(count):
            self.ask(member)
            record = self.current[member] = self._within(member, 2.0, lambda: next(loop, None))
            if record is None:
                return
            self.given(member, record.partition, record.offset)

    def loop(self, member: int, count: int) -> None:
        loop = self.loops[member] = self.loops[member] or iter(self.members[member])
        self.iterate(member, loop, count)

    def next(self, member: int, count: int) -> None:
        self.iterate(member, self.members[member], count)

    def poll(self, member: int, count: int) -> None:
        self.end_loop(member)
        self.ask(member)
        found = self._within(member, 2.0, lambda: self.members[member].poll(0.5, max_records=count or None))
        for record in found or ():
            self.given(member, record.partition, record.offset)
            self.complete(record.partition, record.offset)

    def commit(self, member: int, _: int) -> None:
        self._within(member, 5.0, lambda: self.members[member].commit())

    def commit_record(self, member: int, _: int) -> None:
        """The record in the body, or that a loop was left at, is done."""
        record, consumer = self.current[member], self.members[member]
        if record is not None:
            self.ask(member)
            has_committed = self._within(member, 5.0, lambda: consumer.commit(record) is None)
            self.has_failed |= not has_committed

    def retry(self, member: int, _: int) -> None:
        """The body raised, and the application wants its record again."""
        record, consumer = self.current[member], self.members[member]
        if record is not None and (record.topic, record.partition) in consumer.assignment():
            self.current[member] = None
            consumer.seek((record.topic, record.partition), record.offset)
            consumer.seen.discard((record.partition, record.offset))

    def rebalance(self, member: int, _: int) -> None:
        self.members[member].enforce_rebalance()

    def stop_at(self, member: int) -> None:
        """The process ends: it was not done with the record it was given last."""
        self.loops[member] = self.current[member] = None

    def restart(self, member: int, _: int) -> None:
        """The body raises, and the `with` block closes the consumer."""
        self.stop_at(member)
        self._close(member)
        self.members[member] = self.new_member()

    def _close(self, member: int) -> None:
        """Who leaves in the middle of a rebalance cannot commit, as with Java's consumer: others read again."""
        self.has_failed |= self.members[member]._driver.core.member.is_rebalancing
        self._within(member, 60.0, self.members[member].close)

    def crash(self, member: int, _: int) -> None:
        self.stop_at(member)
        self.members[member]._driver.io.stop()
        self.has_failed = True
        self.members[member] = self.new_member()

    def cancel(self, member: int, waits: int) -> None:
        """The task is cancelled in one of the next waits of its loop."""
        waiter = self.members[member]._driver.waiter
        usual, left = waiter.wait, [waits]

        async def wait(*arguments: Any, **named: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Cancelled
            await usual(*arguments, **named)

        waiter.wait = wait
        try:
            self.loop(member, 5)
        except Cancelled:
            self.end_loop(member)
        finally:
            waiter.wait = usual

    def append(self, _: int, count: int) -> None:
        for partition in (0, 1):
            self.world.append("t", partition, count + 1)

    def join(self, _: int, __: int) -> None:
        if len(self.members) < 2:
            self.members.append(self.new_member())
            self.loops.append(None)
            self.current.append(None)

    def finish(self) -> None:
        """Everybody closes; one member reads what is left."""
        for member in range(len(self.members)):
            self.stop_at(member)
            self._close(member)
        self.world.run(60_000)
        self.members, self.loops, self.current = [self.new_member()], [None], [None]
        there = {(p, n) for p in (0, 1) for n in range(self.world.logs["t", p].end)}
        for _ in range(30):
            self.loop(0, len(there) + 1)
            self.end_loop(0)
            if there <= self.completed.keys() | self.letters.keys() and self.current[0] is None:
                break
        dealt_with = self.completed.keys() | self.letters.keys()
        assert there == dealt_with, f"neither processed nor put aside: {sorted(there - dealt_with)}"
        if not self.has_failed and not self.world.has_refused_a_commit:
            twice = {at: n for at, n in self.completed.items() if n > 1}
            assert not twice, f"processed again though nothing failed: {twice}"

    def async_loop(self, member: int, count: int) -> None:
        """`async for`, left by break in the body behind `count` records."""
        self.end_loop(member)
        loop = aiter(self.members[member]._calls)
        self.iterate(member, iter(lambda: run_blocking(anext(loop)), None), count)

    def until_end(self, member: int, count: int) -> None:
        """A loop up to the ends, or broken off early."""
        self.end_loop(member)
        self.iterate(member, self.members[member].until_end(), count * 10)

    def hold(self, member: int, count: int) -> None:
        """A hold whose loop is left in the body behind `count` records."""
        self.end_loop(member)
        self.ask(member)
        consumer = self.members[member]
        found = self._within(member, 2.0, lambda: consumer.poll(0.5))
        if found is not None:
            with consumer.hold(found) as held:
                self.iterate(member, iter(held), count)
            if (left := self.current[member]) is not None:
                self.current[member] = None
                consumer.seen.discard((left.partition, left.offset))

    def pause_and_poll(self, member: int, polls: int) -> None:
        """Long work in the documented way: everything paused, polls to keep the membership, then resumed."""
        consumer = self.members[member]
        self.end_loop(member)
        consumer.pause()
        for _ in range(polls):
            found = self._within(member, 2.0, lambda: consumer.poll(0.1))
            assert not found, "everything is paused"
        consumer.resume()

    def batch(self, member: int, _: int) -> None:
        """Everything fetched as one Arrow batch, completed as a whole; deserializers do not apply."""
        self.end_loop(member)
        self.ask(member)
        batch = self._within(member, 2.0, lambda: self.members[member].poll_arrow(0.5))
        columns = () if batch is None else (batch.column(name).to_pylist() for name in ("partition", "offset"))
        for partition, offset in zip(*columns, strict=True):
            self.given(member, partition, offset)
            self.complete(partition, offset)

    def unheard_dead_letter(self, member: int, _: int) -> None:
        """The next dead letter of this member is not acknowledged: the consumer stays at the record."""
        self.members[member]._calls._delivery._dead_letters.is_failing = True

    def new_member(self) -> Any:
        """A consumer whose unreadable records go to a stand-in for the dead-letter topic.

        It commits in `on_revoked`: records that come during a cooperative rebalance come again otherwise (decision 80).
        """
        consumer = group(self.world, **self.options)
        seen: set[tuple[int, int]] = set()
        consumer.seen = seen

        def taken_away(partitions: list[Any]) -> None:
            seen.difference_update([at for at in seen if ("t", at[0]) in partitions])
            member = self.members.index(consumer)
            body = self.current[member]
            if body is not None and ("t", body.partition) in partitions:
                self.current[member] = None  # taken away during the work, in a poll of everything paused

        def revoked(partitions: list[Any]) -> None:
            consumer.commit()
            taken_away(partitions)

        consumer.subscribe(["t"], on_revoked=revoked, on_lost=taken_away)
        consumer._calls._delivery._dead_letters = Letters(self)
        return consumer

    def letter(self, partition: int, offset: int) -> None:
        assert unreadable(offset)
        self.letters[partition, offset] += 1


class Letters:
    """Stands where dead letters are sent to their topic."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self.is_failing = False

    def close(self) -> None: ...

    async def send(self, error: Any) -> None:
        if self.is_failing:
            self.is_failing = False
            raise DeadLetterError(error.topic_partition, error.offset, "t-dead", OSError("no broker"))
        self._loops.letter(error.topic_partition.partition, error.offset)


STEPS = (
    "loop", "loop", "loop", "end_loop", "poll", "commit", "restart", "crash", "cancel", "append", "join",
    "async_loop", "until_end", "hold", "pause_and_poll", "batch", "unheard_dead_letter", "next", "retry", "rebalance",
    "commit_record",
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(("range", "cooperative-sticky")),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.integers(0, 12)), max_size=25),
)
def test_every_record_is_processed_and_once_when_nothing_failed(
    assignor: str, steps: list[tuple[str, int, int]]
) -> None:
    loops = Loops(assignor)
    loops.append(0, 20)
    for name, member, number in steps:
        member = min(member, len(loops.members) - 1)
        if name == "end_loop":
            loops.end_loop(member)
        else:
            getattr(loops, name)(member, number)
    loops.finish()


def test_partitions_that_are_no_pairs_are_refused_with_what_is_expected(world: World) -> None:
    consumer = world.consumer(group_id="g")
    wrong: Any
    for wrong in (("t", 0), ["t"], "t", [("t", "0")]):
        with pytest.raises(TypeError, match=r"assign takes a list of \(topic, partition\) pairs"):
            consumer.assign(wrong)


def test_everything_paused_stays_paused_through_a_rebalance(world: World) -> None:
    """Clients 2.2: an eager rebalance un-paused what a keep-alive poll then threw away."""
    world.create("t", 2)
    world.append("t", 1, 5)
    consumer = group(world)
    consumer.poll(0.5)
    consumer.pause()
    consumer.enforce_rebalance()
    for _ in range(10):
        assert not len(consumer.poll(0.2))
    assert consumer.paused() == {T0, T1}
    consumer.resume()
    assert len(consumer.poll(0.5))


def test_what_a_hold_leaves_is_returned_by_the_next_poll(world: World) -> None:
    """Clients 2.2: breaking off a hold lost the rest of the batch."""
    consumer = group(world, max_poll_records=10)
    with consumer.hold(consumer.poll(1.0)) as held:
        broken_at(iter(held), 3)
    assert consumer.position(T0) == 3
    with consumer.hold(consumer.poll(1.0)) as held:
        for record in held:
            if record.offset == 5:
                consumer.commit(record)
                break
    assert [record.offset for record in consumer.poll(1.0)] == [6, 7, 8, 9]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_hold_of_records_in_hand_is_of_these_alone(world: World, count: int) -> None:
    """After a break a poll takes from the loop's rest; a hold that put them behind it lost them to the next break."""
    consumer = group(world)
    assert broken_at(iter(consumer), 0) == [0]
    with consumer.hold(consumer.poll(1.0, max_records=count)) as held:
        assert next(iter(held)).offset == 1
    consumer.commit()
    assert consumer.committed([("t", 0)])["t", 0].offset == 1
    with consumer.hold(consumer.poll(1.0, max_records=count)) as held:
        assert [record.offset for record in held] == list(range(1, 1 + count))
    assert take(consumer, 3) == list(range(1 + count, 4 + count))
