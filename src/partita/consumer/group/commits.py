"""Committing offsets: by call, by timer, before a rebalance (consumer.md 11, 15.3).

Commits leave in call order on the coordinator's one connection. A synchronous one is repeated while its errors may
pass; an asynchronous one never. Only a stable member commits. (Kafka: ConsumerCoordinator.sendOffsetCommitRequest.)

Deviation: Partita's consumer delays an explicit commit during a cooperative rebalance to its end if the partitions stay
with the member, where Kafka's raises RebalanceInProgressException or passes it to the callback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from partita.consumer.coordinator import Coordinator
from partita.consumer.errors import CommitFailedError, RebalanceRunningError, RetriableCommitFailedError
from partita.consumer.group.member import Generation, Member, MemberState
from partita.consumer.partition_state import PartitionState
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, CommitCallback, Committed, Failed, Operation, Poll, Request
from partita.errors import KafkaError, TopicAuthorizationFailedError, error_for
from partita.now import Now
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from partita.protocol.primitives import ZERO_UUID
from partita.wording import Note

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
NAMED_VERSION_MAX = 9
"""Version 10 speaks of topic ids. Commits by call go by the names that the caller gave, as in Kafka's consumer."""
_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Kind(Enum):
    """Origin of a commit; it decides about retries and the receiver of a failure."""

    SYNC = "sync"
    CLOSE = "close"
    ASYNC = "async"
    AUTO = "auto"
    PREPARE = "prepare"


@dataclass(slots=True, eq=False)
class PendingCommit:
    """One commit in flight: its offsets, its generation, and the time of the next try."""

    kind: Kind
    offsets: Offsets
    operation: Operation
    generation: Generation
    number: int
    callback: Callable[..., Any] | None = None
    states: Mapping[TopicPartition, PartitionState | None] = field(default_factory=dict)
    """Its partitions as they were assigned when it was made: another state means that they were taken away since."""
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    """The ids of its topics when it was made, if it is to be refused for a topic that has only the name in common."""
    not_before_ms: int = 0
    lookups_failed: int = 0
    attempts: int = 0
    memberships_lost: int = 0

    @property
    def is_repeated(self) -> bool:
        """Whether a caller waits for it, so that it is sent again while its error may pass."""
        return self.kind in (Kind.SYNC, Kind.CLOSE)

    @property
    def is_automatic(self) -> bool:
        """Whether the consumer began it by itself. Then a deleted topic must not hold up the others."""
        return self.kind in (Kind.AUTO, Kind.PREPARE, Kind.CLOSE)


class Commits:
    """`commit` starts one; `auto_poll` looks at the timer; `positions` returns the offsets to commit."""

    def __init__(
        self,
        member: Member,
        coordinator: Coordinator,
        uniform: Callable[[float, float], float],
        positions: Callable[[], dict[TopicPartition, OffsetAndMetadata]],
        missing: Callable[[], frozenset[str]],
        topic_id: Callable[[str], bytes],
    ) -> None:
        """`missing` names the topics that do not exist, as far as is known; `topic_id` is zeros where none is known."""
        config = member.config
        self._member = member
        self._coordinator = coordinator
        self._positions = positions
        self._missing = missing
        self._topic_id = topic_id
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._queue: list[PendingCommit] = []
        self._in_flight: list[PendingCommit] = []
        self.begun = 0
        self._newest: dict[TopicPartition, int] = {}
        """Of each partition, the number of the newest commit that succeeded."""
        self._told_missing: set[str] = set()
        self._next_auto_ms: int | None = None
        self.is_patient = True
        """May commits wait for the end of a rebalance?"""

    # Starting

    def commit(self, kind: Kind, offsets: Offsets | None, callback: Callable[..., Any] | None = None) -> Operation:
        """Commit these offsets, or all positions; a commit that cannot be sent fails at once."""
        wanted = self._positions() if offsets is None else dict(offsets)
        self.begun += 1
        assigned = self._member.subscription.assignment
        # The very objects: a partition that was lost and came back has another state, and the offset of its former life
        # must not be committed.
        states = {tp: assigned.get(tp) for tp in wanted}
        commit = PendingCommit(kind, wanted, Operation(), self._generation(), self.begun, callback, states)
        self._leave_out_what_is_gone(commit)
        if commit.is_automatic:
            # By id, so that an offset of a topic that was deleted and created again is refused instead of being kept
            # for the new one.
            commit.topic_ids = {topic: self._topic_id(topic) for topic in dict.fromkeys(tp[0] for tp in commit.offsets)}
        # Counted from here: a commit fails after look-ups that failed since it was made, not for those before it.
        commit.lookups_failed = self._coordinator.failed_count
        commit.memberships_lost = self._member.memberships_lost
        if not commit.offsets:
            self._succeed(commit)
        # At once, not at the next poll: the caller may never poll again.
        elif not self._awaits_round(commit) and (refusal := self._refusal()) is not None:
            self._fail(commit, refusal)
        else:
            self._queue.append(commit)
        return commit.operation

    def before_rebalance(self) -> Operation | None:
        """The commit before a rebalance; None when there is nothing to commit."""
        return self.commit(Kind.PREPARE, None) if self._positions() else None

    def restart_timer(self, now: Now) -> None:
        """The next automatic commit is due one interval from now."""
        self._next_auto_ms = now.mono_ms + self._member.config.auto_commit_interval_ms

    def forget_timer(self) -> None:
        """Stop the automatic commits until the timer is started again."""
        self._next_auto_ms = None

    def auto_poll(self, now: Now, poll: Poll) -> None:
        """Commit the records of earlier polls, if the interval is over. Called while the application polls."""
        if not self._member.config.enable_auto_commit:
            return
        if self._next_auto_ms is None:
            self.restart_timer(now)
        assert self._next_auto_ms is not None, "the timer was just started"
        if now.mono_ms >= self._next_auto_ms:
            # Before the commit, so that one that is refused does not try again at every poll.
            self.restart_timer(now)
            if self._refusal() is None:
                self.commit(Kind.AUTO, None)
        poll.wake_in(max(0, self._next_auto_ms - now.mono_ms))

    def cancel(self, operation: Operation) -> None:
        """The caller waits no longer: nothing is repeated any more."""
        self._queue = [c for c in self._queue if c.operation is not operation]
        operation.is_done = True

    @property
    def has_async_pending(self) -> bool:
        """Is an asynchronous commit still without its outcome?"""
        return self.has_async_before(self.begun)

    def has_async_before(self, number: int) -> bool:
        """Is one still without its outcome of the asynchronous commits up to this number?"""
        return any(one.kind is Kind.ASYNC and one.number <= number for one in (*self._queue, *self._in_flight))

    @property
    def is_idle(self) -> bool:
        """Is no commit waiting or in flight?"""
        return not self._queue and not self._in_flight

    @property
    def is_possible(self) -> bool:
        """Whether the coordinator would take a commit of this member now."""
        return self._refusal() is None

    @property
    def awaits_round(self) -> bool:
        """Does a commit wait for the end of a rebalance?"""
        return any(self._awaits_round(commit) for commit in self._queue)

    # Part

    def poll(self, now: Now, poll: Poll) -> None:
        """The commits to send now. One that failed waits for its back-off and for newer ones in flight."""
        if not self._queue:
            return
        if self._coordinator.node is None:
            self._without_coordinator()
            return
        # Each leaves the queue behind its outcome or its request: Ctrl-C may break this off anywhere.
        for commit in list(self._queue):
            if not self._has_to_wait(commit, now, poll):
                self._go_on(commit, poll)
                self._queue.remove(commit)

    def _has_to_wait(self, commit: PendingCommit, now: Now, poll: Poll) -> bool:
        if commit.not_before_ms > now.mono_ms:
            poll.wake_in(commit.not_before_ms - now.mono_ms)
            return True
        # A repeated commit must not overtake a newer one on the wire: it would bring an older offset back.
        return any(newer.number > commit.number for newer in self._in_flight) or self._awaits_round(commit)

    def _go_on(self, commit: PendingCommit, poll: Poll) -> None:
        if commit.operation.is_done:
            return
        if (refusal := self._refusal()) is not None:
            self._fail(commit, refusal)
        # The partitions went to another member meanwhile, who has read on: our offset would set it back.
        elif not self._is_still_ours(commit):
            self._fail(commit, self._moved_on("the group has rebalanced since; poll, then commit again"))
        else:
            self._send_what_is_news(commit, poll)

    def on_response(self, request: Request, response: OffsetCommitResponse, now: Now) -> None:
        """Read the answer partition by partition; the first decisive error decides for the whole commit."""
        commit: PendingCommit = request.context
        self._in_flight.remove(commit)
        unauthorized: set[str] = set()
        missing: set[TopicPartition] = set()
        # Version 10 answers by id alone.
        names = {topic_id: name for name, topic_id in commit.topic_ids.items()}
        for topic in response.topics:
            name = topic.name or names.get(topic.topic_id, "")
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    continue
                do, tp = reaction("OffsetCommit", partition.error_code), TopicPartition(name, partition.partition_index)
                if do is Reaction.COLLECT:
                    unauthorized.add(name)
                elif commit.is_automatic and partition.error_code in _GONE:
                    missing.add(tp)
                elif do is not Reaction.TAKE:
                    self._refused(commit, do, partition.error_code, tp, now)
                    return
        self._coordinator.reached()
        self._leave_out(commit, missing)
        if unauthorized:
            self._fail(commit, TopicAuthorizationFailedError(*sorted(unauthorized), operation="READ"))
        else:
            self._succeed(commit)

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: the commit may or may not have happened, so it counts as failed for now."""
        commit: PendingCommit = request.context
        self._in_flight.remove(commit)
        if commit in self._queue:  # Ctrl-C came before it counted as sent
            return
        # The one connection is gone; whether the node still coordinates the group has to be asked again.
        self._coordinator.mark_unknown(was_disconnect=True)
        self._may_pass(commit, error_for(ErrorCode.NETWORK_EXCEPTION, "the coordinator did not answer"), now)

    # Sending

    def _refusal(self) -> BaseException | None:
        """Why this member cannot commit now; None when it can."""
        member = self._member
        if member.fenced is not None:
            return member.fenced
        if not member.subscription.is_group or member.may_commit:
            return None
        if member.is_rebalancing:
            return RebalanceRunningError("the group is rebalancing; poll to finish the rebalance, then commit again")
        return CommitFailedError(
            f"this consumer is no member of group {member.config.group_id} now: its partitions may belong to another. "
            "The time between polls exceeded max_poll_interval_ms, or the group forgot it"
        )

    def _awaits_round(self, commit: PendingCommit) -> bool:
        """Is this commit by call to be sent when the rebalance under way is over, whose outcome no poll has to hear?"""
        member = self._member
        if not member.is_rebalancing or commit.is_automatic or not self.is_patient or not self._is_owned(commit):
            return False
        commit.operation.value = commit.operation.value or RebalanceRunningError("the group is rebalancing")
        return not any(isinstance(event, Failed) for event in member.events)

    def _is_owned(self, commit: PendingCommit) -> bool:
        """Did its partitions stay this member's, through whichever generations, since the commit was made?"""
        member, assigned = self._member, self._member.subscription.assignment
        if not member.subscription.is_group or commit.memberships_lost != member.memberships_lost:
            return False
        return all(state is not None and assigned.get(tp) is state for tp, state in commit.states.items())

    def _generation(self) -> Generation:
        return self._member.generation if self._member.subscription.is_group else Generation()

    def _is_still_ours(self, commit: PendingCommit) -> bool:
        """May this commit still be sent? Generations and epochs pass while the partitions stay ours."""
        member = self._member
        is_member = member.subscription.is_group and commit.memberships_lost == member.memberships_lost
        if is_member and (member.by_epochs or self._is_owned(commit)):
            commit.generation = member.generation
        return commit.generation == self._generation()

    def _send_what_is_news(self, commit: PendingCommit, poll: Poll) -> None:
        """Send a repeated commit without offsets that newer commits have replaced: it would reset the group."""
        self._leave_out_what_is_gone(commit)
        commit.offsets = {tp: o for tp, o in commit.offsets.items() if self._newest.get(tp, 0) < commit.number}
        if commit.offsets:
            poll.ask(self._request(commit))
            self._in_flight.append(commit)
        else:
            self._succeed(commit)

    def _request(self, commit: PendingCommit) -> Request:
        message = commit_request(self._member, commit)
        by_id = all(topic.topic_id != ZERO_UUID for topic in message.topics)
        version = None if by_id else NAMED_VERSION_MAX
        return Request(self, message, self._coordinator.node, to_coordinator=True, max_version=version, context=commit)

    def _without_coordinator(self) -> None:
        """Asynchronous commits wait for one lookup, synchronous ones for as long as their caller does."""
        self._coordinator.want()
        for commit in list(self._queue):
            error = self._coordinator.error_since(commit.lookups_failed)
            if error is not None:
                self._drop(commit, error)
            elif not commit.is_repeated and self._coordinator.failed_count > commit.lookups_failed:
                self._drop(commit, RetriableCommitFailedError("the coordinator of the group cannot be found"))

    def _drop(self, commit: PendingCommit, error: BaseException) -> None:
        self._fail(commit, error)
        self._queue.remove(commit)

    # Outcomes

    def _leave_out_what_is_gone(self, commit: PendingCommit) -> None:
        """A position in a topic that was deleted would be taken for one in the topic that gets its name next."""
        if commit.is_automatic and (gone := self._missing()):
            self._leave_out(commit, {tp for tp in commit.offsets if tp.topic in gone})

    def _leave_out(self, commit: PendingCommit, missing: set[TopicPartition]) -> None:
        """Leave out partitions of deleted topics, with a note per topic (BM-151).

        Deviation: Partita's consumer does not repeat an automatic commit for deleted topics, where Kafka's repeats it
        for up to max.poll.interval.ms and delays a rebalance for all other topics.
        """
        commit.offsets = {tp: offset for tp, offset in commit.offsets.items() if tp not in missing}
        for topic in sorted({tp.topic for tp in missing} - self._told_missing):
            self._told_missing.add(topic)
            told = f"topic {topic} does not exist any more; nothing is committed for it"
            self._member.events.append(Note("commit_failed", told, {"topic": topic}))
        self._told_missing -= {tp.topic for tp in commit.offsets}

    def _refused(self, commit: PendingCommit, do: Reaction, code: int, tp: TopicPartition, now: Now) -> None:
        member = self._member
        is_current = commit.generation == member.generation or not member.subscription.is_group
        match do:
            case Reaction.RETRY:
                self._may_pass(commit, error_for(code, str(tp)), now)
            case Reaction.LOOK_UP:
                self._coordinator.mark_unknown()
                self._may_pass(commit, error_for(code), now)
            # The rebalance that it precedes may itself have raised the epoch: that is no verdict about the member.
            case Reaction.NEWER_EPOCH if commit.kind is Kind.PREPARE:
                self._may_pass(commit, error_for(code, "the group has gone on to a newer epoch"), now)
            case Reaction.FENCED if not member.by_epochs:
                self._fenced(commit, is_current)
            case Reaction.NEWER_EPOCH | Reaction.FENCED | Reaction.FORGET_MEMBER if member.by_epochs:
                told = f"{ErrorCode(code).name}: {ErrorCode(code).meaning}; the group has moved on, poll to go on"
                self._fail(commit, CommitFailedError(told))
            case Reaction.REJOIN:
                member.request_rejoin("commit answered REBALANCE_IN_PROGRESS")
                self._fail(commit, RebalanceRunningError("the group is rebalancing; poll, then commit again"))
            case Reaction.FORGET_GENERATION | Reaction.FORGET_MEMBER:
                self._no_member(commit, ErrorCode(code), is_current, now)
            case _:
                group = member.config.group_id or ""
                self._fail(commit, error_for(code, str(tp), operation="READ", names=[group]))

    def _fenced(self, commit: PendingCommit, is_current: bool) -> None:
        told = f"another consumer uses group_instance_id {self._member.config.group_instance_id}; stop one of them"
        if is_current:
            error = error_for(ErrorCode.FENCED_INSTANCE_ID, told)
            if not commit.is_repeated:
                self._member.fenced = error
                commit.callback = None
            self._fail(commit, error)
        else:
            self._fail(commit, self._moved_on(told))

    def _no_member(self, commit: PendingCommit, code: ErrorCode, is_current: bool, now: Now) -> None:
        member = self._member
        # The answer is about a generation that we have left. The partitions are still ours in the new one, so the
        # commit is sent again in its name.
        if not is_current and commit.is_repeated and self._is_owned(commit):
            self._may_pass(commit, error_for(code, "a newer generation is there"), now)
            return
        if not is_current and member.state is MemberState.PREPARING_REBALANCE:
            self._fail(commit, RebalanceRunningError("a newer generation is being made; poll, then commit again"))
            return
        if is_current and member.subscription.is_group:
            member.reset(f"commit answered {code.name}", keep_member_id=code is ErrorCode.ILLEGAL_GENERATION)
        self._fail(commit, CommitFailedError(f"{code.name}: the group has moved on; poll to join again"))

    def _moved_on(self, told: str) -> BaseException:
        if self._member.state is MemberState.PREPARING_REBALANCE:
            return RebalanceRunningError(told)
        return CommitFailedError(told)

    def _may_pass(self, commit: PendingCommit, error: KafkaError, now: Now) -> None:
        if commit.operation.is_done:
            return
        if commit.is_repeated:
            commit.not_before_ms = now.mono_ms + self._backoff.after(commit.attempts)
            commit.attempts += 1
            # What a caller hears whose time is over while the commit is still being repeated.
            commit.operation.value = error
            self._queue.append(commit)
            return
        if commit.kind is Kind.AUTO:
            self._next_auto_ms = now.mono_ms + self._member.config.retry_backoff_ms
        wrapped = RetriableCommitFailedError(f"the commit failed and may be tried again: {error}")
        wrapped.__cause__ = error
        self._fail(commit, wrapped)

    def _succeed(self, commit: PendingCommit) -> None:
        if commit.offsets:
            self._member.events.append(Committed(commit.offsets))
            # An older commit that is repeated later leaves these partitions out: a newer offset is stored already.
            self._newest.update(dict.fromkeys(commit.offsets, commit.number))
        self._end(commit, None)

    def _fail(self, commit: PendingCommit, error: BaseException) -> None:
        if commit.kind in (Kind.AUTO, Kind.PREPARE):
            self._member.events.append(Note("commit_failed", f"automatic commit: {error}"))
        self._end(commit, error)

    def _end(self, commit: PendingCommit, error: BaseException | None) -> None:
        """Have the outcome known, and its callback called.

        The two stand in a row: no interruption comes in between, so that it is called once.
        """
        callback, events = commit.callback, self._member.events
        event = None if callback is None else CommitCallback(callback, commit.offsets, error)
        if error is None:
            commit.operation.succeed(commit.offsets)
        else:
            commit.operation.fail(error)
        if event is not None:
            events.append(event)


def commit_request(member: Member, commit: PendingCommit) -> OffsetCommitRequest:
    """The request of this commit, in the name of the generation it was made in."""
    ids, by_topic = commit.topic_ids, dict[str, list[OffsetCommitRequestPartition]]()
    for tp, offset in commit.offsets.items():
        by_topic.setdefault(tp[0], []).append(
            OffsetCommitRequestPartition(
                partition_index=tp[1],
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=member.config.group_id or "",
        generation_id_or_member_epoch=commit.generation.id,
        member_id=commit.generation.member_id,
        group_instance_id=member.config.group_instance_id if member.subscription.is_group else None,
        topics=[
            OffsetCommitRequestTopic(name=name, topic_id=ids.get(name, ZERO_UUID), partitions=parts)
            for name, parts in by_topic.items()
        ],
    )
