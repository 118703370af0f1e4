"""The contract of every module in `partita.broker.handlers`: arguments and results of a handler.

    def handle(ctx: RequestContext, request: FetchRequest) -> Answer
    def handle(ctx: RequestContext, request: MetadataRequest) -> Steps[Answer]

A handler that walks an array is a generator: it yields None after each element, where others may have their turn, or an
awaitable whose result it needs. How many elements are one slice is decided here, by the clock; short work ends within
its first slice and costs little. Any other handler is a plain function. It returns the response; or None where the
protocol has no answer (Produce with acks=0); or an `asyncio.Future` of the response when it must wait (long polls, sync
durability, parked joins). Coroutines are accepted too and cost a task each: keep them off hot paths. Replies leave in
request order whichever completes first, so a handler never orders anything. The dispatcher logs a handler's error and
answers with the API's own error response; `KafkaError` gives its code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from partita.broker.wire.listeners import PLAINTEXT
from partita.broker.wire.turns import SLICE_SECONDS

if TYPE_CHECKING:
    from partita.broker.api.services import Services
    from partita.broker.client_metrics.clients import ClientMetrics
    from partita.broker.config import BrokerConfig
    from partita.broker.counts import Traffic
    from partita.broker.groups.coordinators import Coordinators
    from partita.broker.nodes import Cluster, Node
    from partita.broker.permits.quotas import Quotas
    from partita.broker.permits.rights import Asking, Rights
    from partita.broker.reading.fetch_sessions import FetchSessions
    from partita.broker.reading.long_polls import LongPolls
    from partita.broker.security.delegation_tokens import DelegationTokens
    from partita.broker.security.guards import Guards
    from partita.broker.security.users import Users
    from partita.broker.share.node import ShareNode
    from partita.broker.share_states.coordinators import ShareStates
    from partita.broker.topics.catalogue import TopicCatalogue
    from partita.broker.transactions.coordinators import TransactionCoordinators
    from partita.broker.wire.contract import ConnectionHandle
    from partita.broker.wire.listeners import Endpoint
    from partita.broker.wire.turns import Turns
    from partita.now import Now
    from partita.protocol.primitives import Message


T = TypeVar("T")
R = TypeVar("R")
Answer: TypeAlias = "Message | Awaitable[Message | None] | None"


class RequestContext:
    """The sender of a request, its version, and the node it asks; and the services that an answer may need.

    `node_id` is the node's. `client_id` is at most 256 characters ("" where the client sent null); `client_host` is
    printed as Kafka prints it ("/127.0.0.1"), `host` is the address alone. `principal` is the authenticated user;
    `listener` names the listener of the connection. `request_bytes` is the size of the frame. `shortcut` is the
    handler's shortcut, if it has one; `holds_back` is set when later requests of the connection must wait for this one.
    """

    __slots__ = (
        "api_key", "client_host", "client_id", "connection", "holds_back", "listener", "node", "node_id", "principal",
        "request_bytes", "services", "shortcut", "version",
    )  # fmt: skip

    def __init__(
        self,
        services: Services,
        node: Node,
        api_key: int,
        version: int,
        client_id: str,
        connection: ConnectionHandle,
        listener: str = PLAINTEXT,
        request_bytes: int = 0,
    ) -> None:
        self.services = services
        self.node = node
        self.node_id = node.node_id
        self.api_key = api_key
        self.version = version
        self.client_id = client_id
        self.client_host = connection.client_host
        self.principal = connection.principal
        self.connection = connection
        self.listener = listener
        self.request_bytes = request_bytes
        self.holds_back = False
        self.shortcut: Callable[[], int] | None = None

    @property
    def asking(self) -> Asking | None:
        """The rights of the client; None without an authorizer, when everything is allowed."""
        rights = self.services.rights
        return None if rights is None else rights.asked_by(self.principal, self.host, self.api_key, self.version)

    @property
    def host(self) -> str:
        """The client's address, as access rules name it."""
        return self.client_host.removeprefix("/")

    @property
    def cluster(self) -> Cluster:
        """The nodes of this process and their shared state. A partition is served where its leader is `node_id`."""
        return self.services.cluster

    @property
    def catalogue(self) -> TopicCatalogue:
        """The topics."""
        return self.services.cluster.catalogue

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings."""
        return self.services.cluster.config

    @property
    def stopwatch(self) -> Callable[[], float]:
        """Seconds, to end a long turn of the event loop in time."""
        return self.services.turns.clock

    @property
    def groups(self) -> Coordinators:
        """The group coordinators of all nodes; `Coordinators.ask` answers requests about one group."""
        groups = self.services.groups
        return groups.made or groups()  # no call on the way of every group request

    @property
    def transactions(self) -> TransactionCoordinators:
        """The transaction coordinators of all nodes."""
        return self.services.transactions()

    @property
    def share_states(self) -> ShareStates:
        """The share coordinators of all nodes."""
        return self.services.share_states()

    @property
    def long_polls(self) -> LongPolls:
        """Waiting place of requests until a log moves."""
        return self.services.long_polls()

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The fetch sessions of this node."""
        return self.services.fetch_sessions(self.node.node_id)

    @property
    def share(self) -> ShareNode:
        """The share groups of this node, where they are served."""
        node = self.services.share_node(self.node.node_id)
        assert node is not None, "the handler has asked whether share groups are served"
        return node

    @property
    def users(self) -> Users:
        """The users who may log in with a password."""
        return self.services.users()

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """The logins that users have lent."""
        return self.services.delegation_tokens()

    @property
    def client_metrics(self) -> ClientMetrics:
        """The clients that push metrics."""
        return self.services.client_metrics()

    @property
    def rights(self) -> Rights | None:
        """The ACLs; None without an authorizer."""
        return self.services.rights

    @property
    def guards(self) -> Guards | None:
        """The guards of the listeners; None when none of them speaks TLS or SASL."""
        return self.services.guards

    @property
    def quotas(self) -> Quotas | None:
        """Quotas of clients; None until the first quota."""
        return self.services.quotas

    @property
    def traffic(self) -> Traffic:
        """The counters of records, bytes and requests."""
        return self.services.traffic

    def make_quotas(self) -> Quotas:
        """The quotas, to change them: there may be none yet."""
        return self.services.make_quotas()

    def offsets_forgotten(self, topics: list[str]) -> asyncio.Future[None] | None:
        """Return a future that ends once committed offsets of deleted topics are durably gone; None when they are."""
        return self.services.offsets_forgotten(topics)

    def durable(self) -> asyncio.Future[None] | None:
        """Return a future that ends once everything written so far is durable; None when it is already."""
        return self.services.upkeep.durable()

    def run_beside(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run long work beside the event loop. Meanwhile later requests of the connection wait, as in Kafka."""
        self.holds_back = True
        return self.services.workers().run(work)

    def when_durable(self, response: Message, *, timeout_ms: int = 0, late: Callable[[], None] | None = None) -> Answer:
        """The response, once everything written so far is durable; at once when it is already.

        After `timeout_ms`, if that is more than 0, it leaves as `late()` has changed it, and the change goes on.
        Raises StorageError, or lets the answer end with it, when the log directory is offline.
        """
        waiting = self.durable()
        if waiting is None:
            return response
        self.holds_back = True
        if late is None or timeout_ms <= 0:
            return _after(waiting, response)
        return _within(timeout_ms, waiting, response, late)

    def endpoint(self, node: Node) -> Endpoint:
        """Address of a node for this client: on the listener it came by."""
        return node.endpoints[self.listener]

    def now(self) -> Now:
        """This instant on the broker's clock (a test may have advanced it)."""
        return self.services.cluster.clock.now()

    def offer_shortcut(self, answer: Callable[[], int]) -> None:
        """Let `answer` say the error code whenever this asker sends this very request again.

        It returns `partita.broker.wire.memo.DECODE_IT` when the handler has to be asked. For responses that consist of
        an error code alone.
        """
        self.shortcut = answer


async def _after(waiting: Awaitable[None], response: Message) -> Message:
    await waiting
    return response


async def _within(timeout_ms: int, waiting: Awaitable[None], response: Message, late: Callable[[], None]) -> Message:
    try:
        await asyncio.wait_for(waiting, timeout_ms / 1000)
    except TimeoutError:
        late()
    return response


Waits = Awaitable[Any] | None
"""The value that a step yields. `Any`: each awaitable gives the result that its step expects."""
Steps = Generator[Waits, Any, T]
Handler: TypeAlias = "Callable[[RequestContext, Message], Answer | Steps[Answer]]"

AT_ONCE = 250
"""Number of partitions of one group that are asked about, or committed, without slices."""


def handled(ctx: RequestContext, handler: Handler, request: Message) -> Answer:
    """The handler's answer. If it answers in steps, one slice of them is run at once, and a future runs the rest.

    Meanwhile later requests of the connection wait: as in Kafka it has one request under way at a time.
    """
    answer: Any = handler(ctx, request)
    if isinstance(answer, GeneratorType):
        return _run(ctx, answer)
    response: Answer = answer
    return response


def _run(ctx: RequestContext, steps: Steps[Answer]) -> Answer:
    turns = ctx.services.turns
    try:
        waits = _slice(turns, steps, steps.__next__)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    ctx.holds_back = True
    rest = _Rest(turns, steps, ctx.services.cluster.loop.create_future())
    rest.wait(waits)
    return rest.result


def settled(answer: Any) -> Steps[Any]:
    """Yield as a last step: returns the answer itself, or its result when it is awaitable."""
    return (yield answer) if isinstance(answer, Awaitable) else answer


def _slice(turns: Turns, steps: Steps[Any], resume: Callable[[], Waits]) -> Waits:
    """Take steps until the slice is over, or something has to be awaited. Raises StopIteration with the result."""
    # Wall time is never less than CPU time, and far cheaper to read; a busy machine makes slices shorter, not longer.
    clock = turns.clock
    end = clock() + SLICE_SECONDS
    waits = resume()
    while waits is None and clock() < end:
        waits = next(steps)
    return waits


class _Rest:
    """Steps that go on whenever it is their turn, in one line with the connections that have requests left."""

    def __init__(self, turns: Turns, steps: Steps[Any], result: asyncio.Future[Any]) -> None:
        self._turns = turns
        self._steps = steps
        self.result = result

    def wait(self, waits: Waits) -> None:
        """Get in line, at once or when the awaited result is there."""
        if waits is None:
            self._turns.wait(lambda: self._go_on(self._steps.__next__))
        else:
            asyncio.ensure_future(waits).add_done_callback(self._got)

    def _got(self, done: asyncio.Future[Any]) -> None:
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        if failure is None:
            self._turns.wait(lambda: self._go_on(lambda: self._steps.send(done.result())))
        else:
            self._turns.wait(lambda: self._go_on(lambda: self._steps.throw(failure)))

    def _go_on(self, resume: Callable[[], Waits]) -> None:
        try:
            waits = _slice(self._turns, self._steps, resume)
        except StopIteration as done:
            self._end(done.value)
        except asyncio.CancelledError:
            self.result.cancel()
        except Exception as error:
            self._end(error)
        else:
            self.wait(waits)

    def _end(self, outcome: Any) -> None:
        if self.result.done():
            return  # nobody waits for it any more
        if isinstance(outcome, Exception):
            self.result.set_exception(outcome)
        elif isinstance(outcome, Awaitable):
            asyncio.ensure_future(outcome).add_done_callback(self._settle)
        else:
            self.result.set_result(outcome)

    def _settle(self, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self.result.cancel()
        else:
            self._end(done.exception() or done.result())


def when_all(parts: Sequence[T | asyncio.Future[T]], merge: Callable[[list[T]], R]) -> R | Awaitable[R]:
    """`merge` of all parts: at once when none of them is a future, else once the last one is done."""
    if not any(isinstance(part, asyncio.Future) for part in parts):
        return merge([part for part in parts if not isinstance(part, asyncio.Future)])

    async def later() -> R:
        return merge([await part if isinstance(part, asyncio.Future) else part for part in parts])

    return later()
