"""Posts to a URL when a group begins or ceases to need attention urgently, or the cluster is lost or found again.

The body is JSON; its `text` is a line that chat services show as it is. What was not accepted is posted again, with
whatever has changed by then, so an outage of the receiver loses no end of a trouble, and nothing piles up.
"""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from partita.dashboard.attention import URGENT, Finding
from partita.dashboard.models.rows import GroupRows
from partita.wording import count, printable

EVERY_S = 10.0
WITHIN_S = 10.0
NAMED_MAX = 50
"""A post names so many troubles; the rest are counted in its text."""
logger = logging.getLogger("partita.dashboard")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A sentence about one group, or about the cluster when `group` is None."""

    group: str | None
    kind: str
    sentence: str


class Webhook:
    """`run()` looks every ten seconds until cancelled. Raises ValueError for an address that is not one of HTTP."""

    def __init__(self, address: str, rows: GroupRows, name: str = "") -> None:
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"a webhook is an address such as https://chat.example/hook, not {address!r}")
        self._address = address
        self._rows = rows
        self._name = name
        self._accepted: dict[tuple[str | None, str], Trouble] = {}
        self._problem = ""

    async def run(self) -> None:
        """Post what changes."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Post once if something has changed since the last post that was accepted."""
        seen = self._rows.observed
        if not seen.seen_ms and seen.trouble is None:
            return  # not looked yet: a restart must not end troubles that go on
        now = self._troubles()
        began = [trouble for key, trouble in now.items() if key not in self._accepted]
        ended = [trouble for key, trouble in self._accepted.items() if key not in now]
        if not began and not ended:
            return
        try:
            await asyncio.to_thread(self._post, self._body(began, ended))
        except (OSError, ValueError) as error:
            if str(error) != self._problem:
                logger.warning("the webhook did not take %s: %s", count(len(began) + len(ended), "change"), error)
            self._problem = str(error)
        else:
            self._accepted, self._problem = now, ""

    def _troubles(self) -> dict[tuple[str | None, str], Trouble]:
        """All troubles by their subject. While the cluster is not reached, groups are as they were posted last."""
        lost = self._rows.observed.trouble
        if lost is not None:
            about_groups = {key: trouble for key, trouble in self._accepted.items() if trouble.group is not None}
            return about_groups | {(None, "cluster"): Trouble(None, "cluster", f"the cluster is not reached: {lost}")}
        rows = self._rows.all().values()
        urgent = [finding for row in rows for finding in row.findings if finding.rank < URGENT]
        return {(found.group_id, found.kind): _of_group(found) for found in urgent}

    def _body(self, began: list[Trouble], ended: list[Trouble]) -> Mapping[str, object]:
        seen = self._rows.observed
        where = self._name or seen.cluster_id or seen.bootstrap
        lines = [f"{where}: {trouble.sentence}" for trouble in began[:NAMED_MAX]]
        lines += [f"{where}: no longer: {trouble.sentence}" for trouble in ended[:NAMED_MAX]]
        if more := max(0, len(began) - NAMED_MAX) + max(0, len(ended) - NAMED_MAX):
            lines.append(f"{where}: and {more:,} more")
        return {
            "text": "\n".join(lines),
            "cluster": where,
            "at_ms": seen.seen_ms,
            "began": [_plain(trouble) for trouble in began[:NAMED_MAX]],
            "ended": [_plain(trouble) for trouble in ended[:NAMED_MAX]],
        }

    def _post(self, body: Mapping[str, object]) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "partita-dashboard"}
        request = urllib.request.Request(self._address, json.dumps(body).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
            answer.read(1_000)


def _of_group(found: Finding) -> Trouble:
    return Trouble(found.group_id, found.kind, f"{printable(found.group_id)} {found.sentence}")


def _plain(trouble: Trouble) -> dict[str, str | None]:
    return {"group": trouble.group, "kind": trouble.kind, "sentence": trouble.sentence}
