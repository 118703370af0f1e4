"""What began a rebalance: told by the coordinator, or read from the difference between two generations.

The rules of inference, in one place. A member that committed within its session timeout before the join phase ended
cannot have expired, for a commit starts the session again (Kafka: GroupMetadataManager.validateOffsetCommit).
"""

from __future__ import annotations

from collections.abc import Iterator

from partita.explain.account import Cause
from partita.explain.facts import Assigned, Member, Partition, Sure, ToldCause, What
from partita.explain.generations import NO_COMMITS, Step
from partita.explain.wording import duration, listed, partition_name

LATE_POLL_REASONS = ("consumer poll timeout has expired", "max.poll.interval.ms", "no poll for")
"""How the reasons begin or what they hold with which Java's consumer and ours leave when their application is slow."""
HEARTBEATS_PER_SESSION = 3
"""Clients send at least three heartbeats per session timeout, as Kafka asks them to."""


def causes_of(step: Step) -> tuple[Cause, ...]:
    """The causes of the step's rebalance, what began it first; never empty."""
    told = tuple(_told(cause, step) for cause in step.after.causes)
    found = told or tuple(_seen(step))
    return found or (_unexplained(step),)


# -- told ------------------------------------------------------------------------------------------------------------


def _told(cause: ToldCause, step: Step) -> Cause:
    member = _member(step, cause.member_id)
    what = cause.what
    if what is What.LEFT and any(reason in cause.detail for reason in LATE_POLL_REASONS):
        what = What.POLLED_TOO_LATE
    reason = f" with the reason '{cause.detail}'" if cause.detail else ""
    return Cause(
        what=what,
        sure=Sure.TOLD,
        member_id=cause.member_id,
        instance_id=cause.instance_id,
        client_id=cause.client_id,
        host="" if member is None else member.host,
        detail=cause.detail,
        evidence=(f"the coordinator noted '{cause.what.value}'{reason}",),
    )


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
    yield from _gone(step, before)
    yield from _replacements(step, before)
    yield from _joined(before, after)
    yield from _resubscribed(before, after)
    if before.protocol is not None and after.protocol is not None and before.protocol != after.protocol:
        evidence = f"the assignor was {before.protocol} and is {after.protocol}"
        yield Cause(What.PROTOCOLS_CHANGED, Sure.SEEN, evidence=(evidence,))
    yield from _more_partitions(step, before)
    yield from _given_up(before, after)
    yield from _moved_coordinator(step, before)


def _first(after: Assigned) -> Iterator[Cause]:
    for member in after.members:
        evidence = f"{member.member_id} is in the first generation that is known"
        yield _of(member, What.JOINED, Sure.UNKNOWN, evidence)


def _of(member: Member, what: What, sure: Sure, *evidence: str, detail: str = "") -> Cause:
    return Cause(
        what=what,
        sure=sure,
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.host,
        detail=detail,
        evidence=evidence,
    )


def _joined(before: Assigned, after: Assigned) -> Iterator[Cause]:
    old = {member.member_id for member in before.members}
    statics = {member.instance_id for member in before.members if member.instance_id is not None}
    for member in after.members:
        if member.member_id not in old and member.instance_id not in statics:
            evidence = f"generation {after.generation} has the member id {member.member_id}, the one before it has not"
            yield _of(member, What.JOINED, Sure.SEEN, evidence)


def _replacements(step: Step, before: Assigned) -> Iterator[Cause]:
    """Instance ids with another member id than before."""
    old = {member.instance_id: member for member in before.members if member.instance_id is not None}
    for member in step.after.members:
        was = None if member.instance_id is None else old.get(member.instance_id)
        if was is not None and was.member_id != member.member_id:
            evidence = f"instance id {member.instance_id} had member id {was.member_id} and has {member.member_id} now"
            told = any(r.new_member_id == member.member_id and r.sure is Sure.TOLD for r in step.replaced)
            if not step.is_rebalance or told:
                yield _of(member, What.STATIC_REPLACED, Sure.TOLD if told else Sure.SEEN, evidence)
            elif _cannot_have_expired(step, was) is not None:
                yield _of(member, What.STATIC_REPLACED, Sure.INFERRED, evidence, _cannot_have_expired(step, was) or "")
            else:
                yield _of(
                    member, What.STATIC_REPLACED, Sure.UNKNOWN, evidence,
                    "its session may have expired before, and the process joined as a new member",
                )  # fmt: skip


def _resubscribed(before: Assigned, after: Assigned) -> Iterator[Cause]:
    old = {member.member_id: member for member in before.members}
    for member in after.members:
        was = old.get(member.member_id)
        if was is None or was.topics is None or member.topics is None or set(was.topics) == set(member.topics):
            continue
        added, dropped = sorted(set(member.topics) - set(was.topics)), sorted(set(was.topics) - set(member.topics))
        parts = [f"added {listed(added)}"] if added else []
        parts += [f"dropped {listed(dropped)}"] if dropped else []
        detail = ", ".join(parts)
        yield _of(member, What.SUBSCRIPTION_CHANGED, Sure.SEEN, f"its subscription differs: it {detail}", detail=detail)


# -- members that are gone ---------------------------------------------------------------------------------------------


def _gone(step: Step, before: Assigned) -> Iterator[Cause]:
    now = {member.member_id for member in step.after.members}
    statics = {member.instance_id for member in step.after.members if member.instance_id is not None}
    for member in before.members:
        if member.member_id not in now and member.instance_id not in statics:
            yield _why_gone(step, before, member)


def _why_gone(step: Step, before: Assigned, member: Member) -> Cause:
    """By how long nothing was heard of it, compared with its session timeout."""
    last_ms, session_ms = last_sign(step, member), member.session_timeout_ms
    if last_ms is None or session_ms is None:
        reason = "none of its partitions was committed in that generation" if session_ms else "its session is not known"
        return _of(member, What.GONE, Sure.UNKNOWN, f"it is not in generation {step.after.generation}, and {reason}")
    silent_ms = joined_at(step.after) - last_ms
    silence = f"its last commit came {duration(silent_ms)} before the join phase ended"
    session = f"its session timeout is {duration(session_ms)}"
    if silent_ms < session_ms:
        return _of(member, What.LEFT, Sure.INFERRED, f"{silence}, and {session}: it cannot have run out")
    return _of(member, What.EXPIRED, Sure.INFERRED, silence, session)


def _cannot_have_expired(step: Step, member: Member) -> str | None:
    """Why its session cannot have run out; None if it can."""
    last_ms = last_sign(step, member)
    if last_ms is None or member.session_timeout_ms is None:
        return None
    silent_ms = joined_at(step.after) - last_ms
    if silent_ms >= member.session_timeout_ms:
        return None
    return f"it committed {duration(silent_ms)} before the join phase ended, within its session timeout"


def joined_at(assigned: Assigned) -> int:
    """When its join phase ended, or at the latest."""
    return assigned.at_ms if assigned.joined_ms is None else min(assigned.joined_ms, assigned.at_ms)


def last_sign(step: Step, member: Member) -> int | None:
    """When the member was last known to be alive before the step: by a commit, or by the generation it was in."""
    times = list(commit_times(step, member.partitions))
    return max(times, default=None)


def commit_times(step: Step, partitions: tuple[Partition, ...]) -> Iterator[int]:
    """The last commit of each of the partitions during the generation before."""
    for partition in partitions:
        commits = step.history.commits.get(partition, NO_COMMITS)
        index = commits.last_upto(step.after.at_ms)
        if index is not None and commits.times_ms[index] >= step.since_ms:
            yield commits.times_ms[index]


# -- the others -------------------------------------------------------------------------------------------------------


def partitions_of(assigned: Assigned) -> set[Partition]:
    """All partitions that a generation assigns."""
    return {partition for member in assigned.members for partition in member.partitions}


def _more_partitions(step: Step, before: Assigned) -> Iterator[Cause]:
    """Partitions that were never assigned before, of topics that were."""
    earlier = [a for a in step.history.assigned if a.at_ms <= before.at_ms]
    known = {partition for assigned in earlier for partition in partitions_of(assigned)}
    counted = dict[str, int]()
    for topic, number in known:
        counted[topic] = max(counted.get(topic, 0), number + 1)
    fresh = sorted(
        partition
        for partition in partitions_of(step.after) - known
        if partition[0] in counted and partition[1] >= counted[partition[0]]
    )
    if fresh:
        names = listed([partition_name(partition) for partition in fresh])
        yield Cause(
            What.PARTITIONS_CHANGED, Sure.SEEN, detail=names,
            evidence=(f"{names} {'was' if len(fresh) == 1 else 'were'} assigned for the first time",),
        )  # fmt: skip


def _given_up(before: Assigned, after: Assigned) -> Iterator[Cause]:
    """A cooperative assignor takes a partition from its owner in one generation and gives it away in the next."""
    same = {m.member_id for m in before.members} == {m.member_id for m in after.members}
    waiting = sorted(partitions_of(after) - partitions_of(before))
    if same and waiting and "cooperative" in (after.protocol or ""):
        names = listed([partition_name(partition) for partition in waiting])
        yield Cause(
            What.PARTITIONS_GIVEN_UP, Sure.INFERRED, detail=names,
            evidence=(f"{names} had no owner in generation {before.generation} and have one now",),
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
