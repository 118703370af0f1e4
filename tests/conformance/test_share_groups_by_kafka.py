"""Apache Kafka's share consumers and `kafka-share-groups` on Partita and on Apache Kafka: they end and print alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from partita import Admin, Broker, Consumer, NewTopic, ShareConsumer
from support.clients.broker import fresh
from support.clients.exported import exported, printed
from support.kafka.node import KafkaNode, asked_release, settle
from support.kafka.tools import Output, Twins

pytestmark = pytest.mark.conformance

SHARE_GROUPS = "consumer.group.ShareGroupCommand"
CONSOLE = "consumer.ConsoleShareConsumer"
CONFIGS = "kafka.admin.ConfigCommand"
RECORDS = "a:1\nb:2\nc:3\nd:4\ne:5\n"


@pytest.fixture(scope="module")
def twins(kafka: KafkaNode) -> Iterator[Twins]:
    with Broker({"auto.create.topics.enable": False}) as broker:
        yield Twins(kafka.bootstrap, broker.bootstrap)


@pytest.fixture
def topic(twins: Twins) -> str:
    """Five records in two partitions."""
    name = fresh("shared")
    twins.same("TopicCommand", "--create", "--topic", name, "--partitions", "2")
    by_key = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    assert twins.same("ConsoleProducer", "--topic", name, *by_key, stdin=RECORDS).code == 0
    return name


@pytest.fixture
def group(twins: Twins) -> str:
    """A group that begins with the earliest record."""
    name = fresh("share-group")
    change = ("--alter", "--entity-type", "groups", "--entity-name", name)
    assert twins.same(CONFIGS, *change, "--add-config", "share.auto.offset.reset=earliest").code == 0
    return name


def consumed(twins: Twins, topic: str, group: str, *more: str) -> Output:
    """Take all five records, and accept them unless `more` says otherwise."""
    wanted = ("--topic", topic, "--group", group, "--max-messages", "5", "--timeout-ms", "90000")
    return twins.same(CONSOLE, *wanted, *more)


def test_records_through_the_console(twins: Twins, topic: str, group: str) -> None:
    """Given back by the first consumer, rejected by the second: the delivery count is printed, then nothing is left."""
    shown = [f"print.{each}=true" for each in ("key", "partition", "offset", "delivery")]
    printed = [word for each in shown for word in ("--formatter-property", each)]
    first = consumed(twins, topic, group, "--release", *printed)
    assert sum("Delivery:1" in line for line in first.lines) == 5
    second = consumed(twins, topic, group, "--reject", *printed)
    assert sum("Delivery:2" in line for line in second.lines) == 5
    described = twins.same(SHARE_GROUPS, "--describe", "--group", group)
    assert all(line.endswith(" 0") for line in described.lines if group in line)


def test_a_group_is_listed_described_and_deleted(twins: Twins, topic: str, group: str) -> None:
    consumed(twins, topic, group)
    for what in ((), ("--offsets", "--verbose"), ("--members",), ("--members", "--verbose"), ("--state",)):
        output = twins.same(SHARE_GROUPS, "--describe", "--group", group, *what)
        assert any(group in line for line in (*output.lines, *output.errors))
    if asked_release() != "4.3.1":  # the last member's leave writes the target's epoch from 4.4.0 on
        twins.same(SHARE_GROUPS, "--describe", "--group", group, "--state", "--verbose")
    assert twins.same(SHARE_GROUPS, "--describe", "--group", "nobody").code == 0
    for states in ((), ("--state",), ("--state", "empty")):
        kafkas, ours = twins.both(SHARE_GROUPS, "--bootstrap-server", "BOOTSTRAP", "--list", *states)
        assert [line for line in ours.lines if group in line] == [line for line in kafkas.lines if group in line] != []
    deletions = [twins.same(SHARE_GROUPS, "--delete", "--group", group).lines for _ in range(2)]
    assert ["successful" in " ".join(lines) for lines in deletions] == [True, False]


def test_the_exporter_serves_the_lag_that_the_tool_prints(twins: Twins, topic: str, group: str) -> None:
    consumed(twins, topic, group, "--release")
    lags = printed(twins.same(SHARE_GROUPS, "--describe", "--group", group).lines)
    assert sum(lags.values()) == 5
    assert [exported(bootstrap, [group])[0] for bootstrap in twins.bootstraps] == [lags, lags]


def test_offsets_are_reset_and_deleted(twins: Twins, topic: str, group: str) -> None:
    consumed(twins, topic, group)
    reset = ("--reset-offsets", "--group", group)
    for where in (
        ("--topic", topic, "--to-earliest", "--dry-run"),
        ("--topic", topic, "--to-earliest", "--execute"),
        ("--topic", f"{topic}:0", "--to-latest", "--execute"),
        ("--all-topics", "--to-datetime", "2020-01-01T00:00:00.000", "--execute"),
    ):
        assert any(topic in line for line in twins.same(SHARE_GROUPS, *reset, *where).lines)
        assert len(twins.same(SHARE_GROUPS, "--describe", "--group", group).lines) == 3
    assert len(consumed(twins, topic, group).lines) == 5, "from the beginning again"
    for name in (topic, topic, "nowhere"):
        twins.same(SHARE_GROUPS, "--delete-offsets", "--group", group, "--topic", name)
    twins.same(SHARE_GROUPS, "--describe", "--group", group)
    twins.same(SHARE_GROUPS, *reset, "--topic", topic, "--to-earliest", "--execute")
    assert len(twins.same(SHARE_GROUPS, "--describe", "--group", group).lines) == 3


def test_the_settings_of_a_group(twins: Twins, group: str) -> None:
    """Every setting that Partita has, its value, and where it comes from; the others belong to features it lacks."""
    words = (
        "--bootstrap-server",
        "BOOTSTRAP",
        "--describe",
        "--all",
        "--entity-type",
        "groups",
        "--entity-name",
        group,
    )
    kafkas, ours = twins.both(CONFIGS, *words)
    shared = {line for output in (kafkas, ours) for line in output.lines if line.startswith("share.")}
    assert shared <= set(kafkas.lines) & set(ours.lines)
    assert sum("DYNAMIC_GROUP_CONFIG" in line for line in shared) == 1
    change = ("--alter", "--entity-type", "groups", "--entity-name", group, "--add-config")
    for wrong in ("share.record.lock.duration.ms=1", "share.isolation.level=none", "share.session.timeout.ms=61000"):
        assert [output.code for output in twins.both(CONFIGS, *words[:2], *change, wrong)] == [1, 1], wrong


def letters_of(bootstrap: str, topic: str, group: str) -> list[tuple[object, ...]]:
    """Reject the first records of a partition and give the others back twice: the group's dead letters, in order."""
    letters = f"dlq.{group}"
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(NewTopic(letters, 3, 1, {"errors.deadletterqueue.group.enable": True}))
        queue = "errors.deadletterqueue"
        settings: dict[str, str | int | None] = {f"{queue}.topic.name": letters, f"{queue}.copy.record.enable": True}
        admin.alter_configs("group", group, {**settings, "share.delivery.count.limit": 2})
        settle(admin)
    options = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    with ShareConsumer(options) as consumer:
        consumer.subscribe([topic])
        given: Counter[tuple[int, int]] = Counter()
        while sum(given.values()) < 8:
            for record in consumer.poll(1):
                given[record.partition, record.offset] += 1
                if record.offset == 0:
                    record.reject()
                else:
                    record.release()
            consumer.commit_sync()
    found: list[tuple[object, ...]] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([(letters, number) for number in range(3)])
        while len(found) < 5:
            found += [
                (r.partition, r.key, r.value, *(value for _, value in r.headers), *(name for name, _ in r.headers))
                for r in reader.poll(1)
            ]
    return sorted(found, key=repr)


def test_dead_letters(twins: Twins, topic: str, group: str) -> None:
    """What is rejected, and what was given twice in vain, is a letter with the same headers on Kafka from 4.4.0 on."""
    has_letters = asked_release() != "4.3.1"
    letters = [letters_of(bootstrap, topic, group) for bootstrap in twins.bootstraps[0 if has_letters else 1 :]]
    assert letters[0] == letters[-1] != []


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_the_verifiable_share_consumer(twins: Twins, topic: str, group: str, mode: str) -> None:
    """It takes and acknowledges each record once; which come together depends on the moment."""
    words = ("--topic", topic, "--group-id", group, "--max-messages", "5", "--acknowledgement-mode", mode)
    for output in twins.both("VerifiableShareConsumer", "--bootstrap-server", "BOOTSTRAP", *words):
        assert (output.code, output.errors) == (0, ())
        facts = [json.loads(line) for line in output.lines]
        assert all(fact.get("success", True) for fact in facts)
        taken, accepted = (
            Counter(
                (part["partition"], offset)
                for fact in facts
                if fact["name"] == name
                for part in fact["partitions"]
                for offset in part["offsets"]
            )
            for name in ("records_consumed", "offsets_acknowledged")
        )
        assert taken == accepted == Counter([(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)])
