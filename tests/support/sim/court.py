"""A coordinator before the simulator's rules: what it decides can be falsified on the way to them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from partita.assignors.interface import Subscription
from partita.assignors.payloads import encode_assignment, encode_subscription
from partita.group.config import GroupConfig
from partita.group.contract import GroupRequest, Step
from partita.group.coordinator import GroupCoordinator
from partita.group.requests import FetchOffsets
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from partita.protocol.messages.offset_commit import OffsetCommitRequest
from partita.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from partita.protocol.primitives import Structure
from partita.records.builder import build_batch
from partita.sim.rules.groups import GroupRules
from partita.sim.rules.members import MemberRules
from partita.sim.rules.offsets import OffsetRules
from partita.sim.rules.watch import LogRules
from partita.sim.world.asked import Asked
from support.clock import ManualClock

Change = Callable[[Any], None]
GROUP = "g"
RETENTION_MS = 60_000
"""The shortest one that a coordinator takes."""


class Court:
    """`ask` has a request decided and judged; `change` falsifies its answer before the rules see it."""

    def __init__(self, *, eager: bool = True, initial_delay_ms: int = 0) -> None:
        self.groups = GroupRules(GROUP, eager=eager)
        self.replay = LogRules()
        self.offsets = OffsetRules(RETENTION_MS, 4096)
        self.members = MemberRules(GROUP, GroupConfig(group_initial_rebalance_delay_ms=initial_delay_ms))
        self.clock = ManualClock(mono_ms=0, wall_ms=1_000_000)
        self.config = GroupConfig(
            group_initial_rebalance_delay_ms=0,
            offsets_retention_minutes=RETENTION_MS // 60_000,
            offsets_retention_check_interval_ms=1_000,
        )
        self._ids = iter(range(1, 1_000))
        self.coordinator = GroupCoordinator(self.config, lambda prefix: f"{prefix}-{next(self._ids)}")
        self.log: list[bytes] = []
        self.answers: dict[int, Any] = {}
        self._change: Change = lambda answer: None
        self._asked = 0
        self.take(self.coordinator.resume(self.clock.now()), None)

    def ask(self, message: Structure, version: int, change: Change = lambda answer: None) -> Any:
        """The answer, falsified; None if it waits."""
        self._asked += 1
        asked = self.asked(self._asked, message, version)
        self._change = change
        self.groups.before(asked, self.coordinator)
        self.offsets.observe(self.coordinator, self.clock.now().wall_ms)
        self.members.before(asked, self.coordinator, self.clock.now().mono_ms)
        self.offsets.before(asked)
        step = self.coordinator.handle(asked, asked.request, self.clock.now())
        self.groups.after(asked, self.coordinator)
        self.members.decided(asked, step, self.coordinator, self.clock.now().mono_ms)
        if not isinstance(message, HeartbeatRequest | OffsetCommitRequest | FetchOffsets):
            self.members.stepped(self.coordinator, self.clock.now().mono_ms)
        self.take(step, asked)
        self.due()
        return self.answers.get(asked.number)

    def asked(self, number: int, wire: Structure, version: int) -> Asked:
        """A request that has come in."""
        return Asked(number, GroupRequest(wire, version, "c", "/c"), 0, lambda asked, answer: None)

    def take(self, step: Step, cause: Asked | str | None) -> None:
        """Show the rules what a step says."""
        if step.records:
            self.log.append(build_batch([(0, key, value, ()) for key, value in step.records]))
            self.replay.appended(self.log[-1])
            self.replay.rests(self.coordinator)
            self.members.appended(step.records)
            self.offsets.appended(step.records, self.coordinator, self.clock.now().wall_ms, cause)
        for asked, answer in step.replies:
            assert isinstance(asked, Asked)
            answer = copy(answer)  # heartbeats share theirs
            self._change(answer)
            self.answers[asked.number] = answer
            self.groups.answered(asked, answer)
            self.members.answered(asked, answer)
            self.offsets.answered(asked, answer)

    def lose_everything(self) -> None:
        """A crash with nothing durable."""
        self.log.clear()
        self.groups.crashing(self.coordinator, all_durable=False)
        self.coordinator = GroupCoordinator(self.config, lambda prefix: f"{prefix}-{next(self._ids)}")
        self.coordinator.resume(self.clock.now(), clean=True)
        self.replay.loaded(self.coordinator, self.log)
        self.groups.loaded(self.coordinator)

    def due(self) -> None:
        """Have what is due done."""
        while (at := self.coordinator.next_deadline_ms()) is not None and at <= self.clock.now().mono_ms:
            self.offsets.observe(self.coordinator, self.clock.now().wall_ms)
            now_ms = self.clock.now().mono_ms
            self.members.look(self.coordinator, now_ms)
            step = self.coordinator.on_deadline(self.clock.now())
            self.members.decided(None, step, self.coordinator, now_ms)
            self.members.stepped(self.coordinator, now_ms)
            self.take(step, None)
        self.groups.stepped(self.coordinator)

    def pass_time(self, ms: int) -> None:
        """Let time pass."""
        self.clock.advance(ms)
        self.due()

    # What clients say

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        change: Change = lambda answer: None,
        *,
        topics: tuple[str, ...] = ("t",),
        version: int | None = None,
    ) -> Any:
        """A member that reads topic t joins by version 9 (with an instance id) or 3, unless told otherwise."""
        metadata = encode_subscription(Subscription(topics=topics))
        message = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id=member_id,
            group_instance_id=instance_id, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )  # fmt: skip
        return self.ask(message, version or (3 if instance_id is None else 9), change)

    def sync(
        self, joined: Any, shares: dict[str, list[tuple[str, int]]] | None = None, change: Change = lambda answer: None
    ) -> Any:
        """The member asks for its share; `shares` are the group leader's."""
        assignments = [
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(share))
            for member_id, share in (shares or {}).items()
        ]
        message = SyncGroupRequest(
            group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
        )
        self.groups.assigns(message, {"t": 2})
        return self.ask(message, 3, change)

    def stable(self, instance_id: str | None = None) -> Any:
        """The answer to the join of the only member of a stable group, which has both partitions of t."""
        joined = self.join(instance_id=instance_id)
        self.sync(joined, {joined.member_id: [("t", 0), ("t", 1)]})
        return joined

    def fetch(self, asked: FetchOffsets, change: Change = lambda answer: None) -> Any:
        """Read committed offsets."""
        return self.ask(asked, 9, change)
