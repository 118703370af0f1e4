"""From a configured strategy to an assignor instance.

Accepts a protocol name ("range"), the name of Kafka's class for it, a class or an instance of a user's own.
Every call makes a new instance: assignors keep state per consumer.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.assignors.cooperative_sticky import CooperativeStickyAssignor
from partita.assignors.interface import Assignor, RebalanceProtocol
from partita.assignors.range import RangeAssignor
from partita.assignors.roundrobin import RoundRobinAssignor
from partita.assignors.sticky import StickyAssignor
from partita.options import nearest

BUILT_IN: dict[str, type[Assignor]] = {
    cls.name: cls for cls in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


def create_assignor(strategy: str | type[Assignor] | Assignor) -> Assignor:
    """The assignor meant by one entry of `partition.assignment.strategy`. Raises ValueError."""
    if isinstance(strategy, Assignor):
        return strategy
    if isinstance(strategy, type) and issubclass(strategy, Assignor):
        return strategy()
    if not isinstance(strategy, str):
        raise ValueError(f"an assignor must be a name, a subclass of Assignor or an instance of one, not {strategy!r}")
    by_class_name = {cls.__name__: cls for cls in BUILT_IN.values()}
    cls = BUILT_IN.get(strategy) or by_class_name.get(strategy.rpartition(".")[2])
    if cls is None:
        near = nearest(strategy.rpartition(".")[2], [*BUILT_IN, *by_class_name], 0.6)
        hint = f"; did you mean {near[0]!r}?" if near else f"; built in are {', '.join(BUILT_IN)}"
        raise ValueError(f"unknown assignor {strategy!r}{hint}")
    return cls()


def rebalance_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """The highest rebalance protocol that all of them support. Raises ValueError if there is none."""
    supported = [set(assignor.supported_protocols) for assignor in assignors]
    common = set.intersection(*supported) if supported else set()
    if not common:
        raise ValueError("the configured assignors have no rebalance protocol in common")
    return max(common, key=lambda protocol: protocol.value)
