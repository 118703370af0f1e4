"""Conformance tests need Java and Maven and take minutes: they run with `--conformance` only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.histories import PARTITIONS, TOPICS
from support.kafka.node import KafkaNode, KafkaUnavailable, run_tool


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaNode]:
    """One node of Apache Kafka with the topics of the histories."""
    try:
        with KafkaNode() as node:
            for topic in TOPICS:
                tool = "org.apache.kafka.tools.TopicCommand"
                run_tool(
                    tool,
                    "--bootstrap-server",
                    node.bootstrap,
                    "--create",
                    "--topic",
                    topic,
                    "--partitions",
                    str(PARTITIONS),
                )
            yield node
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to compare with: {reason}")
