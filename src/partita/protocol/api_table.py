"""APIs that we can speak: name, versions, header versions, and where their messages are.

A module of messages is imported when its API is first used, so that a broker starts quickly.
`index.py` beside the messages is generated from the schema files. (Kafka: ApiKeys, ApiMessageType.)
"""

from __future__ import annotations

from importlib import import_module

from partita.protocol.messages.index import INDEX
from partita.protocol.primitives import Message

API_VERSIONS = 18


class Api:
    """One API; `request` and `response` are its message classes."""

    __slots__ = (
        "_classes", "_module", "flexible_from", "key", "max_version", "min_version", "name", "tagged_header_from",
    )  # fmt: skip

    def __init__(self, key: int, name: str, module: str, versions: tuple[int, int], flexible_from: int | None) -> None:
        self.key = key
        self.name = name
        self.min_version, self.max_version = versions
        self.flexible_from = self.max_version + 1 if flexible_from is None else flexible_from
        # ApiVersions keeps the oldest response header: its reader does not know yet what the writer speaks. (KIP-511)
        self.tagged_header_from = self.max_version + 1 if key == API_VERSIONS else self.flexible_from
        self._module = module
        self._classes: tuple[type[Message], type[Message]] | None = None

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name}, {self.min_version}-{self.max_version})"

    @property
    def request(self) -> type[Message]:
        """The class of the request; its module is imported on first use."""
        return (self._classes or self._load())[0]

    @property
    def response(self) -> type[Message]:
        """The class of the response; its module is imported on first use."""
        return (self._classes or self._load())[1]

    def _load(self) -> tuple[type[Message], type[Message]]:
        module = import_module(f"partita.protocol.messages.{self._module}")
        self._classes = (getattr(module, f"{self.name}Request"), getattr(module, f"{self.name}Response"))
        return self._classes


APIS: dict[int, Api] = {row[0]: Api(*row) for row in INDEX}
"""Every API we have messages for, by API key."""
