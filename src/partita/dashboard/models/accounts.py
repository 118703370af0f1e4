"""What is known of the rebalances of groups, explained when somebody asks. All words come from `partita.explain`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from partita.explain import Account, Fact, explain
from partita.explain.facts import Assigned, EndSeen
from partita.observe.history import HOUR_MS
from partita.observe.observed import Observed

FactsOf: TypeAlias = Callable[[str], Sequence[Fact]]
"""What is known of a group, from whatever source."""
KEPT_ACCOUNTS = 64
EXPLAINED_FOR_MS = 5_000


@dataclass(frozen=True, slots=True)
class _Explained:
    """What was made of a group's facts, and when; `last_ms` is when its last generation was assigned."""

    version: int
    made_ms: int
    last_ms: int
    facts: Sequence[Fact]
    accounts: tuple[Account, ...]


class Accounts:
    """The accounts of groups, made when asked for: again after a new rebalance, else every few seconds."""

    def __init__(self, observed: Observed, facts_of: FactsOf) -> None:
        self._observed = observed
        self._facts_of = facts_of
        self._known: dict[str, _Explained] = {}

    def of(self, group_id: str) -> tuple[Sequence[Fact], tuple[Account, ...]]:
        """The facts and the accounts of a group, oldest first."""
        known, now_ms = self._known.get(group_id), self._observed.seen_ms
        if known is not None and known.version == self._observed.version:
            return known.facts, known.accounts
        facts = self._facts_of(group_id)
        last = max((fact.at_ms for fact in facts if isinstance(fact, Assigned)), default=0)
        if known is None or last != known.last_ms or now_ms - known.made_ms >= EXPLAINED_FOR_MS:
            facts = [*facts, *self._ends(group_id)]
            known = _Explained(self._observed.version, now_ms, last, facts, explain(facts))
        self._known.pop(group_id, None)
        self._known[group_id] = replace(known, version=self._observed.version)
        while len(self._known) > KEPT_ACCOUNTS:
            del self._known[next(iter(self._known))]
        return known.facts, known.accounts

    def in_last_hour(self, group_id: str) -> int:
        """How many rebalances of a group ended within the last hour, also those before anybody watched."""
        since_ms = self._observed.seen_ms - HOUR_MS
        return sum(account.ended_ms > since_ms for account in self.of(group_id)[1])

    def _ends(self, group_id: str) -> Iterable[EndSeen]:
        """The ends of the group's logs that were seen, which tell how much lag a rebalance cost."""
        group = self._observed.groups.get(group_id)
        for commit in group.commits if group is not None else ():
            for at_ms, end in self._observed.history.ends_of((commit.topic, commit.partition)):
                yield EndSeen(at_ms, (commit.topic, commit.partition), end)
