"""Ask clients and a broker whether they take an option: confluent's and our own client are asked themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from partita.broker.config import BrokerConfig, ConfigError
from partita.broker.groups.settings import parsed
from partita.consumer.config import ConsumerConfig
from partita.consumer.sharing.settings import ShareConfig
from partita.lazy import later
from partita.migrate.settings import AskBroker, AskClient, ask_java
from partita.options import ConfigError as ClientConfigError

confluent_kafka: Any = later("confluent_kafka")
_NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "migrate"}
_SILENT = {"log_level": 0}


def of(client: str, broker: Mapping[str, str]) -> tuple[AskClient, AskBroker]:
    """How to ask this client, and a broker with these options.

    Raises ConfigError for options that a broker does not have, ModuleNotFoundError without confluent-kafka.
    """
    config = BrokerConfig(broker)

    def ask_broker(name: str, value: str) -> str | None:
        try:
            parsed(config, {name: value})
        except ConfigError as error:
            return str(error)
        return None

    ask: dict[str, AskClient] = {"java": ask_java, "partita": _ask_partita, "confluent": _ask_confluent}
    if client == "confluent":
        confluent_kafka.libversion()
    return ask[client], ask_broker


def _ask_partita(protocol: str, options: Mapping[str, str]) -> str | None:
    made: Callable[..., object] = ShareConfig.of if protocol == "share" else ConsumerConfig.of
    of_protocol = {"group.protocol": protocol} if protocol == "consumer" else {}
    try:
        made({**_NOWHERE, **of_protocol, **options})
    except ClientConfigError as error:
        return str(error)
    return None


def _ask_confluent(protocol: str, options: Mapping[str, str]) -> str | None:
    made = confluent_kafka.ShareConsumer if protocol == "share" else confluent_kafka.Consumer
    of_protocol = {} if protocol == "share" else {"group.protocol": protocol}
    try:
        made({**_NOWHERE, **_SILENT, **of_protocol, **options})
    except (confluent_kafka.KafkaException, ValueError) as error:
        return str(error.args[0].str() if hasattr(error.args[0], "str") else error)
    return None
