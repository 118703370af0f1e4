"""The share consumer's rules in one place: puts the parts together and passes facts between them.

The application's calls arrive here too.
"""

from __future__ import annotations

from collections.abc import Callable

from partita.consumer.client_core import ClientCore
from partita.consumer.errors import CorruptRecordError, IllegalStateError
from partita.consumer.request import Poll
from partita.consumer.sharing.fetching import ShareFetching
from partita.consumer.sharing.holding import Commit, Hold
from partita.consumer.sharing.membership import ShareMembership
from partita.consumer.sharing.settings import ShareConfig
from partita.now import Now


class ShareCore(ClientCore):
    """`member_id` is this consumer's own id in its share group."""

    config: ShareConfig
    membership: ShareMembership

    def __init__(self, config: ShareConfig, uniform: Callable[[float, float], float], member_id: str) -> None:
        super().__init__(config, uniform)
        self.member_id = member_id
        self.membership = ShareMembership(config, self.coordinator, member_id, self.events, uniform)
        self.fetching = ShareFetching(config, self.metadata, member_id, self.events, uniform)

    # The shell's side

    def poll(self, now: Now, poll: Poll | None = None) -> Poll:
        """Let every part act once; return the requests to send now and the time of the next turn."""
        self.metadata.want_topics(self.membership.topics)
        poll = Poll() if poll is None else poll
        self.membership.poll(now, poll)
        self.fetching.assigned = self.membership.assigned
        for part in (self.fetching, self.metadata, self.coordinator):
            part.poll(now, poll)
        return poll

    # The application

    def begin_poll(self, now: Now) -> None:
        """The application asks for records: what it had of the last poll ends here. Raises IllegalStateError."""
        if not self.membership.topics:
            raise IllegalStateError("the share consumer reads nothing yet; subscribe to topics before poll")
        self.settle()
        self.fetching.polled_at_ms = now.mono_ms
        self.membership.touch(now)
        self.coordinator.polled()
        self.fetching.send_said()
        self.membership.is_polling = self.fetching.is_polling = True

    def settle(self) -> None:
        """Accept what the last poll gave, or in explicit mode raise IllegalStateError for what was not acknowledged."""
        self.fetching.holdings.settle(accept=not self.config.is_explicit)

    def end_poll(self, now: Now) -> None:
        """The application has left its poll."""
        self.fetching.polled_at_ms = now.mono_ms
        self.membership.touch(now)
        self.membership.is_polling = self.fetching.is_polling = False

    def take(self, most: int, now: Now) -> list[Hold]:
        """The records to hand out now. Raises the error that stands before them, once."""
        holds = list(self.fetching.take(most, now))
        ready = self.fetching.ready
        if not holds and ready and isinstance(fault := ready[0], CorruptRecordError):
            ready.popleft()
            raise fault
        return holds

    def next_error(self) -> BaseException | None:
        """The error this poll has to raise, if any."""
        error = self.take_failure()
        return self.look_up_error(in_group=bool(self.membership.topics)) if error is None else error

    def commit(self) -> Commit:
        """Send what was acknowledged; in implicit mode the records of the last poll are accepted."""
        if not self.config.is_explicit:
            self.settle()
        commit = Commit()
        self.fetching.send_said(commit)
        return commit
