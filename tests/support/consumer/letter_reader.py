"""A process that reads a topic with bad records, prints the good ones, and is killed after so many lines: see stories.

Run as `python -m support.consumer.letter_reader BOOTSTRAP TOPIC LINES`; 0 lines: it reads to the end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from partita import Consumer
from support.consumer.letter_stories import PARTITIONS, WATCHED


def kill_after(lines: int) -> None:
    """End this process by SIGKILL when its threads have run so many lines of the watched modules."""
    left = lines

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in WATCHED:
            return None
        left -= event == "line"
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def main(bootstrap: str, topic: str, lines: str) -> None:
    """Poll, print and commit, until the group has passed every record."""
    if int(lines):
        kill_after(int(lines))
    parts = [(topic, p) for p in range(PARTITIONS)]
    with Consumer(
        bootstrap_servers=bootstrap, group_id=topic, group_instance_id="one", auto_offset_reset="earliest",
        value_deserializer="json", poison_policy="dead_letter", dead_letter_topic=f"{topic}-dead",
        dead_letter_exactly_once=True, enable_auto_commit=False,
    ) as consumer:  # fmt: skip
        consumer.subscribe([topic])
        ends = consumer.end_offsets(parts)
        while any(at is None or at.offset < ends[tp] for tp, at in consumer.committed(parts).items()):
            for record in consumer.poll(0.5, max_records=5):
                print(record.value, flush=True)
            consumer.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
