"""Every row of the table of advice applies to what it is for, and to nothing quiet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partita.explain import Account, Sure, What, patterns
from partita.explain.account import Cause, Move, Pattern, Phase
from partita.explain.advice import ADVICE, advice_for
from partita.explain.facts import Member

MEMBER = Member("w-1", "worker", session_timeout_ms=45_000, rebalance_timeout_ms=300_000)


def account(*whats: What, pattern: str = "", **more: object) -> Account:
    causes = tuple(Cause(what, Sure.TOLD, "worker", "w-1", client_id="worker", evidence=("e",)) for what in whats)
    found = Account(
        "g", 2, 1, 0, 1_000, "", (), causes or (Cause(What.JOINED, Sure.TOLD, "worker", evidence=("e",)),),
        members=(MEMBER,), members_before=(MEMBER,), protocol="range",
        patterns=(Pattern(pattern, "p"),) if pattern else (),
    )  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]  # fields by name


CASES: dict[str, tuple[Account, str]] = {
    "poll too late": (account(What.POLLED_TOO_LATE), "max.poll.interval.ms (now 5 min)"),
    "deploy of dynamic members": (account(pattern=patterns.DEPLOY), "group.instance.id"),
    "flapping member": (account(What.EXPIRED, pattern=patterns.FLAPPING), "Stop worker until"),
    "every n minutes": (account(What.LEFT, pattern=patterns.PERIODIC), "cron job"),
    "storm": (account(pattern=patterns.STORM), "group.initial.rebalance.delay.ms"),
    "same member expired again": (account(What.EXPIRED, pattern=patterns.SAME_CAUSE), "long pauses"),
    "session expired": (account(What.EXPIRED), "crashed, was killed, or stood still"),
    "gone, and the log does not say how": (account(What.GONE), "The log of worker says"),
    "did not rejoin": (account(What.DID_NOT_REJOIN), "did not call poll in time"),
    "did not sync": (account(What.DID_NOT_SYNC), "never fetched its assignment"),
    "did not revoke": (account(What.DID_NOT_REVOKE), "on-revoked callback"),
    "group is full": (account(What.REFUSED_FULL), "group.max.size"),
    "assignment too large": (account(What.ASSIGNMENT_TOO_LARGE), "max.message.bytes"),
    "slow join phase": (account(phases=(Phase("join", 30_000, Sure.TOLD, "worker"),)), "Everybody waited for worker"),
    "subscription differs between members": (account(What.SUBSCRIPTION_CHANGED), "another subscription"),
    "static member fenced": (account(What.STATIC_REPLACED, pattern=patterns.SAME_CAUSE), "own group.instance.id"),
    "unneeded moves": (account(moves=(Move(("t", 0), "a", "b", False),)), "1 partition changed owner without need"),
}


def test_every_row_has_a_case() -> None:
    assert [row.name for row in ADVICE] == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_row_is_the_one_that_is_given(name: str) -> None:
    given, words = CASES[name]
    row = next(row for row in ADVICE if row.name == name)
    assert row.applies(given)
    assert advice_for(given) == row.sentence(given)
    assert words in advice_for(given)
    assert advice_for(given).endswith(".")


def test_what_is_in_order_needs_no_advice() -> None:
    for what in (What.JOINED, What.LEFT, What.PARTITIONS_GIVEN_UP):
        assert advice_for(account(what)) == ""
    sticky = account(moves=(Move(("t", 0), "a", "b", False),), protocol="cooperative-sticky")
    assert advice_for(sticky) == ""
