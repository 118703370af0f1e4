"""An application's hooks in a consumer: rebalance listeners and interceptors.

Callbacks run on the application's own thread or task, inside poll, unsubscribe or close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from partita.consumer.records import ConsumerRecords
from partita.consumer.request import Assigned, Event, Lost, Revoked
from partita.offsets.topic_partition import OffsetAndMetadata, TopicPartition


class RebalanceListener:
    """Subclass and override what you need; with an async consumer the methods may be `async def`."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These partitions are new here; nothing of them has been fetched yet."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These partitions go; they are still ours, and commits still succeed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These partitions are gone already and may have another owner. Unless overridden, the same as revoked."""
        return self.on_partitions_revoked(partitions)


ASSIGNED = ("on_partitions_assigned", "on_assigned", "on_assign")
REVOKED = ("on_partitions_revoked", "on_revoked", "on_revoke")
LOST = ("on_partitions_lost", "on_lost")
CALLED_FOR: dict[type[Event], tuple[str, ...]] = {Assigned: ASSIGNED, Revoked: REVOKED, Lost: LOST + REVOKED}
"""Lost partitions go to the method for revoked ones unless there is one for them."""


class AnyListener:
    """An object of whatever class with the names that clients have for these methods; the first one counts.

    The object is inspected for each call, so methods may be set on it at any time. The empty ones of
    `RebalanceListener` do not count.
    """

    def __init__(self, listener: object) -> None:
        self._listener = listener

    @property
    def has_methods(self) -> bool:
        """Is there any of the methods?"""
        return any(self.method(names) is not None for names in (ASSIGNED, REVOKED, LOST))

    @property
    def is_async(self) -> bool:
        """Does one of the methods have to be awaited?"""
        return any(iscoroutinefunction(self.method(names)) for names in (ASSIGNED, REVOKED, LOST))

    def method(self, names: tuple[str, ...]) -> Callable[[list[TopicPartition]], Any] | None:
        """The first of these methods that there is."""
        for name in names:
            method: Callable[[list[TopicPartition]], Any] | None = getattr(self._listener, name, None)
            if callable(method) and getattr(method, "__func__", None) not in _EMPTY:
                return method
        return None


_EMPTY = tuple(vars(RebalanceListener).values())


class Interceptor:
    """Sees every record before the application and every commit after it. Errors are noted and passed over."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Made with the consumer's whole configuration when given as a class."""

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """Return the records that the poll hands out instead of these."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """These offsets are committed."""

    def close(self) -> None:
        """The consumer closes."""


class Interceptors:
    """The chain, in configured order; each gets the last good value."""

    def __init__(self, given: Iterable[Any], config: Mapping[str, Any], note: Callable[[str], None]) -> None:
        self._chain = [one(config) if isinstance(one, type) else one for one in given]
        self._note = note

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """Pass the records through the chain; an interceptor that raises is noted and skipped."""
        for interceptor in self._chain:
            try:
                records = interceptor.on_consume(records)
            except Exception as error:
                self._note(f"{type(interceptor).__name__}.on_consume raised {error!r}")
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Call `on_commit` of every interceptor."""
        self._each("on_commit", offsets)

    def close(self) -> None:
        """Close every interceptor."""
        self._each("close")

    def _each(self, method: str, *arguments: Any) -> None:
        for interceptor in self._chain:
            try:
                getattr(interceptor, method)(*arguments)
            except Exception as error:
                self._note(f"{type(interceptor).__name__}.{method} raised {error!r}")
