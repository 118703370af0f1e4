"""A broker inside this process: `with Broker() as broker: ...broker.bootstrap...`.

It has a thread with a loop of its own, so that a caller who blocks does not stop it; `async with` works too. A caller's
requests run on that loop and are awaited here.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from difflib import get_close_matches
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from partita.broker.config import BROKER_OPTIONS, BrokerConfig, ConfigError, of_listener, removed_name
from partita.broker.launch import BrokerSettings, StartError, new_event_loop, start_broker
from partita.lazy import later

if TYPE_CHECKING:
    from partita import admin as admin_client
    from partita import errors as kafka_errors
    from partita.admin.results import GroupDescription
    from partita.broker.control import verbs
    from partita.broker.nodes import Cluster
    from partita.broker.running import RunningBroker
    from partita.broker.security.ready_made import ThrowAwayCertificates
    from partita.consumer.records import ConsumerRecord
    from partita.consumer.shell import blocking as blocking_consumer
    from partita.option_types import BrokerOptions
    from partita.producer.batch import RecordMetadata
    from partita.producer.serializing import GivenHeaders
    from partita.producer.shell import client as producer_client
else:
    admin_client = later("partita.admin")
    blocking_consumer = later("partita.consumer.shell.blocking")
    kafka_errors = later("partita.errors")
    producer_client = later("partita.producer.shell.client")
    verbs = later("partita.broker.control.verbs")

__all__ = ["Broker", "StartError"]

T = TypeVar("T")
_SETTING_NAMES = frozenset(
    {
        "host",
        "port",
        "data_dir",
        "durability",
        "nodes",
        "kafka_defaults",
        "notes_file",
        "admin_port",
        "admin_token",
        "tls",
        "mtls",
        "users",
        "acls",
        "assignors",
    }
)
START_WITHIN_SECONDS = 30.0
LOOK_EVERY_SECONDS = 0.01
NOT_RUNNING = "the broker is not running; use `with Broker() as broker:` or call start()"


class Broker:
    """An embedded broker. In memory on a free port, unless options say otherwise.

    `host`, `port`, `data_dir`, `durability`, `nodes`, `kafka_defaults`, `notes_file`, `admin_port`, `admin_token` as
    for `partita broker`; every other keyword is one of Kafka's options with underscores (`num_partitions=3`); `config`
    takes them with dots. `tls=True` makes throw-away certificates, `mtls=True` asks clients for theirs as well, `users`
    maps names to passwords, `acls` are lines such as "allow User:alice read topic orders"; see `client_options`.
    `assignors` are server-side assignors for KIP-848 groups: instances, or "module:Class". Raises
    StartError for an unknown option, with the closest one that exists, and for a wrong value.
    """

    def __init__(self, config: Mapping[str, object] | None = None, **options: Unpack[BrokerOptions]) -> None:
        given: dict[str, Any] = dict(options)
        named = {name: value for name, value in given.items() if name in _SETTING_NAMES}
        rest = {name: value for name, value in given.items() if name not in _SETTING_NAMES}
        self._settings = BrokerSettings(**named, options={**(config or {}), **rest})
        _check_options(self._settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: RunningBroker | None = None

    def __repr__(self) -> str:
        nodes = "" if self._settings.nodes == 1 else f", {self._settings.nodes} nodes"
        return f"<Broker {self.bootstrap}{nodes}>" if self._running is not None else f"<Broker not running{nodes}>"

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
        """Start, and return when clients can connect. Raises StartError with one line that names the cure."""
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
        """Stop in order; waiting requests are answered. Nothing happens when it does not run.

        In a forked child nothing happens either: the broker runs in the parent.
        """
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or not thread.is_alive():
            return
        self.call(self.running.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop = None
        self._running = None

    @property
    def bootstrap(self) -> str:
        """The value of a client's `bootstrap.servers`."""
        return ",".join(str(node.endpoint) for node in self.cluster.nodes.values())

    def bootstrap_by(self, listener: str) -> str:
        """The same for clients that are to come by another listener than the first. Raises KeyError."""
        return ",".join(str(node.endpoints[listener]) for node in self.cluster.nodes.values())

    def client_options(
        self, user: str | None = None, *, style: str = "partita", mechanism: str | None = None
    ) -> dict[str, Any]:
        """Return a client's options to reach this broker as `user`: address, protocol, password, certificates.

        `style` is the spelling: "partita", "confluent", "aiokafka", "kafka-python" or "java". `mechanism` is PLAIN
        unless given; for OAUTHBEARER the options hold a provider of unsigned tokens of that user. With TLS and without
        users, `user` gets a client certificate of that name. Raises KeyError for an unknown user, ValueError for
        OAUTHBEARER on a broker that takes no unsigned token.
        """
        ready_made = self.running.ready_made
        if ready_made is None:
            name = "bootstrap.servers" if style in ("confluent", "java") else "bootstrap_servers"
            return {name: self.bootstrap}
        return ready_made.client_options(self.bootstrap, user, style, mechanism)

    @property
    def tls(self) -> ThrowAwayCertificates:
        """The throw-away certificates: `ca_file`, `server_file`, `client(name)`. Raises RuntimeError without any."""
        ready_made = self.running.ready_made
        certificates = None if ready_made is None else ready_made.certificates
        if certificates is None:
            raise RuntimeError("this broker was started without tls=True")
        return cast("ThrowAwayCertificates", certificates)  # only the command line has certificates in a folder

    def _own_options(self) -> dict[str, Any]:
        ready_made = self.running.ready_made
        return {"bootstrap_servers": self.bootstrap} if ready_made is None else ready_made.own_options(self.bootstrap)

    @property
    def port(self) -> int:
        """The first node's port."""
        return next(iter(self.cluster.nodes.values())).endpoint.port

    @property
    def admin_port(self) -> int | None:
        """Port of the control verbs, also if `admin_port=0` left the choice to the system; None without them."""
        return self.running.admin_port

    @property
    def admin_token(self) -> str:
        """The control endpoint's token, if there is an endpoint: the given one, or a generated one."""
        return self.running.admin_token

    @property
    def running(self) -> RunningBroker:
        """All parts of the running broker; touch them only by `call` and `run`."""
        if self._running is None:
            raise RuntimeError(NOT_RUNNING)
        return self._running

    @property
    def cluster(self) -> Cluster:
        """The state of the running broker: nodes, topics, settings. Touch it only by `call` and `run`."""
        return self.running.cluster

    @property
    def control(self) -> verbs.Control:
        """The control verbs for tests: see `partita.broker.control.verbs`."""
        return verbs.Control(self.running)

    def metrics(self) -> dict[str, float]:
        """The broker's metrics by Kafka's names, as Prometheus' JMX exporter writes them, labels in braces.

        Rates and rebalances count from the first call on.
        """
        return self.run(lambda: self.running.metrics.read())

    def metrics_text(self) -> str:
        """The same in Prometheus' text format, as `GET /metrics` of the control endpoint gives it."""
        return self.run(lambda: self.running.metrics.text())

    def notes(self, *, since: int = 0, follow: bool = False, timeout: float | None = None) -> Iterator[dict[str, Any]]:
        """Yield events, oldest first: rebalances with their causes, control calls, nodes coming and going.

        With `follow` it waits for new ones, until none has come for `timeout` seconds (None: for ever). Raises
        RuntimeError if the broker is not running.
        """
        self.running  # noqa: B018 - a generator would say so only at its first step
        return self._notes(since, follow, timeout)

    def _notes(self, since: int, follow: bool, timeout: float | None) -> Iterator[dict[str, Any]]:
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

    # Calls for tests and notebooks, made by clients of this broker

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create topics, each with this number of partitions. Raises TopicAlreadyExistsError, TypeError."""
        if not isinstance(topics, Mapping):
            raise TypeError(
                f"topics are given with their numbers of partitions, such as {{'orders': 6}}, not {topics!r}"
            )
        with self._admin() as admin:
            admin.create_topics(*(admin_client.NewTopic(name, partitions) for name, partitions in topics.items()))

    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: int | None = None,
        headers: GivenHeaders | None = None,
        timestamp: int | None = None,
    ) -> list[RecordMetadata]:
        """Write records and return where they are. The keywords apply to all of them.

        None is a tombstone. `timestamp` is in ms. Creates the topic if it does not exist.
        """
        with producer_client.Producer(**self._own_options(), linger_ms=0) as producer:
            sent = [producer.send(topic, value, key, headers, partition, timestamp) for value in values]
            return [future.result() for future in sent]

    def records(self, topic: str, partition: int | None = None) -> list[ConsumerRecord]:
        """All records of a topic that consumers may read now, partition by partition, in offset order.

        Raises UnknownTopicOrPartitionError.
        """
        with self._admin() as admin:
            described = admin.describe_topics(topic)[0].partitions
            wanted = [(topic, p.partition) for p in described if partition in (None, p.partition)]
            ends = {key: found.offset for key, found in admin.list_offsets(dict.fromkeys(wanted, "latest")).items()}
        found: list[ConsumerRecord] = []
        with blocking_consumer.Consumer(
            **self._own_options(), auto_offset_reset="earliest", fetch_max_wait_ms=1
        ) as consumer:
            consumer.assign(wanted)
            while any(consumer.position(key) < end for key, end in ends.items()):
                found += consumer.poll(0.1)
        kept = [record for record in found if record.offset < ends[record.topic, record.partition]]
        return sorted(kept, key=lambda record: (record.partition, record.offset))

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """The committed offsets of a group by (topic, partition); empty for a group that does not exist."""
        with self._admin() as admin:
            return {(found.topic, found.partition): found.offset for found in admin.group_offsets(group_id)}

    def wait_group(
        self, group_id: str, *, state: str | None = None, members: int | None = None, timeout: float = 30.0
    ) -> GroupDescription | None:
        """Wait until a group is in a state ("Stable") and has so many members; return its description.

        For a group that does not exist, which is "Dead" and has no members, None is returned. After `timeout` seconds
        it raises TimeoutError, which says how the group is.
        """

        def look() -> tuple[bool, GroupDescription | None, str]:
            try:
                group = admin.describe_group(group_id)
            except kafka_errors.GroupIdNotFoundError:
                return state in (None, "Dead") and members in (None, 0), None, "does not exist"
            is_so = state in (None, group.state) and members in (None, len(group.members))
            return is_so, group, f"is {group.state} with {len(group.members)} member{'s' * (len(group.members) != 1)}"

        with self._admin() as admin:
            return _wait(f"group {group_id}", look, timeout)

    def wait_for_lag(self, group_id: str, at_most: int = 0, *, topic: str | None = None, timeout: float = 30.0) -> int:
        """Wait until a group's lag, in total or in one topic, is at most this; return the lag.

        Records of partitions without a committed offset all count. Raises TimeoutError that says how far it is behind.
        """

        def look() -> tuple[bool, int, str]:
            try:
                rows = [row for row in admin.group_lag(group_id) if topic in (None, row.topic)]
            except kafka_errors.GroupIdNotFoundError:
                return False, 0, "does not exist"
            if not rows:
                return False, 0, "has neither committed offsets nor partitions"
            lag = sum((row.log_end_offset or 0) if row.lag is None else row.lag for row in rows)
            return lag <= at_most, lag, f"is {lag} record{'s' * (lag != 1)} behind"

        with self._admin() as admin:
            return _wait(f"group {group_id}", look, timeout)

    def clear(self) -> None:
        """Reset the broker for the next test: no topics, groups or faults, and every node is up.

        Members are removed from their groups; clients that are still running may come back. The clock stays where it
        is, and so do notes and changed options of the broker.
        """
        control = self.control
        control.clear_faults()
        stopped = self.run(lambda: [node.node_id for node in self.cluster.nodes.values() if not node.is_alive])
        for node_id in stopped:
            control.start_node(node_id)
        with self._admin() as admin:
            for group in admin.list_groups():
                for member_id in control.members(group.group_id):
                    control.evict_member(group.group_id, member_id)
                admin.delete_groups(group.group_id)
            admin.delete_topics([topic.name for topic in admin.list_topics()])

    def _admin(self) -> admin_client.Admin:
        return admin_client.Admin(**self._own_options())

    def run(self, function: Callable[[], T]) -> T:
        """Call `function` on the broker's loop and return its result."""

        async def on_loop() -> T:
            return function()

        return self.call(on_loop())

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the broker's loop and return its result. Raises RuntimeError if the broker is stopped."""
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(NOT_RUNNING)
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


def _check_options(settings: BrokerSettings) -> None:
    """Raise StartError for an option that does not exist or has a wrong value."""
    for name in settings.options:
        if name.replace("_", ".") in BROKER_OPTIONS or of_listener(name) is not None:
            continue
        if removed_name(name) is None:
            known = [*_SETTING_NAMES, *(option.replace(".", "_") for option in BROKER_OPTIONS)]
            near = get_close_matches(name.replace(".", "_"), known, n=1)
            hint = near[0].replace("_", ".") if near and "." in name else near[0] if near else ""
            raise StartError(f"Unknown configuration {name}" + (f"; did you mean {hint}?" if hint else ""))
    try:
        BrokerConfig(settings.options, kafka_defaults=settings.kafka_defaults)
    except ConfigError as error:
        raise StartError(str(error)) from None


def _wait(what: str, look: Callable[[], tuple[bool, T, str]], timeout: float) -> T:
    """Call `look` until its first value is true and return its second; its third says how things are."""
    until = time.monotonic() + timeout
    while True:
        is_so, found, told = look()
        if is_so:
            return found
        if time.monotonic() >= until:
            raise TimeoutError(f"{what} {told} after {timeout:g} s of waiting")
        time.sleep(LOOK_EVERY_SECONDS)
