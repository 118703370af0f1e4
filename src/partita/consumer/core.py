"""The consumer's rules in one place: puts the parts together and passes facts between them.

The application's calls arrive here too. (Kafka: ConsumerNetworkThread and its request managers.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.consumer.client_core import ClientCore
from partita.consumer.config import ConsumerConfig
from partita.consumer.done_tracker import DoneTracker
from partita.consumer.group.commits import Commits
from partita.consumer.group.group_membership import GroupMembership
from partita.consumer.group.heartbeat_membership import HeartbeatMembership
from partita.consumer.group.member import Generation, Member
from partita.consumer.group.membership import Membership
from partita.consumer.partition_state import LATEST
from partita.consumer.reading.committed_offsets import NOBODY, Asker, CommittedOffsets
from partita.consumer.reading.fetch_buffer import Collected, FetchBuffer
from partita.consumer.reading.fetching import Fetching
from partita.consumer.reading.list_offsets import OffsetLookups
from partita.consumer.reading.partition_ends import PartitionEnds
from partita.consumer.reading.poll_watchdog import Watchdog
from partita.consumer.reading.positions import Positions
from partita.consumer.reading.validation import Validation
from partita.consumer.request import Backoff, Operation, Poll, Request
from partita.consumer.subscription import Subscription
from partita.now import Now
from partita.offsets.topic_partition import GroupMetadata, OffsetAndMetadata, TopicPartition
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import ZERO_UUID
from partita.wording import Note


class ConsumerCore(ClientCore):
    """`member_id` is this consumer's own id in groups of the consumer protocol."""

    membership: GroupMembership

    def __init__(self, config: ConsumerConfig, uniform: Callable[[float, float], float], member_id: str) -> None:
        super().__init__(config, uniform)
        self.subscription = Subscription()
        self.member = Member(config, self.subscription, self.metadata.view, self.events)
        self.done = DoneTracker()
        self.commits = Commits(
            self.member,
            self.coordinator,
            uniform,
            self.offsets_to_commit,
            lambda: self.metadata.missing,
            lambda topic: self._topic_ids.get(topic, ZERO_UUID),
        )
        self.membership = self._membership(uniform, member_id)
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self.committed = CommittedOffsets(config.group_id or "", self.coordinator, backoff, self._asker)
        self.lookups = OffsetLookups(
            self.metadata, backoff, read_committed=config.read_committed, timeout_ms=config.request_timeout_ms
        )
        self.positions = Positions(config, self.subscription, self.metadata, self.committed)
        self.validation = Validation(
            self.subscription, self.metadata, config.reset, config.retry_backoff_ms, config.request_timeout_ms
        )
        self.buffer = FetchBuffer(self.subscription)
        self.fetching = Fetching(config, self.subscription, self.metadata, self.positions, self.buffer, uniform)
        self.ends = PartitionEnds(self.subscription, read_committed=config.read_committed)
        self.watchdog = Watchdog(config, self.subscription, self.events)
        self._polls: tuple[Callable[[Now, Poll], None], ...] = (
            self.commits.poll,
            self.positions.poll,
            self.committed.poll,
            self.lookups.poll,
            self.validation.poll,
            self.fetching.poll,
            self.watchdog.poll,
            self.metadata.poll,
            self.coordinator.poll,
        )
        self._end_lookups: dict[TopicPartition, Operation] = {}
        self._seen_metadata = -1
        self._seen_assignment = -1
        self._seen_generation = Generation()
        self._topic_ids: dict[str, bytes] = {}
        self._to_commit: dict[TopicPartition, OffsetAndMetadata] = {}
        self._missing_topics: frozenset[str] = frozenset()
        self._missing_partitions: frozenset[TopicPartition] = frozenset()

    def _membership(self, uniform: Callable[[float, float], float], member_id: str) -> GroupMembership:
        commit = self.commits.before_rebalance
        if self.member.by_epochs:
            return HeartbeatMembership(self.member, self.metadata, self.coordinator, uniform, commit, member_id)
        return Membership(self.member, self.metadata, self.coordinator, uniform, commit)

    # The shell's side

    def poll(self, now: Now, poll: Poll | None = None) -> Poll:
        """Let every part act once; return the requests to send now and the time of the next turn."""
        self._pass_facts_along(now)
        self.membership.is_awaited = self.commits.awaits_round
        poll = Poll() if poll is None else poll
        self.membership.poll(now, poll)
        if self.membership.app_polling:
            self._take_ends()
            self.commits.auto_poll(now, poll)
        self._pass_facts_along(now)
        for poll_part in self._polls:
            poll_part(now, poll)
        return poll

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Give an answer to the part that asked for it."""
        super().on_response(request, response, now)
        self._pass_facts_along(now)

    @property
    def has_news(self) -> bool:
        """Whether a poll that waits has an event, an error or records to look at, or has to let the group go on.

        It names what `next_error` looks at without taking it, so each source of errors stands in both.
        """
        return bool(
            self.events
            or self.buffer
            or not self.membership.app_polling
            or self.refusal
            or self.member.fenced
            or self.metadata.errors
            or self.coordinator.may_report
            or self.validation.errors
            or self.positions.may_report
        )

    # The application's poll

    def begin_poll(self, now: Now) -> None:
        """The application entered its poll: from here on a rebalance may go forward."""
        self.membership.app_polling = True
        self.positions.is_started = True
        self.membership.touch(now)
        self.coordinator.polled()

    def go_on_polling(self) -> None:
        """Continue a poll that has handed out nothing so far: commits and rebalances may go forward."""
        self.membership.app_polling = True

    def hand_out(self) -> None:
        """The positions cover records that the application is still to get: no commit and no rebalance until it polls.

        Otherwise an automatic commit could cover records that were not handed out yet, and a crash would lose them.
        """
        self.membership.app_polling = False

    def end_poll(self, now: Now) -> None:
        """Note that the application has left its poll: no automatic commit and no rebalance until the next one."""
        self.membership.app_polling = False

    def next_error(self) -> BaseException | None:
        """Return the error this poll has to raise, if any."""
        error = self.take_failure()
        if error is None:
            error = self.member.fenced
        if error is None:
            error = self.look_up_error(in_group=self.subscription.is_group)
        if error is None and self.validation.errors:
            error = self.validation.errors.pop(0)
        return self.positions.error() if error is None else error

    def callback_done(self, error: BaseException | None, now: Now) -> None:
        """The application's rebalance callback for the event taken last has ended."""
        self.membership.callback_done(error, now)
        self._pass_facts_along(now)

    def collect(self, max_records: int) -> Collected:
        """Take up to `max_records` fetched records, and move the positions behind them."""
        return self.buffer.collect(max_records)

    # Facts

    def offsets_to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets of a bare commit: the application's positions, or the ends of records done without gaps."""
        if self.config.commit_done_only:
            return self.done.committable(self.subscription.assignment)
        before, found = self._to_commit, {}
        for tp, state in self.subscription.assignment.items():
            consumed = state.consumed
            if consumed is not None:
                # Of the partitions at rest it is the same object each time: making one takes three times as long.
                last = before.get(tp)
                is_same = last is not None and last.offset == consumed[0] and last.leader_epoch == consumed[1]
                found[tp] = last if last is not None and is_same else OffsetAndMetadata(*consumed)
        self._to_commit = found
        return found.copy()

    def group_metadata(self) -> GroupMetadata:
        """Generation and member id of the last completed join."""
        generation = self.member.acting_generation
        return GroupMetadata(
            self.config.group_id or "", generation.id, generation.member_id, self.config.group_instance_id
        )

    def current_lag(self, tp: TopicPartition) -> int | None:
        """The lag as known; asks for the end offset once if it is not."""
        state = self.subscription.state(tp)
        lag = state.lag(read_committed=self.config.read_committed)
        if lag is None and not state.end_offset_requested and self.metadata.view.leader(*tp) is not None:
            state.end_offset_requested = True
            self._end_lookups[tp] = self.lookups.ask({tp: LATEST.timestamp})
        return lag

    def learn_end(self, tp: TopicPartition, offset: int) -> None:
        """An end offset that came outside fetching."""
        state = self.subscription.assignment.get(tp)
        if state is not None:
            state.end_offset_requested = False
            if self.config.read_committed:
                state.last_stable_offset = offset
            else:
                state.high_watermark = offset

    def _asker(self) -> Asker:
        member = self.member
        if not member.by_epochs or not member.subscription.is_group or member.generation.is_none:
            return NOBODY
        return member.generation.member_id, member.generation.id

    def forget_subscription(self) -> None:
        """Forget the old membership, after unsubscribe."""
        self.member.joined_topics = None
        self.member.joined_generation = Generation()
        self.commits.forget_timer()
        self.buffer.drop_unassigned()

    def _take_ends(self) -> None:
        for tp, operation in list(self._end_lookups.items()):
            if operation.is_done:
                del self._end_lookups[tp]
                found = (operation.value or {}).get(tp)
                if found is not None:
                    self.learn_end(tp, found.offset)

    def _pass_facts_along(self, now: Now) -> None:
        """Pass facts from one part to the others; nothing else does."""
        # Noted as seen when all has been done: Ctrl-C may break off what is between.
        if self._seen_metadata != (updates := self.metadata.updates):
            self._match_pattern()
            self._note_missing_topics()
            self._note_missing_partitions()
            self._start_recreated_topics_over()
            self._seen_metadata = updates
        if self._seen_assignment != (version := self.subscription.version):
            self._start_recreated_topics_over()
            self.positions.forget()
            self.buffer.drop_unassigned()
            self.done.keep(self.subscription.assignment)
            self._seen_assignment = version
        self.fetching.is_stopped = self.subscription.is_group and self.member.generation.is_none
        topics = None if self.subscription.needs_all_topics else self.subscription.metadata_topics
        looked_up = self.lookups.topics
        self.metadata.want_topics(topics | looked_up if topics is not None and looked_up else topics)
        joined = self.member.joined_generation
        if self._seen_generation is not joined:
            if self._seen_generation != joined:
                self.commits.restart_timer(now)
            self._seen_generation = joined

    def _note_missing_topics(self) -> None:
        """Say once of each topic asked for that it does not exist, and again if it is gone a second time."""
        missing = self.metadata.missing & self.subscription.metadata_topics
        for topic in sorted(missing - self._missing_topics):
            told = f"topic {topic} does not exist; looking for it again until it does"
            self.events.append(Note("unknown_topic", told, {"topic": topic}))
        self._missing_topics = missing

    def _note_missing_partitions(self) -> None:
        """Say once of each assigned partition that its topic has no such partition."""
        topics = self.metadata.view.topics
        known = {tp: topics[tp.topic].partitions for tp in self.subscription.assignment if tp.topic in topics}
        missing = frozenset(tp for tp, there in known.items() if there and tp.partition >= len(there))
        for tp in sorted(missing - self._missing_partitions):
            told = f"partition {tp} does not exist; topic {tp.topic} has {len(known[tp])}. Looking for it until it does"
            self.events.append(Note("unknown_partition", told, {"topic": tp.topic, "partition": tp.partition}))
        self._missing_partitions = missing

    def _start_recreated_topics_over(self) -> None:
        """A topic with another id is another topic: no position in the old one means anything in it.

        Deviation: Partita's consumer reads a recreated topic from its start, unless an explicit commit comes before it
        notices, where Kafka's consumer continues at its old position if the new topic is long enough (KAFKA-12257).
        """
        before, self._topic_ids = self._topic_ids, {}
        for topic in {tp.topic for tp in self.subscription.assignment}:
            known, now = before.get(topic, ZERO_UUID), self.metadata.view.topic_id(topic)
            self._topic_ids[topic] = known if now == ZERO_UUID else now
            if ZERO_UUID not in (known, now) and known != now:
                self.subscription.start_over(topic)
                self.done.keep([tp for tp in self.subscription.assignment if tp.topic != topic])
                told = f"topic {topic} was deleted and created again; its partitions start from their committed offsets"
                self.events.append(Note("topic_recreated", f"{told}, or as auto_offset_reset says"))

    def _match_pattern(self) -> None:
        if self.subscription.pattern is None or not self.metadata.all_topics:
            return
        skip_internal = self.config.exclude_internal_topics
        names = [
            name
            for name, topic in self.metadata.view.topics.items()
            if not (skip_internal and topic.is_internal)
            and topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
        ]
        self.subscription.match_pattern(names)
