"""The sources of facts about rebalances, as the pages read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from partita.dashboard.models.accounts import FactsOf


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of facts about rebalances, and their name."""

    facts_of: FactsOf
    described: Callable[[], str]


NO_SOURCES = Sources(
    lambda group_id: (), lambda: "No rebalance is known: neither notes nor __consumer_offsets are read."
)
