"""Loops over the consumer: a record counts as passed once the next one is asked for (finding clients 2.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
        assert consumer.committed([T0])[T0].offset == record.offset == consumer.position(T0)
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


def test_a_second_loop_goes_on_where_the_first_broke(world: World) -> None:
    consumer = group(world)
    assert take(consumer, 5) == [0, 1, 2, 3, 4]
    assert take(consumer, 2) == [5, 6]


def test_next_passes_the_record_before(world: World) -> None:
    consumer = group(world)
    assert [next(consumer).offset for _ in range(3)] == [0, 1, 2]
    assert consumer.position(T0) == 2


def test_a_poll_after_a_loop_returns_what_is_in_hand_first(world: World) -> None:
    consumer = group(world, max_poll_records=20)
    take(consumer, 3)
    assert [r.offset for r in consumer.poll(1.0, max_records=4)] == [3, 4, 5, 6]
    assert consumer.position(T0) == 7
    rest = consumer.poll(1.0)
    assert [r.offset for r in rest] == list(range(7, 20))
    assert rest.next_offsets[T0].offset == 20
    assert next(iter(consumer.poll(1.0))).offset == 20


def test_poll_arrow_after_a_loop_goes_on_where_it_broke(world: World) -> None:
    pytest.importorskip("pyarrow")
    consumer = group(world)
    take(consumer, 3)
    offsets: list[int] = []
    while not offsets:
        batch = consumer.poll_arrow(1.0)
        offsets = [] if batch is None else batch.column("offset").to_pylist()
    assert offsets[0] == 3


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
    assert given == [*outer, ("inner", 2), ("inner", 3), ("inner", 4), ("outer", 5), ("outer", 6)]
    assert consumer.position(T0) == 6


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
    assert take(consumer, 4) == [0, 1, 2, 3]
    consumer.pause()
    assert not consumer.poll(0.1)
    consumer.resume()
    assert take(consumer, 3) == [4, 5, 6]


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
    """Members of one group that loop, break, fail and come back; `completed` counts the bodies that ended."""

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
        self.loops[member] = self.current[member] = None

    def complete(self, record: Any) -> None:
        self.completed[record.partition, record.offset] += 1

    def loop(self, member: int, count: int) -> None:
        for _ in range(count):
            if self.current[member] is not None:
                self.complete(self.current[member])
            loop = self.loops[member] = self.loops[member] or iter(self.members[member])
            self.current[member] = None
            self.current[member] = self._within(member, 2.0, lambda loop=loop: next(loop))
            if self.current[member] is None:
                return

    def poll(self, member: int, count: int) -> None:
        self.end_loop(member)
        found = self._within(member, 2.0, lambda: self.members[member].poll(0.5, max_records=count or None))
        for record in found or ():
            self.complete(record)

    def commit(self, member: int, _: int) -> None:
        self._within(member, 5.0, lambda: self.members[member].commit())

    def restart(self, member: int, _: int) -> None:
        """The body raises, and the `with` block closes the consumer."""
        self.end_loop(member)
        self._close(member)
        self.members[member] = self.new_member()

    def _close(self, member: int) -> None:
        """Who leaves in the middle of a rebalance cannot commit, as with Java's consumer: others read again."""
        self.has_failed |= self.members[member]._driver.core.member.is_rebalancing
        self._within(member, 60.0, self.members[member].close)

    def crash(self, member: int, _: int) -> None:
        self.end_loop(member)
        self.members[member]._driver.io.stop()
        self.has_failed = True
        self.members[member] = self.new_member()

    def cancel(self, member: int, waits: int) -> None:
        """The task is cancelled in one of the next waits of its loop."""
        waiter = self.members[member]._driver.waiter
        usual, left = waiter.wait, [waits]

        async def wait(*arguments: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Cancelled
            await usual(*arguments)

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
            self.end_loop(member)
            self._close(member)
        self.world.run(60_000)
        self.members, self.loops, self.current = [self.new_member()], [None], [None]
        there = {(p, n) for p in (0, 1) for n in range(self.world.logs["t", p].end)}
        for _ in range(30):
            self.loop(0, len(there) + 1)
            if there <= self.completed.keys() | self.letters.keys() and self.current[0] is None:
                break
        dealt_with = self.completed.keys() | self.letters.keys()
        assert there == dealt_with, f"neither processed nor put aside: {sorted(there - dealt_with)}"
        if not self.has_failed and not self.world.has_refused_a_commit:
            twice = {at: n for at, n in self.completed.items() if n > 1}
            assert not twice, f"processed again though nothing failed: {twice}"

    def async_loop(self, member: int, count: int) -> None:
        """`async for`, left by break in the body behind `count` records; what was in the body was not completed."""
        self.end_loop(member)
        loop = aiter(self.members[member]._calls)
        body = None
        for _ in range(count):
            if body is not None:
                self.complete(body)
            body = self._within(member, 2.0, lambda: run_blocking(anext(loop)))
            if body is None:
                return

    def until_end(self, member: int, count: int) -> None:
        """A loop up to the ends; it completes all it is given, or breaks off early."""
        self.end_loop(member)
        body = None
        loop = self.members[member].until_end()
        for _ in range(count * 10):
            if body is not None:
                self.complete(body)
            body = self._within(member, 2.0, lambda: next(loop, None))
            if body is None:
                return

    def hold(self, member: int, count: int) -> None:
        """A hold whose loop is left after `count` records, which were completed but for the last."""
        self.end_loop(member)
        consumer = self.members[member]
        found = self._within(member, 2.0, lambda: consumer.poll(0.5))
        if found is None:
            return
        with consumer.hold(found) as held:
            loop, body = iter(held), None
            for _ in range(count):
                if body is not None:
                    self.complete(body)
                body = self._within(member, 2.0, lambda loop=loop: next(loop, None))
                if body is None:
                    return

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
        batch = self._within(member, 2.0, lambda: self.members[member].poll_arrow(0.5))
        columns = () if batch is None else (batch.column(name).to_pylist() for name in ("partition", "offset"))
        for at in zip(*columns, strict=True):
            self.completed[at] += 1

    def unheard_dead_letter(self, member: int, _: int) -> None:
        """The next dead letter of this member is not acknowledged: the consumer stays at the record."""
        self.members[member]._calls._delivery._dead_letters.is_failing = True

    def new_member(self) -> Any:
        """A consumer whose unreadable records go to a stand-in for the dead-letter topic.

        It commits in `on_revoked`: records that come during a cooperative rebalance come again otherwise (decision 80).
        """
        consumer = group(self.world, **self.options)
        consumer.subscribe(["t"], on_revoked=lambda _: consumer.commit())
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
    "async_loop", "until_end", "hold", "pause_and_poll", "batch", "unheard_dead_letter",
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
        for record in held:
            if record.offset == 4:
                break
    assert consumer.position(T0) == 4
    assert [record.offset for record in consumer.poll(1.0)] == [4, 5, 6, 7, 8, 9]
