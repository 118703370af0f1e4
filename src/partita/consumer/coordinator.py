"""Location of the group's coordinator: looked up when it is needed, forgotten when it fails (consumer.md 5.1).

One lookup in flight at most; failures are repeated with back-off. A final error is reported once per lookup that
failed, and the next lookup may succeed. `drops` names the connections the shell has to cut, so that their requests
fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.consumer.config import ConsumerConfig
from partita.consumer.metadata import Metadata
from partita.consumer.reactions import Reaction, reaction
from partita.consumer.request import Backoff, Poll, Request
from partita.errors import KafkaError, error_for
from partita.now import Now
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.metadata_view import Node

GROUP_KEY = 0
_QUICK_REFUSALS = 5


class Coordinator:
    """`node` is where to send to; `want()` has it looked up; `found_count` grows with every success."""

    def __init__(self, config: ConsumerConfig, metadata: Metadata, uniform: Callable[[float, float], float]) -> None:
        self.node: Node | None = None
        self._error: KafkaError | None = None
        self._reported = 0
        self.found_count = 0
        self.failed_count = 0
        self.drops: list[Node] = []
        self._group_id = config.group_id or ""
        self._metadata = metadata
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, uniform)
        self._is_wanted = False
        self._in_flight: Request | None = None
        self._attempts = 0
        self._not_before_ms = 0
        self._failed_ms = 0
        self._refusals = 0
        self._again_ms = int(config.values["reconnect_backoff_ms"])

    def error_since(self, failed_count: int) -> KafkaError | None:
        """The final error of the last lookup, if it failed after `failed_count` had the given value."""
        return self._error if self.failed_count > failed_count else None

    def take_error(self) -> KafkaError | None:
        """The final error of the last lookup, once."""
        error, self._reported = self.error_since(self._reported), self.failed_count
        return error

    @property
    def may_report(self) -> bool:
        """Whether a lookup has failed since `take_error`, and no coordinator is known."""
        return self.node is None and self.failed_count > self._reported

    def polled(self) -> None:
        """The application polls: while a reachable broker refuses, the first few polls do not wait for the back-off.

        Kafka's consumer begins its back-off again with every poll. A coordinator that is just being elected is found as
        fast here, and one that stays away is not asked with every poll.
        """
        if self.node is None and 0 < self._refusals <= _QUICK_REFUSALS:
            self._not_before_ms = min(self._not_before_ms, self._failed_ms + self._again_ms)

    def want(self) -> None:
        """Have the coordinator looked up, unless it is known."""
        self._is_wanted = self.node is None

    def mark_unknown(self, *, was_disconnect: bool = False) -> None:
        """Forget the node; its connection is cut unless it is gone already."""
        if self.node is None:
            return
        if not was_disconnect:
            self.drops.append(self.node)
        self.node = None

    def poll(self, now: Now, poll: Poll) -> None:
        """The FindCoordinator request to send now, if one is due."""
        if not self._is_wanted or self._in_flight is not None:
            return
        if now.mono_ms < self._not_before_ms:
            poll.wake_in(self._not_before_ms - now.mono_ms)
            return
        message = FindCoordinatorRequest(key=self._group_id, key_type=GROUP_KEY, coordinator_keys=[self._group_id])
        self._in_flight = poll.ask(Request(self, message))

    def on_response(self, request: Request, response: Any, now: Now) -> None:
        """Remember the coordinator, or try again later; a final error stays in `error`."""
        self._in_flight = None
        told = response if request.version < 4 else _one(response, self._group_id)
        if told is None or told.error_code:
            code = ErrorCode(told.error_code if told is not None else ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self._failed(code, getattr(told, "error_message", None), now)
            return
        self.node = Node(told.node_id, told.host, told.port)
        self._error = None
        self._refusals = 0
        self.found_count += 1
        self._is_wanted = False

    def on_disconnect(self, request: Request, now: Now) -> None:
        """No answer came: refresh the metadata and try again after the back-off."""
        self._in_flight = None
        self._metadata.request_update()
        self._again(now)

    def reached(self) -> None:
        """The coordinator answered: the next failure starts the back-off from its first wait."""
        self._attempts = 0

    def _failed(self, code: ErrorCode, message: str | None, now: Now) -> None:
        self._error = None
        self._refusals += 1
        if reaction("FindCoordinator", code) is Reaction.REFRESH:
            self._metadata.request_update()
        else:
            self._attempts = -1  # nothing is expected to change soon, but whoever repairs it should not wait long
            told = message or f"looking for the coordinator of group {self._group_id!r}"
            self._error = error_for(code, told, operation="READ", names=[self._group_id])
        self._again(now)

    def _again(self, now: Now) -> None:
        self.failed_count += 1
        self._attempts += 1
        self._failed_ms = now.mono_ms
        self._not_before_ms = now.mono_ms + self._backoff.after(self._attempts)


def _one(response: Any, group_id: str) -> Any:
    return next((c for c in response.coordinators if c.key == group_id), None)
