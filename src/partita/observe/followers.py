"""Follows what is told of rebalances, the log of groups and a broker's notes, and counts their causes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from partita.errors import KafkaError
from partita.explain import Fact, explain
from partita.observe.follow_group_log import LOG_TOPIC, GroupLog
from partita.observe.follow_notes import BrokerNotes
from partita.observe.kept import Kept
from partita.observe.observed import Observed
from partita.observe.poll_cluster import ClusterPoller

AGAIN_AFTER_S = 10.0
LOG_WITHIN_S = 30.0
logger = logging.getLogger("partita.observe")


class Followers:
    """Follows `__consumer_offsets`, and the notes of a Partita broker if an address is given.

    Raises ValueError for an address that is not one of HTTP.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        poller: ClusterPoller,
        notes_from: str | None = None,
        notes_token: str = "",
        *,
        generations_max: int = 200,
    ) -> None:
        if notes_from is not None and not notes_from.startswith(("http://", "https://")):
            raise ValueError(f"notes come from an address such as http://127.0.0.1:9644, not {notes_from!r}")
        self._options = options
        self._poller = poller
        self._seen = Kept(generations_max)
        self._noted = Kept(generations_max)
        """Filled by another thread, so it is kept apart."""
        self._notes = None if notes_from is None else BrokerNotes(notes_from, self._noted, token=notes_token)
        self._log_problem = ""
        self._began_ms = 0
        self._counted: dict[str, tuple[int, int]] = {}
        """End and generation of the last rebalance of each group that was counted."""

    def facts_of(self, group_id: str) -> list[Fact]:
        """What is known of a group's rebalances."""
        return [*self._seen.of(group_id), *self._noted.of(group_id)]

    async def count_causes(self, observed: Observed) -> None:
        """Count the rebalances that ended since the first call and are not counted yet, by what began them."""
        began_ms = self._began_ms = self._began_ms or observed.seen_ms
        for forgotten in self._counted.keys() - {*self._seen.groups, *self._noted.groups}:
            del self._counted[forgotten]
        for group_id, at_ms in {**self._seen.take_rebalanced(), **self._noted.take_rebalanced()}.items():
            if at_ms < began_ms or group_id not in observed.groups:
                continue
            last = self._counted.get(group_id, (began_ms, -1))
            for account in explain(self.facts_of(group_id)):
                place = (account.ended_ms, account.generation)
                if place > last and not account.is_replacement:
                    self._counted[group_id] = place
                    observed.history.count_cause(group_id, account.cause.what.value)
            await asyncio.sleep(0)

    def described(self) -> str:
        """Return the basis of the accounts as a sentence for the page."""
        named = "the broker's notes and __consumer_offsets" if self._notes is not None else "__consumer_offsets"
        return f"Read from {named}." + (f" Not everything can be read: {self.problem}." if self.problem else "")

    @property
    def problem(self) -> str:
        """Why not everything can be read; empty if it can."""
        notes_problem = self._notes.problem if self._notes is not None else ""
        return "; ".join(problem for problem in (self._log_problem, notes_problem) if problem)

    async def run(self) -> None:
        """Follow until cancelled."""
        following = [self._follow_log()] + ([self._notes.follow()] if self._notes is not None else [])
        await asyncio.gather(*following)

    async def read_once(self) -> None:
        """Read everything present now."""
        try:
            async with asyncio.timeout(LOG_WITHIN_S):
                if LOG_TOPIC in self._poller.observed.topics:
                    await self._log().read()
        except (KafkaError, TimeoutError) as error:
            self._log_problem = f"__consumer_offsets: {error or 'it takes too long'}"
        if self._notes is not None:
            try:
                await asyncio.to_thread(self._notes.read)
            except (OSError, ValueError) as error:
                self._notes.problem = f"no notes: {error}"

    def _log(self) -> GroupLog:
        return GroupLog(self._options, self._seen, name_of=self._topic_name)

    def _topic_name(self, topic_id: bytes) -> str | None:
        try:
            return self._poller.admin.cluster.view.name_of(topic_id)
        except KafkaError:
            return None

    async def _follow_log(self) -> None:
        """Follow the log of groups. An unreadable log is tried again; one that does not exist yet is waited for."""
        observed = self._poller.observed
        while True:
            try:
                while LOG_TOPIC not in observed.topics:
                    if observed.groups:
                        self._log_problem = f"{LOG_TOPIC} is hidden: the right to describe and read it is missing"
                    await observed.wait_for_change(observed.version, AGAIN_AFTER_S)
                self._log_problem = ""
                await self._log().follow()
            except (KafkaError, OSError, TimeoutError) as error:
                self._log_problem = f"__consumer_offsets: {error}"
                logger.info("__consumer_offsets cannot be followed: %s", error)
            await asyncio.sleep(AGAIN_AFTER_S)
