"""The index of served APIs, as in ApiVersions: APIs with their versions, and features with their levels.

A handler's module is imported at its first request, so that a broker starts quickly. Versions are exactly those Apache
Kafka 4.4.0 advertises. `group.version` 1 means KIP-848 groups. It is in force unless
`group.coordinator.rebalance.protocols` leaves "consumer" out; Kafka keeps both apart, and needs both.
`transaction.version` selects how producers end transactions. (Kafka: Features, GroupVersion, TransactionVersion.)
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from partita.broker.api.index import INDEX
from partita.protocol.api_table import APIS
from partita.transactions.config import LEVEL_MAX

if TYPE_CHECKING:
    from types import ModuleType

    from partita.broker.api.context import Handler
    from partita.broker.api.served import Served
    from partita.broker.config import BrokerConfig
    from partita.protocol.primitives import Message

API_VERSIONS = 18


class ServedApi:
    """One row: `min_version` to `max_version` are served, `advertised_min` is the minimum in ApiVersions.

    The rest stands in the handler's module, whose function is always called `handle`.
    """

    def __init__(self, key: int, module: str, versions: tuple[int, int], advertised_min: int) -> None:
        self.key = key
        self.name = APIS[key].name
        self.min_version, self.max_version = versions
        self.advertised_min = advertised_min
        self._module = module

    @cached_property
    def module(self) -> ModuleType:
        """The handler's module."""
        return import_module(f"partita.broker.handlers.{self._module}")

    @cached_property
    def declared(self) -> Served:
        """The module's declaration of the API."""
        declared: Served = self.module.API
        return declared

    @cached_property
    def handler(self) -> Handler:
        """The function that answers."""
        handler: Handler = self.module.handle
        return handler

    @cached_property
    def elements_max(self) -> int:
        """Bound of a request's array elements."""
        return self.declared.elements_max

    @cached_property
    def alone_max(self) -> int:
        """The same for a request that is served alone; 0 if none is."""
        return self.declared.alone_max

    @cached_property
    def request(self) -> type[Message]:
        """The class of the request."""
        return APIS[self.key].request

    @cached_property
    def response(self) -> type[Message]:
        """The class of the response."""
        return APIS[self.key].response


SERVED: dict[int, ServedApi] = {row[0]: ServedApi(*row) for row in INDEX}


GROUP_VERSION, SHARE_VERSION, TRANSACTION_VERSION = "group.version", "share.version", "transaction.version"
_SHARE_LEVEL_MAX = 2


class Feature(NamedTuple):
    """A feature with the levels that are known, and the one in force."""

    name: str
    highest: int
    level: int


def serves_consumer_groups(config: BrokerConfig) -> bool:
    """Are KIP-848 groups served?"""
    protocols = config.get("group.coordinator.rebalance.protocols")
    return isinstance(protocols, tuple) and "consumer" in protocols


def serves_share_groups(config: BrokerConfig) -> bool:
    """Are share groups served?"""
    return config.int("partita.share.version") > 0


def features(config: BrokerConfig) -> list[Feature]:
    """Every feature there is; level 0 is none."""
    return [
        Feature(GROUP_VERSION, 1, 1 if serves_consumer_groups(config) else 0),
        Feature(SHARE_VERSION, _SHARE_LEVEL_MAX, config.int("partita.share.version")),
        Feature(TRANSACTION_VERSION, LEVEL_MAX, config.int("partita.transaction.version")),
    ]
