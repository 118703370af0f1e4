"""The consumers with which a query takes part in its group: static members that read nothing themselves.

They live in the source's own process, beside Spark's calls, and send heartbeats from their own threads, so a long
batch costs no membership; a batch longer than max.poll.interval.ms does, as with every consumer. Partitions change
hands only inside `take_part`.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

from partita.consumer.config import OPTIONS
from partita.consumer.errors import CommitFailedError
from partita.consumer.listener import RebalanceListener
from partita.consumer.shell.blocking import Consumer
from partita.errors import FencedInstanceIdError, KafkaError, UnreleasedInstanceIdError
from partita.now import Clock
from partita.offsets.topic_partition import OffsetAndMetadata
from partita.offsets.topic_partition import TopicPartition as Tp
from partita.spark.cluster.broker_link import imported
from partita.spark.planning.lookups import Committed
from partita.spark.planning.membership import Holding, Refusal
from partita.spark.planning.starts import SourceError
from partita.spark.settings.client_checks import whole_number
from partita.spark.settings.options import MemberOptions, SourceOptions, without_executors
from partita.spark.settings.positions import TopicPartition

COMMIT_BUDGET_S, LEAVE_BUDGET_S = 5.0, 2.0
DEFAULT_HEARTBEAT_MS = 3_000
TURN_S = 0.02
"""Time that one member waits for the group before the next one has its turn."""
SETTLE_EXTRA_MS = 60_000
"""A rebalance may take as long as its slowest member, and a little more."""
FOLLOW_UP_MS = 1_000
"""With cooperative assignors a new member gets nothing at first: others give up partitions, and a second rebalance
follows, of which the member hears by its next heartbeat; so this is the time beyond the heartbeat interval. A query
that began a batch in between would hold the whole group up until that batch is done."""
TAKEN_LIMIT_MS = 90_000
"""Time that another member may still hold a static id: with the consumer protocol a killed driver's id stays taken
until its session ends (45 s by Kafka's default).
"""


class GroupMembers:
    """`partita.spark.planning.membership.Membership` over consumers of this process; they join in `take_part`.

    `auto` returns the number of members that groupMembers=auto stands for; it is called once.
    """

    def __init__(self, options: SourceOptions, clock: Clock, auto: Callable[[], int] = lambda: 1) -> None:
        self._options = options
        self._auto = auto
        self._settings = options.member or MemberOptions()
        self._clock = clock
        self._members: list[_Member] = []
        self._tenures = 0
        self._taken_since_ms: int | None = None

    def take_part(self) -> Holding:
        """Poll every member until the group is settled. Raises SourceError for a static id used twice."""
        follow_up_ms = 0
        if not self._members:
            self._join()
            beat_ms = whole_number(self._options.client, "heartbeat.interval.ms", DEFAULT_HEARTBEAT_MS)
            follow_up_ms = self._clock.now().mono_ms + beat_ms + FOLLOW_UP_MS
        limit_ms = self._clock.now().mono_ms + self._options.max_poll_interval_ms + SETTLE_EXTRA_MS
        is_settled = self._turn(0.0)
        while (now_ms := self._clock.now().mono_ms) < limit_ms:
            is_waiting = now_ms < follow_up_ms and not all(member.tenures for member in self._members)
            if is_settled and not is_waiting:
                break
            is_settled = self._turn(TURN_S)
        tenures = {key: tenure for member in self._members for key, tenure in member.tenures.items()}
        generation = max(member.consumer.group_metadata().generation_id for member in self._members)
        return Holding(tenures, generation, is_settled)

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> tuple[Refusal, ...]:
        """Have each member commit for its partitions, within five seconds."""
        refusals = []
        for member in self._members:
            mine = {key: committed for key, committed in offsets.items() if key in member.tenures}
            if mine:
                refusals += self._commit(member, mine)
        return tuple(refusals)

    def leave(self) -> None:
        """Leave the group with every member, within a few seconds."""
        for member in self._members:
            member.consumer.close(LEAVE_BUDGET_S, membership="leave_group")

    def _join(self) -> None:
        self._members = [
            _Member(consumer_options(self._options, i), self._options, self._next_tenure)
            for i in range(self._settings.count or self._auto())
        ]
        if self._settings.leaves_on_stop and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_stop)

    def _turn(self, wait_s: float) -> bool:
        """Poll every member once; return whether all of them are settled afterwards."""
        is_taken = False
        for member in self._members:
            try:
                member.consumer.poll(wait_s, max_records=0)
            except FencedInstanceIdError:
                raise self._used_twice(member) from None
            except UnreleasedInstanceIdError:
                is_taken = True
                self._try_again(member)
        if not is_taken and all(member.consumer.is_settled() for member in self._members):
            self._taken_since_ms = None
            return True
        return False

    def _try_again(self, member: _Member) -> None:
        """Retry later: the id is still held, by the previous driver until its session ends or by another query."""
        now_ms = self._clock.now().mono_ms
        self._taken_since_ms = now_ms if self._taken_since_ms is None else self._taken_since_ms
        if now_ms - self._taken_since_ms > TAKEN_LIMIT_MS:
            raise self._used_twice(member)
        member.subscribe()

    def _used_twice(self, member: _Member) -> SourceError:
        return SourceError(
            f"another query or consumer has joined group {self._options.group} as {member.instance_id}: give "
            f"each query of a group a queryName or groupInstanceId of its own"
        )

    def _commit(self, member: _Member, offsets: Mapping[TopicPartition, Committed]) -> list[Refusal]:
        wanted: dict[tuple[str, int], OffsetAndMetadata | int] = {
            Tp(*key): OffsetAndMetadata(c.offset, c.leader_epoch, c.metadata) for key, c in offsets.items()
        }
        try:
            member.consumer.commit(wanted, timeout=COMMIT_BUDGET_S)
        except (CommitFailedError, FencedInstanceIdError) as error:
            return [Refusal(frozenset(offsets), str(error), is_fenced=True)]
        except KafkaError as error:
            return [Refusal(frozenset(offsets), str(error))]
        return []

    def _next_tenure(self) -> int:
        self._tenures += 1
        return self._tenures

    def _on_stop(self, *_: object) -> None:
        """Leave at once when Spark stops the query; others get the partitions. A second signal ends the process too."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            self.leave()
        finally:
            os._exit(0)


class _Member(RebalanceListener):
    """One consumer and its partitions; everything is paused, so that it only takes part in the group."""

    def __init__(self, settings: Mapping[str, Any], options: SourceOptions, next_tenure: Callable[[], int]) -> None:
        self.consumer = Consumer(settings)
        self.instance_id = settings["group.instance.id"]
        self.tenures: dict[TopicPartition, int] = {}
        self._next_tenure = next_tenure
        self._topics = options.topics
        self.subscribe()

    def subscribe(self) -> None:
        """Subscribe, at first or again after an error that ended the membership."""
        self.consumer.unsubscribe()
        if self._topics.pattern is None:
            self.consumer.subscribe(self._topics.names, listener=self)
        else:
            self.consumer.subscribe(pattern=anywhere(self._topics.pattern), listener=self)
        self.consumer.pause()

    def on_partitions_assigned(self, partitions: list[Tp]) -> None:
        """Start a new tenure for each of these partitions."""
        self.tenures.update({(tp.topic, tp.partition): self._next_tenure() for tp in partitions})

    def on_partitions_revoked(self, partitions: list[Tp]) -> None:
        """End the tenures of these partitions."""
        for tp in partitions:
            self.tenures.pop((tp.topic, tp.partition), None)


def anywhere(pattern: str) -> re.Pattern[str]:
    """Return a pattern that matches a whole name if the given one matches in it. Flags in front stay in force."""
    flags = re.compile(pattern).flags | re.DOTALL
    return re.compile(".*(?:" + re.sub(r"^\(\?[aiLmsux]+\)", "", pattern) + ").*", flags)


def consumer_options(options: SourceOptions, number: int) -> dict[str, Any]:
    """Return the options of member `number` in Kafka's own spelling: the read's options that a consumer has, too."""
    known = {name for option in OPTIONS for name in (option.name, *option.aliases)}
    client = without_executors(options.client)  # a member reads nothing, so where it runs decides nothing
    taken: dict[str, Any] = {name: v for name, v in client.items() if name.replace(".", "_") in known}
    provider = taken.get("sasl.oauth.token.provider")
    if isinstance(provider, str):
        taken["sasl.oauth.token.provider"] = imported(provider)
    instance = (options.member or MemberOptions()).instance_id
    client_id = options.client.get("client.id", "partita-spark")
    return taken | {
        "client.id": f"{client_id}-{number}",
        "group.id": options.group,
        "group.instance.id": f"{instance}-{number}",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
    }
