"""Kafka's command-line tools, run on Apache Kafka and on Partita at once, and what they print made comparable.

What differs by nature (ports, ids, times, the order of lines) is taken out; everything else has to be equal.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from partita import Admin
from support.kafka.node import java_command, settle

TOOLS = "org.apache.kafka.tools."
WITHIN_S = 180

LOOKS_ONLY = frozenset({"--describe", "--list", "describe", "list"})
"""Words of tools that change nothing."""

NORMAL = (
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST:PORT"),
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "-UUID"),
    (re.compile(r'"timestamp":\d+'), '"timestamp":0'),
    (re.compile(r"CreateTime:\d+"), "CreateTime:0"),
    (re.compile(r'"log_dirs":\["[^"]*"\]'), '"log_dirs":[]'),
    # Eligible leader replicas need followers, and bring a cluster-wide min.insync.replicas with them.
    (re.compile(r"Elr: *(N/A)?\s*LastKnownElr: *(N/A)?"), ""),
    (re.compile(r"Configs: min\.insync\.replicas=1,?"), "Configs: "),
    (re.compile(r"DYNAMIC_DEFAULT_BROKER_CONFIG:min\.insync\.replicas=1, "), ""),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Output:
    """How a tool ended and what it printed: normalised lines, sorted."""

    code: int
    lines: tuple[str, ...]
    errors: tuple[str, ...]


def normalised(text: str) -> tuple[str, ...]:
    for pattern, replacement in NORMAL:
        text = pattern.sub(replacement, text)
    lines = (line.strip() for line in text.splitlines() if "SLF4J" not in line)
    return tuple(sorted(line for line in lines if line))


def run(name: str, *arguments: str, stdin: str | None = None) -> Output:
    """Run one tool to its end; `name` as in Kafka's jars, without the package most of them are in."""
    command = java_command(name if name.startswith("kafka.") else TOOLS + name, *arguments, heap="256m")
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, input=stdin)
    return Output(done.returncode, normalised(done.stdout), normalised(done.stderr))


class Twins:
    """Apache Kafka and Partita, side by side."""

    def __init__(self, kafka: str, partita: str) -> None:
        self.bootstraps = (kafka, partita)

    def both(self, name: str, *arguments: str, stdin: str | None = None) -> tuple[Output, Output]:
        """Run a tool against Kafka and Partita; returns the outputs in this order. `BOOTSTRAP` is filled in.

        What it changed is known to Kafka's broker then, so that the next tool sees it.
        """

        def against(bootstrap: str) -> Output:
            return run(name, *(bootstrap if a == "BOOTSTRAP" else a for a in arguments), stdin=stdin)

        with ThreadPoolExecutor(2) as pool:
            kafka, partita = pool.map(against, self.bootstraps)
        if not LOOKS_ONLY.isdisjoint(arguments):
            return kafka, partita
        with Admin(bootstrap_servers=self.bootstraps[0]) as admin:
            settle(admin)
        return kafka, partita

    def same(self, name: str, *arguments: str, stdin: str | None = None) -> Output:
        """Run `name --bootstrap-server ... arguments`; both must end and print alike. Returns what they printed."""
        kafka, partita = self.both(name, "--bootstrap-server", "BOOTSTRAP", *arguments, stdin=stdin)
        assert partita == kafka, difference(kafka, partita)
        return partita


def difference(kafka: Output, partita: Output) -> str:
    """What only one of the two printed."""
    rows = [f"ended with {kafka.code} on Kafka, {partita.code} on Partita"]
    for name, this, that in (("Kafka", kafka, partita), ("Partita", partita, kafka)):
        known = {*that.lines, *that.errors}
        rows += [f"only {name}: {line}" for line in (*this.lines, *this.errors) if line not in known]
    return "\n".join(rows)
