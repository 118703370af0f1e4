"""The index of served APIs with their versions, exactly those that Apache Kafka 4.4.0 advertises.

A handler's module is imported at its first request, so that a broker starts quickly.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

from partita.broker.api.index import INDEX
from partita.protocol.api_table import APIS

if TYPE_CHECKING:
    from types import ModuleType

    from partita.broker.api.context import Handler
    from partita.broker.api.served import Served
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
