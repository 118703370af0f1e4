# cython: freethreading_compatible=True
"""The short path of a plain record: straight into the open batch of its partition.

Most records are alike: bytes or text, no headers, a partition that is chosen here, a batch with room. For those, one
function decides what `Intake.add` decides in many; every other record, and the first one of a batch, goes the whole
way. Both ways give the same batches. Compiled by Cython when a compiler is there (its types: direct.pxd); the same file
runs uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from partita.producer.core import ProducerCore
from partita.producer.delivery import Delivery
from partita.producer.intake import STICKY_OVERHEAD_BYTES
from partita.producer.partitioner import partition_for_key

_OVERHEAD: int = STICKY_OVERHEAD_BYTES


class DirectSend:
    """`add` takes a record in, or returns None for one that has to go the whole way.

    `guard` is the lock around the core, `wall_ns` the clock of new records, `make` the class of what is handed out, and
    `full` is called, without the lock, whenever a batch has become full.
    """

    __slots__ = (
        "_accumulator",
        "_batch_size",
        "_blocked",
        "_core",
        "_full",
        "_guard",
        "_ignores_keys",
        "_is_full",
        "_is_off",
        "_limits",
        "_make",
        "_owner",
        "_queues",
        "_room",
        "_size_max",
        "_sticky",
        "_view",
        "_wall_ns",
    )  # fmt: skip

    def __init__(
        self,
        core: ProducerCore,
        guard: AbstractContextManager[Any],
        make: Callable[[None, object], Delivery],
        owner: object,
        wall_ns: Callable[[], int],
        full: Callable[[], object],
    ) -> None:
        config, intake = core.config, core.intake
        self._core = core
        self._guard = guard
        self._make = make
        self._owner = owner
        self._wall_ns = wall_ns
        self._full = full
        self._accumulator = core.accumulator
        self._view = core.view
        self._queues = core.accumulator.queues
        self._sticky = intake.sticky
        self._blocked = intake.blocked
        self._is_full = False  # by the record just taken
        self._is_off = core.transactions is not None or config.partitioner is not None
        self._ignores_keys = config.ignore_keys
        self._room = config.buffer_memory
        self._size_max = intake.size_max
        self._batch_size = config.batch_size

    def add(self, topic: str, value: Any, key: Any) -> Delivery | None:
        """Put the record into its open batch. None, and nothing done, if it is not that simple."""
        if self._is_off or type(topic) is not str:
            return None
        if type(value) is str:
            value = value.encode()
        if type(key) is str:
            key = key.encode()
        if (value is not None and type(value) is not bytes) or (key is not None and type(key) is not bytes):
            return None
        timestamp = self._wall_ns()
        with self._guard:
            delivery = self._place(topic, key, value, timestamp // 1_000_000)
            is_full = self._is_full
            self._is_full = False
        if is_full:
            self._full()
        return delivery

    def _place(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int) -> Delivery | None:
        accumulator, sticky = self._accumulator, self._sticky.get(topic)
        used = accumulator.used_bytes
        if self._blocked or used >= self._room or self._core.is_closed:
            return None
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        size = max(key_size, 0) + max(value_size, 0)
        if size > self._size_max:
            return None
        partition = -1
        if key is not None and not self._ignores_keys:
            view = self._view.topics.get(topic)
            if view is not None and view.partitions:
                partition = partition_for_key(key, len(view.partitions))
        elif sticky is not None:
            partition = sticky.current(self._view.version)
        queue = self._queues.get((topic, partition))
        if queue is None or not queue.waiting:
            return None
        batch = queue.waiting[-1]
        if batch.is_closed or batch.attempts:
            return None
        builder = batch.builder
        before = builder.size_in_bytes
        if not builder.append(timestamp, key, value, ()):
            return None
        accumulator.used_bytes = used + builder.size_in_bytes - before
        if sticky is not None:
            sticky.sent(partition, _OVERHEAD + size)
        if builder.size_in_bytes >= self._batch_size:
            batch.is_closed = self._is_full = True
        delivery = self._make(None, self._owner)
        delivery.batch = batch
        delivery.index = builder.records_count - 1
        delivery.timestamp = timestamp
        delivery.key_size = key_size
        delivery.value_size = value_size
        return delivery
