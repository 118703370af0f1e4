"""The sources of facts about rebalances while the dashboard runs: a broker's notes, the log of groups, or both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from partita.dashboard.models.accounts import FactsOf
from partita.errors import KafkaError
from partita.explain import Fact
from partita.observe.follow_group_log import LOG_TOPIC, GroupLog
from partita.observe.follow_notes import BrokerNotes
from partita.observe.kept import Kept
from partita.observe.poll_cluster import ClusterPoller

AGAIN_AFTER_S = 10.0
LOG_WITHIN_S = 30.0
logger = logging.getLogger("partita.dashboard")


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of facts about rebalances, and their name."""

    facts_of: FactsOf
    described: Callable[[], str]


NO_SOURCES = Sources(
    lambda group_id: (), lambda: "No rebalance is known: neither notes nor __consumer_offsets are read."
)


class Followers:
    """Follows `__consumer_offsets`, and the notes of a Partita broker if an address is given.

    Raises ValueError for an address that is not one of HTTP.
    """

    def __init__(
        self, options: Mapping[str, Any], poller: ClusterPoller, notes_from: str | None = None, notes_token: str = ""
    ) -> None:
        if notes_from is not None and not notes_from.startswith(("http://", "https://")):
            raise ValueError(f"notes come from an address such as http://127.0.0.1:9644, not {notes_from!r}")
        self._options = options
        self._poller = poller
        self._seen = Kept()
        self._noted = Kept()
        """Filled by another thread, so it is kept apart."""
        self._notes = None if notes_from is None else BrokerNotes(notes_from, self._noted, token=notes_token)
        self._log_problem = ""

    @property
    def sources(self) -> Sources:
        """Return the sources that the pages read."""
        return Sources(self._facts_of, self._described)

    def _facts_of(self, group_id: str) -> list[Fact]:
        return [*self._seen.of(group_id), *self._noted.of(group_id)]

    def _described(self) -> str:
        """Return the basis of the accounts as a sentence for the page."""
        named = "the broker's notes and __consumer_offsets" if self._notes is not None else "__consumer_offsets"
        notes_problem = self._notes.problem if self._notes is not None else ""
        problems = "; ".join(problem for problem in (self._log_problem, notes_problem) if problem)
        return f"Read from {named}." + (f" Not everything can be read: {problems}." if problems else "")

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
                    await observed.wait_for_change(observed.version, AGAIN_AFTER_S)
                await self._log().follow()
            except (KafkaError, OSError, TimeoutError) as error:
                self._log_problem = f"__consumer_offsets: {error}"
                logger.info("__consumer_offsets cannot be followed: %s", error)
            await asyncio.sleep(AGAIN_AFTER_S)
