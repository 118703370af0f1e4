"""Causes of a rebalance: reported by the coordinator, and seen or inferred from two generations.

A coordinator's report says who began a rebalance. Where that is only that a member rejoined or left, the generations
and commits say why, so both are put together: neither hides the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from partita.explain.absences import cannot_have_expired, cause_of, gone, polled_too_late
from partita.explain.account import Cause
from partita.explain.facts import Assigned, Member, Sure, ToldCause, begins_a_group
from partita.explain.generations import Step
from partita.explain.topics import change_of, more_partitions, other_topics, partitions_of, subscription_causes
from partita.explain.wording import clean, listed, partition_name
from partita.wording import What

LATE_POLL_REASONS = ("consumer poll timeout has expired", "max.poll.interval.ms", "no poll for")
"""How the reasons begin or what they hold with which Java's consumer and ours leave when their application is slow."""
BARE = frozenset({What.LEADER_REJOINED, What.MEMBER_REJOINED, What.SUBSCRIPTION_CHANGED})
"""Reports of a member that rejoined; what made it do so may be seen."""
OF_TOPICS = frozenset({What.TOPIC_DELETED, What.TOPIC_CREATED, What.TOPICS_CHANGED, What.PARTITIONS_CHANGED})
BEHIND = frozenset({What.PROTOCOLS_CHANGED, What.CONVERTED, What.PARTITIONS_CHANGED})
"""Changes that come with a member's arrival or end: the member began the rebalance."""
ABSENT = frozenset({What.GONE, What.EXPIRED, What.LEFT})


def causes_of(step: Step) -> tuple[Cause, ...]:
    """The causes of the step's rebalance, what began it first; never empty."""
    told = [_reported(cause, step) for cause in step.after.causes]
    seen = list(_seen(step))
    found = _after_a_move(_combined(told, seen), seen) if told else _after_a_move(seen, seen)
    return tuple(found) or (_unexplained(step),)


def _combined(told: Sequence[Cause], seen: Sequence[Cause]) -> list[Cause]:
    """The reports, with what the generations show in place of a bare rejoin, or behind them."""
    told = _without_regexes(told, seen)
    known = {cause.what for cause in told}
    reasons = [c for c in seen if c.sure is not Sure.UNKNOWN and c.what not in known and _is_reason(c)]
    behind = [c for c in seen if c.what in BEHIND and c.what not in known]
    bare = [c for c in told if c.what in BARE and _is_explained(c, reasons)]
    if not bare:
        return [*told, *behind]
    behind = [cause for cause in behind if cause not in reasons]
    first, *others = reasons
    noticed = replace(
        first, member_id=bare[0].member_id, instance_id=bare[0].instance_id, client_id=bare[0].client_id,
        host=bare[0].host, evidence=(*first.evidence, *bare[0].evidence),
    )  # fmt: skip
    rest = [c for c in told if c not in bare]
    return [noticed, *others, *rest, *behind] if told[0] in bare else [*rest, noticed, *others, *behind]


def _without_regexes(told: Sequence[Cause], seen: Sequence[Cause]) -> list[Cause]:
    """The reports but for patterns that were matched: a topic came or went, or a member that has a pattern did."""
    rest = [cause for cause in told if cause.what is not What.SUBSCRIPTION_CHANGED or cause.member_id]
    topics = [cause for cause in seen if cause.what in OF_TOPICS and cause.sure is not Sure.UNKNOWN]
    return [*topics, *rest] if len(rest) < len(told) and (topics or rest) else list(told)


def _is_reason(cause: Cause) -> bool:
    return cause.what in OF_TOPICS or cause.what is What.PARTITIONS_GIVEN_UP


def _is_explained(bare: Cause, reasons: Sequence[Cause]) -> bool:
    """Whether the reasons cover the report: a change of subscription is covered if it is by those topics alone."""
    if bare.what is not What.SUBSCRIPTION_CHANGED:
        return bool(reasons)
    signs = {What.TOPIC_DELETED: "dropped", What.TOPIC_CREATED: "added"}
    return bare.detail in {f"{signs[c.what]} {c.detail}" for c in reasons if c.what in signs}


def _after_a_move(found: list[Cause], seen: Sequence[Cause]) -> list[Cause]:
    """Members that came back under new ids after the coordinator moved have not crashed: the move began it."""
    moved = next((c for c in seen if c.what is What.COORDINATOR_MOVED), None)
    came = {_program(c) for c in found if c.what is What.JOINED}
    back = {_program(c) for c in found if c.what in ABSENT and _program(c) in came}
    if moved is None or not back:
        return found
    rest = [c for c in found if c is not moved and not (c.what in ABSENT and _program(c) in back)]
    return [moved, *rest]


def _program(cause: Cause) -> str:
    return cause.instance_id or cause.client_id or cause.member_id


# -- told ------------------------------------------------------------------------------------------------------------


def _reported(cause: ToldCause, step: Step) -> Cause:
    member = _member(step, cause.member_id)
    what = cause.what
    if what is What.LEFT and any(reason in cause.detail for reason in LATE_POLL_REASONS):
        what = What.POLLED_TOO_LATE
    reason = f" with the reason '{cause.detail}'" if cause.detail else ""
    found = Cause(
        what=what,
        sure=Sure.TOLD,
        member_id=cause.member_id,
        instance_id=cause.instance_id,
        client_id=cause.client_id,
        host="" if member is None else member.host,
        detail=_detail(cause, step),
        evidence=(clean(f"the coordinator noted '{cause.what.value}'{reason}"),),
    )
    if late := _late_poll(step, what, member):
        return replace(found, what=What.POLLED_TOO_LATE, sure=Sure.INFERRED, evidence=(*found.evidence, late))
    return found


def _late_poll(step: Step, what: What, member: Member | None) -> str:
    """The evidence that a member which left, or of a KIP-848 group fell silent, had polled too late."""
    if member is None:
        return ""
    if what is What.EXPIRED and step.after.is_incremental and member.session_timeout_ms is not None:
        return polled_too_late(step, member, member.session_timeout_ms)
    return polled_too_late(step, member) if what is What.LEFT else ""


def _detail(cause: ToldCause, step: Step) -> str:
    """Return the change between the generations, where visible, else the reason that the client gave."""
    if step.before is not None and cause.what is What.SUBSCRIPTION_CHANGED:
        return _resubscribed(step, step.before, cause.member_id) or cause.detail
    if step.before is not None and cause.what is What.PARTITIONS_CHANGED:
        return next((c.detail for c in more_partitions(step, is_alone=True)), "")
    return cause.detail


def _resubscribed(step: Step, before: Assigned, member_id: str) -> str:
    was = next((m.topics for m in before.members if m.member_id == member_id), None)
    now = next((m.topics for m in step.after.members if m.member_id == member_id), None)
    if was is None or now is None:
        return ""
    return change_of(sorted(set(now) - set(was)), sorted(set(was) - set(now)))


def _member(step: Step, member_id: str) -> Member | None:
    before = () if step.before is None else step.before.members
    return next((m for m in (*before, *step.after.members) if m.member_id == member_id), None)


# -- seen and inferred ------------------------------------------------------------------------------------------------


def _seen(step: Step) -> Iterator[Cause]:
    """The differences between two generations, those that begin a rebalance before those that come with it."""
    before, after = step.before, step.after
    if before is None:
        yield from _first(after)
        return
    if not step.is_rebalance:
        yield from _replacements(step, before)
        return
    first = [
        *gone(step, before),
        *_replacements(step, before),
        *_joined(before, after),
        *subscription_causes(step, before),
    ]
    yield from first
    yield from _converted(before, after)
    yield from _other_assignor(before, after)
    moved = list(_moved_coordinator(step, before))
    if step.after.topics_hash is not None and before.topics_hash is not None:
        yield from other_topics(step, before, is_alone=not first)
    else:
        yield from more_partitions(step, is_alone=not first and not moved)
    yield from _given_up(step, before)
    yield from moved


def _first(after: Assigned) -> Iterator[Cause]:
    for member in after.members:
        if begins_a_group(after.generation, is_incremental=after.is_incremental):
            number = f"{'epoch' if after.is_incremental else 'generation'} {after.generation}"
            yield cause_of(member, What.JOINED, Sure.SEEN, f"{number} is the first of a group with members")
        else:
            evidence = f"{member.member_id} is in the first generation that is known"
            yield cause_of(member, What.JOINED, Sure.UNKNOWN, evidence)


def _joined(before: Assigned, after: Assigned) -> Iterator[Cause]:
    old = {member.member_id for member in before.members}
    statics = {member.instance_id for member in before.members if member.instance_id is not None}
    for member in after.members:
        if member.member_id not in old and member.instance_id not in statics:
            evidence = f"generation {after.generation} has the member id {member.member_id}, the one before it has not"
            yield cause_of(member, What.JOINED, Sure.SEEN, evidence)


def _replacements(step: Step, before: Assigned) -> Iterator[Cause]:
    old = {member.instance_id: member for member in before.members if member.instance_id is not None}
    for member in step.after.members:
        was = None if member.instance_id is None else old.get(member.instance_id)
        if was is not None and was.member_id != member.member_id:
            evidence = f"instance id {member.instance_id} had member id {was.member_id} and has {member.member_id} now"
            told = any(r.new_member_id == member.member_id and r.sure is Sure.TOLD for r in step.replaced)
            if not step.is_rebalance or told:
                yield cause_of(member, What.STATIC_REPLACED, Sure.TOLD if told else Sure.SEEN, evidence)
            elif alive := cannot_have_expired(step, before, was):
                yield cause_of(member, What.STATIC_REPLACED, Sure.INFERRED, evidence, alive)
            else:
                yield cause_of(
                    member, What.STATIC_REPLACED, Sure.UNKNOWN, evidence,
                    "its session may have expired before, and the process joined as a new member",
                )  # fmt: skip


def _converted(before: Assigned, after: Assigned) -> Iterator[Cause]:
    """A group of one protocol whose next generation is one of the other protocol."""
    if before.is_incremental != after.is_incremental and before.members:
        now = "the consumer protocol (KIP-848)" if after.is_incremental else "the classic protocol"
        evidence = f"the records of {'epoch' if after.is_incremental else 'generation'} {after.generation} are of {now}"
        yield Cause(What.CONVERTED, Sure.SEEN, detail=now, evidence=(evidence,))


def _other_assignor(before: Assigned, after: Assigned) -> Iterator[Cause]:
    """Another assignor of the same protocol: each protocol has assignors of its own."""
    known = before.protocol is not None and after.protocol is not None
    if known and before.protocol != after.protocol and before.is_incremental == after.is_incremental:
        change = f"from {before.protocol} to {after.protocol}"
        yield Cause(What.PROTOCOLS_CHANGED, Sure.SEEN, detail=change, evidence=(f"its assignor changed {change}",))


def _given_up(step: Step, before: Assigned) -> Iterator[Cause]:
    """A cooperative assignor takes a partition from its owner in one generation and gives it away in the next."""
    after = step.after
    same = {m.member_id for m in before.members} == {m.member_id for m in after.members}
    waiting = sorted((partitions_of(after) - partitions_of(before)) & step.known_earlier)
    if same and waiting and "cooperative" in (after.protocol or ""):
        names = listed([partition_name(partition) for partition in waiting])
        verb = "has one" if len(waiting) == 1 else "have one"
        yield Cause(
            What.PARTITIONS_GIVEN_UP, Sure.INFERRED, detail=names,
            evidence=(f"{names} had no owner in generation {before.generation} and {verb} now",),
        )  # fmt: skip


def _moved_coordinator(step: Step, before: Assigned) -> Iterator[Cause]:
    old, new = before.leader_epoch, step.after.leader_epoch
    if old is not None and new is not None and new > old:
        evidence = f"the group's partition of the log had leader epoch {old} and has {new}"
        yield Cause(What.COORDINATOR_MOVED, Sure.SEEN, evidence=(evidence,))
    elif step.loads:
        load = step.loads[-1]
        yield Cause(What.COORDINATOR_MOVED, load.sure, evidence=("the coordinator noted that it loaded its groups",))


def _unexplained(step: Step) -> Cause:
    evidence = "members, subscriptions and partitions are the same as before"
    if step.before is not None and step.after.generation > step.before.generation + 1:
        evidence = f"no record of generation {step.before.generation + 1} is left"
    return Cause(What.UNEXPLAINED, Sure.UNKNOWN, evidence=(evidence,))
