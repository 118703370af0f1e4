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
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from partita.admin import configs, groups, offsets, placement, reset_plan, topics, transactions
from partita.admin.access import acls as access
from partita.admin.access import delegation_tokens as lent
from partita.admin.access import quotas, scram
from partita.admin.config import admin_config
from partita.metrics.registry import Metrics, by_text, prometheus
from partita.net.broker_news import WARNINGS
from partita.net.cluster import Cluster
from partita.net.config import ClientConfig
from partita.net.faces import not_pickled
from partita.net.loop_thread import LoopThread
from partita.net.metrics import NetworkMetrics
from partita.protocol.messages.metadata import MetadataRequest
from partita.wording import Note

if TYPE_CHECKING:
    from partita.option_types import AdminOptions

_LOG = logging.getLogger("partita.admin")


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
    """Calls end within default.api.timeout.ms, and raise KafkaError for what a broker refuses.

    All are coroutines but those about credentials, notes and metrics. Calls for several things at once raise that error
    if one was asked for, and SomeFailed otherwise.
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

    # Each call stands in the module of its subject.

    create_topics = topics.create_topics
    create_topic = topics.create_topic
    delete_topics = topics.delete_topics
    list_topics = topics.list_topics
    describe_topics = topics.describe_topics
    create_partitions = topics.create_partitions
    wait_for_topics = topics.wait_for_topics
    describe_cluster = topics.describe_cluster
    api_versions = placement.api_versions
    describe_log_dirs = placement.describe_log_dirs
    describe_features = placement.describe_features
    update_features = placement.update_features
    describe_metadata_quorum = placement.describe_metadata_quorum
    create_acls = access.create_acls
    describe_acls = access.describe_acls
    delete_acls = access.delete_acls
    alter_client_quotas = quotas.alter_client_quotas
    describe_client_quotas = quotas.describe_client_quotas
    alter_scram_users = scram.alter_scram_users
    describe_scram_users = scram.describe_scram_users
    create_delegation_token = lent.create_delegation_token
    renew_delegation_token = lent.renew_delegation_token
    expire_delegation_token = lent.expire_delegation_token
    describe_delegation_tokens = lent.describe_delegation_tokens
    elect_leaders = placement.elect_leaders
    alter_partition_reassignments = placement.alter_partition_reassignments
    list_partition_reassignments = placement.list_partition_reassignments
    describe_configs = configs.describe_configs
    alter_configs = configs.alter_configs
    list_config_resources = configs.list_config_resources
    list_offsets = offsets.list_offsets
    delete_records = offsets.delete_records
    list_transactions = transactions.list_transactions
    describe_transactions = transactions.describe_transactions
    describe_producers = transactions.describe_producers
    fence_producers = transactions.fence_producers
    force_terminate_transaction = transactions.force_terminate_transaction
    find_hanging_transactions = transactions.find_hanging_transactions
    abort_hanging_transaction = transactions.abort_hanging_transaction
    list_groups = groups.list_groups
    describe_group = groups.describe_group
    describe_consumer_groups = groups.describe_consumer_groups
    remove_members_from_consumer_group = groups.remove_members_from_consumer_group
    group_lag = groups.group_lag
    delete_groups = groups.delete_groups
    group_offsets = groups.group_offsets
    list_consumer_group_offsets = groups.list_consumer_group_offsets
    alter_group_offsets = groups.alter_group_offsets
    delete_group_offsets = groups.delete_group_offsets
    plan_reset = reset_plan.plan_reset
    apply_reset = reset_plan.apply_reset


class _NotStarted:
    """Stands for the connections of a client that has none, so that only their use is an error, not a look."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError("the admin client is not started, or closed; use `async with AsyncAdmin(...) as admin:`")


_NOT_STARTED: Any = _NotStarted()


def _give_back(cluster: Cluster, thread: LoopThread | None) -> None:
    cluster.close()
    if thread is not None:
        thread.stop()
