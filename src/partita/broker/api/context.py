"""The contract of every module in `partita.broker.handlers`: what a handler gets and returns.

    def handle(ctx: RequestContext, request: FetchRequest) -> Answer
    def handle(ctx: RequestContext, request: MetadataRequest) -> Steps[Answer]

A handler that walks an array is a generator, and yields after each element (`partita.broker.api.slices`). Any other is
a plain function. It returns the response; or None where the protocol has no answer (Produce with
acks=0); or an `asyncio.Future` of the response when it must wait (long polls, sync durability, parked joins).
Coroutines are accepted too and cost a task each: keep them off hot paths. Replies leave in request order whichever
completes first, so a handler never orders anything. What a handler raises is logged by the dispatcher and answered
with the API's own error response; `KafkaError` gives its code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from partita.broker.wire.listeners import PLAINTEXT

if TYPE_CHECKING:
    from partita.broker.api.services import Services
    from partita.broker.config import BrokerConfig
    from partita.broker.counts.traffic import Traffic
    from partita.broker.groups.coordinators import Coordinators
    from partita.broker.nodes import Cluster, Node
    from partita.broker.permits.quotas import Quotas
    from partita.broker.permits.rights import Asking, Rights
    from partita.broker.reading.fetch_sessions import FetchSessions
    from partita.broker.reading.long_polls import LongPolls
    from partita.broker.security.delegation_tokens import DelegationTokens
    from partita.broker.security.guards import Guards
    from partita.broker.security.users import Users
    from partita.broker.topics.catalogue import TopicCatalogue
    from partita.broker.transactions.coordinators import TransactionCoordinators
    from partita.broker.wire.contract import ConnectionHandle
    from partita.broker.wire.listeners import Endpoint
    from partita.now import Now
    from partita.protocol.primitives import Message

T = TypeVar("T")
Answer: TypeAlias = "Message | Awaitable[Message | None] | None"


class RequestContext:
    """The sender of a request, its version, and the node it asks; and the services that an answer may need.

    `client_id` is at most 256 characters ("" where the client sent null); `client_host` is printed as Kafka prints it
    ("/127.0.0.1"), `host` is the address alone. `principal` is the authenticated user; `listener` names the listener of
    the connection. `request_bytes` is the size of the frame. `shortcut` is the handler's shortcut, if it has one;
    `holds_back` is set when later requests of the connection must wait for this one.
    """

    __slots__ = (
        "api_key", "client_host", "client_id", "connection", "holds_back", "listener", "node", "principal",
        "request_bytes", "services", "shortcut", "version",
    )  # fmt: skip

    def __init__(
        self,
        services: Services,
        node: Node,
        api_key: int,
        version: int,
        *,
        client_id: str,
        connection: ConnectionHandle,
        listener: str = PLAINTEXT,
        request_bytes: int = 0,
    ) -> None:
        self.services = services
        self.node = node
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
    def node_id(self) -> int:
        """The id of the node the request came to."""
        return self.node.node_id

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
        return self.services.groups()

    @property
    def transactions(self) -> TransactionCoordinators:
        """The transaction coordinators of all nodes."""
        return self.services.transactions()

    @property
    def long_polls(self) -> LongPolls:
        """Where a request waits until a log moves."""
        return self.services.long_polls()

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The fetch sessions of this node."""
        return self.services.fetch_sessions(self.node.node_id)

    @property
    def users(self) -> Users:
        """The users who may log in with a password."""
        return self.services.users()

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """The logins that users have lent."""
        return self.services.delegation_tokens()

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
        """How much clients may use; None until the first quota."""
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
        """Where this client finds a node: on the listener it came by."""
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
