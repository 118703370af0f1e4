"""What a login needs of a connection."""

from __future__ import annotations

from typing import Any, Protocol


class Link(Protocol):
    """One connection to a broker, for a login: its name in messages, the versions served, one request at a time."""

    versions: dict[int, tuple[int, int]]

    @property
    def address(self) -> str: ...

    async def send(self, message: Any, version: int | None = None) -> Any: ...
