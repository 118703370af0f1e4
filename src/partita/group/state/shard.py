"""What the files of this package share while one input is worked on: state, outputs, the way to answer and to park.

Every token taken in is answered once: `park_*` keeps it with its member, `answer_*` takes it from there, and `take`
asserts that none got lost. Deadlines are lazy: `arm` only ever moves a group's wake-up forward in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappush

from partita.group.config import GroupConfig
from partita.group.contract import NOTHING, Marker, Producer, Record, Reply, Step, Token
from partita.group.notes import Note
from partita.group.records.hard_state import HardState
from partita.group.records.log_records import batch_bytes
from partita.group.state.model import DEAD, NEVER, Group, Member, Waiter
from partita.now import Now
from partita.protocol.primitives import Structure

TooLarge = "records larger than the offsets topic takes"


class Shard:
    __slots__ = (
        "config",
        "expiry_deadline_ms",
        "groups",
        "hard",
        "is_over",
        "marker",
        "new_member_id",
        "notes",
        "now",
        "parked",
        "pending_count",
        "producer",
        "records",
        "replies",
        "sweeps",
        "tokens_open",
        "wakes",
        "wakes_made",
    )

    def __init__(self, config: GroupConfig, new_member_id: Callable[[str], str]) -> None:
        self.config = config
        self.new_member_id = new_member_id
        self.hard = HardState()
        self.groups: dict[str, Group] = {}
        self.now = Now(0, 0)
        self.records: list[Record] = []
        self.replies: list[Reply] = []
        self.notes: list[Note] = []
        self.producer: Producer | None = None
        self.marker: Marker | None = None
        self.tokens_open = 0
        self.parked = 0
        self.pending_count = 0
        self.wakes: list[tuple[int, int, Group]] = []
        self.wakes_made = 0
        self.expiry_deadline_ms = NEVER
        self.sweeps: list[Iterator[None]] = []
        """Long work in slices: each `next` writes some records; see `expiration`."""
        self.is_over = False

    def take(self) -> Step:
        """The step of what was decided since the last one."""
        assert self.tokens_open == self.parked, f"{self.tokens_open} tokens are open, {self.parked} of them parked"
        if not (self.records or self.replies or self.notes or self.marker):
            return NOTHING
        step = Step(tuple(self.records), tuple(self.replies), tuple(self.notes), self.producer, self.marker)
        self.records, self.replies, self.notes, self.producer, self.marker = [], [], [], None, None
        return step

    def answer(self, token: Token, message: Structure) -> None:
        self.tokens_open -= 1
        self.replies.append(Reply(token, message))

    def park_join(self, group: Group, member: Member, waiter: Waiter) -> None:
        assert member.join is None, f"{member.member_id} has a parked join already"
        member.join = waiter
        group.joins_parked += 1
        self.parked += 1
        if not member.is_new:
            member.deadline_ms = NEVER

    def answer_join(self, group: Group, member: Member, message: Structure) -> None:
        """Answer the member's parked join, if it has one. Its session does not start by this."""
        if member.join is not None:
            waiter, member.join = member.join, None
            group.joins_parked -= 1
            self.parked -= 1
            self.answer(waiter.token, message)

    def park_sync(self, member: Member, waiter: Waiter) -> None:
        assert member.sync is None, f"{member.member_id} has a parked sync already"
        member.sync = waiter
        self.parked += 1
        member.deadline_ms = NEVER

    def answer_sync(self, member: Member, message: Structure) -> None:
        if member.sync is not None:
            waiter, member.sync = member.sync, None
            self.parked -= 1
            self.answer(waiter.token, message)

    def fits(self, records: list[Record]) -> bool:
        """Would the offsets topic take these records as one batch?"""
        return batch_bytes(records) <= self.config.max_message_bytes

    def write(self, records: list[Record], producer: Producer | None = None) -> None:
        """Have the records appended, and the hard state changed by them."""
        self.records += records
        self.producer = producer
        identity = producer or Producer(-1, -1)
        for record in records:
            self.hard.replay(record, *identity)

    def note(self, note: Note) -> None:
        self.notes.append(note)

    def start_session(self, group: Group, member: Member) -> None:
        """The member was just heard of, or just answered: it has a whole session again."""
        if member.join is None and member.sync is None:
            member.deadline_ms = self.now.mono_ms + member.session_timeout_ms
            self.arm(group, member.deadline_ms)

    def arm(self, group: Group, deadline_ms: int) -> None:
        """Wake for the group at `deadline_ms` at the latest."""
        if deadline_ms < group.wake_ms:
            group.wake_ms = deadline_ms
            self.wakes_made += 1
            heappush(self.wakes, (deadline_ms, self.wakes_made, group))

    def create(self, group_id: str) -> Group:
        group = self.groups[group_id] = Group(group_id, self.now.wall_ms)
        return group

    def forget(self, group: Group) -> None:
        """Drop a group whose records are tombstones now."""
        assert not group.members, f"{group.group_id} is dropped with members"
        self.pending_count -= len(group.pending)
        group.pending.clear()
        group.wake_ms = NEVER
        group.state = DEAD
        del self.groups[group.group_id]
