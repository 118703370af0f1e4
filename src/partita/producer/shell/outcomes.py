"""The results of the producer's calls: the outcome of one record, and of many that were sent at once."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast

from partita.net.faces import check_seconds
from partita.producer.batch import Batch, RecordMetadata, after
from partita.producer.delivery import Delivery
from partita.producer.errors import ProducerClosedError, PurgedError, UndeliveredError
from partita.producer.shell.driver import ProducerDriver, call_safely
from partita.records.batch import iter_records
from partita.wording import count

R = TypeVar("R")


class Outcome(Generic[R]):
    """A result to wait for, in any thread or by `await`. Subclasses give `done`, `result` and `_when_done`."""

    __slots__ = ()
    owner: ProducerDriver
    done: Callable[[], bool]
    result: Callable[[float | None], R]
    _when_done: Callable[[Callable[[], object]], object]

    def __await__(self) -> Generator[Any, None, R]:
        if not self.done():
            loop = asyncio.get_running_loop()
            arrived = loop.create_future()

            def wake() -> None:
                if not arrived.done():
                    arrived.set_result(None)

            self._when_done(lambda: loop.call_soon_threadsafe(wake))
            yield from arrived
        return self.result(0)

    def _wait(self, timeout: float | None) -> None:
        limit = None if timeout is None else check_seconds(timeout)
        if self.done():
            return
        if self.owner.loop is not None and self.owner.loop.is_closed():
            raise ProducerClosedError("the event loop is closed on which the producer would deliver the record")
        if self.owner.is_own_thread():
            raise RuntimeError("result() would block the loop that delivers the record; use `await` here")
        if self.owner.is_forked:
            raise ProducerClosedError(self.owner.core.closed_because)
        with self.owner.changed:
            if not self.owner.changed.wait_for(self.done, limit):
                raise TimeoutError(f"not delivered after {timeout} s")


class DeliveryFuture(Delivery, Outcome[RecordMetadata]):
    """The outcome of one `send`: RecordMetadata, or an error. Awaitable, and waitable from any thread.

    `done()` does not wait: it is true once the record was delivered or has failed.
    """

    __slots__ = ()
    owner: ProducerDriver

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return the record's place. Blocks; raises the delivery's error, or TimeoutError after `timeout` seconds."""
        self._wait(timeout)
        self._hear()
        failure = self.failure()
        if failure is not None:
            raise failure
        return self.metadata()

    def exception(self, timeout: float | None = None) -> Exception | None:
        """The delivery's error, or None. Blocks as `result` does."""
        self._wait(timeout)
        self._hear()
        return self.failure()

    def add_done_callback(self, call: Callable[[DeliveryFuture], object]) -> None:
        """Call `call(future)` on the producer's loop when done; at once if it is.

        Its errors are logged, SystemExit included; called at once, in your own thread, it may end the program. After
        the call a failure counts as noticed.
        """
        if not callable(call):
            raise TypeError(f"add_done_callback takes a function of the future, not {call!r}")

        def tell() -> None:
            self._hear()
            call(self)

        self._when_done(tell)

    def _when_done(self, call: Callable[[], object]) -> None:
        with self.owner.changed:
            if not self.done():
                self.on_done(call)
                return
        call_safely(call)

    def _hear(self) -> None:
        """The outcome is read: `close` need not report it."""
        if not self.is_heard and not isinstance(self.failure(), PurgedError | None):
            with self.owner.changed:
                self.is_heard = True
                self.owner.core.unheard_count -= 1


class _OneOfMany(DeliveryFuture):
    """The future of one of many records; it fetches its timestamp and sizes when its metadata is read."""

    __slots__ = ("told",)
    told: Callable[[], tuple[int, int, int]]

    def metadata(self) -> RecordMetadata:
        self.timestamp, self.key_size, self.value_size = self.told()
        return super().metadata()


class SentRecords(Outcome["SentRecords"]):
    """The outcome of many records sent at once: `sent[i]` is the DeliveryFuture of the i-th, made when it is asked for.

    Awaitable, and waitable from any thread. `done()` does not wait: it is true once every record has its end.
    """

    def __init__(self, owner: ProducerDriver) -> None:
        self.owner = owner
        self.homes: list[Batch | Delivery | Exception] = []
        self.places = array("q")
        """For each record the number of its home, times 2**32, and its place there."""
        self._futures: dict[int, DeliveryFuture] = {}
        self._opened: dict[Batch, list[tuple[int, int, int]]] = {}
        self._ended = 0

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> DeliveryFuture:
        index = range(len(self))[index]
        future = self._futures.get(index)
        if future is None:
            future = self._futures[index] = self._future(index)
        return future

    def done(self) -> bool:
        """True once every record was delivered or has failed."""
        while self._ended < len(self.homes) and _has_ended(self.homes[self._ended]):
            self._ended += 1
        return self._ended == len(self.homes)

    def result(self, timeout: float | None = None) -> SentRecords:
        """This object, once every record is delivered. Blocks; raises UndeliveredError if some failed, or TimeoutError.

        The error names the first record that failed; `errors` has all of them.
        """
        errors = self.errors(timeout)
        if errors:
            index, first = next(iter(errors.items()))
            failed = f"{len(errors)} of {count(len(self), 'record')} failed"
            raise UndeliveredError(f"{failed}; record {index}: {first}", len(errors), first) from first
        return self

    def errors(self, timeout: float | None = None) -> dict[int, Exception]:
        """Errors of undelivered records by their places; empty if all were delivered. Blocks as `result` does."""
        self._wait(timeout)
        failed = {number for number, home in enumerate(self.homes) if _has_failed(home)}
        found = {}
        for index, place in enumerate(self.places) if failed else ():
            if place >> 32 in failed and (error := self[index].exception(0)) is not None:
                found[index] = error
        return found

    def add(self, home: Delivery | Exception) -> None:
        """Add a record that is delivered on its own."""
        self.places.append(len(self.homes) << 32)
        self.homes.append(home)

    def _future(self, index: int) -> DeliveryFuture:
        number, place = divmod(self.places[index], 1 << 32)
        home = self.homes[number]
        if isinstance(home, Delivery):
            return cast("DeliveryFuture", home)
        future = _OneOfMany(None, self.owner)
        if isinstance(home, Batch):
            future.batch, future.index = home, place
            future.told = lambda: self._told(home)[place]
        else:
            future.error = home
        return future

    def _told(self, batch: Batch) -> list[tuple[int, int, int]]:
        """Timestamp and sizes of the batch's records, read from its bytes when first asked for."""
        told = self._opened.get(batch)
        if told is None:
            told = self._opened[batch] = [
                (one.timestamp, _size(one.key), _size(one.value)) for one in iter_records(batch.builder.build())
            ]
        return told

    def _when_done(self, call: Callable[[], object]) -> None:
        with self.owner.changed:
            left = [] if self.done() else [home for home in self.homes[self._ended :] if not _has_ended(home)]
            last = after(len(left), call)
            for home in left:
                if isinstance(home, Batch):
                    _watch(home, last)
                elif isinstance(home, Delivery):
                    home.on_done(last)
        if not left:
            call_safely(call)


def _size(part: Any) -> int:  # `Any`: what records hold is said by no type
    return -1 if part is None else len(part)


def _parts(batch: Batch) -> list[Batch]:
    """The batches that hold the records now: itself, or those it was divided into."""
    if not batch.moved:
        return [batch]
    return list({id(part): part for place in range(len(batch.moved)) for part in (batch.find(place)[0],)}.values())


def _watch(batch: Batch, call: Callable[[], object]) -> None:
    left = [part for part in _parts(batch) if not part.is_done]
    last = after(len(left), call)
    for part in left:
        part.callbacks.append((-1, last))


def _has_ended(home: Batch | Delivery | Exception) -> bool:
    if isinstance(home, Batch):
        return all(part.is_done for part in _parts(home))
    return not isinstance(home, Delivery) or home.done()


def _has_failed(home: Batch | Delivery | Exception) -> bool:
    if isinstance(home, Batch):
        return any(part.error is not None for part in _parts(home))
    return not isinstance(home, Delivery) or home.failure() is not None
