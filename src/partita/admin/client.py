"""The calls of the admin client, as coroutines. `Admin` (in `blocking`) has the same ones without `await`.

    with Admin(bootstrap_servers="localhost:9092") as admin:
        for line in admin.group_lag("orders"):
            print(line.topic, line.partition, line.lag)

Works on our broker and on any Kafka.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from partita.admin import acls as access
from partita.admin import configs, groups, offsets, placement, reset_plan, scram, topics, transactions
from partita.admin import quotas as quota_calls
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
    CreatedTopic,
    FoundOffset,
    GroupDescription,
    GroupListing,
    OngoingMove,
    OpenTransaction,
    PartitionLag,
    ProducerDescription,
    ResetPlan,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
)
from partita.admin.scram import ScramCredential, ScramUser
from partita.admin.topics import NewTopic, names_of
from partita.metrics.registry import Metrics, by_text, prometheus
from partita.net.cluster import Cluster
from partita.net.loop_thread import not_pickled
from partita.net.metrics import NetworkMetrics
from partita.protocol.messages.metadata import MetadataRequest
from partita.security.rights.acls import AclBinding, AclFilter

if TYPE_CHECKING:
    from partita.admin.option_types import AdminOptions

Isolation = Literal["read_uncommitted", "read_committed"]


class AsyncAdmin:
    """Every call is a coroutine, ends within default.api.timeout.ms, and raises KafkaError for what a broker refuses.

    Calls for several things at once raise that error if one was asked for, and SomeFailed otherwise.
    """

    __reduce__ = not_pickled

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[AdminOptions]) -> None:
        self._servers, self._config = admin_config(config, dict(options))
        self._cluster: Cluster | None = None
        self._metrics = Metrics(self._config.metrics_sample_window_ms, self._config.metrics_num_samples)
        self._network = NetworkMetrics(self._metrics, "admin-client", self._open_count)

    async def __aenter__(self) -> AsyncAdmin:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> AsyncAdmin:
        """Find the cluster within socket.connection.setup.timeout.ms; `async with` does this."""
        cluster = Cluster(self._servers, self._config)
        cluster.pool.metrics = self._network
        self._network.runs_on(threading.get_ident())
        within_ms = min(self._config.socket_connection_setup_timeout_ms, self._config.default_api_timeout_ms)
        try:
            await cluster.retry(lambda: cluster.request(None, MetadataRequest(topics=[])), timeout_ms=within_ms)
            await cluster.refresh([])
        except BaseException:
            cluster.close()
            raise
        self._cluster = cluster
        return self

    async def close(self) -> None:
        """Disconnect. May be called again."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def metrics(self) -> dict[str, float]:
        """Every number by Kafka's name, such as `request-size-avg`; averages and rates are over the last minute."""
        return by_text(self._metrics.read(time.monotonic() * 1000))

    def metrics_text(self) -> str:
        """The metrics in Prometheus' text format."""
        return prometheus(
            self._metrics, "kafka.admin.client", time.monotonic() * 1000, client_id=self._config.client_id
        )

    @property
    def _user(self) -> str | None:
        """The name that the client logs in with; None without a login."""
        return self._config.security.user

    def _open_count(self) -> int:
        return 0 if self._cluster is None else self._cluster.pool.open_count

    @property
    def cluster(self) -> Cluster:
        """The connections in use."""
        if self._cluster is None:
            raise RuntimeError("the admin client is not started, or closed; use `async with Admin(...) as admin`")
        return self._cluster

    # Topics

    @needs(topic="CREATE", cluster="CREATE")
    async def create_topics(
        self, *new: NewTopic | str, validate_only: bool = False, timeout_ms: int = 30_000
    ) -> list[CreatedTopic]:
        """Create topics, each given as NewTopic or by name alone; with `validate_only` only say if it would work."""
        for topic in new:
            if not isinstance(topic, NewTopic | str):
                raise TypeError(f"create_topics takes names and NewTopics one after the other, not {topic!r}")
        wanted = [topic if isinstance(topic, NewTopic) else NewTopic(topic) for topic in new]
        return await topics.create_topics(self.cluster, wanted, validate_only=validate_only, timeout_ms=timeout_ms)

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

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, its controller, and the nodes that are alive."""
        return await topics.describe_cluster(self.cluster)

    async def api_versions(self, node_id: int | None = None) -> list[ApiVersionRange]:
        """The APIs that a node serves, with their versions; without `node_id`, those of the node with the lowest id."""
        return await placement.api_versions(self.cluster, node_id)

    # Access

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
        """Remove the ACLs that filters select, or just these ACLs, and return what was removed."""
        filters = [
            each
            for given in wanted
            for each in ([given] if isinstance(given, AclFilter) else map(access.filter_for, access.bindings([given])))
        ]
        return await access.delete_acls(self.cluster, filters)

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

        A name that is None stands for everybody without a quota. Raises InvalidRequestError.
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

    # Placement of partitions

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

        Raises KafkaError or SomeFailed. A cluster that copies data goes on after this returns; see
        `list_partition_reassignments`.
        """
        await placement.move_replicas(self.cluster, replicas, timeout_ms=timeout_ms)

    @needs(cluster="DESCRIBE")
    async def list_partition_reassignments(self, *, timeout_ms: int = 30_000) -> list[OngoingMove]:
        """The moves that are not finished yet."""
        return await placement.list_moves(self.cluster, timeout_ms=timeout_ms)

    # Options

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

    # Offsets and records of partitions

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

    # Transactions

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
        """Fence whoever uses these transactional ids, abort what they left open; return each producer id and epoch."""
        return {name: await transactions.fence_producer(self.cluster, name) for name in names_of(ids)}

    async def find_hanging_transactions(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        max_transaction_timeout_ms: int = transactions.LONGEST_TIMEOUT_MS,
    ) -> list[OpenTransaction]:
        """Open transactions that no coordinator will end; in some partitions, or in all of the cluster.

        Only those whose last record is older than `max_transaction_timeout_ms` are looked at.
        """
        if partitions is None:
            view = await self.cluster.topics(None)
            partitions = [(name, part.partition) for name, topic in view.items() for part in topic.partitions]
        now_ms = time.time_ns() // 1_000_000
        return await transactions.find_hanging(self.cluster, partitions, now_ms, max_transaction_timeout_ms)

    @needs(topic="READ", cluster="ALTER")
    async def abort_hanging_transaction(self, topic: str, partition: int, start_offset: int) -> ProducerDescription:
        """End the open transaction of a partition that begins at this offset, whatever its coordinator thinks.

        Meant for what `find_hanging_transactions` finds. Raises ValueError when no transaction is open there.
        """
        told = await transactions.describe_producers(self.cluster, [(topic, partition)])
        open_ones = [p for p in told[topic, partition] if p.open_since_offset == start_offset]
        if not open_ones:
            raise ValueError(f"no open transaction begins at offset {start_offset} of {topic}-{partition}")
        await transactions.abort_open(self.cluster, (topic, partition), open_ones[0])
        return open_ones[0]

    # Groups

    async def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """All groups of the cluster, or those in certain states ("Stable") or of certain types ("classic")."""
        return await groups.list_groups(self.cluster, states, types)

    @needs(group="DESCRIBE")
    async def describe_group(self, group_id: str) -> GroupDescription:
        """State, assignor, coordinator, and members with what they hold. Raises GroupIdNotFoundError."""
        return await groups.describe_group(self.cluster, group_id)

    @needs(group="DESCRIBE", topic="DESCRIBE")
    async def group_lag(self, group_id: str) -> list[PartitionLag]:
        """How far the group is behind, partition by partition, and who reads it.

        Lag is the high watermark minus the committed offset; None where nothing is committed.
        """
        return await groups.group_lag(self.cluster, group_id)

    @needs(group="DELETE")
    async def delete_groups(self, group_ids: str | Iterable[str]) -> None:
        """Delete groups with all their offsets. Raises NonEmptyGroupError while they have members."""
        await groups.delete_groups(self.cluster, names_of(group_ids))

    @needs(group="DESCRIBE")
    async def group_offsets(self, group_id: str) -> list[CommittedOffset]:
        """What the group has committed; empty for a group that does not exist."""
        return await groups.committed_offsets(self.cluster, group_id)

    @needs(group="READ", topic="READ")
    async def alter_group_offsets(self, group_id: str, new: Mapping[TopicPartition, int]) -> None:
        """Commit offsets (the next ones to read) on behalf of a group without members.

        Raises UnknownMemberIdError while it has some.
        """
        await groups.write_offsets(self.cluster, group_id, new)

    @needs(group="DELETE", topic="READ")
    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget committed offsets. Raises GroupSubscribedToTopicError for topics somebody reads."""
        await groups.delete_offsets(self.cluster, group_id, partitions)

    async def plan_reset(
        self, group_id: str, target: Target, partitions: Iterable[TopicPartition | str] | None = None
    ) -> ResetPlan:
        """What `apply_reset` would do: nothing is changed yet.

        `partitions` are (topic, partition) pairs or topics, whole; None means all the group has committed. Raises
        NonEmptyGroupError while the group has members.
        """
        return await reset_plan.make_plan(self.cluster, group_id, target, partitions)

    async def apply_reset(self, plan: ResetPlan) -> None:
        """Commit the offsets of a plan. Raises UnknownMemberIdError when somebody joined since."""
        await groups.write_offsets(
            self.cluster, plan.group_id, {(move.topic, move.partition): move.after for move in plan.moves}
        )
