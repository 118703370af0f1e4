"""Our transactional producer and read_committed consumer on our own broker, at both levels of transaction.version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Broker
from support.producer import transaction_stories as stories

LOOK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}


@pytest.fixture(scope="module", params=[2, 0], ids=["version 2", "version 0"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker({"partita.transaction.version": request.param, **LOOK}) as made:
        yield made


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
def test_transactions_do_what_they_promise(broker: Broker, story: stories.Story) -> None:
    story(broker.bootstrap)


def test_a_slow_producer_learns_that_its_transaction_timed_out(broker: Broker) -> None:
    stories.a_slow_producer_learns_that_its_transaction_timed_out(broker.bootstrap)
