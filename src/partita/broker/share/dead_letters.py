"""Dead letters of share groups: records that a group gives up are written to a topic of its own. (4.4.0)

A letter names its record by headers, and holds key and value if the group's settings say so; headers of the record are
not copied. The topic has to say that it takes them, or is created. When a letter cannot be written the broker logs why
and the record is archived all the same. (Kafka: ShareGroupDLQStateManager, KIP-1191)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from partita.broker.shard_life import when_durable
from partita.broker.share.calls import PAUSES_SECONDS, Place
from partita.log.partition_log import AppendRefused
from partita.log.storage import StorageError
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import Record, iter_records
from partita.records.builder import build_batch
from partita.records.header import InvalidBatch, iter_batches
from partita.share.partition.model import Letter

if TYPE_CHECKING:
    from partita.broker.nodes import Cluster
    from partita.broker.options import Value
    from partita.broker.topics.catalogue import Partition, Topic

log = logging.getLogger("partita.broker")

TOPIC_NAME, COPIES = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
HEADER = "__dlq.errors."
REJECTED, TOO_OFTEN = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
READ_BYTES, BATCH_RECORDS = 1 << 20, 500
"""How much of the log is looked at together for copies, and how many letters are one batch at most."""
OVERHEAD = 512
"""Bytes that a letter has beside key, value and the names of its record, at most."""


class Undeliverable(Exception):
    """The letters cannot be written; the text says why."""


class DeadLetters:
    """Writes the letters of all share groups of a cluster."""

    def __init__(self, cluster: Cluster, in_force: Callable[[str, str], int | str]) -> None:
        self._cluster = cluster
        self._in_force = in_force

    async def write(self, place: Place, source: Partition, letters: Sequence[Letter]) -> None:
        """Write the letters; return once they are durable, or once it is clear that they cannot be written."""
        pending = iter(PAUSES_SECONDS)
        left = list(self._batches(place, source, letters))
        while left:
            try:
                await self._append(place, source, left[0])
                left.pop(0)
            except (Undeliverable, AppendRefused, StorageError) as error:
                pause = None if isinstance(error, Undeliverable) else next(pending, None)
                if pause is None:
                    count = sum(letter.last - letter.first + 1 for letter in letters)
                    text = "share group %r: dead letters of up to %d records of %s-%d are lost: %s"
                    log.error(text, place.group_id, count, source.topic.name, source.index, error)
                    return
                await asyncio.sleep(pause)

    def _batches(self, place: Place, source: Partition, letters: Sequence[Letter]) -> Iterator[list[Letter]]:
        """The letters one record each, in portions."""
        single = [letter._replace(first=o, last=o) for letter in letters for o in range(letter.first, letter.last + 1)]
        return (single[at : at + BATCH_RECORDS] for at in range(0, len(single), BATCH_RECORDS))

    async def _append(self, place: Place, source: Partition, letters: list[Letter]) -> None:
        topic = self._topic(place.group_id)
        target = topic.partitions[source.index % len(topic.partitions)]
        node = self._cluster.nodes.get(target.leader)
        if node is None or not node.is_alive:
            raise StorageError(f"no node leads {topic.name}-{target.index}")
        copies = self._copies(source, letters) if self._in_force(place.group_id, COPIES) else {}
        now = self._cluster.clock.now()
        bytes_max = topic.config.int("max.message.bytes")
        for batch in _portions(place, source, letters, copies, bytes_max):
            target.log.append(build_batch([(now.wall_ms, *each) for each in batch]), target.leader_epoch, now)
            await asyncio.sleep(0)
        code = await when_durable(self._cluster.loop, target.log, target.log.log_end_offset)
        if code is not ErrorCode.NONE:
            raise StorageError(f"{topic.name}-{target.index} cannot be written")

    def _topic(self, group_id: str) -> Topic:
        """The topic of the group's letters; created if need be. Raises Undeliverable."""
        name, config = str(self._in_force(group_id, TOPIC_NAME)), self._cluster.config
        prefix = str(config.get("errors.deadletterqueue.topic.name.prefix") or "")
        if not name or name.startswith("__") or not name.startswith(prefix):
            raise Undeliverable(f"{TOPIC_NAME} has to begin with {prefix!r} and not with '__', and is {name!r}")
        topic = self._cluster.catalogue.get(name)
        if topic is None and config.get("errors.deadletterqueue.auto.create.topics.enable"):
            settings: dict[str, Value] = {
                "errors.deadletterqueue.group.enable": True,
                "message.timestamp.type": "CreateTime",
            }
            counts = config.int("num.partitions"), config.int("default.replication.factor")
            return self._cluster.create_topic(name, *counts, settings)
        if topic is None:
            raise Undeliverable(f"topic {name} does not exist; create it, with errors.deadletterqueue.group.enable")
        if not topic.config.get("errors.deadletterqueue.group.enable"):
            raise Undeliverable(f"topic {name} takes none; set its errors.deadletterqueue.group.enable")
        return topic

    def _copies(self, source: Partition, letters: Sequence[Letter]) -> dict[int, Record]:
        """The records that are still in the log, as far as they can be read, by offset."""
        found: dict[int, Record] = {}
        wanted = {letter.first for letter in letters}
        reached = -1
        for offset in sorted(wanted):
            if offset < reached or offset < source.log.log_start_offset:
                continue
            try:
                for header, batch in iter_batches(source.log.read(offset, READ_BYTES)):
                    reached = header.last_offset + 1
                    if not header.is_control:
                        found |= {r.offset: r for r in iter_records(batch) if r.offset in wanted}
            except (InvalidBatch, StorageError) as error:
                log.warning("share group letters: %s-%d is not readable: %s", source.topic.name, source.index, error)
        return found


def _portions(
    place: Place, source: Partition, letters: Sequence[Letter], copies: dict[int, Record], bytes_max: int
) -> Iterator[list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]]:
    """Letters as records, in batches that fit; one whose copy does not fit has headers only."""
    portion: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = []
    size = 0
    for letter in letters:
        record = copies.get(letter.first)
        key, value = (None, None) if record is None else (_bytes(record.key), _bytes(record.value))
        headers_bytes = OVERHEAD + len(source.topic.name.encode()) + len(place.group_id.encode())
        needed = headers_bytes + len(key or b"") + len(value or b"")
        if needed > bytes_max:
            key, value, needed = None, None, headers_bytes
        if portion and size + needed > bytes_max:
            yield portion
            portion, size = [], 0
        portion.append((key, value, _headers(place, source, letter)))
        size += needed
    yield portion


def _headers(place: Place, source: Partition, letter: Letter) -> list[tuple[str, bytes | None]]:
    named = {
        "topic": source.topic.name,
        "partition": source.index,
        "offset": letter.first,
        "group": place.group_id,
        "delivery.count": letter.delivery_count,
        "message": REJECTED if letter.is_rejected else TOO_OFTEN,
    }
    return [(HEADER + name, str(value).encode()) for name, value in named.items()]


def _bytes(field: object) -> bytes | None:
    return None if field is None else bytes(field)  # type: ignore[call-overload]  # raw records hold bytes
