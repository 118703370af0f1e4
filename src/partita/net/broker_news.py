"""Events of brokers for the log: one that is needed cannot be reached, goes away, comes back, asks to slow down.

Pure rules with the time given. Each fact is reported once, and again only after it has passed. A broker that is needed
in vain for `UNREACHABLE_AFTER_MS`, while others answer, is usually one whose advertised address leads nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from partita.protocol.metadata_view import MetadataView

UNREACHABLE_AFTER_MS = 2_000
_FORGOTTEN_AFTER_MS = 5_000
"""A broker that no request has needed for so long is not waited for any more."""
_THROTTLED_EVERY_MS = 1_000
WARNINGS = frozenset({"no_broker", "broker_again", "broker_unreachable", "broker_reachable"})
"""Kinds of news that are logged as warnings; the others are logged as information."""
Heard = Callable[[str, str, dict[str, Any]], None]
"""Takes one piece of news: its kind, a sentence, and the same for machines."""


class Broker(NamedTuple):
    """Destination of a connection: to a node, or to a bootstrap server whose node id is not known."""

    key: Hashable
    node_id: int | None
    address: str

    @property
    def name(self) -> str:
        """The words for it in the middle of a sentence."""
        return f"the broker at {self.address}" if self.node_id is None else f"node {self.node_id} at {self.address}"


@dataclass(slots=True)
class _Need:
    since_ms: float
    seen_ms: float
    is_told: bool = False


@dataclass(slots=True)
class BrokerNews:
    """Of each broker: since when it is needed in vain, since when it is gone, and when its throttling was reported."""

    heard: Heard | None = None
    role_of: Callable[[int], str] = lambda node_id: ""
    """Why a node is needed, as `role_in` says it."""
    found_by: str = ""
    """The broker that describes the cluster."""
    bootstrap: tuple[str, ...] = ()
    _needs: dict[Hashable, _Need] = field(default_factory=dict)
    _gone_ms: dict[Hashable, float] = field(default_factory=dict)
    _throttled_ms: dict[Hashable, float] = field(default_factory=dict)

    def wanted(self, broker: Broker, now_ms: float, *, others_answer: bool) -> bool:
        """A request needs a broker that is not connected. True if no other did before.

        The time counts only while others answer: an outage of all of them is reported as such.
        """
        need = self._needs.get(broker.key)
        is_new = need is None or (not need.is_told and now_ms - need.seen_ms > _FORGOTTEN_AFTER_MS)
        if need is None or is_new or (not others_answer and not need.is_told):
            self._needs[broker.key] = need = _Need(now_ms, now_ms)
        need.seen_ms = now_ms
        return is_new

    def missed(self, broker: Broker, why: str, now_ms: float) -> None:
        """A broker that is needed is still not connected. Reported once, when it has lasted long enough."""
        need = self._needs.get(broker.key)
        if need is None or need.is_told or now_ms - need.since_ms < UNREACHABLE_AFTER_MS:
            return
        need.is_told = True
        role = "" if broker.node_id is None else self.role_of(broker.node_id)
        why = why.removeprefix(f"cannot connect to {broker.address}: ").replace(f"{broker.address} ", "it ", 1)
        text = f"{role}, {broker.name}" if role else broker.name
        if broker.address not in self.bootstrap:
            asked = "" if self.found_by in self.bootstrap else f" (bootstrap_servers: {', '.join(self.bootstrap)})"
            text += f" as advertised by the broker at {self.found_by}{asked}"
            why += "; check advertised.listeners"
        self._tell(
            "broker_unreachable",
            f"{text}, cannot be reached: {why}",
            {"broker": broker.name, "role": role, "advertised_by": self.found_by, "bootstrap": list(self.bootstrap)},
        )

    def lost(self, broker: Broker, why: str, now_ms: float) -> None:
        """A connection over which answers were due has ended."""
        if broker.key not in self._gone_ms:
            self._gone_ms[broker.key] = now_ms
            text = f"the connection to {broker.name} was lost: {why}"
            self._tell("broker_gone", text, {"broker": broker.name, "why": why})

    def reached(self, broker: Broker, now_ms: float) -> None:
        """The broker is connected. Reported if its absence was."""
        need, gone_ms = self._needs.pop(broker.key, None), self._gone_ms.pop(broker.key, None)
        if need is not None and need.is_told:
            kind, since_ms = "broker_reachable", need.since_ms
        elif gone_ms is not None:
            kind, since_ms = "broker_back", gone_ms
        else:
            return
        text = f"{broker.name} is connected, after {(now_ms - since_ms) / 1000:.1f} s without it"
        self._tell(kind, text, {"broker": broker.name, "without_ms": round(now_ms - since_ms)})

    def throttled(self, broker: Broker, throttle_ms: int, now_ms: float) -> None:
        """The broker asks to be sent nothing for a while. Reported at most once a second."""
        if now_ms - self._throttled_ms.get(broker.key, -_THROTTLED_EVERY_MS) >= _THROTTLED_EVERY_MS:
            self._throttled_ms[broker.key] = now_ms
            text = f"{broker.name} asks to be sent nothing for {throttle_ms} ms: a quota is used up"
            self._tell("throttled", text, {"broker": broker.name, "throttle_ms": throttle_ms})

    def _tell(self, kind: str, text: str, fields: dict[str, Any]) -> None:
        if self.heard is not None:
            self.heard(kind, text, fields)


def role_in(view: MetadataView, node_id: int, coordinates: Iterable[str]) -> str:
    """Why a node is needed: "the coordinator of group 'g'", "orders-0's leader", "the controller"; "" if unknown."""
    for name in coordinates:
        return f"the coordinator of {name}"
    for topic in view.topics.values():
        for part in topic.partitions:
            if part.leader == node_id:
                return f"{topic.name}-{part.partition}'s leader"
    return "the controller" if view.controller_id == node_id else ""
