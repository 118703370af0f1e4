"""Checks what leaders store of the share partitions. Raises RuleBroken.

SI4 nothing is stored as accepted that no member accepted, nor as given up that no member rejected and that was not
given as often as the limit; SI5 the start never moves back while one leader writes, and passes only what is done with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from partita.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from partita.protocol.primitives import Message
from partita.share.partition.model import RecordState
from partita.sim.rules.rule import RuleBroken, must
from partita.sim.sharing.ledger import ACCEPT, REJECT, Ledger


class Watch:
    """The share coordinator as leaders see it, beside the real one."""

    def __init__(self, ledger: Ledger, limit: int) -> None:
        self._ledger = ledger
        self._limit = limit
        self._starts: dict[tuple[int, int], int] = {}
        """The start that a leader wrote, by partition and leader epoch."""
        self._done: set[tuple[int, int]] = set()
        """Records that were stored as done with."""
        self.starts: dict[int, int] = {}
        """The newest start of each partition that is stored."""
        self.ask: Callable[[Message], Awaitable[Any]]
        """The share coordinator itself."""
        self.broken: RuleBroken | None = None
        """The first rule that did not hold. Raised here, the broker would hide it."""

    async def answer(self, request: Message) -> Any:
        """Let the coordinator answer; check what a leader stores."""
        if not isinstance(request, WriteShareGroupStateRequest):
            return await self.ask(request)
        rows = [
            (part.partition, row) for topic in request.topics for part in topic.partitions for row in part.state_batches
        ]
        for partition, row in rows:
            for offset in range(row.first_offset, row.last_offset + 1):
                self._hold(self._look, (partition, offset), row.delivery_state, row.delivery_count)
        answer = await self.ask(request)
        for topic, result in zip(request.topics, answer.results, strict=True):
            for part, outcome in zip(topic.partitions, result.partitions, strict=True):
                if not outcome.error_code:
                    self._hold(self._check_start, part.partition, part.leader_epoch, part.start_offset)
        return answer

    def _hold(self, check: Callable[..., None], *about: Any) -> None:
        try:
            check(*about)
        except RuleBroken as error:
            self.broken = self.broken or error

    def _look(self, where: tuple[int, int], state: int, count: int) -> None:
        asked = self._ledger.fate(where).asked
        if state == RecordState.ACKNOWLEDGED:
            must(ACCEPT in asked, "SI4", f"record {where} is stored as accepted, and no member accepted it")
        elif state in (RecordState.ARCHIVED, RecordState.ARCHIVING):
            is_over = count >= self._limit or REJECT in asked
            must(is_over, "SI4", f"record {where} is given up after {count} deliveries, and no member rejected it")
        if state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED):
            self._done.add(where)

    def _check_start(self, partition: int, leader_epoch: int, start: int) -> None:
        before = self._starts.get((partition, leader_epoch), 0)
        must(start >= before, "SI5", f"the start of partition {partition} moves back from {before} to {start}")
        passed = [offset for offset in range(before, start) if (partition, offset) not in self._done]
        must(not passed, "SI5", f"the start of partition {partition} passes {passed[:3]}, which are not done with")
        self._starts[partition, leader_epoch] = start
        self.starts[partition] = max(start, self.starts.get(partition, 0))
