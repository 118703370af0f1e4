"""Events of a story, and the interface of what plays one. Pure.

A stage is the simulator or a real broker. It does what a sentence says and notes what members see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from partita.offsets.topic_partition import TopicPartition

GROUP = "g"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a member saw or did: `owned` are its partitions afterwards, `count` the records it read."""

    at_ms: int
    who: str
    what: str
    text: str = ""
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    count: int = 0

    @property
    def line(self) -> str:
        """The event in words."""
        return f"{self.who} {self.what} {self.text}".rstrip()

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return {name: getattr(self, name) for name in ("at_ms", "who", "what", "text", "generation", "count")} | {
            "owned": [str(place) for place in self.owned]
        }


@dataclass(slots=True)
class Seen:
    """The events of a story in their order, and who has which partitions by them."""

    events: list[Event] = field(default_factory=list)
    owned: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    generation: int = 0

    def add(self, event: Event) -> None:
        """One more event."""
        self.events.append(event)
        if event.what in ("assigned", "revoked", "lost"):
            self.owned[event.who] = event.owned
            self.generation = max(self.generation, event.generation)
        elif event.what in ("crashes", "ended"):
            self.owned.pop(event.who, None)

    def owners(self) -> dict[TopicPartition, str]:
        """The owner of each partition that has one."""
        return {place: who for who, places in self.owned.items() for place in places}


def shown(places: Sequence[TopicPartition]) -> str:
    """Partitions in words."""
    return " ".join(map(str, sorted(places))) or "nothing"


class Stage(Protocol):
    """Plays deeds and notes what members see."""

    name: str

    @property
    def refuses(self) -> Mapping[str, str]:
        """Verbs and forms of expect that it cannot do, with the reason."""
        ...

    seen: Seen

    @property
    def now_ms(self) -> int:
        """Milliseconds since the beginning."""
        ...

    @property
    def began_wall_ms(self) -> int:
        """The wall clock at the beginning."""
        ...

    def deed(self, verb: str, name: str, number: int) -> None:
        """Do something to the cluster: a verb of the world, with its name and number if it has them."""

    def join(self, who: str, topics: Sequence[str], settings: Mapping[str, str]) -> None:
        """Start a member. Raises ValueError for an option that does not exist or has a wrong value."""

    def act(self, who: str, verb: str, words: Sequence[str], number: int) -> None:
        """Let a member do something."""

    def advance(self, ms: int) -> None:
        """Let time pass."""

    def until(self, holds: Callable[[], bool]) -> bool:
        """Whether it holds, on a real broker within a minute."""
        ...

    def notes(self) -> Sequence[Mapping[str, Any]]:
        """The broker's notes, oldest first; none on a broker that is not ours."""
        ...

    def members(self) -> list[str]:
        """The members of the group by their client ids."""
        ...

    def committed(self, place: TopicPartition) -> int | None:
        """The committed offset of a partition."""
        ...

    def digest(self) -> str:
        """The digest of a simulated history."""
        ...

    def close(self) -> None:
        """End everything that was started."""
