"""Groups of foreign members on a real broker, for incidents that are staged side by side.

A group waits for facts that its members report, with a bound, and lets no time pass on its own but what an incident is
about. `Traffic` sends records to every topic of the groups all the time.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from partita import Admin, Producer
from partita.designs.zookeeper.ports import free_ports

MEMBER = Path(__file__).with_name("foreign_member.py")
PATIENCE_S = 150.0
SESSION_MS = 6_000
COMMITS = 8
EVERY_S = 0.2
PARTITIONS = 6
QUICK = {"heartbeat.interval.ms": 1_000, "session.timeout.ms": SESSION_MS, "auto.commit.interval.ms": 500}
LIBRDKAFKA = {
    "topic.metadata.refresh.interval.ms": 1_000, "partition.assignment.strategy": "range",
    "auto.offset.reset": "earliest",
}  # fmt: skip
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0, "auto.create.topics.enable": "false",
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.session.timeout.ms": SESSION_MS, "group.consumer.heartbeat.interval.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 1_000,
}  # fmt: skip
"""Of the broker: sessions of KIP-848 groups are as short as those of the others."""
KAFKA_PYTHON = {"metadata.max.age.ms": 2_000, "auto.offset.reset": "earliest"}


class Node(Protocol):
    """A broker that can be killed and started again on its data."""

    @property
    def bootstrap(self) -> str: ...
    def kill(self) -> None: ...
    def start(self) -> None: ...


class OurNode:
    """`partita broker` on a folder, with notes: `with OurNode(folder) as node`."""

    TOKEN = "a token for the notes"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self.admin_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self._port}"

    def __enter__(self) -> OurNode:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it; return when it answers."""
        options = ["--data-dir", str(self._folder), "--port", str(self._port), "--log-level", "error"]
        options += ["--admin-port", str(self.admin_port), "--admin-token", self.TOKEN]
        options += [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "partita.cli.main", "broker", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        next(line for line in self._process.stdout if line.startswith("bootstrap"))

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()


class Traffic:
    """Sends a record to each partition of its topics, five times a second."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._topics: dict[str, int] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def begin(self, topic: str, partitions: int) -> None:
        self._topics[topic] = partitions

    def end(self, topic: str) -> None:
        self._topics.pop(topic, None)

    def _run(self) -> None:
        with Producer(bootstrap_servers=self._bootstrap) as producer:
            while not self._is_over.wait(EVERY_S):
                for topic, partitions in list(self._topics.items()):
                    for partition in range(partitions):
                        producer.send(topic, b"x", partition=partition)


class Member:
    """A process; `held` and `commits` are what it reported last."""

    def __init__(self, command: Sequence[str], changed: threading.Condition) -> None:
        self.held: list[str] = []
        self.commits = 0
        self._changed = changed
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return  # killed in the middle of a line
                fact = json.loads(line)
                with self._changed:
                    self.held = fact.get("held", self.held)
                    self.commits += fact.get("commit") == "None"
                    self._changed.notify_all()

    def command(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Group:
    """A group named as its incident, on topics of its own, with members of one client."""

    def __init__(self, node: Node, name: str, admin: Admin, traffic: Traffic) -> None:
        self.node = node
        self.name = name
        self.admin = admin
        self.traffic = traffic
        self.client = "librdkafka"
        self.options: dict[str, Any] = dict(QUICK)
        self.members: dict[str, Member] = {}
        self.frozen: set[str] = set()
        self.formed_ms = 0
        """When all its first members had their share: the incident begins after that."""
        self._topics: dict[str, int] = {}
        self._changed = threading.Condition()

    # What stands around it

    def topic(self, suffix: str = "t", partitions: int = PARTITIONS) -> str:
        """Create a topic, into which records flow from now on."""
        name = f"{self.name}-{suffix}"
        self.admin.create_topic(name, partitions)
        self.until(lambda: name in {topic.name for topic in self.admin.list_topics()})
        self._topics[name] = partitions
        self.traffic.begin(name, partitions)
        return name

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions."""
        self.admin.create_partitions(topic, partitions)
        self._topics[topic] = partitions
        self.traffic.begin(topic, partitions)

    def delete(self, topic: str) -> None:
        """Delete the topic."""
        self.traffic.end(topic)
        del self._topics[topic]
        self.admin.delete_topics([topic])

    # What its members do

    def start(self, *names: str, topics: Sequence[str] = (), client: str = "", **options: Any) -> None:
        """Start members of all topics, or of these; options are spelled with underscores."""
        client = client or self.client
        for name in names:
            spelled = {option.replace("_", "."): value for option, value in options.items()}
            defaults = LIBRDKAFKA if client == "librdkafka" else KAFKA_PYTHON
            common = {"bootstrap.servers": self.node.bootstrap, "group.id": self.name, "client.id": name}
            given = {**defaults, **common, **self.options, **spelled}
            if given.get("group.protocol") == "consumer":  # the broker decides these
                for option in ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"):
                    del given[option]
            command = [sys.executable, str(MEMBER), client, json.dumps(given), *(topics or self._topics)]
            self.members[name] = Member(command, self._changed)

    def kill(self, *names: str) -> None:
        """kill -9."""
        for name in names:
            self.members.pop(name).kill()

    def close(self, *names: str) -> None:
        """Let members leave, at once and in order."""
        for name in names:
            self.members.pop(name).close()

    def freeze(self, name: str) -> None:
        """SIGSTOP."""
        self.members[name].signal(signal.SIGSTOP)
        self.frozen.add(name)

    def thaw(self, name: str) -> None:
        """SIGCONT."""
        self.frozen.discard(name)
        self.members[name].signal(signal.SIGCONT)

    def order(self, name: str, line: str) -> None:
        """Send a command."""
        self.members[name].command(line)

    def end(self) -> None:
        """Kill all that are left, and send no more."""
        for topic in self._topics:
            self.traffic.end(topic)
        self.kill(*self.members)

    # Waiting

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait for a fact that members report, for two and a half minutes at most."""
        with self._changed:
            if not self._changed.wait_for(holds, PATIENCE_S):
                held = {name: (member.held, member.commits) for name, member in self.members.items()}
                raise AssertionError(f"{self.name} waits in vain: {held}")

    def settle(self, *without: str, commits: int = COMMITS, topics: Sequence[str] = ()) -> None:
        """Wait until the members, but these, share all partitions, and each has committed some more times."""
        staying = [m for name, m in self.members.items() if name not in {*without, *self.frozen}]
        every = sorted(f"{topic}-{number}" for topic in topics or self._topics for number in range(self._topics[topic]))
        self.wait(
            lambda: (
                all(member.held for member in staying)
                and sorted(part for member in staying for part in member.held) == every
            )
        )
        self.formed_ms = self.formed_ms or time.time_ns() // 1_000_000
        before = [member.commits for member in staying]
        self.wait(lambda: all(m.commits >= was + commits for m, was in zip(staying, before, strict=True)))

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a fact of the broker, as long."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"{self.name} waits in vain"
            self.pass_s(0.1)

    def pass_s(self, seconds: float) -> None:
        """Let time go by, where that is what the incident is about."""
        threading.Event().wait(seconds)


class SocksProxy:
    """A SOCKS5 proxy on loopback that can be frozen: connections stay open, and nothing passes."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._flows = threading.Event()
        self._flows.set()
        self.url = f"socks5://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    def close(self) -> None:
        self.thaw()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Greeting and request of a client without a login; the address is IPv4 or a name."""
        with client.makefile("rb") as stream:
            _, methods = stream.read(2)
            stream.read(methods)
            client.sendall(b"\x05\x00")
            kind = stream.read(4)[3]
            host = socket.inet_ntoa(stream.read(4)) if kind == 1 else stream.read(stream.read(1)[0]).decode()
            port = int.from_bytes(stream.read(2))
        broker = socket.create_connection((host, port))
        client.sendall(b"\x05\x00\x00\x01" + bytes(6))
        threading.Thread(target=self._pump, args=(client, broker), daemon=True).start()
        self._pump(broker, client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                self._flows.wait()
                sink.sendall(data)
        except OSError:
            pass
        finally:
            source.close()
            sink.close()
