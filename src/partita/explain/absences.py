"""Members that are gone: whether they left, fell silent or polled too late, by the commits that they made before.

A member that committed within its session timeout before the join phase ended cannot have expired, for a commit starts
the session again (Kafka: GroupMetadataManager.validateOffsetCommit).
"""

from __future__ import annotations

from collections.abc import Iterator

from partita.explain.account import Cause
from partita.explain.facts import Assigned, Member, Partition, Sure
from partita.explain.generations import NO_COMMITS, Step
from partita.explain.wording import clean, duration
from partita.wording import What

SURELY = 0.9
"""A silence shorter than this share of the session timeout is surely shorter: clocks and records are not that exact."""
SILENCES_OF_A_SESSION = 2
"""A silence of one to two session timeouts is taken for an expiry; a longer one says nothing."""
NO_SESSIONS = (
    "the log of a KIP-848 group holds neither sessions nor heartbeats, so it does not say whether a member left or "
    "fell silent; the broker's own log does"
)
SILENCES_OF_A_POLL = 1.5
"""A silence of one to one and a half times max.poll.interval.ms is taken for a late poll."""


def cause_of(member: Member, what: What, sure: Sure, *evidence: str, detail: str = "") -> Cause:
    """Return a cause that is an event of this member."""
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


def gone(step: Step, before: Assigned) -> Iterator[Cause]:
    """Why each member of the generation before is not in this one, unless its instance id is."""
    now = {member.member_id for member in step.after.members}
    statics = {member.instance_id for member in step.after.members if member.instance_id is not None}
    for member in before.members:
        if member.member_id not in now and member.instance_id not in statics:
            yield _why_gone(step, before, member)


def _why_gone(step: Step, before: Assigned, member: Member) -> Cause:
    """By how long nothing was heard of it, compared with its time-outs."""
    session_ms, poll_ms = member.session_timeout_ms, member.rebalance_timeout_ms
    if session_ms is None or before.is_incremental:
        return cause_of(member, What.GONE, Sure.UNKNOWN, *_why_unknown(step, before, member))
    last_ms, sign = last_sign(step, before, member)
    silent_ms = joined_at(step.after) - last_ms
    silence = f"{sign} {duration(silent_ms)} before the join phase ended"
    session = f"its session timeout is {duration(session_ms)}"
    join_max_ms = max((m.rebalance_timeout_ms or 0 for m in before.members), default=0)
    if silent_ms < SURELY * min(session_ms, join_max_ms):
        return cause_of(member, What.LEFT, Sure.INFERRED, silence, f"{session}, so it cannot have run out")
    pace_ms = _pace(step, member)
    if pace_ms is not None and pace_ms <= session_ms / 2:
        pace = f"before, it committed every {duration(pace_ms)} or more often, and {session}"
        if silent_ms < SILENCES_OF_A_SESSION * session_ms and not _may_have_missed_the_join(
            step, silent_ms, join_max_ms
        ):
            if poll_ms is not None and member.instance_id is None and poll_ms - pace_ms <= silent_ms:
                either = f"{session}, and its max.poll.interval.ms is {duration(poll_ms)}: either may have run out"
                return cause_of(member, What.GONE, Sure.UNKNOWN, silence, either)
            return cause_of(member, What.EXPIRED, Sure.INFERRED, silence, pace)
        if (
            poll_ms is not None
            and member.instance_id is None
            and _polled_late(step, silent_ms + pace_ms, session_ms, poll_ms)
        ):
            limit = (
                f"that is just over its max.poll.interval.ms of {duration(poll_ms)}, and the others went on till then"
            )
            return cause_of(member, What.POLLED_TOO_LATE, Sure.INFERRED, silence, limit)
    return cause_of(member, What.GONE, Sure.UNKNOWN, silence, session)


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
    """The pace at which the member committed its busiest partition in its generation; None if it is not known."""
    commits = (step.history.commits.get(partition, NO_COMMITS) for partition in member.partitions)
    paces = [some.pace_ms(step.since_ms, step.after.at_ms) for some in commits]
    return min((pace for pace in paces if pace is not None), default=None)


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


def polled_too_late(step: Step, member: Member, session_ms: int = 0) -> str:
    """Return the evidence that a member had not polled for its max.poll.interval.ms when it went; empty if none.

    Commits stopped for that long while others went on. The session of a member that left does not matter. Some clients
    fall silent instead, and go when the session is over: then commits stopped far longer ago than by a crash.
    """
    before, limit_ms = step.before, member.rebalance_timeout_ms
    pace_ms, last_ms = _pace(step, member), _last_of_staying(step)
    if before is None or limit_ms is None or member.instance_id is not None or pace_ms is None or last_ms is None:
        return ""
    left_ms = joined_at(step.after) if step.after.began_ms is None else step.after.began_ms
    sign_ms, sign = last_sign(step, before, member)
    silent_ms = left_ms - sign_ms
    goes_on = left_ms - last_ms <= max(pace_ms, limit_ms / 2)
    least_ms = max(limit_ms - pace_ms, SILENCES_OF_A_SESSION * session_ms)  # the last poll's work is committed later
    if not goes_on or pace_ms > limit_ms / 2 or not least_ms <= silent_ms < SILENCES_OF_A_POLL * limit_ms + session_ms:
        return ""
    return f"{sign} {duration(silent_ms)} before it went, about its max.poll.interval.ms of {duration(limit_ms)}"


def _last_of_staying(step: Step) -> int | None:
    """The last commit of a member that is in both generations."""
    staying = {member.member_id for member in step.after.members}
    members = () if step.before is None else step.before.members
    return max((at for m in members if m.member_id in staying for at in commit_times(step, m.partitions)), default=None)


def cannot_have_expired(step: Step, before: Assigned, member: Member) -> str:
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
