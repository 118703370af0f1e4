"""franz-go's own tests of KIP-848 groups, run against our broker: chains of groups whose members come and go."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from partita import Broker
from support.go_programs import go_program

pytestmark = pytest.mark.conformance

PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
MODULE = Path(__file__).parents[2] / "bench" / "peers" / "kfake"
"""A Go module that requires franz-go."""
TESTS = "^(Test848RegexBrokerResolves|TestGroupSimple|TestGroupETL)$/^(848|range|sticky)$/^848"
RECORDS = 1_000
LIMIT_S = 120


@pytest.fixture(scope="module")
def program() -> Path:
    """The package's tests as a program."""
    version = re.search(r"twmb/franz-go (v\S+)", (MODULE / "go.mod").read_text())
    assert version is not None
    return go_program(PACKAGE, version[1], "test", "-c", module=MODULE)


@pytest.mark.partita(group_consumer_heartbeat_interval_ms=5_000, group_consumer_assignment_interval_ms=1_000)
def test_groups_of_the_consumer_protocol(program: Path, partita_broker: Broker) -> None:
    """Records are read once and in order by three groups in a row, dynamic and static members, two assignors.

    With Kafka's intervals: with shorter ones partitions move while records are read, and franz-go acknowledges that it
    has given them up while its commit is still on the way, which is refused then (STALE_MEMBER_EPOCH).
    """
    environment = {
        **os.environ,
        "KGO_SEEDS": partita_broker.bootstrap,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_TEST_MAX_TOPIC_PARTS": "12",
        "KGO_LOG_LEVEL": "error",
    }
    command = [str(program), "-test.v", "-test.run", TESTS, "-test.timeout", f"{LIMIT_S}s", "-test.parallel", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S + 10)
    passed = set(re.findall(r"--- PASS: (\S+)", done.stdout))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    expected = {"Test848RegexBrokerResolves", "TestGroupSimple/848"}
    expected |= {f"TestGroupETL/{name}" for name in ("range/848", "sticky/848", "sticky/848/static")}
    assert expected <= passed, done.stdout[-4000:]
    assert "--- SKIP" not in done.stdout
