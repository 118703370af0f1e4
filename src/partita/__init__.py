"""Partita: Kafka's consumer-group system in Python. Public names are imported on first use.

Besides the names listed here every error class can be imported: `from partita import KafkaError, CommitFailedError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers
    from partita.admin import Admin as Admin
    from partita.admin import AsyncAdmin as AsyncAdmin
    from partita.admin import NewTopic as NewTopic
    from partita.admin import SomeFailed as SomeFailed
    from partita.admin import Target as Target
    from partita.broker.control.verbs import ControlError as ControlError
    from partita.broker.embedded import Broker as Broker
    from partita.broker.launch import StartError as StartError
    from partita.consumer.errors import *  # noqa: F403 (every error class, as at run time)
    from partita.consumer.listener import RebalanceListener as RebalanceListener
    from partita.consumer.records import ConsumerRecord as ConsumerRecord
    from partita.consumer.records import ConsumerRecords as ConsumerRecords
    from partita.consumer.shell.blocking import Consumer as Consumer
    from partita.consumer.shell.client import AsyncConsumer as AsyncConsumer
    from partita.consumer.shell.sharing.blocking import ShareConsumer as ShareConsumer
    from partita.consumer.shell.sharing.client import AsyncShareConsumer as AsyncShareConsumer
    from partita.consumer.shell.sharing.records import ShareRecord as ShareRecord
    from partita.consumer.shell.sharing.records import ShareRecords as ShareRecords
    from partita.consumer.subscription import SubscriptionPattern as SubscriptionPattern
    from partita.errors import *  # noqa: F403
    from partita.errors import KafkaError as KafkaError
    from partita.http.exporter import serve_metrics as serve_metrics
    from partita.offsets.topic_partition import GroupMetadata as GroupMetadata
    from partita.offsets.topic_partition import OffsetAndMetadata as OffsetAndMetadata
    from partita.offsets.topic_partition import TopicPartition as TopicPartition
    from partita.options import ConfigError as ConfigError
    from partita.producer.batch import RecordMetadata as RecordMetadata
    from partita.producer.errors import *  # noqa: F403
    from partita.producer.shell.client import AsyncProducer as AsyncProducer
    from partita.producer.shell.client import Producer as Producer

__version__ = "0.1.0"

_HOMES = {
    "Admin": "partita.admin",
    "AsyncAdmin": "partita.admin",
    "AsyncConsumer": "partita.consumer.shell.client",
    "AsyncProducer": "partita.producer.shell.client",
    "AsyncShareConsumer": "partita.consumer.shell.sharing.client",
    "Broker": "partita.broker.embedded",
    "ConfigError": "partita.options",
    "ControlError": "partita.broker.control.verbs",
    "Consumer": "partita.consumer.shell.blocking",
    "ConsumerRecord": "partita.consumer.records",
    "ConsumerRecords": "partita.consumer.records",
    "GroupMetadata": "partita.offsets.topic_partition",
    "NewTopic": "partita.admin",
    "OffsetAndMetadata": "partita.offsets.topic_partition",
    "Producer": "partita.producer.shell.client",
    "RebalanceListener": "partita.consumer.listener",
    "RecordMetadata": "partita.producer.batch",
    "ShareConsumer": "partita.consumer.shell.sharing.blocking",
    "ShareRecord": "partita.consumer.shell.sharing.records",
    "ShareRecords": "partita.consumer.shell.sharing.records",
    "SomeFailed": "partita.admin",
    "StartError": "partita.broker.launch",
    "SubscriptionPattern": "partita.consumer.subscription",
    "Target": "partita.admin",
    "TopicPartition": "partita.offsets.topic_partition",
    "serve_metrics": "partita.http.exporter",
}
_ERRORS = ("partita.errors", "partita.consumer.errors", "partita.producer.errors")
__all__ = [*_HOMES, "KafkaError", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name.endswith("Error"):
        for home in _ERRORS:
            found = getattr(import_module(home), name, None)
            if found is not None:
                return found
    known = ", ".join(__all__)
    raise AttributeError(f"module 'partita' has no attribute {name!r}; it has {known} and every error class")


def __dir__() -> list[str]:
    return sorted(__all__)
