"""A cluster as the dashboard's observer would have seen it, written down by hand: no broker, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from starlette.testclient import TestClient

from partita.dashboard.access import Access
from partita.dashboard.app import create_app
from partita.dashboard.site import Site
from partita.observe.observed import Observed
from partita.observe.seen import CommitSeen, GroupSeen, LogSeen, MemberSeen, NodeSeen, TopicPartition, TopicSeen

START_MS = 1_800_000_000_000
SECOND = 1_000


class FakeCluster:
    """Fills an `Observed` step by step; `now_ms` moves only by `pass_s`."""

    def __init__(self) -> None:
        self.observed = Observed("broker:9092")
        self.now_ms = START_MS
        self.observed.cluster_id = "a-cluster"
        self.observed.history.began_ms = START_MS
        self.observed.nodes = {1: NodeSeen(1, "broker", 9092, seen_ms=START_MS)}
        self._logs: dict[TopicPartition, LogSeen] = {}
        self._groups: dict[str, GroupSeen] = {}

    def log(self, topic: str, partition: int, end: int, *, start: int = 0, error: str | None = None) -> None:
        """A partition whose log ends at `end`; a later call lets it grow."""
        self._logs[topic, partition] = LogSeen(
            topic, partition, 1, (1,), (1,), start, end, START_MS - 3_600_000, error=error
        )

    def group(
        self,
        group_id: str,
        commits: Mapping[TopicPartition, int],
        members: Sequence[MemberSeen] = (),
        *,
        state: str = "",
        error: str | None = None,
        metadata: str = "",
    ) -> None:
        """A group with what it has committed and who is in it."""
        before = self.observed.groups.get(group_id)
        known = {(c.topic, c.partition): c for c in before.commits} if before is not None else {}
        made = []
        for key, offset in sorted(commits.items()):
            old = known.get(key)
            moved_ms = old.moved_ms if old is not None and old.offset == offset else self.now_ms
            made.append(CommitSeen(*key, offset, metadata, moved_ms))
        self._groups[group_id] = GroupSeen(
            group_id, state or ("Stable" if members else "Empty"), "classic", "consumer", "range", 1,
            tuple(members), tuple(made), error=error,
        )  # fmt: skip

    def look(self) -> None:
        """The observer looks: everything that was said is seen now."""
        seen = self.observed
        for log in self._logs.values():
            seen.take_log(log, self.now_ms)
        topics = sorted({topic for topic, _ in self._logs})
        seen.topics = {
            name: TopicSeen(
                name, name.startswith("__"), tuple(log for log in self._logs.values() if log.topic == name),
                7 * 86_400_000, "delete",
            )
            for name in topics
        }  # fmt: skip
        for group in self._groups.values():
            seen.take_group(_at(group, self.now_ms))
        seen.publish(self.now_ms)

    def pass_s(self, seconds: float) -> None:
        """Time goes by."""
        self.now_ms += int(seconds * SECOND)

    def site(self, access: Access | None = None) -> Site:
        """The dashboard's pages over what was seen."""
        return Site(self.observed, access or Access())

    def client(self, access: Access | None = None) -> TestClient:
        """A browser without scripts at the dashboard."""
        return TestClient(create_app(self.site(access)), base_url="http://127.0.0.1:8080", follow_redirects=False)


def _at(group: GroupSeen, now_ms: int) -> GroupSeen:
    return replace(group, seen_ms=now_ms)


def member(name: str, *partitions: TopicPartition, host: str = "/10.0.0.1", instance: str | None = None) -> MemberSeen:
    """A member with a client id, from which its member id is made."""
    return MemberSeen(f"{name}-id", name, host, instance, tuple(partitions))
