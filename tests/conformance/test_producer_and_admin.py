"""Our producer and admin client on Apache Kafka, and Kafka's own tools on what they did."""

from collections.abc import Iterator

import pytest

from partita import Admin, Producer
from partita.admin import NewTopic, Target
from partita.errors import (
    GroupIdNotFoundError,
    InvalidConfigError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from support.kafka.node import KafkaNode, run_tool, settle


@pytest.fixture
def admin(kafka: KafkaNode) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as client:
        yield client


def test_kafkas_consumer_reads_what_our_producer_wrote_with_every_codec(kafka: KafkaNode, admin: Admin) -> None:
    admin.create_topic("codecs", 1)
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for codec in codecs:
        with Producer(bootstrap_servers=kafka.bootstrap, compression_type=codec) as producer:
            for number in range(3):
                producer.send("codecs", f"{codec}-{number}", key="k", headers={"h": "1"})
    done = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", kafka.bootstrap, "--topic", "codecs", "--from-beginning", "--max-messages", "15"),
        *("--timeout-ms", "20000"),
    )
    assert done.stdout.split() == [f"{codec}-{number}" for codec in codecs for number in range(3)], done.stderr


def test_acks_offsets_and_errors_are_kafkas(kafka: KafkaNode, admin: Admin) -> None:
    admin.create_topic("acks", 2)
    for acks, expected in (("all", 0), ("1", 1), ("0", -1)):
        with Producer(bootstrap_servers=kafka.bootstrap, acks=acks) as producer:
            assert producer.send("acks", b"x", partition=0).result(20).offset == expected
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        many = [producer.send("acks", b"%d" % number, partition=1) for number in range(2000)]
        producer.flush(30)
        assert [future.result(0).offset for future in many] == list(range(2000))
        with pytest.raises(InvalidTopicError):
            producer.send("no/such name", b"x").result(20)


def test_topics_and_options_are_administered(admin: Admin) -> None:
    (made,) = admin.create_topics(NewTopic("options", 2, configs={"retention.ms": 60_000}))
    assert (made.partitions, made.replication_factor, made.configs["retention.ms"]) == (2, 1, "60000")
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topic("options")
    admin.create_partitions("options", 3)
    settle(admin)
    assert len(admin.describe_topics("options")[0].partitions) == 3
    admin.alter_configs("topic", "options", {"retention.ms": 70_000})
    settle(admin)
    (entry,) = admin.describe_configs("topic", "options", ["retention.ms"])
    assert (entry.value, entry.source) == ("70000", "topic")
    with pytest.raises(InvalidConfigError):
        admin.alter_configs("topic", "options", {"retention.ms": "soon"})
    admin.delete_topics("options")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics("options")


def test_a_group_is_reset_as_kafkas_tool_shows(kafka: KafkaNode, admin: Admin) -> None:
    admin.create_topic("reset", 2)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for number in range(10):
            producer.send("reset", b"%d" % number, partition=0, timestamp=1000 + number)
    admin.alter_group_offsets("reset-group", {("reset", 0): 4, ("reset", 1): 0})
    for target, after in (
        (Target.earliest(), 0),
        (Target.latest(), 10),
        (Target.offset(99), 10),
        (Target.shift_by(-2), 2),
        (Target.time(1007), 7),
    ):
        assert admin.plan_reset("reset-group", target).moves[0].after == after
    admin.apply_reset(admin.plan_reset("reset-group", Target.time(1007)))
    done = run_tool(
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        *("--bootstrap-server", kafka.bootstrap, "--describe", "--group", "reset-group"),
    )
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("reset-group")]
    assert sorted(row[1:6] for row in rows) == [["reset", "0", "7", "10", "3"], ["reset", "1", "0", "0", "0"]]
    lag = admin.group_lag("reset-group")
    assert [(row.partition, row.committed_offset, row.log_end_offset, row.lag) for row in lag] == [
        (0, 7, 10, 3),
        (1, 0, 0, 0),
    ]
    assert admin.delete_records({("reset", 0): 3}) == {("reset", 0): 3}
    admin.delete_group_offsets("reset-group", [("reset", 1)])
    assert [c.partition for c in admin.group_offsets("reset-group")] == [0]
    admin.delete_groups("reset-group")
    with pytest.raises(GroupIdNotFoundError):
        admin.describe_group("reset-group")
