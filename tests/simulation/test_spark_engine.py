"""The streaming source under a simulated engine: crashes at every step, limits, losses, group commits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import GroupAuthorizationFailedError
from partita.spark.planning.lookups import CommitRefused, Committed
from partita.spark.planning.offsets import decode, encode
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import DataLossError, SourceError
from partita.spark.planning.stream_core import FORGET_AFTER_MS, StreamCore
from partita.spark.settings.options import parse_source
from partita.spark.settings.positions import TopicPartition
from support.clock import ManualClock
from support.spark.cluster import MemoryCluster
from support.spark.engine_simulator import Crashed, CrashPoint, EngineSimulator, Trigger

COMMIT = {"group": "g", "groupMode": "commit", "queryName": "q"}


class World:
    """One query over one checkpoint and one cluster in memory."""

    def __init__(self, cluster: MemoryCluster, **options: str) -> None:
        self.cluster = cluster
        self.clock = ManualClock()
        self.options = {"kafka.bootstrap.servers": "h:1", "startingOffsets": "earliest", "offsetPollMs": "0"}
        self.options |= {} if "subscribePattern" in options else {"subscribe": "a"}
        self.options |= options
        self.cores: list[StreamCore] = []
        self.remark: Callable[[str], None] = lambda text: None
        self.engine: EngineSimulator[RangeTask] = EngineSimulator(self.source, cluster.read)
        cluster.on_commit = self.check_commit
        cluster.on_pause = lambda pause_ms: self.clock.advance(pause_ms) and None

    def source(self) -> StreamCore:
        core = StreamCore(parse_source(self.options), self.cluster, self.clock, lambda text: self.remark(text))
        self.cores.append(core)
        return core

    def check_commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """What is committed is never ahead of the newest batch in the commit log."""
        complete = self.engine.checkpoint.last_complete()
        assert complete is not None, "committed before any batch was complete"
        ends = decode(complete).ranges
        for key, committed in offsets.items():
            assert committed.offset <= ends[key].end, f"{key} committed ahead of the commit log"

    def check_texts(self) -> None:
        for text in self.engine.checkpoint.offsets.values():
            assert json.dumps(encode(decode(json.loads(text)))) == text

    def group(self) -> dict[TopicPartition, int]:
        return {key: c.offset for key, c in self.cluster.groups.get("g", {}).items()}

    def batches(self) -> list[int]:
        return [len(rows) for _, rows in sorted(self.engine.sink.by_batch.items())]


def become(cluster: MemoryCluster, **values: int) -> None:
    """Give partition a-0 these values."""
    for name, value in values.items():
        setattr(cluster.part("a", 0), name, value)


def cluster_of(*ends: int) -> MemoryCluster:
    cluster = MemoryCluster()
    cluster.create("a", *ends)
    return cluster


def test_call_order_of_a_new_query() -> None:
    world = World(cluster_of(3))
    world.engine.run(Trigger.STEPS, steps=2)
    assert world.engine.calls == ["initialOffset", "latestOffset", "initialOffset", "partitions", "latestOffset"]


def test_everything_is_read_once_and_committed() -> None:
    world = World(cluster_of(30, 0, 7), maxOffsetsPerTrigger="10", **COMMIT)
    world.engine.run()
    assert sorted(world.engine.sink.written) == world.cluster.records()
    assert world.group() == {("a", 0): 30, ("a", 1): 0, ("a", 2): 7}
    assert all(c.metadata.startswith("spark:q:") for c in world.cluster.groups["g"].values())
    world.check_texts()


def test_an_idle_stream_shows_no_false_lag_and_commits_nothing_more() -> None:
    world = World(cluster_of(5), **COMMIT)
    world.engine.run(Trigger.STEPS, steps=2)
    assert world.group() == {("a", 0): 5}
    world.cluster.refuse_commits = True
    world.engine.run(Trigger.STEPS, steps=5)
    assert [core.failed_commits for core in world.cores] == [0, 0]


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=4),
    st.integers(1, 9),
    st.lists(st.tuples(st.sampled_from(CrashPoint), st.integers(0, 6), st.integers(0, 5)), max_size=6),
    st.booleans(),
)
def test_crashes_lose_nothing(
    ends: list[int], limit: int, crashes: list[tuple[CrashPoint, int, int]], group_decides: bool
) -> None:
    authority = {"offsetAuthority": "group"} if group_decides else {}
    world = World(cluster_of(*ends), maxOffsetsPerTrigger=str(limit), **COMMIT, **authority)
    crashed = 0
    for point, batch, more in crashes:
        try:
            world.engine.run(crash=(point, batch))
        except Crashed:
            crashed += 1
        world.cluster.produce("a", 0, more)
    world.engine.run()
    records = world.cluster.records()
    assert sorted(world.engine.sink.rows_once) == records
    assert set(world.engine.sink.written) == set(records)
    assert len(world.engine.sink.written) - len(records) <= crashed * max(
        len(rows) for rows in world.engine.sink.by_batch.values()
    )
    assert {key: end for key, end in world.group().items() if end} == {
        ("a", p): part.latest for p, part in enumerate(world.cluster.topics["a"][1]) if part.latest
    }
    world.check_texts()


@given(st.integers(0, 5), st.sampled_from(["none", "commit"]))
def test_a_replayed_batch_has_the_very_same_rows(batch: int, mode: str) -> None:
    world = World(cluster_of(20, 3), maxOffsetsPerTrigger="4", **(COMMIT if mode == "commit" else {}))
    with pytest.raises(Crashed):
        world.engine.run(crash=(CrashPoint.AFTER_SINK_COMMIT, batch))
    before = world.engine.sink.by_batch[batch]
    world.cluster.produce("a", 0, 50)
    world.cluster.create("b", 9)
    world.engine.run()
    assert world.engine.sink.by_batch[batch] == before


def test_a_refused_commit_is_counted_and_made_up_for() -> None:
    world = World(cluster_of(5), **COMMIT)
    world.cluster.refuse_commits = True
    world.engine.run()
    assert world.cores[0].failed_commits == 1
    assert world.group() == {}
    world.cluster.refuse_commits = False
    world.engine.run()
    assert world.group() == {("a", 0): 5}


def test_an_idle_query_repeats_a_refused_commit_after_growing_pauses() -> None:
    world = World(cluster_of(5), **COMMIT)
    world.cluster.refuse_commits = True

    def a_tenth_of_a_second_later() -> None:
        world.clock.advance(100)

    world.engine.run(Trigger.STEPS, steps=100, between=a_tenth_of_a_second_later)
    assert world.cores[0].failed_commits == 4
    world.cluster.produce("a", 0, 1)
    world.engine.run(Trigger.STEPS, steps=2)
    assert world.cores[1].failed_commits == 2, "new progress is tried at once"


def test_a_refused_commit_fails_the_query_when_asked_to() -> None:
    world = World(cluster_of(5), commitFailure="fail", **COMMIT)
    world.cluster.refuse_commits = True
    with pytest.raises(CommitRefused):
        world.engine.run()


@pytest.mark.case("SE-Q05")
@pytest.mark.parametrize("rights", [{"DESCRIBE"}, set()], ids=str)
def test_without_the_right_to_commit_a_query_says_so_once_and_goes_on(rights: set[str]) -> None:
    world = World(cluster_of(5), **COMMIT)
    remarks: list[str] = []
    world.remark = remarks.append
    world.cluster.rights = frozenset(rights)

    def a_minute_later_there_is_more() -> None:
        world.clock.advance(60_000)
        world.cluster.produce("a", 0, 1)

    world.engine.run(Trigger.STEPS, steps=20, between=a_minute_later_there_is_more)
    assert sum(world.batches()) == 25
    assert world.group() == {}
    (remark,) = remarks
    assert "The query goes on by its checkpoint" in remark
    assert "may not READ group 'g'" in remark


@pytest.mark.case("SE-Q05")
@pytest.mark.parametrize("depends", [{"commitFailure": "fail"}, {"offsetAuthority": "group"}])
def test_a_query_that_depends_on_its_group_fails_without_the_right_to_it(depends: dict[str, str]) -> None:
    world = World(cluster_of(5), **COMMIT, **depends)
    world.cluster.rights = frozenset()
    with pytest.raises(GroupAuthorizationFailedError):
        world.engine.run()


def test_a_new_checkpoint_goes_on_where_the_group_is() -> None:
    world = World(cluster_of(10, 10), **COMMIT)
    world.cluster.groups["g"] = {("a", 1): Committed(8)}
    world.engine.run()
    assert world.batches() == [12]


@pytest.mark.parametrize(("authority", "rows"), [("checkpoint", 2), ("group", 9)])
def test_a_reset_by_hand_is_followed_only_in_group_mode(authority: str, rows: int) -> None:
    world = World(cluster_of(10), offsetAuthority=authority, **COMMIT)
    world.engine.run()
    world.cluster.groups["g"] = {("a", 0): Committed(3, metadata="by hand")}
    world.cluster.produce("a", 0, 2)
    world.engine.run()
    assert world.batches() == [10, rows]
    assert world.group() == {("a", 0): 12}


def test_another_query_in_the_group_is_remarked_on() -> None:
    """findings/spark.md 12: two queries with one group ran side by side without a word."""
    cluster = cluster_of(10)
    remarks: list[str] = []
    for name in ("first", "second"):
        world = World(cluster, **COMMIT | {"queryName": name})
        world.remark = remarks.append
        world.engine.run()
    assert any("commits of another Spark query (first)" in remark for remark in remarks)


def test_our_own_commit_below_the_checkpoint_is_not_followed() -> None:
    world = World(cluster_of(10), offsetAuthority="group", **COMMIT)
    with pytest.raises(Crashed):
        world.engine.run(crash=(CrashPoint.AFTER_COMMIT_LOG, 0))
    world.cluster.groups["g"] = {("a", 0): Committed(4, metadata="spark:q:0")}
    world.engine.run()
    assert world.batches() == [10]
    assert world.group() == {("a", 0): 10}


@pytest.mark.case("BM-178")
def test_a_start_at_the_end_stays_where_it_was_first_seen() -> None:
    world = World(cluster_of(10), startingOffsets="latest")
    core = world.source()
    initial = core.initial_offset()
    world.cluster.produce("a", 0, 4)
    assert core.initial_offset() == initial
    end = core.latest_offset(initial, use_limits=True)
    assert [(task.begin, task.end) for task in core.partitions(initial, end)] == [(10, 14)]


def test_available_now_ends_at_what_was_there() -> None:
    world = World(cluster_of(10), maxOffsetsPerTrigger="4")
    world.engine.run(between=lambda: world.cluster.produce("a", 0, 1))
    assert world.batches() == [4, 4, 2]


def test_available_now_with_nothing_still_runs_batch_zero() -> None:
    world = World(cluster_of(0))
    world.engine.run()
    assert world.batches() == [0]


def test_once_reads_everything_whatever_the_limit() -> None:
    world = World(cluster_of(10), maxOffsetsPerTrigger="4")
    world.engine.run(Trigger.ONCE)
    assert world.batches() == [10]


def test_the_minimum_is_waited_for_but_not_for_ever() -> None:
    world = World(cluster_of(1), minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(len(world.engine.sink.written))
        world.clock.advance(4000)
        world.cluster.produce("a", 0, 1)

    world.engine.run(Trigger.STEPS, steps=6, between=tick)
    assert world.batches() == [2, 3]
    assert ticks == [0, 2, 2, 2, 5, 5]


def test_an_idle_stream_waits_between_looks() -> None:
    world = World(cluster_of(1), offsetPollMs="200")
    world.engine.run(Trigger.STEPS, steps=50, between=lambda: world.clock.advance(12) and None)
    assert world.cluster.looks < 52
    assert 48 * 200 <= world.clock.now().mono_ms <= 50 * 212


def test_what_is_there_when_spark_asks_is_read_at_once() -> None:
    """findings/spark.md 2: processAllAvailable missed records that a look of 200 ms ago did not show."""
    world = World(cluster_of(1), offsetPollMs="200")
    core = world.source()
    start = core.latest_offset(core.initial_offset(), use_limits=True)
    for end in range(2, 6):
        assert core.latest_offset(start, use_limits=True) is start
        world.cluster.produce("a", 0, 1)
        start = core.latest_offset(start, use_limits=True)
        assert start["t"] == {"a": {"0": [end - 1, end, 0]}}


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("when", ["at prepare", "at the look", "for a while"])
def test_a_topic_missing_from_one_look_is_neither_lost_nor_read_again(fail: str, when: str) -> None:
    """findings/spark.md 6: a topic that was not shown at prepare dropped out of the offset and was read again."""
    cluster = cluster_of(10)
    cluster.create("b", 5)
    world = World(cluster, subscribePattern="a|b", failOnDataLoss=fail)
    world.engine.run()

    def hide_at_the_look() -> None:
        cluster.hidden_looks = {"b": 2}

    def hide_for_a_while() -> None:
        cluster.hidden_looks = {"b": 2 if fail == "true" else 30}

    cluster.produce("a", 0, 1)
    if when == "at prepare":
        cluster.hidden_looks = {"b": 1}
        world.engine.run()
    else:
        world.engine.run(Trigger.STEPS, between=hide_at_the_look if when == "at the look" else hide_for_a_while)
    cluster.hidden_looks = {}
    world.engine.run()
    cluster.produce("b", 0, 2)
    world.engine.run()
    assert sorted(world.engine.sink.written) == cluster.records()


def test_a_topic_recreated_during_a_run_is_read_from_its_beginning_by_the_next() -> None:
    """An AvailableNow run that began before has no target for it, and must not keep the old place under the new id."""
    world = World(cluster_of(10), subscribePattern="a|b", failOnDataLoss="false")
    world.cluster.create("b", 2)
    world.engine.run()
    world.cluster.produce("b", 0, 1)
    world.cluster.hidden_looks = {"a": 1}
    world.engine.run(between=lambda: world.cluster.create("a", 4) if world.cluster.ids == 2 else None)
    world.engine.run()
    assert world.batches()[-1] == 4
    assert world.engine.sink.by_batch[max(world.engine.sink.by_batch)] == [("a", 0, offset) for offset in range(4)]


def test_progress_in_a_topic_that_was_recreated_is_not_committed_for_the_new_one() -> None:
    """The coordinator forgets the offsets of a deleted topic; those of its records mean nothing in the next one."""
    world = World(cluster_of(10), failOnDataLoss="false", **COMMIT)
    world.engine.run(Trigger.STEPS)
    world.cluster.create("a", 4)
    world.engine.run(Trigger.STEPS)
    assert world.group() == {}
    world.engine.run(Trigger.STEPS)
    assert world.group() == {("a", 0): 4}


def test_a_commit_is_lowered_after_a_truncation_and_only_then() -> None:
    """Whoever follows the group would else miss what is written in place of the records that went away."""
    for authority in ("checkpoint", "group"):
        world = World(cluster_of(10), failOnDataLoss="false", offsetAuthority=authority, **COMMIT)
        world.engine.run()
        become(world.cluster, latest=7, leader_epoch=1, epoch_end=7)
        with pytest.raises(Crashed):
            world.engine.run(crash=(CrashPoint.AFTER_COMMIT_LOG, 1))
        assert world.group() == {("a", 0): 10}
        world.engine.run()
        assert world.group() == {("a", 0): 7}
        world.cluster.produce("a", 0, 2)
        world.engine.run()
        assert world.group() == {("a", 0): 9}
        assert len(world.engine.sink.written) == 12


def test_a_topic_deleted_for_good_does_not_slow_every_trigger() -> None:
    cluster = cluster_of(10)
    cluster.create("b", 5)
    world = World(cluster, subscribePattern="a|b", failOnDataLoss="false")
    world.engine.run()
    del cluster.topics["b"]
    looks = cluster.looks
    world.engine.run(Trigger.STEPS, steps=20)
    assert cluster.looks - looks < 30


@pytest.mark.parametrize("group", [{}, COMMIT])
def test_a_year_of_daily_topics_keeps_the_offset_small_and_reads_nothing_twice(group: dict[str, str]) -> None:
    cluster = MemoryCluster()
    world = World(cluster, subscribePattern="day-.*", failOnDataLoss="false", **group)
    sizes = []
    for day in range(365):
        cluster.create(f"day-{day}", 2, 0, 3)
        cluster.topics.pop(f"day-{day - 3}", None)
        # Kafka's coordinator forgets the offsets of a deleted topic.
        for offsets in cluster.groups.values():
            for key in [key for key in offsets if key[0] not in cluster.topics]:
                del offsets[key]
        if day == 200:
            cluster.create("day-100", 4)
        world.engine.run()
        sizes.append(len(world.engine.checkpoint.offsets[max(world.engine.checkpoint.offsets)]))
        world.clock.advance(24 * FORGET_AFTER_MS)
    written = Counter((f"day-{d}", p, o) for d in range(365) for p, end in enumerate((2, 0, 3)) for o in range(end))
    # An old name that came back is another topic.
    written += Counter(("day-100", 0, offset) for offset in range(4))
    assert Counter(world.engine.sink.written) == written
    assert max(sizes) < 600, max(sizes)
    world.check_texts()


def test_a_topic_that_is_only_hidden_keeps_its_place_however_long_that_takes() -> None:
    cluster = cluster_of(10)
    cluster.create("b", 5)
    world = World(cluster, subscribePattern="a|b", failOnDataLoss="false")
    world.engine.run()
    for _ in range(5):
        cluster.hidden_looks = {"b": 99}
        cluster.produce("a", 0, 1)
        world.engine.run()
        world.clock.advance(2 * FORGET_AFTER_MS)
    cluster.hidden_looks = {}
    cluster.produce("b", 0, 2)
    world.engine.run()
    assert sorted(world.engine.sink.written, key=str) == sorted(cluster.records(), key=str)


def test_a_topic_asked_for_by_name_keeps_its_place_when_it_is_deleted() -> None:
    """A restart would refuse it as one that never was there."""
    cluster = cluster_of(10)
    cluster.create("b", 5)
    world = World(cluster, subscribe="a,b", failOnDataLoss="false")
    world.engine.run()
    del cluster.topics["b"]
    for _ in range(3):
        cluster.produce("a", 0, 1)
        world.engine.run(Trigger.STEPS)
        world.clock.advance(2 * FORGET_AFTER_MS)
    assert world.batches() == [15, 1, 1, 1]


def test_a_checkpoint_of_sparks_own_connector_is_continued() -> None:
    """findings/spark.md 4: whoever changed .format() of a running stream lost the place."""
    world = World(cluster_of(20, 4))
    world.engine.checkpoint.offsets = {0: '{"a":{"0":7,"1":0}}', 1: '{"a":{"0":12,"1":3}}'}
    world.engine.checkpoint.commits = [0]
    world.engine.run()
    assert world.engine.sink.written[:8] == [("a", 0, o) for o in range(7, 12)] + [("a", 1, o) for o in range(3)]
    assert world.engine.sink.written[8:] == [("a", 0, o) for o in range(12, 20)] + [("a", 1, 3)]
    world.engine.run(Trigger.STEPS, steps=3)
    assert len(world.engine.sink.written) == 17


def test_new_partitions_and_new_topics_start_at_the_earliest() -> None:
    world = World(cluster_of(3), subscribePattern="^(a|b)$", startingOffsets="latest")
    world.engine.run()
    world.cluster.topics["a"][1].append(type(world.cluster.part("a", 0))(latest=2))
    world.cluster.create("b", 4)
    world.engine.run()
    assert world.batches() == [0, 6]


def test_a_start_before_now_is_taken_once_and_at_the_end_where_nothing_is_so_young() -> None:
    world = World(cluster_of(30, 4), startingOffsets="", startingTimestamp="-100ms")
    del world.options["startingOffsets"]
    world.clock = ManualClock(wall_ms=295)  # record i has timestamp 10 * i
    world.engine.run()
    world.clock.advance(1000)
    world.cluster.produce("a", 1, 2)
    world.engine.run()
    assert world.engine.sink.written == [("a", 0, o) for o in range(20, 30)] + [("a", 1, 4), ("a", 1, 5)]


def test_a_topic_added_to_subscribe_must_exist() -> None:
    world = World(cluster_of(3))
    world.engine.run()
    world.options["subscribe"] = "a,typo"
    with pytest.raises(SourceError, match="typo"):
        world.engine.run()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda c: c.topics.pop("a"),
            "a-0 was deleted or is no longer subscribed, or this user may no longer DESCRIBE",
        ),
        (
            lambda c: become(c, latest=30, earliest=20),
            "10 to 20 of a-0 were removed",
        ),
        (lambda c: become(c, latest=6), "a-0 was truncated: its end was 10 and is now 6"),
        (lambda c: c.create("a", 7), "deleted and recreated"),
        (
            lambda c: become(c, leader_epoch=1, epoch_end=8),
            "a-0 was truncated: its end was 10 and is now 8",
        ),
    ],
)
def test_every_loss_fails_by_default(damage: Callable[[MemoryCluster], object], said: str) -> None:
    world = World(cluster_of(10), subscribePattern="a|z")
    world.cluster.create("z", 1)
    world.engine.run()
    damage(world.cluster)
    with pytest.raises(DataLossError, match=said) as raised:
        world.engine.run()
    reasons = {"deleted or": "DELETED", "removed": "REMOVED", "truncated": "TRUNCATED", "recreated": "RECREATED"}
    (reason,) = [code for words, code in reasons.items() if words in said]
    assert str(raised.value).startswith(f"[{reason}] ")


def test_losses_can_be_gone_over() -> None:
    world = World(cluster_of(10, 10, 10), failOnDataLoss="false")
    world.engine.run()
    world.cluster.part("a", 0).earliest, world.cluster.part("a", 0).latest = 20, 22
    world.cluster.part("a", 1).latest = 6
    world.engine.run()
    world.cluster.produce("a", 1, 3)
    world.engine.run()
    assert world.engine.sink.written[30:] == [("a", 0, 20), ("a", 0, 21), ("a", 1, 6), ("a", 1, 7), ("a", 1, 8)]


def test_a_topic_made_again_is_read_from_its_start_though_it_is_shorter() -> None:
    world = World(cluster_of(10), failOnDataLoss="false")
    world.engine.run()
    world.cluster.create("a", 4)
    world.engine.run()
    world.engine.run()
    assert world.batches() == [10, 4]


@pytest.mark.case("BM-175")
@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_blank_look_leaves_the_offset_alone(fail: str) -> None:
    world = World(cluster_of(10), failOnDataLoss=fail)
    world.engine.run()
    world.cluster.blank_looks = 2
    world.engine.run(Trigger.STEPS, steps=3)
    assert world.batches() == [10]


@pytest.mark.case("BM-174")
def test_an_end_before_the_known_one_is_looked_at_again_then_fails() -> None:
    world = World(cluster_of(10))
    world.engine.run()
    part = world.cluster.part("a", 0)
    part.latest = 0
    looks = world.cluster.looks
    with pytest.raises(DataLossError, match="truncated"):
        world.engine.run(Trigger.STEPS)
    assert world.cluster.looks - looks == 4
    part.latest = 10
    world.engine.run()
    assert world.batches() == [10]


@pytest.mark.case("BM-179")
def test_two_sources_one_idle_restart_each_from_its_own_checkpoint() -> None:
    cluster = cluster_of(4)
    cluster.create("b", 0)
    worlds = [World(cluster, subscribe=topic) for topic in ("a", "b")]
    for world in worlds:
        world.engine.run()
    cluster.produce("a", 0, 2)
    for world in worlds:
        world.engine.run()
    assert [world.batches() for world in worlds] == [[4, 2], [0]]


def test_progress_tells_the_real_end() -> None:
    world = World(cluster_of(10), maxOffsetsPerTrigger="4")
    world.clock = ManualClock(wall_ms=10_000)
    core = world.source()
    assert core.report_latest() is None
    core.latest_offset(core.initial_offset(), use_limits=True)
    latest = core.report_latest()
    assert latest is not None
    assert latest["t"] == {"a": {"0": [10, 10, 0]}}
    assert latest["lag"] == {"a": {"0": [6, 9.96]}}, "the first of them is of the time 40"
    world.engine.run()
    assert (world.cores[-1].report_latest() or {})["lag"] == {}


def test_an_idle_query_waits_for_records_but_not_for_the_first_of_several() -> None:
    world = World(cluster_of(3, 1), offsetPollMs="200")
    world.engine.run(Trigger.STEPS, steps=4)
    assert world.cluster.news[-1] == {("a", 0): 3, ("a", 1): 1}
    patient = World(cluster_of(3, 1), offsetPollMs="200", minOffsetsPerTrigger="5")
    patient.engine.run(Trigger.STEPS, steps=4)
    assert patient.cluster.news[-1] == {}
