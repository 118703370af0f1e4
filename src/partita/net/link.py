"""The part of a connection that a login needs."""

from __future__ import annotations

from typing import Any, Protocol


class Link(Protocol):
    """One connection to a broker, for a login: its name in messages, the versions served, one request at a time."""

    versions: dict[int, tuple[int, int]]

    @property
    def address(self) -> str:
        """host:port."""
        ...

    async def send(self, message: Any, version: int | None = None) -> Any:
        """Send one request and return its answer; without `version` at the highest one that both sides speak."""
        ...
