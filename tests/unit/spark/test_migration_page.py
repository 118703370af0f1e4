"""Every option of Spark's Kafka connector does what docs/spark-migration.md says of it. Issue 13, item 9."""

from __future__ import annotations

import re
from pathlib import Path

from partita.options import ConfigError
from partita.spark.settings.options import parse_sink, parse_source
from support.every_case import every_case

PAGE = (Path(__file__).parents[3] / "docs" / "spark-migration.md").read_text()
ROW = re.compile(r"^- ((?:`[\w.]+`(?:, )?)+): (\w[\w ]*)", re.M)
LOGIN = {
    "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config":
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";',
}  # fmt: skip
VALUES = {
    "kafka.bootstrap.servers": "h:1", "startingOffsets": "earliest", "startingTimestamp": "1",
    "startingOffsetsByTimestamp": '{"t":{"0":1}}', "startingOffsetsByTimestampStrategy": "latest",
    "endingOffsets": "latest", "endingTimestamp": "1", "endingOffsetsByTimestamp": '{"t":{"0":1}}',
    "failOnDataLoss": "false", "includeHeaders": "true", "maxTriggerDelay": "1m", "assign": '{"t":[0]}',
    "kafka.isolation.level": "read_committed", "kafka.acks": "1", "kafka.compression.type": "gzip",
    "kafka.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    "topic": "t", **LOGIN,
}  # fmt: skip


def rows_of(title: str) -> list[tuple[str, str]]:
    """The options and words below a heading."""
    section = PAGE.split(f"### {title}\n")[1].split("\n#")[0]
    return [(name, found[2]) for found in ROW.finditer(section) for name in re.findall("`(.+?)`", found[1])]


READING, WRITING, BOTH = (rows_of(title) for title in ("Reading", "Writing", "Both sides"))
CASES = [("source", *row) for row in (*READING, *BOTH)] + [("sink", *row) for row in (*WRITING, *BOTH)]


def outcome(side: str, name: str) -> str:
    """What becomes of an option, in the words of the page as far as parsing tells."""
    given = {"kafka.bootstrap.servers": "h:1"}
    if side == "sink":
        given["topic"] = "t"
    elif name not in ("subscribe", "subscribePattern", "assign"):
        given["subscribe"] = "t"
    if name.startswith(("kafka.sasl", "kafka.security")):
        given |= LOGIN
    if name == "maxTriggerDelay":
        given["minOffsetsPerTrigger"] = "5"
    given[name] = VALUES.get(name, "7")
    try:
        options = (parse_sink if side == "sink" else parse_source)(given)
    except ConfigError as error:
        return "refused" if name in str(error) else f"refused without its name: {error}"
    return "warns" if any(name in warning for warning in options.warnings) else "accepted"


@every_case("side, name, word", CASES, lambda case: f"{case[0]}-{case[1]}")
def test_an_option_does_what_the_page_says(side: str, name: str, word: str) -> None:
    wanted = word if word in ("refused", "warns") else "accepted"
    assert outcome(side, name) == wanted


def test_the_page_has_every_option_of_the_guide() -> None:
    """The tables "Configurations" of Spark's integration guide for Kafka, and what it says may not be set."""
    guide = {
        "assign", "subscribe", "subscribePattern", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets",
        "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
        "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix", "kafka.group.id",
        "includeHeaders", "startingOffsetsByTimestampStrategy", "kafka.bootstrap.servers", "kafka.auto.offset.reset",
        "kafka.key.deserializer", "kafka.value.deserializer", "kafka.enable.auto.commit", "kafka.interceptor.classes",
    }  # fmt: skip
    assert guide <= {name for name, _ in READING}
    assert {"topic", "includeHeaders", "kafka.key.serializer", "kafka.value.serializer"} <= {
        name for name, _ in WRITING
    }
