"""Membership of a share group: one heartbeat says the topics and hears the partitions.

Nothing is given up in a rebalance: members may share a partition, and records held stay held. So a new assignment
counts at once. (Kafka: ShareHeartbeatRequestManager, ShareMembershipManager.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from partita.consumer.coordinator import Coordinator
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Event, Failed, Poll, Request
from partita.consumer.sharing.session import PartitionId
from partita.consumer.sharing.settings import ShareConfig
from partita.errors import error_for
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from partita.wording import Note

LEAVE_EPOCH = -1
_SOON_MS = 300
_SOON_UNTIL = 10
"""A coordinator answers a join before it has assigned: the next heartbeats, so many at most, come soon."""
_NO_SHARE_GROUPS = (
    "this cluster has no share groups: they need Apache Kafka 4.2 or Partita, and the feature share.version above 0 "
    "(kafka-features.sh upgrade --feature share.version=1)"
)


class Standing(Enum):
    """How the member stands to its group."""

    OUT = "out"
    JOINING = "joining"
    IN = "in"
    FAILED = "failed"


class ShareMembership:
    """`assigned` are the partitions to read; `topics` what the application asked for."""

    def __init__(
        self,
        config: ShareConfig,
        coordinator: Coordinator,
        member_id: str,
        events: list[Event],
        uniform: Callable[[float, float], float],
    ) -> None:
        self.topics: frozenset[str] = frozenset()
        self.assigned: frozenset[PartitionId] = frozenset()
        self.standing = Standing.OUT
        self.is_polling = False
        self._config = config
        self._coordinator = coordinator
        self._member_id = member_id
        self._events = events
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._epoch = 0
        self._said: frozenset[str] | None = None
        self._in_flight: Request | None = None
        self._next_ms = 0
        self._not_before_ms = 0
        self._failures = 0
        self._answers = 0
        self._polled_at_ms = 0

    def subscribe(self, topics: frozenset[str]) -> None:
        """Read these topics; a member hears of it with its next heartbeat, which is due at once."""
        self.topics, self._answers = topics, 0
        if self.standing is Standing.FAILED:
            self._out()

    def touch(self, now: Now) -> None:
        """Note a poll of the application; a member that was silent too long joins again."""
        self._polled_at_ms = now.mono_ms
        if self.topics and self.standing is Standing.OUT:
            self.standing = Standing.JOINING

    def poll(self, now: Now, poll: Poll) -> None:
        """The heartbeat that is due."""
        if self.is_polling:
            self._polled_at_ms = now.mono_ms
        if self.standing not in (Standing.JOINING, Standing.IN):
            return
        silence_ends_ms = self._polled_at_ms + self._config.max_poll_interval_ms
        if now.mono_ms >= silence_ends_ms:
            self._leave_for_silence(now, poll)
            return
        poll.wake_in(silence_ends_ms - now.mono_ms)
        if self._coordinator.node is None:
            self._coordinator.want()
            self._said = None
            return
        if self._in_flight is not None:
            return
        has_news = self._said is None or self._said != self.topics
        due_ms = max(self._not_before_ms, 0 if has_news or self.standing is Standing.JOINING else self._next_ms)
        if now.mono_ms < due_ms:
            poll.wake_in(due_ms - now.mono_ms)
            return
        self._in_flight = poll.ask(self._heartbeat(self._epoch, says_all=has_news))

    def _heartbeat(self, epoch: int, *, says_all: bool) -> Request:
        message = ShareGroupHeartbeatRequest(
            group_id=self._config.group_id or "", member_id=self._member_id, member_epoch=epoch
        )
        if epoch != LEAVE_EPOCH and (says_all or epoch == 0):
            message.rack_id = self._config.client_rack or None
            message.subscribed_topic_names = sorted(self.topics)
            self._said = self.topics
        return Request(self, message, self._coordinator.node, to_coordinator=True)

    def _leave_for_silence(self, now: Now, poll: Poll) -> None:
        gap = now.mono_ms - self._polled_at_ms
        text = (
            f"no poll for {gap} ms, max_poll_interval_ms is {self._config.max_poll_interval_ms}: leaving share group "
            f"{self._config.group_id}; poll more often, or raise max_poll_interval_ms"
        )
        self._events.append(Note("poll_interval_exceeded", text))
        poll.requests += self.leave(text)

    # Answers

    def on_response(self, request: Request, response: ShareGroupHeartbeatResponse, now: Now) -> None:
        """Take in the answer to the heartbeat in flight; one of an earlier membership says nothing any more."""
        if request is not self._in_flight:
            return
        self._in_flight = None
        if response.error_code:
            self._refused(response.error_code, response.error_message, now)
            return
        self._coordinator.reached()
        self._failures = self._not_before_ms = 0
        self._epoch = response.member_epoch
        self.standing = Standing.IN
        if response.assignment is not None:
            self.assigned = frozenset(
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            )
        self._answers += 1
        is_sure = bool(self.assigned) or self._answers > _SOON_UNTIL
        interval_ms = response.heartbeat_interval_ms if is_sure else min(_SOON_MS, response.heartbeat_interval_ms)
        self._next_ms = request.sent_at_ms + interval_ms

    def _refused(self, code: int, text: str | None, now: Now) -> None:
        self._said = None
        names = [self._config.group_id or ""]
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            names = sorted(self.topics)
        text = _NO_SHARE_GROUPS if code == ErrorCode.UNSUPPORTED_VERSION else text or f"share group {names[0]!r}"
        error = error_for(code, text, operation="READ", names=names)
        match reaction("ShareGroupHeartbeat", code):
            case Reaction.LOOK_UP:
                self._coordinator.mark_unknown()
            case Reaction.RETRY:
                self._back_off(now)
            case Reaction.FORGET_MEMBER:
                self._out()
                self.standing = Standing.JOINING
            case Reaction.TELL:
                self._events.append(Failed(error))
                self._back_off(now)
            case _:
                self._fail(error)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """A heartbeat got no answer: look the coordinator up, and say everything again. Leaving needs no answer."""
        if request is not self._in_flight:
            return
        self._in_flight = None
        self._said = None
        self._coordinator.mark_unknown(was_disconnect=True)
        self._back_off(now)

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker does not know the request."""
        failure = error_for(ErrorCode.UNSUPPORTED_VERSION, _NO_SHARE_GROUPS)
        failure.__cause__ = error
        self._fail(failure)

    def _back_off(self, now: Now) -> None:
        self._not_before_ms = now.mono_ms + self._backoff.after(self._failures)
        self._failures += 1

    def _fail(self, error: BaseException) -> None:
        """The application hears of it; the way back into the group is to subscribe again."""
        self._out()
        self.standing = Standing.FAILED
        self._events.append(Failed(error))

    def _out(self) -> None:
        self.standing, self._epoch, self._said, self._answers = Standing.OUT, 0, None, 0
        self._in_flight = None
        self.assigned = frozenset()

    def leave(self, reason: str) -> list[Request]:
        """Forget the membership; returns the heartbeat that leaves, if one is due."""
        is_member = self.standing is Standing.IN or self._in_flight is not None
        goes = is_member and self._coordinator.node is not None
        requests = [self._heartbeat(LEAVE_EPOCH, says_all=False)] if goes else []
        self._out()
        return requests
