"""The membership in a group under either protocol, driven by `poll` and the application's calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from partita.consumer.coordinator import Coordinator
from partita.consumer.group.member import Member
from partita.consumer.group.rebalance import ScriptRunner
from partita.consumer.metadata import Metadata
from partita.consumer.request import Event, Lost, Poll, Request, Revoked
from partita.now import Now
from partita.wording import Note


class GroupMembership(ABC):
    """`poll` is asked all the time; the application's callbacks run only while `app_polling`.

    `is_held` makes the next rebalance, or the next reconciliation, wait; `is_awaited` has one that is under way go on
    between two polls, as far as no callback is due.
    """

    number = "generation"
    """What the protocol calls the count of its assignments."""

    def __init__(self, member: Member, metadata: Metadata, coordinator: Coordinator) -> None:
        self.member = member
        self.app_polling = False
        self.is_held = False
        self.is_awaited = False
        self._metadata = metadata
        self._coordinator = coordinator
        self._now = Now(0, 0)
        self._runner = ScriptRunner(member.events)
        self._rebalancing_since_ms: int | None = None

    @property
    @abstractmethod
    def is_joining(self) -> bool:
        """Is the assignment changing, callbacks included?"""

    @property
    @abstractmethod
    def is_settled(self) -> bool:
        """Is the assignment the one that the group means this member to have?"""

    @abstractmethod
    def enforce_rebalance(self, reason: str) -> None:
        """The application asks for a rebalance."""

    @abstractmethod
    def touch(self, now: Now) -> None:
        """The application polls: the time between polls starts over, unless it is inside a callback."""

    @abstractmethod
    def poll(self, now: Now, poll: Poll) -> None:
        """Heartbeats that are due; while the application polls, also the next step towards its assignment."""

    def call_again(self) -> None:
        """Ctrl-C broke off what was to run the awaited callback: have it run."""
        event = self._runner.awaited
        if event is not None and not any(one is event for one in self.member.events):
            self.member.events.append(event)

    def callback_done(self, error: BaseException | None, now: Now) -> None:
        """Continue: the application's callback returned, or raised `error`."""
        self._now = now
        self._runner.callback_done(error)

    @abstractmethod
    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """The answer to one of its requests."""

    @abstractmethod
    def on_disconnect(self, request: Request, now: Now) -> None:
        """One of its requests got no answer. One that leaves needs none."""

    @abstractmethod
    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker speaks no version of this request that would do."""

    def begin_leave(self) -> Event | None:
        """The callback that unsubscribe and close owe the application, if something is owned (5.9)."""
        member = self.member
        owned = tuple(sorted(member.subscription.assignment))
        if not owned or not member.subscription.is_group:
            return None
        return Lost(owned) if member.generation.is_none or member.is_rebalancing else Revoked(owned)

    @abstractmethod
    def leave(self, reason: str, *, static_too: bool = False, remain: bool = False) -> list[Request]:
        """Forget the membership; return the requests that leave the group, if any are due."""

    def _note(self, kind: str, text: str, fields: dict[str, Any] | None = None) -> None:
        self.member.events.append(Note(kind, text, fields or {}))

    def _note_silence(self, since_ms: int, now: Now) -> str:
        config = self.member.config
        text = (
            f"no poll for {now.mono_ms - since_ms} ms, max_poll_interval_ms is {config.max_poll_interval_ms}: leaving "
            f"group {config.group_id} at {self.number} {self.member.generation.id}; poll more often, lower "
            "max_poll_records, or raise max_poll_interval_ms"
        )
        self._note("poll_interval_exceeded", text)
        return text

    def _note_rebalanced(self) -> None:
        started, self._rebalancing_since_ms = self._rebalancing_since_ms, None
        if started is not None:
            generation, took = self.member.generation.id, self._now.mono_ms - started
            fields = {"generation": generation, "duration_ms": took}
            self._note("rebalanced", f"{self.number} {generation} in {took} ms", fields)
