"""A member of today's designs: `partita.Consumer` in a group, unchanged. 3 is range, 3c cooperative, 848 the newest."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import cycle
from typing import Any

from partita import Consumer
from partita.assignors.interface import Assignment, Assignor, Subscription, TopicMetadata
from partita.consumer.listener import RebalanceListener
from partita.designs.members.reader import FETCH_WAIT_MS, POLL_S, process_slowly, ranges_of
from partita.designs.members.settings import MemberSettings, Say
from partita.errors import KafkaError
from partita.offsets.topic_partition import TopicPartition

STRATEGIES = {"3": "range", "3c": "cooperative-sticky"}


class Mine(Assignor):
    """A strategy of the user's own: partitions in turn, from the last to the first."""

    name = "mine"

    def assign(self, metadata: TopicMetadata, subscriptions: Mapping[str, Subscription]) -> Assignment:
        """Deal the partitions."""
        found: Assignment = {member: [] for member in subscriptions}
        turn = cycle(sorted(found))
        for topic, count in metadata.partition_counts.items():
            for number in reversed(range(count)):
                found[next(turn)].append((topic, number))
        return found


class Ownership(RebalanceListener):
    """Reports the partitions of this member after each change."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._held: set[int] = set()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Report what is read from now on."""
        self._held |= {partition.partition for partition in partitions}
        for partition in sorted(partitions):
            self._say("claimed", partition=partition.partition)
        self._say("reading", partitions=sorted(self._held))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Report what is no longer read."""
        self._held -= {partition.partition for partition in partitions}
        self._say("reading", partitions=sorted(self._held))


class MemberThree:
    """One thread polls; the consumer itself does everything about the group."""

    def __init__(self, settings: MemberSettings, say: Say) -> None:
        timings = settings.timings
        options: dict[str, Any] = {
            "bootstrap_servers": settings.bootstrap, "group_id": settings.group, "client_id": settings.member,
            "auto_offset_reset": "earliest", "fetch_max_wait_ms": FETCH_WAIT_MS,
            "enable_auto_commit": settings.auto_commit,
        }  # fmt: skip
        if settings.auto_commit:
            options["auto_commit_interval_ms"] = timings.commit_ms
        if settings.design == "848":
            options["group_protocol"] = "consumer"
        else:
            strategy = Mine if settings.strategy == Mine.name else STRATEGIES[settings.design]
            options |= {
                "session_timeout_ms": timings.session_ms, "heartbeat_interval_ms": timings.heartbeat_ms,
                "partition_assignment_strategy": [strategy],
            }  # fmt: skip
        self._consumer: Consumer[bytes, bytes] = Consumer(
            **options, max_poll_interval_ms=timings.session_ms * 3 // 2, metadata_max_age_ms=timings.session_ms
        )
        self._settings = settings
        self._say = say
        self._slow_ms = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="member")

    def start(self) -> None:
        """Subscribe and begin to poll."""
        self._consumer.subscribe([self._settings.topic], listener=Ownership(self._say))
        self._thread.start()

    def slow(self, ms: int) -> None:
        """Make the processing of the next records take `ms`."""
        self._slow_ms = ms

    def close(self) -> None:
        """Leave the group."""
        self._closing.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                records = self._consumer.poll(POLL_S)
            except KafkaError as error:
                self._say("error", error=str(error))
                continue
            if records:
                self._say("read", ranges=ranges_of(records))
            if records and self._slow_ms:
                ms, self._slow_ms = self._slow_ms, 0
                process_slowly(ms, self._say)
