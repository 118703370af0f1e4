"""The simulated network: connections that delay, stall, lose one direction, or break.

A connection keeps the order of what it carries, like TCP: nothing is lost out of its middle. It may fall silent in one
direction (half-open), be held up and then release everything at once, or be closed; the other end may never hear of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from partita.sim.world.world import World

NODES = 2
"""Nodes of the broker, from 1 on."""


class Listener(Protocol):
    """The broker's end."""

    is_up: bool

    def receive(self, link: Link, frame: bytes) -> None:
        """A frame has come in."""

    def closed(self, link: Link) -> None:
        """A connection is gone."""


class Caller(Protocol):
    """The client's end."""

    name: str

    def arrived(self, link: Link, frame: bytes) -> None:
        """A frame has come back."""

    def broken(self, link: Link) -> None:
        """The connection is gone."""


class Way(NamedTuple):
    """The key of a connection to one of several nodes; connections of one client to a node differ by their lane."""

    node_id: int
    lane: int = 0


@dataclass
class Weather:
    """Faults of the network that affect all connections."""

    delay_min_ms: int = 1
    delay_max_ms: int = 5
    slow_up: bool = False
    slow_down: bool = False


class Link:
    """One connection. `up_is_lost`, `down_is_lost`: what is sent that way disappears."""

    __slots__ = ("caller", "down_is_lost", "down_ms", "heard", "is_open", "is_served", "key", "up_is_lost", "up_ms")

    def __init__(self, caller: Caller, key: object) -> None:
        self.caller = caller
        self.key = key
        self.is_open = True
        """The client's end is open."""
        self.is_served = True
        """The broker's end is open."""
        self.up_is_lost = False
        self.down_is_lost = False
        self.up_ms = 0
        self.down_ms = 0
        self.heard: list[object] = []
        """The broker's requests not answered yet, in order."""


class Network:
    """Carries frames between callers and one listener. `cut` holds the names of unreachable callers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.weather = Weather()
        self.listener: Listener
        self.links: list[Link] = []
        self.cut: dict[str, None] = {}

    def connect(self, caller: Caller, key: object) -> Link | None:
        """A new connection, or None: the broker is down or the caller cut off."""
        if not self.listener.is_up or caller.name in self.cut:
            return None
        link = Link(caller, key)
        self.links.append(link)
        return link

    def send(self, link: Link, frame: bytes) -> None:
        """From the client to the broker."""
        if link.up_is_lost or not link.is_served or link.caller.name in self.cut:
            link.up_is_lost = True
            return
        link.up_ms = max(link.up_ms + 1, self._world.now.mono_ms + self._delay(slow=self.weather.slow_up))
        self._world.at(link.up_ms, self._up, link, frame)

    def reply(self, link: Link, frame: bytes) -> None:
        """From the broker to the client."""
        if link.down_is_lost or not link.is_open or link.caller.name in self.cut:
            link.down_is_lost = True
            return
        link.down_ms = max(link.down_ms + 1, self._world.now.mono_ms + self._delay(slow=self.weather.slow_down))
        self._world.at(link.down_ms, self._down, link, frame)

    def stall(self, link: Link, ms: int) -> None:
        """Hold everything back for `ms`, then deliver it at once."""
        until = self._world.now.mono_ms + ms
        link.up_ms, link.down_ms = max(link.up_ms, until), max(link.down_ms, until)

    def close_by_client(self, link: Link, *, quietly: bool = False) -> None:
        """The client's end goes; the broker hears of it unless the network is `quietly` losing that."""
        if not link.is_open:
            return
        link.is_open = False
        if not quietly and not link.up_is_lost and link.is_served:
            link.up_ms = max(link.up_ms + 1, self._world.now.mono_ms + self._delay(slow=False))
            self._world.at(link.up_ms, self._close_served, link)

    def close_by_broker(self, link: Link) -> None:
        """The broker's end goes; the client hears of it a little later, unless its direction is lost."""
        self._close_served(link)
        if link.is_open and not link.down_is_lost:
            link.down_ms = max(link.down_ms + 1, self._world.now.mono_ms + self._delay(slow=False))
            self._world.at(link.down_ms, self._break, link)

    def heal(self) -> None:
        """Repair the network; connections that were silent break, and both ends are notified."""
        self.cut.clear()
        self.weather = Weather()
        for link in list(self.links):
            if link.up_is_lost or link.down_is_lost:
                link.up_is_lost = link.down_is_lost = False
                self.close_by_broker(link)

    def _delay(self, *, slow: bool) -> int:
        weather = self.weather
        delay = self._world.dice.between(weather.delay_min_ms, weather.delay_max_ms)
        return delay * 20 if slow else delay

    def _up(self, link: Link, frame: bytes) -> None:
        if link.is_served and link.caller.name not in self.cut:
            self.listener.receive(link, frame)
        elif link.is_served:
            link.up_is_lost = True

    def _down(self, link: Link, frame: bytes) -> None:
        if not link.is_open:
            return
        if link.down_is_lost or link.caller.name in self.cut:
            link.down_is_lost = True
            return
        link.caller.arrived(link, frame)

    def _close_served(self, link: Link) -> None:
        if link.is_served:
            link.is_served = False
            self.links.remove(link)
            self.listener.closed(link)

    def _break(self, link: Link) -> None:
        if link.is_open and not link.down_is_lost:
            link.is_open = False
            link.caller.broken(link)
