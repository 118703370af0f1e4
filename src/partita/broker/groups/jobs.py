"""Run the jobs of coordinators beside the event loop: regular expressions, targets of large groups, users' assignors.

Each job has a thread of its own, so that one that never ends holds no other up. After `JOB_SECONDS` it is given up, and
users' code is interrupted. That ends a computation, but not a wait (a lock, a socket), so each lane of jobs has a bound
of its own: an assignor that never ends takes nothing from other assignors, from ours, or from expressions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

from partita.group.contract import Job
from partita.lazy import later

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = later("ctypes")

log = logging.getLogger("partita.broker")

JOB_SECONDS = 10.0


class Jobs:
    """The jobs of one broker process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._unfinished: list[_Run] = []

    @property
    def running(self) -> int:
        """Number of jobs whose thread has not ended."""
        return sum(run.is_unfinished for run in self._unfinished)

    def run(self, job: Job, done: Callable[[object], None]) -> None:
        """Run the job; `done` is called once on the loop with its result, or with the exception that ended it."""
        refused = self._refusal(job)
        if refused is not None:
            done(RuntimeError(refused))
            return
        self._unfinished = [one for one in self._unfinished if one.is_unfinished]
        run = _Run(job, done)
        run.timer = self._loop.call_later(JOB_SECONDS, self._late, run)
        run.thread = Thread(target=self._work, args=(run,), name=f"partita-job-{job.group_id}", daemon=True)
        run.thread.start()
        self._unfinished.append(run)

    def _refusal(self, job: Job) -> str | None:
        """Why the job cannot begin now; None where it can."""
        lane = job.lane
        alike = [run.job for run in self._unfinished if run.is_unfinished and run.job.lane == lane]
        if lane.is_users and any(other.group_id == job.group_id for other in alike):
            return "its last run for this group has not ended"
        if len(alike) >= lane.most:
            return f"{lane.most} runs of it have not ended" if lane.is_users else f"{lane.most} {lane.name} run already"
        return None

    def _late(self, run: _Run) -> None:
        log.warning("a job of group %s takes longer than %.0f s; it is given up", run.job.group_id, JOB_SECONDS)
        run.end(TimeoutError(f"it took longer than {JOB_SECONDS:.0f} s"))
        if run.job.lane.is_users and run.is_unfinished:
            _interrupt(run.thread)

    def _work(self, run: _Run) -> None:
        """On the thread."""
        try:
            outcome: object = run.job.run()
        except BaseException as error:
            outcome = error
        run.has_outcome = True
        try:
            self._loop.call_soon_threadsafe(run.end, outcome)
        except RuntimeError:
            log.debug("a job of group %s ended after the broker", run.job.group_id)


class _Run:
    """One job and the callback for its end."""

    def __init__(self, job: Job, done: Callable[[object], None]) -> None:
        self.job = job
        self._done: Callable[[object], None] | None = done
        self.thread: Thread
        self.has_outcome = False
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_unfinished(self) -> bool:
        """Whether its thread still works on it; one that was interrupted may end without an outcome."""
        return not self.has_outcome and self.thread.is_alive()

    def end(self, outcome: object) -> None:
        """Report the outcome, unless one was reported before."""
        done, self._done = self._done, None
        if self.timer is not None:
            self.timer.cancel()
        if done is not None:
            done(outcome)


def _interrupt(thread: Thread) -> None:
    """Raise SystemExit in the thread at its next step of Python: threads end by it in silence."""
    assert thread.ident is not None, "the thread has been started"
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
