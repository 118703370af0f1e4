"""Conduct one demo run: broker, replay, a consumer and Spark in one group; kill each of them once, check, report.

Knows the order of things and nothing of drawing; progress goes out through `Progress`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from partita import AsyncAdmin, AsyncConsumer, Broker, __version__
from partita.demo import checks, report
from partita.demo.children import Child
from partita.demo.flights import FLIGHTS_IN_CSV, Expected, expected
from partita.demo.outcome import read_outcome
from partita.demo.ownership import Ownership, owners_in
from partita.demo.story import Inside, Kill, LagSample, Rebalance, Story
from partita.demo.worker import CONSUMER, DEAD_LETTERS, DESK, FLIGHTS, SPARK, WEATHER
from partita.group import partition_for
from partita.group.records.log_records import GROUP_KEY, kind_of
from partita.group.records.read_back import LogRecord
from partita.observe.note_facts import accounts_of_notes
from partita.offsets.topic_partition import TopicPartition

PARTITIONS = 6
RATE = 8_000
SAMPLE_EVERY_S = 0.3
DEADLINE_S = 600.0
"""How long the scenes may take: a busy machine needs several minutes."""
LOG_TOPIC = "__consumer_offsets"
CALM_S = 2.0
"""Pause before the next kill, so that the picture shows the scene."""
INSIDE_A_BATCH_S = 0.6
"""Spark is killed this long after it reported a batch: the next one is under way."""


class DemoFailed(RuntimeError):
    """The run did not get to its end in time."""


class Progress(Protocol):
    """Receives the progress of the run."""

    def say(self, text: str) -> None:
        """Show one line to the user."""
        ...

    def at(self, bar: str, done: int, total: int) -> None:
        """Move a named progress bar to `done` of `total`."""
        ...


class Runner:
    """One run; `story` is its result."""

    def __init__(
        self, folder: Path, progress: Progress, rate: float = RATE, inside: Callable[[Inside], str] = lambda seen: ""
    ) -> None:
        """`inside` makes the part of the report that shows the protocol at work."""
        self.folder = folder
        self.progress = progress
        self.rate = rate
        self._inside = inside
        self.story = Story(
            version=__version__,
            started=time.strftime("%d %B %Y, %H:%M UTC", time.gmtime()),
            machine=f"{os.cpu_count()} cores, {platform.platform(terse=True)}, Python {platform.python_version()}",
            command=f"partita demo --rate {rate:g} --out {folder.name}",
        )
        self.truth = Expected()
        self._started = time.monotonic()
        self._started_wall_ms = time.time() * 1000
        self._children: dict[str, Child] = {}
        self._ownership = Ownership()
        self._facts: set[str] = set()
        self._rows = {SPARK: 0, CONSUMER: 0}
        self._sent = 0

    def elapsed_s(self) -> float:
        """Seconds since the demo started."""
        return time.monotonic() - self._started

    async def run(self) -> Story:
        """Do everything; raise ChildFailed or DemoFailed when it cannot be done. Leaves no process behind."""
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            broker = await stack.enter_async_context(Broker(nodes=2))
            self._say(f"broker listens on {broker.bootstrap}")
            admin = await stack.enter_async_context(AsyncAdmin(bootstrap_servers=broker.bootstrap))
            await self._create_topics(admin)
            self._broker = broker
            stack.push_async_callback(self._stop_children)
            self._write_pipeline(broker.bootstrap)
            watching = [
                asyncio.create_task(self._watch_lag(admin)),
                asyncio.create_task(self._watch_group(broker.bootstrap)),
            ]
            stack.push_async_callback(_cancel, watching)
            await self._play(broker.bootstrap, admin, watching)
            await self._finish(admin)
            self.story.outcome = await asyncio.to_thread(
                read_outcome, broker.bootstrap, self.folder / "usable" / "spark", self.folder / "usable" / "consumer"
            )
            self._note_rebalances(await asyncio.to_thread(lambda: list(broker.notes())))
        self.story.took_s = self.elapsed_s()
        self.story.checks = checks.compare(self.truth, self.story)
        section = await asyncio.to_thread(self._inside, self.story.inside)
        (self.folder / "report.html").write_text(report.page(self.story, section), encoding="utf-8")
        return self.story

    async def _create_topics(self, admin: AsyncAdmin) -> None:
        for topic, partitions in ((FLIGHTS, PARTITIONS), (WEATHER, 3), (DEAD_LETTERS, 1)):
            await admin.create_topic(topic, partitions=partitions)

    def _write_pipeline(self, bootstrap: str) -> None:
        """The pipeline file of the package with this broker's address."""
        text = files("partita.demo").joinpath("flights.toml").read_text(encoding="utf-8")
        (self.folder / "flights.toml").write_text(text.replace("localhost:9092", bootstrap), encoding="utf-8")

    async def _play(self, bootstrap: str, admin: AsyncAdmin, watching: list[asyncio.Task[None]]) -> None:
        """Play the scenes, each of which begins when the one before has come about."""
        spark, consumer = self._ownership.of, self._ownership.of

        async def until(holds: Callable[[], object]) -> None:
            while not holds():
                self._check(watching)
                # Polled, since a condition may depend on several children and the group's log.
                await asyncio.sleep(0.05)

        await self._start("replay", "demo.replay", bootstrap, str(self.rate))
        await self._start_spark()
        await until(lambda: "weather-done" in self._facts)
        await self._control("trace_group", DESK)
        await self._start_consumer(bootstrap)
        self._say(f"replaying {FLIGHTS_IN_CSV:,} flights; a consumer reads them; Spark is starting to join its group")
        await until(lambda: spark(SPARK))
        await self._children["replay"].tell()
        await until(lambda: self._rows[SPARK])
        self._say(f"Spark has joined: it owns {len(spark(SPARK))} of {PARTITIONS} partitions")
        await self._control("untrace_group", DESK)
        self.story.inside.notes = await asyncio.to_thread(lambda: list(self._broker.notes()))
        await asyncio.sleep(CALM_S)
        await self._kill(CONSUMER, admin)
        # Now there are seconds to wait; before, Spark's start needs every core.
        truth = asyncio.create_task(asyncio.to_thread(expected))
        await until(lambda: len(spark(SPARK)) == PARTITIONS)
        self._say("Spark owns every partition")
        await self._move_coordinator()
        await self._start_consumer(bootstrap)
        self._came_back(CONSUMER)
        await until(lambda: consumer(CONSUMER) and spark(SPARK))
        self._say("the consumer is back and has been given partitions")
        self.truth = await truth
        await self._children["replay"].tell()
        await asyncio.sleep(CALM_S)
        batches = self.story.spark_batches
        await until(lambda: self.story.spark_batches > batches)
        await asyncio.sleep(INSIDE_A_BATCH_S)
        await self._kill(SPARK, admin)
        await self._start_spark("standby")
        await until(lambda: len(consumer(CONSUMER)) == PARTITIONS)
        await self._children[SPARK].tell()
        self._came_back(SPARK)
        self._say("the consumer owns every partition; another Spark, started meanwhile, may join")
        await until(lambda: spark(SPARK))
        self._say("Spark is back and has been given partitions; the last flights are sent")
        await self._children["replay"].tell()
        await until(self._is_all_read)

    async def _control(self, verb: str, *arguments: Any) -> Any:
        """Do or ask something by the broker's control verbs, which block."""
        return await asyncio.to_thread(getattr(self._broker.control, verb), *arguments)

    async def _move_coordinator(self) -> None:
        """Let the other node coordinate the group, and see whether that makes it rebalance."""
        inside, before = self.story.inside, await self._rebalances()
        inside.partitions = self._broker.cluster.config.int("offsets.topic.num.partitions")
        inside.partition = partition_for(DESK, inside.partitions)
        inside.node = await self._control("coordinator", DESK)
        inside.moved_to, inside.moved_s = 3 - inside.node, self.elapsed_s()
        await self._control("move_coordinator", DESK, inside.moved_to)
        where = f"partition {inside.partition} of {inside.partitions} of {LOG_TOPIC}"
        self._say(f"the group's coordinator, {where}, moved from node {inside.node} to {inside.moved_to}")
        await asyncio.sleep(CALM_S)
        inside.rebalances_by_move = await self._rebalances() - before

    async def _rebalances(self) -> int:
        notes = await asyncio.to_thread(lambda: list(self._broker.notes()))
        return sum(note["note"] == "Rebalanced" and note["group_id"] == DESK for note in notes)

    async def _start(self, name: str, module: str, *arguments: str) -> None:
        child = await Child.start(name, f"partita.{module}", list(arguments), self._on_event, self.folder)
        self._children[name] = child

    async def _start_consumer(self, bootstrap: str) -> None:
        await self._start(CONSUMER, "demo.desk", bootstrap, "usable/consumer")

    async def _start_spark(self, *how: str) -> None:
        await self._start(SPARK, "cli.demo_pipeline", "flights.toml", *how)

    def _say(self, text: str) -> None:
        self.progress.say(f"{self.elapsed_s():.0f} s: {text}")

    def _on_event(self, name: str, event: dict[str, Any]) -> None:
        match event.get("event", "batch"):
            case "sent":
                self._sent += event["count"]
                self.progress.at("replayed", self._sent, FLIGHTS_IN_CSV)
            case "processed":
                self._processed(CONSUMER, event["count"])
            case "batch":
                self.story.spark_batches += 1
                self._processed(SPARK, event["rows"])
            case fact:
                self._facts.add(fact)

    def _processed(self, who: str, count: int) -> None:
        self._rows[who] += count
        self.progress.at(f"read by {who}", self._rows[who], FLIGHTS_IN_CSV)

    def _is_all_read(self) -> bool:
        """Whether the replay is over and the group has committed all of it."""
        return "all-sent" in self._facts and bool(self.story.lag) and not self.story.lag[-1].lag

    def _check(self, watching: list[asyncio.Task[None]]) -> None:
        for child in self._children.values():
            child.check()
        for task in watching:
            if task.done():
                task.result()
        if self.elapsed_s() > DEADLINE_S:
            raise DemoFailed(f"not done after {DEADLINE_S:.0f} s; see the logs in {self.folder / 'logs'}")

    async def _watch_lag(self, admin: AsyncAdmin) -> None:
        while True:
            self.story.lag.append(LagSample(self.elapsed_s(), await self._lag(admin)))
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def _watch_group(self, bootstrap: str) -> None:
        async with AsyncConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.assign([TopicPartition(LOG_TOPIC, number) for number in await consumer.partitions_for(LOG_TOPIC)])
            while True:
                found = await consumer.poll(SAMPLE_EVERY_S)
                for record in found:
                    if record.key is not None and DESK.encode() in record.key:
                        is_group = kind_of(record.key) == GROUP_KEY
                        (self.story.inside.groups if is_group else self.story.inside.offsets).append(record)
                records = [LogRecord(r.key, r.value, r.partition, r.offset, r.timestamp) for r in found]
                for at_ms, owners in owners_in(records, DESK, FLIGHTS):
                    self._ownership.state((at_ms - self._started_wall_ms) / 1000, owners)

    async def _lag(self, admin: AsyncAdmin) -> int:
        """Return high watermark minus committed offset over all partitions; without a commit it counts from 0."""
        ends, committed = await self._ends(admin), await self._committed(admin)
        return sum(end - committed.get(number, 0) for number, end in ends.items())

    async def _ends(self, admin: AsyncAdmin) -> dict[int, int]:
        ends = await admin.list_offsets({(FLIGHTS, number): "latest" for number in range(PARTITIONS)})
        return {partition: end.offset for (_, partition), end in ends.items()}

    async def _committed(self, admin: AsyncAdmin) -> dict[int, int]:
        return {c.partition: c.offset for c in await admin.group_offsets(DESK) if c.topic == FLIGHTS}

    async def _kill(self, who: str, admin: AsyncAdmin) -> None:
        """Kill a member and record what it may have processed without a commit."""
        owned = self._ownership.of(who)
        self._children[who].kill()
        kill = Kill(who, self.elapsed_s())
        await self._children[who].process.wait()
        self._ownership.killed(kill.at_s, who)
        # Read after the process is gone: no commit of it can follow.
        committed, ends = await self._committed(admin), await self._ends(admin)
        kill.uncommitted = {number: (committed.get(number, 0), ends[number]) for number in owned}
        self.story.kills.append(kill)
        self._say(f"{who} killed with SIGKILL; its partitions move when its session expires")

    def _came_back(self, who: str) -> None:
        self._ownership.back(who)
        self.story.kills[-1].back_s = self.elapsed_s()

    async def _finish(self, admin: AsyncAdmin) -> None:
        self._say("everything is read; the files and the dead letters are compared with the CSV")
        self._ownership.close(self.elapsed_s())
        self.story.tenures = self._ownership.tenures
        await asyncio.gather(*(child.finish() for child in self._children.values()))
        self.story.final_lag = await self._lag(admin)

    def _note_rebalances(self, notes: list[dict[str, Any]]) -> None:
        """Take the coordinator's own account of the group's rebalances, up to the end of the last scene."""
        end_s = max((tenure.to_s for tenure in self.story.tenures), default=self.elapsed_s())
        for account in accounts_of_notes(notes):
            at_s = (account.ended_ms - self._started_wall_ms) / 1000
            if account.group == DESK and at_s <= end_s:
                took_ms, members = account.took_ms or 0, len(account.members)
                # Later rebalances come only from members that leave at the end.
                self.story.rebalances.append(Rebalance(at_s, account.generation, account.headline, members, took_ms))

    async def _stop_children(self) -> None:
        await asyncio.gather(*(child.stop() for child in self._children.values()))


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
