"""The program of docs/transactions.md that reads, computes and writes, killed at its lines by SIGKILL's equal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from partita import Admin, Producer
from support.producer.transaction_stories import seen

PAGE = Path(__file__).parents[3] / "docs" / "transactions.md"
KILLED = 9
CHILD = """
import os, sys

source, bootstrap, line, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
exec("from partita import Consumer, Producer")
exec(compile(source, "the program", "exec"), globals())


def tracer(frame, event, arg):
    global times
    if frame.f_code.co_filename != "the program":
        return None
    if event == "line" and frame.f_lineno == line:
        times -= 1
        if not times:
            os._exit(9)
    return tracer


sys.settrace(tracer)
copy_totals(bootstrap)
"""


def program() -> str:
    """The functions of the page, without the call at the end."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (source,) = (block for block in blocks if "def copy_totals" in block)
    return str(source.rpartition("\ncopy_totals(bootstrap)")[0])


def lines(source: str) -> list[int]:
    """The numbers of the lines that may run, from the first function on."""
    codes = [compile(source, "the program", "exec")]
    found: set[int] = set()
    while codes:
        code = codes.pop()
        inner = [const for const in code.co_consts if hasattr(const, "co_lines")]
        codes += inner
        if code.co_name != "<module>":
            found |= {line for _, _, line in code.co_lines() if line is not None and line > code.co_firstlineno}
    return sorted(found)


def run(bootstrap: str, line: int = 0, times: int = 1) -> int:
    """Run it; it dies when `line` is reached for the time of this number. Returns its exit code."""
    words = [sys.executable, "-c", CHILD, program(), bootstrap, str(line), str(times)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, KILLED), done.stderr
    return done.returncode


def killed_at_its_lines(bootstrap: str, times: tuple[int, ...] = (1,)) -> None:
    """Kill it at every line, the first, second ... time that the line is reached; then every order has one total."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        for topic in ("orders", "totals"):
            admin.create_topic(topic, 2)
    kills, number = 0, 0
    with Producer(bootstrap_servers=bootstrap) as orders:
        for line in lines(program()):
            for time in times:
                for _ in range(4):
                    orders.send("orders", f"{number:04}", key=f"{number}")
                    number += 1
                orders.flush(20)
                kills += run(bootstrap, line, time) == KILLED
    assert run(bootstrap) == 0
    assert kills >= len(lines(program())), "every line is reached"
    assert seen(bootstrap, "totals", partitions=2) == [f"total of {one:04}" for one in range(number)]
