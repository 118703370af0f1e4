"""A request to a coordinator, in the place of the token of the broker's shard: its answer is reported on the way."""

from __future__ import annotations

from collections.abc import Callable

from partita.broker.groups.reply_gate import Call
from partita.group.contract import GroupRequest
from partita.protocol.primitives import Structure


class Asked(Call):
    """`report` is given the answer before `call`, the shard's own token, is."""

    __slots__ = ("_call", "_report", "asked_ms", "is_answered", "number")

    def __init__(
        self,
        number: int,
        request: GroupRequest,
        asked_ms: int,
        report: Callable[[Asked, Structure], None],
        call: Call | None = None,
    ) -> None:
        super().__init__(request)
        self.number = number
        self.asked_ms = asked_ms
        self.is_answered = False
        self._report = report
        self._call = call

    @property
    def wire(self) -> Structure:
        """The message that the coordinator was given."""
        return self.request.message

    @property
    def version(self) -> int:
        """The version of the client's request."""
        return self.request.version

    @property
    def client(self) -> str:
        """The name of the process that asks."""
        return self.request.client_id

    def answer(self, response: Structure) -> None:
        """Report the answer, and pass it on."""
        self._report(self, response)
        if self._call is not None:
            self._call.answer(response)
