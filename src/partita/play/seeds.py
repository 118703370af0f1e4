"""A seed of the simulator as a story, and the stage that plays it: its faults come as the seed draws them.

A fault whose sentence is left out is not caused; until then, the history is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from partita.offsets.topic_partition import TopicPartition
from partita.play.simulated import Noted, Simulator
from partita.play.stage import Event
from partita.play.words import MEMBER_VERBS, WORLD_VERBS, Command
from partita.sim.fault_plan import PROTOCOLS, Plan
from partita.sim.mischief import Mischief
from partita.sim.run import Verdict, plan_of, recover
from partita.sim.world.world import Trace

SAFETY, LIVENESS = "safety", "liveness"
_CALLBACKS = {"a": "assigned", "r": "revoked", "l": "lost"}
_PLAYED = frozenset({"seed", "fault", "heal", "advance", "expect"})


def story(verdict: Verdict[Plan], protocol: str) -> Iterator[str]:
    """The lines of the story that plays this run again."""
    outcome = f"breaks {verdict.broken}" if verdict.broken else "keeps every rule"
    yield f"# Seed {verdict.seed} of the simulator {outcome}."
    yield f"seed {verdict.seed} {protocol} {LIVENESS if verdict.liveness else SAFETY}"
    ms = 0
    for fault in verdict.caused:
        if fault.ms > ms:
            yield f"advance {fault.ms - ms}ms"
        ms = fault.ms + fault.stood_ms
        yield f"fault {fault.number} {fault.what}"
    if verdict.storm_ms > ms:
        yield f"advance {verdict.storm_ms - ms}ms"
    if verdict.liveness:
        yield "heal"
    if not verdict.broken:
        yield f"expect digest {verdict.digest:08x}"


class Seeded(Simulator):
    """The stage of a seed."""

    refuses = dict.fromkeys({*MEMBER_VERBS, *WORLD_VERBS} - _PLAYED, "a seed has its own members and faults")

    def __init__(self, seed: int, protocol: str, kept: Iterable[int], *, liveness: bool) -> None:
        """`kept` are the numbers of the faults that are caused."""
        trace = Trace(keep_all=True)
        super().__init__(Noted(seed, plan_of(seed, protocol, liveness=liveness), trace, is_traced=False))
        self.name = f"seed {seed} of the simulator"
        self._mischief = Mischief(self._simulation)
        self._mischief.kept = frozenset(kept)
        self._seen = 0

    @classmethod
    def of_story(cls, sentences: Iterable[Command]) -> Seeded | None:
        """The stage for a story that begins with seed; None for others. Raises StoryError."""
        found = list(sentences)
        first = next((each for each in found if each.verb == "seed"), None)
        if first is None:
            return None
        match first.words:
            case [number, protocol, mode] if number.isdigit():
                first.known(protocol, PROTOCOLS, "a protocol")
                first.known(mode, (SAFETY, LIVENESS), "a mode")
                kept = [_number(each) for each in found if each.verb == "fault"]
                return cls(int(number), protocol, kept, liveness=mode == LIVENESS)
        raise first.wrong("a number, a protocol and a mode", repr(" ".join(first.words)), "write seed 7 classic safety")

    def advance(self, ms: int) -> None:
        """Let virtual time pass. Raises RuleBroken if a rule does not hold."""
        try:
            super().advance(ms)
        finally:
            self._look()

    def deed(self, verb: str, name: str, number: int) -> None:
        """`heal`; the others are heard before the story begins."""
        if verb == "heal":
            recover(self._simulation, self._mischief)
            self._look()

    def _look(self) -> None:
        """Take over what the clients of the simulation saw since the last time."""
        events = list(self._world.trace.events_of("a", "r", "l", "c"))
        for ms, kind, who, what in events[self._seen :]:
            if kind == "c":
                self.seen.add(Event(ms, who, what))
                continue
            places = [] if what == "nothing" else [word.rpartition("-") for word in what.split()]
            owned = tuple(TopicPartition(topic, int(number)) for topic, _, number in places)
            self.seen.add(Event(ms, who, _CALLBACKS[kind], f"and owns {what}", owned))
        self._seen = len(events)


def _number(fault: Command) -> int:
    number = " ".join(fault.words[:1])
    if not number.isdigit():
        raise fault.wrong("the number of a fault", repr(number), "copy it from what partita sim --story wrote")
    return int(number)
