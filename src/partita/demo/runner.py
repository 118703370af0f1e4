"""Conducts one demo run: broker, replay, three members, Spark; watches, kills one member, checks, reports.

Knows the order of things and nothing of drawing; progress goes out through `Progress`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

from partita import AsyncAdmin, Broker, __version__
from partita.demo import checks, report
from partita.demo.children import Child
from partita.demo.flights import Expected, expected
from partita.demo.story import LagSample, Rebalance, Story, Tenure
from partita.demo.worker import ANALYSTS, DEAD_LETTERS, FLIGHTS, SESSION_TIMEOUT_MS, WATCHERS, WEATHER

PARTITIONS = 6
MEMBERS = ("member-1", "member-2", "member-3")
VICTIM = "member-2"
KILL_AT = 0.4
RATE = 10_000
SAMPLE_EVERY_S = 0.5
DEADLINE_S = 220.0


class DemoFailed(RuntimeError):
    """The run did not get to its end in time."""


class Progress(Protocol):
    """Where the run says how far it is."""

    def say(self, text: str) -> None:
        """Show one line to the user."""
        ...

    def at(self, bar: str, done: int, total: int) -> None:
        """Move a named progress bar to `done` of `total`."""
        ...


class Runner:
    """One run; `story` is what it leaves."""

    def __init__(self, folder: Path, progress: Progress, rate: float = RATE) -> None:
        self.folder = folder
        self.progress = progress
        self.rate = rate
        self.story = Story(
            session_timeout_s=SESSION_TIMEOUT_MS / 1000,
            version=__version__,
            started=time.strftime("%d %B %Y, %H:%M UTC", time.gmtime()),
            machine=f"{os.cpu_count()} cores, {platform.platform(terse=True)}, Python {platform.python_version()}",
            command=f"partita demo --rate {rate:g} --out {folder.name}",
        )
        self.truth = Expected()
        self._started = time.monotonic()
        self._started_wall_ms = time.time() * 1000
        self._children: dict[str, Child] = {}
        self._owned: dict[tuple[str, int], float] = {}
        self._facts: set[str] = set()
        self._spark_rows = 0

    def elapsed_s(self) -> float:
        """Seconds since the demo started."""
        return time.monotonic() - self._started

    async def run(self) -> Story:
        """Do everything; raise ChildFailed or DemoFailed when it cannot be done. Leaves no process behind."""
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            broker = await stack.enter_async_context(Broker())
            self.progress.say(f"broker listens on {broker.bootstrap}")
            admin = await stack.enter_async_context(AsyncAdmin(bootstrap_servers=broker.bootstrap))
            await self._create_topics(admin)
            stack.push_async_callback(self._stop_children)
            await self._start_children(broker.bootstrap)
            self.truth = await asyncio.to_thread(expected)
            await self._until_everything_is_processed(admin)
            await self._finish(admin)
            self._note_rebalances(await asyncio.to_thread(lambda: list(broker.notes())))
        self.story.took_s = self.elapsed_s()
        self.story.checks = checks.compare(self.truth, self.story)
        (self.folder / "report.html").write_text(report.page(self.story), encoding="utf-8")
        return self.story

    async def _create_topics(self, admin: AsyncAdmin) -> None:
        for topic, partitions in ((FLIGHTS, PARTITIONS), (WEATHER, 3), (DEAD_LETTERS, 1)):
            await admin.create_topic(topic, partitions=partitions)

    async def _start_children(self, bootstrap: str) -> None:
        async def start(name: str, module: str, *arguments: str) -> None:
            logs = self.folder / "logs"
            self._children[name] = await Child.start(
                name, f"partita.demo.{module}", [bootstrap, *arguments], self._on_event, logs
            )

        await start("replay", "replay", str(self.rate))
        for name in MEMBERS:
            await start(name, "member", name)
        await self._until(lambda: "weather-done" in self._facts)
        await start("spark", "spark_job", str(self.folder))
        self.progress.say("replaying 336,776 flights; three consumers read live; Spark is starting")

    def _on_event(self, name: str, event: dict[str, Any]) -> None:
        match event["event"]:
            case "sent":
                self.progress.at("replayed", event["count"], self.truth.flights)
            case "assigned":
                self._owned.update({(name, number): self.elapsed_s() for number in event["partitions"]})
            case "revoked":
                self._end_tenures(name, event["partitions"])
            case "processed":
                for partition, first, end in event["ranges"]:
                    self.story.coverage.add(partition, first, end)
                self.progress.at("consumer group", self.story.coverage.distinct, self.truth.flights)
            case "batch":
                self._spark_rows += event["rows"]
                self.story.spark_batches += 1
                self.progress.at("Spark stream", self._spark_rows, self.truth.flights)
            case "results":
                self._take_results(event)
            case fact:
                self._facts.add(fact)

    def _end_tenures(self, name: str, partitions: list[int]) -> None:
        for number in partitions:
            if (began := self._owned.pop((name, number), None)) is not None:
                self.story.tenures.append(Tenure(name, number, began, self.elapsed_s()))

    def _take_results(self, event: dict[str, Any]) -> None:
        story = self.story
        story.delays = {(carrier, hour): (count, total) for carrier, hour, count, total in event["delays"]}
        story.usable, story.with_weather = event["usable"], event["with_weather"]
        story.dead_letter_rows = sum(event["dead_letters"].values())
        for reasons, count in event["dead_letters"].items():
            for reason in reasons.split(", "):
                story.dead_letters[reason] = story.dead_letters.get(reason, 0) + count

    async def _until(self, holds: Any) -> None:
        while not holds():
            self._check()
            await asyncio.sleep(0.05)

    def _check(self) -> None:
        for child in self._children.values():
            child.check()
        if self.elapsed_s() > DEADLINE_S:
            raise DemoFailed(f"not done after {DEADLINE_S:.0f} s; see the logs in {self.folder / 'logs'}")

    async def _until_everything_is_processed(self, admin: AsyncAdmin) -> None:
        """Sample the lag of both groups; kill the victim on the way; return when both have nothing left."""
        while True:
            self._check()
            lag = {group: await self._lag(admin, group) for group in (WATCHERS, ANALYSTS)}
            at_s = self.elapsed_s()
            self.story.lag += [LagSample(at_s, group, value) for group, value in lag.items()]
            self.story.final_lag = lag
            covered = self.story.coverage.distinct
            if not self.story.killed_member and covered >= KILL_AT * self.truth.flights:
                self._kill()
            if "all-sent" in self._facts and self.story.killed_member and not any(lag.values()):
                return
            await asyncio.sleep(SAMPLE_EVERY_S)

    async def _lag(self, admin: AsyncAdmin, group: str) -> int:
        """High watermark minus committed offset over all partitions; what was never committed counts from 0."""
        ends = await admin.list_offsets({(FLIGHTS, number): "latest" for number in range(PARTITIONS)})
        committed = {(c.topic, c.partition): c.offset for c in await admin.group_offsets(group)}
        return sum(end.offset - committed.get(tp, 0) for tp, end in ends.items())

    def _kill(self) -> None:
        self._children[VICTIM].kill()
        self.story.killed_member, self.story.killed_at_s = VICTIM, self.elapsed_s()
        self._end_tenures(VICTIM, [number for name, number in self._owned if name == VICTIM])
        self.progress.say(f"{VICTIM} killed with SIGKILL; its partitions move when its session expires")

    async def _finish(self, admin: AsyncAdmin) -> None:
        self.progress.say("everything is processed; Spark computes the delay table")
        await self._children["replay"].process.wait()
        await self._children["spark"].finish()
        for name in MEMBERS:
            if name != VICTIM:
                await self._children[name].finish()
        self.story.final_lag = {group: await self._lag(admin, group) for group in (WATCHERS, ANALYSTS)}

    def _note_rebalances(self, notes: list[dict[str, Any]]) -> None:
        """Take the coordinator's own account of the group's rebalances."""
        for note in notes:
            if note["note"] == "Rebalanced" and note["group_id"] == WATCHERS:
                causes = ", ".join(f"{cause['client_id']}: {cause['what']}" for cause in note["causes"])
                at_s = (note["wall_ms"] - self._started_wall_ms) / 1000
                took_ms = note["join_phase_ms"] + note["sync_phase_ms"]
                self.story.rebalances.append(Rebalance(at_s, note["generation"], causes, note["members"], took_ms))

    async def _stop_children(self) -> None:
        await asyncio.gather(*(child.stop() for child in self._children.values()))
