"""Liveness rules once all faults have ended, followed by the final checks.

TL1 no transaction hangs, TL2 every transactional id comes to rest, TL3 every id can be used, TL4 groups can be read,
TL5 nothing waits in the broker, TL6 every client comes to an end.
"""

from __future__ import annotations

from partita.protocol.error_codes import ErrorCode
from partita.sim.rules.rule import must
from partita.sim.transactions import scripts
from partita.sim.transactions.client import Client, Script
from partita.sim.transactions.judge import Judge
from partita.sim.transactions.ledger import Reading
from partita.sim.transactions.simulation import Simulation

_STEP_MS = 500
_STOPS_MS = 100_000
"""Within this everything ends: a record's delivery timeout, then that of its transaction, with requests of 5 s."""
_OUTLIVED_MS = 50_000
"""Extra time for each member with a successor: it is fenced once it has a partition, which then waits for the session
of 45 s and the next heartbeat."""
_FRESH_MS = 5_000


class ProgressRules:
    """`judge` runs the healed world on until it rests, and judges it. Raises RuleBroken."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world

    def judge(self) -> None:
        """Check that all work ends, that every id can be used again, and that the logs agree with the answers."""
        simulation = self._simulation
        self._run(2_000)
        simulation.stage.is_producing = False
        for client in simulation.clients[:1]:  # nobody takes its place: only the timeout can end its transaction
            client.kill()
        self._run_until_settled(_STOPS_MS)
        simulation.watch.check_replay()
        self._use_every_id()
        self._run_until_settled(_FRESH_MS)
        final = self._read_everything()
        Judge(simulation).judge_all(final)

    def _run(self, ms: int) -> None:
        self._world.run(self._world.ms + ms)

    def _run_until_settled(self, patience_ms: int) -> None:
        begun_ms = self._world.ms
        outlived: set[str] = set()
        while why := self._why_not():
            outlived |= self._outlived()
            allowed_ms = patience_ms + _OUTLIVED_MS * len(outlived)
            must(self._world.ms < begun_ms + allowed_ms, why[0], f"{why[1]}, {allowed_ms} ms after the faults")
            self._run(_STEP_MS)

    def _outlived(self) -> set[str]:
        """Copiers that go on beside a later life of the same seat; one may begin after a pause that was a fault."""
        names = [one.name for one in self._simulation.clients if not one.is_over and one.name.startswith("copy")]
        newest = {name.partition(".")[0]: name for name in names}
        return set(names) - set(newest.values())

    def _why_not(self) -> tuple[str, str] | None:
        """A rule that waits, and what for; None once the world rests."""
        simulation, process = self._simulation, self._simulation.process
        if not process.is_up:
            return "TL5", "the broker is down"
        busy = [c.name for c in simulation.clients if not c.is_over and not c.name.startswith("r")]
        if busy or simulation.starting:
            return "TL6", f"{busy} have not come to an end"
        runner = process.services.transactions().runners.get(0)
        if runner is None or runner.error is not ErrorCode.NONE:
            return "TL2", "the transactions are not loaded"
        for name, entry in runner.coordinator.entries.items():
            if entry.is_pending or not entry.transaction.state.is_idle:
                return "TL2", f"{name} is {entry.transaction.state.text}"
        for topic in process.cluster.catalogue:
            for partition in topic.partitions:
                log = partition.log
                if log.last_stable_offset < log.log_end_offset:
                    where = f"{topic.name}-{partition.index}"
                    return "TL1", f"{where} is held at {log.last_stable_offset} of {log.log_end_offset}"
        if waiting := process.services.transactions().markers.count_waiting():
            return "TL5", f"{waiting} markers wait"
        return None

    def _use_every_id(self) -> None:
        """TL3: a fresh producer takes each id, writes and commits."""
        simulation = self._simulation
        ids = {told.transactional_id for told in simulation.ledger.transactions}
        for number, transactional_id in enumerate(sorted(ids)):
            self._finish(self._client(f"new{number}.1"), self._once, transactional_id)

    def _once(self, client: Client, transactional_id: str) -> Script:
        yield from scripts.write_once(self._simulation.stage, client, transactional_id)

    def _client(self, name: str) -> Client:
        simulation = self._simulation
        client = Client(self._world, simulation.network, name, simulation.node_ids)
        simulation.clients.append(client)
        return client

    def _finish(self, client: Client, script: object, *args: object) -> None:
        assert callable(script), "a script is given the client and its arguments"
        client.run(script(client, *args))
        end = self._world.ms + _FRESH_MS
        while not client.is_over:
            must(self._world.ms < end, "TL3", f"{client.name} {args} does not come to an end within {_FRESH_MS} ms")
            self._run(_STEP_MS)
        must(not client.failure, "TL3", f"{client.name} {args}: {client.failure}")

    def _read_everything(self) -> list[Reading]:
        """Every partition from its start to its end, and (TL4) every group's offsets."""
        simulation = self._simulation
        there = simulation.process.cluster.catalogue.by_name
        partitions = (*simulation.stage.written, *simulation.stage.inputs, ("out", 0))
        final = [Reading("final", where, 0, 0) for where in partitions if where[0] in there]
        self._finish(self._client("final.1"), scripts.read_all, final, simulation.stage)
        return final
