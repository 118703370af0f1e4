"""franz-go's own tests of KIP-848 groups, run against our broker: chains of groups whose members come and go."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from partita import Broker

pytestmark = pytest.mark.conformance

PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
MODULE = Path(__file__).parents[2] / "bench" / "peers" / "kfake"
"""A Go module that requires franz-go."""
TESTS = "^(Test848RegexBrokerResolves|TestGroupSimple|TestGroupETL)$/^(848|range|sticky)$/^848"
RECORDS = 1_000
BUILD_LIMIT_S, LIMIT_S = 600, 120


@pytest.fixture(scope="module")
def program() -> Path:
    """The package's tests as a program, built once from the published module into the user's cache."""
    go = shutil.which("go", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/go/bin")))
    if go is None:
        pytest.skip("Go is needed to build franz-go's tests")
    version = re.search(r"twmb/franz-go (v\S+)", (MODULE / "go.mod").read_text())
    assert version is not None
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita" / f"franz-go-{version[1]}"
    built = cache / "kgo.test"
    if not built.exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = [go, "test", "-c", "-o", str(built), PACKAGE]
        done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, timeout=BUILD_LIMIT_S)
        assert done.returncode == 0, done.stderr[-2000:]
    return built


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
