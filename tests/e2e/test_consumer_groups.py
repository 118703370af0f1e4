"""Stories of consumers on a real broker over real sockets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from partita import Admin, Broker, Consumer
from partita.consumer.errors import WakeupError
from partita.designs.zookeeper.ports import free_ports
from partita.net.cluster import Cluster
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=4) as running:
        yield running


async def _send(bootstrap: str, topic: str, partition: int, values: list[bytes]) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.topics([topic], create=True)
        leader = await cluster.leader_for(topic, partition, create=True)
        records = build_batch([(1_000 + i, b"k", value, ()) for i, value in enumerate(values)])
        data = [PartitionProduceData(index=partition, records=records)]
        topic_id = cluster.view.topic_id(topic)
        request = ProduceRequest(
            acks=-1, timeout_ms=5_000, topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)]
        )
        answer = await cluster.request(leader.id, request)
        assert answer.responses[0].partition_responses[0].error_code == 0


def send(broker: Broker, topic: str, values: dict[int, list[bytes]]) -> None:
    for partition, some in values.items():
        asyncio.run(_send(broker.bootstrap, topic, partition, some))


def until(is_so: Callable[[], bool], consumers: list[Any], seconds: float = 60) -> None:
    """Poll these consumers in turn until something is the case."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        for consumer in consumers:
            consumer.poll(0.02)


def read_on(consumer: Consumer, seen: list[Any]) -> int:
    """Poll once, add the values to `seen`, and return how many there are by now."""
    seen += [record.value for record in consumer.poll(0.1)]
    return len(seen)


def test_records_are_read_committed_and_resumed(broker: Broker) -> None:
    send(broker, "t", {p: [b"%d-%d" % (p, i) for i in range(100)] for p in range(4)})
    seen: list[Any] = []
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        end = time.monotonic() + 60
        while len(seen) < 400 and time.monotonic() < end:
            seen += [r.value for r in consumer.poll(0.5)]
        consumer.commit()
        assert set(consumer.lag().values()) == {0}
    assert len(set(seen)) == 400
    send(broker, "t", {2: [b"later"]})
    with Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.subscribe(["t"])
        for record in consumer:
            assert record.value == b"later"
            break


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_three_members_share_and_one_leaves(broker: Broker, strategy: str) -> None:
    send(broker, "t", {0: [b"x"]})
    options: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap,
        "group_id": strategy,
        "partition_assignment_strategy": [strategy],
        "heartbeat_interval_ms": 100,
    }
    members = [Consumer(**options) for _ in range(3)]
    for member in members:
        member.subscribe(["t"])

    def is_shared(some: list[Consumer]) -> bool:
        held = [m.assignment() for m in some]
        return sum(map(len, held)) == 4 and len(set().union(*held)) == 4 and all(held)

    until(lambda: is_shared(members), members)
    members[0].close()
    until(lambda: is_shared(members[1:]), members[1:])
    for member in members[1:]:
        member.close()


@pytest.mark.case("BM-082")
@pytest.mark.parametrize("is_noticed", [False, True])
def test_a_topic_that_is_deleted_and_created_again_is_read_from_its_start(is_noticed: bool) -> None:
    """Also if the consumer gives its partitions up meanwhile: it commits nothing in a topic that it knows is gone.

    The timer of automatic commits is off: one that comes before the consumer knows anything would count for the new
    topic, for commits speak of names.
    """
    options: dict[str, Any] = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 3_600_000}
    with Broker(auto_create_topics_enable=False) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topic("t", 1)
        send(broker, "t", {0: [b"old"] * 5})
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="g", **options) as consumer:
            consumer.subscribe(["t"])
            seen: list[Any] = []
            until(lambda: read_on(consumer, seen) == 5, [])
            consumer.commit()
            admin.delete_topics("t")
            if is_noticed:
                until(lambda: "t" in consumer._calls._core.metadata.missing, [])  # it polls only afterwards
            admin.create_topic("t", 1)
            send(broker, "t", {0: [b"new %d" % i for i in range(8)]})
            seen.clear()
            until(lambda: read_on(consumer, seen) == 8, [])
            assert seen == [b"new %d" % i for i in range(8)]


@pytest.mark.case("CC-062", "BM-153")
def test_a_handler_that_blocks_keeps_its_membership(broker: Broker) -> None:
    send(broker, "t", {0: [b"x"]})
    session_ms = 30_000
    options: dict[str, Any] = {"session_timeout_ms": session_ms, "heartbeat_interval_ms": 100, "group_id": "busy"}
    with Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:
        lost: list[Any] = []
        consumer.subscribe(["t"], on_revoked=lost.append, on_lost=lost.append)
        until(lambda: bool(consumer.assignment()), [consumer])
        generation = consumer.group_metadata().generation_id
        beats = broker.control.observe("Heartbeat")
        for turn in range(1, 6):
            end = time.monotonic() + 60
            while beats.hits < 3 * turn:
                assert time.monotonic() < end, "nobody beats while the handler is busy"
                sum(range(10_000))
            broker.control.advance_clock(session_ms // 2)
        consumer.poll(0.1)
        assert lost == []
        assert consumer.group_metadata().generation_id == generation


@pytest.mark.case("CC-199")
def test_cancelled_polls_lose_and_double_nothing(broker: Broker) -> None:
    count = 3_000
    send(broker, "t", {0: [b"%d" % i for i in range(count)]})

    async def read() -> list[int]:
        seen: list[int] = []
        async with Consumer(bootstrap_servers=broker.bootstrap, max_poll_records=7) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            turn = 0
            while len(seen) < count:
                task = asyncio.create_task(consumer.poll(1.0))
                for _ in range(turn % 4):
                    await asyncio.sleep(0)
                turn += 1
                task.cancel()
                try:
                    seen += [r.offset for r in await task]
                except asyncio.CancelledError:
                    seen += [r.offset for r in await consumer.poll(0.5)]
        return seen

    assert asyncio.run(read()) == list(range(count))


def test_an_async_member_with_async_callbacks(broker: Broker) -> None:
    send(broker, "t", {1: [b"a", b"b"]})
    heard: list[str] = []

    async def story() -> list[bytes]:
        async with Consumer(bootstrap_servers=broker.bootstrap, group_id="a", auto_offset_reset="earliest") as consumer:

            async def assigned(partitions: Any) -> None:
                await asyncio.sleep(0)
                heard.append("assigned")
                assert await consumer.position(("t", 1)) == 0

            consumer.subscribe("t", on_assigned=assigned, on_revoked=lambda partitions: heard.append("revoked"))
            seen: list[Any] = []
            async for record in consumer:
                seen.append(record.value)
                if len(seen) == 2:
                    break
            await consumer.commit()
            return seen

    assert asyncio.run(story()) == [b"a", b"b"]
    assert heard == ["assigned", "revoked"]


def test_wakeup_from_another_thread(broker: Broker) -> None:
    send(broker, "t", {0: [b"x"]})
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_end()
        threading.Timer(0.1, consumer.wakeup).start()
        started = time.monotonic()
        with pytest.raises(WakeupError):
            consumer.poll(30)
        assert time.monotonic() - started < 20


@pytest.mark.case("CC-073")
@pytest.mark.parametrize("in_group", [True, False])
def test_a_broker_restart_is_survived(tmp_path: Any, in_group: bool) -> None:
    port = free_ports(1)[0]
    with Broker(data_dir=tmp_path, port=port) as first:
        send(first, "t", {0: [b"before"]})
        consumer = Consumer(bootstrap_servers=first.bootstrap, group_id="g", auto_offset_reset="earliest")
        consumer.subscribe(["t"]) if in_group else consumer.assign([("t", 0)])
        seen: list[Any] = []
        until(lambda: read_on(consumer, seen) > 0, [])
        consumer.commit()
    with Broker(data_dir=tmp_path, port=port) as second:
        send(second, "t", {0: [b"after"]})
        end = time.monotonic() + 60
        while b"after" not in seen and time.monotonic() < end:
            seen += [r.value for r in consumer.poll(0.2)]
        assert seen == [b"before", b"after"]
        consumer.close()


def test_dead_letters(broker: Broker) -> None:
    send(broker, "t", {0: [b'{"a": 1}', b"no json", b'{"a": 2}']})
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap, "auto_offset_reset": "earliest"}
    good: list[Any] = []
    with Consumer(
        **options, value_deserializer="json", poison_policy="dead_letter", dead_letter_topic="dead"
    ) as consumer:
        consumer.assign([("t", 0)])
        while len(good) < 2:
            good += [r.value for r in consumer.poll(1)]
    assert good == [{"a": 1}, {"a": 2}]
    with Consumer(**options) as consumer:
        consumer.assign([("dead", p) for p in consumer.partitions_for("dead")])
        (record,) = next(iter([r for r in [consumer.poll(1) for _ in range(5)] if len(r)]))
        assert record.value == b"no json"
        assert dict(record.headers)["dead-letter-offset"] == b"1"


def test_arrow_from_the_broker(broker: Broker) -> None:
    send(broker, "t", {p: [b"%d" % i for i in range(1_000)] for p in range(4)})
    with Consumer(bootstrap_servers=broker.bootstrap, group_id="arrow", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        rows = 0
        end = time.monotonic() + 60
        while rows < 4_000 and time.monotonic() < end:
            batch = consumer.poll_arrow(1.0, value="str")
            rows += batch.num_rows if batch is not None else 0
        assert rows == 4_000
        assert consumer.end_offsets([("t", 0)]) == {("t", 0): 1_000}


@pytest.mark.case("CC-198")
def test_ten_restarts_of_the_broker_leave_no_partition_stuck(tmp_path: Any) -> None:
    port = free_ports(1)[0]
    with Broker(data_dir=tmp_path, port=port, num_partitions=4) as broker:
        send(broker, "t", {p: [b"first"] for p in range(4)})
    seen: set[tuple[int, int]] = set()
    options: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 50}
    with Consumer(bootstrap_servers=f"127.0.0.1:{port}", **options) as consumer:
        consumer.subscribe(["t"])
        for turn in range(10):
            with Broker(data_dir=tmp_path, port=port, num_partitions=4) as broker:
                send(broker, "t", {p: [b"%d" % turn] for p in range(4)})
                end = time.monotonic() + 60
                while len(seen) < 4 * (turn + 2):
                    assert time.monotonic() < end, f"stuck after restart {turn}: {sorted(seen)}"
                    seen |= {(r.partition, r.offset) for r in consumer.poll(0.1)}
        with Broker(data_dir=tmp_path, port=port, num_partitions=4):
            consumer.close()


INTERRUPTED = """
import signal, sys, threading, time
from partita import Consumer
consumer = Consumer(bootstrap_servers=sys.argv[1], group_id="g")
consumer.subscribe(["t"])
interrupted = []

def interrupt():
    interrupted.append(time.monotonic())
    signal.raise_signal(signal.SIGINT)

threading.Timer(0.7, interrupt).start()
try:
    while True:
        consumer.poll(60)
except KeyboardInterrupt:
    took = time.monotonic() - interrupted[0]
    consumer.close()
    print("clean", took < 20)
"""


@pytest.mark.case("CC-200")
def test_an_interrupt_ends_a_blocking_poll(broker: Broker) -> None:
    send(broker, "t", {0: [b"x"]})
    command = [sys.executable, "-c", INTERRUPTED, broker.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "clean True", done.stderr


WORKER = """
import sys
from partita import Consumer
with Consumer(bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest", enable_auto_commit=False,
              session_timeout_ms=30_000, heartbeat_interval_ms=300, max_poll_records=20) as consumer:
    consumer.subscribe(["t"])
    while True:
        records = consumer.poll(0.2)
        for record in records:
            print(record.partition, record.offset, flush=True)
        if len(records):
            consumer.commit()
            print("committed", flush=True)
"""


def test_members_killed_again_and_again_lose_nothing() -> None:
    per_partition = 400
    with Broker(num_partitions=3) as broker:
        send(broker, "t", {p: [b"%d" % i for i in range(per_partition)] for p in range(3)})
        seen: dict[tuple[int, int], int] = {}
        command = [sys.executable, "-c", WORKER, broker.bootstrap]
        for kill_after in (30, 60, 90, 10_000):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            watchdog = threading.Timer(60, process.kill)
            watchdog.start()
            assert process.stdout is not None
            for number, line in enumerate(process.stdout):
                if not line.endswith("\n"):
                    break  # the kill cut it
                if line.startswith("committed"):
                    if len(seen) == 3 * per_partition:
                        process.kill()
                    continue
                partition, offset = map(int, line.split())
                seen[partition, offset] = seen.get((partition, offset), 0) + 1
                if number == kill_after:
                    process.kill()
            watchdog.cancel()
            process.wait()
            for member_id in broker.control.members("g"):
                broker.control.expire_session("g", member_id)
        assert len(seen) == 3 * per_partition
        assert sum(seen.values()) - len(seen) <= 3 * 20
