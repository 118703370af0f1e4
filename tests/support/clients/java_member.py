"""A member of a group made with Kafka's own Java client: its VerifiableConsumer, which prints what happens to it.

Its JSON lines are told in the words of support/clients/member.py, so that all members are watched alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.kafka.node import java_command

ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
SESSION_MS, HEARTBEAT_MS = 6_000, 100
ENDED_BY_SIGTERM = 143
"""How a Java process ends that was asked to, after its shutdown hook."""


def command(task: Sequence[str], folder: Path, protocol: str) -> list[str]:
    """The process of one member; `task` as for member.py. Options go to a file in `folder`."""
    bootstrap, group, topic, client_id, assignor, session_ms = task
    options = folder / f"{client_id}.properties"
    lines = [f"client.id={client_id}", "metadata.max.age.ms=1000"]
    by_protocol = ["--group-protocol", "consumer"]
    if protocol != "consumer":
        lines.append(f"heartbeat.interval.ms={HEARTBEAT_MS}")
        by_protocol = [
            "--session-timeout", str(int(session_ms) or SESSION_MS),
            "--assignment-strategy", ASSIGNORS[assignor or "range"],
        ]  # fmt: skip
    options.write_text("\n".join(lines))
    return java_command(
        "org.apache.kafka.tools.VerifiableConsumer",
        "--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group, "--verbose",
        "--reset-policy", "earliest", *by_protocol, "--command-config", str(options),
        heap="128m",
    )  # fmt: skip


class Facts:
    """Tells the lines of one member as facts."""

    def __init__(self) -> None:
        self._owned: set[int] = set()

    def of(self, line: str) -> Iterator[dict[str, Any]]:
        """What a line says: nothing, or one fact."""
        told: dict[str, Any] = json.loads(line) if line.startswith("{") else {"name": "log line"}
        match told["name"]:
            case "partitions_assigned" | "partitions_revoked" as name:
                moved = {each["partition"] for each in told["partitions"]}
                self._owned = self._owned | moved if name == "partitions_assigned" else self._owned - moved
                yield {"event": "assigned", "partitions": sorted(self._owned)}
            case "record_data":
                yield {"event": "records", "records": [(told["partition"], told["offset"], told["value"])]}
            case "offsets_committed" if told["success"]:
                yield {"event": "committed", "offsets": {e["partition"]: e["offset"] for e in told["offsets"]}}
            case "offsets_committed":
                yield {"event": "refused", "error": told["error"]}
            case "shutdown_complete":
                yield {"event": "closed"}
