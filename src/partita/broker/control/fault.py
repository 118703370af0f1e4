"""Faults that a test injected: how often each was applied, waiting for that, taking it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from partita.broker.api.asked_about import Match
from partita.broker.requests.fault_rules import Rule

if TYPE_CHECKING:
    from partita.broker.running import RunningBroker
    from partita.protocol.primitives import Message

WAIT_SECONDS = 30.0


class Only(TypedDict, total=False):
    """The requests a fault is for; fields left out match any.

    `group_id`, `topic` and `partition`: requests that are about them. `client_id`: of one client. `node`: to one node.
    `every=3`: only every third of these.
    """

    group_id: str
    topic: str
    partition: int
    client_id: str
    node: int
    every: int


@dataclass(frozen=True, slots=True)
class Asked:
    """A request seen by a test: the API's name and version, its sender, its node, and the decoded message."""

    api: str
    version: int
    client_id: str
    client_host: str
    node: int
    request: Message


class Fault:
    """The result of a verb such as `Control.fail`. Its calls may be made from any thread but the broker's own."""

    def __init__(self, running: RunningBroker, rule: Rule) -> None:
        self._running = running
        self._rule = rule

    def __repr__(self) -> str:
        return f"<Fault {self.number}: {described(self._rule)}, hit {self.hits} times>"

    @property
    def number(self) -> int:
        """Names the fault for `Control.wait_fault` and `Control.clear_fault`, and in notes."""
        return self._rule.number

    @property
    def hits(self) -> int:
        """Number of requests it was applied to."""
        return self._rule.hits

    def wait(self, hits: int = 1, timeout: float = WAIT_SECONDS) -> int:
        """Wait until it was applied to so many requests; return how many by now.

        Raises TimeoutError that says how many there were after `timeout` seconds.
        """
        loop = self._running.cluster.loop
        waiting = self._running.faults.wait(self._rule, hits, timeout)
        if not asyncio.run_coroutine_threadsafe(waiting, loop).result():
            told = f"{described(self._rule)}: {self.hits} of {hits} requests came within {timeout:g} s"
            raise TimeoutError(told)
        return self.hits

    def clear(self) -> None:
        """Take it back; requests that it holds go on."""
        loop = self._running.cluster.loop

        async def remove() -> None:
            self._running.faults.remove(self._rule)

        asyncio.run_coroutine_threadsafe(remove(), loop).result()


def described(rule: Rule) -> str:
    """A rule in words: "fail Produce topic=orders"."""
    return " ".join([rule.what, *(f"{name}={value}" if name != "api" else str(value) for name, value in facts(rule))])


def facts(rule: Rule) -> list[tuple[str, Any]]:
    """Return the facts about a rule: the API and the filters that are set."""
    match = rule.match
    filters = {name: getattr(match, name) for name in ("group_id", "topic", "partition", "client_id")}
    filters["node"] = match.node_id
    return [("api", rule.told["api"]), *((name, value) for name, value in filters.items() if value is not None)]


def match_of(api_key: int | None, only: Only, refuse: Callable[[str], Exception]) -> tuple[Match, int]:
    """The filters as a rule knows them, and `every`. Raises the error that `refuse` builds from a message."""
    unknown = only.keys() - Only.__annotations__.keys()
    if unknown:
        known = ", ".join(Only.__annotations__)
        raise refuse(f"no filter {', '.join(sorted(unknown))}; a fault can be limited by {known}")
    for name, kind in (("group_id", str), ("topic", str), ("client_id", str), ("partition", int), ("node", int)):
        value = only.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise refuse(f"{name} must be {'text' if kind is str else 'a whole number'}, not {value!r}")
    if "partition" in only and "topic" not in only:
        raise refuse("a partition needs its topic: topic=..., partition=...")
    every = only.get("every", 1)
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise refuse(f"every must be a whole number from 1, not {every!r}")
    match = Match(
        api_key,
        only.get("group_id"),
        only.get("topic"),
        only.get("partition"),
        only.get("client_id"),
        only.get("node"),
    )
    return match, every
