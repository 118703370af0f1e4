"""The known rebalances of groups, explained on request. All words come from `partita.explain`."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from partita.explain import Account, Fact, explain
from partita.explain.facts import Assigned, BeginSeen, Committed, EndSeen
from partita.explain.generations import histories
from partita.explain.topics import gone_topics
from partita.observe.history import HOUR_MS, RebalanceSeen
from partita.observe.observed import Observed

FactsOf: TypeAlias = Callable[[str], Sequence[Fact]]
"""Returns the known facts of a group, from whatever source."""
KEPT_ACCOUNTS = 64
EXPLAINED_FOR_MS = 5_000


@dataclass(frozen=True, slots=True)
class _Explained:
    """A group's accounts, and when they were made; `last_ms` is when its last generation was assigned."""

    version: int
    made_ms: int
    last_ms: int
    facts: Sequence[Fact]
    accounts: tuple[Account, ...]


class Accounts:
    """The accounts of groups, computed on request: after a new rebalance, else every few seconds."""

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
            topics = gone_topics(facts, self._observed.topics, now_ms) if self._observed.topics else ()
            facts = [*facts, *topics, *self._logs(group_id)]
            known = _Explained(self._observed.version, now_ms, last, facts, explain(facts))
        self._known.pop(group_id, None)
        self._known[group_id] = replace(known, version=self._observed.version)
        while len(self._known) > KEPT_ACCOUNTS:
            del self._known[next(iter(self._known))]
        return known.facts, known.accounts

    def in_last_hour(self, group_id: str) -> int:
        """Return how many rebalances of a group ended within the last hour, also before the observation began."""
        return len(self._ends_of(group_id, self._observed.seen_ms - HOUR_MS))

    def rebalances(self, group_id: str, most: int) -> list[RebalanceSeen]:
        """The last rebalances of a group, oldest first: as explained, else as changes that were observed."""
        _, known = self.of(group_id)
        if not known:
            return self._observed.history.rebalances(group_id)[-most:]
        return [RebalanceSeen(account.ended_ms, group_id, account.headline) for account in known[-most:]]

    def last_of_all(self, most: int) -> list[RebalanceSeen]:
        """The last rebalances of all groups, the newest first."""
        ends = ((end_ms, group_id) for group_id in self._observed.groups for end_ms in self._ends_of(group_id, 0))
        groups = {group_id for _, group_id in heapq.nlargest(most, ends)}
        return heapq.nlargest(
            most, (one for group_id in groups for one in self.rebalances(group_id, most)), key=lambda one: one.at_ms
        )

    def looks(self, group_id: str) -> tuple[dict[str, str], dict[str, int]]:
        """Names of a group's members by id, and each name's number, by which all pages choose its colour.

        Numbers are given in the order in which the names first appeared, so that a newcomer changes none.
        """
        facts, known = self.of(group_id)
        names = {member_id: name for account in known for member_id, name in account.names}
        steps = sorted((fact for fact in facts if isinstance(fact, Assigned)), key=lambda step: step.at_ms)
        members = [(member.member_id, member.client_id) for step in steps for member in step.members]
        group = self._observed.groups.get(group_id)
        if group is not None:
            members += [(member.member_id, member.client_id) for member in group.members]
        shown = dict.fromkeys(names.get(member_id, client_id) for member_id, client_id in members)
        return names, {name: number for number, name in enumerate(shown)}

    def _ends_of(self, group_id: str, since_ms: int) -> list[int]:
        """The ends of a group's rebalances after an instant, without the cost of explaining them."""
        facts = [fact for fact in self._facts_of(group_id) if not isinstance(fact, Committed)]
        if not any(isinstance(fact, Assigned) for fact in facts):
            return [one.at_ms for one in self._observed.history.rebalances(group_id) if one.at_ms > since_ms]
        if not any(isinstance(fact, Assigned) and fact.at_ms > since_ms for fact in facts):
            return []
        steps = [step for history in histories(facts) for step in history.steps()]
        return [step.after.at_ms for step in steps if step.after.at_ms > since_ms]

    def _logs(self, group_id: str) -> Iterable[EndSeen | BeginSeen]:
        """Yield the observed begins and ends of the group's logs: what was lost, and the lag caused by a rebalance."""
        group = self._observed.groups.get(group_id)
        for commit in group.commits if group is not None else ():
            log = self._observed.logs.get((commit.topic, commit.partition))
            if log is not None and log.start is not None:
                yield BeginSeen(self._observed.seen_ms, (commit.topic, commit.partition), log.start)
            for at_ms, end in self._observed.history.ends_of((commit.topic, commit.partition)):
                yield EndSeen(at_ms, (commit.topic, commit.partition), end)
