"""Settings changed while running: one by one (IncrementalAlterConfigs), or all that a resource has (AlterConfigs)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from partita import Broker
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages import alter_configs, create_topics, describe_configs, incremental_alter_configs
from support.broker.raw import Raw

TOPIC, BROKER = 2, 4
WHOLE_CLUSTER = ""
Changes = Sequence[tuple[str, int, str | None]]


REFUSED_BY_KAFKA = [
    ("broker.id", "7"),
    ("log.dirs", "/tmp"),
    ("log.cleaner.threads", "0"),
    ("num.io.threads", "0"),
    ("num.network.threads", "some"),
    ("leader.replication.throttled.rate", "-1"),
    ("listener.name.plaintext.max.connections", "many"),
    ("listener.name.plaintext.num.network.threads", "0"),
    ("max.connections", "0"),
    ("max.connections.per.ip", "0"),
    ("max.connection.creation.rate", "0"),
    ("log.retention.ms", "0"),
    ("log.roll.ms", "0"),
    ("log.roll.ms", "-1"),
]
"""Broker options and the values that no running broker takes: those that have no use here, too."""


def alter(raw: Raw, *resources: tuple[int, str, Changes]) -> list[int]:
    m = incremental_alter_configs
    asked = [
        m.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[m.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes],
        )
        for kind, name, changes in resources
    ]
    answer = raw.ask(m.IncrementalAlterConfigsRequest(resources=asked), 1)
    return [response.error_code for response in answer.responses]


def replace(
    raw: Raw,
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]],
    version: int = 2,
    validate_only: bool = False,
) -> list[int]:
    m = alter_configs
    asked = [
        m.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[m.AlterableConfig(name=key, value=value) for key, value in settings],
        )
        for kind, name, settings in resources
    ]
    answer = raw.ask(m.AlterConfigsRequest(resources=asked, validate_only=validate_only), version)
    return [response.error_code for response in answer.responses]


def own(broker: Broker) -> dict[str, object]:
    return dict(broker.cluster.catalogue.by_name["t"].config.own)


def test_topic_settings_change_while_running(broker: Broker, raw: Raw) -> None:
    config = broker.cluster.catalogue.by_name["t"].config
    assert alter(raw, (TOPIC, "t", [("retention.ms", 0, "5"), ("cleanup.policy", 2, "compact")])) == [0]
    assert config.get("retention.ms") == 5
    assert config.get("cleanup.policy") == ("delete", "compact")
    assert alter(raw, (TOPIC, "t", [("retention.ms", 1, None), ("cleanup.policy", 3, "delete")])) == [0]
    assert config.get("retention.ms") == 604_800_000
    assert config.get("cleanup.policy") == ("compact",)


def test_a_list_that_grows_by_appends_stays_short_enough_for_every_client(broker: Broker, raw: Raw) -> None:
    """One client appended until each append took a second, and nobody could be told the list any more."""
    replicas = "follower.replication.throttled.replicas"
    codes = []
    for start in range(0, 6_000, 2_000):
        given = ",".join(f"{number}:1" for number in range(start, start + 2_000))
        codes += alter(raw, (TOPIC, "t", [(replicas, 2, f"{given},{given}")]))
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    kept = own(broker)[replicas]
    assert kept == tuple(f"{number}:1" for number in range(4_000)), "each item is there once"
    m = describe_configs
    wanted = m.DescribeConfigsResource(resource_type=TOPIC, resource_name="t", configuration_keys=[replicas])
    (row,) = raw.ask(m.DescribeConfigsRequest(resources=[wanted]), 1).results[0].configs
    assert row.value == ",".join(kept)
    assert alter(raw, (TOPIC, "t", [(replicas, 3, row.value)])) == [0]
    assert own(broker)[replicas] == ()


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code"),
    [
        (TOPIC, "none", [("retention.ms", 0, "5")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", [("retention.ms", 0, "5")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", [("retention.ms", 0, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("retention.ms", 0, "x")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retentions", 0, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retention.ms", 2, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retention.ms", 0, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("retention.ms", 0, "5"), ("retention.ms", 0, "6")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("message.max.bytes", 0, "5"), ("group.max.size", 0, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("message.max.bytes", 0, "-5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("message.max.bytes", 2, "5")], ErrorCode.INVALID_CONFIG),
        (BROKER, "2", [("message.max.bytes", 0, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "one", [("message.max.bytes", 0, "5")], ErrorCode.INVALID_REQUEST),
        (8, "1", [("root", 1, None)], ErrorCode.INVALID_REQUEST),
        *((BROKER, "1", [(name, 0, value)], ErrorCode.INVALID_REQUEST) for name, value in REFUSED_BY_KAFKA),
        (BROKER, WHOLE_CLUSTER, [("listener.name.x.log.retention.ms", 0, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("leader.replication.throttled.replicas", 2, "x")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("leader.replication.throttled.replicas", 0, "1:1,*")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_wrong_change_changes_nothing(
    broker: Broker, raw: Raw, kind: int, name: str, changes: Changes, code: ErrorCode
) -> None:
    assert alter(raw, (kind, name, changes)) == [code]
    assert own(broker) == {}
    assert broker.cluster.config.dynamic == {}


def test_commas_at_the_end_of_an_append_hold_no_item(broker: Broker, raw: Raw) -> None:
    for text in ("delete,", "compact,,", ","):
        assert alter(raw, (TOPIC, "t", [("cleanup.policy", 2, text)])) == [0]
    assert own(broker) == {"cleanup.policy": ("delete", "compact")}


def test_options_without_use_here_are_kept_where_kafka_keeps_them(broker: Broker, raw: Raw) -> None:
    given = [("num.io.threads", "4"), ("listener.name.plaintext.max.connections", "9")]
    assert replace(raw, (BROKER, "1", given)) == [0]
    assert replace(raw, (BROKER, "1", [("num.io.threads", "0")])) == [ErrorCode.INVALID_REQUEST]
    assert broker.cluster.config.dynamic == dict(given)


def test_taking_back_what_was_never_set_is_no_error(raw: Raw) -> None:
    assert alter(raw, (TOPIC, "t", [("retention.ms", 1, None), ("of.old", 1, None)])) == [0]
    assert alter(raw, (BROKER, "1", [("group.max.size", 1, None), ("of.old", 1, None)])) == [0]


def test_a_resource_named_twice_is_refused_and_the_others_change(broker: Broker, raw: Raw) -> None:
    twice: list[tuple[str, int, str | None]] = [("retention.ms", 0, "5")]
    cluster = (BROKER, WHOLE_CLUSTER, [("message.max.bytes", 0, "7")])
    assert alter(raw, (TOPIC, "t", twice), cluster, (TOPIC, "t", [])) == [42, 0, 42]
    assert own(broker) == {}
    assert replace(raw, (TOPIC, "t", []), (BROKER, WHOLE_CLUSTER, []), (TOPIC, "t", [])) == [42, 0, 42]
    assert broker.cluster.config.dynamic == {}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_older_way_replaces_all_settings_of_a_topic(broker: Broker, raw: Raw, version: int) -> None:
    first = [("retention.ms", "5"), ("cleanup.policy", "compact,delete")]
    assert replace(raw, (TOPIC, "t", first), version=version) == [0]
    assert own(broker) == {"retention.ms": 5, "cleanup.policy": ("compact", "delete")}
    assert replace(raw, (TOPIC, "t", [("segment.ms", "9")]), version=version) == [0]
    assert own(broker) == {"segment.ms": 9}
    assert replace(raw, (TOPIC, "t", []), version=version) == [0]
    assert own(broker) == {}


@pytest.mark.parametrize("name", ["1", WHOLE_CLUSTER])
def test_the_older_way_replaces_all_changed_settings_of_the_broker(broker: Broker, raw: Raw, name: str) -> None:
    config = broker.cluster.config
    assert alter(raw, (BROKER, name, [("message.max.bytes", 0, "7"), ("log.retention.ms", 0, "8")])) == [0]
    assert replace(raw, (BROKER, name, [("log.retention.ms", "9")])) == [0]
    assert (config.dynamic, config.get("message.max.bytes")) == ({"log.retention.ms": 9}, 1_048_588)
    assert replace(raw, (BROKER, name, [])) == [0]
    assert config.dynamic == {}


@pytest.mark.parametrize(
    ("kind", "name", "settings", "code"),
    [
        (TOPIC, "none", [("retention.ms", "6")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "t", [("segment.ms", "6"), ("retention.ms", "x")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retention.ms", "-7")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retentions", "6")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", [("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", [("retention.ms", "6"), ("retention.ms", "7")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.retention.ms", "6"), ("node.id", "6")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.retention.ms", "x")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.retention.ms", None)], ErrorCode.INVALID_REQUEST),
        (BROKER, "77", [("log.retention.ms", "6")], ErrorCode.INVALID_REQUEST),
        (0, "t", [], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_replace_the_settings_leaves_them_alone(
    broker: Broker, raw: Raw, kind: int, name: str, settings: list[tuple[str, str | None]], code: ErrorCode
) -> None:
    alter(raw, (TOPIC, "t", [("retention.ms", 0, "5")]), (BROKER, "1", [("message.max.bytes", 0, "5")]))
    assert replace(raw, (kind, name, settings)) == [code]
    assert (own(broker), broker.cluster.config.dynamic) == ({"retention.ms": 5}, {"message.max.bytes": 5})


def set_each(raw: Raw, *resources: tuple[int, str, Sequence[tuple[str, str | None]]]) -> list[int]:
    return alter(raw, *((kind, name, [(key, 0, value) for key, value in pairs]) for kind, name, pairs in resources))


@pytest.mark.parametrize("way", [replace, set_each])
def test_a_broker_option_nobody_knows_is_kept_and_its_value_not_told(
    broker: Broker, raw: Raw, way: Callable[..., list[int]]
) -> None:
    assert way(raw, (BROKER, "1", [("a.plugins.password", "7"), ("log.retention.ms", "8")])) == [0]
    m = describe_configs
    for keys in (None, ["a.plugins.password"]):
        wanted = m.DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=keys)
        rows = raw.ask(m.DescribeConfigsRequest(resources=[wanted], include_synonyms=True), 4).results[0].configs
        (row,) = (row for row in rows if row.name == "a.plugins.password")
        assert (row.value, row.is_sensitive, row.read_only, row.config_source) == (None, True, True, 2)
        assert [synonym.value for synonym in row.synonyms] == [None]
    assert broker.cluster.config.differs_from_kafka()["log.retention.ms"] == 8
    assert alter(raw, (BROKER, "1", [("a.plugins.password", 1, None)])) == [0]
    assert broker.cluster.config.dynamic == {"log.retention.ms": 8}


def described(raw: Raw, name: str, *keys: str) -> dict[str, tuple[str | None, list[tuple[str | None, int]]]]:
    """The value of each broker option asked for, and every place that gives it one."""
    m = describe_configs
    wanted = m.DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=list(keys) or None)
    rows = raw.ask(m.DescribeConfigsRequest(resources=[wanted], include_synonyms=True), 4).results[0].configs
    return {row.name: (row.value, [(synonym.value, synonym.source) for synonym in row.synonyms]) for row in rows}


def test_a_nodes_options_count_before_those_of_the_whole_cluster(broker: Broker, raw: Raw) -> None:
    default = ("1048588", 5)
    assert alter(raw, (BROKER, "1", [("message.max.bytes", 0, "7")])) == [0]
    assert described(raw, "1", "message.max.bytes") == {"message.max.bytes": ("7", [("7", 2), default])}
    assert described(raw, WHOLE_CLUSTER) == {}
    assert alter(raw, (BROKER, WHOLE_CLUSTER, [("message.max.bytes", 0, "8")])) == [0]
    assert broker.cluster.config.int("message.max.bytes") == 7
    assert described(raw, "1", "message.max.bytes") == {"message.max.bytes": ("7", [("7", 2), ("8", 3), default])}
    assert described(raw, WHOLE_CLUSTER) == {"message.max.bytes": ("8", [("8", 3)])}
    assert described(raw, WHOLE_CLUSTER, "log.retention.ms") == {}
    assert alter(raw, (BROKER, "1", [("message.max.bytes", 1, None)])) == [0]
    assert broker.cluster.config.int("message.max.bytes") == 8


def test_an_option_without_a_value_has_it_from_nowhere(raw: Raw) -> None:
    assert described(raw, "1", "log.retention.ms", "broker.rack") == {
        "log.retention.ms": (None, []),
        "broker.rack": (None, []),
    }


def test_internal_options_are_described_only_by_name(raw: Raw) -> None:
    name = "producer.id.expiration.check.interval.ms"
    assert name in described(raw, "1", name)
    assert name not in described(raw, "1")


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "1")])
def test_an_empty_list_of_names_asks_for_every_option(raw: Raw, kind: int, name: str) -> None:
    m = describe_configs
    nothing_named: tuple[list[str] | None, ...] = (None, [])
    every, none = (
        m.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for keys in nothing_named
    )
    asked_for_all, asked_for_none = raw.ask(m.DescribeConfigsRequest(resources=[every, none]), 4).results
    assert asked_for_none.configs == asked_for_all.configs != []


def test_an_option_nobody_knows_is_no_list_to_append_to(raw: Raw) -> None:
    assert alter(raw, (BROKER, "1", [("of.a.plugin", 2, "7")])) == [ErrorCode.INVALID_CONFIG]


def test_what_is_only_validated_changes_nothing(broker: Broker, raw: Raw) -> None:
    topic, cluster = (TOPIC, "t", [("retention.ms", "5")]), (BROKER, "1", [("log.retention.ms", "5")])
    assert replace(raw, topic, cluster, validate_only=True) == [0, 0]
    assert (own(broker), broker.cluster.config.dynamic) == ({}, {})


@pytest.mark.parametrize(
    "changes",
    [
        [("min.compaction.lag.ms", 0, "100"), ("max.compaction.lag.ms", 0, "50")],
        [("remote.storage.enable", 0, "true")],
        [("cleanup.policy", 0, "compact,,delete")],
        [("cleanup.policy", 0, "delete,")],
        [("cleanup.policy", 2, "")],
    ],
)
def test_settings_that_no_log_can_have_together_are_refused_wherever_they_are_given(
    broker: Broker, raw: Raw, changes: Changes
) -> None:
    """A topic said that its log was tiered, and one to compact later than ever, where Apache Kafka refuses both."""
    assert alter(raw, (TOPIC, "t", changes)) == [ErrorCode.INVALID_CONFIG]
    if changes[0][1] == 0:
        assert replace(raw, (TOPIC, "t", [(name, value) for name, _, value in changes])) == [ErrorCode.INVALID_CONFIG]
        configs = [create_topics.CreatableTopicConfig(name=name, value=value) for name, _, value in changes]
        topic = create_topics.CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=configs)
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        assert raw.ask(request, 7).topics[0].error_code == ErrorCode.INVALID_CONFIG
    assert own(broker) == {}


def test_what_a_list_does_not_have_can_be_taken_from_it(broker: Broker, raw: Raw) -> None:
    assert alter(raw, (TOPIC, "t", [("cleanup.policy", 3, "none,,delete")])) == [0]
    assert own(broker) == {"cleanup.policy": ()}


def test_a_name_that_no_topic_can_have_is_described_as_such(raw: Raw) -> None:
    m = describe_configs
    named = [m.DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in ("", "a b", "nowhere")]
    answer = raw.ask(m.DescribeConfigsRequest(resources=named), 4)
    invalid, unknown = ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [result.error_code for result in answer.results] == [invalid, invalid, unknown]
