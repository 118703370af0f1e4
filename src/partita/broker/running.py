"""A running broker: the cluster's state, the services behind the handlers, the sockets in front of them, and upkeep.

`partita.broker.launch` puts the parts together; here they are started and stopped in order.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from partita.broker.api.apis import SERVED
from partita.broker.api.services import Services
from partita.broker.config import BrokerConfig
from partita.broker.measuring.event_log import EventLog
from partita.broker.nodes import Cluster, Node, random_uuid
from partita.broker.requests.dispatch import Dispatcher
from partita.broker.requests.group_trace import GroupTrace
from partita.broker.requests.injected_faults import Faults
from partita.broker.security.login_log import LoginLog
from partita.broker.storage.store import Store
from partita.broker.topics.catalogue import INTERNAL_TOPICS
from partita.broker.wire.contract import Answerer
from partita.broker.wire.listeners import Endpoint, Listener
from partita.broker.wire.server import Server
from partita.lazy import later
from partita.net import names
from partita.net.names import reason
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.assignors.interface import Assignor
    from partita.broker.checks import gate
    from partita.broker.measuring import health as measuring_health
    from partita.broker.measuring import metrics as broker_metrics
    from partita.broker.security import guards as security_guards
    from partita.broker.security.ready_made import ReadyMade
else:
    broker_metrics = later("partita.broker.measuring.metrics")
    gate = later("partita.broker.checks.gate")
    measuring_health = later("partita.broker.measuring.health")
    security_guards = later("partita.broker.security.guards")

log = logging.getLogger("partita.broker")

CLOSE_WITHIN_SECONDS = 2.0
WARM_UP_AFTER_SECONDS = 0.25


class CannotListen(Exception):
    """A listener's address cannot be had; the OSError says why."""

    def __init__(self, address: Endpoint, error: OSError) -> None:
        super().__init__(address, error)
        self.errno = error.errno

    def __str__(self) -> str:
        address, error = self.args
        return f"cannot listen on {address}: {reason(error)}"


class RunningBroker:
    """Everything of one broker process. Create, start and stop it on its event loop.

    `cluster` is the state, `services` what handlers use, `faults` what a test injects, `trace` the groups whose
    requests are noted, `upkeep` what keeps the logs;
    `servers` are the listeners by node id.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: Store,
        node_count: int = 1,
        users: Mapping[str, Secret] | None = None,
        assignors: Iterable[Assignor] = (),
    ) -> None:
        """`users` may log in with these passwords, by PLAIN and SCRAM; `assignors` are those of users."""
        self.cluster = Cluster(config, store, node_count)
        self.services = Services(self.cluster, users, assignors)
        self.services.count_connections = self._connections
        self.faults = Faults(self.cluster.loop, self.cluster.notes)
        self.trace = GroupTrace(self.faults, self.cluster.notes, self._state_of, self.cluster.catalogue.name_of)
        self.upkeep = self.services.upkeep
        self.failure: str | None = None
        """Why the process is to end: the log directory has failed, and `partita.log.failure` is `exit`."""
        self._logins = LoginLog(config, self.cluster.notes, self.cluster.loop.time)
        self._on_failure: list[Callable[[], None]] = []
        store.on_failed = self._storage_failed
        self.servers: dict[int, list[Server]] = {}
        self.admin_port: int | None = None
        self.admin_token = ""
        """The token that the control endpoint asks for."""
        self.ready_made: ReadyMade | None = None
        """The security that was asked for without options, if any."""
        self.is_closing = False
        """Whether `stop` has begun."""
        self.is_complete = False
        """Whether everything has started; set by the caller of `start`."""
        self.events = EventLog(self.cluster, self.cluster.loop.time)
        """The log of events."""
        self._listeners: dict[int, list[Listener]] = {}
        self._kept_ports: dict[int, list[socket.socket]] = {}
        """Bound for nodes that are stopped."""
        self._on_stop: list[Callable[[], None]] = []
        self._token_timer: asyncio.TimerHandle | None = None

    async def start(self, listeners: Sequence[Listener]) -> None:
        """Start all nodes, the first one on these listeners; then groups load, with retriable errors to clients.

        Raises CannotListen, and ConfigError when TLS or SASL cannot be had as the options say.
        """
        cluster = self.cluster
        if any(listener.has_tls or listener.has_sasl for listener in listeners):
            services = self.services
            services.guards = security_guards.Guards(
                cluster.loop, listeners, cluster.config, services.users(), services.delegation_tokens()
            )
            if services.delegation_tokens().is_enabled:
                self._sweep_tokens()
        if not cluster.catalogue.cluster_id:
            cluster.catalogue.name_cluster(urlsafe_b64encode(random_uuid()).decode().rstrip("="))
        self.services.follow_topics()
        self.upkeep.start()
        for index, node in enumerate(cluster.nodes.values()):
            await self._listen(node, [listener.of_node(index) for listener in listeners])
        cluster.elect_for_orphans()
        cluster.is_running = True
        if any(cluster.catalogue.get(name) is not None for name in INTERNAL_TOPICS):
            cluster.loop.call_soon(self._load_groups)
        else:
            cluster.loop.call_later(WARM_UP_AFTER_SECONDS, self._load_groups)

    @cached_property
    def metrics(self) -> broker_metrics.BrokerMetrics:
        """Kafka's metrics of this process; its `registry` takes more of them."""
        return broker_metrics.BrokerMetrics(self.services, {key: api.name for key, api in SERVED.items()})

    def health(self) -> measuring_health.Health:
        """Return the health of the process, for supervisors."""
        catalogue = self.cluster.catalogue
        has_topics = any(catalogue.get(name) is not None for name in INTERNAL_TOPICS)
        shards = self.services.shard_states()
        return measuring_health.health_of(
            self.cluster.store.failure, shards, is_closing=self.is_closing, loads_soon=has_topics and not shards
        )

    def _connections(self) -> dict[tuple[int, str], int]:
        """Open connections by node and listener."""
        return {
            (node_id, listener.name): len(server.connections)
            for node_id, servers in self.servers.items()
            for listener, server in zip(self._listeners[node_id], servers, strict=True)
        }

    def _state_of(self, group_id: str) -> str:
        """The state of a group; "Dead" for one that does not exist or has no coordinator now."""
        runner = self.services.groups().runner_of(group_id)
        return "Dead" if runner is None else runner.coordinator.state_of(group_id)

    async def stop(self) -> None:
        """Resign from every group (waiting members get an answer), close connections, then the logs."""
        self.is_closing = True
        if self.is_complete:
            self.events.write("Stopping")
        for servers in self.servers.values():
            for server in servers:
                server.stop_listening()
        self.services.resign_groups()
        self.cluster.is_running = False
        for node_id in list(self._kept_ports):
            self._release_ports(node_id)
        await asyncio.gather(*(self._close(node) for node in self.cluster.nodes.values()))
        await self.services.settle_groups()
        self.services.stop_workers()
        if self._token_timer is not None:
            self._token_timer.cancel()
        await self.upkeep.stop()
        # Beside the loop: closing syncs every log, and what else lives on this loop goes on meanwhile.
        await asyncio.to_thread(self.cluster.catalogue.close)
        self.cluster.notes.close()
        for callback in self._on_stop:
            callback()
        if self.is_complete:
            self.events.write("Stopped")
        self.events.close()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the broker has stopped."""
        self._on_stop.append(callback)

    def on_failure(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the process is to end; `failure` then says why."""
        self._on_failure.append(callback)

    def _storage_failed(self, reason: str) -> None:
        """The log directory is offline (D7). Called inside the failed operation, at a stop on another thread."""
        is_fatal = self.cluster.config.text("partita.log.failure") == "exit"
        what = "the broker ends with status 1" if is_fatal else "its partitions answer KAFKA_STORAGE_ERROR"
        log.error("the log directory %s is offline, %s: %s", self.cluster.store.root, what, reason)
        self.cluster.loop.call_soon_threadsafe(self.services.storage_failed)
        if is_fatal:
            self.failure = reason
            for callback in self._on_failure:
                self.cluster.loop.call_soon_threadsafe(callback)

    async def stop_node(self, node_id: int) -> None:
        """Stop one node: its partitions move to the nodes that stay, its connections close; it keeps its ports."""
        node = self.cluster.nodes[node_id]
        node.is_alive = False
        self.cluster.move_leaders_from(node_id)
        await self._close(node)
        await self._keep_ports(node_id)
        self.cluster.notes.control("node stopped", node=node_id)

    async def start_node(self, node_id: int) -> None:
        """Start a stopped node again on its old ports. It leads leaderless partitions again. Raises CannotListen."""
        self._release_ports(node_id)
        await self._listen(self.cluster.nodes[node_id], self._listeners[node_id])
        self.cluster.elect_for_orphans()
        self.cluster.notes.control("node started", node=node_id)

    def advance_clock(self, ms: int) -> None:
        """Let the broker's clock jump forward; run due work now: sessions, waiting requests, retention."""
        self.cluster.clock.advance(ms)
        self.services.clock_jumped()
        self.upkeep.retain_now()

    async def _listen(self, node: Node, listeners: Sequence[Listener]) -> None:
        per_host: dict[str, int] = {}
        servers = self.servers[node.node_id] = []
        bound = self._listeners[node.node_id] = []
        for listener in listeners:
            dispatcher = Dispatcher(self.services, node, listener.name, self.trace)
            server = self._server(listener.name, dispatcher, per_host)
            try:
                port = await server.listen(*listener.bound)
            except OSError as error:
                raise CannotListen(listener.bound, error) from error
            servers.append(server)
            bound.append(listener._replace(bound=Endpoint(listener.bound.host, port)))
            node.endpoints[listener.name] = listener.found_at(port)
        node.is_alive = True

    def _server(self, listener: str, dispatcher: Answerer, per_host: dict[str, int]) -> Server:
        """A server with the guard of its listener in front of the dispatcher."""
        loop, guards = self.cluster.loop, self.services.guards
        sasl = None if guards is None else guards.sasl.get(listener)
        if sasl is not None:
            dispatcher = gate.SaslGate(dispatcher, sasl, loop, self._logins)
        server = Server(
            loop, dispatcher, self.cluster.config, per_host=per_host, turns=self.services.turns,
            tls=None if guards is None else guards.tls.get(listener), has_login=sasl is not None,
        )  # fmt: skip
        server.connects_too_fast = self.services.connects_too_fast
        return server

    async def _close(self, node: Node) -> None:
        """Stop listening, send finished replies, close."""
        node.is_alive = False
        servers = self.servers.pop(node.node_id, [])
        self.services.node_stopped(node.node_id)
        for server in servers:
            server.stop_listening()
        await asyncio.sleep(0)  # answers to those who waited until now are sent by callbacks
        for server in servers:
            server.close_connections()
        for _ in range(20):
            if not any(server.connections for server in servers):
                return
            await asyncio.sleep(CLOSE_WITHIN_SECONDS / 100)
        for server in servers:
            server.abort_connections()

    async def _keep_ports(self, node_id: int) -> None:
        """Connections are refused, and no other program gets a port that the node is to have again."""
        kept = self._kept_ports[node_id] = []
        for listener in self._listeners[node_id]:
            with suppress(OSError):
                kept += await names.bind(*listener.bound)

    def _release_ports(self, node_id: int) -> None:
        for kept in self._kept_ports.pop(node_id, ()):
            kept.close()

    def _sweep_tokens(self) -> None:
        """Remove the delegation tokens that have expired, now and again later."""
        tokens = self.services.delegation_tokens()
        tokens.sweep()
        self._token_timer = self.cluster.loop.call_later(tokens.sweep_seconds, self._sweep_tokens)

    def _load_groups(self) -> None:
        if self.cluster.is_running:
            self.services.load_groups()
