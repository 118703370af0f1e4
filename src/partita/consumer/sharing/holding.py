"""Records that this member holds, and its acknowledgements on their way to the leaders that gave them.

A hold begins with the answer that acquired the record and ends with the answer to its acknowledgement. A parcel is the
acknowledgements of one partition that travel in one request; a commit waits for parcels. (Kafka: ShareInFlightBatch,
Acknowledgements.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from partita.consumer.errors import IllegalStateError
from partita.consumer.request import Operation
from partita.errors import KafkaError
from partita.offsets.topic_partition import TopicPartition
from partita.protocol.messages.share_fetch import AcknowledgementBatch
from partita.records.batch import Record


class Verdict(IntEnum):
    """An acknowledgement, by its number on the wire."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


VERDICTS = {one.name.lower(): one for one in Verdict if one is not Verdict.GAP}
"""The names that an application uses."""


class Stage(Enum):
    """How far a held record has come. The value describes it."""

    BUFFERED = "fetched; the application has not got it yet"
    GIVEN = "with the application"
    SENT = "acknowledged, and the acknowledgement is on its way"
    OVER = "answered, or lost: this member holds it no more"


STAGE_MOVES = {
    Stage.BUFFERED: (Stage.GIVEN, Stage.OVER),
    Stage.GIVEN: (Stage.SENT, Stage.BUFFERED, Stage.OVER),
    Stage.SENT: (Stage.OVER, Stage.BUFFERED),
    Stage.OVER: (),
}
"""Allowed moves of a held record. A record goes back to BUFFERED when it was renewed, or when a poll that took it ended
early."""


class Place(NamedTuple):
    """A partition at the leader that gave its records."""

    tp: TopicPartition
    topic_id: bytes
    node_id: int


@dataclass(slots=True, eq=False)
class Hold:
    """One acquired record. `verdict` is what the application has said of it and no request carries yet."""

    place: Place
    record: Record
    delivery_count: int
    deadline_ms: int
    stage: Stage = Stage.BUFFERED
    verdict: Verdict | None = None
    is_worked_on: bool = False
    """Does a block or a handler work on it, which will acknowledge it? Its lock is renewed."""
    is_in_loop: bool = False
    """Is it the record in the body of a loop? Its lock is renewed, too."""
    is_renewing: bool = False

    @property
    def key(self) -> tuple[TopicPartition, int]:
        """Partition and offset."""
        return self.place.tp, self.record.offset

    def move(self, to: Stage) -> None:
        """Change the stage. Every change goes through here and obeys `STAGE_MOVES`."""
        assert to is self.stage or to in STAGE_MOVES[self.stage], f"a hold does not move from {self.stage} to {to}"
        self.stage = to

    def __str__(self) -> str:
        return f"record {self.record.offset} of {self.place.tp}"


@dataclass(slots=True, eq=False)
class Commit(Operation):
    """A call that waits for parcels: its value is the error of each partition, None where all went well."""

    open: int = 0
    outcomes: dict[TopicPartition, KafkaError | None] = field(default_factory=dict)

    def heard(self, tp: TopicPartition, error: KafkaError | None) -> None:
        """Note the answer to one parcel; the first error of a partition stays."""
        self.outcomes[tp] = self.outcomes.get(tp) or error
        self.open -= 1
        self.end_if_all_heard()

    def end_if_all_heard(self) -> None:
        """The outcome is there once no parcel is on its way."""
        if self.open <= 0:
            self.succeed(self.outcomes)


@dataclass(slots=True, eq=False)
class Parcel:
    """Acknowledgements of one partition for one leader."""

    place: Place
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    ranges: list[tuple[int, int, Verdict]] = field(default_factory=list)
    """First and last offset of what has no hold: gaps, and what could not be read."""
    holds: list[Hold] = field(default_factory=list)
    commit: Commit | None = None
    is_alone: bool = False
    """Does it travel alone, since a leader refuses the acknowledgements of a partition as a whole?"""

    def part(self, holds: list[Hold], *, is_alone: bool = False) -> Parcel:
        """A parcel of some of these records; the commit waits for it as well."""
        if self.commit is not None:
            self.commit.open += 1
        verdicts = {hold.record.offset: self.verdicts[hold.record.offset] for hold in holds}
        return Parcel(self.place, verdicts, [], holds, self.commit, is_alone)

    @property
    def renews(self) -> bool:
        """Does it renew a lock? Then it needs a request that says so."""
        return Verdict.RENEW in self.verdicts.values()


class Holdings:
    """Every record this member holds. `changed` is called with each parcel that was answered."""

    def __init__(self) -> None:
        self.all: dict[tuple[TopicPartition, int], Hold] = {}
        self.given: dict[tuple[TopicPartition, int], Hold] = {}
        """The records that the application has and whose acknowledgement is not on its way."""
        self._said: dict[Hold, None] = {}

    def add(self, hold: Hold) -> None:
        """A record was acquired. One that was held before was lost to its lock, and is this one now."""
        before = self.all.get(hold.key)
        if before is not None:
            self.drop(before)
        self.all[hold.key] = hold

    def give(self, hold: Hold) -> None:
        """The application gets it."""
        hold.move(Stage.GIVEN)
        self.given[hold.key] = hold

    def drop(self, hold: Hold) -> None:
        """Forget it: it is not held any more."""
        hold.move(Stage.OVER)
        hold.is_worked_on = hold.is_in_loop = False
        self._said.pop(hold, None)
        for held in (self.all, self.given):
            if held.get(hold.key) is hold:
                del held[hold.key]

    def say(self, hold: Hold, verdict: Verdict) -> None:
        """Note an acknowledgement; said twice before it is sent, the later one counts. Raises IllegalStateError."""
        if hold.stage is not Stage.GIVEN:
            raise IllegalStateError(
                f"{hold} cannot be acknowledged as {verdict.name.lower()}: it is {hold.stage.value}; acknowledge each "
                "record once, before the next commit or poll"
            )
        hold.verdict = verdict
        self._said[hold] = None

    def find(self, tp: TopicPartition, offset: int) -> Hold:
        """The hold of a record that was given. Raises IllegalStateError if this consumer does not have it."""
        hold = self.given.get((tp, offset))
        if hold is None:
            raise IllegalStateError(
                f"record {offset} of {tp} is not held by this consumer: it was never given, or its acknowledgement was "
                "sent already"
            )
        return hold

    def settle(self, *, accept: bool) -> None:
        """Settle the last poll: records without an acknowledgement are accepted, or must get one first.

        Records that a block or a handler works on are its own. Raises IllegalStateError in explicit mode.
        """
        open_ones = [hold for hold in self.given.values() if hold.verdict is None and not hold.is_worked_on]
        if accept:
            for hold in open_ones:
                self.say(hold, Verdict.ACCEPT)
        elif open_ones:
            raise IllegalStateError(
                f"{open_ones[0]} is not acknowledged, nor are {len(open_ones) - 1} others: with "
                "share_acknowledgement_mode='explicit' accept, release, reject or renew every record before the next "
                "poll, or process it in a `with record:` block"
            )

    def send(self, commit: Commit | None, put_out: Callable[[Parcel], None]) -> None:
        """Put out everything said so far, in one parcel for each place; `commit` waits for these.

        Record after record, so that Ctrl-C leaves the others said, and at most one that comes again after its lock.
        """
        made: dict[Place, Parcel] = {}
        for hold in list(self._said):
            del self._said[hold]
            verdict = hold.verdict
            assert verdict is not None, "what was said has a verdict"
            self.given.pop(hold.key, None)
            hold.move(Stage.SENT)
            hold.verdict = None
            if hold.place not in made:
                made[hold.place] = Parcel(hold.place, commit=commit)
                if commit is not None:
                    commit.open += 1
                put_out(made[hold.place])
            made[hold.place].verdicts[hold.record.offset] = verdict
            made[hold.place].holds.append(hold)

    def renewals(self, is_due: Callable[[Hold], bool]) -> list[Parcel]:
        """Renewals of the records whose lock is due to be renewed."""
        made: dict[Place, Parcel] = {}
        for hold in self.all.values():
            if not hold.is_renewing and hold.stage in (Stage.BUFFERED, Stage.GIVEN) and is_due(hold):
                parcel = made.setdefault(hold.place, Parcel(hold.place))
                parcel.verdicts[hold.record.offset] = Verdict.RENEW
                parcel.holds.append(hold)
                hold.is_renewing = True
        return list(made.values())


def batches(parcels: Iterable[Parcel]) -> list[AcknowledgementBatch]:
    """The acknowledgements of one partition in the form of the wire: runs of one type, in order."""
    verdicts: dict[int, Verdict] = {}
    ranges: list[tuple[int, int, Verdict]] = []
    for parcel in parcels:
        verdicts.update(parcel.verdicts)
        ranges += parcel.ranges
    found: list[AcknowledgementBatch] = []
    for first, end, verdict in sorted([*ranges, *((offset, offset, said) for offset, said in verdicts.items())]):
        last = found[-1] if found else None
        if last is not None and last.last_offset == first - 1 and last.acknowledge_types == [verdict]:
            last.last_offset = end
        else:
            found.append(AcknowledgementBatch(first_offset=first, last_offset=end, acknowledge_types=[int(verdict)]))
    return found


def by_partition(parcels: Iterable[Parcel]) -> Mapping[tuple[bytes, int], list[Parcel]]:
    """The parcels of each partition."""
    found: dict[tuple[bytes, int], list[Parcel]] = {}
    for parcel in parcels:
        found.setdefault((parcel.place.topic_id, parcel.place.tp.partition), []).append(parcel)
    return found
