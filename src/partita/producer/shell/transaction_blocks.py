"""`with producer.transaction():` and `async with`: begin, commit at the end, abort when the block raises."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from partita.errors import AbortableTransactionError
from partita.producer.transactions.calls import OPEN, State

_LOG = logging.getLogger("partita.producer")
_Kind = type[BaseException] | None


class Blocking(Protocol):
    """The calls of the blocking face that a block makes."""

    @property
    def transaction_state(self) -> State | None: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self) -> None: ...
    def abort_transaction(self) -> None: ...


class Awaited(Protocol):
    """The calls of the asyncio face that a block makes."""

    @property
    def transaction_state(self) -> State | None: ...
    def begin_transaction(self) -> None: ...
    async def commit_transaction(self) -> None: ...
    async def abort_transaction(self) -> None: ...


B = TypeVar("B", bound=Blocking)
A = TypeVar("A", bound=Awaited)


class TransactionBlock(Generic[B]):
    """The block yields the producer. A block that ended its transaction by itself is left as it is."""

    def __init__(self, producer: B) -> None:
        self._producer = producer

    def __enter__(self) -> B:
        self._producer.begin_transaction()
        return self._producer

    def __exit__(self, kind: _Kind, error: BaseException | None, trace: TracebackType | None) -> None:
        producer = self._producer
        if error is not None:
            if producer.transaction_state in OPEN:
                with _kept(error):
                    producer.abort_transaction()
        elif producer.transaction_state is not State.READY:
            try:
                producer.commit_transaction()
            except AbortableTransactionError:
                producer.abort_transaction()
                raise


class AsyncTransactionBlock(Generic[A]):
    """As `TransactionBlock`. A cancelled task still ends its transaction, within max.block.ms."""

    def __init__(self, producer: A) -> None:
        self._producer = producer

    async def __aenter__(self) -> A:
        self._producer.begin_transaction()
        return self._producer

    async def __aexit__(self, kind: _Kind, error: BaseException | None, trace: TracebackType | None) -> None:
        producer = self._producer
        if error is not None:
            if producer.transaction_state in OPEN:
                with _kept(error):
                    await _to_the_end(producer.abort_transaction())
        elif producer.transaction_state is not State.READY:
            try:
                await _to_the_end(producer.commit_transaction())
            except AbortableTransactionError:
                await _to_the_end(producer.abort_transaction())
                raise


class _kept(contextlib.AbstractContextManager[None]):
    """Inside, a failing abort may replace an error of the program, but no interrupt and no cancellation."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __exit__(self, kind: _Kind, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is None or isinstance(self._error, Exception) or not isinstance(error, Exception):
            return False
        _LOG.error("the transaction could not be aborted after %s: %s", type(self._error).__name__, error)
        return True


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` whole, even if the task is cancelled meanwhile; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if task.exception() is not None:
            _LOG.error("the end of the transaction failed while the task was cancelled: %s", task.exception())
        raise cancelled
    task.result()
