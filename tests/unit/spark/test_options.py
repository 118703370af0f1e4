"""Options of format("partita"): what fails at load(), what later, and what the messages name."""

from __future__ import annotations

import pytest

from partita.options import ConfigError
from partita.spark.settings.options import (
    Limits,
    SourceOptions,
    check_batch,
    check_stream,
    parse_sink,
    parse_source,
    table_options,
)
from partita.spark.settings.positions import AtOffsets, AtTime, AtTimes, AtWord
from support.every_case import every_case

BASE = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}


def source(**more: str) -> SourceOptions:
    return parse_source(BASE | {name.replace("__", "."): value for name, value in more.items()})


def test_defaults_are_those_of_sparks_connector() -> None:
    options = source()
    assert options.fail_on_data_loss
    assert options.limits == Limits()
    assert not options.read_committed
    assert (options.starting, options.ending, options.group, options.commits) == (None, None, None, False)


def test_names_count_in_any_case() -> None:
    options = parse_source({"KAFKA.BOOTSTRAP.SERVERS": "h:1", "SubScribe": " a, ,b ,a", "STARTINGOFFSETS": "EarLiest"})
    assert options.topics.names == ("a", "b")
    assert options.starting == AtWord("earliest")


@every_case(
    "changes, named",
    [
        ({"subscribe": None}, "exactly one of subscribe, subscribePattern, assign"),
        ({"assign": '{"t":[0]}'}, "subscribe and assign"),
        ({"subscribe": " "}, "subscribe must not be blank"),
        ({"subscribe": ","}, "names no topic"),
        ({"subscribe": None, "subscribePattern": "("}, "subscribePattern is not a regular expression"),
        ({"subscribe": None, "assign": "[0]"}, "assign must be JSON"),
        ({"subscribe": None, "assign": '{"t":[-1]}'}, "negative"),
        ({"kafka.bootstrap.servers": None}, "kafka.bootstrap.servers is required"),
        ({"kafka.bootstrap.servers": " "}, "kafka.bootstrap.servers is required"),
        ({"startingOffsets": "erliest"}, "startingOffsets must be one of earliest, latest, committed"),
        ({"startingOffsets": '{"t":{"0":"x"}}'}, "startingOffsets must be JSON"),
        ({"startingOffsets": "{nonsense"}, "startingOffsets must be JSON"),
        ({"startingOffsets": "committed"}, "needs the option group"),
        ({"endingOffsets": "earliest"}, "endingOffsets must not be earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "endingOffsets must not hold -2"),
        ({"startingTimestamp": "soon"}, "startingTimestamp must be a whole number"),
        ({"startingOffsetsByTimestamp": "12"}, "startingOffsetsByTimestamp must be JSON"),
        ({"startingOffsetsByTimestampStrategy": "newest"}, "must be one of error, latest"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false"),
        ({"columns": "value,offest"}, "columns names 'offest', which no read has; did you mean 'offset'?"),
        ({"columns": "value, Value"}, "columns names a column twice"),
        ({"includeHeaders": "1"}, "includeHeaders must be true or false"),
        ({"minPartitions": "0"}, "minPartitions must be at least 1"),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be at least 1"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "must not exceed maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "a while"}, "maxTriggerDelay must be a time like 15m"),
        ({"groupMode": "commit"}, "groupMode=commit needs the option group"),
        ({"groupMode": "member"}, "groupMode=member needs the option group"),
        ({"groupMode": "member", "group": "g", "subscribe": None, "assign": '{"t":[0]}'}, "does not go with assign"),
        ({"groupMode": "member", "group": "g", "groupInstanceId": "a b"}, "groupInstanceId must be 1 to 240 of"),
        ({"groupMode": "member", "group": "g", "groupMembers": "0"}, "groupMembers must be a whole number of at"),
        ({"groupMode": "member", "group": "g", "groupMembers": "many"}, "of at least 1, or auto, not 'many'"),
        ({"groupMode": "comit", "group": "g"}, "did you mean 'commit'"),
        ({"groupMembers": "3"}, "groupMembers needs groupMode=member"),
        ({"view": "gruops"}, "view=gruops is not available in this release; known are records, lag, offset_commits"),
        ({"view": "offset_commits"}, "reads __consumer_offsets; leave out subscribe"),
        ({"view": "lag"}, "view=lag asks the cluster; leave out subscribe"),
        ({"view": "offset_commits", "subscribe": None, "includeHeaders": "true"}, "has no headers"),
        ({"view": "offset_commits", "subscribe": None, "columns": "value"}, "columns names 'value', which no read has"),
        ({"offsetAuthority": "group"}, "offsetAuthority=group needs groupMode=commit or member"),
        ({"startingOffset": "earliest"}, "unknown option 'startingOffset'; did you mean 'startingOffsets'"),
        ({"bootstrap.servers": "h:1"}, "did you mean 'kafka.bootstrap.servers'"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset must not be set"),
        ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer must not be set"),
        ({"kafka.enable.auto.commit": "x"}, "kafka.enable.auto.commit must not be set"),
        ({"kafka.interceptor.classes": "x"}, "kafka.interceptor.classes must not be set"),
        ({"topik": "x"}, "unknown option 'topik'"),
        ({"path": "t"}, "no path is taken when reading; topics are named by the option subscribe"),
        (
            {"kafka.security.protocol": "SASL_SSL"},
            "kafka.security.protocol is SASL_SSL and kafka.sasl.mechanism is not set",
        ),
        ({"kafka.bootstrap.servers": "http://h:1"}, "kafka.bootstrap.servers: 'http://h:1' is not an address"),
        ({"kafka.bootstrap.servers": "h:kafka"}, "kafka.bootstrap.servers: 'h:kafka' is not an address"),
        ({"subscribe": "flights delays"}, "subscribe names 'flights delays', which no topic can be called"),
        (
            {"startingOffsets": '{"t":{"0":1}}', "endingOffsets": '{"t":{"1":1}}'},
            "must name the same partitions; only one has t-0, t-1",
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            "5 of t-0 lies after its end 4",
        ),
    ],
)
def test_options_that_cannot_be_meant_fail_at_load(changes: dict[str, str | None], named: str) -> None:
    options = {name: value for name, value in (BASE | changes).items() if value is not None}
    with pytest.raises(ConfigError, match=named.replace("(", r"\(")):
        parse_source(options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingTimestamp", "-1"),
        ("startingOffsets", '{"t":{"0":-3}}'),
        ("kafka.isolation.level", "read_it_all"),
        ("maxOffsetsPerTrigger", "many"),
    ],
)
def test_fails_only_when_the_query_runs(name: str, value: str) -> None:
    options = parse_source(BASE | {name: value})
    for check in (check_batch, check_stream):
        with pytest.raises(ConfigError, match=name):
            check(options)


@pytest.mark.parametrize("value", ["latest", '{"t":{"0":-1}}'])
def test_a_batch_cannot_start_at_the_end(value: str) -> None:
    with pytest.raises(ConfigError, match="must not be latest"):
        check_batch(source(startingOffsets=value))
    check_stream(source(startingOffsets=value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endingOffsets", "latest"),
        ("endingTimestamp", "1"),
        ("endingOffsetsByTimestamp", '{"t":{"0":1}}'),
        ("pushdown", "true"),
    ],
)
def test_a_stream_has_no_end(name: str, value: str) -> None:
    options = parse_source(BASE | {name: value})
    with pytest.raises(ConfigError, match=name):
        check_stream(options)
    check_batch(options)


def test_the_timestamp_goes_first_then_timestamps_then_offsets() -> None:
    every = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":7}}', "startingTimestamp": "9"}
    assert parse_source(BASE | every).starting == AtTime(9)
    del every["startingTimestamp"]
    assert parse_source(BASE | every).starting == AtTimes({("t", 0): 7})


def test_the_offset_json_of_a_stream_is_a_start_too() -> None:
    ours = '{"v":1,"t":{"t":{"0":[3,8,1]}},"n":4}'
    assert source(startingOffsets=ours).starting == AtOffsets({("t", 0): 8})


def test_options_of_sparks_connector_without_effect_are_accepted() -> None:
    options = source(
        groupIdPrefix="p",
        kafkaConsumer__pollTimeoutMs="1",
        fetchOffset__numRetries="1",
        kafka__group__id="g",
        kafka__x="1",
    )
    assert options.warnings == (
        "kafka.group.id has no effect: use the options group and groupMode",
        "kafka.x is not known and has no effect",
    )


def test_what_is_without_effect_is_said_with_the_name_that_was_meant() -> None:
    """As a stranger misspells: the connector passes over such an option in silence."""
    assert source(kafka__fetch__max__byte="1").warnings == (
        "kafka.fetch.max.byte is not known and has no effect; did you mean 'kafka.fetch.max.bytes'?",
    )
    assert source(group="g").warnings == (
        "group has no effect without groupMode=commit, groupMode=member or a start of committed",
    )
    assert source(group="g", startingOffsets="committed").warnings == ()
    member = source(group="g", groupMode="member", kafka__group__protocol="consumer")
    assert member.warnings == ()
    assert member.client["group.protocol"] == "consumer"


@pytest.mark.parametrize(("text", "ms"), [("15m", 900_000), ("500ms", 500), ("2h", 7_200_000), ("3", 3), ("5 s", 5000)])
def test_delays_have_units(text: str, ms: int) -> None:
    assert source(maxTriggerDelay=text).limits.max_delay_ms == ms


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"kafka.group.protocol": "new"}, "kafka.group.protocol must be one of classic, consumer, not 'new'"),
        ({"kafka.partition.assignment.strategy": "foo"}, "kafka.partition.assignment.strategy: unknown assignor 'foo'"),
        ({"kafka.group.remote.assignor": "range"}, "kafka.group.remote.assignor works with kafka.group.protocol cons"),
        (
            {"kafka.heartbeat.interval.ms": "60000"},
            r"kafka.heartbeat.interval.ms \(60000\) must be less than kafka.session",
        ),
    ],
)
def test_wrong_options_of_members_fail_at_load_by_their_names(options: dict[str, str], named: str) -> None:
    """Issue 13, item 4: they failed in the running query, spelled with underscores."""
    with pytest.raises(ConfigError, match=named):
        parse_source(BASE | {"group": "g", "groupMode": "member"} | options)


def test_options_of_members_say_that_they_need_one() -> None:
    """Issue 13, item 4: nothing is without effect in silence."""
    assert source(kafka__session__timeout__ms="9000", group="g", groupMode="member").warnings == ()
    assert source(kafka__session__timeout__ms="9000").warnings == (
        "kafka.session.timeout.ms has no effect without groupMode=member",
    )


def test_idle_connections_may_be_kept_for_ever() -> None:
    assert source(kafka__connections__max__idle__ms="-1").client["connections.max.idle.ms"] == "-1"
    with pytest.raises(ConfigError, match=r"kafka.retry.backoff.ms must be at least 0, not -1"):
        source(kafka__retry__backoff__ms="-1")


def test_a_pattern_matches_anywhere_in_the_name() -> None:
    topics = parse_source({"kafka.bootstrap.servers": "h:1", "subscribePattern": "at-"}).topics
    assert topics.wants("pat-a")
    assert not topics.wants("pta")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"topic": " "}, "topic must not be blank"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer must not be set"),
        ({"kafka.transactional.id": "x"}, "writes at least once, it has no transactions"),
        ({"topci": "x"}, "did you mean 'topic'"),
        ({"path": "t"}, "no path is taken when writing; topics are named by the option topic"),
        ({"topic": "a b"}, "topic names 'a b', which no topic can be called"),
        ({"kafka.batch.size": "16k"}, "kafka.batch.size must be a whole number, not '16k'"),
        ({"kafka.linger.ms": "soon"}, "kafka.linger.ms must be a whole number, not 'soon'"),
    ],
)
def test_wrong_sink_options(options: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_sink({"kafka.bootstrap.servers": "h:1"} | options)


def test_what_has_no_effect_on_this_side_is_said() -> None:
    """findings/spark.md 5: options of the sink vanished in silence."""
    given = {"startingOffsets": "latest", "kafka.fetch.max.bytes": "9", "kafka.sasl.x": "y", "kafka.linger.ms": "5"}
    assert parse_sink({"kafka.bootstrap.servers": "h:1", "topic": "t"} | given).warnings == (
        "startingOffsets has no effect when writing",
        "kafka.fetch.max.bytes has no effect when writing",
        "kafka.sasl.x is not known and has no effect",
    )
    assert source(kafka__acks="all").warnings == ("kafka.acks has no effect when reading",)


def test_the_options_of_a_view_serve_both_sides() -> None:
    """findings/spark.md 7: INSERT INTO a view failed on the options of the other side."""
    view = {"kafka.bootstrap.servers": "h:1", "subscribe": "u", "topic": "t", "kafka.acks": "1"}
    assert (parse_source(view).topics.names, parse_source(view).warnings) == (("u",), ())
    assert (parse_sink(view).topic, parse_sink(view).warnings) == ("t", ())
    del view["subscribe"]
    assert parse_source(view).topics.names == ("t",), "a topic to write to is the one to read"


def test_a_table_keeps_its_options_but_no_secret() -> None:
    given = {"provider": "partita", "owner": "me", "mine": "1", "topic": "t", "option.topic": "t"}
    assert table_options(given) == {"topic": "t"}
    assert table_options({"topic": "t"}) is None
    with pytest.raises(ConfigError, match=r"kafka.sasl.jaas.config must not be an option of a table.*WITH"):
        table_options(given | {"option.kafka.sasl.jaas.config": "x"})


def test_what_sparks_writers_hand_on_is_accepted_by_the_sink() -> None:
    options = parse_sink(
        {"kafka.bootstrap.servers": "h:1", "checkpointLocation": "/c", "topic": "t", "kafka.acks": "1"}
    )
    assert options.topic == "t"
    assert options.client["acks"] == "1"
