"""Dead letters are written exactly once on Apache Kafka, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.consumer import letter_stories as stories
from support.kafka.node import KafkaNode, KafkaUnavailable


@pytest.fixture(scope="module")
def node() -> Iterator[KafkaNode]:
    try:
        with KafkaNode(
            transaction_abort_timed_out_transaction_cleanup_interval_ms="300",
            group_consumer_heartbeat_interval_ms="300",
            group_consumer_min_heartbeat_interval_ms="300",
        ) as kafka:
            yield kafka
    except KafkaUnavailable as reason:
        pytest.skip(f"no Apache Kafka to compare with: {reason}")


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_each_bad_record_has_one_letter(node: KafkaNode, story: stories.Story) -> None:
    story(node.bootstrap)
