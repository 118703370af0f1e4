"""A run in progress: the members of one group in one design, and the trouble caused to them.

A lab starts members in worker processes, causes trouble, and waits for conditions; its journal keeps the events.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from types import TracebackType

from partita.designs.ground import COORDINATOR_NODE, DATA_NODE, Ground, listener
from partita.designs.journal import Committed, Fact, Journal, Seen, Span
from partita.designs.measure import is_shared, last_change
from partita.designs.members.settings import MemberSettings
from partita.designs.processes import Process
from partita.designs.rules import nodes
from partita.designs.rules.requests import Create, Put
from partita.designs.tap import KAFKA, ZOOKEEPER, Tap
from partita.designs.zookeeper.client import Client

WORKER = "partita.designs.members.worker"
COORDINATOR = "partita.designs.members.coordinator"
COORDINATORS = 2
PACKED = 10
LOOK_EVERY_S = 0.02
START_WITHIN_S = 60.0
OLD = ("1", "2")
"""The designs that need a ZooKeeper."""


class NotSettled(RuntimeError):
    """The group did not form even before the trouble."""


class Lab:
    """One group. `with Lab(...) as lab: lab.gather(5); lab.cause(); ...; lab.watch()`; then `lab.journal`."""

    def __init__(
        self, ground: Ground, design: str, scenario: str, *, number: int, partitions: int, rate: float = 50.0,
        ensemble: bool = False, session_factor: int = 1, auto_commit: bool = True,
    ) -> None:  # fmt: skip
        self.ground = ground
        self.design = design
        self.timings = replace(ground.timings, session_ms=ground.timings.session_ms * session_factor)
        self.session_s = self.timings.session_ms / 1000
        self.name = f"run-{number}"
        self.journal = Journal(design, scenario, partitions, self.timings.session_ms)
        self.rate = rate
        self.auto_commit = auto_commit
        self.strategy = "range"
        self.watch_brokers = False
        self.is_pinned: dict[str, int] = {}
        self.is_ensemble = ensemble
        self.taps: dict[str, Tap] = {}
        self._slots: dict[str, int] = {}
        self._workers: dict[str, Process] = {}
        self._shared: list[tuple[Process, list[str]]] = []
        self._coordinators: dict[str, Process] = {}
        self._heard = threading.Condition()
        self._late_s = 0.0
        self._ended = threading.Event()

    def __enter__(self) -> Lab:
        journal, ground = self.journal, self.ground
        ground.taps.frames.clear()
        ground.create_topic(self.name, journal.partitions)
        if self.design in OLD:
            self.zookeeper = ground.zookeeper(ensemble=self.is_ensemble)
            self._lay_out()
        else:
            ground.place_coordinator(self.name)
        if self.design == "2":
            self._start_coordinators()
        journal.start_s = time.monotonic()
        self._producing = threading.Thread(target=self._produce, daemon=True, name="producer")
        self._producing.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._producing.join()
        for process in {*self._workers.values(), *self._coordinators.values()}:
            process.kill()
        if self.design in OLD:
            self._keeper.close()
            for tap in self.taps.values():
                self.ground.taps.close(tap)
        self._collect()

    def _collect(self) -> None:
        """Take the frames seen by the taps into the journal, under the names of the members."""
        names = {f"slot-{slot}": member for member, slot in self._slots.items()}
        self.journal.late_s = self._late_s
        self.journal.frames = [
            Seen(frame.at_s, names.get(frame.member, frame.member), frame.name) for frame in self.ground.taps.frames
        ]
        refused = [fact.facts["error"] for fact in self.journal.facts if fact.event == "failed_order"]
        self.journal.remarks += list(dict.fromkeys(refused))[:1]
        self.journal.commits = [
            Committed(fact.at_s, fact.facts["partition"], fact.facts["offset"])
            for fact in self.journal.facts
            if fact.event == "commit"
        ]
        if self.design not in OLD:
            self.journal.commits = self.ground.commits_of(self.name)

    def _lay_out(self) -> None:
        """Create the nodes of brokers, topics and groups in ZooKeeper."""
        root = Client(self.zookeeper.addresses[-1], session_timeout_ms=30_000)
        root.start()
        root.ask(Create(f"/{self.name}"))
        root.close()
        keeper = Client(f"{self.zookeeper.addresses[-1]}/{self.name}", session_timeout_ms=30_000)
        keeper.start()
        group = f"/consumers/{self.name}"
        for path in (
            "/brokers", nodes.BROKERS, nodes.TOPICS, "/coordinators", nodes.SLOTS, nodes.EPOCHS, "/consumers", group,
            f"{group}/ids", f"{group}/owners", f"{group}/owners/{self.name}", f"{group}/offsets",
            f"{group}/offsets/{self.name}",
        ):  # fmt: skip
            keeper.ask(Create(path))
        keeper.ask(Create(nodes.topic(self.name), nodes.topic_json([DATA_NODE] * self.journal.partitions)))
        self._keeper = keeper
        self.add_broker(DATA_NODE)

    def _start_coordinators(self) -> None:
        for number in range(COORDINATORS):
            name = f"coordinator-{number}"
            self.taps[name] = self.ground.taps.open(name, ZOOKEEPER, self.zookeeper.addresses[-1])
            settings = {
                "number": number, "count": COORDINATORS, "session_ms": self.timings.session_ms,
                "zookeeper": f"{self.taps[name].address}/{self.name}",
            }  # fmt: skip
            self._coordinators[name] = self._process(COORDINATOR, [json.dumps(settings)])
        for name in self._coordinators:
            self.until(lambda name=name: self.told(name, "elected"), "the coordinators are elected")  # type: ignore[misc]  # a default argument binds
        self.bootstrap_two = [
            f"127.0.0.1:{self.told(name, 'listening')[-1].facts['port']}" for name in self._coordinators
        ]

    def _process(self, module: str, arguments: Sequence[str] = ()) -> Process:
        return Process(module, list(arguments), self._hear, self.ground.folder / "errors.txt")

    def _hear(self, fact: Fact) -> None:
        with self._heard:
            self.journal.facts.append(fact)
            self._heard.notify_all()

    def _produce(self) -> None:
        """Write a steady flow into every partition."""
        tick_s = 0.1
        each, number = max(1, round(self.rate * tick_s)), 0
        while True:
            due_s = time.monotonic() + tick_s
            if self._ended.wait(tick_s):
                return
            self._late_s = max(self._late_s, time.monotonic() - due_s)
            for partition in range(self.journal.partitions):
                for _ in range(each):
                    self.ground.producer.send(self.name, b"%d" % number, partition=partition)
            number += 1

    def settings(self, member: str) -> MemberSettings:
        """Return the settings a member is started with; opens its taps."""
        slot = self._slots.setdefault(member, len(self._slots))
        zookeeper, bootstrap = "", self.ground.broker.bootstrap_by(listener(slot))
        coordinators: list[str] = []
        if self.design in OLD:
            bootstrap = self.ground.broker.bootstrap
            server = self.zookeeper.addresses[self.is_pinned.get(member, -1)]
            if member not in self.taps:
                self.taps[member] = self.ground.taps.open(member, ZOOKEEPER, server)
            zookeeper = f"{self.taps[member].address}/{self.name}"
        if self.design == "2":
            for number, address in enumerate(self.bootstrap_two):
                key = f"{member} to coordinator-{number}"
                if key not in self.taps:
                    self.taps[key] = self.ground.taps.open(member, KAFKA, address)
                coordinators.append(self.taps[key].address)
        return MemberSettings(
            member=member, design=self.design, group=self.name, topic=self.name, bootstrap=bootstrap,
            zookeeper=zookeeper, coordinators=tuple(coordinators), timings=self.timings, strategy=self.strategy,
            auto_commit=self.auto_commit, watch_brokers=self.watch_brokers,
        )  # fmt: skip

    def start(self, member: str, *, alone: bool = False) -> int:
        """Start a member; `alone` gives it a process of its own, which can be stopped and killed. Returns its pid."""
        if alone:
            self._workers[member] = self._process(WORKER)
        else:
            if not self._shared or len(self._shared[-1][1]) >= PACKED:
                self._shared.append((self._process(WORKER), []))
            process, members = self._shared[-1]
            members.append(member)
            self._workers[member] = process
        self.journal.gone.pop(member, None)
        if member not in self.journal.live:
            self.journal.live.append(member)
        self._workers[member].order(do="start", member=member, settings=asdict(self.settings(member)))
        return self._workers[member].pid

    def tree(self) -> list[str]:
        """Return the nodes in ZooKeeper as lines; none in a design without it."""
        return list(nodes.tree(self._keeper.ask)) if self.design in OLD else []

    def take_facts(self) -> list[Fact]:
        """Return the members' facts since the last call. They leave the journal, so a run may last for days."""
        with self._heard:
            taken, self.journal.facts = self.journal.facts, []
        self.ground.taps.frames.clear()
        return taken

    def take_dead(self) -> list[str]:
        """Return members whose processes ended without being asked to, each of them once."""
        dead = [member for member, process in self._workers.items() if not process.is_running]
        for member in dead:
            self.kill(member)
        return dead

    def gather(self, members: Sequence[str], *, alone: Sequence[str] = (), gap_s: float = 0.0) -> None:
        """Start members and wait until the group is settled."""
        for member in members:
            self.start(member, alone=member in alone)
            if gap_s:
                time.sleep(gap_s)
        self.until(self.is_settled, f"{len(members)} members share {self.journal.partitions} partitions")

    def close(self, member: str) -> None:
        """Let a member leave in order."""
        self._workers[member].order(do="close", member=member)
        self.until(lambda: self.told(member, "closed"), f"{member} leaves")
        self._is_gone(member)

    def kill(self, member: str) -> None:
        """SIGKILL its process."""
        at_s = time.monotonic()
        self._workers.pop(member).kill()
        self._is_gone(member, at_s)

    def _is_gone(self, member: str, at_s: float | None = None) -> None:
        self.journal.gone[member] = time.monotonic() if at_s is None else at_s
        self.journal.live.remove(member)

    def pause(self, member: str, for_s: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """SIGSTOP its process, call `meanwhile`, and SIGCONT it after `for_s`."""
        from_s = time.monotonic()
        self._workers[member].pause()
        meanwhile()
        time.sleep(max(0.0, from_s + for_s - time.monotonic()))
        self._workers[member].resume()
        self.journal.paused += [Span(member, partition, from_s, time.monotonic()) for partition in (-1,)]

    def slow(self, member: str, for_s: float) -> None:
        """Make the processing of its next records take `for_s`."""
        self._workers[member].order(do="slow", member=member, ms=int(for_s * 1000))

    def end_session(self, member: str) -> None:
        """End its session with ZooKeeper on purpose; in designs without one, its session with the group."""
        if self.design in OLD:
            self._workers[member].order(do="end_session", member=member)
        else:
            self.ground.broker.control.expire_session(self.name, member)

    def authority_taps(self, member: str) -> list[Tap]:
        """Return the taps between a member and its group's authority: ZooKeeper, or the coordinating node."""
        if self.design in OLD:
            return [self.taps[member]]
        return [self.ground.kafka_taps[self._slots[member]][COORDINATOR_NODE]]

    def add_broker(self, broker_id: int) -> None:
        """Add a broker's node."""
        content = nodes.broker_json("127.0.0.1", 9092, int(time.time() * 1000))
        self._keeper.ask(Create(nodes.broker(broker_id), content, ephemeral=True))

    def grow(self, more: int) -> None:
        """Add partitions to the topic."""
        self.ground.grow_topic(self.name, self.journal.partitions, more)
        self.journal.partitions += more
        if self.design in OLD:
            content = nodes.topic_json([DATA_NODE] * self.journal.partitions)
            self._keeper.ask(Put(nodes.topic(self.name), content))

    def fail_over(self) -> None:
        """Kill the coordinator, or move the group to another."""
        if self.design == "2":
            slot = nodes.slot_of(self.name)
            name = f"coordinator-{slot % COORDINATORS}"
            self._coordinators.pop(name).kill()
        else:
            self.ground.place_coordinator(self.name, DATA_NODE)

    def cause(self, what: str) -> None:
        """Mark the begin of the trouble."""
        self.journal.cause_s = self.journal.healed_s = time.monotonic()
        self.mark(what)

    def mark(self, what: str) -> None:
        """Mark a moment for the picture."""
        self.journal.marks.append((time.monotonic(), what))

    def healed(self, what: str) -> None:
        """Mark the end of the trouble's cause."""
        self.journal.healed_s = time.monotonic()
        self.mark(what)

    def told(self, member: str, event: str) -> list[Fact]:
        """Return the facts of a member with this name."""
        return [fact for fact in list(self.journal.facts) if fact.member == member and fact.event == event]

    def has_happened(self, event: str) -> bool:
        """Whether any member has said so."""
        return any(fact.event == event for fact in list(self.journal.facts))

    def until(self, holds: Callable[[], object], what: str, within_s: float = START_WITHIN_S) -> None:
        """Wait until a condition holds. Raises NotSettled."""
        until_s = time.monotonic() + within_s
        while not holds():
            failed = [fact for fact in list(self.journal.facts) if fact.event == "failed_order"]
            if failed:
                raise NotSettled(f"{failed[0].member}: {failed[0].facts['error']}".rstrip(": "))
            if time.monotonic() > until_s:
                raise NotSettled(f"gave up after {within_s:g} s of waiting until {what}")
            with self._heard:
                self._heard.wait(LOOK_EVERY_S)

    def is_settled(self) -> bool:
        """Whether every partition has one reader, each member has a share, and nothing changed lately."""
        now_s = self.journal.end_s = time.monotonic()
        spans = self.journal.spans()
        return is_shared(self.journal, spans) and now_s - last_change(self.journal, spans) > self.quiet_s

    @property
    def quiet_s(self) -> float:
        """Return for how long a settled group has to stay unchanged."""
        return max(0.3, 1.5 * self.timings.heartbeat_ms / 1000)

    def watch(self, *, at_least_s: float = 0.0) -> None:
        """Watch until the group is settled again, or for three sessions if it does not settle; ten when it changes."""
        begin_s = time.monotonic()
        limit_s = begin_s + 10 * self.session_s
        while time.monotonic() < limit_s:
            now_s = time.monotonic()
            if now_s - begin_s >= at_least_s:
                if self.is_settled() or self._has_everybody_failed():
                    break
                quiet_since_s = max(begin_s, last_change(self.journal, self.journal.spans()), self._last_attempt_s())
                if now_s - quiet_since_s > 4 * self.ground.timings.session_ms / 1000:
                    break
            with self._heard:
                self._heard.wait(0.1)
        self.journal.end_s = time.monotonic()

    def _has_everybody_failed(self) -> bool:
        failed = {fact.member for fact in list(self.journal.facts) if fact.event == "failed_order"}
        return set(self.journal.live) <= failed

    def _last_attempt_s(self) -> float:
        return max((f.at_s for f in list(self.journal.facts) if f.event in ("attempt", "failed")), default=0.0)
