"""The pytest plugin: a broker for a test, ready in milliseconds. It is installed with partita and needs no setup.

    def test_orders(partita_broker):
        connect(partita_broker.bootstrap)
        partita_broker.control.expire_session("orders", member_id)

The broker is imported when a test first asks for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from partita.broker.embedded import Broker


def pytest_configure(config: pytest.Config) -> None:
    """Leave the asserts of partita itself as they are.

    pytest rewrites the asserts of every package that brings a plugin. For partita that would only make the first start
    slower, and in Python 3.11 two threads that compile rewritten modules at the same time can fail with a SystemError.
    """
    hook = config.pluginmanager.rewrite_hook
    rewritten = getattr(hook, "_must_rewrite", None)
    if isinstance(rewritten, set):
        rewritten.discard("partita")


@pytest.fixture
def partita_broker() -> Iterator[Broker]:
    """A new in-memory broker for this test, on a free loopback port."""
    from partita.broker.embedded import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def partita_session_broker() -> Iterator[Broker]:
    """One in-memory broker for the whole run. Tests must use their own topics and groups."""
    from partita.broker.embedded import Broker

    with Broker() as broker:
        yield broker
