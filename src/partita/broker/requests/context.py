"""What a handler gets and gives: the contract of every module in `handlers/`.

    def handle(ctx: RequestContext, request: FetchRequest) -> Answer

A handler is a plain function. It returns the response; or None where the protocol has no answer (Produce with
acks=0); or an `asyncio.Future` of the response when it must wait (long polls, sync durability, parked joins).
Coroutines are accepted too and cost a task each: keep them off hot paths. Replies leave in request order whatever
completes first, so a handler never orders anything. What a handler raises is logged by `dispatch` and answered with
the API's own error response; `KafkaError` gives its code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from partita.broker.wire.listeners import PLAINTEXT

if TYPE_CHECKING:
    from partita.broker.config import BrokerConfig
    from partita.broker.nodes import Cluster, Node
    from partita.broker.topics.catalogue import TopicCatalogue
    from partita.broker.wire.listeners import Endpoint
    from partita.now import Now
    from partita.protocol.primitives import Message

Response = TypeVar("Response", bound="Message", covariant=True)
Answer: TypeAlias = "Message | Awaitable[Message | None] | None"
Handler: TypeAlias = "Callable[[RequestContext, Message], Answer]"


class ConnectionHandle(Protocol):
    """What a handler may know of the connection a request came by."""

    closed: bool

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection is gone (parked work can be dropped then)."""
        ...

    def forget(self, callback: Callable[[], None]) -> None:
        """Take back an `on_close` whose work is done."""
        ...


class RequestContext:
    """Who asks, at which version, and of which node. One object serves all equal requests of a connection: immutable.

    `client_id` is at most 256 characters ("" where the client sent null); `client_host` is printed as Kafka prints
    it ("/127.0.0.1"). `listener` names the way the client came by.
    """

    __slots__ = ("api_key", "client_host", "client_id", "connection", "listener", "node", "version")

    def __init__(
        self,
        node: Node,
        api_key: int,
        version: int,
        client_id: str,
        client_host: str,
        connection: ConnectionHandle,
        listener: str = PLAINTEXT,
    ) -> None:
        self.node = node
        self.api_key = api_key
        self.version = version
        self.client_id = client_id
        self.client_host = client_host
        self.connection = connection
        self.listener = listener

    @property
    def cluster(self) -> Cluster:
        """The nodes of this process and what they share.

        `loop`, `clock`, `config`, `catalogue` (also `catalogue.allocate_producer_id()`), `long_polls` (a
        `long_poll.LongPolls(loop, clock)`); per node `node.node_id`, `node.fetch_sessions` (a
        `fetch_sessions.FetchSessions(slots)`). A partition is served where `partition.leader == ctx.node.node_id`.
        """
        return self.node.cluster

    @property
    def catalogue(self) -> TopicCatalogue:
        return self.node.cluster.catalogue

    @property
    def config(self) -> BrokerConfig:
        return self.node.cluster.config

    def endpoint(self, node: Node) -> Endpoint:
        """Where this client finds a node: on the listener it came by."""
        return node.endpoints[self.listener]

    def now(self) -> Now:
        """This instant on the broker's clock (a test may have advanced it)."""
        return self.node.cluster.clock.now()
