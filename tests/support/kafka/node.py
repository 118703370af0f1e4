"""Apache Kafka itself, for comparison: its published jars by Maven, one KRaft node on loopback.

The jars are kept in the user's cache folder. Everything the node writes goes to a temporary folder that is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from partita import Admin
from partita.designs.zookeeper.jars import find_jars
from partita.designs.zookeeper.ports import free_ports
from partita.designs.zookeeper.server import Server as ZooKeeperServer

RELEASE = "4.4.0"
"""The release that is started unless `pytest --kafka` names another: one set of jars serves its node and its tools."""
NEWEST_TOOLS = (4, 3, 1)
"""The last release of which the command-line tools are published; they talk to nodes of later ones."""
POM = Path(__file__).parents[2] / "conformance" / "pom.xml"
START_LIMIT_S = 180.0

# The last line keeps records with old timestamps from being removed in the middle of a test.
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.initial.task.delay.ms=86400000
"""

WITH_ZOOKEEPER = """
broker.id=1
zookeeper.connect={zookeeper}
listeners=PLAINTEXT://127.0.0.1:{broker}
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""
"""The settings of a release before 3.0, which keeps its metadata in ZooKeeper."""
NEWER_TOPIC_OPTIONS = (
    "errors.deadletterqueue.group.enable", "max.decompressed.message.bytes", "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
)  # fmt: skip
"""Options of topics that Partita has from 4.4.0 and that release lacks."""
_asked = [RELEASE]


def ask_release(release: str) -> None:
    """Have every node and tool that names no release be of this one."""
    _asked[:] = [release]


def asked_release() -> str:
    """The release of nodes and tools that name none."""
    return _asked[0]


def asks_from(*release: int) -> bool:
    """Whether the release that is asked is this one or a later one."""
    return numbers(asked_release()) >= release


def numbers(release: str) -> tuple[int, ...]:
    """The parts of a release, to be compared."""
    return tuple(map(int, release.split(".")))


def tools_release(release: str) -> str:
    """The release of the tools that go with a node of this one."""
    return ".".join(map(str, min(NEWEST_TOOLS, numbers(release))))


class KafkaUnavailable(RuntimeError):
    """Java or Maven is not there, or the jars cannot be had."""


def jars(release: str | None = None, profile: str = "") -> Path:
    """The folder with the jars of a release, and those of a profile; fetched once. Raises KafkaUnavailable."""
    release = release or asked_release()
    name = f"kafka-{release}-{profile}" if profile else f"kafka-{release}"
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "partita" / name
    if (cache / ".complete").exists():
        return cache
    maven = shutil.which("mvn")
    if maven is None or shutil.which("java") is None:
        raise KafkaUnavailable("Java 17 and Maven are needed to run Apache Kafka")
    options = [f"-Dkafka.version={release}", f"-Dtools.version={tools_release(release)}", f"-DoutputDirectory={cache}"]
    if profile:
        options.append(f"-P{profile}")
    command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime", *options]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".fetching").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker of pytest may fetch the same
        if not (cache / ".complete").exists():
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                output = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
                raise KafkaUnavailable(f"Maven could not fetch Kafka's jars:\n{output}")
            (cache / ".complete").touch()
    return cache


def java_command(main_class: str, *arguments: str, heap: str = "512m", release: str | None = None) -> list[str]:
    """The command line that runs one of Kafka's classes; of its tools and clients unless a release is named."""
    return [
        "java",
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jars(release or tools_release(asked_release()))}/*",
        main_class,
        *arguments,
    ]


def run_tool(main_class: str, *arguments: str, timeout: float = 180) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools to its end."""
    command = java_command(main_class, *arguments, heap="256m")
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


def settle(admin: Admin) -> None:
    """Return when the broker knows every change that its controller has answered.

    Changes reach the broker of Apache Kafka by the metadata log. A mark is put behind them, in the form of somebody's
    quota, and taken away again: once that is known, everything before it is in force.
    """
    for quota in (1_000.0, None):
        admin.alter_client_quotas({"request_percentage": quota}, client_id="mark of a test")
        while bool(admin.describe_client_quotas(client_id="mark of a test")) is (quota is None):
            pass


class KafkaNode:
    """One running node; `with KafkaNode() as kafka: kafka.bootstrap`. Extra settings replace the ones above.

    `listeners` are further ones, by name, with their security protocols; `kafka.ports` says where they are.
    """

    def __init__(self, listeners: Mapping[str, str] | None = None, **settings: str) -> None:
        self.joins: KafkaNode | None = None
        """The running node whose cluster this one joins as its second broker; set it before the node starts."""
        self._features: list[str] = []
        self._more = dict(listeners or {})
        self.ports: dict[str, int] = {}
        self.controller_port = 0
        self._extra = "".join(
            f"{name if '.' in name else name.replace('_', '.')}={value}\n" for name, value in settings.items()
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.release = asked_release()
        """What `of_release` changes before the node starts."""
        self._zookeeper: ZooKeeperServer | None = None

    def of_release(self, release: str) -> KafkaNode:
        """Start this release in place of the one that is asked."""
        self.release = release
        return self

    def with_feature(self, name: str, level: int) -> KafkaNode:
        """Have the cluster begin with this level of a feature."""
        self._features += ["--feature", f"{name}={level}"]
        return self

    def __enter__(self) -> KafkaNode:
        self.folder = Path(tempfile.mkdtemp(prefix="partita-kafka-"))
        self.port, controller = free_ports(2)
        self.controller_port = controller if self.joins is None else self.joins.controller_port
        self.bootstrap = f"127.0.0.1:{self.port}"
        if numbers(self.release) < (3,):
            self._start_with_zookeeper()
            return self
        text = SETTINGS.format(broker=self.port, controller=controller, folder=self.folder) + self._extra
        if self.joins is not None:
            text += (
                f"process.roles=broker\nnode.id=2\nlisteners=PLAINTEXT://127.0.0.1:{self.port}\n"
                f"controller.quorum.voters=1@127.0.0.1:{self.controller_port}\n"
            )
        if self._more:
            self.ports = dict(zip(self._more, free_ports(len(self._more)), strict=True))
            text += self._listener_settings(controller)
        (self.folder / "server.properties").write_text(text)
        config = str(self.folder / "server.properties")
        cluster = "MkU3OEVBNTcwNTJENDM2Qk"
        arguments = ("format", "-t", cluster, "-c", config, *self._features)
        formatted = subprocess.run(
            java_command("kafka.tools.StorageTool", *arguments, release=self.release),
            capture_output=True,
            text=True,
        )
        if formatted.returncode != 0:
            raise KafkaUnavailable(f"formatting failed:\n{formatted.stdout[-2000:]}{formatted.stderr[-2000:]}")
        self.start()
        return self

    def _start_with_zookeeper(self) -> None:
        self._zookeeper = ZooKeeperServer(self.folder / "zookeeper", jars=find_jars(jars(self.release)))
        self._zookeeper.start()
        self._zookeeper.wait_ready(START_LIMIT_S)
        text = WITH_ZOOKEEPER.format(broker=self.port, folder=self.folder, zookeeper=self._zookeeper.address)
        (self.folder / "server.properties").write_text(text + self._extra)
        self.start()

    def _listener_settings(self, controller: int) -> str:
        named = "".join(f",{name}://localhost:{port}" for name, port in self.ports.items())
        protocols = "".join(f",{name}:{protocol}" for name, protocol in self._more.items())
        plain = f"PLAINTEXT://127.0.0.1:{self.port}"
        return (
            f"listeners={plain},CONTROLLER://127.0.0.1:{controller}{named}\n"
            f"advertised.listeners={plain}{named}\n"
            f"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}\n"
        )

    def start(self) -> None:
        """Start (again) on the same data and port; return when it answers."""
        log = (self.folder / "server.log").open("ab")
        config = str(self.folder / "server.properties")
        command = java_command("kafka.Kafka", config, heap="768m", release=self.release)
        self._process = subprocess.Popen(command, stdout=log, stderr=log)
        limit = time.monotonic() + START_LIMIT_S
        while time.monotonic() < limit:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise KafkaUnavailable(f"Kafka did not start:\n{(self.folder / 'server.log').read_text()[-3000:]}")

    def kill(self) -> None:
        """Kill it (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def crash(self) -> None:
        """Kill it, and start it again on the same data."""
        self.kill()
        self.start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
