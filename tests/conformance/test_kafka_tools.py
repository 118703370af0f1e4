"""Apache Kafka's own command-line tools against Partita and against Apache Kafka: they end and print alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from partita import Broker, Consumer, Producer
from support.clients.broker import fresh
from support.kafka.node import NEWER_TOPIC_OPTIONS, KafkaNode, asks_from
from support.kafka.tools import Output, Twins
from support.producer.transaction_stories import await_markers

pytestmark = pytest.mark.conformance

GROUPS = "consumer.group.ConsumerGroupCommand"
CONSUMER = "consumer.ConsoleConsumer"
RECORDS = "a:1\nb:2\nc:3\nd:4\ne:5\n"


@pytest.fixture(scope="module")
def twins(kafka: KafkaNode) -> Iterator[Twins]:
    options = {"group.initial.rebalance.delay.ms": 0, "auto.create.topics.enable": False}
    with Broker(options) as broker:
        yield Twins(kafka.bootstrap, broker.bootstrap)


@pytest.fixture
def topic(twins: Twins) -> str:
    name = fresh("tools")
    twins.same("TopicCommand", "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=99999999")
    return name


@pytest.fixture
def filled(twins: Twins, topic: str) -> str:
    done = twins.same(
        "ConsoleProducer",
        *("--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        stdin=RECORDS,
    )
    assert done.code == 0
    return topic


def consumed(twins: Twins, topic: str, group: str, *more: str) -> Output:
    """Read all five records in a group; commits on leaving."""
    return twins.same(
        CONSUMER,
        *("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "5"),
        *("--command-property", "group.protocol=classic", *more),
    )


def test_features(twins: Twins) -> None:
    refused = ("upgrade", "--feature", "transaction.version=9")
    lower = ("downgrade", "--feature", "transaction.version=1")
    higher = ("upgrade", "--feature", "transaction.version=2", "--feature", "group.version=1")
    for words in (refused, lower, ("disable", "--feature", "group.version"), higher):
        twins.same("FeatureCommand", *words)


def test_subscriptions_to_client_metrics(twins: Twins) -> None:
    name = fresh("subscription")
    wanted = ("--metrics", "org.apache.kafka.producer.", "--interval", "1000", "--match", "client_id=x")
    alter = ("--alter", "--name", name)
    for words in (
        (*alter, *wanted),
        ("--describe",),
        ("--list",),
        (*alter, "--interval", "5"),
        ("--delete", "--name", name),
    ):
        twins.same("ClientMetricsCommand", *words)


def test_levels_of_loggers(twins: Twins) -> None:
    for level in ("root=DEBUG", "nope=DEBUG", "root=INFO"):
        words = ("--entity-type", "broker-loggers", "--entity-name", "1", "--alter", "--add-config", level)
        twins.same("kafka.admin.ConfigCommand", *words)


def test_topics(twins: Twins, topic: str) -> None:
    described = twins.same("TopicCommand", "--describe", "--topic", topic)
    assert len(described.lines) == 3
    assert twins.same("TopicCommand", "--create", "--topic", topic).code == 1
    assert twins.same("TopicCommand", "--create", "--topic", "a b").code == 1
    assert twins.same("TopicCommand", "--alter", "--topic", topic, "--partitions", "4").code == 0
    assert twins.same("TopicCommand", "--alter", "--topic", topic, "--partitions", "3").code == 1
    assert len(twins.same("TopicCommand", "--describe", "--topic", topic).lines) == 5
    assert twins.same("TopicCommand", "--delete", "--topic", topic).code == 0
    assert twins.same("TopicCommand", "--describe", "--topic", topic).code == 1


def test_records_through_the_console(twins: Twins, filled: str) -> None:
    read = consumed(
        twins,
        filled,
        fresh("group"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.partition=true"),
        *("--formatter-property", "print.offset=true"),
    )
    assert len(read.lines) == 5
    assert len(twins.same("GetOffsetShell", "--topic", filled).lines) == 2
    assert len(twins.same("GetOffsetShell", "--topic", filled, "--time", "earliest").lines) == 2
    for newest in twins.both("GetOffsetShell", *("--bootstrap-server", "BOOTSTRAP", "--topic", filled, "--time", "-3")):
        assert (newest.code, len(newest.lines)) == (0, 2)


LIST_CLASSIC = ("--bootstrap-server", "BOOTSTRAP", "--list", "--group-type", "classic")


def test_groups(twins: Twins, filled: str) -> None:
    group = fresh("group")
    consumed(twins, filled, group)
    kafkas, ours = ([line for line in o.lines if group in line] for o in twins.both("GroupsCommand", *LIST_CLASSIC))
    assert kafkas == ours != []
    for what in ((), ("--members", "--verbose"), ("--state",)):
        assert twins.same(GROUPS, "--describe", "--group", group, *what).code == 0
    assert twins.same(GROUPS, "--describe", "--group", "nobody").code == 0
    by_topic = ("--reset-offsets", "--group", group, "--topic", filled)
    for where in (
        ("--to-earliest",),
        ("--shift-by", "1"),
        ("--to-offset", "2"),
        ("--to-datetime", "2020-01-01T00:00:00.000"),
    ):
        assert len(twins.same(GROUPS, *by_topic, *where, "--execute").lines) == 3
    assert twins.same(GROUPS, "--delete-offsets", "--group", group, "--topic", filled).code == 0
    assert twins.same(GROUPS, "--delete", "--group", group).code == 0
    assert twins.same(GROUPS, "--delete", "--group", group).code == 0
    left_over = [output.lines for output in twins.both("GroupsCommand", *LIST_CLASSIC)]
    assert not any(group in line for lines in left_over for line in lines)


def test_groups_of_the_consumer_protocol(twins: Twins, filled: str) -> None:
    """`kafka-consumer-groups` on a KIP-848 group: while it has a member, by what it is listed, and once it is empty."""
    group = fresh("group")
    options = {"group.id": group, "group.protocol": "consumer", "client.id": "c", "auto.offset.reset": "earliest"}
    with ExitStack() as stack:
        ids = []
        for bootstrap in twins.bootstraps:
            consumer = stack.enter_context(Consumer(options, bootstrap_servers=bootstrap))
            consumer.subscribe([filled])
            while not consumer.poll(0.1):
                pass
            consumer.commit()
            ids.append(consumer.group_metadata().member_id)
        for what in ((), ("--members", "--verbose"), ("--state", "--verbose")):
            arguments = ("--bootstrap-server", "BOOTSTRAP", "--describe", "--group", group, *what)
            kafkas, ours = (
                [line.replace(member_id, "MEMBER") for line in output.lines]
                for output, member_id in zip(twins.both(GROUPS, *arguments), ids, strict=True)
            )
            assert ours == kafkas
            assert any("MEMBER" in line or "Stable" in line for line in ours)
        assert twins.same(GROUPS, "--delete", "--group", group).code == 0
    by_type = ("--bootstrap-server", "BOOTSTRAP", "--list", "--type", "consumer", "--state")
    kafkas, ours = ([line for line in output.lines if group in line] for output in twins.both(GROUPS, *by_type))
    assert ours == kafkas != []
    by_topic = ("--reset-offsets", "--group", group, "--topic", filled)
    assert len(twins.same(GROUPS, *by_topic, "--to-earliest", "--execute").lines) == 3
    assert twins.same(GROUPS, "--delete", "--group", group).code == 0
    assert twins.same(GROUPS, "--describe", "--group", group).code == 0


def test_configs(twins: Twins, topic: str) -> None:
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    assert twins.same("kafka.admin.ConfigCommand", "--describe", *of_topic).code == 0
    assert (
        twins.same(
            "kafka.admin.ConfigCommand",
            "--alter",
            *of_topic,
            "--add-config",
            "retention.ms=5,cleanup.policy=[compact,delete]",
        ).code
        == 0
    )
    assert twins.same("kafka.admin.ConfigCommand", "--alter", *of_topic, "--delete-config", "retention.ms").code == 0
    assert twins.same("kafka.admin.ConfigCommand", "--describe", *of_topic).code == 0
    assert twins.same("kafka.admin.ConfigCommand", "--alter", *of_topic, "--add-config", "retention.ms=soon").code == 1


def test_broker_configs(twins: Twins) -> None:
    of_broker = ("--entity-type", "brokers", "--entity-name", "1")
    for scope in (of_broker, ("--entity-type", "brokers", "--entity-default")):
        change = ("kafka.admin.ConfigCommand", "--alter", *scope)
        assert twins.same(*change, "--add-config", "message.max.bytes=2000000").code == 0
        assert len(twins.same("kafka.admin.ConfigCommand", "--describe", *of_broker).lines) == 2
    assert twins.same("kafka.admin.ConfigCommand", "--alter", *of_broker, "--add-config", "group.max.size=5").code == 1
    for scope in (of_broker, ("--entity-type", "brokers", "--entity-default")):
        change = ("kafka.admin.ConfigCommand", "--alter", *scope)
        assert twins.same(*change, "--delete-config", "message.max.bytes").code == 0
        assert len(twins.same("kafka.admin.ConfigCommand", "--describe", *of_broker).lines) == 1


@pytest.mark.parametrize("kind", ["groups", "client-metrics"])
def test_configs_of_what_has_none(twins: Twins, kind: str) -> None:
    assert twins.same("kafka.admin.ConfigCommand", "--describe", "--entity-type", kind, "--entity-name", "x").code == 0


def test_all_topic_configs(twins: Twins, topic: str) -> None:
    """Every option, its value, where it comes from."""
    words = (
        "--bootstrap-server",
        "BOOTSTRAP",
        "--describe",
        "--all",
        "--entity-type",
        "topics",
        "--entity-name",
        topic,
    )
    newer = NEWER_TOPIC_OPTIONS if not asks_from(4, 4) else ()
    kafka, partita = twins.both("kafka.admin.ConfigCommand", *words, "--entity-name", topic)
    assert (kafka.code, partita.code) == (0, 0)
    shown = [line for line in partita.lines if line.strip().partition("=")[0] not in newer]
    assert shown == list(kafka.lines)


def test_records_are_deleted(twins: Twins, filled: str, tmp_path: Path) -> None:
    wanted = tmp_path / "records.json"
    wanted.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": filled, "partition": p, "offset": 1} for p in (0, 1)]})
    )
    twins.same("DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert len(twins.same("GetOffsetShell", "--topic", filled, "--time", "earliest").lines) == 2


def test_log_directories(twins: Twins, topic: str) -> None:
    for bootstrap in twins.bootstraps:
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send(topic, "x", partition=0, timestamp=1).result(60)
    arguments = ("--bootstrap-server", "BOOTSTRAP", "--describe", "--topic-list", topic)
    kafka, partita = (partition_sizes(output) for output in twins.both("LogDirsCommand", *arguments))
    assert partita == kafka
    assert sum(partita.values()) > 0


def partition_sizes(output: Output) -> dict[str, int]:
    """What `kafka-log-dirs` printed: bytes by partition, of the only directory of the only broker."""
    (line,) = (line for line in output.lines if line.startswith("{"))
    (broker,) = json.loads(line)["brokers"]
    (directory,) = broker["logDirs"]
    assert (broker["broker"], directory["error"]) == (1, None)
    return {row["partition"]: row["size"] for row in directory["partitions"]}


def test_elections(twins: Twins, topic: str) -> None:
    one = ("--topic", topic, "--partition", "0")
    assert twins.same("LeaderElectionCommand", "--election-type", "preferred", *one).code == 0
    assert twins.same("LeaderElectionCommand", "--election-type", "unclean", "--all-topic-partitions").code == 0
    nowhere = ("--topic", "nowhere", "--partition", "0")
    assert twins.same("LeaderElectionCommand", "--election-type", "preferred", *nowhere).code == 1


def test_reassignments(twins: Twins, topic: str, tmp_path: Path) -> None:
    tool = "reassign.ReassignPartitionsCommand"
    assert twins.same(tool, "--list").lines == ("No partition reassignments found.",)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    assert twins.same(tool, "--topics-to-move-json-file", str(topics), "--broker-list", "1", "--generate").code == 0
    for node, code in ((1, 0), (9, 1)):
        plan = tmp_path / f"plan-{node}.json"
        move = {"topic": topic, "partition": 0, "replicas": [node], "log_dirs": ["any"]}
        plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
        assert twins.same(tool, "--reassignment-json-file", str(plan), "--execute").code == code
    done = str(tmp_path / "plan-1.json")
    assert twins.same(tool, "--reassignment-json-file", done, "--verify").code == 0
    assert twins.same(tool, "--reassignment-json-file", done, "--cancel").code == 0


def test_verifiable_clients(twins: Twins, topic: str) -> None:
    for output in twins.both(
        "VerifiableProducer",
        *("--bootstrap-server", "BOOTSTRAP", "--topic", topic, "--max-messages", "200", "--acks", "-1"),
    ):
        assert output.code == 0
        last = next(json.loads(line) for line in output.lines if '"tool_data"' in line)
        assert (last["sent"], last["acked"]) == (200, 200)
    for output in twins.both(
        "VerifiableConsumer",
        *("--bootstrap-server", "BOOTSTRAP", "--topic", topic, "--group-id", fresh("group"), "--max-messages", "200"),
        *("--reset-policy", "earliest", "--group-protocol", "classic"),
    ):
        assert output.code == 0
        facts = [json.loads(line) for line in output.lines]
        assert sum(fact["count"] for fact in facts if fact["name"] == "records_consumed") == 200
        assert any(fact["name"] == "offsets_committed" and fact["success"] for fact in facts)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_performance_tools(twins: Twins, topic: str, codec: str) -> None:
    for output in twins.both(
        "ProducerPerformance",
        *("--bootstrap-server", "BOOTSTRAP", "--topic", topic, "--num-records", "5000", "--record-size", "100"),
        *("--throughput", "-1", "--command-property", f"compression.type={codec}"),
    ):
        # On a slow machine lines on the way come before the last one; they are sorted here.
        assert output.code == 0, output
        assert any(line.startswith("5000 records sent") for line in output.lines), output
    for output in twins.both(
        "ConsumerPerformance",
        *("--bootstrap-server", "BOOTSTRAP", "--topic", topic, "--num-records", "5000", "--timeout", "30000"),
    ):
        assert output.code == 0
        assert any(", 5000, " in line for line in output.lines), output


def test_what_the_broker_says_of_itself(twins: Twins) -> None:
    for output in twins.both("ClusterTool", "cluster-id", "--bootstrap-server", "BOOTSTRAP"):
        assert (output.code, len(output.lines)) == (0, 1)
    kafka, partita = twins.both("BrokerApiVersionsCommand", "--bootstrap-server", "BOOTSTRAP")
    served = {line for line in partita.lines if "UNSUPPORTED" not in line and "(" in line}
    more = usable(served) - usable(kafka.lines)
    assert all("Telemetry" in line for line in more), "Kafka serves these only with a plug-in that receives them"


def usable(lines: Iterable[str]) -> set[str]:
    """APIs and the version that the tool uses; the newest that a broker serves depends on its release."""
    return {re.sub(r" to \d+", "", line.rstrip(",")) for line in lines}


@pytest.mark.case("TX-L12")
def test_transactions_are_listed(twins: Twins) -> None:
    for output in twins.both("TransactionsCommand", "--bootstrap-server", "BOOTSTRAP", "list"):
        assert output.code == 0
        assert output.lines[0].split() == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]


@pytest.mark.case("TX-L12", "TX-L01", "TX-L09")
def test_many_transactions_are_measured_and_their_producer_is_described(twins: Twins, topic: str) -> None:
    name = fresh("performance")
    for output in twins.both(
        "ProducerPerformance",
        *("--bootstrap-server", "BOOTSTRAP", "--topic", topic, "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "4000", "--transactional-id", name, "--transaction-duration-ms", "50"),
    ):
        assert output.code == 0
        assert any(line.startswith("2000 records sent") for line in output.lines), output
    for bootstrap in twins.bootstraps:
        await_markers(bootstrap)
    for output in twins.both(
        "TransactionsCommand", "--bootstrap-server", "BOOTSTRAP", "describe", "--transactional-id", name
    ):
        assert output.code == 0
        assert any("CompleteCommit" in line for line in output.lines), output
    for output in twins.both(
        *("TransactionsCommand", "--bootstrap-server", "BOOTSTRAP", "describe-producers"),
        *("--topic", topic, "--partition", "0"),
    ):
        assert output.code == 0
        assert any(line.startswith("ProducerId ProducerEpoch") for line in output.lines), output
