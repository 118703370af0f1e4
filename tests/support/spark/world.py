"""A Spark session and a broker for a test: short ways to fill topics, read them and run streams."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from partita.protocol.messages.delete_topics import DeleteTopicsRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.batch import build_batch
from partita.spark.cluster.broker_link import link_to
from partita.spark.cluster.cluster_lookups import ClusterLookups
from partita.spark.planning.lookups import Committed

FORMAT = "partita"
QUICK_START = {"spark.driver.extraJavaOptions": "-Xss8m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xverify:none"}
"""Short queries gain nothing from the second compiler, and wait for it; Spark's own classes need no second look."""
STARTS = 6
_numbers = count()


@dataclass
class SparkWorld:
    """Topics and groups get names of their own, so that tests share the session and the broker."""

    spark: SparkSession
    bootstrap: str
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def topic(self) -> str:
        return f"topic-{self.number}"

    @property
    def group(self) -> str:
        return f"group-{self.number}"

    def options(self, **options: str) -> dict[str, str]:
        plain = {"kafka.bootstrap.servers": self.bootstrap}
        named = {"subscribe", "subscribePattern", "assign", "topic"} & options.keys()
        return plain | ({} if named else {"subscribe": self.topic}) | options

    def create(self, partitions: int = 1, topic: str | None = None, **configs: str) -> None:
        """Its records are old, and kept for ever: the broker's next look for expired ones takes none of them."""
        settings = {"retention_ms": "-1"} | configs
        named = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in settings.items()]
        name = topic or self.topic
        new = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=named)
        answer = self._ask(CreateTopicsRequest(topics=[new], timeout_ms=10_000))
        assert answer.topics[0].error_code == 0, answer

    def delete(self) -> None:
        self._ask(DeleteTopicsRequest(topic_names=[self.topic], timeout_ms=10_000), version=5)

    def produce(self, values: Iterable[str | bytes], partition: int = 0, timestamp_ms: int = 1_700_000_000_000) -> None:
        """One batch; the records' timestamps are one millisecond apart."""
        batch = build_batch([(timestamp_ms + i, None, raw, ()) for i, raw in enumerate(map(_raw, values))])
        data = [
            TopicProduceData(name=self.topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        ]
        code: int = ErrorCode.NOT_LEADER_OR_FOLLOWER  # Apache Kafka says so for a moment after the topic was made
        while code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            answer = self._ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data), version=9)
            code = answer.responses[0].partition_responses[0].error_code
        assert code == 0, answer

    def delete_records(self, before: int, partition: int = 0) -> None:
        cut = DeleteRecordsPartition(partition_index=partition, offset=before)
        topic = DeleteRecordsTopic(name=self.topic, partitions=[cut])
        self._ask(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000))

    def committed(self, partitions: int = 1) -> dict[int, tuple[int, str]]:
        """What the group holds: offset and metadata by partition."""
        lookups = ClusterLookups(link_to({"bootstrap.servers": self.bootstrap}))
        found = lookups.committed(self.group, [(self.topic, p) for p in range(partitions)])
        return {partition: (c.offset, c.metadata) for (_, partition), c in found.items()}

    def commit(self, offset: int, metadata: str) -> None:
        """Commit for the group, which has no members."""
        lookups = ClusterLookups(link_to({"bootstrap.servers": self.bootstrap}))
        lookups.commit(self.group, {(self.topic, 0): Committed(offset, 0, metadata)})

    def _ask(self, request: Any, version: int | None = None) -> Any:
        link = link_to({"bootstrap.servers": self.bootstrap})
        return link.call(link.cluster.request(None, request, version))

    def read(self, **options: str) -> DataFrame:
        return self.spark.read.format(FORMAT).options(**self.options(**options)).load()

    def view(self, view: str) -> list[Row]:
        """The rows of this test's group in a view."""
        table = self.spark.read.format(FORMAT).options(**{"kafka.bootstrap.servers": self.bootstrap}, view=view).load()
        rows: list[Row] = table.where(f"group = '{self.group}'").collect()
        return rows

    def values(self, **options: str) -> list[str]:
        return sorted(row.value.decode() for row in self.read(**options).select("value").collect())

    def stream(self, **options: str) -> DataFrame:
        given = {"startingOffsets": "earliest"} | options
        return self.spark.readStream.format(FORMAT).options(**self.options(**given)).load()

    def write(self, table: DataFrame, mode: str = "append", **options: str) -> None:
        table.write.format(FORMAT).options(**self.options(**({"topic": self.topic} | options))).mode(mode).save()


@dataclass
class Collector:
    """A foreachBatch sink: the values of every batch it was given; fails in the batch `fail_in`."""

    batches: list[tuple[int, list[str]]] = field(default_factory=list)
    fail_in: int | None = None
    checkpoint: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="partita-test-"))

    def __call__(self, rows: DataFrame, batch: int) -> None:
        found: list[Row] = rows.select("value").collect()
        self.batches.append((batch, sorted(row.value.decode() for row in found)))
        if batch == self.fail_in:
            raise RuntimeError(f"batch {batch} was told to fail")

    def start(self, stream: DataFrame, **trigger: Any) -> StreamingQuery:
        """Returns when the query has its sources. Spark gives the process of a source ten seconds to come up, which a
        very busy machine can miss several times: then the query is started again."""
        writer = stream.writeStream.foreachBatch(self).option("checkpointLocation", self.checkpoint)
        writer = writer.trigger(**(trigger or {"availableNow": True}))
        for _ in range(STARTS):
            query = writer.start()
            while query.status["message"].startswith("Initializing"):
                time.sleep(0.02)
            if "failed to connect back" not in str(query.exception()):
                break
        return query

    def run(self, stream: DataFrame, **trigger: Any) -> StreamingQuery:
        """Until the query ends by itself; raises what made it fail."""
        query = self.start(stream, **trigger)
        try:
            assert query.awaitTermination(180), "the query did not end"
        finally:
            query.stop()
        return query

    @property
    def values(self) -> list[list[str]]:
        return [values for _, values in self.batches]


def _raw(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
