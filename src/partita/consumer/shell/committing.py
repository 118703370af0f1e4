"""Committing offsets and reading them back, as the application calls it.

A part of `AsyncConsumer`, whose shell and core it uses. (consumer.md 2, 11.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from partita.consumer.core import ConsumerCore
from partita.consumer.group.pending_commit import Kind
from partita.consumer.shell.driver import ConsumerShell
from partita.consumer.shell.look_ups import Partitions
from partita.consumer.topic_partition import OffsetAndMetadata, TopicPartition
from partita.errors import InvalidGroupIdError

Offsets = Mapping[tuple[str, int], "OffsetAndMetadata | int"]


class Committing:
    """Calls that need a group."""

    _shell: ConsumerShell
    _core: ConsumerCore

    async def commit(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit these offsets (the next ones to read), or all positions. Returns when the group has them.

        Repeats what may pass until `timeout` seconds (default_api_timeout_ms), then raises ApiTimeoutError. Raises
        CommitFailedError when the group has moved on, RebalanceRunningError when a poll has to come first.
        """
        shell = self._shell
        wanted = self._offsets(offsets)
        with shell.owned():
            self._need_group("commit")
            deadline_ms = shell.deadline_ms(timeout)
            with shell.io.lock:
                async_sent = self._core.commits.async_sent
                operation = self._core.commits.commit(Kind.SYNC, wanted)
            started_ms = shell.now().mono_ms
            try:
                await shell.result(operation, deadline_ms, "the commit", self._core.commits.cancel)
            finally:
                shell.metrics.took("commit-sync-time-ns-total", shell.now().mono_ms - started_ms)
                await shell.until(lambda: self._core.commits.async_done >= async_sent, deadline_ms)
                await shell.dispatch()

    def commit_async(
        self, offsets: Offsets | None = None, callback: Callable[[dict[TopicPartition, Any], Any], Any] | None = None
    ) -> None:
        """Commit without waiting and without retries; `callback(offsets, error)` runs in a later poll or commit."""
        wanted = self._offsets(offsets)
        with self._shell.owned():
            self._need_group("commit_async")
            with self._shell.io.lock:
                if self._core.member.fenced is not None:
                    raise self._core.member.fenced
                self._core.commits.commit(Kind.ASYNC, wanted, callback)
                self._shell.step()

    async def committed(
        self, partitions: Partitions, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where nothing is. Raises ApiTimeoutError."""
        with self._shell.owned():
            self._need_group("committed")
            deadline_ms = self._shell.deadline_ms(timeout)
            wanted = [TopicPartition(*tp) for tp in partitions]
            if not wanted:
                return {}
            started_ms = self._shell.now().mono_ms
            with self._shell.io.lock:
                operation = self._core.committed.ask(wanted)
            found: dict[TopicPartition, OffsetAndMetadata | None] = await self._shell.result(
                operation, deadline_ms, "fetching committed offsets", self._core.committed.cancel
            )
            self._shell.metrics.took("committed-time-ns-total", self._shell.now().mono_ms - started_ms)
            return found

    # Checks

    def _need_group(self, call: str) -> None:
        if self._shell.config.group_id is None:
            raise InvalidGroupIdError(f"{call} needs a group; give the consumer a group_id")

    def _offsets(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
        if offsets is None:
            return None
        wanted = {
            TopicPartition(*tp): at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
            for tp, at in offsets.items()
        }
        for tp, at in wanted.items():
            if at.offset < 0:
                raise ValueError(f"cannot commit offset {at.offset} for {tp}; offsets are 0 or more")
        return wanted
