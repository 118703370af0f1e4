"""A broker with an authorizer, and raw clients of its users."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Broker
from support.broker.askers import raw_as, secured
from support.broker.raw import Raw


@pytest.fixture
def broker() -> Iterator[Broker]:
    """With topics t and u of two partitions."""
    with secured() as running:
        running.run(lambda: [running.cluster.create_topic(name, 2, 1) for name in ("t", "u")])
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[Raw]:
    with raw_as(broker, "admin") as raw:
        yield raw


@pytest.fixture
def alice(broker: Broker) -> Iterator[Raw]:
    with raw_as(broker, "alice") as raw:
        yield raw
