"""The calls of the admin client, as coroutines. `Admin` (in `blocking`) has the same ones without `await`.

    with Admin(bootstrap_servers="localhost:9092") as admin:
        for line in admin.group_lag("orders"):
            print(line.topic, line.partition, line.lag)

Works on our broker and on any Kafka.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, Unpack

from partita.admin import configs, groups, offsets, placement, reset_plan, topics, transactions
from partita.admin import quotas as quota_calls
from partita.admin.access import acls as access
from partita.admin.access import delegation_tokens as lent
from partita.admin.access import scram
from partita.admin.access.scram import ScramCredential, ScramUser
from partita.admin.config import admin_config
from partita.admin.configs import Kind
from partita.admin.missing_rights import needs
from partita.admin.offsets import OffsetSpec, TopicPartition, timestamp_of
from partita.admin.reset import Target
from partita.admin.results import (
    ApiVersionRange,
    ClientQuota,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    FeatureDescription,
    FoundOffset,
    GroupDescription,
    GroupListing,
    LogDirDescription,
    OngoingMove,
    OpenTransaction,
    PartitionLag,
    ProducerDescription,
    QuorumDescription,
    ResetPlan,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
)
from partita.admin.topics import NewTopic, names_of
from partita.metrics.registry import Metrics, by_text, prometheus
from partita.net.broker_news import WARNINGS
from partita.net.cluster import Cluster
from partita.net.config import ClientConfig
from partita.net.faces import not_pickled
from partita.net.loop_thread import LoopThread
from partita.net.metrics import NetworkMetrics
from partita.offsets.topic_partition import OffsetAndMetadata
from partita.protocol.messages.metadata import MetadataRequest
from partita.security.rights.acls import AclBinding, AclFilter
from partita.wording import Note

if TYPE_CHECKING:
    from partita.admin.option_types import AdminOptions

_LOG = logging.getLogger("partita.admin")
Isolation = Literal["read_uncommitted", "read_committed"]


class _Notes:
    """Logs news of the cluster and passes it to the function given to `on_note`."""

    heard: Callable[[Note], object] | None = None

    def __call__(self, kind: str, text: str, fields: dict[str, Any]) -> None:
        _LOG.log(logging.WARNING if kind in WARNINGS else logging.INFO, "%s", text, extra={"kind": kind})
        if self.heard is not None:
            try:
                self.heard(Note(kind, text, fields))
            except Exception:
                _LOG.exception("the function given to on_note raised")


class AdminCalls:
    """The calls that never wait: both faces derive from them."""

    __reduce__ = not_pickled
    _config: ClientConfig
    _metrics: Metrics
    _notes: _Notes

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as this user at new connections and when a login is renewed (PLAIN, SCRAM). From any thread."""
        self._config.security.set_login(username, password)

    def on_note(self, heard: Callable[[Note], object] | None) -> None:
        """Call this with every Note, on the client's loop: brokers that cannot be reached, go, come, and throttle."""
        self._notes.heard = heard

    def metrics(self) -> dict[str, float]:
        """Every number by Kafka's name, such as `request-size-avg`; averages and rates are over the last minute."""
        return by_text(self._metrics.read(time.monotonic() * 1000))

    def metrics_text(self) -> str:
        """The metrics in Prometheus' text format."""
        return prometheus(
            self._metrics, "kafka.admin.client", time.monotonic() * 1000, client_id=self._config.client_id
        )


class AsyncAdmin(AdminCalls):
    """Every call is a coroutine, ends within default.api.timeout.ms, and raises KafkaError for what a broker refuses.

    Calls for several things at once raise that error if one was asked for, and SomeFailed otherwise.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[AdminOptions]) -> None:
        self._servers, self._config = admin_config(config, dict(options))
        self._cluster: Cluster | None = None
        self._notes = _Notes()
        self._metrics = Metrics(self._config.metrics_sample_window_ms, self._config.metrics_num_samples)
        open_count = weakref.WeakMethod(self._open_count)  # connections hold the metrics, and must not hold the client
        self._network = NetworkMetrics(self._metrics, "admin-client", lambda: (open_count() or int)())
        self._home: tuple[asyncio.AbstractEventLoop, int] | None = None
        self._thread: LoopThread | None = None
        """The thread of the loop, if it is not the application's."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> Self:
        """Find the cluster within socket.connection.setup.timeout.ms; `async with` does this."""
        cluster = Cluster(self._servers, self._config)
        cluster.pool.metrics = self._network
        cluster.pool.news.heard = self._notes
        self._network.runs_on(threading.get_ident())
        within_ms = min(self._config.socket_connection_setup_timeout_ms, self._config.default_api_timeout_ms)
        try:
            await cluster.retry(lambda: cluster.request(None, MetadataRequest(topics=[])), timeout_ms=within_ms)
            await cluster.refresh([])
        except BaseException:
            cluster.close()
            raise
        self._cluster = cluster
        self._home = asyncio.get_running_loop(), os.getpid()
        return self

    def __del__(self) -> None:
        """Collected without close: connections and thread are given back by their own loop."""
        cluster, thread = getattr(self, "_cluster", None), getattr(self, "_thread", None)
        if cluster is not None and self._home is not None and self._home[1] == os.getpid():
            with contextlib.suppress(RuntimeError):  # the loop is closed, and its sockets with it
                self._home[0].call_soon_threadsafe(_give_back, cluster, thread)

    async def close(self) -> None:
        """Disconnect. May be called again."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _open_count(self) -> int:
        return 0 if self._cluster is None else self._cluster.pool.open_count

    @property
    def cluster(self) -> Cluster:
        """The connections in use."""
        return self._cluster or _NOT_STARTED

    @needs(topic="CREATE", cluster="CREATE")
    async def create_topics(
        self, *new: NewTopic | str, validate_only: bool = False, timeout_ms: int = 30_000
    ) -> list[CreatedTopic]:
        """Create topics, each given as NewTopic or by name alone; with `validate_only` only say if it would work."""
        return await topics.create_topics(self.cluster, new, validate_only=validate_only, timeout_ms=timeout_ms)

    @needs(topic="CREATE", cluster="CREATE")
    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str | int | bool | None] | None = None,
    ) -> CreatedTopic:
        """Create one topic. Raises TopicAlreadyExistsError."""
        (created,) = await self.create_topics(NewTopic(name, partitions, replication_factor, configs or {}))
        return created

    @needs(topic="DELETE")
    async def delete_topics(self, names: str | Iterable[str], *, timeout_ms: int = 30_000) -> None:
        """Delete topics with all their records, for good. Raises UnknownTopicOrPartitionError."""
        await topics.delete_topics(self.cluster, names_of(names), timeout_ms=timeout_ms)

    async def list_topics(self, *, include_internal: bool = False) -> list[TopicListing]:
        """Every topic by name, with its number of partitions; internal ones such as __consumer_offsets on demand."""
        return await topics.list_topics(self.cluster, include_internal=include_internal)

    @needs(topic="DESCRIBE")
    async def describe_topics(self, names: str | Iterable[str]) -> list[TopicDescription]:
        """Partitions, leaders and replicas. Raises UnknownTopicOrPartitionError."""
        return await topics.describe_topics(self.cluster, names_of(names))

    @needs(topic="ALTER")
    async def create_partitions(
        self,
        topic: str,
        total: int,
        *,
        replicas: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        timeout_ms: int = 30_000,
    ) -> None:
        """Increase the topic's partitions to `total`; keys hash to other partitions from then on.

        Raises InvalidPartitionsError unless there are fewer now.
        """
        await topics.create_partitions(
            self.cluster, topic, total, replicas=replicas, validate_only=validate_only, timeout_ms=timeout_ms
        )

    @needs(topic="DESCRIBE")
    async def wait_for_topics(self, names: str | Iterable[str], *, timeout: float = 30.0) -> None:
        """Return once every node knows these topics and the leaders of their partitions, within `timeout` seconds.

        Raises UnknownTopicOrPartitionError, or the error of the last attempt.
        """
        await topics.wait_for_topics(self.cluster, names_of(names), int(timeout * 1000))

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, its controller, and the nodes that are alive."""
        return await topics.describe_cluster(self.cluster)

    async def api_versions(self, node_id: int | None = None) -> list[ApiVersionRange]:
        """The APIs that a node serves, with their versions; without `node_id`, those of the node with the lowest id."""
        return await placement.api_versions(self.cluster, node_id)

    @needs(cluster="DESCRIBE")
    async def describe_log_dirs(self, node_ids: Iterable[int] | None = None) -> list[LogDirDescription]:
        """The log directories of nodes (None: of all), with the size of each replica in them."""
        return await placement.describe_log_dirs(self.cluster, node_ids)

    async def describe_features(self, node_id: int | None = None) -> FeatureDescription:
        """The levels of features in force, such as metadata.version, and those that a node (None: any) supports."""
        return await placement.describe_features(self.cluster, node_id)

    @needs(cluster="ALTER")
    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        how: placement.Upgrade = "upgrade",
        validate_only: bool = False,
        timeout_ms: int = 60_000,
    ) -> None:
        """Set feature levels, 0 to turn one off. A lower level needs `how` "safe_downgrade" or "unsafe_downgrade".

        Raises InvalidUpdateVersionError, and UnsupportedVersionError on a broker of Partita, whose levels are options.
        """
        await placement.update_features(
            self.cluster, levels, how=how, validate_only=validate_only, timeout_ms=timeout_ms
        )

    @needs(cluster="DESCRIBE")
    async def describe_metadata_quorum(self) -> QuorumDescription:
        """The controllers that keep the cluster's metadata, and how far each has come in its log."""
        return await placement.describe_quorum(self.cluster)

    @needs(cluster="ALTER")
    async def create_acls(self, *acls: AclBinding | str) -> None:
        """Add ACLs, each given as AclBinding or in words: "allow User:alice read,describe topic orders-*".

        Existing ACLs stay. Raises SecurityDisabledError where the cluster has no authorizer.
        """
        await access.create_acls(self.cluster, access.bindings(acls))

    @needs(cluster="DESCRIBE")
    async def describe_acls(self, wanted: AclFilter | None = None) -> list[AclBinding]:
        """The ACLs that a filter selects; all of them without one."""
        return await access.describe_acls(self.cluster, wanted or AclFilter())

    @needs(cluster="ALTER")
    async def delete_acls(self, *wanted: AclFilter | AclBinding | str) -> list[AclBinding]:
        """Remove the ACLs that filters select, or just these ACLs, and return the removed ones."""
        return await access.delete_acls(self.cluster, access.filters(wanted))

    @needs(cluster="ALTER_CONFIGS")
    async def alter_client_quotas(
        self,
        quotas: Mapping[str, float | None],
        *,
        user: str | None = "",
        client_id: str | None = "",
        ip: str | None = "",
        validate_only: bool = False,
    ) -> None:
        """Set quotas of a user, a client id, both, or an address: {"producer_byte_rate": 1_000_000}; None removes one.

        None as a name is the default. Raises InvalidRequestError.
        """
        whose = quota_calls.entity(user=user, client_id=client_id, ip=ip)
        await quota_calls.alter(self.cluster, whose, quotas, validate_only=validate_only)

    @needs(cluster="DESCRIBE_CONFIGS")
    async def describe_client_quotas(
        self, *, user: str | None = "", client_id: str | None = "", ip: str | None = "", strict: bool = False
    ) -> list[ClientQuota]:
        """All quotas, or those whose entities have these names (None: the default); with `strict`, and no others."""
        whose = quota_calls.entity(user=user, client_id=client_id, ip=ip)
        return await quota_calls.describe(self.cluster, whose, strict=strict)

    @needs(cluster="ALTER")
    async def alter_scram_users(
        self, set: Mapping[str, ScramUser] | None = None, *, remove: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Let users log in with new passwords, and remove credentials, each a pair of user and mechanism.

        Passwords are salted here, in a thread, and not sent. Open connections stay as they are.
        """
        await scram.alter_scram_users(self.cluster, set or {}, remove)

    @needs(cluster="DESCRIBE")
    async def describe_scram_users(self, users: Iterable[str] | None = None) -> list[ScramCredential]:
        """The SCRAM credentials of users, or of all; a user without one is left out."""
        return await scram.describe_scram_users(self.cluster, users)

    create_delegation_token = lent.create_delegation_token
    renew_delegation_token = lent.renew_delegation_token
    expire_delegation_token = lent.expire_delegation_token
    describe_delegation_tokens = lent.describe_delegation_tokens

    @needs(cluster="ALTER")
    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        unclean: bool = False,
        timeout_ms: int = 30_000,
    ) -> list[TopicPartition]:
        """Make the preferred replica the leader of each partition (None: of all). Returns those that changed.

        With `unclean`, any replica that is alive may lead where no replica in sync is; records may be lost. Partitions
        that need no election are left out. Raises KafkaError or SomeFailed for partitions that could not be elected.
        """
        return await placement.elect_leaders(self.cluster, partitions, unclean=unclean, timeout_ms=timeout_ms)

    @needs(cluster="ALTER")
    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int = 30_000
    ) -> None:
        """Start moving partitions to these brokers, the preferred leader first; None cancels a move under way.

        Raises KafkaError or SomeFailed. A cluster that copies data continues after this returns; see
        `list_partition_reassignments`.
        """
        await placement.move_replicas(self.cluster, replicas, timeout_ms=timeout_ms)

    @needs(cluster="DESCRIBE")
    async def list_partition_reassignments(self, *, timeout_ms: int = 30_000) -> list[OngoingMove]:
        """The moves that are not finished yet."""
        return await placement.list_moves(self.cluster, timeout_ms=timeout_ms)

    @needs(topic="DESCRIBE_CONFIGS", group="DESCRIBE_CONFIGS", cluster="DESCRIBE_CONFIGS")
    async def describe_configs(
        self, kind: Kind, name: str, names: Iterable[str] | None = None, *, documentation: bool = False
    ) -> list[ConfigEntry]:
        """Options of a topic, a broker (by node id, as text) or a group; all of them, or those named.

        `kind` is "topic", "broker" or "group".
        """
        return await configs.describe_configs(self.cluster, kind, name, names, documentation=documentation)

    @needs(topic="ALTER_CONFIGS", group="ALTER_CONFIGS", cluster="ALTER_CONFIGS")
    async def alter_configs(
        self,
        kind: Kind,
        name: str,
        set_to: Mapping[str, str | int | bool | None] | None = None,
        *,
        delete: Iterable[str] = (),
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set options, take them back to their defaults (`delete`), or change list options item by item.

        Options not named stay as they are. Raises InvalidConfigError; with `validate_only` nothing else happens.
        """
        await configs.alter_configs(
            self.cluster,
            kind,
            name,
            set_to=set_to or {},
            delete=delete,
            append=append or {},
            subtract=subtract or {},
            validate_only=validate_only,
        )

    @needs(cluster="DESCRIBE_CONFIGS")
    async def list_config_resources(self, kinds: Iterable[str] | None = None) -> list[ConfigResource]:
        """Resources with options: of kinds "topic", "broker", "broker_logger", "client_metrics", "group", or of all."""
        return await configs.list_config_resources(self.cluster, kinds)

    @needs(topic="DESCRIBE")
    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: Isolation = "read_uncommitted"
    ) -> dict[TopicPartition, FoundOffset]:
        """Offsets by "earliest", "latest", "max_timestamp" or a time in ms, for each partition its own."""
        wanted = {partition: timestamp_of(spec) for partition, spec in specs.items()}
        return await offsets.list_offsets(
            self.cluster, wanted, isolation_level=int(isolation_level == "read_committed")
        )

    @needs(topic="DELETE")
    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, int]:
        """Delete all records before an offset (-1: all readable ones); return where the logs start now.

        Raises OffsetOutOfRangeError for an offset beyond the high watermark.
        """
        return await offsets.delete_records(self.cluster, before, timeout_ms=timeout_ms)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Transactional ids: all, or those in some states ("Ongoing"), of some producers, or open for longer.

        `pattern` is a regular expression that has to match the whole id.
        """
        return await transactions.list_transactions(self.cluster, states, producer_ids, min_duration_ms, pattern)

    @needs(topic="DESCRIBE", transaction="DESCRIBE")
    async def describe_transactions(self, ids: str | Iterable[str]) -> list[TransactionDescription]:
        """State, producer, timeout and partitions of transactional ids. Raises TransactionalIdNotFoundError."""
        return await transactions.describe_transactions(self.cluster, names_of(ids))

    @needs(topic="READ")
    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerDescription]]:
        """The producers that partitions remember, with their open transactions."""
        return await transactions.describe_producers(self.cluster, partitions)

    @needs(transaction="WRITE")
    async def fence_producers(self, ids: str | Iterable[str]) -> dict[str, tuple[int, int]]:
        """Fence the users of these transactional ids, abort open transactions; return each producer id and epoch."""
        return {name: await transactions.fence_producer(self.cluster, name) for name in names_of(ids)}

    @needs(transaction="WRITE")
    async def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction of an id, prepared or not, and fence its producer."""
        await transactions.fence_producer(self.cluster, transactional_id)

    async def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        max_transaction_timeout_ms: int = transactions.LONGEST_TIMEOUT_MS,
    ) -> list[OpenTransaction]:
        """Open transactions that no coordinator will end; in some partitions, or in all of the cluster.

        Only those whose last record is older than `max_transaction_timeout_ms` are looked at.
        """
        now_ms = time.time_ns() // 1_000_000
        return await transactions.find_hanging(self.cluster, partitions, now_ms, max_transaction_timeout_ms)

    @needs(topic="READ", cluster="ALTER")
    async def abort_hanging_transaction(self, topic: str, partition: int, start_offset: int) -> ProducerDescription:
        """End the open transaction of a partition that begins at this offset, whatever its coordinator thinks.

        Meant for results of `find_hanging_transactions`. Raises ValueError when no transaction is open there.
        """
        return await transactions.abort_hanging(self.cluster, (topic, partition), start_offset)

    async def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """All groups of the cluster, or those in certain states ("Stable") or of certain types ("classic")."""
        return await groups.list_groups(self.cluster, states, types)

    @needs(group="DESCRIBE")
    async def describe_group(self, group_id: str) -> GroupDescription:
        """State, assignor, coordinator, and members with their partitions. Raises GroupIdNotFoundError."""
        return await groups.describe_group(self.cluster, group_id)

    @needs(group="DESCRIBE")
    async def describe_consumer_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """As `describe_group`, of several groups at once. Raises SomeFailed for those that do not exist."""
        return await groups.of_several(group_ids, lambda group_id: groups.describe_group(self.cluster, group_id))

    @needs(group="READ")
    async def remove_members_from_consumer_group(
        self,
        group_id: str,
        *,
        instance_ids: Iterable[str] = (),
        member_ids: Iterable[str] = (),
        everyone: bool = False,
        reason: str = "removed by an administrator",
    ) -> None:
        """Have members leave, named by instance or member id, or `everyone`; those that still run join again.

        Raises UnknownMemberIdError, or SomeFailed, for members that the group does not have.
        """
        if everyone:
            await groups.remove_all_members(self.cluster, group_id, reason)
        else:
            await groups.remove_members(self.cluster, group_id, instance_ids, member_ids, reason)

    @needs(group="DESCRIBE", topic="DESCRIBE")
    async def group_lag(self, group_id: str) -> list[PartitionLag]:
        """Lag of the group and owner, partition by partition.

        Lag is the high watermark minus the committed offset; None where nothing is committed.
        """
        return await groups.group_lag(self.cluster, group_id)

    @needs(group="DELETE")
    async def delete_groups(self, group_ids: str | Iterable[str]) -> None:
        """Delete groups with all their offsets. Raises NonEmptyGroupError while they have members."""
        await groups.delete_groups(self.cluster, names_of(group_ids))

    @needs(group="DESCRIBE")
    async def group_offsets(self, group_id: str) -> list[CommittedOffset]:
        """Return the group's committed offsets; empty for a group that does not exist."""
        return await groups.committed_offsets(self.cluster, group_id)

    @needs(group="DESCRIBE")
    async def list_consumer_group_offsets(self, group_ids: Iterable[str]) -> dict[str, list[CommittedOffset]]:
        """As `group_offsets`, of several groups at once."""
        return await groups.of_several(group_ids, lambda group_id: groups.committed_offsets(self.cluster, group_id))

    @needs(group="READ", topic="READ")
    async def alter_group_offsets(self, group_id: str, new: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        """Commit offsets (the next ones to read) on behalf of a group without members, alone or with metadata.

        Raises UnknownMemberIdError while it has some.
        """
        await groups.write_offsets(self.cluster, group_id, new)

    @needs(group="DELETE", topic="READ")
    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete committed offsets. Raises GroupSubscribedToTopicError for topics that the group is subscribed to."""
        await groups.delete_offsets(self.cluster, group_id, partitions)

    async def plan_reset(
        self, group_id: str, target: Target, partitions: Iterable[TopicPartition | str] | None = None
    ) -> ResetPlan:
        """Return the changes that `apply_reset` would make, without making them.

        `partitions` are (topic, partition) pairs or whole topics; None means all the group has committed. Raises
        NonEmptyGroupError while the group has members.
        """
        return await reset_plan.make_plan(self.cluster, group_id, target, partitions)

    async def apply_reset(self, plan: ResetPlan) -> None:
        """Commit the offsets of a plan. Raises UnknownMemberIdError if a member has joined since it was made."""
        await groups.write_offsets(
            self.cluster, plan.group_id, {(move.topic, move.partition): move.after for move in plan.moves}
        )


class _NotStarted:
    """Stands for the connections of a client that has none, so that only their use is an error, not a look."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError("the admin client is not started, or closed; use `async with AsyncAdmin(...) as admin:`")


_NOT_STARTED: Any = _NotStarted()


def _give_back(cluster: Cluster, thread: LoopThread | None) -> None:
    cluster.close()
    if thread is not None:
        thread.stop()
