"""The words of an account: one headline, and three to six sentences that a tired person understands at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from partita.explain.account import Account, Cause, Unread
from partita.explain.facts import Sure, begins_a_group
from partita.explain.wording import agree, duration, listed, partition_name, sentence
from partita.wording import What, count

SENTENCES_MAX = 6
NOTICED_MS = 50
"""A phase shorter than this is not worth a word."""
ALIKE = 0.8
"""Pauses of at least this share of the longest one are reported together with it."""
GOES = frozenset({What.LEFT, What.EXPIRED, What.GONE, What.POLLED_TOO_LATE, What.DID_NOT_REJOIN, What.EVICTED})


def headline_of(account: Account) -> str:
    """Return the rebalance in one sentence."""
    clause = _capital(_clause(account, account.causes), account)
    if not account.members and any(cause.who for cause in account.causes):
        return sentence(f"{clause}, and the group is empty now")
    return sentence(clause)


def _capital(text: str, account: Account) -> str:
    """The text with a capital letter, unless it begins with a member's name."""
    names = {name for _, name in account.names} | {cause.who for cause in account.causes}
    begins_with_name = any(name and text.startswith(name) for name in names)
    return text if begins_with_name else text[:1].upper() + text[1:]


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
    clauses = [_VERBS[some[0].what](account, some) for some in groups.values()]
    if len(clauses) > 3:
        return f"{', '.join(clauses[:2])}, and {count(len(clauses) - 2, 'more cause')} followed"
    return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def _names(causes: Sequence[Cause]) -> list[str]:
    return list(dict.fromkeys(cause.who or "a member" for cause in causes))


def _say(causes: Sequence[Cause], text: str) -> str:
    """The members and their actions; `{one|several}` in the text agrees with their number."""
    names = _names(causes)
    return f"{listed(names)} {agree(text, len(names))}"


def _do(text: str) -> Callable[[Account, Sequence[Cause]], str]:
    return lambda account, causes: _say(causes, text)


def _fixed(text: str) -> Callable[[Account, Sequence[Cause]], str]:
    return lambda account, causes: text


def _noticed(causes: Sequence[Cause]) -> str:
    """The members that began the rebalance because of it, if they are known."""
    known = [cause for cause in causes if cause.who]
    return f", and {listed(_names(known))} noticed" if known else ""


def _details(causes: Sequence[Cause]) -> list[str]:
    return list(dict.fromkeys(cause.detail for cause in causes if cause.detail))


def _limit(account: Account, causes: Sequence[Cause], name: str) -> str:
    """The limit of these members as a duration; empty if it is unknown or they have different ones."""
    members = {member.member_id: member for member in (*account.members_before, *account.members)}
    limits = {getattr(members.get(cause.member_id), name, None) for cause in causes}
    limit = limits.pop() if len(limits) == 1 else None
    return "" if limit is None else duration(limit)


def _is_unsure(causes: Sequence[Cause]) -> bool:
    return causes[0].sure in (Sure.INFERRED, Sure.UNKNOWN)


def _expired(account: Account, causes: Sequence[Cause]) -> str:
    if causes[0].detail:
        return f"your test expired the session of {listed(_names(causes))} ({causes[0].detail})"
    limit = _limit(account, causes, "session_timeout_ms")
    session = f"{{its session timeout|their session timeouts}}{f' of {limit}' if limit else ''}"
    if _is_unsure(causes):
        crashed = "probably crashed, stood still or {was|were} cut off"
        return _say(causes, f"{crashed}: {{it was|they were}} silent for {session}")
    return _say(causes, f"{{was|were}} silent for {session} and {{was|were}} removed")


def _polled_late(account: Account, causes: Sequence[Cause]) -> str:
    limit = _limit(account, causes, "rebalance_timeout_ms")
    text = f"did not poll for {limit}" if limit else "did not poll within max.poll.interval.ms"
    return _say(causes, f"{'probably ' if _is_unsure(causes) else ''}{text} and left")


def _replaced(account: Account, causes: Sequence[Cause]) -> str:
    if account.is_replacement:
        text = "{a new process took the place|new processes took the places} of"
        return f"{agree(text, len(_names(causes)))} {listed(_names(causes))} without a rebalance"
    elif causes[0].sure is Sure.UNKNOWN:
        text = "came back under {a new member id|new member ids}"
    else:
        text = "{was|were} restarted during or before the rebalance"
    return _say(causes, text)


def _joined(account: Account, causes: Sequence[Cause]) -> str:
    if account.previous_generation is None and causes[0].sure is Sure.UNKNOWN:
        return _say(causes, "{is|are} in the group, and nothing is known of the time before")
    begins = begins_a_group(account.generation, is_incremental=account.is_incremental)
    if account.previous_generation is None and begins:
        return _say(causes, "joined: the group's first {member|members}")
    return _say(causes, "joined")


def _resubscribed(account: Account, causes: Sequence[Cause]) -> str:
    details = _details(causes)
    detail = f" ({details[0]})" if len(details) == 1 else ""
    return _say(causes, f"changed {{its subscription|their subscriptions}}{detail}")


def _more_partitions(account: Account, causes: Sequence[Cause]) -> str:
    new = listed(_details(causes))
    if noticed := _noticed(causes):
        return f"{f'partitions were added ({new})' if new else 'the partitions of a topic changed'}{noticed}"
    return f"partitions were added: {new}" if new else "the partitions of a topic changed"


def _topics(text: str) -> Callable[[Account, Sequence[Cause]], str]:
    def say(account: Account, causes: Sequence[Cause]) -> str:
        names = _details(causes)
        probably = "probably " if _is_unsure(causes) else ""
        topics, were = agree("{topic|topics}", len(names)), agree("{was|were}", len(names))
        return f"{topics} {listed(names)} {were} {probably}{text}{_noticed(causes)}"

    return say


def _other_topics(account: Account, causes: Sequence[Cause]) -> str:
    return f"the subscribed topics changed{_noticed(causes)}"


def _given_up(account: Account, causes: Sequence[Cause]) -> str:
    if causes[0].sure is Sure.TOLD:
        return _say(causes, "had given partitions up, so that their new owners could take them")
    return f"{listed(_details(causes))} had been given up, and the new owners took over"


def _assignor(account: Account, causes: Sequence[Cause]) -> str:
    details = _details(causes)
    return f"the group changed its assignor{f' {details[0]}' if len(details) == 1 else ''}"


_VERBS: dict[What, Callable[[Account, Sequence[Cause]], str]] = {
    What.JOINED: _joined,
    What.LEFT: _do("left"),
    What.EXPIRED: _expired,
    What.EVICTED: _do("{was|were} removed by an administrator"),
    What.SUBSCRIPTION_CHANGED: _resubscribed,
    What.PROTOCOLS_CHANGED: _assignor,
    What.PARTITIONS_CHANGED: _more_partitions,
    What.PARTITIONS_GIVEN_UP: _given_up,
    What.ENFORCED: _do("asked for a rebalance"),
    What.LEADER_REJOINED: _do("rejoined as group leader, which begins a rebalance"),
    What.MEMBER_REJOINED: _do("rejoined with other metadata"),
    What.STATIC_REPLACED: _replaced,
    What.DID_NOT_REJOIN: _do("did not rejoin in time and {was|were} removed"),
    What.DID_NOT_SYNC: _do("did not fetch {its assignment|their assignments} in time and {was|were} removed"),
    What.REFUSED_FULL: _do("{was|were} refused, because the group is full"),
    What.ASSIGNMENT_TOO_LARGE: _fixed("the assignment was too large to be stored"),
    What.DID_NOT_REVOKE: _do("did not give {its|their} partitions up in time and {was|were} removed"),
    What.TOPICS_CHANGED: _other_topics,
    What.TOPIC_CREATED: _topics("created"),
    What.TOPIC_DELETED: _topics("deleted"),
    What.SETTINGS_CHANGED: _fixed("the settings of the group changed"),
    What.CONVERTED: lambda account, causes: f"the group changed to {causes[0].detail}",
    What.LOADED_UNASSIGNED: _fixed("the coordinator restarted in the middle of a rebalance"),
    What.LOADED_OVER_SIZE: _fixed("the coordinator restarted and found more members than group.max.size"),
    What.POLLED_TOO_LATE: _polled_late,
    What.GONE: _do("{is|are} gone: {it left or its session|they left or their sessions} expired"),
    What.COORDINATOR_MOVED: _fixed("the coordinator moved or restarted"),
    What.UNEXPLAINED: _fixed("a member rejoined although nothing visible changed"),
}


# -- the sentences -----------------------------------------------------------------------------------------------------


def _begin(account: Account) -> str:
    """When, how long, and where the member at fault runs."""
    if account.is_replacement:
        text = f"That was at {clock(account.ended_ms)}"
    elif account.began_ms is None:
        text = f"The rebalance was over at {clock(account.ended_ms)}"
    else:
        took = duration(account.ended_ms - account.began_ms)
        text = f"The rebalance began at {clock(account.began_ms)} and took {took}"
    cause = account.cause
    if not cause.host or len({other.member_id for other in account.causes}) > 1:
        return text
    verb = "ran" if cause.what in GOES else "runs"
    return f"{text}; {cause.who} {verb} on {cause.host.removeprefix('/')}"


def _evidence(account: Account) -> str:
    """Return the kind of inference, unless the cause was reported."""
    cause = account.cause
    if cause.sure is Sure.TOLD or not cause.evidence:
        return ""
    ways = {Sure.SEEN: "Seen in the group's log", Sure.INFERRED: "Inferred", Sure.UNKNOWN: "Not known for sure"}
    # Several members with one fate: the evidence is that of one of them, so it is named.
    others = any(c.what is cause.what and c.who != cause.who for c in account.causes)
    of_whom = f" of {cause.who}" if others and cause.who else ""
    return f"{ways[cause.sure]}{of_whom}: {'; '.join(cause.evidence[:2])}"


def _waiting(account: Account) -> str:
    """Return the phases in which members waited; phases too short to notice are left out."""
    phases = {phase.name: phase for phase in account.phases if phase.ms >= NOTICED_MS}
    parts = []
    if "join" in phases:
        join = phases["join"]
        until = ""
        if join.waited_for:
            until = (
                f", {join.evidence}" if "did not rejoin" in join.evidence else f", until {join.waited_for} had rejoined"
            )
        parts.append(f"the join phase took {duration(join.ms)}{until}")
    if "sync" in phases:
        leader = f", until {phases['sync'].waited_for} had assigned" if phases["sync"].waited_for else ""
        parts.append(f"the sync phase took {duration(phases['sync'].ms)}{leader}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def _result(account: Account) -> str:
    if account.is_replacement:
        return "No partition changed its owner, and a process that still uses the old member id is fenced"
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
    """The partitions that stood still for longest by name, the others by number."""
    if account.previous_generation is None or account.is_replacement:
        return ""
    spans = sorted((span for span in account.unread if span.ms), key=lambda span: -(span.ms or 0))
    waiting = [span for span in account.unread if span.to_ms is None]
    if waiting:
        return f"Nobody reads {_partitions(waiting)} since {clock(min(span.from_ms for span in waiting))}"
    if not spans:
        return ""
    most = spans[0].ms or 0
    longest = [span for span in spans if (span.ms or 0) >= ALIKE * most]
    text = f"Nobody read {_partitions(longest)} for {duration(most)}"
    if others := spans[len(longest) :]:
        text += f"; {count(len(others), 'other partition')} paused for {_up_to(others)}{duration(others[0].ms or 0)}"
    if gained := sum(span.lag_gained or 0 for span in spans):
        text += f"; {count(gained, 'record')} came meanwhile"
    if twice := sum(span.read_twice or 0 for span in spans):
        text += f"; {count(twice, 'record')} were read twice"
    return text


def _up_to(spans: Sequence[Unread]) -> str:
    return "up to " if len(spans) > 1 else ""


def _partitions(spans: Sequence[Unread]) -> str:
    return listed([partition_name(span.partition) for span in sorted(spans, key=lambda span: span.partition)])


def _pattern(account: Account) -> str:
    if not account.patterns:
        uneven = imbalance_of(account)
        return f"The members hold unequal shares: one has {uneven} partitions more than another" if uneven > 1 else ""
    return _capital(account.patterns[0].text, account)


def imbalance_of(account: Account) -> int:
    """Most partitions of a member minus fewest, in the new generation."""
    numbers = [len(member.partitions) for member in account.members]
    return max(numbers, default=0) - min(numbers, default=0)
