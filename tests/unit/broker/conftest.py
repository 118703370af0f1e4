"""A broker with one topic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partita import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.run(lambda: running.cluster.create_topic("t", 2, 1))
        yield running
