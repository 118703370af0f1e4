"""The frame around the parts of a consumer: their turns, answers, refusals and errors.

`Consumer` and `ShareConsumer` have cores of their own, and this in common. Pure: the shell calls `poll(now)` whenever
`wait_ms` is over or something happened, sends the requests and feeds in the answers, one call at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from partita.consumer.broker_reachability import Outage
from partita.consumer.config import ConsumerConfig
from partita.consumer.coordinator import Coordinator
from partita.consumer.metadata import Metadata
from partita.consumer.request import Event, Failed, Part, Poll, Request
from partita.errors import KafkaError
from partita.now import Now
from partita.protocol.metadata_view import Node


@runtime_checkable
class Versioned(Part, Protocol):
    """A part that says itself what it means that brokers are too old for it."""

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker speaks no version of this request that would do."""


class Leaves(Protocol):
    """The part of a core that is the membership of a group."""

    def leave(self, reason: str) -> list[Request]:
        """Forget the membership; the requests that say so."""


class ClientCore(ABC):
    """Parts are attributes; the shell and the tests use them directly where one part is all it takes.

    `events` is for the application, in order.
    """

    membership: Leaves

    def __init__(self, config: ConsumerConfig, uniform: Callable[[float, float], float]) -> None:
        self.config = config
        self.events: list[Event] = []
        self.metadata = Metadata(config, uniform)
        self.coordinator = Coordinator(config, self.metadata, uniform)
        self.outage = Outage(self.events)
        self.refusal: KafkaError | None = None

    # The shell's side

    @abstractmethod
    def poll(self, now: Now, poll: Poll | None = None) -> Poll:
        """Let every part act once; return the requests to send now and the time of the next turn.

        A caller that may be interrupted gives the `poll`, in which it finds what the parts take for sent.
        """

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Give an answer to the part that asked for it."""
        self.outage.answered(now)
        request.part.on_response(request, response, now)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """The request got no answer: the connection failed, or the time for it was over."""
        request.part.on_disconnect(request, now)

    def on_broken_off(self, asked: Iterable[Request], sent: Container[Request], now: Now) -> None:
        """An interruption came while the parts decided: of the requests asked for they take for sent what is not."""
        for request in [one for one in asked if one not in sent]:
            # A part that was broken off before it had noted its request does not know it.
            with suppress(LookupError, TypeError, ValueError):
                self.on_disconnect(request, now)

    def on_unreachable(self, request: Request, why: str, now: Now) -> None:
        """The request was for any broker, and none could be reached."""
        self.outage.unreachable(why, now)
        self.on_disconnect(request, now)

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker speaks no version of this request that would do."""
        if isinstance(request.part, Versioned):
            request.part.on_unsupported(request, error, now)
            return
        request.part.on_disconnect(request, now)
        self.events.append(Failed(error))

    def on_refused(self, request: Request, error: KafkaError, now: Now) -> None:
        """No trusted connection can be made; the application's next call raises why. It is tried again all the same."""
        self.refusal = error
        request.part.on_disconnect(request, now)

    def take_refusal(self) -> KafkaError | None:
        """Why the last connection was refused, once."""
        refusal, self.refusal = self.refusal, None
        return refusal

    def take_drops(self) -> list[Node]:
        """Coordinators whose connection is to be cut."""
        drops, self.coordinator.drops = self.coordinator.drops, []
        return drops

    @property
    def has_news(self) -> bool:
        """Whether a poll that waits for something to give may find it. May be true without any, never the reverse."""
        return True

    # The application's side

    def take_event(self) -> Event | None:
        """The next event that is no error."""
        for i, event in enumerate(self.events):
            if not isinstance(event, Failed):
                del self.events[i]
                return event
        return None

    def take_failure(self) -> BaseException | None:
        """The error of the next event that is one."""
        if not self.events:
            return None
        failed = next((event for event in self.events if isinstance(event, Failed)), None)
        if failed is None:
            return None
        self.events.remove(failed)
        return failed.error

    def look_up_error(self, *, in_group: bool) -> BaseException | None:
        """Why topics cannot be read or, `in_group`, no coordinator is found; the next look-up may succeed."""
        if self.metadata.errors:
            return self.metadata.errors.pop(0)
        error = self.coordinator.take_error() if in_group and self.coordinator.node is None else None
        if error is not None:
            self.coordinator.want()
        return error
