"""Stories of our consumer that have to end alike on Partita's broker and on Apache Kafka.

Each takes a `Stage`: where the broker is, and what differs between brokers when something is to be caused. Members are
polled in turn on the test's thread; nothing waits for time, only for facts. Must not know which broker it plays on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import confluent_kafka
import pytest

from partita import Admin, Consumer, GroupIdNotFoundError, Producer, SubscriptionPattern, UnreleasedInstanceIdError
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition

WITHIN_S = 60.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOLD_EARLY_MS = {"session_timeout_ms": 20_000, "heartbeat_interval_ms": 200, "metadata_max_age_ms": 500}
OF_CLASSIC = ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy")


@dataclass(frozen=True)
class Stage:
    """One broker. `expire(group, member_id)` may do nothing where only time ends a session."""

    bootstrap: str
    restart: Callable[[], None]
    expire: Callable[[str, str], None]
    transact: Callable[[str, list[bytes], bool], None]
    protocol: str = "classic"
    """The group protocol of our members."""


def member(stage: Stage, group: str, **options: Any) -> Consumer:
    return Consumer(**options_of(stage, group, **options))


def options_of(stage: Stage, group: str, **options: Any) -> dict[str, Any]:
    """The options of a member on this stage."""
    given = {**TOLD_EARLY_MS, "auto_offset_reset": "earliest", **options, "group_protocol": stage.protocol}
    if stage.protocol == "consumer":
        given = {name: value for name, value in given.items() if name not in OF_CLASSIC}
    return {"bootstrap_servers": stage.bootstrap, "group_id": group, **given}


def create(stage: Stage, topic: str, partitions: int) -> None:
    with Admin(bootstrap_servers=stage.bootstrap) as admin:
        admin.create_topic(topic, partitions)


def fill(stage: Stage, topic: str, values: dict[int, list[bytes]], **options: Any) -> None:
    """Values by partition, with timestamps of 1000 ms and up."""
    with Producer(bootstrap_servers=stage.bootstrap, **options) as producer:
        for partition, some in values.items():
            for number, value in enumerate(some):
                producer.send(topic, value, partition=partition, timestamp=1_000 + number)


def numbered(prefix: str, partitions: Iterable[int], count: int) -> dict[int, list[bytes]]:
    return {p: [b"%s-%d-%d" % (prefix.encode(), p, number) for number in range(count)] for p in partitions}


def all_of(values: dict[int, list[bytes]]) -> Counter[bytes]:
    return Counter(value for some in values.values() for value in some)


class Reading:
    """Members polled in turn, and everything they returned."""

    def __init__(self, *members: Consumer) -> None:
        self.members = list(members)
        self.records: list[Any] = []

    @property
    def values(self) -> Counter[bytes]:
        return Counter(record.value for record in self.records)

    def until(self, what: str, is_so: Callable[[], bool], within_s: float = WITHIN_S) -> None:
        end = time.monotonic() + within_s
        while not is_so():
            held = [sorted(map(str, m.assignment())) for m in self.members]
            assert time.monotonic() < end, f"waited in vain until {what}; held {held}; read {len(self.records)}"
            for one in self.members:
                self.records += list(one.poll(0.05))

    def shares(self, count: int) -> bool:
        held = [m.assignment() for m in self.members]
        return all(held) and sum(map(len, held)) == count == len(set().union(*held))


def three_members_read_everything_once(stage: Stage) -> None:
    create(stage, "three", 6)
    values = numbered("v", range(6), 100)
    fill(stage, "three", values)
    with ExitStack() as stack:
        reading = Reading(*(stack.enter_context(member(stage, "three")) for _ in range(3)))
        for one in reading.members:
            one.subscribe(["three"])
        reading.until("three share", lambda: reading.shares(6))
        assert [len(m.assignment()) for m in reading.members] == [2, 2, 2]
        reading.until("all is read", lambda: len(reading.records) >= 600)
        assert reading.values == all_of(values)


def a_member_vanishes_and_the_others_take_over(stage: Stage) -> None:
    create(stage, "vanish", 4)
    first, second = numbered("first", range(4), 50), numbered("second", range(4), 50)
    with ExitStack() as stack:
        gone = member(stage, "vanish", enable_auto_commit=False)
        reading = Reading(gone, *(stack.enter_context(member(stage, "vanish")) for _ in range(2)))
        for one in reading.members:
            one.subscribe(["vanish"])
        reading.until("three share", lambda: reading.shares(4))
        fill(stage, "vanish", first)
        reading.until("the first are read", lambda: len(reading.records) >= 200)
        for one in reading.members:
            one.commit()
        silent = gone.group_metadata().member_id
        gone.close(membership="remain_in_group")
        reading.members.remove(gone)
        stage.expire("vanish", silent)
        reading.until("two share", lambda: reading.shares(4))
        fill(stage, "vanish", second)
        reading.until("the second are read", lambda: set(all_of(second)) <= set(reading.values))
        assert reading.values == all_of(first) + all_of(second), "what was committed is not read again"


def commits_are_resumed_from(stage: Stage) -> None:
    create(stage, "resume", 2)
    fill(stage, "resume", numbered("v", range(2), 10))
    with member(stage, "resume", enable_auto_commit=False) as consumer:
        consumer.subscribe(["resume"])
        reading = Reading(consumer)
        reading.until("all is read", lambda: len(reading.records) == 20)
        consumer.commit({("resume", 0): OffsetAndMetadata(4, metadata="note"), ("resume", 1): 10})
        heard: list[Any] = []
        consumer.commit_async({("resume", 0): 7}, lambda offsets, error: heard.append((offsets, error)))
        reading.until("the commit is answered", lambda: bool(heard))
        assert heard == [({("resume", 0): OffsetAndMetadata(7)}, None)]
        consumer.commit({("resume", 0): OffsetAndMetadata(4, metadata="note")})
        found = consumer.committed([("resume", 0), ("resume", 1)])
        assert (at := found[TopicPartition("resume", 0)]) is not None
        assert at.metadata == "note"
        assert {tp: at.offset for tp, at in found.items() if at is not None} == {("resume", 0): 4, ("resume", 1): 10}
    with member(stage, "resume") as consumer:
        consumer.subscribe(["resume"])
        reading = Reading(consumer)
        reading.until("the rest is read", lambda: len(reading.records) >= 6)
        assert [(r.partition, r.offset) for r in reading.records] == [(0, offset) for offset in range(4, 10)]


def a_broker_restart_in_the_middle(stage: Stage) -> None:
    create(stage, "restart", 4)
    first, second = numbered("first", range(4), 50), numbered("second", range(4), 50)
    fill(stage, "restart", first)
    with ExitStack() as stack:
        reading = Reading(*(stack.enter_context(member(stage, "restart")) for _ in range(2)))
        for one in reading.members:
            one.subscribe(["restart"])
        reading.until("two share", lambda: reading.shares(4))
        reading.until("the first are read", lambda: len(reading.records) >= 200)
        for one in reading.members:
            one.commit()
        restarting = threading.Thread(target=stage.restart)
        restarting.start()
        reading.until("the broker is back", lambda: not restarting.is_alive())
        restarting.join()
        fill(stage, "restart", second)
        reading.until("the second are read", lambda: set(all_of(second)) <= set(reading.values))
        assert reading.values == all_of(first) + all_of(second)
        for one in reading.members:
            one.commit()
        with Admin(bootstrap_servers=stage.bootstrap) as admin:
            assert {row.lag for row in admin.group_lag("restart")} == {0}


def a_rolling_restart_of_static_members_revokes_nothing(stage: Stage) -> None:
    create(stage, "rolling", 6)
    taken: dict[str, list[Any]] = {f"i{number}": [] for number in range(3)}

    def start(instance: str) -> Consumer:
        consumer = member(stage, "rolling", group_instance_id=instance, session_timeout_ms=30_000)
        consumer.subscribe(["rolling"], on_revoked=taken[instance].append, on_lost=taken[instance].append)
        return consumer

    reading = Reading(*(start(instance) for instance in taken))
    reading.until("three share", lambda: reading.shares(6))
    for heard in taken.values():
        heard.clear()
    before = [(m.assignment(), m.group_metadata().generation_id) for m in reading.members]
    for index, instance in enumerate(taken):
        reading.members.pop(index).close()
        taken[instance].clear()
        reading.members.insert(index, start(instance))
        reading.until("all hold partitions", lambda: reading.shares(6))
    values = numbered("v", range(6), 10)
    fill(stage, "rolling", values)
    reading.until("all is read", lambda: len(reading.records) >= 60)
    assert [(m.assignment(), m.group_metadata().generation_id) for m in reading.members] == before
    assert taken == {instance: [] for instance in taken}
    assert reading.values == all_of(values)
    for one in reading.members:
        one.close(membership="leave_group")


def partitions_added_are_picked_up(stage: Stage) -> None:
    create(stage, "grow", 1)
    with member(stage, "grow") as consumer:
        consumer.subscribe(["grow"])
        reading = Reading(consumer)
        reading.until("it has the partition", lambda: reading.shares(1))
        with Admin(bootstrap_servers=stage.bootstrap) as admin:
            admin.create_partitions("grow", 3)
        values = numbered("v", range(3), 10)
        fill(stage, "grow", values)
        reading.until("it has them all", lambda: reading.shares(3))
        reading.until("all is read", lambda: len(reading.records) >= 30)
        assert reading.values == all_of(values)


def a_cooperative_rebalance_keeps_partitions_flowing(stage: Stage) -> None:
    create(stage, "flow", 4)
    cooperative = {"partition_assignment_strategy": ["cooperative-sticky"]}
    with ExitStack() as stack:
        revoked: list[Any] = []
        lost: list[Any] = []
        staying = stack.enter_context(member(stage, "flow", **cooperative))

        def revoke(partitions: list[Any]) -> None:
            revoked.extend(partitions)
            staying.commit()  # the automatic commit came before the join, and reading went on meanwhile

        staying.subscribe(["flow"], on_revoked=revoke, on_lost=lost.extend)
        reading = Reading(staying)
        reading.until("the first has all", lambda: reading.shares(4))
        fill(stage, "flow", numbered("before", range(4), 20))
        reading.until("the first reads all", lambda: len(reading.records) >= 80)
        joining = stack.enter_context(member(stage, "flow", **cooperative))
        joining.subscribe(["flow"])
        reading.members.append(joining)
        held_always = staying.assignment()

        def is_shared() -> bool:
            nonlocal held_always
            held_always = held_always & staying.assignment()
            return reading.shares(4)

        stream = numbered("during", range(4), 200)
        writing = threading.Thread(target=fill, args=(stage, "flow", stream))
        writing.start()
        reading.until("two share", is_shared)
        writing.join()
        reading.until("all is read", lambda: len(reading.records) >= 880)
        assert held_always == staying.assignment(), "what stays is held all the time"
        assert (len(held_always), len(revoked), lost) == (2, 2, []), (held_always, revoked, lost)
        assert reading.values == all_of(stream) + all_of(numbered("before", range(4), 20))
        for partition in range(4):
            offsets = [r.offset for r in reading.records if r.partition == partition]
            assert offsets == sorted(offsets)


def a_group_shared_with_confluent_kafka(stage: Stage) -> None:
    create(stage, "mixed", 4)
    values = numbered("v", range(4), 50)
    fill(stage, "mixed", values)
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": stage.bootstrap,
            "group.id": "mixed",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 20_000,
            "heartbeat.interval.ms": 200,
            "partition.assignment.strategy": "range",
        }
    )
    theirs.subscribe(["mixed"])
    seen: Counter[bytes] = Counter()
    with member(stage, "mixed") as ours:
        ours.subscribe(["mixed"])
        reading = Reading(ours)

        def poll_theirs() -> int:
            seen.update(m.value() or b"" for m in theirs.consume(100, 0.05) if m.error() is None)
            return len(theirs.assignment())

        reading.until("both have two", lambda: poll_theirs() == 2 == len(ours.assignment()))
        reading.until("all is read", lambda: poll_theirs() == 2 and (seen + reading.values).total() >= 200)
        theirs.close()
        reading.until("ours has all", lambda: reading.shares(4))
    assert set(seen + reading.values) == set(all_of(values))


def _is_at(consumer: Consumer, offset: int) -> bool:
    return consumer.position(("txn", 0)) == offset


def only_committed_records_are_read(stage: Stage) -> None:
    create(stage, "txn", 1)
    stage.transact("txn", [b"a", b"b"], True)
    stage.transact("txn", [b"c", b"d"], False)
    stage.transact("txn", [b"e"], True)
    found = {}
    for level in ("read_committed", "read_uncommitted"):
        options: dict[str, Any] = {"isolation_level": level, "auto_offset_reset": "earliest"}
        with Consumer(bootstrap_servers=stage.bootstrap, **options) as consumer:
            consumer.assign([("txn", 0)])
            reading = Reading(consumer)
            reading.until("the end", partial(_is_at, consumer, 8))  # five records, three markers
            found[level] = [record.value for record in reading.records]
            assert consumer.end_offsets([("txn", 0)]) == {("txn", 0): 8}
            assert consumer.lag() == {("txn", 0): 0}
    assert found == {"read_committed": [b"a", b"b", b"e"], "read_uncommitted": [b"a", b"b", b"c", b"d", b"e"]}


def offsets_are_found_by_time(stage: Stage) -> None:
    create(stage, "times", 3)
    fill(stage, "times", numbered("v", range(2), 20))
    with Consumer(bootstrap_servers=stage.bootstrap) as consumer:
        asked = {("times", 0): 1_007, ("times", 1): 99_000, ("times", 2): 0}
        found = consumer.offsets_for_times(asked)
        assert found[TopicPartition("times", 1)] is None
        assert found[TopicPartition("times", 2)] is None
        at = found[TopicPartition("times", 0)]
        assert at is not None
        assert (at.offset, at.timestamp) == (7, 1_007)
        consumer.assign([("times", 0)])
        consumer.seek(("times", 0), at.offset)
        reading = Reading(consumer)
        reading.until("the rest is read", lambda: len(reading.records) >= 13)
        assert [r.offset for r in reading.records] == list(range(7, 20))
        ends = [("times", p) for p in range(3)]
        assert list(consumer.beginning_offsets(ends).values()) == [0, 0, 0]
        assert list(consumer.end_offsets(ends).values()) == [20, 20, 0]


def a_pattern_finds_topics_made_later(stage: Stage) -> None:
    for topic in ("like-one", "unlike-one"):
        create(stage, topic, 1)
    with member(stage, "pattern") as consumer:
        consumer.subscribe(pattern="like-.*")
        reading = Reading(consumer)
        reading.until("it has the topic", lambda: reading.shares(1))
        create(stage, "like-two", 2)
        fill(stage, "like-two", numbered("v", range(2), 5))
        reading.until("it has the new one", lambda: reading.shares(3))
        reading.until("all is read", lambda: len(reading.records) >= 10)
        assert consumer.subscription() == {"like-one", "like-two"}
        assert {r.topic for r in reading.records} == {"like-two"}


def nothing_lags_at_the_end(stage: Stage) -> None:
    create(stage, "lag", 3)
    fill(stage, "lag", numbered("v", range(3), 40))
    with member(stage, "lag") as consumer:
        consumer.subscribe(["lag"])
        reading = Reading(consumer)
        reading.until("all is read", lambda: len(reading.records) >= 120)
        assert consumer.lag() == {("lag", p): 0 for p in range(3)}
        assert consumer.current_lag(("lag", 0)) == 0
    with Admin(bootstrap_servers=stage.bootstrap) as admin:
        rows = [(row.partition, row.committed_offset, row.log_end_offset, row.lag) for row in admin.group_lag("lag")]
    assert rows == [(p, 40, 40, 0) for p in range(3)]


def arrow_holds_what_was_sent_with_every_codec(stage: Stage) -> None:
    create(stage, "arrow", 1)
    expected = []
    for codec in CODECS:
        with Producer(bootstrap_servers=stage.bootstrap, compression_type=codec) as producer:
            for number in range(200):
                value = f"{codec}-{number}" if number % 10 else None
                expected.append((f"k{number}", value, [("h", codec.encode())]))
                producer.send("arrow", value, key=f"k{number}", headers={"h": codec}, partition=0)
    found: list[Any] = []
    with Consumer(bootstrap_servers=stage.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("arrow", 0)])
        end = time.monotonic() + WITHIN_S
        while len(found) < len(expected) and time.monotonic() < end:
            batch = consumer.poll_arrow(1.0, key="str", value="str")
            found += batch.to_pylist() if batch is not None else []
    assert [row["offset"] for row in found] == list(range(len(expected)))
    rows = [(row["key"], row["value"], [(h["key"], h["value"]) for h in row["headers"]]) for row in found]
    assert rows == expected


STORIES = (
    three_members_read_everything_once,
    a_member_vanishes_and_the_others_take_over,
    commits_are_resumed_from,
    a_rolling_restart_of_static_members_revokes_nothing,
    partitions_added_are_picked_up,
    a_cooperative_rebalance_keeps_partitions_flowing,
    a_group_shared_with_confluent_kafka,
    only_committed_records_are_read,
    offsets_are_found_by_time,
    a_pattern_finds_topics_made_later,
    nothing_lags_at_the_end,
    arrow_holds_what_was_sent_with_every_codec,
    a_broker_restart_in_the_middle,
)


# With the consumer protocol only


def a_pattern_that_the_broker_matches_finds_topics_made_later(stage: Stage) -> None:
    for topic in ("found-one", "left-one"):
        create(stage, topic, 1)
    with member(stage, "server-pattern") as consumer:
        consumer.subscribe(pattern=SubscriptionPattern("found-.*"))
        reading = Reading(consumer)
        reading.until("it has the topic", lambda: reading.shares(1))
        create(stage, "found-two", 2)
        fill(stage, "found-two", numbered("v", range(2), 5))
        reading.until("it has the new one", lambda: reading.shares(3))
        reading.until("all is read", lambda: len(reading.records) >= 10)
        assert {r.topic for r in reading.records} == {"found-two"}


def a_fleet_changes_its_protocol_by_one_rolling_restart(stage: Stage) -> None:
    create(stage, "upgrade", 6)
    stream = [numbered(f"v{number}", range(6), 20) for number in range(4)]
    classic = replace(stage, protocol="classic")
    reading = Reading(*(member(classic, "upgrade") for _ in range(3)))
    for one in reading.members:
        one.subscribe(["upgrade"])
    reading.until("three share", lambda: reading.shares(6))
    for number, values in enumerate(stream):
        fill(stage, "upgrade", values)
        reading.until("it is read", lambda values=values: set(all_of(values)) <= set(reading.values))  # type: ignore[misc]
        if number < 3:
            reading.members.pop(0).close()
            reading.members.append(member(stage, "upgrade"))
            reading.members[-1].subscribe(["upgrade"])
            reading.until("three share again", lambda: reading.shares(6))
    assert reading.values == sum((all_of(values) for values in stream), Counter())
    for one in reading.members:
        one.close()


def a_second_holder_of_an_instance_id_is_refused_and_the_first_goes_on(stage: Stage) -> None:
    create(stage, "twice", 1)
    with (
        member(stage, "twice", group_instance_id="i") as first,
        member(stage, "twice", group_instance_id="i") as second,
    ):
        first.subscribe(["twice"])
        reading = Reading(first)
        reading.until("it has the partition", lambda: reading.shares(1))
        second.subscribe(["twice"])
        with pytest.raises(UnreleasedInstanceIdError):
            Reading(second).until("it is refused", lambda: False)
        fill(stage, "twice", numbered("v", [0], 3))
        reading.until("the first reads", lambda: len(reading.records) == 3)


def a_member_that_does_not_poll_leaves_and_comes_back(stage: Stage) -> None:
    create(stage, "silent", 2)
    told: list[str] = []
    with member(stage, "silent", max_poll_interval_ms=1_000) as slow, member(stage, "silent") as quick:
        slow.subscribe(["silent"], on_lost=lambda _: told.append("lost"))
        quick.subscribe(["silent"])
        both = Reading(slow, quick)
        both.until("two share", lambda: both.shares(2))
        told.clear()  # a machine that stood still for longer than the interval has lost them before, too
        alone = Reading(quick)
        alone.until("one has all", lambda: alone.shares(2))
        assert told == []
        both.until("two share again", lambda: both.shares(2))
        assert set(told) == {"lost"}


def the_group_is_described_with_its_epoch_and_what_each_member_is_to_hold(stage: Stage) -> None:
    create(stage, "described", 4)
    with ExitStack() as stack:
        members = [stack.enter_context(member(stage, "described", client_id=f"c{number}")) for number in range(2)]
        reading = Reading(*members)
        for one in members:
            one.subscribe(["described"])
        reading.until("two share", lambda: reading.shares(4) and all(m.is_settled() for m in members))
        with Admin(bootstrap_servers=stage.bootstrap) as admin:
            group = admin.describe_group("described")
            (listed,) = (one for one in admin.list_groups(types=["consumer"]) if one.group_id == "described")
            owners = {row.partition: row.member_id for row in admin.group_lag("described")}
        assert (listed.state, listed.type, group.type, group.protocol) == ("Stable", "consumer", "consumer", "uniform")
        for one, told in zip(members, group.members, strict=True):
            held = {"described": sorted(tp.partition for tp in one.assignment())}
            assert (told.assignment, told.target, told.type) == (held, held, "consumer")
            assert told.epoch == group.epoch == one.group_metadata().generation_id
            assert {owners[p] for p in held["described"]} == {told.member_id} == {one.group_metadata().member_id}
    with Admin(bootstrap_servers=stage.bootstrap) as admin:
        assert (admin.describe_group("described").state, admin.describe_group("described").members) == ("Empty", [])
        admin.delete_groups("described")
        with pytest.raises(GroupIdNotFoundError, match="there is no group 'described'"):
            admin.describe_group("described")


MIXED_STORIES = (a_fleet_changes_its_protocol_by_one_rolling_restart, a_group_shared_with_confluent_kafka)
"""Members of both protocols in one group, with our members in the consumer protocol."""
EPOCH_STORIES = (
    *(story for story in STORIES if story is not a_group_shared_with_confluent_kafka),
    the_group_is_described_with_its_epoch_and_what_each_member_is_to_hold,
    a_pattern_that_the_broker_matches_finds_topics_made_later,
    a_second_holder_of_an_instance_id_is_refused_and_the_first_goes_on,
    a_member_that_does_not_poll_leaves_and_comes_back,
)
