"""The contract between connections and the answerers of their frames; both lie above this module.

A connection hands each frame to its `Answerer`. The outcome is the reply's chunks, None where no reply is due, or
`Parked`: the chunks come later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from partita.broker.wire.memo import Memo, Recall
from partita.protocol.primitives import Buffer
from partita.security.principals import KafkaPrincipal

Chunks = list[Buffer]
"""A reply, with its length in front, in pieces that are sent one after the other."""


class Parked:
    """A reply that comes later: `chunks` is set once `done`, and then `on_done` is called.

    While it `holds_back`, later requests of the connection are not begun: this one must take effect before them. One
    that `closes` is the last reply of its connection.
    """

    __slots__ = ("chunks", "closes", "done", "holds_back", "on_done")

    def __init__(self, *, holds_back: bool = False, closes: bool = False) -> None:
        self.done = False
        self.holds_back = holds_back
        self.closes = closes
        self.chunks: Chunks | None = None
        self.on_done: Callable[[], None] | None = None

    def finish(self, chunks: Chunks | None) -> None:
        """Give the reply; None where no reply is due after all."""
        self.done = True
        self.chunks = chunks
        on_done, self.on_done = self.on_done, None  # it refers to us
        if on_done is not None:
            on_done()

    def follow(self, outcome: Chunks | Parked | None) -> None:
        """Finish as this outcome does: now, or when it is done."""
        if not isinstance(outcome, Parked):
            self.finish(outcome)
        elif outcome.done:
            self.finish(outcome.chunks)
        else:
            outcome.on_done = lambda: self.finish(outcome.chunks)


class Promised(asyncio.Future[Any]):
    """An answer that comes later; `then`, if it is set, is called with it in that instant.

    Other callbacks of a future run in the loop's next turn, which costs as much as many an answer.
    """

    __slots__ = ("then",)

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self.then: Callable[[Any], None] | None = None

    def keep(self, answer: object) -> None:
        """Give the answer."""
        self.set_result(answer)
        then, self.then = self.then, None  # it refers to us
        if then is not None:
            then(answer)


class ConnectionHandle(Protocol):
    """The connection of a request, as handlers see it.

    `client_host` is printed as Kafka prints it ("/127.0.0.1"); `principal` is the peer's proven identity; `recall`
    remembers frames of this asker.
    """

    client_host: str
    client_port: int
    software: tuple[str, str]
    """Name and version of the client's software, once it has said them."""
    principal: KafkaPrincipal
    is_lent: bool
    """The peer has proved it with a delegation token."""
    closed: bool
    recall: Recall

    def identify(self, principal: KafkaPrincipal, *, is_lent: bool = False) -> None:
        """Set the principal of the peer; from now on it is answered from no other one's memory."""
        ...

    def close(self) -> None:
        """Send finished replies, then close."""
        ...

    def abort(self) -> None:
        """Close without sending the rest."""
        ...

    def refuse(self, reason: str) -> None:
        """Log the malformed input, and close the connection."""
        ...

    def answer_with(self, answerer: Answerer) -> None:
        """Let another one answer the frames that follow."""
        ...

    def mute(self, seconds: float) -> None:
        """Begin no later request of the connection until so many seconds are over; the reply under way leaves."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is gone, so that parked work can be dropped."""
        ...

    def forget(self, callback: Callable[[], None]) -> None:
        """Take back an `on_close` whose work is done."""
        ...


class Answerer(Protocol):
    """Answers the frames of the connections to one listener, or of one of them."""

    memo: Memo
    frame_bytes_min: int
    frame_bytes_max: int
    """The shortest and the longest frame that is received; others close the connection."""

    def dispatch(self, connection: ConnectionHandle, frame: Buffer) -> Chunks | Parked | None:
        """Answer one frame (without its length). Raises MalformedRequest when the connection has to be closed."""
        ...

    def complain(self, client_host: str, reason: str) -> None:
        """Log why a connection is closed; at a limited rate."""
        ...
