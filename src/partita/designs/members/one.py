"""A member of design 1: the rules of `consumer_one` on a real ZooKeeper, reading with our consumer."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from typing import TypeVar

from partita.designs.members.reader import Reader
from partita.designs.members.settings import MemberSettings, Say
from partita.designs.rules.consumer_one import (
    Action,
    AwaitConnection,
    ConsumerOne,
    ConsumerRebalanceFailed,
    Ending,
    Sent,
    Settings,
    Sleep,
    StartFetching,
    StopFetching,
    Tell,
)
from partita.designs.rules.requests import WatchEvent
from partita.designs.zookeeper.client import Client, Closed, end_session

T = TypeVar("T")


class MemberOne:
    """Three threads besides the reader: one rebalances, one receives events, one commits from time to time."""

    def __init__(self, settings: MemberSettings, say: Say) -> None:
        timings = settings.timings
        self._settings = settings
        self._say = say
        self._rules = ConsumerOne(
            Settings(
                settings.group,
                settings.member,
                settings.topic,
                strategy=settings.strategy,
                session_timeout_ms=timings.session_ms,
                retries=timings.retries,
                backoff_ms=timings.backoff_ms,
                watch_brokers=settings.watch_brokers,
            )
        )
        self._client = Client(
            settings.zookeeper,
            session_timeout_ms=timings.session_ms,
            on_event=self._on_event,
            on_new_session=self._on_new_session,
        )
        self._reader = Reader(settings.bootstrap, say)
        self._is_dirty = threading.Event()
        self._has_expired = False
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._rebalance_when_dirty, daemon=True, name="rebalance")]
        if settings.auto_commit:
            self._threads.append(threading.Thread(target=self._commit_now_and_then, daemon=True, name="commit"))

    def start(self) -> None:
        """Register, watch, rebalance. Raises ConsumerRebalanceFailed when that fails four times."""
        self._client.start()
        self._say("session", id=self._client.session)
        self._run(self._rules.register(_wall_ms()))
        self._run(self._rules.watch())
        if self._run(self._rules.rebalance()) is Ending.GAVE_UP:
            self.close()
            raise ConsumerRebalanceFailed(f"{self._settings.member} can't rebalance after 4 retries")
        for thread in self._threads:
            thread.start()

    def slow(self, ms: int) -> None:
        """Make the processing of the next records take `ms`."""
        self._reader.slow(ms)

    def end_session(self) -> None:
        """Let the session expire at once."""
        credentials = self._client.credentials
        assert credentials is not None, "a member that runs has a session"
        end_session(self._settings.zookeeper, credentials)

    def close(self) -> None:
        """Stop, commit, end the session: the nodes go at once."""
        self._closing.set()
        self._is_dirty.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=self._settings.timings.session_ms * 10 / 1000)
        moved = self._reader.stop()
        if self._client.is_connected:
            self._run(self._rules.commit(moved))
        self._client.close()
        self._reader.close()

    def _rebalance_when_dirty(self) -> None:
        try:
            while self._is_dirty.wait() and not self._closing.is_set():
                self._is_dirty.clear()
                if self._has_expired:
                    self._has_expired = False
                    self._rules.forget()
                self._run(self._rules.rebalance())
        except Closed:
            pass

    def _commit_now_and_then(self) -> None:
        try:
            while not self._closing.wait(self._settings.timings.commit_ms / 1000):
                self._run(self._rules.commit(self._reader.moved()))
        except Closed:
            pass

    def _on_event(self, event: WatchEvent) -> None:
        self._run(self._rules.look_again(event.path))
        self._is_dirty.set()

    def _on_new_session(self) -> None:
        self._say("session", id=self._client.session)
        self._has_expired = True
        self._run(self._rules.register(_wall_ms()))
        self._run(self._rules.watch())
        self._is_dirty.set()

    def _run(self, dialogue: Generator[Action, Sent, T]) -> T:
        """Carry out the actions of the rules until they are done."""
        answer: Sent = None
        while True:
            try:
                action = dialogue.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = None
            match action:
                case StopFetching():
                    answer = self._reader.stop()
                case StartFetching(offsets):
                    self._reader.start(offsets)
                case Sleep(ms):
                    self._closing.wait(ms / 1000)
                case Tell(what, facts):
                    self._say(what, **facts)
                case AwaitConnection():
                    self._client.await_connection()
                case _:
                    answer = self._client.ask(action)


def _wall_ms() -> int:
    return int(time.time() * 1000)
