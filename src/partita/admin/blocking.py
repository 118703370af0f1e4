"""The blocking face of the admin client: the coroutines of AsyncAdmin, run on a loop in a separate thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from partita.admin.client import AdminCalls, AsyncAdmin
from partita.net.faces import OneFace
from partita.net.loop_thread import LoopThread

if TYPE_CHECKING:
    from partita.option_types import AdminOptions

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(
    coroutine: Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Admin, P], R]:
    """The same call, with the same arguments, that returns when it is done."""

    def call(self: Admin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._started().run(coroutine(self._admin, *args, **kwargs))

    update_wrapper(call, coroutine)
    return call


class Admin(AdminCalls):
    """The calls of AsyncAdmin, blocking. Options are Kafka's, with underscores, or a dict in Kafka's own spelling."""

    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[AdminOptions]) -> None:
        self._admin = AsyncAdmin(config, **options)
        self._config, self._metrics, self._notes = self._admin._config, self._admin._metrics, self._admin._notes
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._is_closed = False
        self._face = OneFace("Admin")

    def __enter__(self) -> Self:
        self._started()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> AsyncAdmin:
        self._face.enter_async(is_used=self._thread is not None)
        return await self._admin.__aenter__()

    async def __aexit__(self, *exc: object) -> None:
        await self._admin.__aexit__(*exc)

    def close(self) -> None:
        """Disconnect. May be called again. In a forked child nothing happens: the connections are the parent's."""
        self._face.check_blocking()
        with self._lock:
            self._is_closed = True
            thread, self._thread = self._thread, None
        if thread is not None and not thread.is_forked:
            try:
                if thread.failure is None:
                    thread.run(self._admin.close())
            finally:
                thread.stop()

    def _started(self) -> LoopThread:
        self._face.check_blocking()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the admin client is closed")
            if self._thread is None:
                thread = LoopThread("partita-admin")
                try:
                    thread.run(self._admin.start())
                except BaseException:
                    thread.stop()
                    raise
                self._thread = self._admin._thread = thread
            return self._thread

    create_topics = _blocking(AsyncAdmin.create_topics)
    create_topic = _blocking(AsyncAdmin.create_topic)
    delete_topics = _blocking(AsyncAdmin.delete_topics)
    list_topics = _blocking(AsyncAdmin.list_topics)
    describe_topics = _blocking(AsyncAdmin.describe_topics)
    create_partitions = _blocking(AsyncAdmin.create_partitions)
    wait_for_topics = _blocking(AsyncAdmin.wait_for_topics)
    describe_cluster = _blocking(AsyncAdmin.describe_cluster)
    api_versions = _blocking(AsyncAdmin.api_versions)
    describe_log_dirs = _blocking(AsyncAdmin.describe_log_dirs)
    describe_features = _blocking(AsyncAdmin.describe_features)
    update_features = _blocking(AsyncAdmin.update_features)
    describe_metadata_quorum = _blocking(AsyncAdmin.describe_metadata_quorum)
    create_acls = _blocking(AsyncAdmin.create_acls)
    describe_acls = _blocking(AsyncAdmin.describe_acls)
    delete_acls = _blocking(AsyncAdmin.delete_acls)
    alter_client_quotas = _blocking(AsyncAdmin.alter_client_quotas)
    describe_client_quotas = _blocking(AsyncAdmin.describe_client_quotas)
    alter_scram_users = _blocking(AsyncAdmin.alter_scram_users)
    describe_scram_users = _blocking(AsyncAdmin.describe_scram_users)
    create_delegation_token = _blocking(AsyncAdmin.create_delegation_token)
    renew_delegation_token = _blocking(AsyncAdmin.renew_delegation_token)
    expire_delegation_token = _blocking(AsyncAdmin.expire_delegation_token)
    describe_delegation_tokens = _blocking(AsyncAdmin.describe_delegation_tokens)
    elect_leaders = _blocking(AsyncAdmin.elect_leaders)
    alter_partition_reassignments = _blocking(AsyncAdmin.alter_partition_reassignments)
    list_partition_reassignments = _blocking(AsyncAdmin.list_partition_reassignments)
    describe_configs = _blocking(AsyncAdmin.describe_configs)
    alter_configs = _blocking(AsyncAdmin.alter_configs)
    list_config_resources = _blocking(AsyncAdmin.list_config_resources)
    list_offsets = _blocking(AsyncAdmin.list_offsets)
    delete_records = _blocking(AsyncAdmin.delete_records)
    list_transactions = _blocking(AsyncAdmin.list_transactions)
    describe_transactions = _blocking(AsyncAdmin.describe_transactions)
    describe_producers = _blocking(AsyncAdmin.describe_producers)
    fence_producers = _blocking(AsyncAdmin.fence_producers)
    force_terminate_transaction = _blocking(AsyncAdmin.force_terminate_transaction)
    find_hanging_transactions = _blocking(AsyncAdmin.find_hanging_transactions)
    abort_hanging_transaction = _blocking(AsyncAdmin.abort_hanging_transaction)
    list_groups = _blocking(AsyncAdmin.list_groups)
    describe_group = _blocking(AsyncAdmin.describe_group)
    describe_consumer_groups = _blocking(AsyncAdmin.describe_consumer_groups)
    remove_members_from_consumer_group = _blocking(AsyncAdmin.remove_members_from_consumer_group)
    group_lag = _blocking(AsyncAdmin.group_lag)
    delete_groups = _blocking(AsyncAdmin.delete_groups)
    group_offsets = _blocking(AsyncAdmin.group_offsets)
    list_consumer_group_offsets = _blocking(AsyncAdmin.list_consumer_group_offsets)
    alter_group_offsets = _blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = _blocking(AsyncAdmin.delete_group_offsets)
    plan_reset = _blocking(AsyncAdmin.plan_reset)
    apply_reset = _blocking(AsyncAdmin.apply_reset)
