"""The steps around a join: before JoinGroup, and after the assignment has arrived.

Each script is a generator: it yields an event whose callback the application has to run and is sent that callback's
error, or yields None to be resumed at a later poll. (Kafka: ConsumerCoordinator.onJoinPrepare, onJoinComplete;
consumer.md 5.5, 5.7.)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from partita.assignors.interface import RebalanceProtocol
from partita.assignors.payloads import decode_assignment
from partita.consumer.errors import IllegalStateError, RebalanceListenerError, RetriableCommitFailedError, WakeupError
from partita.consumer.group.assigning import assignor_failed
from partita.consumer.group.join_exchange import JoinExchange
from partita.consumer.group.member import Member
from partita.consumer.request import Assigned, Event, Failed, Lost, Operation, Revoked
from partita.now import Now
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.primitives import MalformedRequest
from partita.wording import Note

Script: TypeAlias = Generator[Event | None, BaseException | None, None]
Commit: TypeAlias = Callable[[], Operation | None]


class ScriptRunner:
    """Runs one script at a time. `awaited` is the event whose callback the application is to run, or runs."""

    def __init__(self, events: list[Event]) -> None:
        self.awaited: Event | None = None
        self._events = events
        self._script: Script | None = None
        self._on_end: Callable[[], None] | None = None

    @property
    def awaits_callback(self) -> bool:
        """Is the outcome of a callback waited for?"""
        return self.awaited is not None

    @property
    def is_running(self) -> bool:
        """Is there a script that has not come to its end?"""
        return self._script is not None

    def start(self, script: Script, on_end: Callable[[], None] | None = None) -> bool:
        """Begin this script and call `on_end` when it has ended. True while it is not finished."""
        self._script, self._on_end = script, on_end
        return self.resume()

    def resume(self, error: BaseException | None = None) -> bool:
        """Resume the script; true while it is not finished. A script that raises is over."""
        script = self._script
        assert script is not None, "a script is resumed only while there is one"
        try:
            event = script.send(error)
        except StopIteration:
            self._script = None
            if self._on_end is not None:
                self._on_end()
            return False
        except BaseException:
            self._script = None
            raise
        if event is not None:
            self.awaited = event
            self._events.append(event)
        return True

    def callback_done(self, error: BaseException | None) -> None:
        """Continue the script: the application's callback returned or raised."""
        if self.awaited is None:
            return
        self.awaited = None
        if self._script is not None:
            self.resume(error)

    def drop(self) -> None:
        """Forget the script and the callback it waits for."""
        self._script = self.awaited = None


def commit_first(member: Member, commit: Commit, clock: Callable[[], Now]) -> Script:
    """Commit before partitions are given up; retried for max_poll_interval_ms at most, as the group waits meanwhile."""
    config, now = member.config, clock()
    deadline_ms = now.mono_ms + config.max_poll_interval_ms
    operation = commit()
    retry_ms = 0
    while clock().mono_ms < deadline_ms:
        if operation is None:
            return
        if not operation.is_done:
            yield None
            continue
        if operation.error is None:
            return
        if not isinstance(operation.error, RetriableCommitFailedError) or member.generation.is_none:
            break
        retry_ms = retry_ms or clock().mono_ms + config.retry_backoff_ms
        if clock().mono_ms < retry_ms:
            yield None
        else:
            operation, retry_ms = commit(), 0
    told = operation.error if operation is not None else None
    member.events.append(Note("commit_failed", f"the commit before the rebalance failed: {told}"))


def raise_later(member: Member, error: BaseException | None) -> None:
    """Have the application's poll raise the error of a callback."""
    if error is None:
        return
    if not isinstance(error, WakeupError) and isinstance(error, Exception):
        wrapped = RebalanceListenerError(f"a rebalance callback raised {error!r}")
        wrapped.__cause__ = error
        error = wrapped
    member.events.append(Failed(error))


class Rebalance:
    """The scripts of one member. `clock` gives the instant of the poll that resumes a script."""

    def __init__(self, member: Member, exchange: JoinExchange, commit: Commit, clock: Callable[[], Now]) -> None:
        self._member = member
        self._exchange = exchange
        self._commit = commit
        self._clock = clock

    @property
    def _is_eager(self) -> bool:
        return self._member.config.protocol is not RebalanceProtocol.COOPERATIVE

    def prepare(self) -> Script:
        """Commit, then revoke the partitions that must go before JoinGroup."""
        member, subscription = self._member, self._member.subscription
        if member.config.enable_auto_commit and not member.generation.is_none:
            yield from self._commit_first()
        owned = tuple(sorted(subscription.assignment))
        error: BaseException | None = None
        if member.generation.is_none:
            if owned:
                error = yield Lost(owned)
            subscription.assign_by_group((), await_callback=False)
        elif self._is_eager:
            error = yield Revoked(owned)
            subscription.assign_by_group((), await_callback=False)
        else:
            gone = tuple(tp for tp in owned if not subscription.accepts(tp.topic))
            if gone:
                for tp in gone:
                    subscription.assignment[tp].pending_revocation = True
                error = yield Revoked(gone)
                kept = [tp for tp in subscription.assignment if tp not in gone]
                subscription.assign_by_group(kept, await_callback=False)
        member.is_leader = False
        member.assignment_snapshot = None
        subscription.group_topics = frozenset()
        raise_later(self._member, error)

    def _commit_first(self) -> Script:
        """Commit before the join; positions of an eager member do not run ahead of it."""
        if self._is_eager:
            for state in self._member.subscription.assignment.values():
                state.pending_revocation = True
        yield from commit_first(self._member, self._commit, self._clock)

    def complete(self, payload: bytes) -> Script:
        """Install the assignment and report lost and new partitions to the application."""
        member, subscription = self._member, self._member.subscription
        if not member.is_leader:
            member.assignment_snapshot = None
        assigned = self._decode(payload)
        strangers = sorted({tp.topic for tp in assigned if not subscription.accepts(tp.topic)})
        if strangers:
            member.request_rejoin(f"assigned topics are no longer subscribed: {', '.join(strangers)}")
            return
        owned = tuple(subscription.assignment)
        added = tuple(sorted(tp for tp in assigned if tp not in subscription.assignment))
        error: BaseException | None = None
        if not self._is_eager:
            gone = tuple(sorted(set(owned) - set(assigned)))
            if gone:
                for tp in gone:
                    subscription.assignment[tp].pending_revocation = True
                error = yield Revoked(gone)
                if member.generation.is_none:  # the membership ended meanwhile: nothing more is ours to install
                    subscription.assign_by_group([tp for tp in owned if tp not in gone], await_callback=False)
                    raise_later(self._member, error)
                    return
                member.request_rejoin("need to revoke partitions and re-join")
        if subscription.pattern is not None:
            subscription.adopt_topics(tp.topic for tp in assigned)
            member.joined_topics = subscription.topics
        assignor = self._exchange.assignor(member.generation.protocol)
        try:
            assignor.on_assignment(assigned, member.generation.id)
        except BaseException as raised:
            member.events.append(Failed(assignor_failed(assignor, raised)))
        subscription.assign_by_group(assigned, await_callback=True)
        yield from self._tell_assigned(added, error)

    def _tell_assigned(self, added: tuple[TopicPartition, ...], error: BaseException | None) -> Script:
        failed = yield Assigned(added)
        self._callbacks_done()
        if failed is not None:
            raise_later(self._member, error or failed)
            yield None
            error = yield Assigned(())
        raise_later(self._member, error)

    def _callbacks_done(self) -> None:
        for state in self._member.subscription.assignment.values():
            state.awaits_callback = False

    def _decode(self, payload: bytes) -> list[TopicPartition]:
        if len(payload) < 2:
            raise IllegalStateError(
                f"the group leader assigned {len(payload)} bytes, which is no assignment; its assignor is at fault"
            )
        try:
            partitions, _ = decode_assignment(payload)
        except MalformedRequest as error:
            raise IllegalStateError(f"the group leader's assignment makes no sense: {error}") from None
        sane = {TopicPartition(*tp): None for tp in partitions if tp[1] >= 0}
        return list(sane)
