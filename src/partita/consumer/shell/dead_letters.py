"""Records that cannot be read, on their way to the dead-letter topic.

At least once: a letter is acknowledged before its record counts as passed, and the offset is committed later. Exactly
once: letter and offset are committed in one transaction, which the group's coordinator refuses to a member that has
lost its place. The transactional id is random, so it fences no other consumer; a transaction that a dead process left
open is aborted by its short timeout, and the record's next owner waits for that when it fetches the committed offset.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from partita.client_options import CLIENT_OPTIONS
from partita.consumer.errors import ApiTimeoutError, CorruptRecordError, DeadLetterError, RecordDeserializationError
from partita.consumer.partition_state import UNKNOWN
from partita.consumer.shell.client_driver import ClientDriver
from partita.consumer.shell.driver import ConsumerDriver
from partita.errors import KafkaError
from partita.lazy import later
from partita.offsets.topic_partition import GroupMetadata, OffsetAndMetadata, TopicPartition
from partita.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from partita.producer.shell import client as producer_client
    from partita.producer.transactions import calls as transaction_states
else:
    producer_client = later("partita.producer.shell.client")
    transaction_states = later("partita.producer.transactions.calls")

Unreadable: TypeAlias = RecordDeserializationError | CorruptRecordError
_LARGEST = 512 << 20
_TRANSACTION_MS = 10_000
_NO_MEMBER = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)
"""Errors for offsets of a member that the group has moved on from."""


class Letter(NamedTuple):
    """A record of the dead-letter topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class LetterBox:
    """Writes letters to one topic, each acknowledged by every replica in sync. Opens a producer with the first one."""

    def __init__(self, topic: str, driver: ClientDriver[Any]) -> None:
        self.topic = topic
        self._driver = driver
        self._producer: Any = None

    async def put(self, tp: TopicPartition, offset: int, letter: Letter) -> None:
        """Return once the letter is durable. Raises DeadLetterError when it is not acknowledged."""
        await self._driver.waiter.offload(lambda: self.put_here(tp, offset, letter))

    def put_here(self, tp: TopicPartition, offset: int, letter: Letter) -> None:
        """`put`, blocking the calling thread."""
        try:
            if self._producer is None:
                self._producer = self._new_producer()
            self._producer.send(self.topic, **letter._asdict()).result()
        except KafkaError as failure:
            raise DeadLetterError(tp, offset, self.topic, failure) from failure

    def _new_producer(self, **options: Any) -> Any:
        """A producer that reaches the brokers as the consumer does, with room for the largest record there can be."""
        values = self._driver.config.values
        shared = {o.name: values[o.name] for o in CLIENT_OPTIONS if values[o.name] != o.default}
        shared["client_id"] = f"{self._driver.config.client_id}-dead-letters"
        return producer_client.Producer(
            **shared, acks="all", max_request_size=_LARGEST, buffer_memory=2 * _LARGEST, **options
        )

    def close(self) -> None:
        """Close the producer, if one was opened."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaError):  # each letter was waited for; none is lost here
                producer.close()


class DeadLetters(LetterBox):
    """The letters of a `Consumer`: `send` writes at least once, `pass_over` exactly once."""

    _driver: ConsumerDriver

    def __init__(self, topic: str, driver: ConsumerDriver) -> None:
        super().__init__(topic, driver)
        self._refused: GroupMetadata | None = None
        """Identity under which this member was refused; a heartbeat will let it know what has become of it."""

    async def send(self, error: RecordDeserializationError) -> None:
        """Send a record that could not be deserialized. Raises DeadLetterError when it is not acknowledged."""
        await self.put(error.topic_partition, error.offset, letter_of(error))

    async def send_corrupt(self, error: CorruptRecordError, end: int) -> None:
        """Send a note about a batch that could not be read; its bytes are not sent. Raises DeadLetterError."""
        await self.put(error.topic_partition, error.offset, _note_of(error, end))

    async def pass_over(self, error: Unreadable, end: int) -> bool:
        """Write the letter and commit `end` for its partition in one transaction; true once that is done.

        The position has to stand at the record, and everything before it has to be processed. False: this member may
        not commit now, as the group rebalances or has moved on; poll, and try again if the record comes again. Raises
        DeadLetterError; then the letter is not written, or the next try finds out that it was. The record stays
        unsettled until the caller has moved the position: an interruption on the way writes no second letter.
        """
        driver, core, tp = self._driver, self._driver.core, error.topic_partition
        deadline_ms = driver.deadline_ms(None)
        with driver.io.lock:
            core.hand_out()  # no automatic commit and no rebalance meanwhile
            state = core.subscription.assignment.get(tp)
        if state is None:
            return False
        if state.unsettled_at == error.offset:
            await driver.waiter.callbacks_ended(driver.config.values["default_api_timeout_ms"] / 1000)
            if await self._is_committed(tp, end, deadline_ms):
                return True
        if not await driver.until(lambda: core.commits.is_idle, deadline_ms):
            raise self._failed(error, ApiTimeoutError("earlier commits did not end in time"))
        with driver.io.lock:
            member, position = core.group_metadata(), state.position
            is_ours = core.subscription.assignment.get(tp) is state and core.commits.is_possible
            if not is_ours or member == self._refused or state.in_hand is not None:
                return False
            if position is None or position.offset != error.offset:
                return False
            state.unsettled_at = error.offset
        letter = letter_of(error) if isinstance(error, RecordDeserializationError) else _note_of(error, end)
        offsets = {tp: OffsetAndMetadata(end, position.offset_epoch)}
        outcome: list[bool] = []

        async def write() -> None:
            await driver.waiter.offload(lambda: outcome.append(self._write(error, letter, offsets, member)))

        await driver.waiter.shielded(write())
        if not outcome[0]:
            state.unsettled_at = UNKNOWN
        return outcome[0]

    async def _is_committed(self, tp: TopicPartition, end: int, deadline_ms: int) -> bool:
        """Has the group committed `end`? The answer waits for transactions that are still open."""
        core = self._driver.core
        with self._driver.io.lock:
            asked = core.committed.ask([tp])
        found = await self._driver.result(asked, deadline_ms, "fetching committed offsets", core.committed.cancel)
        committed: OffsetAndMetadata | None = found[tp]
        return committed is not None and committed.offset >= end

    def _write(
        self,
        error: Unreadable,
        letter: Letter,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        member: GroupMetadata,
    ) -> bool:
        """Commit the letter and the offsets; false if the group does not know this member as `member` any more."""
        try:
            with self._ready_producer().transaction() as producer:
                producer.send(self.topic, **letter._asdict()).result()
                producer.send_offsets_to_transaction(offsets, member)
        except KafkaError as failure:
            if _NO_MEMBER & {failure.code, getattr(failure.__cause__, "code", None)}:
                self._refused = member
                return False
            raise self._failed(error, failure) from failure
        return True

    def _ready_producer(self) -> Any:
        """A producer that can begin a transaction: another one after an error that left the last in the middle."""
        if self._producer is not None and self._producer.transaction_state is not transaction_states.State.READY:
            self.close()
        if self._producer is None:
            made_up = f"{self._driver.config.group_id}-dead-letters-{os.urandom(16).hex()}"
            self._producer = self._new_producer(transactional_id=made_up, transaction_timeout_ms=_TRANSACTION_MS)
            self._producer.init_transactions()
        return self._producer

    def _failed(self, error: Unreadable, failure: KafkaError) -> DeadLetterError:
        return DeadLetterError(error.topic_partition, error.offset, self.topic, failure)


def letter_of(error: RecordDeserializationError) -> Letter:
    """The record as it came, with where it came from and why it is here in its headers."""
    reason = f"{error.origin.lower()}: {error.__cause__}"
    place = where_from(error.topic_partition, error.offset, reason)
    return Letter(error.raw_key, error.raw_value, [*error.headers, *place])


def _note_of(error: CorruptRecordError, end: int) -> Letter:
    place = where_from(error.topic_partition, error.offset, f"{error}; offsets up to {end - 1} skipped")
    return Letter(None, None, place)


def where_from(tp: TopicPartition, offset: int, reason: str) -> list[tuple[str, bytes | None]]:
    """The headers of a letter that say where it came from, and why."""
    return [
        ("dead-letter-topic", tp.topic.encode()),
        ("dead-letter-partition", str(tp.partition).encode()),
        ("dead-letter-offset", str(offset).encode()),
        ("dead-letter-reason", reason.encode()),
    ]
