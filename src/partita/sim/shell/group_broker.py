"""The broker of a simulation of groups: its process, and the one shard that coordinates them, seen by the rules."""

from __future__ import annotations

from functools import partial
from typing import Generic

from partita.broker.api.services import Services
from partita.broker.groups.runner import ShardRunner
from partita.broker.nodes import Cluster
from partita.broker.shard_life import State
from partita.broker.topics.catalogue import Partition
from partita.group.coordinator import GroupCoordinator
from partita.lazy import Lazy
from partita.sim.rules.rule import must
from partita.sim.shell.group_shards import Recorder, WatchedCoordinators
from partita.sim.shell.process import Process
from partita.sim.world.faults import Faults, V
from partita.sim.world.network import Network
from partita.sim.world.world import World

_CLEANS_EVERY_MS = 3_000


class GroupBroker(Generic[V]):
    """The part that simulations of groups have in common. `load_ms`: how long loads take at most."""

    world: World
    network: Network
    clients: list[V]
    recorder: Recorder
    process: Process
    load_ms: int

    def watch_process(self) -> None:
        """Show the rules every life of the process; call it before the first."""
        self.process.make_services = self._services
        self.process.on_start = self._hold_load
        self.process.on_turn = self._turned

    def _services(self, cluster: Cluster) -> Services:
        services = Services(cluster)
        services.groups = Lazy(lambda: WatchedCoordinators(cluster, self.recorder, services.share_states().answer))
        return services

    def _turned(self) -> None:
        """A turn of the broker's loop is over."""
        self.recorder.raise_broken()
        must(not self.process.loop.failures, "E", f"raised and lost: {self.process.loop.failures[:1]}")
        runner = self.runner
        if runner is not None:
            self.recorder.read(runner.partition)
            if runner.state is State.ACTIVE and not runner.unwritten:
                self.recorder.watch.log.rests(runner.coordinator)
            self.recorder.raise_broken()

    @property
    def runner(self) -> ShardRunner | None:
        """The shard of the groups; None while there is none."""
        return self.process.services.groups().runners.get(0) if self.process.is_up else None

    @property
    def coordinator(self) -> GroupCoordinator | None:
        """The coordinator of the groups; None unless it is loaded."""
        runner = self.runner
        return runner.coordinator if runner is not None and runner.state is State.ACTIVE else None

    @property
    def coordinator_node(self) -> int:
        """The node that the groups' clients have to ask."""
        runner = self.runner
        return 1 if runner is None else runner.node_id

    def is_durable(self) -> bool:
        """Whether all that was decided survives a crash."""
        runner = self.runner
        if runner is None or runner.state is not State.ACTIVE:
            return False
        opened = runner.partition.opened_log
        return opened is None or opened.high_watermark == opened.log_end_offset

    def crash(self, down_ms: int) -> None:
        """Kill the broker's process, and start it again after a while."""
        if not self.process.is_up:
            return
        runner = self.runner
        if runner is not None:
            is_loaded = runner.state is State.ACTIVE
            self.recorder.watch.crashing(runner.coordinator, all_durable=self.is_durable(), is_loaded=is_loaded)
        lost = self.process.crash(down_ms)
        self.world.saw("*", "broker", f"crash, {lost} bytes lost")

    def move_shard(self) -> None:
        """Let the other node lead the groups: the shard is unloaded in order and loaded again."""
        runner = self.runner
        if runner is not None:
            self.world.saw("*", "broker", "unload")

            def move(partition: Partition, to: int) -> None:
                self._hold_load()
                self.process.cluster.elect(partition, to)

            self.process.enter(move, runner.partition, 3 - runner.node_id)

    def _hold_load(self) -> None:
        """Let the next load take a while."""
        groups, loop = self.process.services.groups(), self.process.loop
        if delay_ms := self.world.dice.between(0, self.load_ms):
            groups.hold_load(0)
            self.world.after(delay_ms, loop.enter, groups.release_load, 0)

    def keep_cleaning(self) -> None:
        """Have the log cleaner run now and then."""

        def clean() -> None:
            self.process.loop.create_task(self.process.services.upkeep.compact_now(force=True))

        self.process.enter(clean)
        self.world.after(_CLEANS_EVERY_MS, self.keep_cleaning)

    def fail_append(self) -> None:
        """Let the next append of the groups fail."""
        if self.runner is not None:
            self.runner.fail_next_append = True

    def fill_disk(self, *, is_full: bool) -> None:
        """Let no log take an append, or let there be room again."""
        self.process.disk.is_full = is_full

    def heal(self) -> None:
        """End the faults."""
        self.world.saw("!", "fault", "everything is healed")
        self.network.heal()
        self.load_ms = 0
        self.process.sync_ms = self.process.loop.work_ms = (0, 0)
        self.fill_disk(is_full=False)
        if self.runner is not None:
            self.runner.fail_next_append = False
        for client in list(self.clients):
            client.resume()


class GroupFaults(Faults[V]):
    """Faults of the coordinator and its disk, beside those that every workload has."""

    def __init__(self, simulation: GroupBroker[V], session_ms: int) -> None:
        super().__init__(simulation, 2 * session_ms)
        self._broker = simulation
        self._session_ms = session_ms

    def next_deadline_ms(self) -> int | None:
        """When the coordinator has something to do next."""
        coordinator = self._broker.coordinator
        return None if coordinator is None else coordinator.next_deadline_ms()

    def crash_broker(self) -> None:
        """The broker dies, and comes back later."""
        ms = self._world.dice.between(0, self._session_ms)
        self._saw(f"crash the broker for {ms} ms")
        self._broker.crash(ms)

    def move_shard(self) -> None:
        """The shard is unloaded in order and loaded again."""
        self._saw("move the shard")
        self._broker.move_shard()

    def fail_append(self) -> None:
        """The next append fails."""
        self._saw("the next append fails")
        self._broker.fail_append()

    def fill_disk(self) -> None:
        """The disk is full for a while."""
        ms = self._world.dice.between(100, self._session_ms)
        self._saw(f"the disk is full for {ms} ms")
        self._broker.fill_disk(is_full=True)
        self._world.after(ms, partial(self._broker.fill_disk, is_full=False))
