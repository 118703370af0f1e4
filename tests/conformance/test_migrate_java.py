"""`partita migrate` with Kafka's own Java clients: a program of theirs, and the options that they refuse."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita.cli.stories.migrate import migrate
from partita.consumer.config import OF_CLASSIC
from partita.consumer.sharing.settings import REFUSED
from partita.migrate.settings import JAVA_SHARE_REFUSES
from support.kafka.node import jars, java_command

pytestmark = pytest.mark.conformance

QUICK = [
    f"--set=group.consumer.{name}"
    for name in ("min.heartbeat.interval.ms=500", "heartbeat.interval.ms=500", "assignment.interval.ms=0")
]
PROGRAM = Path(__file__).parents[1] / "support" / "kafka" / "RefusedOptions.java"
VALUES = {
    "auto.offset.reset": "earliest", "isolation.level": "read_committed", "group.protocol": "consumer",
    "enable.auto.commit": "true", "session.timeout.ms": "20000",
}  # fmt: skip
WITHIN_S = 120


@pytest.mark.parametrize(
    ("protocol", "refused"),
    [("consumer", {name.replace("_", ".") for name in OF_CLASSIC}), ("share", JAVA_SHARE_REFUSES)],
)
def test_java_refuses_the_options_of_the_table_and_no_others(protocol: str, refused: set[str]) -> None:
    asked = {name.replace("_", ".") for name in REFUSED} - ({"group.protocol"} if protocol == "consumer" else set())
    given = [f"{name}={VALUES.get(name, '100')}" for name in sorted(asked)]
    command = ["java", "-cp", f"{jars()}/*", str(PROGRAM), protocol, *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == refused


def test_a_java_program_goes_to_the_consumer_protocol() -> None:
    command = java_command(
        "org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", "{bootstrap}", "--topic", "orders",
        "--group-id", "billing", "--group-protocol", "{protocol}", "--reset-policy", "earliest", heap="128m",
    )  # fmt: skip
    result = CliRunner().invoke(migrate, [*QUICK, "--topic", "orders:4", "--json", "--", *command])
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [run["deed"] for run in runs if run["protocol"] == "consumer"] == [
        "nothing happens", "a member joins", "a member crashes", "a member leaves",
    ]  # fmt: skip
    assert runs[-1]["protocol"] == "classic, then consumer"
