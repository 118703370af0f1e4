"""Many records into a producer's batches, piece by piece: the caller waits for room after each piece."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from partita.errors import KafkaError, error_for
from partita.offsets.committable import PARTITION_MAX
from partita.producer.bulk import Columns
from partita.producer.columns import ROWS_AT_ONCE, cells_of_list
from partita.producer.errors import NoMetadataError, ProducerClosedError, TransactionMisuseError
from partita.producer.serializing import check_number, check_topic
from partita.producer.shell.driver import ProducerDriver
from partita.producer.shell.outcomes import DeliveryFuture, SentRecords
from partita.protocol.error_codes import ErrorCode

Send = Callable[[str, Any, Any, Any, int | None, int | None], DeliveryFuture]
"""The producer's `send`, with all of its arguments."""


class Many(NamedTuple):
    """The arguments of `send_many`."""

    values: Iterable[Any]
    keys: Iterable[Any] | None
    headers: Iterable[Any] | None
    partition: int | None
    timestamps: Iterable[int] | None


class _Piece(NamedTuple):
    values: list[Any]
    keys: list[Any] | None
    headers: list[Any] | None
    timestamps: list[int] | None


def check_many(topic: str, many: Many) -> None:
    """Raise TypeError or ValueError for arguments that cannot be meant."""
    check_topic(topic)
    for name in ("values", "keys", "headers", "timestamps"):
        given = getattr(many, name)
        is_left_out = given is None and name != "values"
        if isinstance(given, str | bytes | bytearray) or not (is_left_out or isinstance(given, Iterable)):
            raise TypeError(f"{name} must be a list or another iterable with one for each record, not {given!r}")
    if many.partition is not None:
        check_number(many.partition, "partition", "a whole number", PARTITION_MAX)


async def know(driver: ProducerDriver, topic: str) -> None:
    """Wait until the topic's partitions are known, at most max.block.ms; it may be created. Raises why they are not."""
    check_topic(topic)
    config, view = driver.config, driver.core.view
    loop = asyncio.get_running_loop()
    until = loop.time() + config.max_block_ms / 1000
    trouble = ""
    while not driver.core.is_closed and (topic not in view.topics or not view.topics[topic].partitions):
        try:
            async with asyncio.timeout_at(until):
                await driver.cluster.refresh([topic], create=True)
        except TimeoutError:
            trouble = f"; {driver.cluster.trouble}" if driver.cluster.trouble is not None else ""
        except KafkaError as error:
            if not error.retriable:
                raise
            trouble = f"; {error}"
        code = ErrorCode(view.topics[topic].error_code) if topic in view.topics else ErrorCode.NONE
        if code is not ErrorCode.NONE and not code.retriable:
            told = f"topic {topic!r}: {code.meaning}"
            raise error_for(code, told, operation="WRITE", names=[topic], user=config.user)
        if loop.time() >= until:
            raise NoMetadataError(
                f"topic {topic!r} did not turn up in the cluster within max_block_ms {config.max_block_ms}{trouble}"
            )
        if topic not in view.topics or not view.topics[topic].partitions:
            await asyncio.sleep(min(config.retry_backoff_ms / 1000, max(0.0, until - loop.time())))


def fill_many(
    driver: ProducerDriver, topic: str, many: Many, send: Send, sent: SentRecords, *, is_plain: bool
) -> Iterator[None]:
    """Take the records in. A piece of bytes and text goes in as columns if `is_plain`, any other by `send`."""
    for piece in _pieces(many):
        columns = _columns(piece, many.partition) if is_plain and piece.headers is None else None
        if columns is not None:
            yield from fill_rows(driver, topic, [columns], sent)
            continue
        for index, value in enumerate(piece.values):
            key, headers, timestamp = (None if given is None else given[index] for given in piece[1:])
            if not driver.takes(topic):
                yield
            try:
                home: DeliveryFuture | Exception = send(topic, value, key, headers, many.partition, timestamp)
            except (ProducerClosedError, TransactionMisuseError):
                raise
            except Exception as error:
                home = driver.refuse(topic, error)
            sent.add(home)
        driver.wake()
        yield


def fill_rows(driver: ProducerDriver, topic: str, pieces: Iterable[Columns], sent: SentRecords) -> Iterator[None]:
    """Take rows of columns in."""
    for columns in pieces:
        places = array("q", bytes(8 * columns.rows))
        at = 0
        while at < columns.rows:
            at = driver.rows_in.add(topic, columns, at, places, sent.homes)
            driver.wake()
            yield
        sent.places += places


def _pieces(many: Many) -> Iterator[_Piece]:
    values, *others = (None if given is None else iter(given) for given in (many.values, *many[1:3], many.timestamps))
    assert values is not None, "checked before"
    taken = 0
    while True:
        some = list(islice(values, ROWS_AT_ONCE))
        rest = [None if other is None else list(islice(other, len(some) or 1)) for other in others]
        for name, one in zip(("keys", "headers", "timestamps"), rest, strict=True):
            if one is not None and len(one) != len(some):
                raise ValueError(
                    f"{name} must be as many as values: there are {taken + len(some)} values and {taken + len(one)} "
                    f"{name}" + (" or more" if len(one) > len(some) else "")
                )
        if not some:
            return
        taken += len(some)
        yield _Piece(some, *rest)


def _columns(piece: _Piece, partition: int | None) -> Columns | None:
    rows = len(piece.values)
    values, keys = cells_of_list(piece.values, rows), cells_of_list(piece.keys, rows)
    times = piece.timestamps
    if values is None or keys is None or not all(type(time) is int and 0 <= time < 1 << 63 for time in times or ()):
        return None
    return Columns(
        keys,
        values,
        None,
        None if times is None else array("q", times),
        None if partition is None else array("i", [partition]) * rows,
    )
