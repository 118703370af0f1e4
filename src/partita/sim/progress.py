"""Liveness rules: events that must follow once all faults have ended.

L1 joins are answered, L11 the group becomes stable with every live client, and L12 stays so; L13 everything is
processed and committed.

Bounds are the protocol's own timeouts.
"""

from __future__ import annotations

from partita.protocol.messages.join_group import JoinGroupRequest
from partita.sim.clients.consumer import SimConsumer
from partita.sim.fault_plan import CLASSIC
from partita.sim.rules.rule import must
from partita.sim.simulation import EXPIRY_CHECK_MS, Simulation

_STEP_MS = 500
_QUIET_HEARTBEATS = 100
_STRAGGLERS_MS = 10_000
"""Clients that were closing or dead come back within this; only then membership changes no more.

With the consumer protocol a static member's new process also waits until the session of a killed one is over.
"""


class ProgressRules:
    """`judge` runs the healed world on for as long as the bounds allow. Raises RuleBroken."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world
        plan = simulation.plan
        self._eps_ms = 3_000
        client_ms = 5_000 + plan.session_ms + 2_000
        """A client may be waiting for a request's end, and sit out a session, before it looks again."""
        self._stable_ms = plan.session_ms + 2 * max(plan.max_poll_ms, plan.initial_delay_ms) + client_ms + self._eps_ms
        waits_for_old = plan.static and plan.protocol != CLASSIC
        self._stragglers_ms = _STRAGGLERS_MS + (plan.session_ms if waits_for_old else 0)
        self._quiet_ms = _QUIET_HEARTBEATS * plan.heartbeat_ms
        self._join_ms = max(plan.max_poll_ms, plan.initial_delay_ms) + plan.session_ms + self._eps_ms

    def judge(self) -> None:
        """Demand that joins end, the group settles and stays so, and nothing is left to do."""
        self._run(self._stragglers_ms)
        took = self._run_until_settled()
        must(took is not None, "L11", f"not settled {self._stable_ms} ms after healing: {self._why_not()}")
        watch = self._simulation.watch
        generation = watch.generation
        self._run_until_done()
        self._run(self._quiet_ms)
        must(watch.generation == generation, "L12", f"generation {watch.generation} after settling in {generation}")
        must(not self._why_not(), "L11", f"settled, and then not: {self._why_not()}")
        late_ms = self._world.now.wall_ms - 2 * EXPIRY_CHECK_MS
        coordinator = self._simulation.coordinator
        must(coordinator is not None, "L11", "settled, and then not loaded")
        overdue = watch.offsets.overdue(coordinator, late_ms) if coordinator is not None else []
        must(not overdue, "S24", f"should have expired by now: {overdue}")

    def _run(self, ms: int) -> None:
        """Let time pass, watching how long joins wait."""
        end = self._world.ms + ms
        while self._world.ms < end:
            self._world.run(min(end, self._world.ms + _STEP_MS))
            asked = self._simulation.watch.oldest_open()
            if asked is not None and isinstance(asked.wire, JoinGroupRequest):
                waits_ms = self._world.now.mono_ms - asked.asked_ms - self._world.stood_ms(asked.asked_ms)
                must(waits_ms <= self._join_ms, "L1", f"a join of {asked.client} waits since {waits_ms} ms")

    def _run_until_settled(self) -> int | None:
        start = self._world.ms
        while self._world.ms - start < self._stable_ms:
            self._run(_STEP_MS)
            if not self._why_not():
                return self._world.ms - start
        return None

    def _live(self) -> list[SimConsumer]:
        """Processes that may have a place in the group; where the old process of an instance wins, a twin has none."""
        live = [c for c in self._simulation.clients if not c.is_over]
        held = {c.instance_id for c in live if c.instance_id and c.core.member.generation.member_id}
        return [c for c in live if c.core.member.generation.member_id or c.instance_id not in held]

    def _why_not(self) -> str:
        """Return the missing conditions for a stable group with all live clients and all partitions owned."""
        watch, live = self._simulation.watch, self._live()
        coordinator, group_id = self._simulation.coordinator, watch.group_id
        if coordinator is None:
            return "the group is not loaded"
        if not watch.is_stable:
            return f"the group is {coordinator.state_of(group_id)}"
        ids = {c.core.member.generation.member_id for c in live}
        members = {known.member_id for known in coordinator.members_of(group_id)}
        if ids != members:
            return f"members are {sorted(members)}, clients {sorted(ids)}"
        now = watch.generation
        late = [c.name for c in live if c.core.member.generation.id != now or not c.core.member.is_stable]
        if late:
            return f"{', '.join(late)} are not in generation {now}"
        owned = sorted(tp for c in live for tp in watch.clients.owned_by(c.name))
        if owned != sorted(self._simulation.partitions()):
            return f"owned are {owned}"
        return ""

    def _run_until_done(self) -> None:
        """L13: at the slowest rate the application works at."""
        plan = self._simulation.plan
        start, patience = self._world.ms, 0
        while self._lag():
            if self._world.ms - start > patience:
                backlog = sum(self._simulation.end_of(at) for at in self._simulation.partitions())
                patience = self._stable_ms + (backlog // plan.max_poll_records + 1) * (plan.work_ms + 200)
                must(self._world.ms - start <= patience, "L13", f"still behind: {self._lag()}")
            self._run(_STEP_MS)

    def _lag(self) -> dict[str, tuple[int, int, int]]:
        """Of partitions that are behind: (processed, committed, end)."""
        behind: dict[str, tuple[int, int, int]] = {}
        coordinator = self._simulation.coordinator
        must(coordinator is not None, "L13", "settled, and then not loaded")
        assert coordinator is not None, "a rule has seen to that"
        hard = coordinator.hard_state
        for topic, partition in self._simulation.partitions():
            end = self._simulation.end_of((topic, partition))
            progress = self._simulation.watch.clients.progress.get((topic, partition))
            committed = hard.committed(self._simulation.watch.group_id, (topic, partition))
            done = progress.upto if progress else 0
            stored = committed.offset if committed else 0
            if done != end or (stored != end and self._simulation.plan.commit in ("auto", "done")):
                behind[f"{topic}-{partition}"] = (done, stored, end)
        return behind
