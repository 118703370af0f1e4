"""What waits behind the reply gate of the simulated broker: requests to be answered, and topics to be forgotten."""

from __future__ import annotations

from collections.abc import Callable

from partita.broker.groups.reply_gate import Call
from partita.group.contract import GroupRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
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


class Forgotten(Call):
    """The offsets of a deleted topic: `done` hears when they are durably gone, not when that has failed."""

    def __init__(self, name: str, done: Callable[[str], None]) -> None:
        super().__init__(GroupRequest(HeartbeatRequest(), 4))
        self.message = HeartbeatResponse()
        self._name = name
        self._done = done

    def answer(self, response: Structure) -> None:
        """Its own message says that everything before is durable; any other one, that the shard is over."""
        if response is self.message:
            self._done(self._name)
