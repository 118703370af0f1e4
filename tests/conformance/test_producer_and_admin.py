"""Our producer and admin client on Apache Kafka, and Kafka's own tools on what they did."""

import time
from collections.abc import Iterator

import pytest

from partita import Admin, Consumer, Producer
from partita.admin import NewTopic, Target
from partita.errors import (
    GroupIdNotFoundError,
    InvalidConfigError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from partita.wording import Note
from support.clients import admin_calls
from support.clients.broker import until
from support.clients.dead_servers import listening, refusing, silent
from support.kafka.node import KafkaNode, run_tool, settle
from support.producer import refused_records as programs
from support.producer.refused_records import KINDS, PRODUCERS, TABLE


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


@pytest.mark.parametrize(("name", "kind"), TABLE)
def test_one_refused_record_takes_nothing_with_it(kafka: KafkaNode, name: str, kind: str) -> None:
    """Audit of the clients, D1."""
    programs.one_refused_record_among_good_ones(kafka.bootstrap, PRODUCERS[name], kind)
    programs.big_records_between_small_ones(kafka.bootstrap, PRODUCERS[name], kind)


@pytest.mark.parametrize("name", PRODUCERS)
def test_batches_larger_than_the_topic_takes_are_sent_in_parts(kafka: KafkaNode, name: str) -> None:
    """Audit of the clients, D2."""
    programs.batches_larger_than_the_topic_takes(kafka.bootstrap, PRODUCERS[name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["defaults", "large batches"])
def test_a_transaction_with_a_refused_record_cannot_be_committed(kafka: KafkaNode, name: str, kind: str) -> None:
    programs.a_transaction_with_a_refused_record(kafka.bootstrap, kind, PRODUCERS[name])


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_transaction_in_batches_larger_than_the_topic_takes_is_whole(kafka: KafkaNode, codec: str) -> None:
    programs.a_transaction_in_batches_larger_than_the_topic_takes(kafka.bootstrap, codec)


def test_what_is_behind_a_cluster_is_described(kafka: KafkaNode, admin: Admin) -> None:
    admin_calls.log_dirs_have_the_size_of_each_replica(admin, kafka.bootstrap)
    admin_calls.features_are_described(admin)
    admin_calls.the_quorum_is_described(admin)
    admin_calls.resources_with_options_are_listed(admin)
    admin_calls.the_calls_are_coroutines_too(kafka.bootstrap)


def test_topics_are_waited_for(admin: Admin) -> None:
    admin_calls.topics_are_waited_for(admin)


def test_several_groups_in_one_call(admin: Admin) -> None:
    admin_calls.several_groups_in_one_call(admin)


def test_members_are_removed(kafka: KafkaNode, admin: Admin) -> None:
    admin_calls.members_are_removed(admin, kafka.bootstrap)


def test_a_transaction_is_terminated_by_force(kafka: KafkaNode, admin: Admin) -> None:
    admin_calls.a_transaction_is_terminated_by_force(admin, kafka.bootstrap)


def test_feature_levels_are_checked_and_set(admin: Admin) -> None:
    admin_calls.feature_levels_are_checked_and_set(admin)


def test_dead_bootstrap_servers_first(kafka: KafkaNode) -> None:
    """Findings D12: a server that says nothing cost 30 s, and the admin client its start."""
    with listening() as quiet, silent() as full:
        servers = f"127.0.0.1:{quiet},127.0.0.1:{full},{kafka.bootstrap}"
        began = time.monotonic()
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topic("dead-first")
            admin.wait_for_topics("dead-first")
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("dead-first", b"x").result(60)
        with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("dead-first", 0)])
            assert [record.value for record in consumer.poll(60)] == [b"x"]
    assert time.monotonic() - began < 20, "the time-outs of dead servers are 10 and 30 s for each client"


def test_an_advertised_address_that_nobody_reaches() -> None:
    """Findings D9: 25 s of silence, two minutes for a producer."""
    notes: list[Note] = []
    with refusing() as nowhere:
        advertised = f"127.0.0.1:{nowhere}"
        settings = {"advertised.listeners": f"PLAINTEXT://{advertised}", "auto.create.topics.enable": "true"}
        with KafkaNode(None, **settings) as misled:
            said = f"node 1 at {advertised} as advertised by the broker at {misled.bootstrap}, cannot be reached: "
            with Producer(bootstrap_servers=misled.bootstrap, delivery_timeout_ms=6_000, request_timeout_ms=3_000) as p:
                p.on_note(notes.append)
                assert p.send("orders", b"x").exception(60) is not None
            assert any(note.text.startswith(f"orders-0's leader, {said}Connection refused") for note in notes)
            with Consumer(bootstrap_servers=misled.bootstrap, group_id="g") as consumer:
                notes.clear()
                consumer.on_note(notes.append)
                consumer.subscribe(["orders"])
                until(lambda: consumer.poll(0.1) is not None and bool(notes), "the consumer has reported its broker")
            assert said in notes[0].text
