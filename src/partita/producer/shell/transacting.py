"""Sends the requests of transactions to coordinators, and waits for the application's calls.

All rules are in `partita.producer.transactions`; this sends one request at a time and reports its outcome.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from partita.errors import KafkaError
from partita.net.cluster import Cluster
from partita.net.errors import VersionMismatch
from partita.offsets import committable
from partita.offsets.committable import Committable
from partita.offsets.topic_partition import GroupMetadata
from partita.producer.core import ProducerCore
from partita.producer.errors import ProducerClosedError, TransactionMisuseError, TransactionTimeoutError
from partita.producer.shell.metrics import ProducerMetrics
from partita.producer.transactions.calls import Ask, Call, CallKind, Member, Offsets, TxnOffset
from partita.producer.transactions.core import Transactions

FEATURE = "transaction.version"
_SENSORS = {
    CallKind.INIT: "txn-init",
    CallKind.SEND_OFFSETS: "txn-send-offsets",
    CallKind.COMMIT: "txn-commit",
    CallKind.ABORT: "txn-abort",
}


class TransactionCalls:
    """Belongs to one producer's loop. `changed` guards the core; `wake` has the core looked at soon."""

    def __init__(
        self,
        core: ProducerCore,
        cluster: Cluster,
        changed: threading.Condition,
        wake: Callable[[], None],
        measured: ProducerMetrics,
    ) -> None:
        self._core = core
        self._cluster = cluster
        self._changed = changed
        self._wake = wake
        self._measured = measured

    @property
    def transactions(self) -> Transactions:
        """The state of the transaction. Raises TransactionMisuseError for a producer without transactional_id."""
        if self._core.transactions is None:
            raise TransactionMisuseError("this producer has no transactions; give it a transactional_id")
        if self._core.is_closed:
            raise ProducerClosedError(self._core.closed_because)
        return self._core.transactions

    def begin(self) -> None:
        """Open a transaction."""
        started = time.monotonic()
        with self._changed:
            self.transactions.begin()
        self._took("txn-begin", started)

    async def call(self, start: Callable[[Transactions], Call]) -> None:
        """Start a call and wait for its end, at most max.block.ms. Raises its error, or TransactionTimeoutError."""
        started = time.monotonic()
        with self._changed:
            transactions = self.transactions
            call = start(transactions)
        limit_ms = self._core.config.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self.ended(call)
        except TimeoutError:
            name = call.kind.value
            with self._changed:
                cause = self._cluster.trouble or transactions.trouble
            trouble = f" ({cause})" if cause is not None else ""
            offsets = "; commit_transaction waits for the offsets, abort_transaction drops them"
            again = offsets if call.kind is CallKind.SEND_OFFSETS else f"; call {name} again to learn how it ends"
            raise TransactionTimeoutError(
                f"{name} did not end within max_block_ms {limit_ms}{trouble}{again}"
            ) from cause
        finally:
            self._took(_SENSORS[call.kind], started)
        with self._changed:
            transactions.heard(call)
        if call.error is not None:
            raise call.error

    async def send_offsets(self, given: Committable, of: GroupMetadata) -> None:
        """Commit the offsets with the transaction, for the member. Raises TypeError and ValueError."""
        wanted = committable.offsets(given)
        if wanted is None:
            raise TypeError(
                "send_offsets_to_transaction takes a dict such as {('orders', 0): 42}, a record, or what a poll "
                "returned"
            )
        if not isinstance(of, GroupMetadata):
            raise TypeError(
                f"send_offsets_to_transaction takes the group's metadata from consumer.group_metadata(), not {of!r}"
            )
        offsets: Offsets = {tp: TxnOffset(at.offset, at.leader_epoch, at.metadata) for tp, at in wanted.items()}
        member = Member(of.group_id, of.generation_id, of.member_id, of.group_instance_id)
        await self.call(lambda transactions: transactions.send_offsets(offsets, member))

    async def ended(self, call: Call) -> None:
        """Wait until the call is done."""
        done = asyncio.Event()
        with self._changed:
            if call.is_done:
                return
            call.callbacks.append(done.set)
        self._wake()
        await done.wait()

    async def carry_out(self, ask: Ask) -> None:
        """Send one request to its coordinator and report the answer, or why there is none."""
        assert self._core.transactions is not None, "only transactions ask coordinators"
        await carry_out(ask, self._core.transactions, self._cluster, self._changed)
        self._wake()

    def _took(self, sensor: str, started: float) -> None:
        ended = time.monotonic()
        self._measured.record(sensor, (ended - started) * 1e9, ended * 1000)


async def carry_out(
    ask: Ask, transactions: Transactions, cluster: Cluster, guard: AbstractContextManager[object]
) -> None:
    """Send one request to its coordinator and pass the answer to the transactions, with `guard` held."""
    now = asyncio.get_running_loop().time
    try:
        connection = await cluster.coordinator_connection(ask.key, ask.key_type)
        with guard:
            transactions.learn(connection.features_epoch, connection.finalized_features.get(FEATURE, 0))
        version = connection.version_for(ask.message, ask.version_max)
        if version < ask.version_min:
            raise VersionMismatch(
                f"{ask.api}: {connection.address} serves versions up to {version}, and {ask.version_min} is needed: "
                "brokers of release 2.5 or later"
            )
        answer = await connection.send(ask.message, version)
    except KafkaError as error:
        with guard:
            transactions.on_trouble(ask, error, int(now() * 1000))
    else:
        with guard:
            transactions.on_answer(ask, answer, int(now() * 1000))
    with guard:
        lost = transactions.take_lost()
    for key, key_type in lost:
        cluster.forget_coordinator(key, key_type)
