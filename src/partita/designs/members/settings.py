"""The settings a member is started with: one value for all designs, as JSON between the processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

Say = Callable[..., None]
"""`say("read", ranges=...)` reports one fact of this member."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Kafka 0.8.2's defaults in milliseconds, and the corresponding times of the later designs."""

    session_ms: int = 6000
    backoff_ms: int = 2000
    retries: int = 4
    heartbeat_ms: int = 2000
    commit_ms: int = 1000

    def faster(self, factor: int) -> Timings:
        """Return all times divided by `factor`, except the commits; the ratios stay."""
        return replace(
            self,
            session_ms=self.session_ms // factor,
            backoff_ms=self.backoff_ms // factor,
            heartbeat_ms=self.heartbeat_ms // factor,
        )


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """One member: its name, the design it follows, and the addresses it uses."""

    member: str
    design: str
    group: str
    topic: str
    bootstrap: str
    zookeeper: str = ""
    coordinators: tuple[str, ...] = ()
    timings: Timings = Timings()
    strategy: str = "range"
    auto_commit: bool = True
    watch_brokers: bool = False

    def as_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))


def settings_in(fields: dict[str, Any]) -> MemberSettings:
    """Return the settings that `as_json` wrote."""
    return MemberSettings(
        **{**fields, "timings": Timings(**fields["timings"]), "coordinators": tuple(fields["coordinators"])}
    )


class Member(Protocol):
    """A member of any design, as a worker runs it."""

    def start(self) -> None:
        """Join the group; return when the member runs by itself."""
        ...

    def slow(self, ms: int) -> None:
        """Make the processing of the next records take `ms`."""
        ...

    def close(self) -> None:
        """Leave in order."""
        ...
