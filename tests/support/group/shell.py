"""The smallest honest shell around one coordinator shard, for tests: a log in a list, a clock moved by hand.

It appends what a step says, releases replies after that, drops and replays the shard when an append fails, and counts:
each token must be answered once. After every step it asserts the invariants of each group, and that a replay of the log
gives the same hard state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from partita.group.config import GroupConfig
from partita.group.contract import NO_HANDOVER, GroupRequest, Handover, Marker, Producer, Record, Reply, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.notes import Note
from partita.group.records.hard_state import HardState
from partita.group.state.answers import refusal
from partita.group.state.model import check
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Structure
from support.clock import ManualClock


@dataclass
class Entry:
    """One appended batch, or a marker."""

    records: tuple[Record, ...] = ()
    producer: Producer | None = None
    marker: Marker | None = None


@dataclass
class GroupShell:
    config: GroupConfig = field(default_factory=lambda: GroupConfig(group_initial_rebalance_delay_ms=3000))
    clock: ManualClock = field(default_factory=lambda: ManualClock(mono_ms=0, wall_ms=1_000_000_000_000))
    log: list[Entry] = field(default_factory=list)
    answered: dict[int, Structure] = field(default_factory=dict)
    open: dict[int, GroupRequest] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    failing_appends: int = 0
    checks: bool = True

    def __post_init__(self) -> None:
        self.ids = count(1)
        self.tokens: Iterator[int] = count(1)
        self.fresh: list[Reply] = []
        self.load()

    def new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{next(self.ids)}"

    def send(self, message: Structure, version: int = 9, client_id: str = "c", **more: Any) -> int:
        """Send a request; its answer is in `answered` under the token returned, now or later."""
        token = next(self.tokens)
        request = GroupRequest(message, version, client_id, f"/{client_id}", **more)
        self.open[token] = request
        self.take(self.shard.handle(token, request, self.clock.now()))
        return token

    def ask(self, message: Structure, version: int = 9, client_id: str = "c") -> Structure:
        """Send a request that is answered at once."""
        return self.answered[self.send(message, version, client_id)]

    def take(self, step: Step) -> None:
        if (step.records or step.marker) and self.failing_appends:
            self.failing_appends -= 1
            self.fail(step)
            return
        if step.records or step.marker:
            self.log.append(Entry(step.records, step.producer, step.marker))
            replay_into(self.mirror, self.log[-1])
        self.release(step)
        if self.checks:
            self.check()

    def release(self, step: Step) -> None:
        self.notes += step.notes
        for reply in step.replies:
            token = reply.token
            assert isinstance(token, int)
            assert token in self.open, f"token {token} is answered twice"
            del self.open[token]
            self.answered[token] = reply.message
            self.fresh.append(reply)

    def fail(self, step: Step) -> None:
        """The append failed: nobody is told what the step decided; everybody looks for the coordinator again."""
        error = ErrorCode.NOT_COORDINATOR
        asked = [(token, self.open[token]) for token, _ in step.replies if isinstance(token, int)]
        self.release(Step(replies=tuple(Reply(token, refusal(request, error)) for token, request in asked)))
        self.reload()

    def reload(self, *, tell: bool = True, clean: bool = True, handover: Handover = NO_HANDOVER) -> None:
        """Unload and load again; a crash tells nobody, and whoever waited is gone."""
        if tell:
            self.release(self.shard.unload())
            assert not self.open, f"unloading left {list(self.open.values())} unanswered"
        self.open.clear()
        self.load(clean=clean, handover=handover)

    def load(self, *, clean: bool = True, handover: Handover = NO_HANDOVER) -> None:
        self.shard = GroupCoordinator(self.config, self.new_member_id)
        self.mirror = replayed(self.log)
        for entry in self.log:
            replay_into(self.shard.hard_state, entry)
        self.take(self.shard.resume(self.clock.now(), handover, clean=clean))

    def advance(self, ms: int, each: Callable[[], None] = lambda: None) -> None:
        """Let time pass, stopping at every deadline on the way; `each` is called after each."""
        end = self.clock.now().mono_ms + ms
        while (due := self.shard.next_deadline_ms()) is not None and due <= end:
            self.clock.advance(max(0, due - self.clock.now().mono_ms))
            self.take(self.shard.on_deadline(self.clock.now()))
            each()
        self.clock.advance(end - self.clock.now().mono_ms)

    def jump(self, ms: int) -> None:
        """Let time pass in one leap, as if the process had slept."""
        self.clock.advance(ms)
        while (due := self.shard.next_deadline_ms()) is not None and due <= self.clock.now().mono_ms:
            self.take(self.shard.on_deadline(self.clock.now()))

    def check(self) -> None:
        for group in self.shard.groups.values():
            check(group)
        assert self.shard._outbox.parked == len(self.open), "open tokens are not the parked ones"
        assert self.mirror == self.shard.hard_state, "a replay of the log gives another hard state"

    def take_fresh(self) -> list[Reply]:
        fresh, self.fresh = self.fresh, []
        return fresh


def replay_into(hard: HardState, entry: Entry) -> None:
    producer_id, epoch = entry.producer or (-1, -1)
    for record in entry.records:
        hard.replay(record, producer_id, epoch)
    if entry.marker is not None:
        hard.end_transaction(*entry.marker.producer, committed=entry.marker.committed)


def replayed(log: list[Entry]) -> HardState:
    hard = HardState()
    for entry in log:
        replay_into(hard, entry)
    return hard
