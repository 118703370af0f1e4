"""A simulated program over a consumer: it polls, processes records for a while, and commits in its configured way.

It is a generator: it yields how long it wants to sleep, or until when it waits for something to happen. Its callbacks
take time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from partita.consumer.core import ConsumerCore
from partita.consumer.group.commits import Kind
from partita.consumer.request import Assigned, Event, Lost, Operation, Request, Revoked
from partita.errors import FencedInstanceIdError, KafkaError, UnreleasedInstanceIdError
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.sim.rules.rule import RuleBroken
from partita.sim.rules.watch import Watch
from partita.sim.world.world import World

_AFTER_ERROR_MS = 10


@dataclass(frozen=True)
class Habits:
    """How an application behaves."""

    options: dict[str, Any]
    topics: tuple[str, ...]
    commit: str = "auto"
    """auto, sync, async or done."""
    work_ms: tuple[int, int] = (0, 50)
    callback_ms: tuple[int, int] = (0, 5)
    poll_ms: int = 2_000
    commits_in_revoked: bool = True


@dataclass(frozen=True)
class Wait:
    """Sleep until `until_ms`; if not `soundly`, anything that happens wakes up earlier."""

    until_ms: int
    soundly: bool = False


App = Generator[Wait, None, None]


class Application:
    """The part of a simulated process that its user wrote.

    `step` has the core decide and sends what it asks; `send` puts one request on the network.
    """

    def __init__(
        self,
        world: World,
        watch: Watch,
        *,
        name: str,
        habits: Habits,
        core: ConsumerCore,
        step: Callable[[], None],
        send: Callable[[Request], None],
    ) -> None:
        self._world = world
        self._watch = watch
        self.name = name
        self.habits = habits
        self.core = core
        self._step = step
        self._send = send
        self.is_closing = False
        """It stops after the poll it is in."""
        self.failure: BaseException | None = None
        """Why it ended, if it was fenced."""
        self._errors = 0
        self._epochs: dict[TopicPartition, int] = {}
        """The leader epoch of the last record before each partition's position, to be committed with it."""

    def run(self) -> App:
        """The program: polls and works until it closes or fails."""
        while not self.is_closing:
            before = self._errors
            records = yield from self._poll()
            if records:
                yield from self._process(records)
            if self._errors > before:
                yield from self._sleep(_AFTER_ERROR_MS, _AFTER_ERROR_MS)
        yield from self._close()

    def _poll(self) -> Generator[Wait, None, dict[TopicPartition, list[int]]]:
        core = self.core
        deadline = self._world.now.mono_ms + self.habits.poll_ms
        core.begin_poll(self._world.now)
        found: dict[TopicPartition, list[int]] = {}
        while not found:
            core.go_on_polling()
            if self._has_raised(core.next_error()):
                break
            self._step()
            yield from self._dispatch()
            if self._has_raised(core.next_error()):
                break
            if core.buffer:
                found = self._collect()
                if found:
                    break
            if self._world.now.mono_ms >= deadline or self.is_closing:
                break
            yield Wait(deadline)
        core.end_poll(self._world.now)
        return found

    def _collect(self) -> dict[TopicPartition, list[int]]:
        core = self.core
        collected = core.collect(core.config.max_poll_records)
        if collected.records:
            core.hand_out()
        if not core.buffer:
            self._step()
        found = {tp: [r.offset for r in records] for tp, records in collected.records.items()}
        for tp, offsets in found.items():
            self._epochs[tp] = collected.records[tp][-1].leader_epoch
            self._world.saw("d", self.name, f"{tp} {offsets[0]}-{offsets[-1]}")
            self._watch.clients.delivered(self.name, tp, offsets)
            if core.config.commit_done_only:
                core.done.handed_out(tp, offsets, offsets[-1] + 1, self._epochs[tp])
        return found

    def _dispatch(self) -> Generator[Wait, None, None]:
        while (event := self.core.take_event()) is not None:
            if isinstance(event, Assigned | Revoked | Lost):
                yield from self._callback(event)
                self.core.callback_done(None, self._world.now)
                self._step()

    def _callback(self, event: Event) -> Generator[Wait, None, None]:
        clients = self._watch.clients
        assert isinstance(event, Assigned | Revoked | Lost)
        if isinstance(event, Assigned):
            generation = self.core.member.generation
            clients.assigned(self.name, event.partitions, generation.member_id, generation.id)
            self._tell("a", clients.owned_by(self.name))
        elif isinstance(event, Revoked) and self.habits.commit == "sync" and self.habits.commits_in_revoked:
            yield from self._commit_done({tp: self._done_upto(tp) for tp in event.partitions if self._has(tp)})
        yield from self._sleep(*self.habits.callback_ms)
        if not isinstance(event, Assigned):
            generation = self.core.member.generation
            revoked_in = (generation.member_id, generation.id) if isinstance(event, Revoked) else None
            clients.given_up(self.name, event.partitions, revoked_in)
            self._tell("r" if isinstance(event, Revoked) else "l", clients.owned_by(self.name))

    def _tell(self, kind: str, owned: list[tuple[str, int]]) -> None:
        self._world.saw(kind, self.name, " ".join(f"{topic}-{p}" for topic, p in owned) or "nothing")

    def _process(self, records: dict[TopicPartition, list[int]]) -> Generator[Wait, None, None]:
        yield from self._sleep(*self.habits.work_ms)
        for tp, offsets in records.items():
            self._watch.clients.processed(tp, offsets)
            if self.core.config.commit_done_only:
                for offset in offsets:
                    self.core.done.done(tp, offset)
        offsets_done = {tp: offsets[-1] + 1 for tp, offsets in records.items()}
        if self.habits.commit == "sync":
            yield from self._commit_done(offsets_done)
        elif self.habits.commit == "async":
            self.core.commits.commit(Kind.ASYNC, self._with_epochs(offsets_done))
            self._step()

    def _commit_done(self, offsets: dict[TopicPartition, int]) -> Generator[Wait, None, None]:
        """A synchronous commit; its failure is the application's to live with."""
        operation = self.core.commits.commit(Kind.SYNC, self._with_epochs(offsets))
        yield from self._until(operation, 10_000)

    def _with_epochs(self, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {tp: OffsetAndMetadata(offset, self._epochs.get(tp, -1)) for tp, offset in offsets.items()}

    def _until(self, operation: Operation, patience_ms: int) -> Generator[Wait, None, None]:
        deadline = self._world.now.mono_ms + patience_ms
        self._step()
        while not operation.is_done:
            if self._world.now.mono_ms >= deadline:
                self.core.commits.cancel(operation)
                return
            yield Wait(deadline)
            self._step()

    def _has(self, tp: TopicPartition) -> bool:
        state = self.core.subscription.assignment.get(tp)
        return state is not None and state.position is not None

    def _done_upto(self, tp: TopicPartition) -> int:
        position = self.core.subscription.assignment[tp].position
        assert position is not None, "only partitions with a position are committed"
        self._epochs[tp] = position.offset_epoch
        return position.offset

    def _sleep(self, low: int, high: int) -> Generator[Wait, None, None]:
        ms = self._world.dice.between(low, high)
        if ms:
            yield Wait(self._world.now.mono_ms + ms, soundly=True)

    def _close(self) -> Generator[Wait, None, None]:
        self._world.saw("c", self.name, "close")
        core = self.core
        if core.config.enable_auto_commit and core.offsets_to_commit():
            yield from self._until(core.commits.commit(Kind.SYNC, None), 3_000)
        event = core.membership.begin_leave()
        if event is not None:
            yield from self._callback(event)
        for request in core.membership.leave("the consumer is being closed"):
            self._send(request)
        yield from self._sleep(100, 100)

    def _has_raised(self, error: BaseException | None) -> bool:
        """Handle an error of poll, which ends that poll. Being fenced ends the application.

        So does an instance id that another process has not released; the simulation starts it again later.
        """
        if error is None:
            return False
        self._errors += 1
        self._world.saw("c", self.name, f"poll raises {type(error).__name__}")
        if isinstance(error, FencedInstanceIdError):
            self.failure = error
            self.is_closing = True
        elif isinstance(error, UnreleasedInstanceIdError):
            self.is_closing = True
        elif not (isinstance(error, KafkaError) and error.retriable):
            raise RuleBroken("CLIENT", f"{self.name}: poll raises {error!r}")
        return True
