"""An event loop in virtual time: what the broker's shells schedule becomes events of a simulated world.

The loop has no sockets and no threads. Work for an executor is done on the spot after a delay that the seed draws, as a
disk or a thread would take it. A loop that is stopped does nothing any more: its process is dead.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Any

from partita.now import Now
from partita.sim.world.world import World
from partita.system_clock import SystemClock

_ROUNDING_MS = 1e-6


class VirtualClock(SystemClock):
    """The world's clock, as a broker sees it; `advance` moves it ahead, `set_wall_back` turns its wall clock back."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._behind_ms = 0

    def now(self) -> Now:
        """This instant."""
        now = self._world.now
        return Now(now.mono_ms + self._ahead_ms, now.wall_ms + self._ahead_ms - self._behind_ms)

    def mono_ms(self) -> int:
        """`now().mono_ms`."""
        return self._world.now.mono_ms + self._ahead_ms

    def set_wall_back(self, ms: int) -> None:
        """Let the wall clock show `ms` less than before."""
        self._behind_ms += ms


class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that the broker uses. `on_turn` is called after each turn, outside of it."""

    def __init__(self, world: World, on_turn: Callable[[], None]) -> None:
        self._world = world
        self._on_turn = on_turn
        self._ready: deque[asyncio.Handle] = deque()
        self._is_stopped = False
        self._is_turning = False
        self.work_ms = (0, 0)
        """Least and most virtual milliseconds that work for an executor takes."""
        self.failures: list[str] = []
        """Exceptions that no caller has received."""

    def enter(self, call: Callable[..., object], *args: object) -> None:
        """Call something as a turn of the loop: what becomes ready by it runs, too."""
        if self._is_stopped:
            return
        self.call_soon(call, *args)
        self._turn()

    def stop(self) -> None:
        """The process is dead."""
        self._is_stopped = True
        self._ready.clear()

    def _turn(self) -> None:
        # What becomes ready within a turn is run by the loop that is under way; a turn inside a turn would change the
        # order.
        if self._is_turning or self._is_stopped:
            return
        self._is_turning = True
        events._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(None)
            self._is_turning = False
        if not self._is_stopped:
            self._on_turn()

    # What asyncio and the broker call

    def time(self) -> float:
        """Virtual seconds."""
        return self._world.now.mono_ms / 1000

    def call_soon(  # type: ignore[override]  # less exact types
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """Run it in this turn, or in a turn that begins now."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_stopped:
            if not self._ready and not self._is_turning:
                # A turn is an event of the world like any other: what another event at the same millisecond does may
                # come before it.
                self._world.after(0, self._turn)
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]  # less exact types
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """As `call_soon`: there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]  # less exact types
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run it in so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # less exact types
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Run it at this virtual second."""
        # A cancelled timer stays in the world's queue and is passed over when it is due: taking it out would cost a
        # search.
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        # Never early: a deadline that is looked at a millisecond before its time would find nothing due. The tiny
        # amount takes back what multiplying by 1000 adds to a float.
        self._world.at(ceil(when * 1000 - _ROUNDING_MS), self._due, handle)
        return handle

    def _due(self, handle: asyncio.TimerHandle) -> None:
        if not handle.cancelled() and not self._is_stopped:
            self._ready.append(handle)
            self._turn()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to do: a cancelled timer is passed over when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None, **_: Any) -> asyncio.Task[Any]:
        """A task of this loop."""
        return asyncio.Task(coro, loop=self, name=name)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # nobody is given a coroutine function
        """Do the work after a delay, on the spot."""
        done = self.create_future()
        # The work itself is done at the end of its time and not at the begin: a crash in between must lose it.
        self._world.after(self._world.dice.between(*self.work_ms), self.enter, self._work, done, func, args)
        return done

    def _work(self, done: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            result = func(*args)
        except Exception as error:
            done.set_exception(error)
        else:
            done.set_result(result)

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Whether its process is alive."""
        return not self._is_stopped

    def is_closed(self) -> bool:
        """Whether its process is dead."""
        return self._is_stopped

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an exception that no caller received, unless the process was killed meanwhile."""
        if not self._is_stopped:
            self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")
