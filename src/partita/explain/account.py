"""The account of one rebalance: what a person reads, with the values behind each word.

Values only; `partita.explain.explain` makes them. Every output (CLI, dashboard, pytest report, demo) shows `headline`
and `story` as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from partita.explain.facts import Member, Partition, Sure
from partita.wording import What


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason for the rebalance. `who` is the member's name for a person; it is empty if no member is to blame."""

    what: What
    sure: Sure
    who: str = ""
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    detail: str = ""
    """The reason that the client gave, or the topics or partitions in question."""
    evidence: tuple[str, ...] = ()
    """The evidence for the cause, one sentence each; never empty."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of the rebalance: "join", "sync" or "first commit". `waited_for` names the last member."""

    name: str
    ms: int
    sure: Sure
    waited_for: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """Time without a reader of a partition: from the last commit of its old owner to the first one of the new owner.

    `to_ms` is None until the next commit. `lag_gained` and `read_twice` count records, None if not known.
    """

    partition: Partition
    from_ms: int
    to_ms: int | None
    lag_gained: int | None = None
    read_twice: int | None = None

    @property
    def ms(self) -> int | None:
        """Duration, if it is over."""
        return None if self.to_ms is None else self.to_ms - self.from_ms


@dataclass(frozen=True, slots=True)
class Move:
    """A partition whose owner changed. An empty name means no owner.

    A move is needed if the old owner is gone or had more partitions than its share, or the partition had no owner.
    """

    partition: Partition
    before: str
    after: str
    is_needed: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """A recurring pattern: `name` is a key of the table of advice, `text` is one sentence."""

    name: str
    text: str
    generations: tuple[int, ...] = ()
    """The rebalances that it is seen in."""


@dataclass(frozen=True, slots=True)
class Account:
    """One rebalance of one group, from its cause to its cost."""

    group: str
    generation: int
    previous_generation: int | None
    """The one that is known before it: more than 1 lower if records between them are missing. None: the first known."""
    began_ms: int | None
    ended_ms: int
    headline: str
    """One sentence: what happened."""
    story: tuple[str, ...]
    """Three to six sentences: cause, waiting, cost, moves, pattern."""
    causes: tuple[Cause, ...]
    """In the order in which they came, as far as that is known; never empty."""
    phases: tuple[Phase, ...] = ()
    unread: tuple[Unread, ...] = ()
    moves: tuple[Move, ...] = ()
    kept: int = 0
    """Partitions that have the same owner as before."""
    members: tuple[Member, ...] = ()
    members_before: tuple[Member, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """Member id and the name it goes by, of all members of both generations."""
    protocol: str | None = None
    is_incremental: bool = False
    patterns: tuple[Pattern, ...] = ()
    advice: str = ""
    """One sentence, or empty if there is nothing to do."""
    places: tuple[str, ...] = ()
    """Source records or notes."""

    @property
    def cause(self) -> Cause:
        """The causes of the rebalance."""
        return self.causes[0]

    @property
    def is_replacement(self) -> bool:
        """Whether only the process of a static member was replaced, without a rebalance."""
        return self.generation == self.previous_generation and self.cause.what is What.STATIC_REPLACED

    @property
    def took_ms(self) -> int | None:
        """From its begin to its end; None if the begin is not known."""
        return None if self.began_ms is None else self.ended_ms - self.began_ms

    @property
    def unread_ms(self) -> int:
        """The longest time that a partition had no reader."""
        return max((span.ms or 0 for span in self.unread), default=0)

    def name_of(self, member_id: str) -> str:
        """The name of a member of this or the previous generation."""
        return dict(self.names).get(member_id, member_id)

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values; a partition is written topic-number."""
        return {**_plain_fields(self), "cause": self.cause.what.value, "unread_ms": self.unread_ms}


def _plain_fields(value: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case (str(topic), int(number)):
            return f"{topic}-{number}"
        case tuple():
            return [_plain(item) for item in value]
        case _ if is_dataclass(value):
            return _plain_fields(value)
        case _:
            return value
