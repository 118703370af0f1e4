"""`group.type=share`: a stream of a share group's records (KIP-932), as Spark's Python Data Source API asks for it.

The source's own process is the member. It takes records when a batch begins, renews their locks while the batch runs,
and accepts them once Spark says that the batch is complete. The rows travel with the plan, so a batch has as many tasks
as wanted, whatever the partitions; a task that is run again has the same rows. When the process dies the broker
releases what it held, and a later batch gets these records again, one delivery further. An offset counts batches only:
a batch that a restarted query runs again is empty, for its records come with another one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from partita.consumer.sharing.settings import OPTIONS
from partita.lazy import later
from partita.options import ConfigError
from partita.spark.cluster.broker_link import imported
from partita.spark.reading import tables
from partita.spark.settings import table
from partita.spark.settings.options import SourceOptions, parse_source, without_executors
from partita.spark.spark_api import (
    HAS_LIMITS,
    DataSourceStreamReader,
    InputPartition,
    ReadLimit,
    SupportsTriggerAvailableNow,
    arrow_schema,
)
from partita.spark.worker_process import SentToWorkers, settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from partita.consumer.shell.sharing import blocking as share_consumer
    from partita.consumer.shell.sharing.blocking import ShareConsumer
else:
    pa = later("pyarrow")
    share_consumer = later("partita.consumer.shell.sharing.blocking")

log = logging.getLogger("partita.spark")
GROUP_TYPE = "group.type"
MOST = 10_000
"""Records of one batch, unless maxOffsetsPerTrigger says otherwise."""
FIRST_ANSWER_S = 60.0
"""How long the first batch waits for the group to assign partitions."""
AVAILABLE_S = 1.0
"""How long a run of AvailableNow looks for another record before it ends."""
_TAKEN = ("subscribe", "group", "includeheaders", "maxoffsetspertrigger", "minpartitions", "offsetpollms", "path")
_SPELLED = {
    option.name.lower(): option.name
    for options in (table.TOPICS, table.POSITIONS, table.READING, table.TYPED, table.LIMITS, table.GROUP)
    for option in options
}
"""Spark makes all names of options lower case."""


def is_share(options: Mapping[str, str]) -> bool:
    """Whether a read asks for a share group. Raises ConfigError for another type than share and consumer."""
    kind = next((value for name, value in options.items() if name.lower() == GROUP_TYPE), "consumer")
    if kind.lower() not in ("share", "consumer"):
        raise ConfigError(f"{GROUP_TYPE} must be consumer or share, not {kind!r}")
    return kind.lower() == "share"


def parse_share(options: Mapping[str, str]) -> SourceOptions:
    """The options of a read from a share group. Raises ConfigError for options that it has no use for."""
    rest = {name: value for name, value in options.items() if name.lower() != GROUP_TYPE}
    for name in rest:
        if not name.lower().startswith("kafka.") and name.lower() not in _TAKEN:
            spelled = _SPELLED.get(name.lower(), name)
            raise ConfigError(f"{spelled} has no meaning with {GROUP_TYPE}=share, where the group hands records out")
    group = next((value for name, value in rest.items() if name.lower() == "group"), "")
    if not group:
        raise ConfigError(f"{GROUP_TYPE}=share needs the option group: the share group that records are taken from")
    parsed = parse_source({name: value for name, value in rest.items() if name.lower() != "group"})
    if not parsed.topics.names:
        raise ConfigError(f"{GROUP_TYPE}=share needs the option subscribe: a share group reads topics by their names")
    return parsed


def share_schema(options: SourceOptions) -> StructType:
    """The columns of a record, and how often it has been delivered."""
    return tables.read_schema((*options.columns, "deliveryCount"))


class SharePartition(InputPartition):
    """The rows of one task, as an Arrow stream."""

    def __init__(self, rows: bytes) -> None:
        super().__init__(rows)
        self.rows = rows


class ShareStreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One run of a streaming read; it joins the group with the first offset call, in the source's own process."""

    def __init__(self, options: Mapping[str, str], tasks: int) -> None:
        self._options = parse_share(options)
        self._group = next(value for name, value in options.items() if name.lower() == "group")
        self._tasks = self._options.min_partitions or tasks
        self._is_available_now = False
        self._member: ShareConsumer[Any, Any] | None = None
        self._held: dict[int, pa.RecordBatch] = {}
        """Batches whose records this process holds, by their number."""
        self._reached: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_member": None, "_held": {}}

    def initialOffset(self) -> dict[str, Any]:
        """Before all batches."""
        return {"batch": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        """Such a run ends when no record is available."""
        self._is_available_now = True

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Take the records of the next batch; the same offset as `start` when there are none.

        Spark asks only when the batch before is complete, so its records are accepted here already.
        """
        if start is None:
            start = self.initialOffset() if self._reached is None else self._reached
        self.commit(start)
        taken = self._take()
        if taken is None:
            return start
        number = int(start["batch"]) + 1
        self._held[number] = taken
        return {"batch": number}

    def _take(self) -> pa.RecordBatch | None:
        consumer = self._consumer()
        if consumer.lock_timeout_ms() is None:
            wait_s = FIRST_ANSWER_S
        else:
            wait_s = AVAILABLE_S if self._is_available_now else self._options.offset_poll_ms / 1000
        batch = consumer.poll_arrow(wait_s, headers="headers" in self._options.columns, timestamp_unit="us")
        if batch is not None:
            consumer.keep(batch)
        return batch

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch. One that another process had begun is empty: its records come again by themselves."""
        if not HAS_LIMITS:
            self._reached = end
        schema = arrow_schema(share_schema(self._options))
        tasks: list[InputPartition] = []
        for number in range(int(start["batch"]) + 1, int(end["batch"]) + 1):
            if (held := self._held.get(number)) is not None:
                tasks += [SharePartition(rows) for rows in cut(tables.chosen(held, schema), self._tasks)]
        settle()
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task, in a worker. Spark turns an empty list of partitions into one without rows."""
        if isinstance(partition, SharePartition):
            yield from pa.ipc.open_stream(partition.rows)
        settle()

    def commit(self, end: dict[str, Any]) -> None:
        """Accept the records of complete batches."""
        done = [number for number in self._held if number <= int(end["batch"])]
        if not done:
            return
        consumer = self._consumer()
        for number in done:
            consumer.acknowledge(self._held.pop(number), "accept")
        for place, error in consumer.commit_sync().items():
            if error is not None:
                log.warning("group %s: records of %s are not accepted and come again: %s", self._group, place, error)

    def stop(self) -> None:
        """The query has ended: what is held goes back to the group."""
        member, self._member = self._member, None
        if member is not None:
            member.close(5.0)

    def _consumer(self) -> ShareConsumer[Any, Any]:
        if self._member is None:
            self._member = share_consumer.ShareConsumer(self._consumer_options())
            self._member.subscribe(self._options.topics.names)
        return self._member

    def _consumer_options(self) -> dict[str, Any]:
        """The read's options that a share consumer has, too, in Kafka's own spelling."""
        known = {name for option in OPTIONS for name in (option.name, *option.aliases)}
        client = without_executors(self._options.client)
        taken: dict[str, Any] = {name: value for name, value in client.items() if name.replace(".", "_") in known}
        if isinstance(provider := taken.get("sasl.oauth.token.provider"), str):
            taken["sasl.oauth.token.provider"] = imported(provider)
        return taken | {
            "client.id": client.get("client.id", "partita-spark"),
            "group.id": self._group,
            "max.poll.records": self._options.limits.max_offsets or MOST,
            "share.acknowledgement.mode": "explicit",
        }


def cut(batch: pa.RecordBatch, tasks: int) -> Iterator[bytes]:
    """The rows in so many parts at most, none of them empty."""
    size = -(-batch.num_rows // max(1, tasks))
    for at in range(0, batch.num_rows, size):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch.slice(at, size))
        yield sink.getvalue().to_pybytes()
