"""What the handlers of all nodes share beside the cluster's state: groups, waiting requests, fetch sessions.

Each service is created at its first use, so that a broker without groups starts without their code. All of them are
told here of what the cluster does: elections, topics created and deleted, the clock moved.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from partita.broker.config import ConfigError
from partita.broker.measuring.traffic import Traffic
from partita.broker.nodes import Cluster
from partita.broker.storage.upkeep import Upkeep
from partita.broker.topics.catalogue import OFFSETS_TOPIC, TRANSACTION_TOPIC, Partition, Topic
from partita.broker.wire.turns import Turns
from partita.secret import Secret

if TYPE_CHECKING:
    from partita.assignors.interface import Assignor
    from partita.broker.groups.coordinators import Coordinators
    from partita.broker.quotas.keeper import Quotas
    from partita.broker.reading.fetch_sessions import FetchSessions
    from partita.broker.reading.long_polls import LongPolls
    from partita.broker.requests.one_at_a_time import OneAtATime
    from partita.broker.requests.sliced_thread import SlicedThread
    from partita.broker.requests.workers import Workers
    from partita.broker.rights.keeper import Rights
    from partita.broker.security.guards import Guards
    from partita.broker.security.users import Users
    from partita.broker.transactions.coordinators import TransactionCoordinators

BUILT_IN_ASSIGNORS = ("uniform", "range")
"""What `group.consumer.assignors` names unless it is set."""
QUOTA_KIND = "quota"
"""What quotas are called in the catalogue."""


class Services:
    """The services of one cluster."""

    def __init__(
        self, cluster: Cluster, users: Mapping[str, Secret] | None = None, assignors: Iterable[Assignor] = ()
    ) -> None:
        self.cluster = cluster
        self._users_assignors = tuple(assignors)
        if self._users_assignors or cluster.config.get("group.consumer.assignors") != BUILT_IN_ASSIGNORS:
            self.assignors  # noqa: B018  # a name that nobody has is found at the start
        self.turns = Turns(cluster.loop, cluster.stopwatch)
        """The line of connections and of long requests that share the event loop."""
        self.upkeep = Upkeep(cluster.loop, cluster.clock, cluster.store, cluster.config, cluster.catalogue.every_log)
        self.rights = _rights_of(cluster)
        """Who may do what; None without an authorizer, when nobody is refused anything."""
        self._users_given = users
        self.guards: Guards | None = None
        """What guards the listeners; None when none of them speaks TLS or SASL."""
        self.traffic = Traffic()
        self.count_connections: Callable[[], dict[tuple[int, str], int]] = dict
        """Open connections by node and listener; whoever listens sets it."""
        self.quotas: Quotas | None = None
        """How much clients may use; None until the first quota."""
        if QUOTA_KIND in cluster.catalogue.kept:
            self.make_quotas()
        self._fetch_sessions: dict[int, FetchSessions] = {}
        cluster.on_leadership(self._leadership_changed)

    @cached_property
    def groups(self) -> Coordinators:
        """The coordinator's shards of every node."""
        from partita.broker.groups.coordinators import Coordinators

        return Coordinators(self.cluster, self.assignors)

    @cached_property
    def users(self) -> Users:
        """Who may log in with a password."""
        from partita.broker.security.users import Users

        return Users(self.cluster.catalogue, self._users_given)

    @cached_property
    def assignors(self) -> Mapping[str, Assignor]:
        """What shares partitions in KIP-848 groups, the default first. Raises ConfigError."""
        from partita.assignors.server_side import create_server_assignors

        names = self.cluster.config.get("group.consumer.assignors")
        assert isinstance(names, tuple), "a list option holds a tuple"
        try:
            return create_server_assignors(map(str, names), self._users_assignors)
        except ValueError as error:
            raise ConfigError(f"group.consumer.assignors: {error}") from None

    @cached_property
    def transactions(self) -> TransactionCoordinators:
        """The shards of the transaction coordinator of every node."""
        from partita.broker.transactions.coordinators import TransactionCoordinators
        from partita.broker.transactions.marker_writing import Shards

        return TransactionCoordinators(Shards(self.cluster, lambda: self.groups, self.turns))

    @cached_property
    def long_polls(self) -> LongPolls:
        """The requests that wait for a log to move."""
        from partita.broker.reading.long_polls import LongPolls

        return LongPolls(self.cluster.loop, self.cluster.clock)

    @cached_property
    def workers(self) -> Workers:
        """The threads for long work on records."""
        from partita.broker.requests.workers import Workers

        return Workers(self.cluster.loop)

    @cached_property
    def sliced_thread(self) -> SlicedThread:
        """Where large messages are read and written, a slice at a time."""
        from partita.broker.requests.sliced_thread import SlicedThread

        return SlicedThread(self.cluster.loop, self.turns)

    @cached_property
    def one_at_a_time(self) -> OneAtATime:
        """Where very large requests wait for one another."""
        from partita.broker.requests.one_at_a_time import OneAtATime

        return OneAtATime()

    def made_groups(self) -> Coordinators | None:
        """The shards, if anybody has asked for a group yet."""
        return self.groups if self._is_made("groups") else None

    def shard_states(self) -> Counter[str]:
        """How many shards of groups and transactions are in which state; empty before any is made."""
        found: Counter[str] = Counter()
        if self._is_made("groups"):
            found.update(runner.state.value for runner in self.groups.runners.values())
        if self._is_made("transactions"):
            found.update(runner.state.value for runner in self.transactions.runners.values())
        return found

    def made_transactions(self) -> TransactionCoordinators | None:
        """The shards of transactions, if anybody has asked for one yet."""
        return self.transactions if self._is_made("transactions") else None

    def count_fetch_sessions(self) -> int:
        """The incremental fetch sessions of all nodes."""
        return sum(len(sessions.sessions) for sessions in self._fetch_sessions.values())

    def count_waiting(self) -> int:
        """The requests that wait for a log to move."""
        return len(self.long_polls.waiting) if self._is_made("long_polls") else 0

    def make_quotas(self) -> Quotas:
        """The quotas, of which there may be none yet."""
        if self.quotas is None:
            from partita.broker.quotas.keeper import Quotas

            self.quotas = Quotas(self.cluster.catalogue, QUOTA_KIND, self.cluster.clock.mono_ms)
        return self.quotas

    def connects_too_fast(self, client_host: str) -> bool:
        """Whether the quota of a client's address refuses one more connection now."""
        return self.quotas is not None and self.quotas.refuses_connection(client_host.removeprefix("/"))

    def fetch_sessions(self, node_id: int) -> FetchSessions:
        """The incremental fetch sessions of one node."""
        sessions = self._fetch_sessions.get(node_id)
        if sessions is None:
            from partita.broker.reading.fetch_sessions import FetchSessions

            slots = self.cluster.config.int("max.incremental.fetch.session.cache.slots")
            sessions = self._fetch_sessions[node_id] = FetchSessions(slots)
        return sessions

    def follow_topics(self) -> None:
        """From now on react to topics being created and deleted."""
        self.cluster.catalogue.on_created(self._created)
        self.cluster.catalogue.on_deleted(self._deleted)

    def load_groups(self) -> None:
        """Load the groups and transactions there are; without groups, import their code before the first one comes."""
        groups, offsets = self.groups, self.cluster.catalogue.get(OFFSETS_TOPIC)
        if offsets is not None:
            groups.lead_all(offsets)
        states = self.cluster.catalogue.get(TRANSACTION_TOPIC)
        if states is not None:
            self.transactions.lead_all(states)

    def resign_groups(self) -> None:
        """Give up every group and transactional id: whoever waits is told that this is no coordinator."""
        if self._is_made("transactions"):
            self.transactions.resign_all()
        if self._is_made("groups"):
            self.groups.resign_all()

    async def settle_groups(self) -> None:
        """Wait until loads that were cut short have ended."""
        if self._is_made("groups"):
            await self.groups.settle()
        if self._is_made("transactions"):
            await self.transactions.settle()

    def stop_workers(self) -> None:
        """Begin no more long work."""
        if self._is_made("workers"):
            self.workers.stop()
        if self._is_made("sliced_thread"):
            self.sliced_thread.stop()

    def storage_failed(self) -> None:
        """The log directory is offline: no shard can write any more, so none answers for its groups."""
        if self._is_made("groups"):
            self.groups.storage_failed()
        if self._is_made("transactions"):
            self.transactions.storage_failed()

    def offsets_forgotten(self, names: list[str]) -> asyncio.Future[None] | None:
        """What is done once the committed offsets of deleted topics are durably gone; None when they are."""
        return self.groups.forgotten(names) if self._is_made("groups") else None

    def node_stopped(self, node_id: int) -> None:
        """Forget what clients agreed with a node that is gone."""
        self._fetch_sessions.pop(node_id, None)

    def clock_jumped(self) -> None:
        """Do what the clock's new time makes due."""
        if self._is_made("groups"):
            self.groups.clock_jumped()
        if self._is_made("transactions"):
            self.transactions.clock_jumped()
        if self._is_made("long_polls"):
            self.long_polls.clock_jumped()

    def _is_made(self, service: str) -> bool:
        return service in self.__dict__

    def _leadership_changed(self, partition: Partition) -> None:
        if partition.topic.name == OFFSETS_TOPIC:
            self.groups.leadership_changed(partition)
        elif partition.topic.name == TRANSACTION_TOPIC:
            self.transactions.leadership_changed(partition)
        if self._is_made("long_polls"):
            self.long_polls.leader_changed(partition)

    def _created(self, topic: Topic) -> None:
        if topic.name == OFFSETS_TOPIC:
            self.groups.lead_all(topic)
        elif topic.name == TRANSACTION_TOPIC:
            self.transactions.lead_all(topic)

    def _deleted(self, topics: list[Topic]) -> None:
        if any(topic.name == OFFSETS_TOPIC for topic in topics):
            self.groups.resign_all()
        if any(topic.name == TRANSACTION_TOPIC for topic in topics) and self._is_made("transactions"):
            self.transactions.resign_all()
        names = [topic.name for topic in topics]
        if self.cluster.catalogue.get(OFFSETS_TOPIC) is not None:
            self.groups.topics_deleted(names)
        else:
            for name in names:
                self.cluster.catalogue.offsets_forgotten(name)
        if self._is_made("long_polls"):
            for topic in topics:
                for partition in topic.partitions:
                    self.long_polls.leader_changed(partition)


def _rights_of(cluster: Cluster) -> Rights | None:
    """The rights that the settings ask for. Raises ConfigError."""
    if not cluster.config.text("authorizer.class.name"):
        return None
    from partita.broker.rights.keeper import Rights, authorizer_of

    authorizer = authorizer_of(cluster.config)
    return Rights(authorizer, cluster.catalogue, cluster.config, cluster.loop.time, cluster.notes.denied)
