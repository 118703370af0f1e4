"""Partita: Kafka's consumer-group system in Python. Public names are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partita.admin import Admin as Admin
    from partita.admin import AsyncAdmin as AsyncAdmin
    from partita.broker.embedded import Broker as Broker
    from partita.consumer.shell.blocking import Consumer as Consumer
    from partita.consumer.shell.client import AsyncConsumer as AsyncConsumer
    from partita.producer.shell.client import Producer as Producer

__version__ = "0.1.0"

_HOMES = {
    "Admin": "partita.admin",
    "AsyncAdmin": "partita.admin",
    "Broker": "partita.broker.embedded",
    "AsyncConsumer": "partita.consumer.shell.client",
    "Consumer": "partita.consumer.shell.blocking",
    "Producer": "partita.producer.shell.client",
}
__all__ = ["Admin", "AsyncAdmin", "AsyncConsumer", "Broker", "Consumer", "Producer", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'partita' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
