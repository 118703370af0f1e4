"""A drop-in for the KafkaContainer of testcontainers: the same calls, a broker in this process, no Docker.

Only the import changes: `from partita.testing.containers import KafkaContainer`. What belongs to Docker alone (volumes,
networks, `exec`) is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.broker.config import BROKER_OPTIONS, ConfigError, find
from partita.broker.embedded import Broker, StartError

DEFAULT_IMAGE = "confluentinc/cp-kafka:7.6.0"
HOST = "localhost"
_PREFIX = "KAFKA_"
_OF_THE_CONTAINER = (
    "advertised.", "broker.id", "controller.", "inter.broker.", "listener", "log.dir", "node.id", "process.roles",
    "zookeeper.",
)  # fmt: skip
"""Options that say where the container's Kafka stands; here the broker itself decides."""
_NOT_OPTIONS = ("HEAP_OPTS", "JMX_", "JVM_", "LOG4J_", "OPTS", "TOOLS_")


class KafkaContainer:
    """A broker in place of a container, in memory, on a free port of this machine.

    `with KafkaContainer() as kafka: kafka.get_bootstrap_server()`. `port` is only the number that `get_exposed_port` is
    asked for. The variables KAFKA_... of `env` and `with_env` are options of the broker; the image and other keywords,
    which are Docker's, change nothing. `broker` is the running `partita.Broker`, with its faults and its clock.
    """

    def __init__(
        self, image: str = DEFAULT_IMAGE, port: int = 9093, *, env: Mapping[str, Any] | None = None, **docker: Any
    ) -> None:
        if (asked := docker.get("security_protocol", "PLAINTEXT")) != "PLAINTEXT":
            raise ValueError(f"expected security_protocol PLAINTEXT, came {asked!r}; see partita.Broker(tls=True)")
        self.image = image
        self.port = port
        self.kraft_enabled = False
        self.cluster_id = ""
        self.env: dict[str, str] = {}
        self._broker: Broker | None = None
        for name, value in (env or {}).items():
            self.with_env(name, value)

    def __enter__(self) -> KafkaContainer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def with_kraft(self) -> KafkaContainer:
        """There is no ZooKeeper in any case."""
        self.kraft_enabled = True
        return self

    def with_cluster_id(self, cluster_id: str) -> KafkaContainer:
        """Remember the id; the broker makes its own."""
        self.cluster_id = cluster_id
        return self

    def with_env(self, key: str, value: Any) -> KafkaContainer:
        """Set a variable. KAFKA_NUM_PARTITIONS is the option num.partitions; those without KAFKA_ mean nothing here.

        Raises ValueError for an option that a broker does not have, with the closest one that exists.
        """
        given = {**self.env, key: str(value)}
        _options_in(given)
        self.env = given
        return self

    def with_envs(self, **variables: Any) -> KafkaContainer:
        """Set several variables."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_name(self, name: str) -> KafkaContainer:
        """Nothing else needs to tell this broker from others."""
        self.name = name
        return self

    def with_exposed_ports(self, *ports: int | str) -> KafkaContainer:
        """The broker's port is open in any case."""
        return self

    def start(self, timeout: float = 30) -> KafkaContainer:
        """Start, and return when clients can connect, in milliseconds; `timeout` is Docker's. Raises StartError."""
        if self._broker is not None:
            raise StartError("this broker runs already; stop() it first")
        broker = Broker(_options_in(self.env), host=HOST)
        broker.start()
        self._broker = broker
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker, and forget its topics. Nothing happens when it does not run."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.stop()

    @property
    def broker(self) -> Broker:
        """The running broker. Raises RuntimeError before `start`."""
        if self._broker is None:
            raise RuntimeError("this KafkaContainer is not running; use `with` or call start()")
        return self._broker

    def get_bootstrap_server(self) -> str:
        """The value of a client's `bootstrap.servers`."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(self.port)}"

    def get_container_host_ip(self) -> str:
        """The host to connect to."""
        return HOST

    def get_exposed_port(self, port: int) -> int:
        """The port to connect to, for the port given to the constructor. Raises ConnectionError for any other."""
        if int(port) != self.port:
            raise ConnectionError(f"expected port {self.port}, which Kafka listens on, came {port}")
        return self.broker.port

    def get_logs(self) -> tuple[bytes, bytes]:
        """What the broker noted, one line each, and no errors."""
        return "".join(f"{note}\n" for note in self.broker.notes()).encode(), b""


def _options_in(env: Mapping[str, str]) -> dict[str, str]:
    """The broker's options among the variables of a container."""
    options = {}
    for key, value in env.items():
        name = key.removeprefix(_PREFIX)
        if name == key or name.startswith(_NOT_OPTIONS):
            continue
        dotted = name.lower().replace("_", ".")
        if dotted.startswith(_OF_THE_CONTAINER):
            continue
        try:
            options[find(dotted, BROKER_OPTIONS).name] = value
        except ConfigError as error:
            raise ValueError(f"{key}: {error}") from None
    return options
