"""Our `__consumer_offsets` is read by Kafka's own formatters, and Kafka's is loaded by our coordinator."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from partita import Admin, Broker, Consumer, Producer, TopicPartition
from partita.group import partition_for
from partita.group.config import GroupConfig
from partita.group.contract import Record
from partita.group.coordinator import GroupCoordinator
from partita.group.records.log_records import read_group_key, read_group_value, read_offset_value
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.messages.heartbeat import HeartbeatRequest
from partita.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from partita.records.builder import build_batch
from support.broker.raw import Raw, join_request
from support.group.shell import GroupShell
from support.kafka.node import KafkaNode, run_tool

pytestmark = pytest.mark.conformance

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = "org.apache.kafka.tools.consumer"
GROUP = "log-readers"
TOPIC = "log-topic"
OFFSETS = "__consumer_offsets"


def use_a_group(bootstrap: str) -> None:
    """One member reads five records of a new topic and commits."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=1)
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(5):
            producer.send(TOPIC, b"%d" % number)
    options: dict[str, Any] = {"group_id": GROUP, "group_instance_id": "desk-1", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=bootstrap, enable_auto_commit=False, **options) as consumer:
        consumer.subscribe([TOPIC])
        got = 0
        while got < 5:
            got += len(consumer.poll(timeout=1.0))
        consumer.commit({(TOPIC, 0): 3})


def formatted(bootstrap: str, formatter: str) -> list[dict[str, object]]:
    """What Kafka's formatter makes of the group's partition of the log, from its first to its last record."""
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        partition = partition_for(GROUP, len(consumer.partitions_for(OFFSETS)))
        count = consumer.end_offsets([(OFFSETS, partition)])[TopicPartition(OFFSETS, partition)]
    done = run_tool(
        CONSOLE, "--bootstrap-server", bootstrap, "--topic", OFFSETS, "--partition", f"{partition}",
        "--offset", "earliest", "--max-messages", f"{count}", "--timeout-ms", "60000",
        "--formatter", f"{FORMATTERS}.{formatter}",
    )  # fmt: skip
    found, text = [], done.stdout.strip()
    while text:  # the formatters put no line end between two records
        record, end = json.JSONDecoder().raw_decode(text)
        found.append(record)
        text = text[end:].lstrip()
    assert found, done.stderr[-500:]
    return found


def test_kafkas_formatters_read_our_log() -> None:
    with Broker() as broker:
        use_a_group(broker.bootstrap)
        offsets = formatted(broker.bootstrap, "OffsetsMessageFormatter")
        groups = formatted(broker.bootstrap, "GroupMetadataMessageFormatter")
    (commit,) = [o for o in offsets if o["key"]["data"]["group"] == GROUP]  # type: ignore[index]  # JSON of Kafka's own formatter
    assert commit["key"]["data"] == {"group": GROUP, "topic": TOPIC, "partition": 0}  # type: ignore[index]  # JSON of Kafka's own formatter
    assert commit["value"]["data"]["offset"] == 3  # type: ignore[index]  # JSON of Kafka's own formatter
    ours = [g for g in groups if g["key"]["data"]["group"] == GROUP and g["value"]]  # type: ignore[index]  # JSON of Kafka's own formatter
    (member,) = ours[-1]["value"]["data"]["members"]  # type: ignore[index]  # JSON of Kafka's own formatter
    assert member["groupInstanceId"] == "desk-1"


def test_we_load_kafkas_log(kafka: KafkaNode) -> None:
    use_a_group(kafka.bootstrap)
    coordinator = GroupCoordinator(GroupConfig(), lambda prefix: f"{prefix}-new")
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        partition = (OFFSETS, partition_for(GROUP, len(consumer.partitions_for(OFFSETS))))
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end = next(iter(consumer.end_offsets([partition]).values()))
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout=1.0):
                assert isinstance(record.key, bytes)
                coordinator.replay(Record(record.key, record.value))
    hard = coordinator.hard_state
    hard.settle()
    assert [m.group_instance_id for m in read_group_value(hard.groups[GROUP]).members] == ["desk-1"]
    assert read_offset_value(hard.offsets[GROUP][TOPIC, 0]).offset == 3


LEADERLESS = "g-leaderless"


def leaderless_record() -> tuple[Record, str]:
    """The record of a generation that was told and never assigned, and the member that it was told to."""
    shell = GroupShell()
    first = shell.send(join_request(LEADERLESS), 3)
    shell.advance(3_000)
    joined: Any = shell.answered[first]
    shell.send(join_request(LEADERLESS), 3)
    record = shell.log[-1].records[-1]
    assert record.value is not None
    value = read_group_value(record.value)
    assert (read_group_key(record.key), value.leader, value.generation) == (LEADERLESS, None, 1)
    assert [(member.member_id, member.assignment) for member in value.members] == [(joined.member_id, b"")]
    return record, joined.member_id


def loaded_group(node: KafkaNode) -> DescribedGroup:
    """The group as Kafka describes it once its coordinator has loaded."""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        with Raw(node.port) as raw:
            raw.ask(FindCoordinatorRequest(key=LEADERLESS), 3)
            (group,) = raw.ask(DescribeGroupsRequest(groups=[LEADERLESS]), 5).groups
        if not group.error_code:
            assert isinstance(group, DescribedGroup)
            return group
        time.sleep(0.2)
    raise AssertionError(f"the group was not loaded in time: {group}")


def test_kafka_loads_a_generation_without_a_leader() -> None:
    """Decision 0070: a record whose members have no assignment and of whom none leads."""
    record, member_id = leaderless_record()
    with KafkaNode(offsets_topic_num_partitions="1") as node:
        assert loaded_group(node).group_state == "Dead"
        batch = build_batch([(0, record.key, record.value, ())])
        data = [TopicProduceData(name=OFFSETS, partition_data=[PartitionProduceData(index=0, records=batch)])]
        with Raw(node.port, "__admin_client") as raw:  # who alone may write to internal topics
            answer = raw.ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        node.stop()
        node.start()
        group = loaded_group(node)
        assert group.group_state == "Stable"
        assert [(m.member_id, m.member_assignment) for m in group.members] == [(member_id, b"")]
        with Raw(node.port) as raw:
            heartbeat = HeartbeatRequest(group_id=LEADERLESS, generation_id=1, member_id=member_id)
            assert raw.ask(heartbeat, 3).error_code == ErrorCode.NONE
            again = raw.ask(join_request(LEADERLESS, member_id), 5)
            assert (again.error_code, again.generation_id, again.leader) == (0, 2, member_id)
