"""One request at the simulated broker, from when it comes to when it is answered."""

from __future__ import annotations

from collections.abc import Callable

from partita.broker.groups.reply_gate import Call
from partita.protocol.primitives import Structure
from partita.sim.world.network import Link


class Asked(Call):
    """Where the answer to a request goes, and in which form. `send` is given the answer."""

    __slots__ = ("_send", "api_key", "asked_ms", "correlation_id", "frame", "link", "number", "version", "wire")

    def __init__(
        self,
        *,
        number: int,
        link: Link,
        api_key: int,
        version: int,
        correlation_id: int,
        wire: Structure,
        asked_ms: int,
        send: Callable[[Asked, Structure], None],
    ) -> None:
        self.number = number
        self.link = link
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.wire = wire
        self.asked_ms = asked_ms
        self.frame: bytes | None = None
        """The encoded answer, once there is one."""
        self._send = send

    def answer(self, response: Structure) -> None:
        """Answer the request; the frame leaves after those of earlier requests on the connection."""
        self._send(self, response)
