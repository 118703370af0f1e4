"""A broker for tests of third-party clients, once on memory and once on disk; names that no other test uses."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partita import Broker

WITHIN_S = 60.0
_numbers = itertools.count(1)


def fresh(prefix: str) -> str:
    """A topic or group name of one's own."""
    return f"{prefix}-{next(_numbers)}"


def until(fact: Callable[[], bool], what: str, within: float = WITHIN_S) -> None:
    """Wait until a fact holds that nobody announces."""
    limit, pause = time.monotonic() + within, threading.Event()
    while not fact():
        assert time.monotonic() < limit, f"waited {within} s in vain until {what}"
        pause.wait(0.02)


@pytest.fixture(scope="module", params=["memory", "disk"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    data_dir: Path | None = tmp_path_factory.mktemp("broker") / "data" if request.param == "disk" else None
    options = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 4, "num.partitions": 3}
    options["log.retention.check.interval.ms"] = 86_400_000  # tests send old records and read them later
    with Broker(options, data_dir=None if data_dir is None else str(data_dir)) as running:
        yield running
