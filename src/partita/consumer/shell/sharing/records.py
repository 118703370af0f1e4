"""A record that this member of a share group holds, with the calls that acknowledge it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from partita.consumer.records import ConsumerRecord, ConsumerRecords, K, V

if TYPE_CHECKING:
    from types import TracebackType

    from partita.consumer.sharing.holding import Hold
    from partita.consumer.shell.sharing.acknowledging import Acknowledging


class ShareRecord(ConsumerRecord[K, V]):
    """A record of a share group. `delivery_count` is 1 the first time that a member gets it.

    `with record:` (or `async with`) accepts it at the end of the block, and releases it if an exception leaves the
    block; the lock is renewed meanwhile. In explicit mode only.
    """

    __slots__ = ("_acknowledging", "_hold", "delivery_count")

    delivery_count: int
    _hold: Hold
    _acknowledging: Acknowledging

    @classmethod
    def _of(cls, hold: Hold, key: Any, value: Any, acknowledging: Acknowledging) -> Self:
        raw = hold.record
        made = cls(
            raw.topic, raw.partition, raw.offset, raw.timestamp, raw.timestamp_type, key, value, raw.headers,
            raw.leader_epoch, raw.serialized_key_size, raw.serialized_value_size,
        )  # fmt: skip
        made.delivery_count, made._hold, made._acknowledging = hold.delivery_count, hold, acknowledging
        return made

    def accept(self) -> None:
        """The record is done: it is never delivered again."""
        self._acknowledging.say(self._hold, "accept")

    def release(self) -> None:
        """Give the record back: another member, or this one, gets it again, until the group's delivery limit."""
        self._acknowledging.say(self._hold, "release")

    def reject(self) -> None:
        """Give the record up: it is never delivered again. `dead_letter` of the consumer keeps a copy first."""
        self._acknowledging.say(self._hold, "reject")

    def renew(self) -> None:
        """Lock the record for another while; the next poll gives it again, first."""
        self._acknowledging.say(self._hold, "renew")

    def rejecting(self, *errors: type[Exception]) -> Rejecting:
        """`with record.rejecting(ValueError):` as `with record:`, but these exceptions reject the record and end here.

        With a dead_letter_topic the record is durable there before it is rejected.
        """
        return Rejecting(self, errors)

    def __enter__(self) -> Self:
        self._acknowledging.begin(self._hold)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        return self._acknowledging.end_here(self._hold, error, ())

    async def __aenter__(self) -> Self:
        self._acknowledging.begin(self._hold)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        return await self._acknowledging.end(self._hold, error, ())


class Rejecting:
    """The block of `record.rejecting(...)`."""

    def __init__(self, record: ShareRecord[Any, Any], errors: tuple[type[Exception], ...]) -> None:
        wrong = [one for one in errors if not (isinstance(one, type) and issubclass(one, Exception))]
        if wrong or not errors:
            raise TypeError(f"rejecting takes classes of exceptions such as ValueError, not {wrong or 'nothing'}")
        self._record = record
        self._errors = errors

    def __enter__(self) -> None:
        self._record.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        return self._record._acknowledging.end_here(self._record._hold, error, self._errors)

    async def __aenter__(self) -> None:
        self._record.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        return await self._record._acknowledging.end(self._record._hold, error, self._errors)


class ShareRecords(ConsumerRecords[K, V]):
    """The records of one poll of a share consumer, partition after partition."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[ShareRecord[K, V]]: ...
