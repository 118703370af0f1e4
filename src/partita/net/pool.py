"""One connection per node (or per purpose), opened when needed, with back-off after failures.

Keys are the caller's: a node id, or anything else that deserves a connection of its own (the coordinator's, so that
heartbeats never queue behind fetches). Back-off doubles per failure with jitter and resets on success; the setup
timeout doubles likewise. (Kafka: NetworkClient, ClusterConnectionStates.)
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from partita.errors import AuthenticationError, KafkaError, TlsError
from partita.net import refusals
from partita.net.access import Access
from partita.net.broker_news import UNREACHABLE_AFTER_MS, Broker, BrokerNews
from partita.net.config import ClientConfig, backoff_ms
from partita.net.connection import Connection
from partita.net.errors import Disconnected, NoAnswerYet, WrongBroker, words_of
from partita.net.metrics import NetworkMetrics
from partita.protocol.metadata_view import MetadataView, Node

NEXT_SERVER_AFTER_S = 0.4
"""A server that has not answered for so long is tried no longer alone: one that hangs costs no more than this."""
SILENT_AFTER_S = 2.0
"""Once all servers are tried, the search for a broker fails after so long without an answer."""
_IDLE_LOOK_S = 1.0
"""Connections are looked at once in so long at most."""

Candidate = tuple[Hashable, str, int]
"""The key of a connection, and where it leads."""


@dataclass(slots=True)
class _Slot:
    address: tuple[str, int] = ("", 0)
    connection: Connection | None = None
    failures: int = 0
    not_before: float = 0.0
    suspicions: int = 0
    explanation: AuthenticationError | None = None
    opening: asyncio.Task[Connection] | None = field(default=None)
    waiting: int = 0
    """Number of callers that wait for the opening."""
    attempt: Connection | None = None
    """The connection that is being opened, until it is open."""
    trouble: str = ""
    """Why it could not be opened the last time."""

    @property
    def name(self) -> str:
        """host:port, for messages."""
        return f"{self.address[0]}:{self.address[1]}"


class ConnectionPool:
    """Hands out open connections; belongs to one event loop."""

    def __init__(self, config: ClientConfig, access: Access | None = None) -> None:
        self.config = config
        self._access = access or Access(config.security)
        self.metrics: NetworkMetrics | None = None
        """Counter of connections and their traffic, if any; set it before the first connection."""
        self.view: MetadataView | None = None
        """Whose nodes these are, if a broker is to be asked whether it is the one meant; forgotten if it is not."""
        self.news = BrokerNews()
        """Reports of brokers that are needed and cannot be reached, that go and come back, and that throttle."""
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
        """Remaining back-off of `key`; 0 when a connection may be tried."""
        slot = self._slots.get(key)
        if slot is None:
            return 0.0
        return max(0.0, (slot.not_before - asyncio.get_running_loop().time()) * 1000)

    def prepare(self, key: Hashable, host: str, port: int) -> None:
        """Begin to connect, unless that has begun: the connection is needed soon. A failure is tried again then."""
        if key not in self._slots:
            # A slot without an opening would count as asked for already, so both are made in one step.
            slot = self._slots[key] = _Slot((host, port))
            slot.opening = asyncio.get_running_loop().create_task(self._open(key, slot))
            slot.opening.add_done_callback(_heard)

    async def connect(self, key: Hashable, host: str, port: int, *, is_needed: bool = True) -> Connection:
        """The open connection of `key`, made if need be; waits out a back-off first.

        A node that `is_needed`, where no other one would do, is reported when it cannot be reached.

        Raises Disconnected, AuthenticationError, VersionMismatch.
        """
        slot = self._slots.setdefault(key, _Slot())
        if slot.address != (host, port):
            # The node has moved. The old address may still accept connections, but it is not this node any more.
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
        if is_needed:
            self._want(key)
        slot.waiting += 1
        try:
            # Several callers may wait for one opening: a caller that is cancelled must not take it from the others.
            return await asyncio.shield(opening)
        except Disconnected:
            if is_needed:
                self._missed(key)
            raise
        except asyncio.CancelledError:
            if opening.cancelled() and not _is_being_cancelled():
                # `drop` cancelled the opening, nobody cancelled this caller: its request is lost, and it must hear so.
                raise Disconnected(f"the connection to {host}:{port} was dropped while it was being opened") from None
            raise
        finally:
            slot.waiting -= 1

    def _take_over(self, first: Connection, key: Hashable, slot: _Slot) -> Connection:
        """The connection that found the cluster serves the first node that turns out to have its address."""
        # Taken over, not shared: two keys with one connection would close it twice.
        self._slots["bootstrap", *slot.address].connection = None
        slot.connection, slot.failures, slot.not_before = first, 0, 0.0
        if self.metrics is not None:
            first.traffic = self.metrics.traffic(key)
        self._reached(key, first)
        return first

    def _broker(self, key: Hashable) -> Broker:
        node, address = _node_of(key), self._slots[key].name
        return Broker(key if node is None else node, node, address)

    def _want(self, key: Hashable) -> None:
        if self.news.wanted(self._broker(key), _now_ms(), others_answer=bool(self._open_ones())):
            asyncio.get_running_loop().call_later(UNREACHABLE_AFTER_MS / 1000, self._look_for, key)

    def _look_for(self, key: Hashable) -> None:
        """A connection in the making can be silent for long: look at it when it is overdue."""
        if self._slots[key].waiting:
            self._missed(key)

    def _missed(self, key: Hashable) -> None:
        if self._open_ones() and not self._is_closed:
            self.news.missed(self._broker(key), self._trouble_with(key), _now_ms())

    def _reached(self, key: Hashable, connection: Connection) -> None:
        broker = self._broker(key)
        connection.throttled = lambda throttle_ms: self.news.throttled(broker, throttle_ms, _now_ms())
        self.news.reached(broker, _now_ms())

    async def connect_any(self, nodes: Iterable[Node], bootstrap: Iterable[tuple[str, int]]) -> Connection:
        """The least loaded open connection, else one to the first node or bootstrap server that answers.

        They are tried side by side, each `NEXT_SERVER_AFTER_S` after the one before it. Raises Disconnected with what
        became of each, once all have failed or the last has been silent for `SILENT_AFTER_S`; AuthenticationError when
        none can be had and at least one broker refuses us.
        """
        found = await self._find_any(nodes, tuple(bootstrap))
        self.news.found_by = found.address
        return found

    async def _find_any(self, nodes: Iterable[Node], bootstrap: tuple[tuple[str, int], ...]) -> Connection:
        self.news.bootstrap = tuple(f"{host}:{port}" for host, port in bootstrap)
        candidates: list[Candidate] = [(node.id, node.host, node.port) for node in nodes]
        # Or all clients would begin with the same broker after a restart.
        random.shuffle(candidates)
        candidates += [(("bootstrap", host, port), host, port) for host, port in bootstrap]
        is_open = [c for key, _, _ in candidates if (c := self.open_connection(key)) is not None]
        if is_open:
            return min(is_open, key=lambda connection: connection.in_flight_count)
        by_address: dict[tuple[str, int], Candidate] = {}
        for candidate in candidates:
            by_address.setdefault(candidate[1:], candidate)
        return await self._first_of(sorted(by_address.values(), key=lambda candidate: self.wait_ms(candidate[0])))

    async def _first_of(self, candidates: Iterable[Candidate]) -> Connection:
        """The first that is ready. Each has a short time alone; who fails makes room for the next at once."""
        loop = asyncio.get_running_loop()
        waiting = deque(candidates)
        running: dict[asyncio.Task[Connection], Candidate] = {}
        failures: dict[str, KafkaError] = {}
        given_up_at = 0.0
        try:
            while waiting or running:
                # One more is begun each time round; the ones before it keep running.
                if waiting:
                    candidate = waiting.popleft()
                    attempt = loop.create_task(self.connect(*candidate, is_needed=False))
                    attempt.add_done_callback(_heard)
                    running[attempt] = candidate
                    given_up_at = loop.time() + SILENT_AFTER_S
                patience = NEXT_SERVER_AFTER_S if waiting else given_up_at - loop.time()
                await asyncio.wait(running, timeout=max(0.0, patience), return_when=asyncio.FIRST_COMPLETED)
                for attempt in [attempt for attempt in running if attempt.done()]:
                    del running[attempt]
                    error = attempt.exception()
                    if error is None:
                        self._let_go(running)
                        return attempt.result()
                    # A defect of ours. Trying the next server would hide it.
                    if not isinstance(error, KafkaError):
                        raise error
                    failures[words_of(error)] = error
                # Those that are silent are not cancelled one by one: what is open by the next call is used then.
                if not waiting and loop.time() >= given_up_at:
                    break
            raise self._none_of(failures, [key for key, _, _ in running.values()])
        finally:
            for attempt in running:
                attempt.cancel()

    def _let_go(self, losers: Mapping[asyncio.Task[Connection], Candidate]) -> None:
        """Another was first: close connections opened for these alone."""
        for attempt, (key, _, _) in losers.items():
            attempt.add_done_callback(partial(self._drop_unused, key))

    def _drop_unused(self, key: Hashable, _: asyncio.Task[Connection]) -> None:
        slot = self._slots[key]
        if not slot.waiting and (slot.connection is None or not slot.connection.in_flight_count):
            self.drop(key)

    def _none_of(self, failures: Mapping[str, KafkaError], silent: Collection[Hashable]) -> KafkaError:
        """One error for all that were tried. Those that are silent may still answer: the next call waits for them, too.

        What time does not heal comes first: a refusal.
        """
        # A wrong password at one broker says more than five that are away.
        certain = next((error for error in failures.values() if not error.retriable), None)
        told = [*failures, *filter(None, map(self._trouble_with, silent))]
        if certain is not None or len(failures) == len(told) == 1:
            return certain or next(iter(failures.values()))
        kind = NoAnswerYet if silent else Disconnected
        return kind("; ".join(dict.fromkeys(told)) or "no node to connect to")

    def _trouble_with(self, key: Hashable) -> str:
        """The step that a connection in the making waits for, else its last failure; "" if nothing is amiss."""
        slot = self._slots.get(key)
        if slot is None or (slot.connection is not None and slot.connection.is_open):
            return ""
        return slot.trouble if slot.attempt is None else f"{slot.attempt.address} {slot.attempt.lacks}"

    def troubles(self) -> str:
        """For a message: each connection that is being opened, and the step it waits for."""
        opening = (slot.attempt for slot in self._slots.values())
        return "; ".join(dict.fromkeys(f"{each.address} {each.lacks}" for each in opening if each is not None))

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
            # Never at once again: a connection with a request in flight stays open however long it has been idle.
            when = max(min(used) + idle_s, loop.time() + min(idle_s, _IDLE_LOOK_S))
            self._idle_timer = loop.call_at(when, self._close_idle)

    def _close_idle(self) -> None:
        """Close connections idle for connections.max.idle.ms, before the broker does so in the middle of a request."""
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
        """Number of open connections."""
        return len(self._open_ones())

    def in_flight_count(self, key: Hashable) -> int:
        """Number of unanswered requests on this connection; 0 when it is not open."""
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
        # The back-off is waited out here, inside the opening, so that all callers share it.
        wait = slot.not_before - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        if self._is_closed:
            raise Disconnected("the client is closed")
        # Enough brokers hung up in a way that wrong options explain: the caller hears that, and one attempt later it is
        # tried again.
        if slot.suspicions >= refusals.SUSPICIONS_MAX and slot.explanation is not None:
            slot.suspicions -= 1
            raise slot.explanation
        try:
            return await self._open_now(key, slot)
        except KafkaError as error:
            slot.trouble = words_of(error)
            if type(error) is Disconnected and slot.name not in self.news.bootstrap:
                raise Disconnected(f"{slot.trouble}{_told_by_cluster(key)}") from None
            raise
        finally:
            slot.attempt = None

    async def _open_now(self, key: Hashable, slot: _Slot) -> Connection:
        host, port = slot.address
        config = self.config
        setup = min(
            # The exponent is bounded, or a broker that is away for a week would make a number of a thousand digits.
            config.socket_connection_setup_timeout_ms * 2 ** min(slot.failures, 10),
            config.socket_connection_setup_timeout_max_ms,
        )
        try:
            connection = await Connection.open(
                host,
                port,
                config,
                access=self._access,
                setup_timeout_ms=setup,
                like=self._like(slot.address),
                meant=self._meant(key),
                begun=partial(setattr, slot, "attempt"),
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
        except Disconnected as error:
            self._failed(slot)
            if isinstance(error, WrongBroker) and self.view is not None:
                self.view.forget_nodes()
            raise
        # Only a connection that is open and logged in ends the back-off.
        slot.failures, slot.not_before = 0, 0.0
        slot.connection = connection
        self._opened(key, connection)
        self._watch_idle()
        connection.closed.add_done_callback(lambda _: self._lost(connection))
        return connection

    def _meant(self, key: Hashable) -> tuple[str, int] | None:
        """The cluster and the node that a connection is to lead to; None where it may be any."""
        node, view = _node_of(key), self.view
        if node is None or view is None or view.cluster_id is None or not self.config.metadata_cluster_check_enable:
            return None
        return view.cluster_id, node

    def _like(self, address: tuple[str, int]) -> Connection | None:
        """A connection to the same address over which the broker has answered."""
        open_ones = (slot.connection for slot in self._slots.values() if slot.address == address)
        return next((c for c in open_ones if c is not None and c.is_open and c.was_answered and c.is_typical), None)

    def _opened(self, key: Hashable, connection: Connection) -> None:
        self._reached(key, connection)
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
        key = next((key for key, slot in self._slots.items() if slot.connection is connection), None)
        if key is not None:
            slot = self._slots[key]
            slot.connection = None
            slot.trouble = words_of(connection.failure)
            if connection.was_in_use:
                self.news.lost(self._broker(key), slot.trouble, _now_ms())
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
    """Fetch the failure, so that asyncio does not complain of one that no caller waits for."""
    if not opening.cancelled():
        opening.exception()


def _told_by_cluster(key: Hashable) -> str:
    """Nodes are reached at the addresses that the cluster's metadata names."""
    node = _node_of(key)
    return "" if node is None else f" (the cluster calls its broker {node} by this address: advertised.listeners)"


def _node_of(key: Hashable) -> int | None:
    """The node that a connection leads to, if its id is known: a coordinator has a connection of its own."""
    node = key[1] if isinstance(key, tuple) and key[0] == "coordinator" else key
    return node if isinstance(node, int) else None


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
