"""The objects that the consumer's parts and its shell exchange: requests, events, operations under way.

The core hands one `Poll` to every part, which adds the requests to send and when to ask again. The shell sends each to
`node` (None: any node) and comes back with `on_response` or `on_disconnect`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.metadata_view import Node
from partita.wording import Note

FOREVER_MS = 3_600_000
"""Nothing is due: ask again when something happened, or after this."""


class Part(Protocol):
    """One concern of the consumer: decides on requests and takes in their answers."""

    def poll(self, now: Now, poll: Poll) -> None:
        """Add to `poll` the requests to send now, and how long the shell may wait before it polls again."""

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """The answer to one of its requests."""

    def on_disconnect(self, request: Request, now: Now) -> None:
        """One of its requests got no answer."""


@dataclass(slots=True, eq=False)
class Request:
    """One request to send. `to_coordinator` asks for a connection of its own; `version` is set when it is sent."""

    part: Part
    message: Any
    node: Node | None = None
    to_coordinator: bool = False
    max_version: int | None = None
    timeout_ms: int | None = None
    context: Any = None
    version: int = -1
    sent_at_ms: int = 0


@dataclass(slots=True)
class Poll:
    """Requests to send now, and how long the parts can wait before they are asked again."""

    requests: list[Request] = field(default_factory=list)
    wait_ms: int = FOREVER_MS

    def ask(self, request: Request) -> Request:
        """Have this sent. A part notes it as sent behind this call: then no interruption hides it from the shell."""
        self.requests.append(request)
        return request

    def wake_in(self, ms: float) -> None:
        """Ask to be polled again within `ms`."""
        wait_ms = int(ms + 0.999)
        if wait_ms < self.wait_ms:
            self.wait_ms = max(0, wait_ms)


@dataclass(slots=True, eq=False)
class Operation:
    """A call of the application that needs answers. `value` or `error` are there once `is_done`."""

    is_done: bool = False
    value: Any = None
    error: BaseException | None = None

    def succeed(self, value: Any = None) -> None:
        """The outcome is this value, unless there is an outcome already."""
        if not self.is_done:
            self.is_done, self.value = True, value

    def fail(self, error: BaseException) -> None:
        """The outcome is this error, unless there is an outcome already."""
        if not self.is_done:
            self.is_done, self.error = True, error


@dataclass(frozen=True, slots=True)
class Assigned:
    """Partitions were given; the listener hears it before they are fetched."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Partitions are about to be given up; commits still work."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Partitions are gone already; commits would fail."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """`poll` raises this, once."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit went through (for interceptors)."""

    offsets: Any


@dataclass(frozen=True, slots=True)
class CommitCallback:
    """An asynchronous commit ended; the application's callback runs on its own thread."""

    callback: Callable[..., Any]
    offsets: Any
    error: BaseException | None


Event = Assigned | Revoked | Lost | Failed | Committed | CommitCallback | Note


class Backoff:
    """Kafka's exponential back-off with jitter; `uniform` is injected."""

    def __init__(self, base_ms: int, max_ms: int, uniform: Callable[[float, float], float]) -> None:
        self._base_ms = base_ms
        self._max_ms = max_ms
        self._uniform = uniform

    def after(self, attempts: int) -> int:
        """Milliseconds to wait after this many earlier attempts (0: the base)."""
        return round(min(self._max_ms, self._base_ms * 2.0 ** min(attempts, 30)) * self._uniform(0.8, 1.2))
