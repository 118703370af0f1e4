"""Faults of the connections in a simulation, one method for each kind."""

from __future__ import annotations

from partita.sim.world.network import Network
from partita.sim.world.world import World


class NetworkFaults:
    """Stalls last up to `stall_ms_max`. Each fault hits one connection, if there is any."""

    def __init__(self, world: World, network: Network, stall_ms_max: int) -> None:
        self._world = world
        self._network = network
        self._stall_ms_max = stall_ms_max

    def _saw(self, what: str) -> None:
        self._world.saw("!", "fault", what)

    def close_connection(self) -> None:
        """The broker closes a connection."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            self._saw(f"close a connection of {link.caller.name}")
            self._network.close_by_broker(link)

    def lose_requests(self) -> None:
        """A connection's requests get lost from now on."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            self._saw(f"lose requests of {link.caller.name}")
            link.up_is_lost = True

    def lose_responses(self) -> None:
        """A connection's responses get lost from now on."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            self._saw(f"lose responses to {link.caller.name}")
            link.down_is_lost = True

    def stall_connection(self) -> None:
        """A connection stands still for a while."""
        if links := self._network.links:
            link = self._world.dice.choice(links)
            ms = self._world.dice.between(1, self._stall_ms_max)
            self._saw(f"stall a connection of {link.caller.name} for {ms} ms")
            self._network.stall(link, ms)

    def cut(self, name: str) -> None:
        """Cut a client off from the network for a while."""
        ms = self._world.dice.between(100, self._stall_ms_max)
        self._saw(f"cut {name} off for {ms} ms")
        self._network.cut[name] = None
        self._world.after(ms, self._network.cut.pop, name, None)
