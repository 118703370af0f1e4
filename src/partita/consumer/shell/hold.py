"""Holding the rebalance while a batch is in hand.

Inside the block polls go on as usual (paused partitions, other partitions), but nothing is taken away: the group waits
for this member until the block ends, at most max_poll_interval_ms.
"""

from __future__ import annotations

from partita.consumer.shell.driver import ConsumerShell


class Hold:
    """What `consumer.hold()` gives; a context manager. When `others_wait`, finish soon."""

    def __init__(self, shell: ConsumerShell) -> None:
        self._shell = shell

    @property
    def others_wait(self) -> bool:
        """Does the group want to rebalance, and wait for this member?"""
        with self._shell.io.lock:
            return self._shell.core.member.must_rejoin()

    def __enter__(self) -> Hold:
        with self._shell.io.lock:
            self._shell.core.membership.is_held = True
        return self

    def __exit__(self, *_: object) -> None:
        with self._shell.io.lock:
            self._shell.core.membership.is_held = False

    async def __aenter__(self) -> Hold:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()
