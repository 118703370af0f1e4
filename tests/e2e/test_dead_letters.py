"""Dead letters are written exactly once on our own broker; the same stories run on Apache Kafka."""

from __future__ import annotations

import pytest

from partita import Broker
from support.consumer import letter_stories as stories


@pytest.mark.partita(
    transaction_abort_timed_out_transaction_cleanup_interval_ms=300,
    group_consumer_heartbeat_interval_ms=300,
    group_consumer_min_heartbeat_interval_ms=300,
)
@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_each_bad_record_has_one_letter(partita_broker: Broker, story: stories.Story) -> None:
    story(partita_broker.bootstrap)
