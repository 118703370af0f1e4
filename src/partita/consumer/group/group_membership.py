"""The membership in a group under either protocol, driven by `poll` and the application's calls."""

from __future__ import annotations

from typing import Protocol

from partita.consumer.request import Event, Part, Request
from partita.now import Now


class GroupMembership(Part, Protocol):
    """`poll` is asked all the time; the application's callbacks run only while `app_polling`.

    `is_held` makes the next rebalance, or the next reconciliation, wait; `is_awaited` has one that is under way go on
    between two polls, as far as no callback is due.
    """

    app_polling: bool
    is_held: bool
    is_awaited: bool

    @property
    def is_joining(self) -> bool:
        """Is the assignment changing, callbacks included?"""

    @property
    def is_settled(self) -> bool:
        """Is the assignment the one that the group means this member to have?"""

    def enforce_rebalance(self, reason: str) -> None:
        """The application asks for a rebalance."""

    def touch(self, now: Now) -> None:
        """The application polls: the time between polls starts over."""

    def callback_done(self, error: BaseException | None, now: Now) -> None:
        """The application's callback returned, or raised `error`."""

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker speaks no version of this request that would do."""

    def begin_leave(self) -> Event | None:
        """The callback that is owed before leaving, if something is owned."""

    def leave(self, reason: str, *, static_too: bool = False, remain: bool = False) -> list[Request]:
        """Forget the membership; return the requests that leave the group."""
