"""Runs the jobs of coordinators beside the event loop: regular expressions, targets of large groups, users' assignors.

Each job has a thread of its own, so that one that never ends holds no other up. Whoever waits is told after
`JOB_SECONDS`; a thread cannot be stopped, so at most `JOBS_MAX` run at a time, and what comes beyond that fails.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Thread

from partita.group.contract import Job

log = logging.getLogger("partita.broker")

JOB_SECONDS = 10.0
JOBS_MAX = 16


class Jobs:
    """The jobs of one broker process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.running = 0

    def run(self, job: Job, done: Callable[[object], None]) -> None:
        """Run the job; `done` is called once on the loop with what it came to, or an exception that says why not."""
        if self.running >= JOBS_MAX:
            done(RuntimeError(f"{JOBS_MAX} jobs of groups run already"))
            return
        self.running += 1
        run = _Run(job, done)
        run.timer = self._loop.call_later(JOB_SECONDS, self._late, run)
        Thread(target=self._work, args=(run,), name=f"partita-job-{job.group_id}", daemon=True).start()

    def _late(self, run: _Run) -> None:
        log.warning("a job of group %s takes longer than %.0f s; it is not waited for", run.job.group_id, JOB_SECONDS)
        run.end(TimeoutError(f"it took longer than {JOB_SECONDS:.0f} s"))

    def _ended(self, run: _Run, outcome: object) -> None:
        self.running -= 1
        run.end(outcome)

    def _work(self, run: _Run) -> None:
        """On the thread."""
        try:
            outcome: object = run.job.run()
        except BaseException as error:
            outcome = error
        try:
            self._loop.call_soon_threadsafe(self._ended, run, outcome)
        except RuntimeError:
            log.debug("a job of group %s ended after the broker", run.job.group_id)


class _Run:
    """One job and whom to tell of its end."""

    def __init__(self, job: Job, done: Callable[[object], None]) -> None:
        self.job = job
        self._done: Callable[[object], None] | None = done
        self.timer: asyncio.TimerHandle | None = None

    def end(self, outcome: object) -> None:
        """Tell it, if it was not told already."""
        done, self._done = self._done, None
        if self.timer is not None:
            self.timer.cancel()
        if done is not None:
            done(outcome)
