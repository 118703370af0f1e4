"""Membership of a group by the consumer protocol (KIP-848): one heartbeat says and hears everything.

The coordinator assigns; each member goes to its new share on its own, so no member waits for the slowest. `poll` is
asked all the time and keeps the member alive; only while the application is inside its own poll (`app_polling`) does
a reconciliation go forward, for its callbacks are the application's. (Kafka: AbstractHeartbeatRequestManager,
AbstractMembershipManager; consumer.md 12.)
"""

from __future__ import annotations

from collections.abc import Callable

from partita.consumer.coordinator import Coordinator
from partita.consumer.group.group_membership import GroupMembership
from partita.consumer.group.heartbeat_fields import HeartbeatFields
from partita.consumer.group.member import Generation, Member, MemberState
from partita.consumer.group.rebalance import Commit, Script, raise_later
from partita.consumer.group.reconciliation import Reconciliation
from partita.consumer.metadata import Metadata
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Failed, Lost, Poll, Request
from partita.errors import error_for
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatResponse,
)

PATTERNS_FROM_VERSION = 1
"""The first version of the heartbeat that carries a pattern."""
_IN_GROUP = (MemberState.JOINING, MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE)
_AT_ONCE = (MemberState.JOINING, MemberState.ACKNOWLEDGING)
_ANSWERS_UNTIL_SURE = 3
"""A coordinator may answer a join and its acknowledgement before it has assigned."""


class HeartbeatMembership(GroupMembership):
    """`callback_done` resumes a reconciliation after the application's callback; `is_held` makes the next one wait."""

    number = "epoch"

    def __init__(
        self,
        member: Member,
        metadata: Metadata,
        coordinator: Coordinator,
        uniform: Callable[[float, float], float],
        commit: Commit,
        member_id: str,
    ) -> None:
        super().__init__(member, metadata, coordinator)
        config = member.config
        self._member_id = member_id
        self._fields = HeartbeatFields(config)
        self._reconciliation = Reconciliation(member, metadata, commit, lambda: self._now)
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._in_flight: Request | None = None
        self._interval_ms = 0
        self._next_ms = 0
        self._not_before_ms = 0
        self._failures = 0
        self._answers = 0
        self._polled_at_ms = 0

    @property
    def is_joining(self) -> bool:
        """Is the member on its way to a new share, callbacks included?"""
        return self._runner.is_running or self.member.state in (*_AT_ONCE, MemberState.RECONCILING)

    @property
    def is_settled(self) -> bool:
        """Does the member hold its target assignment? "Nothing" counts once it is no first word."""
        return self.member.has_final_share and not self.is_joining

    def enforce_rebalance(self, reason: str) -> None:
        """Say that only the coordinator decides when to rebalance."""
        self._note("no_effect", "enforce_rebalance does nothing with group_protocol consumer: the broker assigns")

    def touch(self, now: Now) -> None:
        """The application polls: the time between polls starts over, unless it is inside a callback."""
        if not self._runner.awaits_callback:
            self._polled_at_ms = now.mono_ms

    # Asked all the time

    def poll(self, now: Now, poll: Poll) -> None:
        """The heartbeat that is due; while the application polls, also the next step of a reconciliation."""
        self._now = now
        member = self.member
        if self.app_polling and not self._runner.awaits_callback:
            self._polled_at_ms = now.mono_ms
            self._advance(poll)
        if member.state in _IN_GROUP:
            self._beat(now, poll)

    def _beat(self, now: Now, poll: Poll) -> None:
        member = self.member
        silence_ends_ms = self._polled_at_ms + member.config.max_poll_interval_ms
        if now.mono_ms >= silence_ends_ms:
            self._leave_for_silence(now, poll)
            return
        poll.wake_in(silence_ends_ms - now.mono_ms)
        if self._coordinator.node is None:
            self._coordinator.want()
            self._fields.forget()
            return
        if self._in_flight is not None:
            return
        at_once = member.state in _AT_ONCE or self._fields.has_news(member.subscription)
        due_ms = self._not_before_ms if at_once else max(self._not_before_ms, self._next_ms)
        if now.mono_ms < due_ms:
            poll.wake_in(due_ms - now.mono_ms)
            return
        self._in_flight = poll.ask(self._heartbeat())
        self._next_ms = now.mono_ms + self._interval_ms
        if member.state is MemberState.ACKNOWLEDGING:
            self._acknowledged(poll)

    def _heartbeat(self) -> Request:
        member = self.member
        epoch = 0 if member.generation.is_none else member.generation.id
        owned = self._reconciliation.owned
        message = self._fields.message(self._member_id, epoch, member.subscription, owned)
        return Request(self, message, self._coordinator.node, to_coordinator=True)

    def _leave_for_silence(self, now: Now, poll: Poll) -> None:
        """Leave the group; held partitions are lost at the next poll, which joins again.

        Deviation: Partita's KIP-848 consumer leaves as soon as `max.poll.interval.ms` is over, where Kafka's looks only
        when a heartbeat is due, up to 5 s late.
        """
        self._note_silence(self._polled_at_ms, now)
        poll.requests += self._goodbye(for_a_while=self.member.is_static)
        self._expel(MemberState.STALE, "the application did not poll")

    # Asked while the application polls

    def _advance(self, poll: Poll) -> None:
        """Advance as far as possible in this turn: the running script, then the action of the state."""
        member = self.member
        if any(isinstance(event, Failed) for event in member.events):
            return
        if self._runner.is_running and self._runner.resume():
            poll.wake_in(member.config.retry_backoff_ms)
        if self._runner.is_running or not member.subscription.is_group:
            return
        match member.state:
            case MemberState.UNSUBSCRIBED:
                self._join()
            case MemberState.FENCED | MemberState.STALE:
                self._runner.start(self._lose(), self._join)
            case MemberState.FATAL if member.subscription.assignment:
                self._runner.start(self._lose())
            case MemberState.RECONCILING if not self.is_held and self._reconciliation.is_due():
                if self._runner.start(self._reconciliation.script(), self._reconciled):
                    poll.wake_in(member.config.retry_backoff_ms)

    def _join(self) -> None:
        """Join with the next heartbeat; by a pattern only once the topics are known that match it."""
        member = self.member
        if not member.subscription.is_group:
            return
        if member.subscription.pattern is not None and not self._metadata.knows_all_topics:
            return
        member.move(MemberState.JOINING)
        self._fields.forget()
        self._answers = 0
        self._rebalancing_since_ms = self._now.mono_ms

    def _lose(self) -> Script:
        """Drop the partitions held, and report them as lost: they may have another owner already."""
        subscription = self.member.subscription
        owned = tuple(sorted(subscription.assignment))
        error = (yield Lost(owned)) if owned else None
        subscription.assign_by_group((), await_callback=False)
        raise_later(self.member, error)

    def _reconciled(self) -> None:
        """The script has ended: if it led somewhere, the coordinator hears of it at once."""
        member = self.member
        if member.state is not MemberState.RECONCILING or self._reconciliation.is_halfway:
            return
        member.move(MemberState.ACKNOWLEDGING)
        member.joined_generation = member.generation
        member.rejoin_needed = not self._reconciliation.is_reached
        self._note_rebalanced()

    def _acknowledged(self, poll: Poll) -> None:
        if self._reconciliation.is_reached:
            self.member.move(MemberState.STABLE)
        else:
            self._begin_reconciling()
            poll.wake_in(0)

    def _begin_reconciling(self) -> None:
        member = self.member
        member.move(MemberState.RECONCILING)
        member.rejoin_needed = True
        if self._rebalancing_since_ms is None:
            self._rebalancing_since_ms = self._now.mono_ms

    # Answers

    def on_response(self, request: Request, response: ConsumerGroupHeartbeatResponse, now: Now) -> None:
        """Take in the answer to the heartbeat in flight; one of an earlier membership says nothing any more."""
        self._now = now
        if request is not self._in_flight:
            return
        self._in_flight = None
        if request.version < PATTERNS_FROM_VERSION and self.member.subscription.server_pattern is not None:
            self.on_unsupported(request, None, now)
            return
        if response.error_code:
            self._refused(response.error_code, response.error_message, now)
            return
        self._coordinator.reached()
        self._failures = self._not_before_ms = 0
        self._interval_ms = response.heartbeat_interval_ms
        self._next_ms = request.sent_at_ms + self._interval_ms
        self._answers += 1
        member = self.member
        self._member_id = response.member_id or self._member_id
        member.generation = Generation(response.member_epoch, self._member_id)
        if response.assignment is not None:
            self._take_target(response.assignment)
        member.share_is_known = bool(self._reconciliation.target) or self._answers >= _ANSWERS_UNTIL_SURE

    def _take_target(self, assignment: ConsumerGroupHeartbeatAssignment) -> None:
        member = self.member
        takes_back = self._reconciliation.take_target(
            (topic.topic_id, partition) for topic in assignment.topic_partitions for partition in topic.partitions
        )
        if takes_back:
            self._next_ms = self._now.mono_ms
        if member.state is MemberState.ACKNOWLEDGING or self._runner.is_running:
            return
        if not self._reconciliation.is_reached:
            self._begin_reconciling()
        elif member.state is not MemberState.STABLE:
            member.move(MemberState.STABLE)
            member.rejoin_needed = False
            self._rebalancing_since_ms = None

    def _refused(self, code: int, told: str | None, now: Now) -> None:
        self._fields.forget()
        group = f"group {self.member.config.group_id!r}"
        names = [self.member.config.group_id or ""]
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            names = sorted(self.member.subscription.topics)
        match reaction("ConsumerGroupHeartbeat", code):
            case Reaction.LOOK_UP:
                self._coordinator.mark_unknown()
                self._next_ms = now.mono_ms
            case Reaction.RETRY:
                self._back_off(now)
            case Reaction.FORGET_MEMBER:
                self._expel(MemberState.FENCED, f"heartbeat answered {ErrorCode(code).name}")
            case Reaction.TELL:
                self.member.events.append(Failed(error_for(code, told or group, operation="READ", names=names)))
                self._back_off(now)
            case _:
                self._fail(error_for(code, self._cure(code) or told or group, operation="READ", names=names))

    def _cure(self, code: int) -> str | None:
        config, subscription = self.member.config, self.member.subscription
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return "this broker does not speak the consumer protocol (KIP-848); use group_protocol='classic'"
        if code == ErrorCode.UNRELEASED_INSTANCE_ID:
            return (
                f"another consumer of group {config.group_id!r} is {config.group_instance_id!r} and stays it until it "
                "leaves or its session ends; stop it, or use another group_instance_id"
            )
        if code == ErrorCode.INVALID_REGULAR_EXPRESSION:
            return f"the broker refuses the pattern {subscription.server_pattern!r}; it has to be in RE2's syntax"
        return None

    def on_disconnect(self, request: Request, now: Now) -> None:
        """A heartbeat got no answer: look the coordinator up, and say everything again. Leaving needs no answer."""
        if request is not self._in_flight:
            return
        self._in_flight = None
        self._coordinator.mark_unknown(was_disconnect=True)
        self._fields.forget()
        self._back_off(now)

    def on_unsupported(self, request: Request, error: BaseException | None, now: Now) -> None:
        """The broker speaks no version of the heartbeat that would do."""
        self._in_flight = None
        pattern = self.member.subscription.server_pattern
        told = self._cure(ErrorCode.UNSUPPORTED_VERSION)
        if pattern is not None:
            told = f"this broker matches no patterns such as {pattern!r} itself; subscribe with pattern='...' instead"
        failure = error_for(ErrorCode.UNSUPPORTED_VERSION, told)
        failure.__cause__ = error
        self._fail(failure)

    def _back_off(self, now: Now) -> None:
        self._not_before_ms = now.mono_ms + self._backoff.after(self._failures)
        self._failures += 1

    def _fail(self, error: BaseException) -> None:
        """The application hears of it once; there is no way back into the group but to subscribe again."""
        self._expel(MemberState.FATAL, str(error))
        self.member.events.append(Failed(error))

    def _expel(self, to: MemberState, reason: str) -> None:
        was_reconciling = self.member.state is MemberState.RECONCILING
        self.member.expel(to, reason)
        self._in_flight = None
        self._fields.forget()
        self._reconciliation.forget()
        self._rebalancing_since_ms = None
        if was_reconciling:
            self._note("rebalance_failed", reason)

    # Leaving

    def leave(self, reason: str, *, static_too: bool = False, remain: bool = False) -> list[Request]:
        """Forget the membership and any reconciliation under way; returns the heartbeat that leaves, if one is due.

        A static member says that it leaves for a while and keeps its partitions, unless `static_too`. A dynamic one
        that is to `remain` says nothing.
        """
        is_static = self.member.is_static
        requests = [] if remain and not is_static else self._goodbye(for_a_while=is_static and not static_too)
        self._runner.drop()
        self._expel(MemberState.UNSUBSCRIBED, reason)
        return requests

    def _goodbye(self, *, for_a_while: bool) -> list[Request]:
        member = self.member
        is_member = not member.generation.is_none or self._in_flight is not None
        if member.state not in _IN_GROUP or not is_member or self._coordinator.node is None:
            return []
        message = self._fields.leaving(self._member_id, for_a_while=for_a_while)
        return [Request(self, message, self._coordinator.node, to_coordinator=True)]
