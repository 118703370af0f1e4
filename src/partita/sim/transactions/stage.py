"""State shared by the clients of one run: the world, the plan, and the answers they got."""

from __future__ import annotations

from partita.sim.transactions.ledger import Ledger, TopicPartition
from partita.sim.transactions.model import Entry
from partita.sim.transactions.plan import Plan
from partita.sim.transactions.watch import BRIEF, Watch
from partita.sim.world.world import World

PARTITIONS, INPUTS = 4, 2
GROWING = "t"
"""The topic that may get more partitions."""
STRICT: tuple[TopicPartition, ...] = (("strict", 0), ("strict", 1))
"""Partitions of a topic that refuses large batches, and records without a key."""
COPIERS = "copiers"
"""The copiers' group."""


class Stage:
    """One run as its clients see it. They go on while it `is_producing`."""

    def __init__(self, world: World, plan: Plan, ledger: Ledger, watch: Watch) -> None:
        self.world = world
        self.plan = plan
        self.ledger = ledger
        self.watch = watch
        self.growing: tuple[TopicPartition, ...] = tuple((GROWING, i) for i in range(PARTITIONS))
        self.inputs: tuple[TopicPartition, ...] = tuple(("in", i) for i in range(INPUTS))
        self.is_producing = True
        self.level = plan.level
        """Of the feature transaction.version, now."""

    @property
    def data(self) -> tuple[TopicPartition, ...]:
        """Partitions that readers read."""
        return (*self.growing, ("kept", 0))

    @property
    def written(self) -> tuple[TopicPartition, ...]:
        """Partitions that writers write to; those that may be deleted have no readers."""
        return (*self.data, BRIEF)

    def grow(self, count: int) -> None:
        """The topic has so many partitions now; an answer that comes late takes none away."""
        self.growing = tuple((GROWING, i) for i in range(max(count, len(self.growing))))

    def input_end(self, partition: int) -> int:
        """How far a copier must get."""
        items = self.watch.model(("in", partition)).items
        return 1 + max((item.offset for item in items if isinstance(item, Entry)), default=-1)

    def is_copied(self) -> bool:
        """Whether the copiers' group has committed the end of every input."""
        ends = {where: self.input_end(where[1]) for where in self.inputs}
        return all(not end or self.watch.committed(COPIERS, where) >= end for where, end in ends.items())
