"""Plays deeds in the simulator: the real broker and the consumer's real core, in virtual time, with every rule watched.

The same story gives the same events, whoever plays it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from partita.broker.api.services import Services
from partita.broker.nodes import Cluster
from partita.broker.requests.group_trace import GroupTrace
from partita.broker.requests.injected_faults import Faults
from partita.consumer.group.commits import Kind
from partita.consumer.request import Assigned, Lost, Revoked
from partita.consumer.request import Event as CoreEvent
from partita.errors import FencedInstanceIdError, UnreleasedInstanceIdError
from partita.offsets.topic_partition import TopicPartition
from partita.play.stage import GROUP, Event, Seen, shown
from partita.records.batch import build_batch
from partita.sim.clients.application import App, Application, Habits, Wait
from partita.sim.clients.consumer import SimConsumer
from partita.sim.fault_plan import CLASSIC, MIXED, Plan
from partita.sim.moves import plan as calm_plan
from partita.sim.rules.rule import RuleBroken
from partita.sim.shell.process import broker_alarm
from partita.sim.simulation import Simulation
from partita.sim.world.world import START_WALL_MS, Trace

POLL_MS, BY_HAND_MS = 200, 5_000
"""How long polls wait: those of a member that polls by itself, and those by hand."""


class Member(Application):
    """The program of a member: it polls by itself or by hand, and does what it is asked between two polls."""

    polls_by_hand = False
    happens: Callable[..., None]
    """Called with what happens, in words, and its values."""

    def __init__(self, *about: Any, **more: Any) -> None:
        super().__init__(*about, **more)
        self.orders: deque[Generator[Wait, None, None]] = deque()
        self.work_ms = 0

    def run(self) -> App:
        """Polls and does what is asked, until it closes or is fenced."""
        while not self.is_closing:
            if self.orders:
                yield from self.orders.popleft()
            elif self.polls_by_hand:
                self._step()
                yield Wait(self._world.now.mono_ms + BY_HAND_MS)
            else:
                yield from self.poll()
        yield from self._close()

    def poll(self, times: int = 1) -> Generator[Wait, None, None]:
        """Poll so often; work on what came."""
        for _ in range(times):
            records = yield from self._poll()
            if self.polls_by_hand:
                read = [f"{len(found)} of {place}" for place, found in records.items()]
                self.happens("reads", ", ".join(read) or "nothing", count=sum(map(len, records.values())))
            if records:
                yield from self._process(records)
            if self.work_ms:
                busy_ms, self.work_ms = self.work_ms, 0
                yield from self._sleep(busy_ms, busy_ms)

    def commit(self) -> Generator[Wait, None, None]:
        """Commit the positions, and wait for the answer."""
        offsets = {tp: self._done_upto(tp) for tp in self.core.subscription.assignment if self._has(tp)}
        operation = self.core.commits.commit(Kind.SYNC, self._with_epochs(offsets))
        yield from self._until(operation, 10_000)
        if operation.error is not None:
            self.happens("raises", type(operation.error).__name__)

    def _callback(self, event: CoreEvent) -> Generator[Wait, None, None]:
        assert isinstance(event, Assigned | Revoked | Lost), "the events that have callbacks"
        yield from super()._callback(event)
        what = "assigned" if isinstance(event, Assigned) else "lost" if isinstance(event, Lost) else "revoked"
        owned = tuple(TopicPartition(*place) for place in sorted(self._watch.clients.owned_by(self.name)))
        generation = self.core.member.generation.id if what == "assigned" else -1
        self.happens(what, shown(event.partitions), owned=owned, generation=generation)

    def _has_raised(self, error: BaseException | None) -> bool:
        if error is None:
            return False
        self._errors += 1
        self.happens("raises", type(error).__name__)
        if isinstance(error, FencedInstanceIdError | UnreleasedInstanceIdError):
            self.failure, self.is_closing = error, True
        return True


class MemberProcess(SimConsumer):
    """A process with one member."""

    application_class = Member
    application: Member

    def order(self, work: Generator[Wait, None, None]) -> None:
        """Have something done between two polls."""
        self.application.orders.append(work)
        self.turn()


class Noted(Simulation):
    """A simulation whose notes are kept. `is_traced`: the requests of its group are, too."""

    def __init__(self, seed: int, plan: Plan, trace: Trace, *, is_traced: bool) -> None:
        self.notes: list[Mapping[str, Any]] = []
        self._is_traced = is_traced
        super().__init__(seed, plan, trace)

    def _services(self, cluster: Cluster) -> Services:
        services = super()._services(cluster)
        if self._is_traced:
            self.process.new_interceptor = self._interceptor
        cluster.notes.listen(self.notes.append)
        return services

    def _interceptor(self, services: Services) -> GroupTrace:
        """Return the trace of the group in this life of the broker."""

        def state_of(group_id: str) -> str:
            runner = services.groups().runner_of(group_id)
            return "Dead" if runner is None else runner.coordinator.state_of(group_id)

        cluster = services.cluster
        trace = GroupTrace(Faults(cluster.loop, cluster.notes), cluster.notes, state_of, cluster.catalogue.name_of)
        trace.start(GROUP)
        return trace

    def partitions_of(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return len(self._topic(topic))

    def append(self, topic: str, partition: int, count: int) -> None:
        """Append one batch of records; the value of a record is its own offset."""

        def append() -> None:
            at = self._topic(topic)[partition]
            now, end = self.process.clock.now(), at.log.log_end_offset
            records = [(now.wall_ms, None, b"%d" % (end + i), ()) for i in range(count)]
            at.log.append(build_batch(records), at.leader_epoch, now)

        self.process.enter(append)


class Simulator:
    """The stage."""

    name = "the simulator"
    refuses: Mapping[str, str] = dict.fromkeys(("fault", "heal"), "they belong to a story that begins with seed")
    began_wall_ms = START_WALL_MS

    def __init__(self, simulation: Noted) -> None:
        self.seen = Seen()
        self._running: dict[str, MemberProcess] = {}
        self._simulation = simulation
        self._world = simulation.world
        self._quiet = contextlib.ExitStack()
        self._alarms = self._quiet.enter_context(broker_alarm())

    @classmethod
    def of(cls, joins: Iterable[Mapping[str, str]]) -> Simulator:
        """The simulator for members with these settings."""
        settings = list(joins)
        spoken = {each.get("group_protocol", CLASSIC) for each in settings} or {CLASSIC}
        named = [each.get("partition_assignment_strategy", "range") for each in settings]
        speaks = spoken.pop() if len(spoken) == 1 else MIXED
        plan = calm_plan({"clients": 0, "partitions": (), "initial_delay_ms": 0, "heartbeat_ms": 5_000})
        eager = not any("cooperative" in name for name in named)
        assignors = ("range",) if eager else ("cooperative-sticky",)
        simulation = Noted(1, replace(plan, protocol=speaks, assignors=assignors), Trace(), is_traced=True)
        simulation.is_producing = simulation.replaces_closed = False
        simulation.world.run(0)
        return cls(simulation)

    @property
    def now_ms(self) -> int:
        """Virtual milliseconds since the beginning."""
        return self._world.ms

    def notes(self) -> Sequence[Mapping[str, Any]]:
        """The broker's notes, over all its lives."""
        return self._simulation.notes

    def advance(self, ms: int) -> None:
        """Let virtual time pass. Raises RuleBroken if a rule does not hold."""
        self._world.run(self._world.ms + ms)
        if self._alarms:
            raise RuleBroken("E", f"the broker logged: {self._alarms[0]}")

    def until(self, holds: Callable[[], bool]) -> bool:
        """Virtual time only passes by advance."""
        return holds()

    def digest(self) -> str:
        """The digest of the history."""
        return f"{self._world.trace.digest:08x}"

    def close(self) -> None:
        """Let the broker log again where it did before."""
        self._quiet.close()

    def members(self) -> list[str]:
        """The members of the group by their client ids."""
        coordinator = self._simulation.coordinator
        return [] if coordinator is None else [one.client_id for one in coordinator.members_of(GROUP)]

    def committed(self, place: TopicPartition) -> int | None:
        """The committed offset of a partition, as the coordinator has it."""
        coordinator = self._simulation.coordinator
        found = None if coordinator is None else coordinator.hard_state.committed(GROUP, place)
        return None if found is None else found.offset

    def deed(self, verb: str, name: str, number: int) -> None:
        """Do something to the broker; it takes no time."""
        simulation = self._simulation
        match verb:
            case "topic":
                simulation.process.enter(simulation.process.cluster.create_topic, name, number, 1)
            case "records":
                topic, _, partition = name.rpartition("-")
                simulation.append(topic, int(partition), number)
            case "add-partitions":
                for _ in range(number - simulation.partitions_of(name)):
                    simulation.add_partition(name)
            case "delete-topic":
                catalogue = simulation.process.cluster.catalogue
                simulation.process.enter(catalogue.delete, [catalogue.by_name[name]])
            case "move-coordinator":
                simulation.move_shard()
            case "fail-append":
                simulation.fail_append()
            case "crash-broker":
                simulation.crash(number)

    def join(self, who: str, topics: Sequence[str], settings: Mapping[str, str]) -> None:
        """Start a process with a member."""
        options = {"auto_offset_reset": "earliest", **settings, "group_id": GROUP, "bootstrap_servers": "sim:9092"}
        by_hand = options.pop("polls", "") == "by-hand"
        habits = Habits(
            options, tuple(topics), commit="auto", work_ms=(0, 0), callback_ms=(0, 0),
            poll_ms=BY_HAND_MS if by_hand else POLL_MS,
        )  # fmt: skip
        process = MemberProcess(self._world, self._simulation.network, self._simulation.watch, who, habits, {})
        process.application.polls_by_hand = by_hand
        process.application.happens = partial(self._happens, who)
        process.on_end = lambda _: self._happens(who, "ended")
        self._simulation.clients.append(process)
        self._running[who] = process
        self._happens(who, "starts")

    def act(self, who: str, verb: str, words: Sequence[str], number: int) -> None:
        """Let a member do something. One that has ended does nothing."""
        process = self._running[who]
        if process.is_over:
            return
        match verb:
            case "poll":
                process.order(process.application.poll(number))
            case "commit":
                process.order(process.application.commit())
            case "subscribe":
                process.core.subscription.subscribe_topics(words)
                process.turn()
            case "work":
                process.application.work_ms = number
            case "close":
                process.close()
            case "crash":
                process.kill(quietly=False)
                self._happens(who, "crashes")
            case "stop":
                process.pause()
                self._happens(who, "stands still")
            case "continue":
                process.resume()
                self._happens(who, "goes on")

    def _happens(self, who: str, what: str, text: str = "", **values: Any) -> None:
        self.seen.add(Event(self.now_ms, who, what, text, **values))
