"""Context of one input: the state it finds, the outbox it fills, and its time.

The methods change state and outbox together. `park_join` and `park_sync` keep a token with its member, `answer_join`
and `answer_sync` take it from there, so that every token is answered once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from partita.group.contract import NOTHING, GroupRequest, Job, Marker, Producer, Record, Reply, Step, Token
from partita.group.notes import MemberIdUnused, Note
from partita.group.records.consumer_group import ConsumerMember
from partita.group.requests import StoredOffsets
from partita.group.state.answers import refusal
from partita.group.state.model import NO_DEADLINE, Group, Member, Waiter
from partita.group.state.shard import GroupTimers, Revocation, ShardState
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Structure

if TYPE_CHECKING:
    from partita.group.records.streams_group import StreamsMember


class Outbox:
    """Collects a step. `take` hands it over and asserts that every token was answered or is parked."""

    __slots__ = ("_jobs", "_notes", "_replies", "marker", "parked", "producer", "records", "tokens_open")

    def __init__(self) -> None:
        self.records: list[Record] = []
        """Already replayed into the hard state; see `partita.group.state.turn.Turn.write`."""
        self.producer: Producer | None = None
        self.marker: Marker | None = None
        self.parked = 0
        """Number of tokens kept with their members, to be answered by a later step."""
        self.tokens_open = 0
        """Number of unanswered tokens, parked ones included."""
        self._replies: list[Reply] = []
        self._notes: list[Note] = []
        self._jobs: list[Job] = []

    def open(self) -> None:
        """Count a token that has just arrived."""
        self.tokens_open += 1

    def answer(self, token: Token, message: Structure) -> None:
        """Release the token with this answer once the step's records are durable."""
        self.tokens_open -= 1
        self._replies.append(Reply(token, message))

    def note(self, note: Note) -> None:
        """Add an event for log, dashboard and trace."""
        self._notes.append(note)

    def start(self, job: Job) -> None:
        """Add a job to run outside the event loop."""
        self._jobs.append(job)

    def abandon(self) -> Step:
        """Return the partial step of a failed input; its replies must be refused. Parked tokens stay."""
        step = Step((), tuple(self._replies), ())
        self._clear()
        self.tokens_open = self.parked
        return step

    def take(self) -> Step:
        """Return the step collected since the last call."""
        assert self.tokens_open == self.parked, f"{self.tokens_open} tokens are open, {self.parked} of them parked"
        if not (self.records or self._replies or self._notes or self.marker or self._jobs):
            return NOTHING
        jobs = tuple(self._jobs)
        step = Step(tuple(self.records), tuple(self._replies), tuple(self._notes), self.producer, self.marker, jobs)
        self._clear()
        return step

    def _clear(self) -> None:
        self.records, self._replies, self._notes, self._jobs, self.producer, self.marker = [], [], [], [], None, None


_NO_PRODUCER = Producer(-1, -1)


class Turn(NamedTuple):
    """Argument of every rule. `now` is the same for the whole input."""

    state: ShardState
    out: Outbox
    now: Now

    def write(self, records: list[Record], producer: Producer | None = None) -> None:
        """Append the records and apply them to the hard state; with a producer, in its open transaction."""
        self.out.records += records
        self.out.producer = producer
        replay = self.state.hard.replay
        for record in records:
            replay(record, *(producer or _NO_PRODUCER))

    def has_passed(self, ms: int, since_ms: int) -> bool:
        """Whether so much wall time has passed since then, or the clock was set back to before then."""
        return not 0 <= self.now.wall_ms - since_ms < ms

    def write_offsets(self, group_id: str, stored: StoredOffsets) -> None:
        """Append the records of a commit and apply them to the hard state."""
        self.out.records += stored.records
        self.out.producer = None
        self.state.hard.replay_offsets(group_id, stored.offsets)

    def refuse(self, token: Token, request: GroupRequest, error: ErrorCode) -> None:
        """Answer the whole request with the error, in the form of its kind and version."""
        self.out.answer(token, refusal(request, error))

    def drop_pending(self, group: Group, member_id: str, why: str) -> bool:
        """Drop an issued id that will not be used and note it; False if it is not pending."""
        if not self.state.drop_pending(group, member_id):
            return False
        self.out.note(MemberIdUnused(group.group_id, member_id, why, self.now.wall_ms))
        return True

    def start_session(self, group: Group, member: Member) -> None:
        """Restart the member's session after a request or an answer, unless it has a parked request."""
        if member.join is None and member.sync is None:
            member.deadline_ms = self.now.mono_ms + member.session_timeout_ms
            self.state.arm(group, member.deadline_ms)

    def run_session(self, timers: GroupTimers, member_id: str, timeout_ms: int, *, silent_ms: int = 0) -> None:
        """Start the session of a member of a group with epochs, less the time it was silent already."""
        deadline_ms = timers.sessions[member_id] = self.now.mono_ms + max(0, timeout_ms - silent_ms)
        self.state.arm(timers, deadline_ms)

    def time_revocation(self, timers: GroupTimers, member: ConsumerMember | StreamsMember, *, is_due: bool) -> None:
        """Give a member that has to revoke its rebalance timeout for that; cancel the deadline of any other."""
        if not is_due:
            timers.revocations.pop(member.member_id, None)
            return
        running = timers.revocations.get(member.member_id)
        if running is None or running.epoch != member.epoch:
            deadline_ms = self.now.mono_ms + max(0, member.rebalance_timeout_ms)
            timers.revocations[member.member_id] = Revocation(member.epoch, deadline_ms)
            self.state.arm(timers, deadline_ms)

    def park_join(self, group: Group, member: Member, waiter: Waiter) -> None:
        """Park the join until the join phase ends. A new member keeps its own deadline, others have none meanwhile."""
        assert member.join is None, f"{member.member_id} has a parked join already"
        member.join, member.joined_ms, member.synced_ms = waiter, self.now.wall_ms, None
        group.joins_parked += 1
        self.out.parked += 1
        if not member.is_new:
            member.deadline_ms = NO_DEADLINE

    def answer_join(self, group: Group, member: Member, message: Structure) -> None:
        """Answer the member's parked join, if it has one. This does not start its session."""
        if member.join is not None:
            waiter, member.join = member.join, None
            group.joins_parked -= 1
            self.out.parked -= 1
            self.out.answer(waiter.token, message)

    def park_sync(self, member: Member, waiter: Waiter) -> None:
        """Park the sync until the group leader has assigned; the member's session is paused meanwhile."""
        assert member.sync is None, f"{member.member_id} has a parked sync already"
        member.sync, member.synced_ms = waiter, self.now.wall_ms
        self.out.parked += 1
        member.deadline_ms = NO_DEADLINE

    def answer_sync(self, member: Member, message: Structure) -> None:
        """Answer the member's parked sync, if it has one."""
        if member.sync is not None:
            waiter, member.sync = member.sync, None
            self.out.parked -= 1
            self.out.answer(waiter.token, message)
