"""No callback ends a thread of a client, and a thread that ends all the same leaves no call waiting (clients, D4).

`sys.exit()` in a delivery callback, the commonest error handler, ended the producer's thread in silence.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Admin, AsyncConsumer, Broker, Consumer, Producer
from partita.assignors.range import RangeAssignor
from partita.consumer.errors import ConsumerError, IllegalStateError, RebalanceListenerError
from partita.net.errors import ThreadEndedError
from partita.producer.errors import ProducerClosedError, UndeliveredError

KINDS = [SystemExit, KeyboardInterrupt, GeneratorExit, type("Own", (BaseException,), {}), ValueError]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Admin(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topic("t", 1)
        yield running


def stored(broker: Broker, topic: str = "t") -> int:
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        return next(iter(consumer.end_offsets([(topic, 0)]).values()))


def raiser(kind: type[BaseException]) -> Callable[..., Any]:
    def call(*_: object) -> None:
        raise kind(1)

    return call


# The producer


class Acknowledged:
    """A producer's interceptor that raises."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.on_acknowledgement = raiser(kind)

    def on_send(self, record: Any) -> Any:
        return record


@each_kind
def test_what_delivery_callbacks_raise_is_logged_and_the_producer_goes_on(
    broker: Broker, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    heard = []
    options: dict[str, Any] = {"interceptor_classes": [Acknowledged(kind)], "bootstrap_servers": broker.bootstrap}
    with Producer(**options) as producer:
        for n in range(100):
            future = producer.send("t", b"%d" % n)
            future.add_done_callback(raiser(kind))
            future.add_done_callback(lambda done: heard.append(done.result().offset))
            if n == 50:
                producer.flush(60)
        producer.flush(60)
    assert (stored(broker), sorted(heard)) == (100, list(range(100)))
    logged = [record for record in caplog.records if "a callback of the producer raised" in record.message]
    assert len(logged) == 200
    assert all(record.exc_info and record.exc_info[0] is kind for record in logged)


@each_kind
def test_a_partitioner_that_raises_in_the_producers_thread_fails_its_record_only(
    broker: Broker, kind: type[BaseException]
) -> None:
    def choose(topic: str, key: Any, value: Any, partitions: int) -> int:
        if value == b"bad" and threading.current_thread().name == "partita-producer":
            raise kind("no partition")
        return 0

    with Producer(bootstrap_servers=broker.bootstrap, partitioner_class=choose) as producer:
        bad, *good = [producer.send("t", value) for value in (b"bad", b"good", b"good")]
        assert [future.result(60).offset for future in good] == [0, 1]
        assert isinstance(bad.exception(60), ValueError)
        assert "no partition" in str(bad.exception())
    assert stored(broker) == 2


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_exit_on_the_users_own_event_loop_ends_the_program_after_all_callbacks(
    broker: Broker, kind: type[BaseException]
) -> None:
    heard = []

    async def main() -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for n in range(10):
                future = producer.send("t", b"%d" % n)
                future.add_done_callback(raiser(kind))
                future.add_done_callback(lambda done: heard.append(done.result().offset))
            await producer.flush()
            await asyncio.sleep(60)

    with pytest.raises(kind):
        asyncio.run(main())
    assert (stored(broker), heard) == (10, list(range(10)))


def test_an_exit_in_a_callback_that_is_called_at_once_belongs_to_the_caller(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        sent = producer.send("t", b"v")
        sent.result(60)
        with pytest.raises(SystemExit):
            sent.add_done_callback(lambda _: sys.exit(3))
        assert producer.send("t", b"v").result(60).offset == 1


def break_loop(client: Any) -> None:
    """Take the selector away from the loop of a blocking client, as `os.closerange` in a daemon would."""
    loop = client._thread.loop
    loop.call_soon_threadsafe(loop._selector.close)
    client._thread._thread.join(60)
    assert client._thread.failure is not None
    assert loop.is_closed()


def test_a_producers_thread_that_ends_fails_what_waits_and_is_named_by_every_later_call(broker: Broker) -> None:
    outcomes: list[BaseException] = []

    def waiting(call: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                call()
            except BaseException as error:
                outcomes.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "buffer_memory": 100_000}
    producer = Producer(**options)
    producer.send("t", b"v").result(60)
    held = broker.control.hold("Produce")
    futures = [producer.send("t", b"x" * 10_000) for _ in range(10)]
    heard: list[object] = []
    futures[0].add_done_callback(lambda done: heard.append(done.exception()))
    waiters = [waiting(futures[1].result), waiting(producer.flush), waiting(lambda: producer.send("t", b"x" * 10_000))]
    while producer._producer._driver.waiting_threads == 0 or len(producer._thread._awaited) == 0:  # type: ignore[union-attr]
        threading.Event().wait(0.01)
    break_loop(producer)
    held.clear()
    for thread in waiters:
        thread.join(60)
        assert not thread.is_alive()
    calls: list[Callable[[], object]] = [
        producer.flush, lambda: producer.send("t", b"v"), lambda: producer.partitions_for("t"), producer.close
    ]  # fmt: skip
    for call in calls:
        outcomes.append(raised(call))
    told = "the thread partita-producer has ended: ValueError"
    assert len(outcomes) == 7
    assert [error for error in [*outcomes, *heard, futures[2].exception(0)] if told not in str(error)] == []
    assert {type(error) for error in outcomes} == {ThreadEndedError, ProducerClosedError, UndeliveredError}
    producer.close()


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011  the callers look at it
        call()
    return caught.value


def test_an_admins_thread_that_ends_is_named_by_every_later_call(broker: Broker) -> None:
    admin = Admin(bootstrap_servers=broker.bootstrap)
    admin.list_topics()
    break_loop(admin)
    for _ in range(2):
        assert "the thread partita-admin has ended: ValueError" in str(raised(admin.list_topics))
    admin.close()


def test_a_transaction_call_under_way_names_the_end_of_the_thread(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap, transactional_id="x")
    producer.init_transactions()
    break_loop(producer)
    for call in (producer.init_transactions, lambda: producer.transaction().__enter__()):
        assert "the thread partita-producer has ended" in str(raised(call))
    producer.close()


def test_a_producer_that_breaks_a_rule_says_so_instead_of_falling_silent(broker: Broker) -> None:
    producer = Producer(bootstrap_servers=broker.bootstrap)
    producer.send("t", b"v").result(60)
    producer._producer._driver.core._stale_topics = None  # type: ignore[assignment]  # no state of a right program
    waiting = producer.send("t", b"v")
    told = "the producer cannot go on: unsupported operand"
    assert told in str(waiting.exception(60))
    with pytest.raises(ProducerClosedError, match=told):
        producer.send("t", b"v")
    thread = producer._thread
    del producer
    assert thread is not None
    thread._thread.join(60)
    assert not thread._thread.is_alive()


def test_waiting_for_a_record_after_the_end_of_the_event_loop_is_refused(broker: Broker) -> None:
    async def main() -> Any:
        producer = await Producer(bootstrap_servers=broker.bootstrap).__aenter__()
        return producer, producer.send("t", b"v")

    _producer, future = asyncio.run(main())
    assert isinstance(raised(future.result), ProducerClosedError)


# The consumer


def read_all(consumer: Any, count: int, ways: tuple[type[BaseException], ...] = ()) -> list[int]:
    """Poll until that many records came; errors of these kinds may come in between."""
    found: list[int] = []
    while len(found) < count:
        try:
            found += [record.offset for record in consumer.poll(1.0)]
        except ways:
            continue
    return found


@pytest.fixture
def filled(broker: Broker) -> Broker:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for n in range(20):
            producer.send("t", b"%d" % n)
    return broker


def consumer_of(broker: Broker, **options: Any) -> Consumer[bytes, bytes]:
    return Consumer(bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest", **options)


@each_kind
def test_what_a_listener_raises_leaves_poll_and_the_consumer_goes_on(filled: Broker, kind: type[BaseException]) -> None:
    raised: list[type[BaseException]] = []

    def on_assigned(partitions: list[Any]) -> None:
        if partitions and not raised:
            raise kind(1)

    with consumer_of(filled) as consumer:
        consumer.subscribe(["t"], on_assigned=on_assigned)
        expected = RebalanceListenerError if issubclass(kind, Exception) else kind
        try:
            read_all(consumer, 1000)
        except expected as error:
            raised.append(type(error))
        assert read_all(consumer, 20) == list(range(20))
    assert raised == [expected]
    with consumer_of(filled) as consumer:
        assert next(iter(consumer.committed([("t", 0)]).values())).offset == 20  # type: ignore[union-attr]


@pytest.mark.parametrize("within", ["close", "unsubscribe", "rebalance"])
@pytest.mark.parametrize("call", ["close", "unsubscribe"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_callback_that_closes_or_unsubscribes_hears_of_its_partitions_once(
    filled: Broker, protocol: str, call: str, within: str
) -> None:
    """The call gives up the partitions, so it called the callback again, which made the call again, and so on."""
    heard: list[int] = []

    def on_revoked(partitions: list[Any]) -> None:
        heard.append(len(partitions))
        getattr(consumer, call)()

    consumer = consumer_of(filled, group_protocol=protocol)
    consumer.subscribe(["t"], on_revoked=on_revoked)
    assert read_all(consumer, 20) == list(range(20))
    if within == "rebalance" and protocol == "classic":
        consumer.enforce_rebalance()
        with pytest.raises(IllegalStateError, match="is closed" if call == "close" else "nothing is subscribed"):
            read_all(consumer, 1000)
    elif within == "unsubscribe":
        consumer.unsubscribe()
    consumer.close()
    assert heard == [1]
    with Admin(bootstrap_servers=filled.bootstrap) as admin:
        assert admin.describe_group("g").members == []


def test_a_task_that_a_callback_began_closes_the_consumer_with_its_callback(filled: Broker) -> None:
    heard: list[str] = []
    left: list[asyncio.Task[None]] = []

    async def program() -> None:
        is_assigned = asyncio.Event()

        async def close() -> None:
            await is_assigned.wait()
            await consumer.close()

        async def on_assigned(partitions: list[Any]) -> None:
            heard.append("assigned")
            left.append(asyncio.create_task(close()))

        async def on_revoked(partitions: list[Any]) -> None:
            heard.append("revoked")

        async with AsyncConsumer(bootstrap_servers=filled.bootstrap, group_id="g") as consumer:
            consumer.subscribe(["t"], on_assigned=on_assigned, on_revoked=on_revoked)
            while not consumer.assignment():
                await consumer.poll(0.1)
            is_assigned.set()
            await left[0]

    asyncio.run(program())
    assert heard == ["assigned", "revoked"]


@each_kind
@pytest.mark.parametrize("method", ["assign", "subscription_user_data", "on_assignment"])
def test_what_an_assignor_raises_leaves_poll_and_the_group_goes_on(
    filled: Broker, kind: type[BaseException], method: str
) -> None:
    class Once(RangeAssignor):
        name = "once"

    has_raised: list[str] = []

    def first_raises(self: Any, *given: Any) -> Any:
        if not has_raised:
            has_raised.append(threading.current_thread().name)
            raise kind(1)
        return getattr(super(Once, self), method)(*given)

    setattr(Once, method, first_raises)
    with consumer_of(filled, partition_assignment_strategy=[Once()]) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(IllegalStateError, match="assignor once") as caught:
            read_all(consumer, 1000)
        assert isinstance(caught.value.__cause__, kind)
        consumer.seek_to_beginning(consumer.assignment()) if consumer.assignment() else None
        assert read_all(consumer, 20) == list(range(20))
    assert has_raised


@pytest.mark.parametrize("kind", [ValueError, GeneratorExit])
def test_what_a_note_callback_raises_is_logged(
    filled: Broker, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    with consumer_of(filled) as consumer:
        consumer.on_note(raiser(kind))
        consumer.subscribe(["t"])
        assert read_all(consumer, 20) == list(range(20))
    logged = [record for record in caplog.records if "on_note's callback raised" in record.message]
    assert logged
    assert all(record.exc_info and record.exc_info[0] is kind for record in logged)


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "asyncio"])
def test_a_consumers_thread_that_ends_wakes_poll_and_is_named_by_every_later_call(
    filled: Broker, is_async: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)  # so that the loop has a selector that can be taken away

    def break_soon(consumer: Any) -> None:
        loop = consumer._driver.io._loop
        threading.Timer(0.2, lambda: loop.call_soon_threadsafe(loop._selector.close)).start()

    def check(error: BaseException) -> None:
        assert isinstance(error, ConsumerError)
        assert "I/O thread met an error it cannot go on from: ValueError" in str(error)

    def block() -> None:
        consumer = consumer_of(filled)
        consumer.subscribe(["t"])
        read_all(consumer, 20)
        break_soon(consumer)
        for call in (lambda: consumer.poll(600), consumer.assignment, consumer.commit, lambda: consumer.pause([])):
            check(raised(call))
        consumer.close()
        consumer.close()

    async def suspend() -> None:
        consumer = await consumer_of(filled).__aenter__()
        consumer.subscribe(["t"])
        while not await consumer.poll(1.0):
            pass
        break_soon(consumer)
        with pytest.raises(ConsumerError) as caught:
            await consumer.poll(600)
        check(caught.value)
        with pytest.raises(ConsumerError) as caught:
            await consumer.commit()
        check(caught.value)
        await consumer.close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(suspend()) if is_async else block()
    assert sum("I/O thread" in record.message for record in caplog.records) == 1


def test_work_that_exits_is_reported_by_the_next_poll(filled: Broker) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, consumer_of(filled, commit_done_only=True) as consumer:
        consumer.subscribe(["t"])
        while not (records := list(consumer.poll(1.0))):
            pass
        consumer.done(records[0], after=pool.submit(sys.exit, 3))
        with pytest.raises(ConsumerError, match=r"the work on t-0 at offset 0 failed: SystemExit\(3\)"):
            read_all(consumer, 1000)
