"""One topic "t" on a broker that answers fetches and produces from a script; for the clients of Spark tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from partita.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from partita.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from partita.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from partita.records.header import BatchHeader, read_header
from partita.spark.cluster.broker_link import BrokerLink
from support.broker.wire_server import WireServer

TOPIC_ID = bytes(range(16))


class ScriptedBroker:
    """`fetches` maps an offset to what is answered there: bytes of batches, or an error code, or a list of such."""

    def __init__(self, leader: ScriptedBroker | None = None) -> None:
        self.leader = leader
        self.topic_id = TOPIC_ID
        self.fetches: dict[int, bytes | int | list[bytes | int]] = {}
        self.log_start = 0
        self.high_watermark = 0
        self.aborted: list[Any] = []
        self.produce_errors: list[int] = []
        self.produced: list[tuple[int, bytes]] = []
        self.stored: list[tuple[int, bytes]] = []
        self._next_sequence: dict[int, int] = {}
        self.message_bytes_max: int | None = None
        self.follower: ScriptedBroker | None = None
        """A second broker of the cluster."""
        self.rack, self.named = "", -1
        """The rack for whose clients another broker is named, and its id."""
        self.fetched: list[tuple[int, str]] = []
        """Offset and rack of every fetch."""
        self.server = WireServer(self.answer)

    def answer(self, key: int, version: int, request: Any) -> Any:
        if key == 3 and self.leader is not None:
            return self.leader.answer(key, version, request)
        match key:
            case 0:
                return self._produce(request)
            case 1:
                return self._fetch(request)
            case 2:
                asked = [p.partition_index for p in request.topics[0].partitions]
                found = [ListOffsetsPartitionResponse(partition_index=p, offset=self.log_start) for p in asked]
                return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=found)])
            case 3:
                parts = [MetadataResponsePartition(partition_index=p, leader_id=1, leader_epoch=0) for p in range(2)]
                servers = [self.server] if self.follower is None else [self.server, self.follower.server]
                return MetadataResponse(
                    brokers=[
                        MetadataResponseBroker(node_id=i, host="127.0.0.1", port=server.port)
                        for i, server in enumerate(servers, 1)
                    ],
                    topics=[MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=parts)],
                )
        return None

    def _fetch(self, request: Any) -> FetchResponse:
        asked = request.topics[0].partitions[0]
        self.fetched.append((asked.fetch_offset, request.rack_id))
        names_follower = self.named >= 0 and request.rack_id == self.rack
        found = b"" if names_follower else self._found(asked)
        data = PartitionData(
            partition_index=asked.partition,
            error_code=found if isinstance(found, int) else 0,
            high_watermark=self.high_watermark,
            aborted_transactions=self.aborted,
            preferred_read_replica=self.named if names_follower else -1,
            records=None if isinstance(found, int) else found,
        )
        topic = FetchableTopicResponse(topic="t", topic_id=request.topics[0].topic_id, partitions=[data])
        return FetchResponse(responses=[topic])

    def _found(self, asked: Any) -> bytes | int:
        found = self.fetches.get(asked.fetch_offset, b"")
        if isinstance(found, list):
            found = found.pop(0)
        return found

    def _produce(self, request: Any) -> ProduceResponse:
        error = self.produce_errors.pop(0) if self.produce_errors else 0
        answers = []
        for data in request.topic_data[0].partition_data:
            self.produced.append((data.index, bytes(data.records)))
            if self.message_bytes_max is not None and len(data.records) > self.message_bytes_max:
                error = ErrorCode.MESSAGE_TOO_LARGE
            code = error or self._judge_sequence(data.index, read_header(data.records))
            if not code:
                self.stored.append((data.index, bytes(data.records)))
            answers.append(PartitionProduceResponse(index=data.index, error_code=code))
        return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=answers)])

    def _judge_sequence(self, partition: int, header: BatchHeader) -> int:
        """As Kafka does: any sequence from a producer that it does not know yet, then only the next one."""
        if header.base_sequence < 0:
            return 0
        expected = self._next_sequence.get(partition, header.base_sequence)
        if header.base_sequence < expected:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        if header.base_sequence > expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self._next_sequence[partition] = expected + header.records_count
        return 0


@contextmanager
def scripted_broker(
    client: dict[str, str] | None = None, rack: str = ""
) -> Iterator[tuple[ScriptedBroker, BrokerLink]]:
    """The broker, and a link to it with these client options; the server runs in the loop of a link of its own.

    With a `rack` it is a leader with a follower in that rack.
    """
    broker, runner = ScriptedBroker(), BrokerLink({"bootstrap.servers": "127.0.0.1:1"})
    if rack:
        broker.follower, broker.rack, broker.named = ScriptedBroker(leader=broker), rack, 2
    servers = [one.server for one in (broker, broker.follower) if one is not None]
    for server in servers:
        runner.call(server.__aenter__())
    try:
        yield broker, BrokerLink({"bootstrap.servers": f"127.0.0.1:{broker.server.port}"} | (client or {}))
    finally:
        for server in servers:
            runner.call(server.__aexit__())
