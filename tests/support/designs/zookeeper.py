"""What tests on a real ZooKeeper share. Without Java, pyspark or kazoo they are left out, and say so in one line."""

from __future__ import annotations

import os

import pytest

from partita.designs.zookeeper.jars import why_not


def require_zookeeper() -> None:
    """Leave a test out where ZooKeeper cannot be started; with PARTITA_REQUIRE_ZOOKEEPER=1 that is a failure."""
    reason = why_not()
    if reason is not None:
        if os.environ.get("PARTITA_REQUIRE_ZOOKEEPER") == "1":
            pytest.fail(reason)
        pytest.skip(f"left out, needs a ZooKeeper: {reason}")
