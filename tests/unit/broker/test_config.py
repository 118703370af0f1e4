"""Broker and topic options: Kafka's names, types, defaults and bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from partita.broker.config import (
    BROKER_OPTIONS,
    TOPIC_OPTIONS,
    BrokerConfig,
    ConfigError,
    TopicConfig,
    parse,
    parse_topic_settings,
)
from partita.broker.options import (
    BOOLEAN,
    BROKER,
    DOUBLE,
    ELSEWHERE,
    FIXED_ELSEWHERE,
    INT,
    LIST,
    LONG,
    REMOVED,
    SHORT,
    STRING,
    TOPIC,
    Option,
)
from support.every_case import every_case

KAFKA = json.loads((Path(__file__).parents[2] / "vectors" / "configs.json").read_text())
KINDS = {"BOOLEAN": BOOLEAN, "STRING": STRING, "INT": INT, "SHORT": SHORT, "LONG": LONG, "DOUBLE": DOUBLE, "LIST": LIST}
SECURITY = (
    "ssl.",
    "sasl.",
    "connection.failed.",
    "connections.max.reauth.",
    "super.",
    "allow.everyone.",
    "delegation.",
)
NOT_IN_THE_VECTORS = {
    "offset.metadata.max.bytes",
    "add.partitions.to.txn.retry.backoff.ms",
    "add.partitions.to.txn.retry.backoff.max.ms",
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix",
    *(o.name for o in BROKER if o.name.startswith(SECURITY)),
}
OF_ONE_NODE = {"node.id"}


def is_ours(option: Option) -> bool:
    """Kafka has no such option."""
    return option.name.startswith("partita.")


def rows(section: str, ours: tuple[Option, ...]) -> list[tuple[Option, dict[str, Any]]]:
    kafkas = {row["name"]: row for row in KAFKA[section]}
    names = [option.name for option in ours if option.name not in NOT_IN_THE_VECTORS and not is_ours(option)]
    assert set(names) <= set(kafkas), "every option is Kafka's"
    return [(option, kafkas[option.name]) for option in ours if option.name in kafkas]


@every_case("option, kafkas", [*rows("broker", BROKER), *rows("topic", TOPIC)], lambda row: row[0].name)
def test_an_option_has_kafkas_type_default_and_bounds(option: Option, kafkas: dict[str, Any]) -> None:
    assert option.kind == KINDS[kafkas["type"]]
    default = option.default
    if option.name not in OF_ONE_NODE:
        assert (list(default) if isinstance(default, tuple) else default) == kafkas["default"]
    assert option.synonym == kafkas.get("broker_synonym")
    valid = (kafkas["valid"] or "").replace("(case insensitive) ", "")
    if option.low is not None:
        also = "" if option.also is None else f" or {option.also}"
        numbers = valid.replace(also, "").strip("[]").split(",")
        assert float(numbers[0]) == option.low
        assert (float(numbers[2]) if len(numbers) == 3 else None) == option.high
    elif option.choices:
        assert sorted(valid.strip("[]").lower().split(", ")) == sorted(choice.lower() for choice in option.choices)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("num.partitions", "0", "must be at least 1"),
        ("num.partitions", "many", "Not a number of type INT"),
        ("num.partitions", str(2**31), "Not a number of type INT"),
        ("num.partitions", 1.5, "Not a number of type INT"),
        ("num.partitions", True, "Not a number of type INT"),
        ("offsets.topic.replication.factor", "40000", "Not a number of type SHORT"),
        ("compression.lz4.level", "18", "must be at most 17"),
        ("log.cleaner.min.cleanable.ratio", "1.1", "must be at most 1"),
        ("auto.create.topics.enable", "yes", "must be true or false"),
        ("compression.type", "brotli", "must be one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("log.cleanup.policy", "compact,shred", "must be one of compact, delete"),
        ("log.cleanup.policy", 7, "must be a comma-separated list"),
    ],
)
def test_a_wrong_value_is_refused_with_its_bound(name: str, given: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig({name: given})


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"Unknown configuration num\.partitons; did you mean num\.partitions\?"):
        BrokerConfig({"num_partitons": 3})
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: retention\.mss; did you mean retention\.ms\?$"):
        parse_topic_settings({"retention.mss": "5"})
    with pytest.raises(ConfigError, match=r"Unknown configuration qqqqqqqqqq$"):
        BrokerConfig({"qqqqqqqqqq": 3})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group.min.session.timeout.ms": 10, "group.max.session.timeout.ms": 9}, "must be at most group.max"),
        ({"group.consumer.session.timeout.ms": 90_000}, "must be between 45000 and 60000"),
        ({"group.share.record.lock.duration.ms": 90_000}, "must be between 15000 and 60000"),
        ({"group.share.max.share.sessions": 100}, "must be at least group.share.max.size 200"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig(options)


@pytest.mark.parametrize("name", ["offsets.commit.required.acks", "zookeeper_connect", "zookeeper.clientCnxnSocket"])
def test_what_kafka_removed_is_accepted_and_remembered(name: str) -> None:
    """Sources, 003 row 13: Kafka starts, and so does this; the launcher says in one line that it was removed."""
    config = BrokerConfig({name: "anything"})
    assert list(config.removed.values()) == ["4.0"]
    assert config.differs_from_kafka() == BrokerConfig().differs_from_kafka()


def test_nothing_is_called_removed_that_kafka_still_has() -> None:
    assert REMOVED.keys() & {row["name"] for row in KAFKA["broker"]} == set()
    assert REMOVED.keys() & BROKER_OPTIONS.keys() == set()


def test_every_broker_option_of_kafka_is_known_once() -> None:
    kafkas = {row["name"] for row in KAFKA["broker"]}
    known = BROKER_OPTIONS.keys() | ELSEWHERE.keys() | FIXED_ELSEWHERE
    assert not [name for name in kafkas - known if not name.startswith("group.")]
    assert not BROKER_OPTIONS.keys() & (ELSEWHERE.keys() | FIXED_ELSEWHERE)
    assert not ELSEWHERE.keys() & FIXED_ELSEWHERE


def test_the_start_says_what_was_removed(caplog: pytest.LogCaptureFixture) -> None:
    with Broker({"inter.broker.protocol.version": "3.9", "num.partitions": 2}) as broker:
        assert broker.run(lambda: broker.cluster.config.int("num.partitions")) == 2
    lines = [record.getMessage() for record in caplog.records if record.name == "partita.broker"]
    assert "inter.broker.protocol.version was removed in Kafka 4.0 and has no effect" in lines


def test_names_may_have_underscores_and_values_may_be_text() -> None:
    config = BrokerConfig(
        {"num_partitions": "3", "log.cleanup.policy": "compact, delete", "auto_create_topics_enable": "FALSE"}
    )
    assert config.int("num.partitions") == 3
    assert config.list("log.cleanup.policy") == ("compact", "delete")
    assert config.bool("auto.create.topics.enable") is False
    assert parse(BROKER_OPTIONS["group.consumer.migration.policy"], "Upgrade") == "upgrade"
    assert parse(TOPIC_OPTIONS["compression.gzip.level"], "-1") == -1


def test_only_defaults_for_many_brokers_differ_from_kafkas() -> None:
    assert BrokerConfig().differs_from_kafka() == {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.replication.factor": 1,
    }
    assert BrokerConfig(kafka_defaults=True).differs_from_kafka() == {}


def test_a_topic_falls_back_to_the_broker_and_then_to_kafka() -> None:
    broker = BrokerConfig({"log.retention.hours": 2, "message.max.bytes": 99})
    own = TopicConfig(broker, {"segment.bytes": 1 << 20})
    assert own.int("segment.bytes") == 1 << 20
    assert own.int("max.message.bytes") == 99
    assert own.int("retention.ms") == 2 * 3_600_000
    assert own.int("flush.ms") == 2**63 - 1
    assert own.int("local.retention.ms") == -2
    assert TopicConfig(BrokerConfig({"log.retention.minutes": 3})).int("retention.ms") == 180_000
    assert TopicConfig(BrokerConfig({"log.retention.hours": -1})).int("retention.ms") == -1


def test_a_topic_follows_the_broker_while_it_runs_and_an_idea_of_it_changes_nothing() -> None:
    broker = BrokerConfig({"message.max.bytes": 7})
    topic = TopicConfig(broker)
    assert topic.int("max.message.bytes") == 7
    assert TopicConfig(broker.changed({"message.max.bytes": 9})).int("max.message.bytes") == 9
    assert topic.int("max.message.bytes") == 7
    broker.change("message.max.bytes", 8)
    assert topic.int("max.message.bytes") == 8
    topic.own = {"max.message.bytes": 6}
    assert topic.int("max.message.bytes") == 6


def test_a_change_while_running_is_heard_and_can_be_taken_back() -> None:
    config = BrokerConfig({"message.max.bytes": 7})
    heard: list[str] = []
    config.on_change(heard.append)
    config.change("message.max.bytes", 8)
    assert config.int("message.max.bytes") == 8
    config.change("message.max.bytes", None)
    assert config.int("message.max.bytes") == 7
    assert heard == ["message.max.bytes"] * 2
