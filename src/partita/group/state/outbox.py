"""Collects the results of one input: records, replies, notes, and the count of tokens still to answer."""

from __future__ import annotations

from partita.group.contract import NOTHING, Job, Marker, Producer, Record, Reply, Step, Token
from partita.group.notes import Note
from partita.protocol.primitives import Structure


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
