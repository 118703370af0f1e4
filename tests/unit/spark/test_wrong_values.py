"""Every option of `format("partita")` with values that it cannot have: refused by name before anything is opened.

Issue 13: wrong numbers and words of the sink were found in the writer, numbers without bounds in the tasks.
"""

from __future__ import annotations

import pytest

from partita.options import ConfigError
from partita.spark.settings import table
from partita.spark.settings.options import check_batch, check_stream, parse_sink, parse_source
from partita.spark.settings.produce import produce_settings
from support.every_case import every_case

BEYOND = "99999999999999999999"
NO_NUMBER = ("x", "", "1.5", "-2", BEYOND, "1_000x")
NO_WORD = ("x", "-1", "1.5")
NO_JSON = ("x", "[0]", "{", f'{{"t":{{"0":{BEYOND}}}}}', '{"t":{"0":1.5}}')
WRONG = {
    "subscribe": ("", ",", "a b"),
    "subscribePattern": ("", "("),
    "assign": ("", "x", '{"t":[-1]}', '{"t":["0"]}', f'{{"t":[{BEYOND}]}}'),
    "startingOffsets": NO_JSON,
    "startingTimestamp": ("x", "", "1.5", "-2", BEYOND),
    "startingOffsetsByTimestamp": NO_JSON,
    "endingOffsets": (*NO_JSON, "earliest"),
    "endingTimestamp": ("x", "", "1.5", "-2", BEYOND),
    "endingOffsetsByTimestamp": NO_JSON,
    "columns": ("", "x", "key,key"),
    "view": ("", "x"),
    "valueSchema": ("", "x"),
    "keySchema": ("", "x"),
    "timeZone": ("", "x"),
    "deadLetterTopic": ("", "a b"),
    "separator": ("", "ab", "é", '"', ";"),
    "registry": ("x",),
    "maxTriggerDelay": ("x", "", "-1", "5 fortnights"),
    "maxOffsetsPerTrigger": (*NO_NUMBER, "0"),
    "minOffsetsPerTrigger": (*NO_NUMBER, "0"),
    "maxBytesPerTrigger": (*NO_NUMBER, "0"),
    "group": ("", " "),
    "groupMembers": ("x", "", "0", "-1", "1.5"),
    "groupInstanceId": ("a b", "é"),
    "topic": ("", " ", "a b"),
    "sinkName": ("", " "),
    "kafka.bootstrap.servers": ("", " ", "h:port", "http://h:1"),
    "kafka.isolation.level": NO_WORD,
    "kafka.acks": ("x", "", "2", "-2"),
    "kafka.enable.idempotence": ("x", "1", "yes"),
    "kafka.compression.type": ("x", "", "brotli"),
    "kafka.compression.gzip.level": ("x", "", "0", "10", "-2"),
    "kafka.compression.lz4.level": ("x", "", "0", "18"),
    "kafka.compression.zstd.level": ("x", "", "23", "-131073"),
    "kafka.partitioner.class": ("x", "com.example.Mine"),
    "kafka.partitioner.ignore.keys": ("x", "1"),
    "kafka.transaction.timeout.ms": (*NO_NUMBER, "0"),
    "kafka.max.in.flight.requests.per.connection": (*NO_NUMBER, "0"),
    "kafka.group.protocol": NO_WORD,
    "kafka.partition.assignment.strategy": NO_WORD,
}
"""Where the values that every number, word or JSON cannot have are not the ones."""
ANY_TEXT = ("queryName", "kafka.client.id", "kafka.client.rack", "kafka.group.remote.assignor")


def wrong_values(name: str, options: dict[str, str]) -> tuple[str, ...]:
    """Values that the option of this name cannot have, by the kind that `options` says it is."""
    if name in WRONG or name in ANY_TEXT:
        return WRONG.get(name, ())
    return {"int": NO_NUMBER, "bool": ("x", "1", ""), "words": NO_WORD}[options.get(name, "int")]


SOURCE, SINK = ({o.name: "words" if o.choices else o.kind for o in of} for of in (table.SOURCE, table.SINK))
OF_SINK = [name for name, text in table.CLIENT.items() if text.startswith("sink:")]
OF_SOURCE = [name for name, text in table.CLIENT.items() if text.startswith("source:")]
OF_BOTH = [name for name in table.CLIENT if name not in (*OF_SINK, *OF_SOURCE)]
OF_MEMBER = [option.name for option in table.MEMBER] + list(table.CLIENT_OF_MEMBER)


def cases(kinds: dict[str, str], client: list[str]) -> list[tuple[str, str]]:
    """Every option of one side with every wrong value of it."""
    return [(name, value) for name in (*kinds, *client) for value in wrong_values(name, kinds)]


@every_case("name, value", cases(SOURCE, OF_BOTH + OF_SOURCE + list(table.CLIENT_NO_EFFECT)))
def test_no_read_begins_with_a_wrong_value(name: str, value: str) -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    if name in ("subscribePattern", "assign", "view"):
        del given["subscribe"]
    if name in OF_MEMBER or name == "group":
        given |= {"group": "g", "groupMode": "member"}
    check = check_batch if name.startswith("ending") else check_stream
    with pytest.raises(ConfigError, match=name):
        check(parse_source(given | {name: value}))


@every_case("name, value", [case for case in cases({}, OF_BOTH + OF_SOURCE) if case[0] != "kafka.isolation.level"])
def test_a_wrong_value_of_the_client_fails_at_load(name: str, value: str) -> None:
    """In the user's thread, though the query would fail by itself: a stream starts in a thread of its own."""
    member = {"group": "g", "groupMode": "member"} if name in OF_MEMBER else {}
    with pytest.raises(ConfigError, match=name):
        parse_source({"kafka.bootstrap.servers": "h:1", "subscribe": "t"} | member | {name: value})


@every_case(
    "name, value",
    [
        case
        for case in cases(SINK, OF_BOTH + OF_SINK + list(table.CLIENT_NO_EFFECT))
        if case[0] != "kafka.isolation.level"  # a word for reads alone
    ],
)
def test_no_write_begins_with_a_wrong_value(name: str, value: str) -> None:
    given = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
    if name in ("sinkName", "sinkStart"):
        given |= {"exactlyOnce": "true", "sinkName": "s"}
    with pytest.raises(ConfigError, match=name):
        parse_sink(given | {name: value})


def test_what_the_bounds_allow_is_taken() -> None:
    """The other side of the tables above: they would pass if everything were refused."""
    given = {"kafka.bootstrap.servers": "h:1", "topic": "t"}
    least = {"kafka.acks": "0", "kafka.batch.size": "0", "kafka.retries": "0", "kafka.compression.gzip.level": "-1"}
    most = {"kafka.batch.size": "2147483647", "kafka.max.block.ms": str(2**63 - 1), "kafka.compression.lz4.level": "17"}
    for options in (least, most):
        found = parse_sink(given | options)
        assert found.produce == produce_settings(found.client)
