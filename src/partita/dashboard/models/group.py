"""The page of one group: members as cards, partitions by member, topics, lag over time."""

from __future__ import annotations

from dataclasses import dataclass

from partita.admin.results import SubtopologyDescription, TasksDescription
from partita.admin.share_groups import SHARE
from partita.dashboard.models.rows import GroupRow, GroupRows, loses_in_ms
from partita.dashboard.models.why import ListedRebalance, listed_rebalance
from partita.observe.history import Behind, LagPoint, RebalanceSeen
from partita.observe.observed import Observed
from partita.observe.seen import CommitSeen, GroupSeen, TopicPartition

CHART_MS = 30 * 60_000
RATE_MS = 60_000
LISTED_MAX = 10


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of a group. `owner` is the index of its member card, None without an owner.

    A broker hides topics that the client may not describe, so a partition that it does not list may exist.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    lag: int | None
    behind: Behind | None
    since_commit_ms: int | None
    metadata: str
    owner: int | None
    loses_in_ms: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class MemberCard:
    """A member with its partitions. `share` is its part of the group's lag in percent, `look` chooses its colour."""

    index: int
    look: int
    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    epoch: int | None
    partitions: tuple[PartitionRow, ...]
    lag: int | None
    share: int
    behind: Behind | None
    since_commit_ms: int | None
    tasks: TasksDescription | None


@dataclass(frozen=True, slots=True)
class TopicSum:
    """All partitions of one topic together."""

    topic: str
    partitions: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class GroupPage:
    """Everything the page of a group shows. `consume_rate` is in records per second over the last minute."""

    row: GroupRow
    protocol: str
    protocol_type: str
    coordinator: str
    topology: tuple[SubtopologyDescription, ...]
    seen_ms: int
    members: tuple[MemberCard, ...]
    unowned: tuple[PartitionRow, ...]
    topics: tuple[TopicSum, ...]
    lag_points: tuple[LagPoint, ...]
    consume_rate: float | None
    produce_rate: float | None
    rebalances: tuple[RebalanceSeen, ...]
    explained: tuple[ListedRebalance, ...]


def group_page(rows: GroupRows, group_id: str) -> GroupPage | None:
    """The page; None for a group that does not exist."""
    seen = rows.observed
    group, row = seen.groups.get(group_id), rows.one(group_id)
    if group is None or row is None:
        return None
    partitions = _partitions(seen, group)
    names, numbers = rows.accounts.looks(group_id)
    looks = [numbers[names.get(member.member_id, member.client_id)] for member in group.members]
    cards = [_card(group, index, look, partitions, row.lag) for index, look in enumerate(looks)]
    node = seen.nodes.get(group.coordinator)
    _, explained = rows.accounts.of(group_id)
    points = seen.history.lag_points(group_id, seen.seen_ms - CHART_MS)
    topics: dict[str, list[PartitionRow]] = {}
    for part in partitions.values():
        topics.setdefault(part.topic, []).append(part)
    return GroupPage(
        row,
        group.protocol,
        group.protocol_type,
        f"node {group.coordinator}" + (f" at {node.host}:{node.port}" if node is not None else ""),
        group.topology,
        group.seen_ms,
        tuple(sorted(cards, key=lambda card: (-(card.lag or 0), card.client_id, card.member_id))),
        tuple(part for part in partitions.values() if part.owner is None),
        tuple(TopicSum(name, len(parts), _sum(parts)) for name, parts in sorted(topics.items())),
        tuple(points),
        _consume_rate(points),
        _produce_rate(seen, partitions),
        tuple(reversed(rows.accounts.rebalances(group_id, LISTED_MAX))),
        tuple(listed_rebalance(f"{row.path}/why", account) for account in reversed(explained[-LISTED_MAX:])),
    )


def _partitions(seen: Observed, group: GroupSeen) -> dict[TopicPartition, PartitionRow]:
    commits = {(commit.topic, commit.partition): commit for commit in group.commits}
    owners = {key: index for index, member in enumerate(group.members) for key in member.partitions}
    return {key: _partition(seen, group, key, commits.get(key), owners.get(key)) for key in sorted({*commits, *owners})}


def _partition(
    seen: Observed, group: GroupSeen, key: TopicPartition, commit: CommitSeen | None, owner: int | None
) -> PartitionRow:
    log = seen.logs.get(key)
    end = log.end if log is not None else None
    lag = None if commit is None or end is None else commit.lag_at(end)
    return PartitionRow(
        *key,
        commit.offset if commit is not None else None,
        end,
        lag,
        seen.history.behind(log, commit.offset, group.seen_ms) if log is not None and commit is not None else None,
        group.seen_ms - commit.moved_ms if commit is not None else None,
        commit.metadata if commit is not None else "",
        owner,
        loses_in_ms(seen, commit, group.seen_ms) if commit is not None and lag else None,
        "deleted, or there is no right to see it" if log is None else log.error,
    )


def _card(
    group: GroupSeen, index: int, look: int, partitions: dict[TopicPartition, PartitionRow], total: int | None
) -> MemberCard:
    member = group.members[index]
    held = tuple(partitions[key] for key in member.partitions)
    lag = _sum(held)
    ages = [part.behind for part in held if part.behind is not None]
    quiet = [part.since_commit_ms for part in held if part.since_commit_ms is not None]
    return MemberCard(
        index,
        look,
        member.member_id,
        member.client_id,
        member.instance_id,
        member.host,
        member.epoch,
        held,
        lag,
        round(100 * lag / total) if lag and total and group.type != SHARE else 0,
        max(ages, key=lambda age: age.ms, default=None),
        min(quiet, default=None),
        member.tasks,
    )


def _sum(parts: tuple[PartitionRow, ...] | list[PartitionRow]) -> int | None:
    known = [part.lag for part in parts if part.lag is not None]
    return sum(known) if known else None


def _consume_rate(points: list[LagPoint]) -> float | None:
    recent = [point for point in points if point.at_ms >= points[-1].at_ms - RATE_MS] if points else []
    if len(recent) < 2:
        return None
    return max(0, recent[-1].committed - recent[0].committed) * 1000 / (recent[-1].at_ms - recent[0].at_ms)


def _produce_rate(seen: Observed, keys: dict[TopicPartition, PartitionRow]) -> float | None:
    rates = [seen.history.produce_rate(key, seen.seen_ms) for key in keys]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
