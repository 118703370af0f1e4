"""Scores the inference of causes: simulated histories are explained from their log alone, and compared with the notes.

The simulator's faults are mixed with what they lack: slow polls, other subscriptions, rebalances that an application
asks for. A claim is right if the coordinator noted the same of the same member between the two records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from partita.explain import Account, Sure, What, explain
from partita.explain.account import Cause
from partita.explain.facts import Fact
from partita.group import notes as told
from partita.group.notes import Note
from partita.group.records.read_back import LogRecord
from partita.observe.kept import Kept
from partita.observe.log_facts import LogReader
from partita.records.batch import iter_records
from partita.sim.fault_plan import CLASSIC, draw, with_protocol
from partita.sim.mischief import Mischief
from partita.sim.rules.rule import RuleBroken
from partita.sim.simulation import GROUP, Simulation
from partita.sim.world.world import Dice, Trace

EXTRA_KINDS = ("slow_poll", "change_subscription", "enforce")
EVENTS_MAX = 20_000
LOADS_WITHIN_MS = 15_000
"""A killed broker comes back within this time."""


class MixedMischief(Mischief):
    """The simulator's kinds of fault, and three more."""

    def __init__(self, simulation: Simulation, moves: list[int]) -> None:
        super().__init__(simulation)
        self._moves = moves

    def move_shard(self) -> None:
        """The shard moves; the moment is written down."""
        self._moves.append(self._world.now.wall_ms)
        super().move_shard()

    def crash_broker(self) -> None:
        """The broker dies; the moment is written down."""
        self._moves.append(self._world.now.wall_ms)
        super().crash_broker()

    def slow_poll(self) -> None:
        """An application works on one batch for longer than max.poll.interval.ms."""
        if client := self._client():
            plan, app = self._simulation.plan, client.application
            usual = app.habits
            app.habits = replace(usual, work_ms=(plan.max_poll_ms + 500, plan.max_poll_ms + 5_000))
            self._world.after(plan.max_poll_ms, setattr, app, "habits", usual)

    def change_subscription(self) -> None:
        """An application subscribes to other topics."""
        topics = self._simulation.topics
        client = self._client()
        if client is not None and len(topics) > 1:
            wanted = self._world.dice.choice((topics, topics[:1], topics[1:]))
            client.core.subscription.subscribe_topics(wanted)
            client.turn()

    def enforce(self) -> None:
        """An application asks for a rebalance."""
        if client := self._client():
            client.core.membership.enforce_rebalance("a test asks for it")
            client.turn()


@dataclass
class History:
    """What one seed left: the facts of its log, and its notes."""

    seed: int
    facts: list[Fact] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    """When the coordinator was moved or killed."""
    members: set[str] = field(default_factory=set)
    """Everybody that the coordinator ever had as a member."""


def history(seed: int, minutes: float = 2.0, protocol: str = CLASSIC) -> History:
    """Run one seed with mixed faults; `protocol` is what members speak: classic, consumer (KIP-848) or mixed."""
    dice = Dice(f"why {seed}")
    plan = with_protocol(draw(dice), protocol, dice)
    extra = tuple((kind, dice.choice((10_000, 30_000))) for kind in EXTRA_KINDS if dice.chance(0.3))
    plan = replace(plan, faults=tuple(sorted(dict([*plan.faults, *extra]).items())))
    if dice.chance(0.5):
        plan = replace(plan, max_poll_ms=4 * plan.session_ms, max_poll_records=50)
    found = History(seed)
    simulation = Simulation(seed, plan, Trace(keep_all=False))
    simulation.recorder.on_notes = lambda notes: _heard(found, notes, simulation)
    MixedMischief(simulation, found.moves)
    try:
        for ms in range(0, int(minutes * 60_000), 1_000):
            simulation.world.run(ms)
            if simulation.world.trace.events >= EVENTS_MAX:
                break
    except (RuleBroken, AssertionError):
        pass  # the rules judge histories of the simulator's own faults; this one is only a history
    names = {topic.topic_id: topic.name for topic in simulation.process.cluster.catalogue}
    reader = LogReader(names.get)
    for _, batch in simulation.recorder.batches:
        for record in iter_records(batch):
            read = LogRecord(record.key, record.value, 0, record.offset, record.timestamp, record.leader_epoch)  # type: ignore[arg-type]  # keys and values of the log are bytes
            found.facts += [fact for fact in reader.read(read) if getattr(fact, "group", GROUP) == GROUP]
    return found


def _heard(found: History, notes: tuple[Note, ...], simulation: Simulation) -> None:
    found.notes.extend(notes)
    group = simulation.watch.group
    found.members.update(group.members if group is not None else ())


@dataclass(frozen=True)
class Claim:
    """One cause that the log alone gave, and whether the notes bear it out."""

    seed: int
    generation: int
    cause: Cause
    is_right: bool
    truth: tuple[str, ...]
    """What was noted of that member, or of the group."""


def claims(found: History) -> Iterator[Claim]:
    """Every cause of every rebalance but the first known one, judged; facts are thinned as for commands and pages."""
    kept = Kept()
    for fact in found.facts:
        kept.add(fact)
    accounts = explain(kept.of(GROUP))
    for before, account in pairwise(accounts):
        begin_ms = min(before.ended_ms + 1, account.ended_ms)
        window = [n for n in found.notes if begin_ms <= n.wall_ms <= account.ended_ms]
        for cause in account.causes:
            truth = tuple(_of_member(cause, window) if cause.member_id else _of_group(window))
            if any(before.ended_ms - LOADS_WITHIN_MS <= at <= account.ended_ms for at in found.moves):
                truth += (What.COORDINATOR_MOVED.value,)
            if cause.what is What.JOINED and cause.member_id in found.members:
                truth += (What.JOINED,)  # a broker that dies before the rebalance is over notes no join
            if cause.what is What.SUBSCRIPTION_CHANGED:
                truth += tuple(_topics(cause, [n for n in found.notes if n.wall_ms <= account.ended_ms]))
            yield Claim(found.seed, account.generation, cause, _is_right(cause, truth, account), truth)


def _of_member(cause: Cause, window: Iterable[Note]) -> Iterator[str]:
    for note in window:
        match note:
            case told.Rebalanced():
                yield from (_word(c) for c in note.causes if _is_same(c, cause))
            case told.MemberGone():
                if _is_same(note.cause, cause):
                    yield _word(note.cause)
            case told.RebalanceStarted() | told.GroupEpochBumped():
                if _is_same(note.cause, cause):
                    yield _word(note.cause)
            case told.MemberFenced():
                if note.new_member_id == cause.member_id or note.group_instance_id == cause.instance_id:
                    yield What.STATIC_REPLACED


def _topics(cause: Cause, notes: Iterable[Note]) -> Iterator[str]:
    """Did the member's topics change between the last two generations it was noted in?"""
    kinds = told.Rebalanced | told.TargetComputed
    held = [h.topics for n in notes if isinstance(n, kinds) for h in n.held if h.member_id == cause.member_id]
    if len(held) > 1 and any(topics != held[-1] for topics in held[-4:-1]):
        yield What.SUBSCRIPTION_CHANGED


def _is_same(noted: told.Cause, cause: Cause) -> bool:
    """The member, or, for what an instance id does, any process with it."""
    of_instance = cause.what in (What.JOINED, What.STATIC_REPLACED) and cause.instance_id is not None
    return noted.member_id == cause.member_id or (of_instance and noted.group_instance_id == cause.instance_id)


def _word(cause: told.Cause) -> str:
    if cause.what == What.LEFT and "no poll for" in cause.detail:
        return What.POLLED_TOO_LATE.value
    return cause.what


def _of_group(window: Iterable[Note]) -> Iterator[str]:
    for note in window:
        match note:
            case told.Rebalanced():
                yield from (_word(cause) for cause in note.causes)
            case told.RebalanceStarted() | told.GroupEpochBumped():
                yield _word(note.cause)
            case told.GroupsLoaded():
                yield What.COORDINATOR_MOVED.value


_LOOSE = {
    What.PARTITIONS_CHANGED: (What.LEADER_REJOINED, What.PARTITIONS_CHANGED),
    What.PARTITIONS_GIVEN_UP: (What.LEADER_REJOINED, What.MEMBER_REJOINED),
    What.JOINED: (What.STATIC_REPLACED,),
    What.LEFT: (What.LEFT, What.POLLED_TOO_LATE.value, What.EVICTED),
}
"""A leader of an old version gives no reason; a claim that a member left says nothing of why. A static member that
joined in a generation that was never assigned is replaced in the next one: to the log, it joins."""


def _is_right(cause: Cause, truth: tuple[str, ...], account: Account) -> bool:
    return any(word in truth for word in (cause.what.value, *_LOOSE.get(cause.what, ())))


@dataclass
class Score:
    """Counts of claims by how sure they are and by cause."""

    right: Counter[tuple[Sure, What]] = field(default_factory=Counter)
    wrong: Counter[tuple[Sure, What]] = field(default_factory=Counter)

    def add(self, claim: Claim) -> None:
        """Count one claim."""
        (self.right if claim.is_right else self.wrong)[(claim.cause.sure, claim.cause.what)] += 1

    def share(self, sure: Sure) -> float:
        """How many of these claims are right, from 0 to 1; 1 if there are none."""
        right = sum(n for (s, _), n in self.right.items() if s is sure)
        wrong = sum(n for (s, _), n in self.wrong.items() if s is sure)
        return right / (right + wrong) if right + wrong else 1.0

    def lines(self) -> list[str]:
        """One line per kind of claim."""
        kinds = sorted({*self.right, *self.wrong}, key=lambda kind: (kind[0].value, kind[1].value))
        rows = [
            f"{s.value:9} {what.value:42} {self.right[s, what]:6} right {self.wrong[s, what]:5} wrong"
            for s, what in kinds
        ]
        totals = [f"{sure.value:9} {self.share(sure):.2%}" for sure in (Sure.SEEN, Sure.INFERRED)]
        return [*rows, *totals]
