"""The failure table of the exactly-once sink on Apache Kafka, at both levels of transaction.version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.kafka.node import KafkaNode, KafkaUnavailable
from support.spark import sink_stories as stories


@pytest.fixture(scope="module", params=[2, 0])
def node(request: pytest.FixtureRequest) -> Iterator[KafkaNode]:
    kafka = KafkaNode(transaction_abort_timed_out_transaction_cleanup_interval_ms="300")
    try:
        with kafka.with_feature("transaction.version", request.param) as node:
            yield node
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to compare with: {reason}")


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_every_row_is_written_once(node: KafkaNode, story: stories.Story) -> None:
    story(node.bootstrap)


def test_a_task_that_is_too_slow(node: KafkaNode) -> None:
    stories.a_task_that_is_too_slow(node.bootstrap)


def test_a_broker_that_restarts(node: KafkaNode) -> None:
    def restart() -> None:
        node.stop()
        node.start()

    stories.a_broker_that_restarts(node.bootstrap, restart)
