"""What a client costs that does little: CPU from its process's start to the first record of a group, and while idle.

Each client is measured in processes of its own (bench/peers/costs.py), all on Partita's broker. The peak of their
memory is printed beside the rows.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

from harness import QUICK, Medians, left_out, partita, report, row, row_is_wanted, turns, wanted
from table import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, OURS

from partita import Admin, Producer, compiled

PROGRAM = Path(__file__).parent / "peers" / "costs.py"
CLIENTS = (OURS, CONFLUENT, AIOKAFKA, KAFKA_PYTHON)
FIRST, IDLE = "first record, process", "1,000 partitions at rest"
PARTITIONS = {FIRST: 1, IDLE: 1_000}
SECONDS = {FIRST: 0, IDLE: 5 if QUICK else 10}
EACH = {FIRST: 5, IDLE: 1}
"""Processes of each client in a round. Those at rest run side by side."""
_groups = count()


def measure(bootstrap: str, what: str) -> None:
    """Print the row of every client that is installed."""
    figures: dict[str, list[float]] = {name: [] for name in CLIENTS if name == OURS or wanted(name)}
    memory: dict[str, float] = {}
    for _ in turns(EACH[what]):
        for together in [list(figures)] if what == IDLE else [[name] for name in figures]:
            children = [(name, started(name, bootstrap, what)) for name in together]
            for name, child in children:
                output, errors = child.communicate()
                if child.returncode:
                    left_out("client_costs", name, (errors.strip().splitlines() or ["failed"])[-1])
                    del figures[name]
                    continue
                figure, memory[name] = map(float, output.split())
                figures[name].append(figure)
    row(what, Medians(figures, EACH[what]))
    report("client_costs", of=what, **{f"{name} MB": peak for name, peak in memory.items()})


def started(name: str, bootstrap: str, what: str) -> subprocess.Popen[str]:
    """The process of one client, in a group of its own."""
    partitions = PARTITIONS[what]
    asked = (name, bootstrap, f"costs-{next(_groups)}", f"of-{partitions}", partitions, SECONDS[what])
    command = [sys.executable, str(PROGRAM), *map(str, asked)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main() -> None:
    compileall.compile_dir(Path(compiled.__file__).parent, quiet=2)  # as an installer does
    with partita() as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin, Producer(bootstrap_servers=broker.bootstrap) as first:
            for partitions in PARTITIONS.values():
                admin.create_topic(f"of-{partitions}", partitions)
            first.send("of-1", b"record")
            first.flush()
        for what in filter(row_is_wanted, PARTITIONS):
            measure(broker.bootstrap, what)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
