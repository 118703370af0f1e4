"""Random histories of a streaming query: crashes at every step, a cluster that changes, every record counted.

Issue 13, item 7: `pytest tests/simulation/test_spark_histories.py --histories 20000` runs as many.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from partita.spark.planning.lookups import Committed
from partita.spark.planning.offsets import decode, encode
from partita.spark.planning.planner import RangeTask
from partita.spark.planning.starts import DataLossError
from partita.spark.planning.stream_core import StreamCore
from partita.spark.settings.options import parse_source
from partita.spark.settings.positions import TopicPartition
from support.clock import ManualClock
from support.spark.counted_cluster import CountedCluster
from support.spark.engine_simulator import Crashed, CrashPoint, EngineSimulator, Trigger

TOPICS = ("a", "b", "c")
HIDDEN_LOOKS_MAX = 2
"""A topic that is hidden for longer is taken for deleted; with failOnDataLoss=true such a query fails, rightly."""


@dataclass(slots=True)
class History:
    """One query and its cluster; the same seed gives the same history."""

    seed: int
    chance: Random = field(init=False)
    cluster: CountedCluster = field(default_factory=CountedCluster)
    clock: ManualClock = field(default_factory=ManualClock)
    options: dict[str, str] = field(init=False)
    engine: EngineSimulator[RangeTask] = field(init=False)
    quiet: bool = False
    runs: int = 0
    crashes: Counter[str] = field(default_factory=Counter)
    losses: int = 0
    loss_is_due: bool = False

    def __post_init__(self) -> None:
        chance = self.chance = Random(self.seed)
        for topic in TOPICS[: chance.randrange(1, 3)]:
            self.cluster.create(topic, *(chance.randrange(0, 9) for _ in range(chance.randrange(1, 4))))
        self.options = {
            "kafka.bootstrap.servers": "h:1", "subscribePattern": "[abc]", "startingOffsets": "earliest",
            "offsetPollMs": "0", "failOnDataLoss": chance.choice(["true", "false"]),
        }  # fmt: skip
        if chance.random() < 0.7:
            self.options |= {"group": "g", "groupMode": "commit", "queryName": "q"}
            self.options["offsetAuthority"] = chance.choice(["checkpoint", "checkpoint", "group"])
        self.engine = EngineSimulator(self.source, self.read)
        self.cluster.on_commit = self.check_commit
        self.cluster.on_call = self.maybe_die

    def source(self) -> StreamCore:
        return StreamCore(parse_source(self.options), self.cluster, self.clock)

    def read(self, task: RangeTask) -> Iterator[object]:
        if self.chance.random() < 0.05 and not self.quiet:
            self.change(in_task=True)
        return self.cluster.numbers_in(task)

    def maybe_die(self, name: str) -> None:
        """The process of the source may die at any question, and after a commit of which it hears no answer."""
        if not self.quiet and self.chance.random() < 0.01:
            self.crashes[name] += 1
            raise Crashed(name)

    def check_commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """The group is never ahead of the commit log."""
        complete = self.engine.checkpoint.last_complete()
        assert complete is not None, "committed before any batch was complete"
        ends = decode(complete).ranges
        for key, committed in offsets.items():
            assert committed.offset <= ends[key].end, f"{key} committed ahead of the commit log"

    def run(self) -> History:
        for _ in range(self.chance.randrange(2, 10)):
            self.run_once()
            self.change()
        self.settle()
        self.check()
        return self

    def run_once(self) -> None:
        chance = self.chance
        self.runs += 1
        self.options["maxOffsetsPerTrigger"] = str(chance.randrange(1, 15))
        self.options |= {"minPartitions": str(chance.randrange(1, 6))} if chance.random() < 0.3 else {}
        newest = max(self.engine.checkpoint.offsets, default=-1)
        crash = None
        if chance.random() < 0.7:
            crash = (chance.choice(list(CrashPoint)), newest + chance.randrange(0, 4))
        try:
            steps = chance.randrange(1, 6)
            self.engine.run(chance.choice(list(Trigger)), steps=steps, crash=crash, between=self.maybe_change)
        except Crashed as crashed:
            self.crashes[crash[0].name if crash is not None and crash[0].value in str(crashed) else "a question"] += 1
        except DataLossError:
            assert self.loss_is_due, "a loss was told although nothing was lost"
            self.losses += 1
            self.tolerate(True)

    def tolerate(self, losses: bool) -> None:
        """What a person does who has read the message: go on without what is lost, for one run."""
        self.options["failOnDataLoss"] = str(not losses).lower()
        self.cluster.loss_fails = not losses

    def maybe_change(self) -> None:
        if not self.quiet and self.chance.random() < 0.5:
            self.change()

    def change(self, in_task: bool = False) -> None:
        """One or two things happen to the cluster."""
        chance, cluster = self.chance, self.cluster
        for _ in range(chance.randrange(1, 3)):
            topic = chance.choice(list(cluster.topics))
            partition = chance.randrange(len(cluster.topics[topic][1]))
            act = chance.random()
            if act < 0.5:
                cluster.produce(topic, partition, chance.randrange(1, 8))
            elif act < 0.6 and len(cluster.topics[topic][1]) < 5:
                cluster.add_partition(topic, chance.randrange(0, 4))
            elif act < 0.65 and len(cluster.topics) < len(TOPICS):
                cluster.create(TOPICS[len(cluster.topics)], *(chance.randrange(0, 5) for _ in range(2)))
            elif act < 0.8:
                looks = HIDDEN_LOOKS_MAX if self.options["failOnDataLoss"] == "true" else 9
                cluster.hidden_looks = {topic: chance.randrange(1, looks + 1)}
            elif act < 0.88:
                cluster.elect(topic, partition)
            else:
                self.lose(topic, partition, in_task)

    def lose(self, topic: str, partition: int, in_task: bool) -> None:
        """Records go away: by retention, with an unclean leader, or with their topic."""
        chance, cluster = self.chance, self.cluster
        part, kind = cluster.part(topic, partition), chance.randrange(3)
        is_under_way = in_task or len(self.engine.checkpoint.offsets) > len(self.engine.checkpoint.commits)
        self.loss_is_due = True
        if kind == 0:
            cluster.remove_before(topic, partition, chance.randrange(part.earliest, part.latest + 1))
        elif kind == 1 and not is_under_way:
            # A batch that runs again after a truncation reads what was written in its place, and so does the next one.
            cluster.elect(topic, partition, lost=chance.randrange(0, 4))
        elif kind == 2:
            cluster.create(topic, *(chance.randrange(0, 6) for _ in cluster.topics[topic][1]))

    def settle(self) -> None:
        """Everybody is well again; the query reads what is left."""
        self.quiet = True
        self.cluster.hidden_looks = {}
        self.tolerate(True)
        for _ in range(2):
            self.engine.run()

    def check(self) -> None:
        living: Any = set(self.cluster.living().values())
        rows: Counter[Any] = Counter(self.engine.sink.rows_once)
        assert living <= rows.keys(), f"lost: {sorted(living - rows.keys())}"
        twice = [number for number, times in rows.items() if times > 1]
        assert not twice, f"in two batches: {twice}"
        assert rows.keys() <= living | self.cluster.gone, "rows that nobody wrote"
        assert set(self.engine.sink.written) >= rows.keys()
        for text in self.engine.checkpoint.offsets.values():
            assert json.dumps(encode(decode(json.loads(text)))) == text
        if "group" in self.options:
            parts = {key: self.cluster.part(*key) for key in self.cluster.kept}
            ends = {key: part.latest for key, part in parts.items() if part.latest > part.earliest}
            committed = {key: c.offset for key, c in self.cluster.groups.get("g", {}).items()}
            assert {key: committed.get(key) for key in ends} == ends, "the group is not at the end"


def test_histories_with_crashes_at_every_step_lose_nothing_and_read_nothing_twice(pytestconfig: pytest.Config) -> None:
    histories = []
    for seed in range(pytestconfig.getoption("--histories")):
        try:
            histories.append(History(seed).run())
        except Exception as error:
            raise AssertionError(f"History({seed}): {error!r}") from error
    crashes = sum((history.crashes for history in histories), Counter())
    assert crashes.keys() >= {point.name for point in CrashPoint} | {"view", "commit", "committed", "committed to"}
    records = sum(history.cluster.count for history in histories)
    gone = sum(len(history.cluster.gone) for history in histories)
    losses = sum(history.losses for history in histories)
    runs = sum(history.runs for history in histories)
    print(
        f"\n{len(histories):,} histories, {runs:,} runs, {sum(crashes.values()):,} crashes, {records:,} records, "
        f"{gone:,} of them removed by the cluster, {losses:,} losses told: nothing lost, nothing in two batches"
    )
