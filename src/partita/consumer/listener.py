"""What applications may hang on to a consumer: rebalance listeners and interceptors.

Callbacks run on the application's own thread or task, inside poll, unsubscribe or close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from partita.consumer.records import ConsumerRecords
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition


class RebalanceListener:
    """Subclass and override what you need; with an async consumer the methods may be `async def`."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """These partitions are new here; nothing of them has been fetched yet."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """These partitions go; they are still ours, and commits still succeed."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """These partitions are gone already and may have another owner. Unless overridden, the same as revoked."""
        return self.on_partitions_revoked(partitions)

    @property
    def is_async(self) -> bool:
        """Does one of the methods have to be awaited?"""
        methods = (self.on_partitions_assigned, self.on_partitions_revoked, self.on_partitions_lost)
        return any(map(iscoroutinefunction, methods))


class CallbackListener(RebalanceListener):
    """A listener made of functions."""

    def __init__(
        self,
        assigned: Callable[[list[TopicPartition]], Any] | None,
        revoked: Callable[[list[TopicPartition]], Any] | None,
        lost: Callable[[list[TopicPartition]], Any] | None,
    ) -> None:
        self._assigned, self._revoked, self._lost = assigned, revoked, lost or revoked

    @property
    def is_async(self) -> bool:
        """Does one of the functions have to be awaited?"""
        return any(map(iscoroutinefunction, (self._assigned, self._revoked, self._lost)))

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Any:
        """Call the function for assigned partitions, if there is one."""
        return self._assigned(partitions) if self._assigned else None

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Any:
        """Call the function for revoked partitions, if there is one."""
        return self._revoked(partitions) if self._revoked else None

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> Any:
        """Call the function for lost partitions; unless one was given, that for revoked ones."""
        return self._lost(partitions) if self._lost else None


class Interceptor:
    """Sees every record before the application and every commit after it. Errors are noted and passed over."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Made with the consumer's whole configuration when given as a class."""

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """What a poll returns instead of these."""
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
        """Tell every interceptor of a commit."""
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
