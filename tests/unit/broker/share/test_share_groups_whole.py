"""Share groups end to end: a member joins, takes records and acknowledges them, also over a restart."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareOffsetsPartition,
    AlterShareOffsetsTopic,
)
from partita.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareOffsetsGroup,
)
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    ShareAcknowledgePartition,
    ShareAcknowledgeRequest,
    ShareAcknowledgeTopic,
)
from partita.protocol.messages.share_fetch import ShareFetchPartition, ShareFetchRequest, ShareFetchTopic
from support.broker.raw import WITHIN_SECONDS, Raw
from support.share.beats import share_beat, share_join

GROUP, ACCEPT, RELEASE = 32, 1, 2


class Reader:
    """One share session of member "a"; `t` has one partition."""

    def __init__(self, raw: Raw, topic_id: bytes) -> None:
        self.raw = raw
        self.topic_id = topic_id
        self.epoch = 0

    def acquired(self) -> list[tuple[int, int, int]]:
        """The records of the first fetch that has any."""
        end = time.monotonic() + WITHIN_SECONDS
        while time.monotonic() < end:
            topic = ShareFetchTopic(topic_id=self.topic_id, partitions=[ShareFetchPartition(partition_index=0)])
            request = ShareFetchRequest(
                group_id="g", member_id="a", share_session_epoch=self.epoch, max_wait_ms=1_000, min_bytes=1,
                max_records=100, batch_size=100, topics=[topic] if self.epoch == 0 else [],
            )  # fmt: skip
            answer = self.raw.ask(request, 2)
            assert answer.error_code == 0, answer
            self.epoch += 1
            parts = [part for topic in answer.responses for part in topic.partitions]
            assert not any(part.error_code for part in parts), parts
            if found := [batch for part in parts for batch in part.acquired_records]:
                return [(batch.first_offset, batch.last_offset, batch.delivery_count) for batch in found]
        raise AssertionError("no records came")

    def acknowledge(self, first: int, last: int, kind: int) -> int:
        batch = AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
        part = ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        request = ShareAcknowledgeRequest(
            group_id="g", member_id="a", share_session_epoch=self.epoch,
            topics=[ShareAcknowledgeTopic(topic_id=self.topic_id, partitions=[part])],
        )  # fmt: skip
        self.epoch += 1
        answer: Any = self.raw.ask(request, 2)
        return int(answer.error_code or answer.responses[0].partitions[0].error_code)


def lag(raw: Raw) -> tuple[int, int]:
    """Start offset and lag of t-0."""
    asked = DescribeShareOffsetsGroup(group_id="g", topics=None)
    part = raw.ask(DescribeShareGroupOffsetsRequest(groups=[asked]), 1).groups[0].topics[0].partitions[0]
    return part.start_offset, part.lag


def from_the_start(raw: Raw) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=GROUP, resource_name="g", configs=[config])
    assert raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0].error_code == 0


def started(path: Path) -> Broker:
    return Broker(data_dir=str(path), group_share_assignment_interval_ms=0)


@pytest.mark.case("SG-N01", "SG-H04", "SG-F01", "SG-E12")
def test_records_are_taken_acknowledged_and_not_given_again_over_a_restart(tmp_path: Path) -> None:
    with started(tmp_path) as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 1})
        for number in range(10):
            broker.produce("t", str(number), partition=0)
        topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
        raw.find("g")
        from_the_start(raw)
        assert share_join(raw).error_code == 0
        reader = Reader(raw, topic_id)
        assert reader.acquired() == [(0, 9, 1)]
        assert reader.acknowledge(0, 5, ACCEPT) == 0
        assert reader.acknowledge(6, 9, RELEASE) == 0
        assert lag(raw)[1] == 4
    with started(tmp_path) as broker, Raw(broker.port) as raw:
        raw.find("g")
        assert share_join(raw).error_code == 0
        reader = Reader(raw, topic_id)
        assert reader.acquired() == [(6, 9, 2)]
        assert reader.acknowledge(6, 9, ACCEPT) == 0
        assert lag(raw)[1] == 0


@pytest.mark.case("SG-H06")
def test_offsets_that_are_altered_count_at_once_in_a_session_that_is_open(tmp_path: Path) -> None:
    """Ours: Kafka serves the old view until the session's connection closes."""
    with started(tmp_path) as broker, Raw(broker.port) as raw:
        broker.create_topics({"t": 1})
        for number in range(10):
            broker.produce("t", str(number), partition=0)
        topic_id = broker.run(lambda: broker.cluster.catalogue.by_name["t"].topic_id)
        raw.find("g")
        from_the_start(raw)
        assert share_join(raw).error_code == 0
        reader = Reader(raw, topic_id)
        assert reader.acquired() == [(0, 9, 1)]
        assert share_beat(raw, "a", -1).error_code == 0
        topics = [
            AlterShareOffsetsTopic(
                topic_name="t", partitions=[AlterShareOffsetsPartition(partition_index=0, start_offset=4)]
            )
        ]
        altered = raw.ask(AlterShareGroupOffsetsRequest(group_id="g", topics=topics), 0)
        assert altered.responses[0].partitions[0].error_code == 0
        assert reader.acquired() == [(4, 9, 1)]
