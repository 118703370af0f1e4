"""Many waits for one disk, some at a time: the disk joins concurrent requests, where one by one each would wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from time import monotonic

log = logging.getLogger("partita.broker")

AT_ONCE = 16
PROGRESS_SECONDS = 2.0
"""Time between log lines about progress."""


def side_by_side(jobs: Sequence[Callable[[], None]], doing: str, *, at_once: int = AT_ONCE) -> None:
    """Run all jobs, at most `at_once` at a time, and return when the last has ended. Raises the first job's error.

    After an error no further job begins. `doing` names the work for the log, as "syncing logs".
    """
    work = _Work(iter(jobs))
    if at_once <= 1 or len(jobs) <= 1:
        work.run()
    else:
        threads = _started(work, min(at_once, len(jobs)))
        if not threads:
            work.run()
        said = monotonic()
        for thread in threads:
            while thread.is_alive():
                thread.join(max(0.0, said + PROGRESS_SECONDS - monotonic()))
                if thread.is_alive():
                    said = monotonic()
                    log.info("%s: %d of %d done", doing, work.done, len(jobs))
    if work.errors:
        raise work.errors[0]


def _started(work: _Work, count: int) -> list[Thread]:
    threads: list[Thread] = []
    for _ in range(count):
        thread = Thread(target=work.run, name="partita-disk")
        try:
            thread.start()
        except RuntimeError:  # the system gives no more: those that run do all the work, and are waited for
            break
        threads.append(thread)
    return threads


class _Work:
    """Jobs that several threads take one after the other, until none is left or one has failed."""

    def __init__(self, left: Iterator[Callable[[], None]]) -> None:
        self._left = left
        self.done = 0
        self.errors: list[BaseException] = []

    def run(self) -> None:
        """Take jobs and do them. `for` over one iterator is safe for several threads."""
        for job in self._left:
            if self.errors:
                break
            try:
                job()
            except BaseException as error:
                self.errors.append(error)
                break
            self.done += 1
