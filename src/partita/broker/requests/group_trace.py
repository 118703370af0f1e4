"""Notes every request of traced groups and its answer, for `partita groups trace`.

Stands before `partita.broker.requests.injected_faults`, so that a trace shows the answers that clients get, injected
ones included. While no group is traced, requests do not come here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.primitives import Message

if TYPE_CHECKING:
    from partita.broker.api.context import Answer
    from partita.broker.notes import Notes
    from partita.broker.requests.dispatch import Exchange
    from partita.broker.requests.injected_faults import Faults

REQUEST_FIELDS = (
    "member_id", "group_instance_id", "generation_id", "generation_id_or_member_epoch", "session_timeout_ms", "reason",
)  # fmt: skip
ANSWER_FIELDS = ("member_id", "generation_id", "leader", "protocol_name", "node_id")
GROUP_KEY = 0
"""The key type of a FindCoordinator request for a group; others are for a transactional id."""
_GENERATION = frozenset({"generation_id", "generation_id_or_member_epoch"})


class GroupTrace:
    """The groups being traced. `state_of` gives a group's state by name."""

    def __init__(self, faults: Faults, notes: Notes, state_of: Callable[[str], str]) -> None:
        self._faults = faults
        self._notes = notes
        self._state_of = state_of
        self._groups: set[str] = set()
        self._next = 1
        self.active = False
        """Do requests have to come here? An attribute, because every request and every repeated heartbeat asks."""
        faults.on_change = self._refresh

    def start(self, group_id: str) -> None:
        """Note the group's requests from now on."""
        self._groups.add(group_id)
        self._refresh()

    def stop(self, group_id: str) -> None:
        """Note them no longer; answers under way are left out too."""
        self._groups.discard(group_id)
        self._refresh()

    def intercept(self, exchange: Exchange) -> Answer:
        """Answer as the faults or the handler do; note request and answer if they belong to a traced group."""
        group_id = _group_of(exchange.request)
        if group_id not in self._groups:
            return self._answer(exchange)
        number, self._next = self._next, self._next + 1
        self._notes.trace("GroupRequest", group_id, exchange=number, **_asked(exchange))
        answer = self._answer(exchange)
        if isinstance(answer, Awaitable):
            future = asyncio.ensure_future(answer)
            future.add_done_callback(lambda done: self._answered(number, group_id, exchange, _result(done)))
            return future
        self._answered(number, group_id, exchange, answer)
        return answer

    def _refresh(self) -> None:
        self.active = bool(self._groups) or self._faults.active

    def _answer(self, exchange: Exchange) -> Answer:
        return self._faults.intercept(exchange) if self._faults.active else exchange.call()

    def _answered(self, number: int, group_id: str, exchange: Exchange, answer: Message | None) -> None:
        if group_id in self._groups:
            told = _told(answer) | {"state_after": self._state_of(group_id)}
            self._notes.trace("GroupAnswer", group_id, exchange=number, api=exchange.api.name,
                              client_id=exchange.ctx.client_id, **told)  # fmt: skip


def _group_of(request: Message) -> str:
    """The group that a request names: by itself, or first in a list; "" for none."""
    direct = getattr(request, "group_id", None)
    if isinstance(direct, str) and direct:
        return direct
    if isinstance(request, FindCoordinatorRequest):
        keys = request.coordinator_keys or [request.key]
        return keys[0] if request.key_type == GROUP_KEY else ""
    for group in getattr(request, "groups", None) or ():
        name = group if isinstance(group, str) else getattr(group, "group_id", "")
        return str(name)
    return ""


def _asked(exchange: Exchange) -> dict[str, Any]:
    request, ctx = exchange.request, exchange.ctx
    asked: dict[str, Any] = {"api": exchange.api.name, "version": ctx.version, "client_id": ctx.client_id}
    for name in REQUEST_FIELDS:
        value = getattr(request, name, None)
        if value not in (None, ""):
            asked["generation" if name in _GENERATION else name] = value
    if hasattr(request, "assignments"):
        asked["assignments"] = len(request.assignments)
    if hasattr(request, "members"):
        asked["member_id"] = ", ".join(member.member_id for member in request.members)
    return asked


def _told(answer: Message | None) -> dict[str, Any]:
    if answer is None:
        return {"error": "no answer"}
    told: dict[str, Any] = {"error": _first_error(answer).name}
    for name in ANSWER_FIELDS:
        value = getattr(answer, name, None)
        if value not in (None, ""):
            told["generation" if name in _GENERATION else name] = value
    for found in getattr(answer, "coordinators", ()):
        told["node_id"] = found.node_id
    if getattr(answer, "members", None):
        told["members"] = len(answer.members)  # type: ignore[attr-defined]  # JoinGroup's, and LeaveGroup's
    return told


def _first_error(answer: Any) -> ErrorCode:
    """The first error in an answer of any group API, however deep it stands. `Any`: answers have no common fields."""
    code = getattr(answer, "error_code", 0)
    if code:
        return ErrorCode(code)
    for name in ("groups", "topics", "partitions", "members", "coordinators"):
        for item in getattr(answer, name, None) or ():
            found = _first_error(item)
            if found:
                return found
    return ErrorCode.NONE


def _result(done: asyncio.Future[Message | None]) -> Message | None:
    return None if done.cancelled() or done.exception() is not None else done.result()
