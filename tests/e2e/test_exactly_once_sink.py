"""The failure table of the exactly-once sink on our own broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from partita import Broker
from partita.designs.zookeeper.ports import free_ports
from support.spark import sink_stories as stories

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.partita(num_partitions=2, transaction_abort_timed_out_transaction_cleanup_interval_ms=300)
@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_every_row_is_written_once(partita_broker: Broker, story: stories.Story) -> None:
    story(partita_broker.bootstrap)


@pytest.mark.partita(num_partitions=2, transaction_abort_timed_out_transaction_cleanup_interval_ms=200)
def test_a_task_that_is_too_slow(partita_broker: Broker) -> None:
    stories.a_task_that_is_too_slow(partita_broker.bootstrap)


def test_a_broker_that_restarts(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with Broker(data_dir=str(tmp_path), port=port, num_partitions=2) as first:
        again = Broker(data_dir=str(tmp_path), port=port, num_partitions=2)

        def restart() -> None:
            first.stop()
            again.start()

        try:
            stories.a_broker_that_restarts(first.bootstrap, restart)
        finally:
            again.stop()
