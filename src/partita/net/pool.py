"""One connection per node (or per purpose), opened when needed, with back-off after failures.

Keys are the caller's: a node id, or anything else that deserves a connection of its own (the coordinator's, so that
heartbeats never queue behind fetches). Back-off doubles per failure with jitter and resets on success; the setup
timeout doubles likewise. (Kafka: NetworkClient, ClusterConnectionStates.)
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from partita.errors import AuthenticationError, KafkaError, TlsError
from partita.net import refusals
from partita.net.access import Access
from partita.net.config import ClientConfig, backoff_ms
from partita.net.connection import Connection
from partita.net.errors import Disconnected
from partita.net.metrics import NetworkMetrics
from partita.protocol.metadata_view import Node

_IDLE_LOOK_S = 1.0
"""Connections are looked at once in so long at most."""


@dataclass(slots=True)
class _Slot:
    address: tuple[str, int] = ("", 0)
    connection: Connection | None = None
    failures: int = 0
    not_before: float = 0.0
    suspicions: int = 0
    explanation: AuthenticationError | None = None
    opening: asyncio.Task[Connection] | None = field(default=None)


class ConnectionPool:
    """Hands out open connections; belongs to one event loop."""

    def __init__(self, config: ClientConfig, access: Access | None = None) -> None:
        self.config = config
        self._access = access or Access(config.security)
        self.metrics: NetworkMetrics | None = None
        """Where connections and their traffic are counted, if anywhere; set it before the first connection."""
        self._slots: dict[Hashable, _Slot] = {}
        self._is_closed = False
        self._was_answered = False
        self._idle_timer: asyncio.TimerHandle | None = None

    def open_connection(self, key: Hashable) -> Connection | None:
        """The connection of `key` if it is open right now."""
        slot = self._slots.get(key)
        if slot is None or slot.connection is None or not slot.connection.is_open:
            return None
        return slot.connection

    def wait_ms(self, key: Hashable) -> float:
        """How long `key` is still in back-off; 0 when a connection may be tried."""
        slot = self._slots.get(key)
        if slot is None:
            return 0.0
        return max(0.0, (slot.not_before - asyncio.get_running_loop().time()) * 1000)

    def prepare(self, key: Hashable, host: str, port: int) -> None:
        """Begin to connect, if nobody has: the connection will be wanted soon. What fails is tried again then."""
        if key not in self._slots:
            slot = self._slots[key] = _Slot((host, port))
            slot.opening = asyncio.get_running_loop().create_task(self._open(key, slot))
            slot.opening.add_done_callback(_heard)

    async def connect(self, key: Hashable, host: str, port: int) -> Connection:
        """The open connection of `key`, made if need be; waits out a back-off first.

        Raises Disconnected, AuthenticationError, VersionMismatch.
        """
        slot = self._slots.setdefault(key, _Slot())
        if slot.address != (host, port):
            self.drop(key)
            slot.address = (host, port)
            slot.failures, slot.not_before = 0, 0.0
        if slot.connection is not None and slot.connection.is_open:
            return slot.connection
        first = self.open_connection(("bootstrap", host, port))
        if first is not None:
            return self._take_over(first, key, slot)
        if slot.opening is None or slot.opening.done():
            slot.opening = asyncio.get_running_loop().create_task(self._open(key, slot))
            slot.opening.add_done_callback(_heard)
        opening = slot.opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled() and not _is_being_cancelled():
                # `drop` cancelled the opening, nobody cancelled this caller: its request is lost, and it must hear so.
                raise Disconnected(f"the connection to {host}:{port} was dropped while it was being opened") from None
            raise

    def _take_over(self, first: Connection, key: Hashable, slot: _Slot) -> Connection:
        """The connection that found the cluster serves the first node that turns out to have its address."""
        self._slots["bootstrap", *slot.address].connection = None
        slot.connection, slot.failures, slot.not_before = first, 0, 0.0
        if self.metrics is not None:
            first.traffic = self.metrics.traffic(key)
        return first

    async def connect_any(self, nodes: Iterable[Node], bootstrap: Iterable[tuple[str, int]]) -> Connection:
        """The least loaded open connection, else one to the first node or bootstrap server that answers.

        Raises Disconnected, or AuthenticationError when none can be had and at least one broker refuses us.
        """
        known = [(node.id, node.host, node.port) for node in nodes]
        random.shuffle(known)
        candidates: list[tuple[Hashable, str, int]] = [*known]
        candidates += [(("bootstrap", host, port), host, port) for host, port in bootstrap]
        is_open = [c for key, _, _ in candidates if (c := self.open_connection(key)) is not None]
        if is_open:
            return min(is_open, key=lambda connection: connection.in_flight_count)
        failures: dict[str, KafkaError] = {}
        for key, host, port in sorted(candidates, key=lambda candidate: self.wait_ms(candidate[0])):
            try:
                return await self.connect(key, host, port)
            except (Disconnected, AuthenticationError) as error:
                failures[str(error)] = error
        refused = [error for error in failures.values() if isinstance(error, AuthenticationError)]
        if refused or len(failures) == 1:
            raise refused[0] if refused else next(iter(failures.values()))
        raise Disconnected("; ".join(failures) or "no node to connect to")

    def drop(self, key: Hashable) -> None:
        """Close the connection of `key`; what it waits for fails."""
        slot = self._slots.get(key)
        if slot is None:
            return
        if slot.opening is not None:
            slot.opening.cancel()
            slot.opening = None
        if slot.connection is not None:
            slot.connection.close()
            slot.connection = None

    def _watch_idle(self) -> None:
        """Look again when the connection that was used least lately may have been idle for connections.max.idle.ms."""
        idle_s = self.config.connections_max_idle_ms / 1000
        used = [connection.last_used for connection in self._open_ones()]
        if self._idle_timer is None and used and idle_s >= 0:
            loop = asyncio.get_running_loop()
            when = max(min(used) + idle_s, loop.time() + min(idle_s, _IDLE_LOOK_S))
            self._idle_timer = loop.call_at(when, self._close_idle)

    def _close_idle(self) -> None:
        """Close what nobody has used for so long, before the broker does it in the middle of a request."""
        self._idle_timer = None
        oldest = asyncio.get_running_loop().time() - self.config.connections_max_idle_ms / 1000
        for key, slot in self._slots.items():
            connection = slot.connection
            if connection and connection.is_open and not connection.in_flight_count and connection.last_used <= oldest:
                self.drop(key)
        self._watch_idle()

    def _open_ones(self) -> list[Connection]:
        connections = (slot.connection for slot in self._slots.values())
        return [connection for connection in connections if connection is not None and connection.is_open]

    @property
    def open_count(self) -> int:
        """How many connections are open."""
        return len(self._open_ones())

    def in_flight_count(self, key: Hashable) -> int:
        """How many requests wait for an answer on this connection; 0 when it is not open."""
        connection = self.open_connection(key)
        return 0 if connection is None else connection.in_flight_count

    def close(self) -> None:
        """Close every connection, open or opening; none can be opened afterwards."""
        self._is_closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for key in list(self._slots):
            self.drop(key)
        self._access.close()

    async def _open(self, key: Hashable, slot: _Slot) -> Connection:
        loop = asyncio.get_running_loop()
        wait = slot.not_before - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        if self._is_closed:
            raise Disconnected("the client is closed")
        if slot.suspicions >= refusals.SUSPICIONS_MAX and slot.explanation is not None:
            slot.suspicions -= 1
            raise slot.explanation
        host, port = slot.address
        config = self.config
        setup = min(
            config.socket_connection_setup_timeout_ms * 2 ** min(slot.failures, 10),
            config.socket_connection_setup_timeout_max_ms,
        )
        try:
            connection = await Connection.open(
                host, port, config, access=self._access, setup_timeout_ms=setup, like=self._like(slot.address)
            )
        except refusals.Suspected as error:
            self._failed(slot)
            if self._suspects(slot, error.explanation):
                raise error.explanation from None
            raise
        except TlsError as error:
            self._failed(slot)
            raise type(error)(f"{error.args[0]}{_told_by_cluster(key)}") from None
        except AuthenticationError:
            self._count("failed-authentication")
            self._failed(slot)
            raise
        except Disconnected:
            self._failed(slot)
            raise
        slot.failures, slot.not_before = 0, 0.0
        slot.connection = connection
        self._opened(key, connection)
        self._watch_idle()
        connection.closed.add_done_callback(lambda _: self._lost(connection))
        return connection

    def _like(self, address: tuple[str, int]) -> Connection | None:
        """A connection to the same address over which the broker has answered."""
        open_ones = (slot.connection for slot in self._slots.values() if slot.address == address)
        return next((c for c in open_ones if c is not None and c.is_open and c.was_answered and c.is_typical), None)

    def _opened(self, key: Hashable, connection: Connection) -> None:
        self._count("connection-creation")
        if self.metrics is not None:
            connection.traffic = self.metrics.traffic(key)
            if self.config.security.protocol != "PLAINTEXT":
                now_ms = asyncio.get_running_loop().time() * 1000
                self.metrics.authenticated(now_ms, is_renewed=connection.has_login_that_ends)

    def _count(self, what: str) -> None:
        if self.metrics is not None:
            self.metrics.count(what, asyncio.get_running_loop().time() * 1000)

    def _lost(self, connection: Connection) -> None:
        self._count("connection-close")
        self._was_answered = self._was_answered or connection.was_answered
        slot = next((slot for slot in self._slots.values() if slot.connection is connection), None)
        if slot is not None:
            slot.connection = None
            self._failed(slot)
            if connection.was_cut_off:
                protocol = self._access.security.protocol
                self._suspects(slot, refusals.closed_after_first_request(connection.address, protocol))
            else:
                slot.suspicions = 0

    def _suspects(self, slot: _Slot, explanation: AuthenticationError) -> bool:
        """Count a suspicious end; True when there were enough in a row to say what they mean.

        Once any broker of the cluster has answered, the options are right, and the end is only a broker that is away.
        """
        if self._is_proven():
            slot.suspicions = 0
            return False
        slot.suspicions += 1
        slot.explanation = explanation
        return slot.suspicions >= refusals.SUSPICIONS_MAX

    def _is_proven(self) -> bool:
        open_ones = (slot.connection for slot in self._slots.values() if slot.connection is not None)
        self._was_answered = self._was_answered or any(connection.was_answered for connection in open_ones)
        return self._was_answered

    def _failed(self, slot: _Slot) -> None:
        config = self.config
        wait = backoff_ms(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, slot.failures, random.uniform)
        slot.failures += 1
        slot.not_before = asyncio.get_running_loop().time() + wait / 1000


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _heard(opening: asyncio.Task[Connection]) -> None:
    """A failure nobody waits for any more is no loss."""
    if not opening.cancelled():
        opening.exception()


def _told_by_cluster(key: Hashable) -> str:
    """Nodes are reached at the addresses that the cluster's metadata names."""
    node = key[1] if isinstance(key, tuple) and key[0] == "coordinator" else key
    return (
        f" (the cluster calls its broker {node} by this address: advertised.listeners)" if isinstance(node, int) else ""
    )
