"""A broker inside this process: `with Broker() as broker: ...broker.bootstrap...`.

It has a thread with a loop of its own, so that a caller who blocks does not stop it; `async with` works too. Whatever a
caller asks is done on that loop and awaited here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from partita.broker.launch import BrokerSettings, StartError, new_event_loop, start_broker

if TYPE_CHECKING:
    from partita.broker.control.verbs import Control
    from partita.broker.nodes import Cluster
    from partita.broker.option_types import BrokerOptions
    from partita.broker.running import RunningBroker

__all__ = ["Broker", "StartError"]

T = TypeVar("T")
_SETTING_NAMES = frozenset(
    {"host", "port", "data_dir", "durability", "nodes", "kafka_defaults", "notes_file", "admin_port"}
)
START_WITHIN_SECONDS = 30.0


class Broker:
    """An embedded broker. In memory on a free port, unless told otherwise.

    `host`, `port`, `data_dir`, `durability`, `nodes`, `kafka_defaults`, `notes_file`, `admin_port` as for `partita
    broker`; every other keyword is one of Kafka's options with underscores (`num_partitions=3`); `config` takes them
    with dots.
    """

    def __init__(self, config: Mapping[str, object] | None = None, **options: Unpack[BrokerOptions]) -> None:
        given: dict[str, Any] = dict(options)
        named = {name: value for name, value in given.items() if name in _SETTING_NAMES}
        rest = {name: value for name, value in given.items() if name not in _SETTING_NAMES}
        self._settings = BrokerSettings(**named, options={**(config or {}), **rest})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: RunningBroker | None = None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> Broker:
        await asyncio.get_running_loop().run_in_executor(None, self.start)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.stop)

    def start(self) -> None:
        """Start, and return when clients can connect. Raises StartError with one line that says what to do."""
        if self._thread is not None:
            raise StartError("this broker runs already")
        started = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(started, failure), name="partita-broker", daemon=True)
        self._thread.start()
        if not started.wait(START_WITHIN_SECONDS):
            raise StartError(f"the broker did not start within {START_WITHIN_SECONDS:.0f} s")
        if failure:
            self._thread.join()
            self._thread = None
            raise failure[0]

    def stop(self) -> None:
        """Stop in order; waiting requests are answered. Nothing happens when it does not run."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None:
            return
        self.call(self.running.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop = None
        self._running = None

    @property
    def bootstrap(self) -> str:
        """What a client wants as `bootstrap.servers`."""
        return ",".join(str(node.endpoint) for node in self.cluster.nodes.values())

    def bootstrap_by(self, listener: str) -> str:
        """The same for clients that are to come by another listener than the first. Raises KeyError."""
        return ",".join(str(node.endpoints[listener]) for node in self.cluster.nodes.values())

    @property
    def port(self) -> int:
        """The first node's port."""
        return next(iter(self.cluster.nodes.values())).endpoint.port

    @property
    def running(self) -> RunningBroker:
        """All parts of the running broker; touch them only by `call` and `run`."""
        if self._running is None:
            raise RuntimeError("the broker is not running; use `with Broker() as broker:` or call start()")
        return self._running

    @property
    def cluster(self) -> Cluster:
        """The state of the running broker: nodes, topics, settings. Touch it only by `call` and `run`."""
        return self.running.cluster

    @property
    def control(self) -> Control:
        """What a test may cause: see `partita.broker.control.verbs`."""
        from partita.broker.control.verbs import Control

        return Control(self.running)

    def notes(self, *, since: int = 0, follow: bool = False, timeout: float | None = None) -> Iterator[dict[str, Any]]:
        """What happened, oldest first: rebalances with their causes, control calls, nodes coming and going.

        With `follow` it goes on with new ones, until none came for `timeout` seconds (None: for ever).
        """
        arrived: SimpleQueue[dict[str, Any]] = SimpleQueue()

        def begin() -> tuple[list[dict[str, Any]], Callable[[], None]]:
            notes = self.cluster.notes
            return notes.since(since), notes.listen(arrived.put)

        kept, end = self.run(begin)
        try:
            yield from kept
            while follow:
                yield arrived.get(timeout=timeout)
        except Empty:
            return
        finally:
            if self._loop is not None:
                self.run(end)

    def run(self, function: Callable[[], T]) -> T:
        """Call `function` on the broker's loop and return its result."""

        async def on_loop() -> T:
            return function()

        return self.call(on_loop())

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the broker's loop and return its result."""
        assert self._loop is not None, "the broker runs"
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _run(self, started: threading.Event, failure: list[BaseException]) -> None:
        loop = new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            self._running = loop.run_until_complete(start_broker(self._settings))
            self._loop = loop
            started.set()
            loop.run_forever()
        except BaseException as error:
            failure.append(error)
            started.set()
        finally:
            loop.close()
