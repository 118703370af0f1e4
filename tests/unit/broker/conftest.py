"""A broker with one topic, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Broker
from support.broker.raw import Raw


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.run(lambda: running.cluster.create_topic("t", 2, 1))
        yield running


@pytest.fixture
def raw(broker: Broker) -> Iterator[Raw]:
    with Raw(broker.port) as connection:
        yield connection
