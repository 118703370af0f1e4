"""Regular expressions of a group: schedules matching them and applies the outcome.

Matching runs outside the event loop, for all expressions of a group at once. Until then a member has no topics from
its expression. (Kafka: maybeUpdateRegularExpressions, handleRegularExpressionsResult; specification section 20.7.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from partita.group.consumer_group.jobs import MatchExpressions
from partita.group.consumer_group.subscriptions import metadata_hash
from partita.group.notes import Cause, GroupEpochBumped
from partita.group.records import consumer_log
from partita.group.records.consumer_group import ConsumerGroup, ResolvedRegex
from partita.group.state.turn import Turn
from partita.wording import What

MaySee: TypeAlias = Callable[[str], bool] | None
"""Whether the client may describe a topic; None: it may describe all."""
BATCH_REFRESH_MIN_MS = 10_000
"""Minimum time between two matches of a group's expressions. Not configurable in Kafka either."""


def refresh(turn: Turn, group: ConsumerGroup, may_see: MaySee) -> None:
    """Start matching the group's expressions if it is due."""
    timers = turn.state.timers_of(group.group_id)
    if not group.patterns or timers.matching or not _is_due(turn, group):
        return
    timers.matching = True
    image = turn.state.topics
    job = MatchExpressions(group.group_id, tuple(group.patterns), tuple(image.names()), image.version, may_see)
    turn.out.start(job)


def _is_due(turn: Turn, group: ConsumerGroup) -> bool:
    known = [group.regexes[regex] for regex in group.patterns if regex in group.regexes]
    last_ms = max((resolved.resolved_ms for resolved in known), default=None)
    if last_ms is not None and turn.now.wall_ms - last_ms < BATCH_REFRESH_MIN_MS:
        return False
    if len(known) < len(group.patterns) or last_ms is None:
        return True
    newest = max(resolved.version for resolved in known)
    if newest != turn.state.topics.version:
        return True
    return turn.now.wall_ms - last_ms >= turn.state.config.group_consumer_regex_refresh_interval_ms


def matched(turn: Turn, job: MatchExpressions, found: Mapping[str, tuple[str, ...]]) -> None:
    """Record the outcome, and begin another epoch if any expression matches other topics than before."""
    group = turn.state.consumer_group(job.group_id)
    if group is None:
        return
    turn.state.timers_of(job.group_id).matching = False
    resolved = {
        regex: ResolvedRegex(_visible(topics, job.may_see), job.version, turn.now.wall_ms)
        for regex, topics in found.items()
        if regex in group.patterns
    }
    before = {regex: group.regexes[regex].topics if regex in group.regexes else () for regex in resolved}
    records = [consumer_log.regex_record(job.group_id, regex, one) for regex, one in resolved.items()]
    has_changed = any(before[regex] != one.topics for regex, one in resolved.items())
    if has_changed:
        topics = {**group.regexes, **resolved}
        names = sorted(
            {*group.names, *(t for regex in group.patterns if regex in topics for t in topics[regex].topics)}
        )
        found_hash = metadata_hash(turn.state.topics, names)
        records.append(consumer_log.epoch_record(job.group_id, group.epoch + 1, found_hash))
    if not records or not turn.state.fits(records):
        return
    turn.write(records)
    if has_changed:
        cause = Cause(What.SUBSCRIPTION_CHANGED, detail="regular expressions were matched")
        turn.out.note(GroupEpochBumped(job.group_id, group.epoch, cause, turn.now.wall_ms))


def _visible(topics: tuple[str, ...], may_see: Callable[[str], bool] | None) -> tuple[str, ...]:
    return topics if may_see is None else tuple(filter(may_see, topics))
