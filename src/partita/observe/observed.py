"""The current state of a cluster, in memory. One writer fills it; readers are notified of changes.

Belongs to one event loop. A reader sees one consistent state between two awaits.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace

from partita.explain.wording import agree
from partita.observe.history import Behind, History, LagPoint, RebalanceSeen
from partita.observe.seen import (
    CommitSeen,
    GroupSeen,
    LogSeen,
    MemberSeen,
    NodeSeen,
    TopicPartition,
    TopicSeen,
    TransactionSeen,
)

VIEWED_FOR_MS = 15_000


@dataclass(frozen=True, slots=True)
class Standing:
    """Lag of a group: records of all partitions together, and the age of its slowest partition.

    None: unknown, as nothing is committed, or no log's end is known.
    """

    lag: int | None = None
    behind: Behind | None = None


class Observed:
    """The cluster as last seen: nodes, topics, groups and transactions by name, and their history."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.boot = secrets.token_hex(4)
        """Identifies this run of the observer, since version numbers of another run have no meaning here."""
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.nodes: dict[int, NodeSeen] = {}
        self.topics: dict[str, TopicSeen] = {}
        self.logs: dict[TopicPartition, LogSeen] = {}
        self.groups: dict[str, GroupSeen] = {}
        self.standings: dict[str, Standing] = {}
        self.transactions: dict[str, TransactionSeen] = {}
        self.transactions_error: str | None = None
        self.history = History()
        self.trouble: str | None = None
        """Why the cluster cannot be reached at all; None while it can."""
        self.seen_ms = 0
        """When the last look ended; 0 before the first."""
        self.version = 0
        self._viewed: dict[str, int] = {}
        self._changed = asyncio.Event()

    def publish(self, now_ms: int) -> None:
        """Notify readers that a poll has ended."""
        self.seen_ms = now_ms
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, version: int, timeout_s: float) -> None:
        """Return once there is something newer than `version`, or after `timeout_s`."""
        if self.version == version:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):  # wait_for of Python 3.11 forgets a cancellation beside a change
                    await self._changed.wait()

    def view(self, group_id: str, now_ms: int) -> None:
        """Note that a user views this group: it is polled more often for a while."""
        self._viewed[group_id] = now_ms

    def viewed(self, now_ms: int) -> list[str]:
        """Return the groups that users are viewing."""
        self._viewed = {name: at for name, at in self._viewed.items() if at > now_ms - VIEWED_FOR_MS}
        return [name for name in self._viewed if name in self.groups]

    def take_log(self, log: LogSeen, at_ms: int) -> None:
        """Take in a partition's log as it is now."""
        self.logs[log.topic, log.partition] = log
        if log.end is not None and log.error is None:
            self.history.saw_end((log.topic, log.partition), at_ms, log.end)

    def take_group(self, now: GroupSeen) -> None:
        """Take in a group as it is now: note what changed since the last look, and how far it is behind."""
        before = self.groups.get(now.group_id)
        is_same = before is not None and before.state == now.state
        now = replace(now, state_since_ms=before.state_since_ms if before is not None and is_same else now.seen_ms)
        what = change_of(before, now)
        if what:
            self.history.saw_rebalance(RebalanceSeen(now.seen_ms, now.group_id, what))
        self.groups[now.group_id] = now
        standing = self.standings[now.group_id] = self._standing(now)
        if standing.lag is not None and now.error is None:
            behind_ms = standing.behind.ms if standing.behind is not None else None
            total = sum(commit.offset for commit in now.commits)
            self.history.saw_group(now.group_id, LagPoint(now.seen_ms, standing.lag, behind_ms, total))

    def drop_group(self, group_id: str) -> None:
        """Forget a group that does not exist any more."""
        self.groups.pop(group_id, None)
        self.standings.pop(group_id, None)
        self.history.forget_group(group_id)

    def known_logs(self, group: GroupSeen) -> list[tuple[CommitSeen, LogSeen]]:
        """The commits of a group whose logs' ends are known; a deleted topic has none."""
        logs = [(commit, self.logs.get((commit.topic, commit.partition))) for commit in group.commits]
        return [(commit, log) for commit, log in logs if log is not None and log.end is not None]

    def behind(self, group: GroupSeen, commit: CommitSeen, log: LogSeen) -> Behind | None:
        """Age of the next record to read when the group was looked at; None if it is not known."""
        if commit.lag == 0:
            return Behind(0)  # a share group may have acknowledged everything beyond its start offset
        return self.history.behind(log, commit.offset, group.seen_ms)

    def _standing(self, group: GroupSeen) -> Standing:
        known = self.known_logs(group)
        lags = [commit.lag_at(log.end or 0) for commit, log in known]
        ages = [self.behind(group, commit, log) for commit, log in known]
        slowest = max((age for age in ages if age is not None), key=lambda age: age.ms, default=None)
        return Standing(sum(lags) if known else None, slowest)


def change_of(before: GroupSeen | None, now: GroupSeen) -> str:
    """Describe the changes of members and their partitions between two polls; empty if there are none."""
    if before is None or before.seen_ms == 0:
        return ""
    was, are = {m.member_id: m for m in before.members}, {m.member_id: m for m in now.members}
    joined, gone = [are[key] for key in are.keys() - was.keys()], [was[key] for key in was.keys() - are.keys()]
    if joined or gone:
        parts = [f"{_names(joined)} joined"] if joined else []
        return " and ".join([*parts, *([f"{_names(gone)} {agree('{is|are} gone', len(gone))}"] if gone else [])])
    if any(was[key].partitions and was[key].partitions != are[key].partitions for key in are) and now.state == "Stable":
        return "the same members hold other partitions"
    return ""


def _names(members: list[MemberSeen]) -> str:
    names = sorted(member.instance_id or member.client_id or member.member_id for member in members)
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
