"""Causes the faults of a plan, one stream of events per kind, in storms with calms between."""

from __future__ import annotations

from partita.sim.clients.consumer import SimConsumer
from partita.sim.clients.keeper import Keeper
from partita.sim.clients.stranger import Stranger
from partita.sim.shell.group_broker import GroupFaults
from partita.sim.simulation import Simulation
from partita.sim.world.faults import Storms


class Mischief(GroupFaults[SimConsumer]):
    """Runs until `stop`."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation, simulation.plan.session_ms)
        self._simulation = simulation
        self._is_over = False
        self._added = 0
        world, network, watch = simulation.world, simulation.network, simulation.watch
        self._stranger = Stranger(world, network, watch, lambda: simulation.coordinator_node)
        self._keeper = Keeper(world, network, watch.group_id, lambda: simulation.coordinator_node)
        self._keeper.may_delete = self._may_be_deleted
        for who, mean_ms in ((self._stranger, simulation.plan.stranger_ms), (self._keeper, simulation.plan.keeper_ms)):
            if mean_ms:
                self._ask_later(who, mean_ms)
        self._storms = Storms(simulation.world, simulation.plan.faults, self._cause, self.next_deadline_ms)
        for ms in simulation.plan.changes_ms:
            self._world.after(ms, self._change_over)

    def stop(self) -> None:
        """Cause nothing more."""
        self._is_over = self._storms.is_over = True

    def _change_over(self) -> None:
        """One process after another is stopped, and comes back with the protocol of now, until all have it."""
        wanted = self._simulation.plan.speaks(self._world.ms, self._world.dice)
        others = [c for c in self._simulation.clients if not c.is_over and self._simulation.speaks(c) != wanted]
        if others and not self._is_over:
            client = others[0]
            self._saw(f"close {client.name}, to start it as {wanted}")
            client.close()
            self._world.after(self._world.dice.between(500, 5_000), self._change_over)

    def _ask_later(self, who: Stranger | Keeper, mean_ms: int) -> None:
        self._world.after(int(self._world.dice.interval(mean_ms)), self._ask, who, mean_ms)

    def _ask(self, who: Stranger | Keeper, mean_ms: int) -> None:
        if not self._is_over:
            who.ask()
            self._ask_later(who, mean_ms)

    def _may_be_deleted(self, group_id: str) -> bool:
        """An empty group is deleted only when its end is durable: a crash would bring members back."""
        coordinator = self._simulation.coordinator
        return self._simulation.is_durable() or (coordinator is not None and bool(coordinator.members_of(group_id)))

    # Kinds: clients

    def kill_client(self) -> None:
        """A process dies, and comes back later."""
        if client := self._client():
            quietly = self._world.dice.chance(0.5)
            self._saw(f"kill {client.name}" + (", its peer is not told" if quietly else ""))
            client.kill(quietly=quietly)
            self._come_back(client)

    def close_client(self) -> None:
        """An application closes its consumer, and starts again later."""
        if client := self._client():
            self._saw(f"close {client.name}")
            client.close()

    def _come_back(self, client: SimConsumer) -> None:
        self._world.after(self._world.dice.between(0, 3_000), self._simulation.restart, client)

    def pause_client(self) -> None:
        """A process stands still for a while."""
        self._pause(3 * self._simulation.plan.session_ms)

    def twin_client(self) -> None:
        """A second process with the same instance id, if the members are static."""
        client = self._client()
        live = sum(not c.is_over for c in self._simulation.clients)
        if client is not None and self._simulation.plan.static and live < 2 * self._simulation.plan.clients:
            self._saw(f"a second process like {client.name}")
            self._simulation.restart(client)

    # Kinds: the broker

    def add_partition(self) -> None:
        """A topic gets one more partition, three times at most."""
        if self._added < 3 and self._simulation.process.is_up:
            self._added += 1
            name = self._world.dice.choice(self._simulation.topics)
            self._saw(f"add a partition to {name}")
            self._simulation.add_partition(name)

    def elect_leader(self) -> None:
        """The leader of a partition is elected again; nothing is lost by it."""
        if self._simulation.process.is_up:
            at = self._world.dice.choice(self._simulation.partitions())
            self._saw(f"elect the leader of {at[0]}-{at[1]}")
            self._simulation.elect(at)
