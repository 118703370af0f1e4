"""The words of an account: one headline, and three to six sentences that a tired person understands at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from partita.explain.account import Account, Cause
from partita.explain.facts import Member, Sure, What
from partita.explain.wording import count, duration, listed, partition_name, sentence

SENTENCES_MAX = 6


def headline_of(account: Account) -> str:
    """What happened, in one sentence."""
    if not account.members and any(cause.who for cause in account.causes):
        return sentence(f"{_clause(account, account.causes)}, and the group is empty now")
    return sentence(_clause(account, account.causes))


def story_of(account: Account) -> tuple[str, ...]:
    """Cause and time, evidence, waiting, cost, moves, pattern."""
    parts = [
        _begin(account),
        _evidence(account),
        _waiting(account),
        _result(account),
        _cost(account),
        _pattern(account),
    ]
    return tuple(sentence(part) for part in parts if part)[:SENTENCES_MAX]


def clock(at_ms: int) -> str:
    """The time of day in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S UTC")


# -- the cause ---------------------------------------------------------------------------------------------------------


def _clause(account: Account, causes: Sequence[Cause]) -> str:
    """The causes as one clause; members with the same fate share a verb."""
    groups: dict[tuple[What, Sure], list[Cause]] = {}
    for cause in causes:
        groups.setdefault((cause.what, cause.sure), []).append(cause)
    clauses = [_say(account, some) for some in groups.values()]
    if len(clauses) > 3:
        return f"{', '.join(clauses[:2])}, and {count(len(clauses) - 2, 'more cause')} followed"
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def _say(account: Account, causes: Sequence[Cause]) -> str:
    return _VERBS[causes[0].what](account, causes)


def _who(causes: Sequence[Cause]) -> str:
    return listed(list(dict.fromkeys(cause.who or "a member" for cause in causes)))


def _do(text: str, unsure: str | None = None) -> Callable[[Account, Sequence[Cause]], str]:
    """A sentence about the members; `unsure` is how an inferred cause is put."""

    def say(account: Account, causes: Sequence[Cause]) -> str:
        chosen = unsure if unsure is not None and causes[0].sure in (Sure.INFERRED, Sure.UNKNOWN) else text
        return f"{_who(causes)} {chosen}"

    return say


def _fixed(text: str) -> Callable[[Account, Sequence[Cause]], str]:
    return lambda account, causes: text


def _member_of(account: Account, cause: Cause) -> Member | None:
    members = (*account.members_before, *account.members)
    return next((member for member in members if member.member_id == cause.member_id), None)


def _limit(account: Account, cause: Cause, name: str) -> str:
    member = _member_of(account, cause)
    limit = None if member is None else getattr(member, name)
    return "" if limit is None else duration(limit)


def _expired(account: Account, causes: Sequence[Cause]) -> str:
    limit = _limit(account, causes[0], "session_timeout_ms")
    for_long = f" for its session timeout of {limit}" if limit and len(causes) == 1 else " for the session timeout"
    if causes[0].sure in (Sure.INFERRED, Sure.UNKNOWN):
        return f"{_who(causes)} probably crashed, stood still or was cut off: it was silent{for_long}"
    return f"{_who(causes)} was silent{for_long} and was removed"


def _polled_late(account: Account, causes: Sequence[Cause]) -> str:
    limit = _limit(account, causes[0], "rebalance_timeout_ms")
    text = f"did not poll for {limit}" if limit else "did not poll within max.poll.interval.ms"
    if causes[0].sure in (Sure.INFERRED, Sure.UNKNOWN):
        return f"{_who(causes)} probably {text} and left"
    return f"{_who(causes)} {text} and left"


def _replaced(account: Account, causes: Sequence[Cause]) -> str:
    if account.generation == account.previous_generation:
        return f"{_who(causes)} was restarted and took its old place without a rebalance"
    if causes[0].sure is Sure.UNKNOWN:
        return f"{_who(causes)} came back under a new member id"
    return f"{_who(causes)} was restarted during or before the rebalance"


def _joined(account: Account, causes: Sequence[Cause]) -> str:
    if account.previous_generation is None and causes[0].sure is Sure.UNKNOWN:
        verb = "is" if len(causes) == 1 else "are"
        return f"{_who(causes)} {verb} in the group, and nothing is known of the time before"
    return f"{_who(causes)} joined"


def _resubscribed(account: Account, causes: Sequence[Cause]) -> str:
    detail = f" ({causes[0].detail})" if causes[0].detail and len(causes) == 1 else ""
    return f"{_who(causes)} changed its subscription{detail}"


def _more_partitions(account: Account, causes: Sequence[Cause]) -> str:
    if causes[0].sure is Sure.TOLD:
        return f"{_who(causes)} saw that the partitions of a topic had changed"
    return f"a topic got more partitions: {causes[0].detail}"


def _given_up(account: Account, causes: Sequence[Cause]) -> str:
    if causes[0].sure is Sure.TOLD:
        return f"{_who(causes)} had given partitions up, so that their new owners could take them"
    return f"{causes[0].detail} had been given up, and the new owners took over"


_VERBS: dict[What, Callable[[Account, Sequence[Cause]], str]] = {
    What.JOINED: _joined,
    What.LEFT: _do("left", "left"),
    What.EXPIRED: _expired,
    What.EVICTED: _do("was removed by an administrator"),
    What.SUBSCRIPTION_CHANGED: _resubscribed,
    What.PROTOCOLS_CHANGED: _fixed("the group changed its assignor"),
    What.PARTITIONS_CHANGED: _more_partitions,
    What.PARTITIONS_GIVEN_UP: _given_up,
    What.ENFORCED: _do("asked for a rebalance"),
    What.LEADER_REJOINED: _do("rejoined as group leader, which begins a rebalance"),
    What.MEMBER_REJOINED: _do("rejoined with other metadata"),
    What.STATIC_REPLACED: _replaced,
    What.DID_NOT_REJOIN: _do("did not rejoin in time and was removed"),
    What.DID_NOT_SYNC: _do("did not fetch its assignment in time and was removed"),
    What.REFUSED_FULL: _do("was refused, because the group is full"),
    What.ASSIGNMENT_TOO_LARGE: _fixed("the assignment was too large to be stored"),
    What.DID_NOT_REVOKE: _do("did not give its partitions up in time and was removed"),
    What.TOPICS_CHANGED: _fixed("the subscribed topics changed"),
    What.LOADED_UNASSIGNED: _fixed("the coordinator restarted in the middle of a rebalance"),
    What.LOADED_OVER_SIZE: _fixed("the coordinator restarted and found more members than group.max.size"),
    What.POLLED_TOO_LATE: _polled_late,
    What.GONE: _do("is gone: it left or its session expired", "is gone: it left or its session expired"),
    What.COORDINATOR_MOVED: _fixed("the coordinator moved or restarted"),
    What.UNEXPLAINED: _fixed("a member rejoined although nothing visible changed"),
}


# -- the sentences -----------------------------------------------------------------------------------------------------


def _begin(account: Account) -> str:
    at = clock(account.ended_ms if account.began_ms is None else account.began_ms)
    hosts = {cause.host.removeprefix("/") for cause in account.causes if cause.host}
    where = f" (host {hosts.pop()})" if len(hosts) == 1 and len(account.causes) == 1 else ""
    when = "By" if account.began_ms is None else "At"
    return f"{when} {at} {_clause(account, account.causes)}{where}"


def _evidence(account: Account) -> str:
    """How it is known, where it was not told."""
    cause = account.cause
    if cause.sure is Sure.TOLD or not cause.evidence:
        return ""
    ways = {Sure.SEEN: "Seen in the group's log", Sure.INFERRED: "Inferred", Sure.UNKNOWN: "Not known for sure"}
    return f"{ways[cause.sure]}: {'; '.join(cause.evidence[:2])}"


def _waiting(account: Account) -> str:
    known = [phase for phase in account.phases if phase.name in ("join", "sync")]
    if not known:
        return ""
    parts = [f"the {phase.name} phase took {duration(phase.ms)}" for phase in known]
    waited = next((phase for phase in known if phase.waited_for), None)
    text = " and ".join(parts)
    if waited is not None:
        text += f", and {'everybody' if len(account.members) > 1 else 'it'} waited for {waited.waited_for}"
    return text[0].upper() + text[1:]


def _result(account: Account) -> str:
    if account.generation == account.previous_generation:
        return "No partition changed its owner"
    number = f"{'Epoch' if account.is_incremental else 'Generation'} {account.generation}"
    if not account.members:
        return f"{number} has no members, so nobody reads"
    total = account.kept + sum(1 for move in account.moves if move.after)
    text = f"{number} has {count(len(account.members), 'member')} for {count(total, 'partition')}"
    if account.previous_generation is None:
        return text
    moved = sum(1 for move in account.moves if move.before and move.after)
    text += f": {moved} moved, {account.kept} stayed"
    if lost := [move for move in account.moves if not move.after]:
        text += f", {len(lost)} without an owner"
    if unneeded := sum(not move.is_needed for move in account.moves):
        text += f"; balance did not ask for {unneeded} of the moves"
    return text


def _cost(account: Account) -> str:
    if account.previous_generation is None or account.generation == account.previous_generation:
        return ""
    spans = [span for span in account.unread if span.ms]
    waiting = [span for span in account.unread if span.to_ms is None]
    if not spans:
        if waiting:
            return f"Nobody reads {listed([partition_name(s.partition) for s in waiting])} since then"
        return ""
    names = listed([partition_name(span.partition) for span in sorted(spans, key=lambda s: -(s.ms or 0))])
    most = duration(max(span.ms or 0 for span in spans))
    text = f"Nobody read {names} for {'up to ' if len(spans) > 1 else ''}{most}"
    if gained := sum(span.lag_gained or 0 for span in spans):
        text += f", and {count(gained, 'record')} came meanwhile"
    if twice := sum(span.read_twice or 0 for span in spans):
        text += f"; {count(twice, 'record')} were read twice"
    return text


def _pattern(account: Account) -> str:
    if not account.patterns:
        uneven = imbalance_of(account)
        return f"The members hold unequal shares: one has {uneven} partitions more than another" if uneven > 1 else ""
    text = account.patterns[0].text
    return text if text.split()[0] in dict(account.names).values() else text[0].upper() + text[1:]


def imbalance_of(account: Account) -> int:
    """Most partitions of a member minus fewest, in the new generation."""
    numbers = [len(member.partitions) for member in account.members]
    return max(numbers, default=0) - min(numbers, default=0)
