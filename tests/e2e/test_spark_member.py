"""The offset logic of a query as a real member of a group on a real broker, beside real consumers; no JVM needed.

Issue 13, item 1: static ids, virtual members, revocation between batches, fencing, AvailableNow.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from partita import Broker, Consumer
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.cluster.group_members import GroupMembers, anywhere, consumer_options
from partita.spark.cores import member_count
from partita.spark.planning.offsets import decode
from partita.spark.planning.starts import SourceError
from partita.spark.planning.stream_core import StreamCore
from partita.spark.settings.options import parse_source
from partita.system_clock import SystemClock

PARTITIONS = 4


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(
        {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.min.heartbeat.interval.ms": 100}
    ) as broker:
        yield broker


class Query:
    """A query whose engine is the test: each trigger runs its batch at once."""

    def __init__(self, broker: Broker, topic: str, **options: str) -> None:
        given = {
            "kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest",
            "group": topic, "groupMode": "member", "queryName": "q", "offsetPollMs": "0",
        } | options  # fmt: skip
        checked = parse_source({name.replace("__", "."): value for name, value in given.items()})
        clock = SystemClock()
        lookups = ClusterLookups(link_to(checked.client))
        self.members = GroupMembers(checked, clock, member_count(checked, lookups, cores=3))
        self.remarks: list[str] = []
        self.core = StreamCore(checked, lookups, clock, self.remarks.append, self.members)
        self.rows: list[tuple[int, int]] = []
        self.offset: dict[str, Any] | None = None

    def trigger(self) -> set[int]:
        """One trigger; the partitions of the offset afterwards."""
        start = self.core.initial_offset() if self.offset is None else self.offset
        self.offset = self.core.latest_offset(start, use_limits=True)
        if self.offset != start:
            for task in self.core.partitions(start, self.offset):
                self.rows += [(task.partition, offset) for offset in range(task.begin, task.end)]
        return {partition for _, partition in decode(self.offset).ranges}

    def until(self, holds: Any) -> None:
        """Trigger until it holds; a bound keeps a fault from running for ever."""
        limit = time.monotonic() + 120
        while time.monotonic() < limit:
            self.trigger()
            if holds():
                return
        raise AssertionError("it never came to hold")


class Beside:
    """A plain consumer of the same group, in a thread of its own."""

    def __init__(
        self, broker: Broker, topic: str, strategy: str = "range,cooperative-sticky", protocol: str = "classic"
    ) -> None:
        self.rows: list[tuple[int, int]] = []
        self.held: set[int] = set()
        self._ends = threading.Event()
        of_protocol: dict[str, Any] = {"group_protocol": "consumer"}
        if protocol == "classic":
            of_protocol = {"partition_assignment_strategy": strategy.split(","), "heartbeat_interval_ms": 100}
        self._consumer = Consumer(
            bootstrap_servers=broker.bootstrap, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False,
            **of_protocol,
        )  # fmt: skip
        self._topic = topic
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._consumer as consumer:
            consumer.subscribe([self._topic])
            while not self._ends.is_set():
                polled = consumer.poll(0.05)
                self.rows += [(record.partition, record.offset) for record in polled]
                if polled:
                    consumer.commit()
                self.held = {tp.partition for tp in consumer.assignment()}

    def end(self) -> None:
        self._ends.set()
        self._thread.join(120)


def fill(broker: Broker, topic: str, count: int) -> None:
    for partition in range(PARTITIONS):
        broker.produce(topic, *[b"x"] * count, partition=partition)


def rows_of(count: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(PARTITIONS) for offset in range(count)]


def committed(broker: Broker, topic: str) -> dict[int, int]:
    return {partition: offset for (_, partition), offset in broker.committed(topic).items()}


CONSUMER = {"kafka__group__protocol": "consumer"}
CLASSIC = {"kafka__heartbeat__interval__ms": "100"}


@pytest.mark.parametrize(
    ("strategy", "query_speaks", "beside_speaks"),
    [
        ("range,cooperative-sticky", "classic", "classic"),
        ("cooperative-sticky", "classic", "classic"),
        ("", "consumer", "consumer"),
        ("", "consumer", "classic"),
        ("", "classic", "consumer"),
    ],
)
def test_partitions_move_between_batches_and_every_record_is_read_once(
    broker: Broker, strategy: str, query_speaks: str, beside_speaks: str
) -> None:
    """Issue 13, item 1: revocation with both protocols of groups, and with a group that mixes them."""
    topic = f"moves-{len(strategy)}-{query_speaks}-{beside_speaks}"
    broker.create_topics({topic: PARTITIONS})
    fill(broker, topic, 10)
    options = CLASSIC if query_speaks == "classic" else CONSUMER
    if strategy:
        options = options | {"kafka__partition__assignment__strategy": strategy}
    query = Query(broker, topic, **options)
    assert query.trigger() == set(range(PARTITIONS))
    beside = Beside(broker, topic, strategy or "range,cooperative-sticky", protocol=beside_speaks)
    try:
        query.until(lambda: len(beside.held) == 2)
        fill(broker, topic, 5)
        query.until(lambda: len(query.rows) + len(beside.rows) >= 15 * PARTITIONS)
        assert {partition for partition, offset in query.rows if offset >= 10}.isdisjoint(beside.held)
    finally:
        beside.end()
    fill(broker, topic, 1)
    query.until(lambda: len(query.rows) + len(beside.rows) >= 16 * PARTITIONS)
    query.until(lambda: committed(broker, topic) == dict.fromkeys(range(PARTITIONS), 16))
    assert sorted(query.rows + beside.rows) == rows_of(16)
    assert beside.rows, "the consumer read nothing"
    assert query.core.failed_commits == 0
    query.members.leave()


@pytest.mark.parametrize(("speaks", "state"), [("classic", "PreparingRebalance"), ("consumer", "Reconciling")])
def test_a_batch_under_way_keeps_its_partitions_until_it_is_committed(broker: Broker, speaks: str, state: str) -> None:
    """The members beat on and are told to give partitions up; they do so when Spark asks for the next batch."""
    topic = f"under-way-{speaks}"
    broker.create_topics({topic: PARTITIONS})
    query = Query(broker, topic, **(CLASSIC if speaks == "classic" else CONSUMER))
    query.trigger()
    fill(broker, topic, 10)
    query.trigger()
    beside = Beside(broker, topic, protocol=speaks)
    try:
        assert broker.wait_group(topic, state=state, members=2) is not None
        assert beside.held == set()
        assert max(committed(broker, topic).values(), default=0) == 0, "the batch is not proven yet"
        query.until(lambda: len(beside.held) == 2)
        assert committed(broker, topic) == dict.fromkeys(range(PARTITIONS), 10)
    finally:
        beside.end()
    assert sorted(query.rows) == rows_of(10)
    assert beside.rows == []
    query.members.leave()


def test_a_query_that_joins_cooperatively_has_its_share_before_its_first_batch(broker: Broker) -> None:
    """It gets nothing at first; a batch begun then would keep the others waiting until its end (seen in the demo)."""
    topic, strategy = "share-at-once", "cooperative-sticky"
    broker.create_topics({topic: PARTITIONS})
    beside = Beside(broker, topic, strategy)
    try:
        assert broker.wait_group(topic, state="Stable", members=1) is not None
        query = Query(
            broker, topic, kafka__partition__assignment__strategy=strategy, kafka__heartbeat__interval__ms="100"
        )
        assert len(query.members.take_part().tenures) == PARTITIONS // 2
        query.members.leave()
    finally:
        beside.end()


def test_a_restarted_query_keeps_its_partitions_without_a_rebalance(broker: Broker) -> None:
    broker.create_topics({"restart": PARTITIONS})
    fill(broker, "restart", 3)
    first = Query(broker, "restart", kafka__heartbeat__interval__ms="100")
    first.trigger()
    generation = decode(first.offset or {}).member_epoch
    second = Query(broker, "restart")
    second.offset = first.offset
    fill(broker, "restart", 2)
    assert second.trigger() == set(range(PARTITIONS))
    assert decode(second.offset or {}).member_epoch == generation
    second.trigger()
    assert sorted(first.rows + second.rows) == rows_of(5)
    assert committed(broker, "restart") == dict.fromkeys(range(PARTITIONS), 5)
    with pytest.raises(SourceError, match="has joined group restart as spark-q-0: give each query"):
        first.until(lambda: False)
    second.members.leave()


@pytest.mark.parametrize("count", ["3", "auto"])
def test_virtual_members_take_a_larger_share(broker: Broker, count: str) -> None:
    """With auto there is one for each of the three cores that `Query` speaks of."""
    topic = f"share-{count}"
    broker.create_topics({topic: PARTITIONS})
    query = Query(broker, topic, groupMembers=count, kafka__heartbeat__interval__ms="100")
    query.trigger()
    beside = Beside(broker, topic)
    try:
        query.until(lambda: len(beside.held) == 1)
        assert len(query.members.take_part().tenures) == 3
    finally:
        beside.end()
        query.members.leave()


def test_there_are_no_more_automatic_members_than_partitions(broker: Broker) -> None:
    broker.create_topics({"few": 2})
    query = Query(broker, "few", groupMembers="auto")
    query.trigger()
    assert len(query.members._members) == 2
    query.members.leave()


def test_a_member_that_was_put_out_of_the_group_loses_its_commit_and_nothing_else(broker: Broker) -> None:
    """As after a batch longer than max.poll.interval.ms: the commit is refused and counted, the records stand."""
    broker.create_topics({"fenced": PARTITIONS})
    fill(broker, "fenced", 4)
    query = Query(broker, "fenced")
    query.trigger()
    group = broker.wait_group("fenced", state="Stable", members=1)
    assert group is not None
    broker.control.expire_session("fenced", group.members[0].member_id)
    fill(broker, "fenced", 1)
    query.trigger()
    assert query.core.fenced_commits == query.core.failed_commits == 1
    assert any("1 because the partitions had moved" in remark for remark in query.remarks)
    query.trigger()
    assert sorted(query.rows) == rows_of(5)
    assert committed(broker, "fenced") == dict.fromkeys(range(PARTITIONS), 5)
    query.members.leave()


def test_a_silent_engine_loses_its_partitions_at_its_own_deadline(broker: Broker) -> None:
    """The engine stopped calling for longer than max.poll.interval.ms: the member beats no more."""
    broker.create_topics({"silent": PARTITIONS})
    timeouts = {"kafka__max__poll__interval__ms": "1000", "kafka__session__timeout__ms": "6000"}
    query = Query(broker, "silent", **timeouts)
    query.trigger()
    (member,) = query.members._members
    heard = threading.Event()
    member.consumer.on_note(lambda note: heard.set() if note.kind == "poll_interval_exceeded" else None)
    assert broker.wait_group("silent", members=0, timeout=60) is not None
    member.consumer.poll(0, max_records=0)
    assert heard.is_set()
    query.members.leave()


def test_an_available_now_run_leaves_the_group_at_its_end(broker: Broker) -> None:
    broker.create_topics({"now": PARTITIONS})
    fill(broker, "now", 2)
    query = Query(broker, "now")
    query.core.prepare_available_now()
    fill(broker, "now", 2)
    query.trigger()
    assert sorted(query.rows) == rows_of(2)
    query.trigger()
    assert committed(broker, "now") == dict.fromkeys(range(PARTITIONS), 2)
    assert broker.wait_group("now", state="Empty", members=0) is not None


def test_a_pattern_means_the_same_to_the_members_as_to_the_read() -> None:
    assert anywhere("(?i)PATTERN-1").fullmatch("by-pattern-1")
    assert anywhere("^by|x").fullmatch("by-pattern-1")
    assert not anywhere("^pattern").fullmatch("by-pattern-1")


def test_the_members_have_the_options_of_the_read() -> None:
    options = parse_source(
        {
            "kafka.bootstrap.servers": "h:1", "subscribe": "t", "group": "g", "groupMode": "member",
            "groupInstanceId": "mine", "groupMembers": "2", "kafka.session.timeout.ms": "9000", "kafka.unknown": "x",
        }
    )  # fmt: skip
    found = consumer_options(options, 1)
    assert found["group.instance.id"] == "mine-1"
    assert found["session.timeout.ms"] == "9000"
    assert "unknown" not in found
