"""Membership of a group by the classic protocol: when to join, heartbeats, leaving.

`poll` is asked all the time and keeps the member alive; only while the application is inside its own poll
(`app_polling`) does a rebalance go forward, for its callbacks are the application's. (Kafka: AbstractCoordinator,
ConsumerCoordinator; consumer.md 5.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.consumer.coordinator import Coordinator
from partita.consumer.errors import IllegalStateError
from partita.consumer.group.group_membership import GroupMembership
from partita.consumer.group.heartbeat_timers import HeartbeatTimers
from partita.consumer.group.join_exchange import JoinExchange
from partita.consumer.group.member import Generation, Member, MemberState
from partita.consumer.group.rebalance import Commit, Rebalance
from partita.consumer.metadata import Metadata
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Failed, Poll, Request
from partita.errors import error_for
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from partita.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_BEATING = (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)


class Membership(GroupMembership):
    """`callback_done` resumes a rebalance after the application's callback; `hold` keeps the next one waiting."""

    def __init__(
        self,
        member: Member,
        metadata: Metadata,
        coordinator: Coordinator,
        uniform: Callable[[float, float], float],
        commit: Commit,
    ) -> None:
        super().__init__(member, metadata, coordinator)
        self.timers = HeartbeatTimers(member.config, uniform)
        self._exchange = JoinExchange(member, metadata, coordinator, uniform, self.timers.start)
        self._rebalance = Rebalance(member, self._exchange, commit, lambda: self._now)
        self._found_count = 0
        self.followup: list[Request] = []
        self._regex_fresh_at: int | None = None

    @property
    def is_joining(self) -> bool:
        """Is a rebalance under way, callbacks included?"""
        return self._runner.is_running or self._exchange.is_pending or self.member.is_rebalancing

    @property
    def is_settled(self) -> bool:
        """Is the assignment complete, with no rebalance under way and no reason for one?"""
        return self.member.is_stable and not self.is_joining and not self.member.must_rejoin()

    def enforce_rebalance(self, reason: str) -> None:
        """Join the group again at the next poll."""
        self.member.request_rejoin(reason)

    def touch(self, now: Now) -> None:
        """The application polls: the time between polls starts over, unless it is inside a callback."""
        if not self._runner.awaits_callback:
            self.timers.polled(now)

    # Asked all the time

    def poll(self, now: Now, poll: Poll) -> None:
        """Heartbeats that are due; while the application polls, also the next step of a rebalance."""
        self._now = now
        member = self.member
        if self._coordinator.found_count != self._found_count:
            self._found_count = self._coordinator.found_count
            self.timers.found(now)
        if self.app_polling and not self._runner.awaits_callback:
            self.timers.polled(now)
        if member.state in _BEATING:
            self._beat(now, poll)
        may_advance = self.app_polling or (self.is_awaited and member.is_rebalancing and not member.needs_join_prepare)
        if may_advance and not self._runner.awaits_callback and member.subscription.is_group:
            self._advance(now, poll)
        self._exchange.poll(self, poll)
        followup, self.followup = self.followup, []
        poll.requests += followup

    def _beat(self, now: Now, poll: Poll) -> None:
        if self._coordinator.node is None:
            self._coordinator.want()
        if self.timers.has_session_expired(now):
            self.timers.alive(now)
            self._note("session_timeout", "no heartbeat was answered for a whole session timeout")
            self._coordinator.mark_unknown()
        elif self.timers.has_poll_expired(now):
            poll.requests += self._end_membership(self._note_silence(self.timers.polled_at_ms, now))
            return
        if self._coordinator.node is not None and now.mono_ms >= self.timers.next_ms:
            poll.ask(self._heartbeat())
            self.timers.sent(now)
        poll.wake_in(self.timers.wait_ms(now, can_send=self._coordinator.node is not None))

    def _heartbeat(self) -> Request:
        generation, config = self.member.generation, self.member.config
        message = HeartbeatRequest(
            group_id=config.group_id or "",
            generation_id=generation.id,
            member_id=generation.member_id,
            group_instance_id=config.group_instance_id,
        )
        return Request(self, message, self._coordinator.node, to_coordinator=True, context=generation)

    # Asked while the application polls

    def _advance(self, now: Now, poll: Poll) -> None:
        """Ensure an active group: as far as possible in this turn (5.2)."""
        member = self.member
        if any(isinstance(event, Failed) for event in member.events):
            return
        if self._runner.is_running and self._runner.resume():
            poll.wake_in(member.config.retry_backoff_ms)
            return
        if self._exchange.assignment is not None and not self._start_completion():
            return
        if self._runner.is_running or self.is_held or not member.must_rejoin() or self._exchange.is_pending:
            return
        if self._coordinator.node is None:
            self._coordinator.want()
            return
        wait = self._exchange.wait_ms(now)
        if wait > 0:
            poll.wake_in(wait)
            return
        if not self._is_regex_fresh():
            return
        if member.needs_join_prepare:
            member.needs_join_prepare = False
            self._rebalancing_since_ms = now.mono_ms
            if self._runner.start(self._rebalance.prepare()):
                poll.wake_in(member.config.retry_backoff_ms)
                return
            if any(isinstance(event, Failed) for event in member.events):
                return
        self._exchange.start(self, poll)

    def _is_regex_fresh(self) -> bool:
        """Before a join by pattern the topics are asked for again, so that one new topic costs one rebalance (4.2)."""
        member = self.member
        if member.subscription.pattern is None or not member.needs_join_prepare:
            return True
        if self._regex_fresh_at is None:
            self._regex_fresh_at = self._metadata.request_update()
        if self._metadata.updates <= self._regex_fresh_at:
            return False
        self._regex_fresh_at = None
        return True

    def _start_completion(self) -> bool:
        """The assignment came: install it, if the generation is still ours. False when that has to wait."""
        payload = self._exchange.assignment
        assert payload is not None, "only a finished exchange is completed"
        member = self.member
        if not member.is_stable or member.generation.is_none:
            self._exchange.assignment = None
            return True
        try:
            return not self._runner.start(self._rebalance.complete(payload), self._completed)
        except IllegalStateError as error:
            member.events.append(Failed(error))
            return False

    def _completed(self) -> None:
        self._exchange.assignment = None
        self.member.needs_join_prepare = True
        self.member.joined_generation = self.member.generation
        self._note_rebalanced()

    # Answers

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Take in an answer to a heartbeat or to a join exchange."""
        self._now = now
        if isinstance(response, HeartbeatResponse):
            self._on_heartbeat(response.error_code, request.context, now)
        elif not isinstance(response, LeaveGroupResponse):
            self.followup += self._exchange.on_response(request, response, now)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """A heartbeat or a join exchange got no answer. A LeaveGroup needs none."""
        if isinstance(request.message, HeartbeatRequest):
            self._coordinator.mark_unknown(was_disconnect=True)
            self.timers.failed(now)
        elif not isinstance(request.message, LeaveGroupRequest):
            self._exchange.on_disconnect(request, now)

    def on_unsupported(self, request: Request, error: BaseException, now: Now) -> None:
        """The broker speaks no version of this request that would do: the application hears why, and it is retried."""
        self.on_disconnect(request, now)
        self.member.events.append(Failed(error))

    def _on_heartbeat(self, code: int, generation: Generation, now: Now) -> None:
        """An answer to a heartbeat of an earlier generation says only that the coordinator is there."""
        member, do = self.member, reaction("Heartbeat", code)
        is_current = generation == member.generation
        if do in (Reaction.TAKE, Reaction.REJOIN):
            self.timers.alive(now)
            if do is Reaction.REJOIN and member.is_stable and is_current:
                member.request_rejoin("group is already rebalancing")
            return
        self.timers.failed(now)
        if do is Reaction.LOOK_UP:
            self._coordinator.mark_unknown()
        elif do is Reaction.FENCED and is_current:
            group, instance = member.config.group_id, member.config.group_instance_id
            told = f"another consumer joined group {group} as {instance}; stop one"
            member.events.append(Failed(error_for(code, told)))
            self._reset("fenced by a newer member with the same group_instance_id")
        elif do in (Reaction.FORGET_GENERATION, Reaction.FORGET_MEMBER) and is_current:
            keeps_id = do is Reaction.FORGET_GENERATION
            self._reset(f"heartbeat answered {ErrorCode(code).name}", keep_member_id=keeps_id)

    def _reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        self._exchange.give_up()
        self.member.reset(reason, keep_member_id=keep_member_id)

    # Leaving

    def leave(self, reason: str, *, static_too: bool = False, remain: bool = False) -> list[Request]:
        """Forget the membership and any rebalance under way; returns the LeaveGroup to send, if one is due."""
        request = self._end_membership(reason, static_too=static_too, remain=remain)
        self._runner.drop()
        return request

    def _end_membership(self, reason: str, *, static_too: bool = False, remain: bool = False) -> list[Request]:
        """A callback the application is in goes on, and so does what is to follow it: it hears of nothing twice."""
        member, config = self.member, self.member.config
        request: list[Request] = []
        may_send = (static_too or not member.is_static) and not remain
        member_id = member.generation.member_id
        if may_send and self._coordinator.node is not None and member.state is not MemberState.UNJOINED and member_id:
            message = LeaveGroupRequest(
                group_id=config.group_id or "",
                members=[MemberIdentity(member_id=member_id, group_instance_id=None, reason=reason[:255])],
                member_id=member_id,
            )
            request.append(Request(self, message, self._coordinator.node, to_coordinator=True))
        self._exchange.give_up()
        member.reset(reason)
        member.needs_join_prepare = True
        return request
