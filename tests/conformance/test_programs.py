"""Kafka Streams, Connect and MirrorMaker 2 on Partita; on Apache Kafka, too, and over kill -9, with `--slow`.

The run with `--slow` takes three secured nodes as well, and writes the table of docs/compatibility.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partita import Broker
from support.kafka.node import KafkaNode, KafkaUnavailable
from support.kafka.programs import PROGRAMS

pytestmark = pytest.mark.conformance

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN, END = (
    "<!-- programs: written by pytest tests/conformance/test_programs.py --conformance --slow -->\n",
    "<!-- end -->",
)
OURS = {"auto.create.topics.enable": False}
SECURED: dict[str, Any] = {
    "nodes": 3,
    "tls": True,
    "users": {"alice": "se;cret"},
    "acls": ["allow User:alice all topic *", "allow User:alice all group *", "allow User:alice all transactional-id *"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_kafkas_own(program: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    whole = pytestconfig.getoption("--slow")
    passed = {}
    try:
        for side in ("kafka", "partita", "secured") if whole else ("partita",):
            folder = tmp_path / side
            folder.mkdir()
            with KafkaNode() if side == "kafka" else Broker(OURS, **(SECURED if side == "secured" else {})) as cluster:
                passed[side] = list(PROGRAMS[program](_way(cluster), folder, whole=whole))
    except KafkaUnavailable as reason:
        pytest.skip(f"no program of Kafka's to run: {reason}")
    if whole:
        assert passed["secured"] == passed["partita"] == passed["kafka"]
        write(program, passed)


def _way(cluster: KafkaNode | Broker) -> dict[str, str]:
    """A client's options; those of alice, with a dead server before the others, if the broker asks for a login."""
    way: dict[str, str] = {"bootstrap.servers": cluster.bootstrap}
    if isinstance(cluster, Broker) and len(cluster.cluster.nodes) > 1:
        way = cluster.client_options("alice", style="java", mechanism="SCRAM-SHA-512")
        way["bootstrap.servers"] = f"127.0.0.1:1,{cluster.bootstrap}"
    return way


def write(program: str, passed: dict[str, list[str]]) -> None:
    """Put the program's row into the table."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    table, end, after = rest.partition(END)
    assert begin, f"{PAGE} has no place for the table"
    assert end, f"{PAGE} has no end of the table"
    counts = " | ".join(f"{len(names)} of {len(passed['kafka'])}" for names in passed.values())
    row = f"| {program} | {'; '.join(passed['partita'])} | {counts} |\n"
    rows = [line for line in table.splitlines(keepends=True) if not line.startswith(f"| {program} |")]
    PAGE.write_text(before + begin + "".join([*rows, row]) + end + after)
