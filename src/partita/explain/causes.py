"""Causes of a rebalance: reported by the coordinator, or inferred from the difference between two generations.

The rules of inference, in one place. A member that committed within its session timeout before the join phase ended
cannot have expired, for a commit starts the session again (Kafka: GroupMetadataManager.validateOffsetCommit).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from partita.explain.account import Cause
from partita.explain.facts import Assigned, Member, Partition, Sure, ToldCause
from partita.explain.generations import NO_COMMITS, Step
from partita.explain.wording import clean, duration, listed, partition_name
from partita.wording import What

LATE_POLL_REASONS = ("consumer poll timeout has expired", "max.poll.interval.ms", "no poll for")
"""How the reasons begin or what they hold with which Java's consumer and ours leave when their application is slow."""
SURELY = 0.9
"""A silence shorter than this share of the session timeout is surely shorter: clocks and records are not that exact."""
SILENCES_OF_A_SESSION = 2
"""A silence of one to two session timeouts is taken for an expiry; a longer one says nothing."""
COMMITS_FOR_A_PACE = 3
NO_SESSIONS = (
    "the log of a KIP-848 group holds neither sessions nor heartbeats, so it does not say whether a member left or "
    "fell silent; the broker's own log does"
)
SILENCES_OF_A_POLL = 1.5
"""A silence of one to one and a half times max.poll.interval.ms is taken for a late poll."""


def causes_of(step: Step) -> tuple[Cause, ...]:
    """The causes of the step's rebalance, what began it first; never empty."""
    told = tuple(_reported(cause, step) for cause in step.after.causes)
    found = told or tuple(_seen(step))
    return found or (_unexplained(step),)


# -- told ------------------------------------------------------------------------------------------------------------


def _reported(cause: ToldCause, step: Step) -> Cause:
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
        detail=_detail(cause, step),
        evidence=(clean(f"the coordinator noted '{cause.what.value}'{reason}"),),
    )


def _detail(cause: ToldCause, step: Step) -> str:
    """Return the change between the generations, where visible, else the reason that the client gave."""
    if step.before is not None and cause.what is What.SUBSCRIPTION_CHANGED:
        changes = [c.detail for c in _resubscribed(step.before, step.after) if c.member_id == cause.member_id]
        return changes[0] if changes else cause.detail
    if step.before is not None and cause.what is What.PARTITIONS_CHANGED:
        return next((c.detail for c in _more_partitions(step, step.before, is_alone=True)), "")
    return cause.detail


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
        *_gone(step, before),
        *_replacements(step, before),
        *_joined(before, after),
        *_resubscribed(before, after),
    ]
    yield from first
    if before.protocol is not None and after.protocol is not None and before.protocol != after.protocol:
        evidence = f"the assignor was {before.protocol} and is {after.protocol}"
        yield Cause(What.PROTOCOLS_CHANGED, Sure.SEEN, evidence=(evidence,))
    moved = list(_moved_coordinator(step, before))
    if step.after.topics_hash is not None and before.topics_hash is not None:
        yield from _other_topics(step, before, is_alone=not first)
    else:
        yield from _more_partitions(step, before, is_alone=not first and not moved)
    yield from _given_up(step, before)
    yield from moved


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
        evidence=tuple(map(clean, evidence)),
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
            elif alive := _cannot_have_expired(step, before, was):
                yield _of(member, What.STATIC_REPLACED, Sure.INFERRED, evidence, alive)
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
    """By how long nothing was heard of it, compared with its time-outs."""
    session_ms, poll_ms = member.session_timeout_ms, member.rebalance_timeout_ms
    if session_ms is None or before.is_incremental:
        return _of(member, What.GONE, Sure.UNKNOWN, *_why_unknown(step, before, member))
    last_ms, sign = last_sign(step, before, member)
    silent_ms = joined_at(step.after) - last_ms
    silence = f"{sign} {duration(silent_ms)} before the join phase ended"
    session = f"its session timeout is {duration(session_ms)}"
    join_max_ms = max((m.rebalance_timeout_ms or 0 for m in before.members), default=0)
    if silent_ms < SURELY * min(session_ms, join_max_ms):
        return _of(member, What.LEFT, Sure.INFERRED, silence, f"{session}, so it cannot have run out")
    pace_ms = _pace(step, member)
    if pace_ms is not None and pace_ms <= session_ms / 2:
        pace = f"before, it committed every {duration(pace_ms)} or more often, and {session}"
        if silent_ms < SILENCES_OF_A_SESSION * session_ms and not _may_have_missed_the_join(
            step, silent_ms, join_max_ms
        ):
            return _of(member, What.EXPIRED, Sure.INFERRED, silence, pace)
        if poll_ms is not None and member.instance_id is None and _polled_late(step, silent_ms, session_ms, poll_ms):
            limit = (
                f"that is just over its max.poll.interval.ms of {duration(poll_ms)}, and the others went on till then"
            )
            return _of(member, What.POLLED_TOO_LATE, Sure.INFERRED, silence, limit)
    return _of(member, What.GONE, Sure.UNKNOWN, silence, session)


def _why_unknown(step: Step, before: Assigned, member: Member) -> tuple[str, ...]:
    """Return the evidence in the log. In a KIP-848 group commits do not restart sessions, so silence proves nothing."""
    gone = f"it is not in {'epoch' if before.is_incremental else 'generation'} {step.after.generation}"
    if not before.is_incremental:
        return (f"{gone}, and the log does not hold its session timeout",)
    last_ms = max(commit_times(step, member.partitions), default=None)
    if last_ms is None:
        return (gone, "it committed nothing in the epoch before", NO_SESSIONS)
    return (gone, f"its last commit came {duration(step.after.at_ms - last_ms)} before the new target", NO_SESSIONS)


def _pace(step: Step, member: Member) -> int | None:
    """The longest time between two of the member's commits in its generation; None if there were fewer than three."""
    times = sorted(
        at
        for partition in member.partitions
        for at in step.history.commits.get(partition, NO_COMMITS).times_ms
        if step.since_ms <= at <= step.after.at_ms
    )
    return max(b - a for a, b in pairwise(times)) if len(times) >= COMMITS_FOR_A_PACE else None


def _may_have_missed_the_join(step: Step, silent_ms: int, join_max_ms: int) -> bool:
    """Whether the join phase may have lasted the whole rebalance timeout, after which absent members are removed.

    Not if a member that stayed committed meanwhile.
    """
    if silent_ms < join_max_ms:
        return False
    last_ms = _last_of_staying(step)
    return last_ms is None or joined_at(step.after) - last_ms >= join_max_ms


def _polled_late(step: Step, silent_ms: int, session_ms: int, poll_ms: int) -> bool:
    """Was it silent for max.poll.interval.ms, far beyond its session, while the others went on?"""
    last_ms = _last_of_staying(step)
    if last_ms is None or poll_ms < SILENCES_OF_A_SESSION * session_ms:
        return False
    return poll_ms <= silent_ms < SILENCES_OF_A_POLL * poll_ms and joined_at(step.after) - last_ms < session_ms


def _last_of_staying(step: Step) -> int | None:
    """The last commit of a member that is in both generations."""
    staying = {member.member_id for member in step.after.members}
    members = () if step.before is None else step.before.members
    return max((at for m in members if m.member_id in staying for at in commit_times(step, m.partitions)), default=None)


def _cannot_have_expired(step: Step, before: Assigned, member: Member) -> str:
    """Why its session cannot have run out; empty if it can."""
    if before.is_incremental:
        return ""
    last_ms, sign = last_sign(step, before, member)
    silent_ms = joined_at(step.after) - last_ms
    if member.session_timeout_ms is None or silent_ms >= SURELY * member.session_timeout_ms:
        return ""
    return f"{sign} {duration(silent_ms)} before the join phase ended, within its session timeout"


def joined_at(assigned: Assigned) -> int:
    """When its join phase ended, or at the latest."""
    return assigned.at_ms if assigned.joined_ms is None else min(assigned.joined_ms, assigned.at_ms)


def last_sign(step: Step, before: Assigned, member: Member) -> tuple[int, str]:
    """When the member was last known to be alive before the step, and by what: a commit, or its own generation."""
    committed_ms = max(commit_times(step, member.partitions), default=None)
    if committed_ms is None or committed_ms < joined_at(before):
        return joined_at(before), f"it joined generation {before.generation} and committed nothing; that was"
    return committed_ms, "its last commit came"


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


def _other_topics(step: Step, before: Assigned, *, is_alone: bool) -> Iterator[Cause]:
    """A KIP-848 group keeps a hash of its topics: if its members ask for the same ones, the topics have changed.

    Beside another cause the change may just have been noticed.
    """
    after = step.after
    if after.topics_hash == before.topics_hash or _subscribed(after) != _subscribed(before):
        return
    new = listed([partition_name(partition) for partition in sorted(partitions_of(after) - step.known)])
    evidence = "its members subscribe to the same topics, and the hash that the group keeps of these has changed"
    yield Cause(What.TOPICS_CHANGED, Sure.SEEN if is_alone else Sure.UNKNOWN, detail=new, evidence=(evidence,))


def _subscribed(assigned: Assigned) -> set[str]:
    return {topic for member in assigned.members for topic in member.topics or ()}


def _more_partitions(step: Step, before: Assigned, *, is_alone: bool) -> Iterator[Cause]:
    """Partitions that were never assigned before, of topics that were.

    Beside another cause they may just have been noticed by the rebalance that it began; alone, another reason to rejoin
    that no record shows is possible, though rare.
    """
    new = partitions_of(step.after) - step.known
    counted = dict[str, int]()
    for topic, number in step.known if new else ():
        counted[topic] = max(counted.get(topic, 0), number + 1)
    fresh = sorted(partition for partition in new if partition[0] in counted and partition[1] >= counted[partition[0]])
    if fresh:
        names = listed([partition_name(partition) for partition in fresh])
        yield Cause(
            What.PARTITIONS_CHANGED, Sure.INFERRED if is_alone else Sure.UNKNOWN, detail=names,
            evidence=(f"{names} {'was' if len(fresh) == 1 else 'were'} assigned for the first time",),
        )  # fmt: skip


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
