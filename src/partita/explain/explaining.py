"""The face of `partita.explain`: facts of any sources in, accounts out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from partita.explain.account import Account, Cause
from partita.explain.advice import advice_for
from partita.explain.causes import causes_of
from partita.explain.costs import phases_of, unread_of
from partita.explain.facts import Fact
from partita.explain.generations import Step, histories
from partita.explain.moves import moves_between
from partita.explain.patterns import patterns_of
from partita.explain.story import headline_of, story_of
from partita.explain.wording import names_of, short_id, shortened

PATTERNS_LOOK_BACK = 200
"""Number of earlier rebalances that patterns look at."""


def explain(facts: Iterable[Fact]) -> tuple[Account, ...]:
    """One account per rebalance of each group in the facts, oldest first.

    The facts may come from several sources in any order. Reports of a coordinator take precedence over observations of
    the same generation. A replacement of a static member without a rebalance has an account too, with an unchanged
    generation.
    """
    found: list[Account] = []
    for history in histories(facts):
        accounts: list[Account] = []
        for step in history.steps():
            account = _account(step)
            account = replace(account, patterns=patterns_of([*accounts[-PATTERNS_LOOK_BACK:], account]))
            account = replace(account, advice=advice_for(account, is_last=step.until_ms is None))
            accounts.append(replace(account, headline=headline_of(account), story=story_of(account)))
        found += accounts
    return tuple(sorted(found, key=lambda account: account.ended_ms))


def _account(step: Step) -> Account:
    before, after = step.before, step.after
    members_before = () if before is None else before.members
    names = names_of([members_before, after.members])
    causes = tuple(_named(cause, names) for cause in causes_of(step))
    moves, kept = moves_between(before, after, names)
    return Account(
        group=after.group,
        generation=after.generation,
        previous_generation=None if before is None else before.generation,
        began_ms=after.began_ms,
        ended_ms=after.at_ms,
        headline="",
        story=(),
        causes=causes,
        phases=phases_of(step, names),
        unread=unread_of(step, causes),
        moves=moves,
        kept=kept,
        members=after.members,
        members_before=members_before,
        names=tuple(names.items()),
        protocol=after.protocol,
        is_incremental=after.is_incremental,
        places=tuple(place for place in (after.place,) if place),
    )


def _named(cause: Cause, names: dict[str, str]) -> Cause:
    if cause.who or not cause.member_id:
        return cause
    known = cause.instance_id or names.get(cause.member_id) or cause.client_id or short_id(cause.member_id)
    return replace(cause, who=shortened(known))
