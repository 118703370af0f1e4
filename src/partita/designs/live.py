"""One design, running until it is stopped: who owns which partition, live."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partita.designs.compare import EXTRA_MEMBERS, HERD_RATE
from partita.designs.ground import Ground
from partita.designs.lab import Lab
from partita.designs.members.settings import Timings
from partita.designs.ownership import Ownership
from partita.designs.scenarios import names

LOOK_EVERY_S = 0.1
CALM_SESSIONS = 2
"""After so many sessions without a change the group is settled: one that died has been found."""


@dataclass(frozen=True, slots=True)
class Look:
    """One view to show. `lines` are the changes since the view before; `at_s` counts from the start."""

    ownership: Ownership
    lines: Sequence[str]
    at_s: float
    now_s: float


def run(
    design: str, members: int, partitions: int, timings: Timings, show: Callable[[Look], None], for_s: float | None
) -> None:
    """Start a group whose members are processes of their own, and call `show` ten times a second.

    Once the group is settled, and again after each change, the lines are ZooKeeper's nodes in designs 1 and 2.
    Ends after `for_s` seconds, or on KeyboardInterrupt. Raises NoZooKeeper where designs 1 and 2 cannot run. No process
    is left.
    """
    with (
        Ground(members + EXTRA_MEMBERS, timings) as ground,
        Lab(ground, design, "run", number=0, partitions=partitions, rate=HERD_RATE) as lab,
    ):
        ownership = Ownership(partitions)
        began_s = time.monotonic()
        for name in names(members):
            ownership.add(name, lab.start(name, alone=True))
        lines = [f"{name} is process {seen.pid}" for name, seen in ownership.members.items()]
        changed_s: float | None = began_s
        while True:
            lines += ownership.take(lab.take_facts())
            for name in lab.take_dead():
                lines += ownership.died(name)
            now_s = time.monotonic()
            if lines or not ownership.is_known():
                changed_s = now_s
            elif changed_s is not None and now_s - changed_s > CALM_SESSIONS * lab.session_s:
                changed_s, lines = None, lab.tree()
            show(Look(ownership, lines, now_s - began_s, now_s))
            lines = []
            if for_s is not None and now_s - began_s > for_s:
                return
            time.sleep(LOOK_EVERY_S)
