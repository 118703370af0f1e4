"""The pytest plugin: a broker for a test in milliseconds. Installed with partita; nothing to configure.

    def test_orders(partita_broker):
        connect(partita_broker.bootstrap)
        partita_broker.control.expire_session("orders", member_id)

Must not import anything of the broker before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from partita.broker.embedded import Broker


@pytest.fixture
def partita_broker() -> Iterator[Broker]:
    """A fresh in-memory broker of its own for one test, on an ephemeral loopback port."""
    from partita.broker.embedded import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def partita_session_broker() -> Iterator[Broker]:
    """One in-memory broker for the whole run: faster; tests must use topics and groups of their own."""
    from partita.broker.embedded import Broker

    with Broker() as broker:
        yield broker
