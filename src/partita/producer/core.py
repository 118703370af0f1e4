"""The producer's rules put together: the time of requests, and the meaning of answers for a batch.

The shell calls `add` for each record, sends what `poll` returns, and reports back with `on_response` and `on_failure`;
callbacks of what is finished are taken with `take_callbacks`. With a transactional id `transactions` holds the state of
the transaction; its requests come out of `poll` as well. (Kafka: Sender, TransactionManager.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from partita.errors import KafkaError, error_for
from partita.producer.accumulator import NO_GAP, Accumulator, PartitionQueue, sequence_after
from partita.producer.answers import TOO_LARGE, Place, Verdict, judge
from partita.producer.batch import Batch, Failure
from partita.producer.config import ProducerConfig
from partita.producer.delivery import Delivery
from partita.producer.errors import DeliveryTimeoutError, ProducerClosedError, PurgedError
from partita.producer.intake import Intake
from partita.producer.transactions.calls import Ask
from partita.producer.transactions.core import Transactions
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from partita.protocol.metadata_view import MetadataView, Node
from partita.protocol.primitives import ZERO_UUID
from partita.wording import count

NAMES_ONLY_UP_TO = 12
ADDED_BEFORE_UP_TO = 11
"""The last version of Produce whose partitions must have been added to the transaction."""
IDLE_MS = 60_000
EPOCH_MAX = 32_767


@dataclass(frozen=True, slots=True)
class Sending:
    """Batches for one node that travel in one request."""

    node_id: int
    batches: tuple[Batch, ...]
    topic_ids: dict[str, bytes]
    is_added_before: bool = False
    """The batches' partitions were added to the transaction; a newer version would add them once more."""

    @property
    def max_version(self) -> int | None:
        """The highest version that can carry it: newer ones need the ids of all topics."""
        if self.is_added_before:
            return ADDED_BEFORE_UP_TO
        return NAMES_ONLY_UP_TO if ZERO_UUID in self.topic_ids.values() else None


class Poll(NamedTuple):
    """The shell's work now, and when it must poll again at the latest."""

    sendings: list[Sending]
    topics_wanted: set[str]
    wants_producer_id: bool
    wait_ms: int
    ask: Ask | None = None


class ProducerCore:
    """One producer. Not thread safe: the shell lets one caller in at a time."""

    def __init__(self, config: ProducerConfig, view: MetadataView, draw: Callable[[int], int]) -> None:
        self.config = config
        self.view = view
        self.accumulator = Accumulator(config)
        self.in_flight: dict[int, int] = {}
        self.is_closed = False
        self.closed_because = "the producer is closed"
        self.intake = Intake(config, view, self.accumulator, draw, self._fail)
        self.has_room = self.intake.has_room
        """`has_room()` is False while the buffer is full; a caller who can wait should."""
        self.split_count = 0
        """Batches that were divided, as the broker refused them for a record or for their size."""
        self.unheard_count = 0
        """Records that failed and whose futures were never read."""
        self.last_failure: Exception | None = None
        self._producer: tuple[int, int] | None = None
        self._stale_topics: set[str] = set()
        self._callbacks: list[Callable[[], object]] = []
        self._failures: list[Failure] = []
        self.transactions = Transactions(config, view.topic_id) if config.transactional_id is not None else None

    def add(self, delivery: Delivery, now_ms: int) -> bool:
        """Take a record in; True if the shell should poll. Raises errors of the record itself."""
        self.check_open()
        if self.transactions is None:
            return self.intake.add(delivery, now_ms)
        try:
            look = self.intake.add(delivery, now_ms)
        # A record that cannot be taken is lost to the transaction, too: committing without it would break its promise.
        except KafkaError as error:
            self.transactions.on_record_failed(error)
            raise
        self.transactions.record_taken()
        return look

    def check_open(self) -> None:
        """Raise the error that forbids sending."""
        if self.is_closed:
            raise ProducerClosedError(self.closed_because)
        if self.transactions is not None:
            self.transactions.check_send()

    def refuse(self, topic: str, error: Exception) -> Exception:
        """Refuse one of many records; the others are accepted."""
        if self.transactions is not None:
            self.transactions.on_record_failed(error)
        self._failed(topic, 1, error)
        return error

    def rows_taken(self) -> None:
        """Records were put into batches."""
        if self.transactions is not None:
            self.transactions.record_taken()

    # What to do

    def poll(self, now_ms: int) -> Poll:
        """Let waiting records in, fail late ones, and gather sendable batches."""
        wait_ms = min(self.intake.unblock(now_ms), self._expire(now_ms))
        transactions = self.transactions
        if transactions is not None:
            self._producer = transactions.producer
            self.accumulator.is_completing = transactions.is_completing
            self._drop_unsent(transactions)
        wanted = self.intake.topics_wanted | self._stale_topics
        self._stale_topics.clear()
        by_node: dict[int, list[PartitionQueue]] = {}
        for queue in self.accumulator.queues.values():
            # Each look goes over all partitions. Those that wait for nothing are the many, so this comes first.
            if not queue.waiting or not self._may_drain(queue):
                continue
            if transactions is not None and not transactions.may_send(queue.topic, queue.partition):
                continue
            if not self.accumulator.is_ready(queue, now_ms):
                wait_ms = min(wait_ms, self.accumulator.ready_in_ms(queue, now_ms))
                continue
            leader = self.view.leader(queue.topic, queue.partition)
            if leader is None:
                wanted.add(queue.topic)
            else:
                by_node.setdefault(leader.id, []).append(queue)
        # Batches without a producer id could come twice, so nothing leaves until there is one.
        lacks_id = self.config.enable_idempotence and self._producer is None
        sendings = (
            [] if lacks_id else [s for node, queues in by_node.items() for s in self._sendings(node, queues, now_ms)]
        )
        if transactions is None:
            return Poll(sendings, wanted, lacks_id and bool(by_node), max(0, min(wait_ms, IDLE_MS)))
        has_unfinished = transactions.is_ending and self.count_unfinished() > 0
        ask, later_ms = transactions.poll(now_ms, has_unfinished=has_unfinished)
        return Poll(sendings, wanted, False, max(0, min(wait_ms, later_ms, IDLE_MS)), ask)

    def _drop_unsent(self, transactions: Transactions) -> None:
        """Fail waiting records of a transaction that is being aborted or cannot be committed."""
        error = transactions.drops_with()
        if error is None:
            return
        for topic in self.intake.topics_wanted:
            self.intake.fail_topic(topic, error)
        for queue in self.accumulator.queues.values():
            for batch in list(queue.waiting):
                self._finish(batch, error)

    def _may_drain(self, queue: PartitionQueue) -> bool:
        """May the next batch leave? But in transactions of version 2, brokers take any batch as the first of an epoch.

        So the first one leaves alone: if it were refused for a moment and a later one taken, it could never be sent.
        """
        if not self.config.enable_idempotence:
            return self.config.max_in_flight > 1 or not queue.in_flight
        is_checked = self.transactions is not None and self.transactions.is_version_2
        if not is_checked and not queue.is_begun and queue.in_flight:
            return False
        return queue.may_send()

    def _sendings(self, node_id: int, queues: list[PartitionQueue], now_ms: int) -> list[Sending]:
        """Requests for one node: at most one batch of a partition in each, within the limits of size and number."""
        result = []
        while queues and self.in_flight.get(node_id, 0) < self.config.max_in_flight:
            size = 0
            batches: list[Batch] = []
            left: list[PartitionQueue] = []
            for queue in queues:
                first = queue.waiting[0]
                # The first always fits: a batch larger than the limit has to be refused by the broker, or it would wait
                # for ever.
                if batches and size + first.builder.size_in_bytes > self.config.max_request_size:
                    left.append(queue)
                    continue
                size += first.builder.size_in_bytes
                batches.append(self._take(queue))
                if queue.waiting and self.accumulator.is_ready(queue, now_ms) and self._may_drain(queue):
                    left.append(queue)
            self.in_flight[node_id] = self.in_flight.get(node_id, 0) + 1
            result.append(self._sending(node_id, batches))
            queues = left
        return result

    def _take(self, queue: PartitionQueue) -> Batch:
        if self.config.enable_idempotence:
            self._prepare_sequences(queue)
        batch = queue.waiting.popleft()
        batch.is_closed = True
        # From its first attempt on a batch takes no more records: the broker may hold it already.
        batch.attempts += 1
        if self.config.enable_idempotence and not batch.is_sequenced:
            queue.give_sequence(batch)
        queue.in_flight.append(batch)
        return batch

    def _prepare_sequences(self, queue: PartitionQueue) -> None:
        assert self._producer is not None, "batches leave only once the producer has an id"
        producer_id, epoch = self._producer
        is_new = queue.producer_id < 0
        # In a transaction the coordinator gives the epoch; without one the producer raises its own.
        if self.transactions is not None:
            is_new = (queue.producer_id, queue.producer_epoch) != self._producer
        if is_new:
            queue.start_epoch(producer_id, epoch)
        elif not queue.needs_epoch(queue.waiting[0]):
            return
        # A new epoch for this partition alone. Others go on with theirs: a broker keeps the state of a producer by
        # partition.
        elif queue.producer_epoch < EPOCH_MAX:
            queue.start_epoch(queue.producer_id, queue.producer_epoch + 1)
        else:
            queue.start_epoch(producer_id, epoch)

    def _sending(self, node_id: int, batches: list[Batch]) -> Sending:
        ids = {b.topic: self.view.topic_id(b.topic) for b in batches}
        is_added = self.transactions is not None and not self.transactions.is_version_2
        return Sending(node_id, tuple(batches), ids, is_added)

    def request_for(self, sending: Sending) -> ProduceRequest:
        """Build the request; the batches are closed, so this needs no protection from `add`."""
        topics = {n: TopicProduceData(name=n, topic_id=topic_id) for n, topic_id in sending.topic_ids.items()}
        for batch in sending.batches:
            part = PartitionProduceData(index=batch.partition, records=batch.build())
            topics[batch.topic].partition_data.append(part)
        config = self.config
        return ProduceRequest(
            transactional_id=config.transactional_id,
            acks=config.acks,
            timeout_ms=config.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    # What came of it

    def on_producer_id(self, producer_id: int, producer_epoch: int) -> None:
        """The cluster gave this producer an id and an epoch; idempotent batches may leave from now on."""
        self._producer = (producer_id, producer_epoch)

    def on_response(self, sending: Sending, response: ProduceResponse | None, now_ms: int) -> None:
        """An answer came; None with acks=0, where sending is all there is."""
        self.in_flight[sending.node_id] -= 1
        if response is None:
            for batch in sending.batches:
                self._finish(batch, None)
            return
        answers = {(t.name or t.topic_id, p.index): p for t in response.responses for p in t.partition_responses}
        nodes = {n.node_id: Node(n.node_id, n.host, n.port, n.rack) for n in response.node_endpoints}
        for batch in sending.batches:
            key = (batch.topic, batch.partition)
            # By name or by id, as the version of the answer has it.
            answer = answers.get(key) or answers.get((sending.topic_ids[batch.topic], batch.partition))
            if answer is None:
                self._again(batch, error_for(ErrorCode.NETWORK_EXCEPTION, "the answer left a partition out"), now_ms)
                continue
            leader = answer.current_leader
            node = nodes.get(leader.leader_id)
            # The answer may name the new leader (KIP-951), so the batch is sent there without asking for metadata.
            self.view.move_leader(batch.topic, batch.partition, leader.leader_id, leader.leader_epoch, node)
            self._answered(batch, answer, now_ms)

    def on_failure(self, sending: Sending, error: KafkaError, now_ms: int) -> None:
        """The request could not be sent, or its answer did not come."""
        self.in_flight[sending.node_id] -= 1
        for batch in sending.batches:
            if error.retriable:
                self._again(batch, error, now_ms)
            else:
                self._finish(batch, error)

    def abandon(self, error: Exception, *, in_queue: bool = True, in_flight: bool = True) -> None:
        """Fail all unfinished records, waiting or in flight."""
        for topic in self.intake.topics_wanted if in_queue else ():
            self.intake.fail_topic(topic, error)
        for queue in self.accumulator.queues.values():
            for batch in (*(queue.in_flight if in_flight else ()), *(queue.waiting if in_queue else ())):
                self._finish(batch, error)

    def purge(self, *, in_queue: bool, in_flight: bool) -> int:
        """Fail waiting or in-flight records at the caller's request; return their number.

        What a transaction has under way is waited for, as its end must not overtake it.
        """
        before = self.count_unfinished()
        error = PurgedError("the record was purged; if it was under way, it may be in the log all the same")
        self.abandon(error, in_queue=in_queue, in_flight=in_flight and self.transactions is None)
        return before - self.count_unfinished()

    def count_unfinished(self) -> int:
        """Number of records that are neither delivered nor failed."""
        return self.intake.count_waiting() + sum(b.builder.records_count for b in self.accumulator.unfinished())

    def take_failures(self) -> list[Failure]:
        """Return the failures since the last call, for the log."""
        taken, self._failures = self._failures, []
        return taken

    def _failed(self, topic: str, records_count: int, error: Exception) -> None:
        # The end of a transaction reports what failed in it, and who purges knows.
        if self.transactions is not None or isinstance(error, PurgedError):
            return
        self._failures.append(Failure(topic, records_count, error))
        self.unheard_count += records_count
        self.last_failure = error

    def watch_unfinished(self, call: Callable[[], object]) -> int:
        """Have `call` made once for each thing not done yet; return how many there are."""
        batches, waiting = self.accumulator.unfinished(), self.intake.waiting()
        for batch in batches:
            batch.callbacks.append((-1, call))
        for delivery in waiting:
            delivery.on_done(call)
        return len(batches) + len(waiting)

    def take_callbacks(self) -> list[Callable[[], object]]:
        """Callbacks of records that finished since the last call; the shell calls them without the lock."""
        taken, self._callbacks = self._callbacks, []
        return taken if self.transactions is None else taken + self.transactions.take_callbacks()

    def _answered(self, batch: Batch, answer: PartitionProduceResponse, now_ms: int) -> None:
        queue = self.accumulator.queue(batch.topic, batch.partition)
        code = ErrorCode(answer.error_code)
        # Purged or timed out meanwhile; the late answer changes nothing.
        if batch.is_done:
            return
        named = _named(batch, answer)
        place = Place(
            is_first=queue.is_first(batch),
            is_sequenced=batch.is_sequenced,
            is_transactional=batch.is_transactional,
            is_after_gap=queue.must_bump and batch.serial >= queue.gap,
            is_single=batch.builder.records_count == 1,
        )
        verdict = judge(code, place, names_records=bool(named))
        if verdict is Verdict.DELIVERED:
            queue.is_begun |= batch.producer_epoch == queue.producer_epoch
            batch.base_offset, batch.log_append_time_ms = answer.base_offset, answer.log_append_time_ms
            self._finish(batch, None)
            return
        error = self._error(batch, code, answer.error_message)
        if verdict is Verdict.FAILED:
            self._finish(batch, error, is_refused=True)
        elif verdict is Verdict.IN_PART:
            self._refuse(batch, {text: self._error(batch, code, text) for text in named}, named)
        elif verdict is Verdict.HALVES:
            if code in TOO_LARGE:
                # Learnt for all that follow, or each batch would be refused once and sent in halves.
                queue.bytes_max = min(queue.bytes_max, batch.builder.size_in_bytes // 2)
            self._halve(batch)
        elif verdict is Verdict.BEHIND:
            batch.excused += 1
            # Out of order because an earlier one is under way: it is sent again once that one is settled, and not
            # counted as a failure.
            batch.is_behind = queue.has_earlier_in_flight(batch)
            self._again(batch, error, now_ms)
        else:
            if verdict is Verdict.NEW_EPOCH:
                self._lose_sequence(queue, batch.serial)
            self._again(batch, error, now_ms)

    def _error(self, batch: Batch, code: ErrorCode, message: str | None) -> KafkaError:
        told = f"{batch.topic}-{batch.partition}: {message or code.meaning}"
        return error_for(code, told, operation="WRITE", names=[batch.topic], user=self.config.user)

    def _halve(self, batch: Batch) -> None:
        """Send the batch as two. They share its sequence numbers, so later batches keep theirs."""
        count = batch.builder.records_count
        first, second = self._divide(batch, [range(count // 2), range(count // 2, count)])
        if batch.is_sequenced:
            first.base_sequence = batch.base_sequence
            second.base_sequence = sequence_after(first)
        self.accumulator.queue(batch.topic, batch.partition).replace(batch, [first, second])

    def _refuse(self, batch: Batch, errors: dict[str, KafkaError], named: dict[str, list[int]]) -> None:
        """Fail the records that the answer names, by their messages; the others stay together and are sent again."""
        refused = {index for places in named.values() for index in places}
        others = [index for index in range(batch.builder.records_count) if index not in refused]
        *failed, rest = self._divide(batch, [*named.values(), others])
        queue = self.accumulator.queue(batch.topic, batch.partition)
        # The rest leaves with other numbers than the broker expects: only a new epoch can say so.
        if self.transactions is None and batch.is_sequenced:
            self._lose_sequence(queue, batch.serial)
        queue.replace(batch, [rest] if others else [])
        for part, error in zip(failed, errors.values(), strict=True):
            if self.transactions is not None:
                self.transactions.on_record_failed(error, had_sequence=True)
            self._settle(part, error)
        if not others:
            self.accumulator.release(rest)

    def _divide(self, batch: Batch, groups: Sequence[Sequence[int]]) -> list[Batch]:
        parts = batch.divide(groups)
        self.split_count += 1
        self.accumulator.used_bytes += sum(part.builder.size_in_bytes for part in parts)
        self.accumulator.release(batch)
        return parts

    def _again(self, batch: Batch, error: KafkaError, now_ms: int) -> None:
        """Send the batch once more, unless its time or its attempts are used up."""
        if batch.is_done:
            return
        if error.code.refresh_metadata:
            self._stale_topics.add(batch.topic)
        drops_with = self.transactions.drops_with() if self.transactions is not None else None
        if drops_with is not None:
            self._finish(batch, drops_with)
        elif batch.own_attempts > self.config.retries:
            self._finish(batch, error)
        elif now_ms >= batch.created_ms + self.config.delivery_timeout_ms:
            self._finish(batch, self._too_late(batch, error))
        else:
            queue = self.accumulator.queue(batch.topic, batch.partition)
            queue.in_flight.remove(batch)
            # An attempt that failed for another's fault costs no back-off.
            if batch.excused < batch.attempts:
                backoff = self.config.retry_backoff_ms * 2 ** min(batch.own_attempts - 1, 20)
                batch.retry_at_ms = now_ms + min(self.config.retry_backoff_max_ms, backoff)
            batch.error = error
            # To its place, not to the end: the order of a partition is the order in which its batches were filled.
            queue.put_back(batch)

    def _lose_sequence(self, queue: PartitionQueue, gap: int = NO_GAP) -> None:
        """Numbering cannot continue: a new epoch has to start, under a new producer id if epochs run out.

        From the serial `gap` on no batch is in the log. Earlier ones may be there already and keep their numbers.
        """
        queue.must_bump = True
        queue.gap = min(queue.gap, gap)
        if queue.producer_epoch >= EPOCH_MAX:
            self._producer = None

    def _too_late(self, batch: Batch, last: Exception | None) -> DeliveryTimeoutError:
        why = f"; the last attempt failed with {last}" if last is not None else ""
        records = batch.builder.records_count
        return DeliveryTimeoutError(
            f"{count(records, 'record')} for {batch.topic}-{batch.partition} "
            f"{'was' if records == 1 else 'were'} not delivered within "
            f"{self.config.delivery_timeout_ms} ms, after {count(batch.attempts, 'attempt')}{why}"
        )

    def _finish(self, batch: Batch, error: Exception | None, *, is_refused: bool = False) -> None:
        """Finish a batch, delivered or given up. `is_refused`: the broker did not write this attempt."""
        if batch.is_done:
            return
        queue = self.accumulator.queue(batch.topic, batch.partition)
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        else:
            queue.waiting.remove(batch)
        if error is not None and self.transactions is not None:
            self.transactions.on_record_failed(error, had_sequence=batch.is_sequenced)
        elif error is not None and batch.is_sequenced:
            # Certain only of a first attempt: an earlier one may have been written and its answer lost.
            is_absent = is_refused and batch.own_attempts == 1
            self._lose_sequence(queue, batch.serial if is_absent else NO_GAP)
        self._settle(batch, error)

    def _settle(self, batch: Batch, error: Exception | None) -> None:
        batch.is_done, batch.error = True, error
        if error is not None:
            self._failed(batch.topic, batch.builder.records_count, error)
        self.accumulator.release(batch)
        # Called later and without the lock, since user code may send again.
        self._callbacks += [call for _, call in batch.callbacks]
        batch.callbacks.clear()

    def _fail(self, delivery: Delivery, error: Exception) -> None:
        record = delivery.record
        assert record is not None, "a record in a batch fails with its batch"
        delivery.error = error
        if self.transactions is not None:
            self.transactions.on_record_failed(error)
        self._failed(record.topic, 1, error)
        self._callbacks += delivery.own_callbacks

    # Time

    def _expire(self, now_ms: int) -> int:
        """Fail batches that wait too long; return the time until the next one would."""
        wait_ms = IDLE_MS
        timeout = self.config.delivery_timeout_ms
        for queue in self.accumulator.queues.values():
            while queue.waiting and queue.waiting[0].created_ms + timeout <= now_ms:
                first = queue.waiting[0]
                self._finish(first, self._too_late(first, first.error))
            if queue.waiting:
                wait_ms = min(wait_ms, queue.waiting[0].created_ms + timeout - now_ms)
        return wait_ms


def _named(batch: Batch, answer: PartitionProduceResponse) -> dict[str, list[int]]:
    """The places of the records that the answer refuses, by its message about them."""
    named: dict[str, list[int]] = {}
    found: set[int] = set()
    for one in answer.record_errors:
        index = one.batch_index
        if 0 <= index < batch.builder.records_count and index not in found:
            found.add(index)
            named.setdefault(one.batch_index_error_message or answer.error_message or "", []).append(index)
    return named
