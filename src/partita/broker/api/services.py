"""The services that the handlers of all nodes share: groups, waiting requests, fetch sessions.

They are put together here, once for a cluster. Optional services are created at their first use, so that a broker
without groups starts without their code. All of them learn here of events of the cluster: elections, topics created and
deleted, the clock moved. A handler asks its `RequestContext` for services.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partita.broker.api.features import serves_share_groups
from partita.broker.config import BrokerConfig, ConfigError
from partita.broker.counts import Traffic
from partita.broker.nodes import Cluster
from partita.broker.storage.upkeep import Upkeep
from partita.broker.topics.catalogue import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC, Partition, Topic
from partita.broker.wire.turns import Turns
from partita.lazy import Lazy, later
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.assignors import server_side
    from partita.assignors.interface import Assignor
    from partita.broker import beside
    from partita.broker.client_metrics import clients as metrics_clients
    from partita.broker.groups import coordinators as group_coordinators
    from partita.broker.groups import settings as group_settings
    from partita.broker.permits import quotas, rights
    from partita.broker.reading import fetch_sessions, long_polls
    from partita.broker.security import delegation_tokens
    from partita.broker.security import users as login_users
    from partita.broker.security.guards import Guards
    from partita.broker.shard_leadership import ShardLeadership
    from partita.broker.share import dead_letters
    from partita.broker.share import led as share_led
    from partita.broker.share import node as share_nodes
    from partita.broker.share import settings as share_settings
    from partita.broker.share.calls import Persister
    from partita.broker.share_states import coordinators as share_coordinators
    from partita.broker.transactions import coordinators as transaction_coordinators
    from partita.broker.transactions import marker_writing
    from partita.protocol.primitives import Message
else:
    beside = later("partita.broker.beside")
    metrics_clients = later("partita.broker.client_metrics.clients")
    group_coordinators = later("partita.broker.groups.coordinators")
    login_users = later("partita.broker.security.users")
    marker_writing = later("partita.broker.transactions.marker_writing")
    quotas = later("partita.broker.permits.quotas")
    fetch_sessions = later("partita.broker.reading.fetch_sessions")
    long_polls = later("partita.broker.reading.long_polls")
    rights = later("partita.broker.permits.rights")
    group_settings = later("partita.broker.groups.settings")
    share_led = later("partita.broker.share.led")
    dead_letters = later("partita.broker.share.dead_letters")
    share_nodes = later("partita.broker.share.node")
    share_settings = later("partita.broker.share.settings")
    delegation_tokens = later("partita.broker.security.delegation_tokens")
    server_side = later("partita.assignors.server_side")
    share_coordinators = later("partita.broker.share_states.coordinators")
    transaction_coordinators = later("partita.broker.transactions.coordinators")

BUILT_IN_ASSIGNORS = ("uniform", "range")
"""The default of `group.consumer.assignors`."""
QUOTA_KIND = "quota"
"""The kind of quotas in the catalogue."""


class Services:
    """The services of one cluster. Those that a broker may never need are `Lazy`: a call makes them."""

    def __init__(
        self, cluster: Cluster, users: Mapping[str, Secret] | None = None, assignors: Iterable[Assignor] = ()
    ) -> None:
        self.cluster = cluster
        self.turns = Turns(cluster.loop, cluster.stopwatch)
        """The line of connections and of long requests that share the event loop."""
        self.upkeep = Upkeep(cluster.loop, cluster.clock, cluster.store, cluster.config, cluster.catalogue.every_log)
        self.rights = _rights_of(cluster)
        """The authorizer and its rights; None without one, when no request is refused."""
        self.guards: Guards | None = None
        """The guards of the listeners; None when none of them speaks TLS or SASL."""
        self.traffic = Traffic()
        self.count_connections: Callable[[], dict[tuple[int, str], int]] = dict
        """Open connections by node and listener; set by the code that listens."""
        self.quotas: quotas.Quotas | None = None
        """Quotas of clients; None until the first quota."""
        if QUOTA_KIND in cluster.catalogue.kept:
            self.make_quotas()
        self._fetch_sessions: dict[int, fetch_sessions.FetchSessions] = {}
        self.share_nodes: dict[int, share_nodes.ShareNode] = {}
        """The share groups of each node that was asked about one."""
        self.share_acknowledged: Counter[int] = Counter()
        """Records by the type of their acknowledgement."""

        given = tuple(assignors)
        server_assignors = Lazy(lambda: _assignors_of(cluster.config, given))
        if given or cluster.config.get("group.consumer.assignors") != BUILT_IN_ASSIGNORS:
            server_assignors()  # an assignor that does not exist is refused at the start
        self.groups = Lazy(lambda: group_coordinators.Coordinators(cluster, server_assignors(), self._ask_share_states))
        """The coordinator's shards of every node."""
        self.transactions = Lazy(
            lambda: transaction_coordinators.TransactionCoordinators(
                marker_writing.Shards(cluster, self.groups, self.turns)
            )
        )
        """The shards of the transaction coordinator of every node."""
        self.share_states = Lazy(lambda: share_coordinators.ShareStates(cluster, self.turns))
        """The shards of the share coordinator of every node."""
        self.persister: Persister = lambda message: self.share_states().answer(message)
        """Where the leaders of share partitions keep their state."""
        self.users = Lazy(lambda: login_users.Users(cluster.catalogue, users))
        """The users who may log in with a password."""
        self.delegation_tokens = Lazy(
            lambda: delegation_tokens.DelegationTokens(cluster.catalogue, cluster.config, self.users(), cluster.clock)
        )
        """The logins that users have lent."""
        self.client_metrics = Lazy(lambda: metrics_clients.ClientMetrics(cluster.catalogue, cluster.clock.mono_ms))
        """The clients that push metrics."""
        self.long_polls = Lazy(lambda: long_polls.LongPolls(cluster.loop, cluster.clock, self.turns))
        """The requests that wait for a log to move."""
        self.workers = Lazy(lambda: beside.Workers(cluster.loop))
        """The threads for long work on records."""
        self.sliced_thread = Lazy(lambda: beside.SlicedThread(cluster.loop, self.turns))
        """Thread for reading and writing large messages, a slice at a time."""
        self.one_at_a_time = Lazy(lambda: beside.OneAtATime())
        """Queue of very large requests."""
        cluster.on_leadership(self._leadership_changed)
        cluster.config.on_change(self._option_changed)

    @property
    def coordinators(self) -> dict[str, Lazy[ShardLeadership[Any, Any]]]:
        """The shards of groups, share partitions and transactions, by their topics."""
        return {
            OFFSETS_TOPIC: self.groups,
            SHARE_STATE_TOPIC: self.share_states,
            TRANSACTION_TOPIC: self.transactions,
        }

    def shard_states(self) -> Counter[str]:
        """Numbers of shards of groups and transactions by state; empty before any is made."""
        return Counter(runner.state.value for made in self._coordinators() for runner in made.runners.values())

    def count_fetch_sessions(self) -> int:
        """The incremental fetch sessions of all nodes."""
        return sum(len(sessions.sessions) for sessions in self._fetch_sessions.values())

    def count_waiting(self) -> int:
        """The requests that wait for a log to move."""
        return 0 if self.long_polls.made is None else len(self.long_polls.made.waiting)

    def make_quotas(self) -> quotas.Quotas:
        """The quotas, of which there may be none yet."""
        if self.quotas is None:
            self.quotas = quotas.Quotas(self.cluster.catalogue, QUOTA_KIND, self.cluster.clock.mono_ms)
        return self.quotas

    def connects_too_fast(self, client_host: str) -> bool:
        """Whether the quota of a client's address refuses one more connection now."""
        return self.quotas is not None and self.quotas.refuses_connection(client_host.removeprefix("/"))

    def fetch_sessions(self, node_id: int) -> fetch_sessions.FetchSessions:
        """The incremental fetch sessions of one node."""
        sessions = self._fetch_sessions.get(node_id)
        if sessions is None:
            slots = self.cluster.config.int("max.incremental.fetch.session.cache.slots")
            sessions = self._fetch_sessions[node_id] = fetch_sessions.FetchSessions(slots, work_off=self.turns.work_off)
        return sessions

    def share_node(self, node_id: int) -> share_nodes.ShareNode | None:
        """The share groups of one node; None where they are not served."""
        node = self.share_nodes.get(node_id)
        if node is None and serves_share_groups(self.cluster.config):
            cluster = self.cluster
            shell = share_led.Shell(
                cluster.loop,
                cluster.clock,
                self.persister,
                self.long_polls().look_again,
                self.share_acknowledged,
                dead_letters.DeadLetters(cluster, self._group_setting),
            )
            settings = share_settings.ShareSettings(
                self._group_setting, cluster.clock, lambda: cluster.config.int("partita.share.version") > 1
            )
            node = self.share_nodes[node_id] = share_nodes.ShareNode(shell, settings)
        return node

    async def _ask_share_states(self, message: Message) -> Any:
        """Ask the share coordinator for a group. State that begins anew or ends is no longer what leaders hold."""
        response = await self.share_states().answer(message)
        for node in self.share_nodes.values():
            node.replaced(message)
        return response

    def _group_setting(self, group_id: str, name: str) -> int | str:
        own = group_settings.settings_of(self.cluster.catalogue, group_id)
        return group_settings.in_force(self.cluster.config, own, name)

    def follow_topics(self) -> None:
        """React to topics being created and deleted from now on."""
        self.cluster.catalogue.on_created(self._created)
        self.cluster.catalogue.on_deleted(self._deleted)

    def load_groups(self) -> None:
        """Load the groups and transactions there are; without groups, import their code before the first one comes."""
        self.groups()
        for name, coordinators in self.coordinators.items():
            topic = self.cluster.catalogue.get(name)
            if topic is not None:
                coordinators().lead_all(topic)

    def resign_groups(self) -> None:
        """Give up every group and transactional id: waiting clients get NOT_COORDINATOR."""
        for made in self._coordinators():
            made.resign_all()

    async def settle_groups(self) -> None:
        """Wait until loads that were cut short have ended."""
        for made in self._coordinators():
            await made.settle()

    def stop_workers(self) -> None:
        """Begin no more long work."""
        if self.workers.made is not None:
            self.workers.made.stop()
        if self.sliced_thread.made is not None:
            self.sliced_thread.made.stop()

    def storage_failed(self) -> None:
        """The log directory is offline: no shard can write any more, so none answers for its groups."""
        for made in self._coordinators():
            made.storage_failed()

    def offsets_forgotten(self, names: list[str]) -> asyncio.Future[None] | None:
        """Return a future that ends once committed offsets of deleted topics are durably gone; None when they are."""
        return None if self.groups.made is None else self.groups.made.forgotten(names)

    def node_stopped(self, node_id: int) -> None:
        """Forget agreements of clients with a node that is gone."""
        self._fetch_sessions.pop(node_id, None)
        node = self.share_nodes.pop(node_id, None)
        if node is not None:
            node.stop()

    def _option_changed(self, name: str) -> None:
        """End the sessions and locks of share groups if these are no longer served."""
        if not serves_share_groups(self.cluster.config):
            while self.share_nodes:
                self.share_nodes.popitem()[1].stop()

    def clock_jumped(self) -> None:
        """Run the work that is due at the clock's new time."""
        for made in (*self._coordinators(), self.long_polls.made):
            if made is not None:
                made.clock_jumped()
        for node in self.share_nodes.values():
            node.clock_jumped()
        if self.delegation_tokens.made is not None:
            self.delegation_tokens.made.sweep()

    def _coordinators(self) -> list[ShardLeadership[Any, Any]]:
        """The shards of transactions, share partitions and groups, of each if a request has asked for one yet."""
        return [lazy.made for lazy in reversed(self.coordinators.values()) if lazy.made is not None]

    def _leadership_changed(self, partition: Partition) -> None:
        coordinators = self.coordinators.get(partition.topic.name)
        if coordinators is not None:
            coordinators().leadership_changed(partition)
        self._not_as_before(partition)

    def _not_as_before(self, partition: Partition) -> None:
        """A partition has another leader, or is gone: requests that wait on it look again."""
        for node in self.share_nodes.values():
            node.changed(partition.topic.topic_id, partition.index)
        if self.long_polls.made is not None:
            self.long_polls.made.look_again(partition)

    def _created(self, topic: Topic) -> None:
        coordinators = self.coordinators.get(topic.name)
        if coordinators is not None:
            coordinators().lead_all(topic)

    def _deleted(self, topics: list[Topic]) -> None:
        for topic in topics:
            coordinators = self.coordinators.get(topic.name)
            if coordinators is not None and coordinators.made is not None:
                coordinators.made.resign_all()
        if self.share_states.made is not None:
            self.share_states.made.topics_deleted()
        names = [topic.name for topic in topics]
        if self.cluster.catalogue.get(OFFSETS_TOPIC) is not None:
            self.groups().topics_deleted(names)
        else:
            self.cluster.catalogue.offsets_forgotten(names)
        for topic in topics:
            for partition in topic.partitions:
                self._not_as_before(partition)


def _assignors_of(config: BrokerConfig, given: Sequence[Assignor]) -> Mapping[str, Assignor]:
    """The assignors of KIP-848 groups, the default first. Raises ConfigError."""
    names = config.get("group.consumer.assignors")
    assert isinstance(names, tuple), "a list option holds a tuple"
    try:
        return server_side.create_server_assignors(map(str, names), given)
    except ValueError as error:
        raise ConfigError(f"group.consumer.assignors: {error}") from None


def _rights_of(cluster: Cluster) -> rights.Rights | None:
    """The rights that the settings ask for. Raises ConfigError."""
    if not cluster.config.text("authorizer.class.name"):
        return None
    authorizer = rights.authorizer_of(cluster.config)
    return rights.Rights(authorizer, cluster.catalogue, cluster.config, cluster.loop.time, cluster.notes.denied)
