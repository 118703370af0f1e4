"""A look at the records of one partition: a page of at most fifty, decoded for reading, in no group.

Every look is a consumer of its own that assigns the partition, reads once, and is closed: nothing is committed, no
group is joined. Looks wait for each other, so many readers cost the cluster as much as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from partita.consumer.records import ConsumerRecord
from partita.consumer.shell.client import AsyncConsumer
from partita.dashboard.site import Page, Site
from partita.dashboard.words import slug, unslug
from partita.errors import KafkaError
from partita.offsets.topic_partition import TopicPartition
from partita.wording import count

RECORDS_MAX = 50
SHOWN_MAX = 1_000
"""Of a key, value or header, so many characters are shown."""
HEADERS_MAX = 20
BYTES_MAX = 1 << 20
"""Asked for at once; a single record that is larger comes whole all the same."""
WITHIN_S = 10.0
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999: a timestamp behind it is a number that a client made up, and no time."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Bytes as text: UTF-8 where they are, else hexadecimal. `size` in bytes is None for null."""

    text: str
    size: int | None
    is_cut: bool = False
    is_hex: bool = False


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record; `at_ms` is its timestamp, None where it is no time."""

    offset: int
    at_ms: int | None
    key: Shown
    value: Shown
    headers: tuple[tuple[str, Shown], ...]
    headers_left_out: int


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """Records of a partition from `offset` on. `earlier` and `later` are offsets to go on from, None at an end."""

    topic: str
    topic_path: str
    partition: int
    partitions: tuple[int, ...]
    start: int
    end: int
    offset: int
    records: tuple[RecordRow, ...]
    earlier: int | None
    later: int | None
    sentence: str
    error: str


class RecordPages:
    """The page of each partition, as HTML and as JSON. `options` are those of a client of the cluster."""

    def __init__(self, site: Site, options: Mapping[str, Any]) -> None:
        self._site = site
        self._options = {
            "client.id": "partita-dashboard",
            **options,
            "enable.auto.commit": False,
            "auto.offset.reset": "none",
            "allow.auto.create.topics": False,
            "fetch.max.bytes": BYTES_MAX,
            "max.partition.fetch.bytes": BYTES_MAX,
        }
        self._one_at_a_time = asyncio.Lock()

    def routes(self) -> list[BaseRoute]:
        """The routes of the pages."""
        path = "/topics/{topic}/{partition:int}"
        return [Route(f"{path}.json", self._json), Route(path, self._html)]

    async def _html(self, request: Request) -> Response:
        page, status = await self._page(request)
        return HTMLResponse(self._site.html(page, request.url.path, None), status)

    async def _json(self, request: Request) -> Response:
        page, status = await self._page(request)
        return Response(self._site.json(page), status, media_type="application/json")

    async def _page(self, request: Request) -> tuple[Page, int]:
        place = TopicPartition(unslug(request.path_params["topic"]), request.path_params["partition"])
        given = request.query_params.get("offset", "").strip()
        try:
            async with asyncio.timeout(WITHIN_S), self._one_at_a_time:
                model = await self._look(place, wanted(given))
        except (KafkaError, OSError, TimeoutError, ValueError) as error:
            why = str(error) or f"the cluster gave no answer within {WITHIN_S:.0f} s"
            model = _page(self._site, place, (0, 0), 0, (), why)
        return Page(f"{place.topic}-{place.partition}", "records.html", model), 400 if model.error else 200

    async def _look(self, place: TopicPartition, offset: int | None) -> RecordsPage:
        async with AsyncConsumer(self._options) as consumer:
            # Asked first: offsets of what does not exist are waited for, while other readers stand in line.
            if place.partition not in await consumer.partitions_for(place.topic, timeout=WITHIN_S):
                raise ValueError(f"the cluster has no partition {place.topic}-{place.partition}")
            start = (await consumer.beginning_offsets([place], timeout=WITHIN_S))[place]
            end = (await consumer.end_offsets([place], timeout=WITHIN_S))[place]
            first = min(max(start, end - RECORDS_MAX if offset is None else offset), end)
            records: list[ConsumerRecord[bytes, bytes]] = []
            if first < end:
                consumer.assign([place])
                consumer.seek(place, first)
                while len(records) < RECORDS_MAX and await consumer.position(place) < end:
                    records += await consumer.poll(WITHIN_S, max_records=RECORDS_MAX - len(records))
                    if sum(len(record.value or b"") for record in records) >= BYTES_MAX:
                        break
        return _page(self._site, place, (start, end), first, records, "")


def wanted(given: str) -> int | None:
    """Return the offset that a reader typed; None for none. Raises ValueError for what is no offset."""
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 19):
        raise ValueError(f"an offset is a number such as 42, not {given[:40]!r}")
    return int(given)


def _page(
    site: Site,
    place: TopicPartition,
    bounds: tuple[int, int],
    first: int,
    records: Sequence[ConsumerRecord[bytes, bytes]],
    error: str,
) -> RecordsPage:
    start, end = bounds
    topic = site.observed.topics.get(place.topic)
    after = records[-1].offset + 1 if records else first
    return RecordsPage(
        place.topic,
        f"/topics/{slug(place.topic)}",
        place.partition,
        tuple(log.partition for log in topic.logs) if topic is not None else (place.partition,),
        start,
        end,
        first,
        tuple(_row(record) for record in records),
        max(start, first - RECORDS_MAX) if first > start else None,
        after if after < end else None,
        f"{count(end - start, 'offset')}, from {start:,} up to {end:,}",
        error,
    )


def _row(record: ConsumerRecord[bytes, bytes]) -> RecordRow:
    headers = tuple((name[:SHOWN_MAX], shown(value)) for name, value in record.headers[:HEADERS_MAX])
    left_out = max(0, len(record.headers) - HEADERS_MAX)
    at_ms = record.timestamp if 0 <= record.timestamp <= LATEST_MS else None
    return RecordRow(record.offset, at_ms, shown(record.key), shown(record.value), headers, left_out)


def shown(data: bytes | None) -> Shown:
    """The beginning of some bytes, for reading."""
    if data is None:
        return Shown("", None)
    head = data[: 4 * SHOWN_MAX]
    try:
        # The cut may fall into a character: what is left over of it at the end is no reason to show hexadecimal.
        text = head.decode() if len(head) == len(data) else _whole_characters(head)
    except UnicodeDecodeError:
        text = data[: SHOWN_MAX // 2].hex(" ", 4)
        return Shown(text, len(data), is_cut=len(data) > SHOWN_MAX // 2, is_hex=True)
    return Shown(text[:SHOWN_MAX], len(data), is_cut=len(text) > SHOWN_MAX or len(head) < len(data))


def _whole_characters(head: bytes) -> str:
    try:
        return head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            raise
        return head[: error.start].decode()
