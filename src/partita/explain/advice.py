"""Advice on a rebalance: one table, one sentence per row. The first row that fits is given.

A row has advice only if the reader can act on it. A member that joins or leaves normally needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from partita.explain import patterns
from partita.explain.account import Account, Cause
from partita.explain.facts import Member
from partita.explain.wording import agree, duration, listed
from partita.wording import What, count

JOIN_WAIT_MS = 10_000
"""A join phase that waits longer than this for a member is worth a word."""
UNNEEDED_MOVES = "unneeded moves"
"""The name of the advice about the assignor: it holds for the group, whatever began a rebalance."""
ASSIGNORS_THAT_STICK = ("sticky", "cooperative-sticky", "uniform")


class Row(NamedTuple):
    """One piece of advice: a name for tests and documents, when it applies, and the sentence."""

    name: str
    applies: Callable[[Account], bool]
    sentence: Callable[[Account], str]


def advice_for(account: Account, *, is_last: bool = True) -> str:
    """The sentence of the first row that applies; empty if nothing needs to be done.

    Advice about the assignor is given once for each group, with its last rebalance.
    """
    row = next((row for row in ADVICE if row.applies(account)), None)
    return "" if row is None or (row.name == UNNEEDED_MOVES and not is_last) else row.sentence(account)


# -- when ------------------------------------------------------------------------------------------------------------


def _pattern(name: str) -> Callable[[Account], bool]:
    """Is this the most telling pattern?"""
    return lambda account: bool(account.patterns) and account.patterns[0].name == name


def _again(account: Account) -> bool:
    return any(pattern.name == patterns.SAME_CAUSE for pattern in account.patterns)


def _caused_by(*whats: What) -> Callable[[Account], bool]:
    return lambda account: any(cause.what in whats for cause in account.causes)


def _has_expired(account: Account) -> bool:
    """Whether a session expired that no test asked to expire."""
    return any(cause.what is What.EXPIRED and not cause.detail for cause in account.causes)


def _is_slow_join(account: Account) -> bool:
    return any(p.name == "join" and p.ms >= JOIN_WAIT_MS and p.waited_for for p in account.phases)


def _is_deploy_of_dynamic_members(account: Account) -> bool:
    dynamic = any(member.instance_id is None for member in account.members)
    return _pattern(patterns.DEPLOY)(account) and dynamic


def _moves_too_much(account: Account) -> bool:
    moves = [move for move in account.moves if not move.is_needed]
    return bool(moves) and account.protocol not in ASSIGNORS_THAT_STICK and not account.is_incremental


# -- what ------------------------------------------------------------------------------------------------------------


def _cause(account: Account, *whats: What) -> Cause:
    return next(cause for cause in account.causes if cause.what in whats)


def _about(account: Account, text: str, *whats: What) -> str:
    """The text with `WHO` as the members with such a cause; `{one|several}` in it agrees with their number."""
    names = list(dict.fromkeys(cause.who or "the member" for cause in account.causes if cause.what in whats))
    return agree(text, len(names)).replace("WHO", listed(names))


def _member(account: Account, cause: Cause) -> Member | None:
    return next((m for m in (*account.members_before, *account.members) if m.member_id == cause.member_id), None)


def _poll_limit(account: Account) -> str:
    member = _member(account, _cause(account, What.POLLED_TOO_LATE))
    limit = None if member is None else member.rebalance_timeout_ms
    return "" if limit is None else f" (now {duration(limit)})"


def _session_limit(account: Account) -> str:
    member = _member(account, _cause(account, What.EXPIRED))
    limit = None if member is None else member.session_timeout_ms
    return "" if limit is None else f" (now {duration(limit)})"


def _storm(account: Account) -> str:
    if account.is_incremental:
        return (
            "Give each member a group.instance.id, so that its restart within the session timeout needs no rebalance."
        )
    return (
        "Start members together and raise group.initial.rebalance.delay.ms on the broker, or use static members, so"
        " that many changes become one rebalance."
    )


def _slowest(account: Account) -> str:
    return next(p.waited_for for p in account.phases if p.name == "join" and p.waited_for)


def _unneeded(account: Account) -> str:
    return count(sum(not move.is_needed for move in account.moves), "partition")


ADVICE: tuple[Row, ...] = (
    Row(
        "poll too late",
        _caused_by(What.POLLED_TOO_LATE),
        lambda a: _about(
            a,
            "Find the {batch|batches} that kept WHO busy; then lower max.poll.records, raise"
            f" max.poll.interval.ms{_poll_limit(a)}, or pause the partitions and keep polling while a batch runs.",
            What.POLLED_TOO_LATE,
        ),
    ),
    Row(
        "deploy of dynamic members",
        _is_deploy_of_dynamic_members,
        lambda a: (
            "Give each member a group.instance.id and let it stop without leaving: a restart within the session timeout"
            " then needs no rebalance."
        ),
    ),
    Row(
        "flapping member",
        _pattern(patterns.FLAPPING),
        lambda a: (
            f"Stop {_flapper(a)} until its log shows why it restarts or stalls: each round costs the whole group a"
            " rebalance."
        ),
    ),
    Row(
        "every n minutes",
        _pattern(patterns.PERIODIC),
        lambda a: (
            "Look for what runs at that interval: a cron job, an autoscaler, a garbage collection, a firewall that"
            " drops idle connections."
        ),
    ),
    Row(
        "storm",
        _pattern(patterns.STORM),
        _storm,
    ),
    Row(
        "same member expired again",
        lambda a: _has_expired(a) and _again(a),
        lambda a: _about(
            a,
            "Look at the {host|hosts} of WHO for long pauses (memory, swap, garbage collection) and at {its|their}"
            f" network; raise session.timeout.ms{_session_limit(a)} only if the pauses cannot be removed.",
            What.EXPIRED,
        ),
    ),
    Row(
        "session expired",
        _has_expired,
        lambda a: _about(
            a,
            "See whether the {process|processes} of WHO crashed, {was|were} killed, or stood still for longer than"
            f" session.timeout.ms{_session_limit(a)}.",
            What.EXPIRED,
        ),
    ),
    Row(
        "gone, and the log does not say how",
        _caused_by(What.GONE),
        lambda a: _about(
            a,
            "The {log|logs} of WHO {says|say} whether {it was|they were} stopped; if not, check {its host|their hosts}"
            " and network.",
            What.GONE,
        ),
    ),
    Row(
        "did not rejoin",
        _caused_by(What.DID_NOT_REJOIN),
        lambda a: _about(
            a,
            "WHO {sends|send} heartbeats but did not call poll in time: find what blocks {its|their} processing"
            " {thread|threads}, or lower max.poll.records.",
            What.DID_NOT_REJOIN,
        ),
    ),
    Row(
        "did not sync",
        _caused_by(What.DID_NOT_SYNC),
        lambda a: _about(
            a,
            "WHO joined but never fetched {its assignment|their assignments}: check whether {it was|they were} killed"
            " or paused during the rebalance.",
            What.DID_NOT_SYNC,
        ),
    ),
    Row(
        "did not revoke",
        _caused_by(What.DID_NOT_REVOKE),
        lambda a: _about(
            a,
            "WHO did not give {its|their} partitions up in time: shorten {its|their} work per poll and {its|their}"
            " on-revoked {callback|callbacks}.",
            What.DID_NOT_REVOKE,
        ),
    ),
    Row(
        "group is full",
        _caused_by(What.REFUSED_FULL, What.LOADED_OVER_SIZE),
        lambda a: "Raise group.max.size on the broker, or run fewer members.",
    ),
    Row(
        "assignment too large",
        _caused_by(What.ASSIGNMENT_TOO_LARGE),
        lambda a: (
            "The assignment does not fit into a record of __consumer_offsets: raise the topic's max.message.bytes, or"
            " split the group."
        ),
    ),
    Row(
        "slow join phase",
        _is_slow_join,
        lambda a: (
            f"Everybody waited for {_slowest(a)} to call poll: make its batches smaller, or use a cooperative assignor"
            " so that the others read on meanwhile."
        ),
    ),
    Row(
        "subscription differs between members",
        _caused_by(What.SUBSCRIPTION_CHANGED),
        lambda a: (
            "If this was a deploy of another subscription, the remaining old members cause one more rebalance each;"
            " otherwise compare the members' configurations."
        ),
    ),
    Row(
        "static member fenced",
        lambda a: _caused_by(What.STATIC_REPLACED)(a) and _again(a),
        lambda a: _about(
            a,
            "Two processes may use the instance {id|ids} WHO: each start fences the other, so give every process its"
            " own group.instance.id.",
            What.STATIC_REPLACED,
        ),
    ),
    Row(
        UNNEEDED_MOVES,
        _moves_too_much,
        lambda a: (
            f"{_unneeded(a)} changed owner without need: cooperative-sticky or KIP-848 (group.protocol=consumer) would"
            " leave them where they were."
        ),
    ),
)
"""Rows from the most to the least telling."""


def _flapper(account: Account) -> str:
    causes = [c for c in account.causes if c.what in patterns.ENDS | patterns.ARRIVALS]
    return listed(list(dict.fromkeys(cause.who for cause in causes if cause.who)))
