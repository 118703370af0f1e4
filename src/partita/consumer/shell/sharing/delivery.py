"""The poll of a share consumer: from held bytes to records of the application.

What was taken and could not be handed out, since its bytes do not deserialize or the task was cancelled, is held still:
it comes first in the next poll, or is released, as `poison_policy` says. Nothing is accepted that was not handed out.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from partita.consumer.deserializers import deserialized, deserializer
from partita.consumer.errors import RecordDeserializationError
from partita.consumer.sharing.core import ShareCore
from partita.consumer.sharing.holding import Hold, Stage, Verdict
from partita.consumer.shell.client_driver import ClientDriver
from partita.consumer.shell.dead_letters import letter_of
from partita.consumer.shell.sharing.acknowledging import Acknowledging
from partita.consumer.shell.sharing.records import ShareRecord, ShareRecords
from partita.lazy import later
from partita.offsets.topic_partition import TopicPartition
from partita.wording import Note

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer.arrow import DecodeAs
    from partita.consumer.shell.sharing import columns
else:
    columns = later("partita.consumer.shell.sharing.columns")

T = TypeVar("T")
_COMES_AGAIN = "it is released, so it comes again until the group's delivery limit; or set poison_policy"


class ShareDelivery:
    """`poll` waits for records; `records_of` makes them from holds."""

    def __init__(self, driver: ClientDriver[ShareCore], acknowledging: Acknowledging) -> None:
        values = driver.config.values
        self._driver = driver
        self._core = driver.core
        self.acknowledging = acknowledging
        self._key = deserializer(values["key_deserializer"])
        self._value = deserializer(values["value_deserializer"])
        self._policy: str = values["poison_policy"]
        self.is_pooled = False
        """Do workers take the records, so that the application may not poll?"""

    async def poll(self, timeout: float, most: int) -> ShareRecords[Any, Any]:
        """At most so many records; none at the timeout."""

        async def grouped(holds: Sequence[Hold]) -> ShareRecords[Any, Any]:
            found: dict[TopicPartition, list[ShareRecord[Any, Any]]] = {}
            for record in await self.records_of(holds):
                found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
            return ShareRecords(found)

        return await self._poll(timeout, most, grouped) or ShareRecords()

    async def poll_for_loop(self, timeout: float) -> list[ShareRecord[Any, Any]]:
        """The next record of a loop, whose lock is renewed until the loop clears `is_in_loop`; none at the timeout."""

        async def in_loop(holds: Sequence[Hold]) -> list[ShareRecord[Any, Any]]:
            records = await self.records_of(holds)
            for hold in holds:
                hold.is_in_loop = hold.stage is Stage.GIVEN
            return records

        return await self._poll(timeout, 1, in_loop) or []

    async def poll_arrow(self, timeout: float, most: int, decode: DecodeAs) -> pa.RecordBatch | None:
        """At most so many records as columns; None at the timeout."""

        async def columns_of(holds: Sequence[Hold]) -> pa.RecordBatch | None:
            if not holds:
                return None
            try:
                return columns.decoded(holds, decode)
            except BaseException:
                with self._driver.io.lock:
                    self._core.fetching.give_back(list(holds))
                raise

        return await self._poll(timeout, most, columns_of)

    async def _poll(self, timeout: float, most: int, made_of: Callable[[Sequence[Hold]], Awaitable[T]]) -> T | None:
        driver, core, before = self._driver, self._core, None
        deadline_ms = driver.deadline_ms(timeout)
        try:
            with driver.owned(exclusive=True):
                await driver.dispatch()
                with driver.io.lock:
                    core.begin_poll(driver.now())
                    before = frozenset(core.fetching.holdings.given)
                try:
                    return await self._poll_until(deadline_ms, most, made_of)
                finally:
                    with driver.io.lock:
                        core.end_poll(driver.now())
        except BaseException as error:
            # Ctrl-C, at whatever line: the application has got nothing, and its next poll must not accept it.
            if before is not None and not isinstance(error, Exception | CancelledError):
                with driver.io.lock:
                    given = core.fetching.holdings.given
                    core.fetching.give_back([hold for key, hold in given.items() if key not in before])
            raise

    async def _poll_until(
        self, deadline_ms: int, most: int, made_of: Callable[[Sequence[Hold]], Awaitable[T]]
    ) -> T | None:
        driver, core = self._driver, self._core
        while True:
            with driver.io.lock:
                seen = driver.io.activity
                if core.fetching.ready:
                    driver.step_if_stale()
                else:
                    driver.step()
                error = core.next_error()
                holds = core.take(most, driver.now()) if error is None else []
            if error is not None:
                raise driver.named(error)
            made = await made_of(holds)
            if made:
                return made
            await driver.dispatch()
            driver.check()
            left_ms = deadline_ms - driver.mono_ms()
            if left_ms <= 0:
                return None
            if not holds:
                await driver.waiter.wait(driver.io, seen, left_ms / 1000)

    async def records_of(self, holds: Sequence[Hold]) -> list[ShareRecord[Any, Any]]:
        """The records with objects. An unreadable one ends the list before it, unless the policy passes over it."""
        if self._key is None and self._value is None:
            return [ShareRecord._of(h, h.record.key, h.record.value, self.acknowledging) for h in holds]
        made: list[ShareRecord[Any, Any]] = []
        at = 0
        try:
            while at < len(holds):
                failure = await self._read_on(holds, at, made)
                if failure is None:
                    break
                at, error = failure
                if self._policy == "dead_letter" and not made:
                    with self._driver.io.lock:  # while the letter is written their locks are renewed
                        self._core.fetching.give_back(list(holds[at + 1 :]))
                    holds = holds[: at + 1]
                await self._pass_over(holds[at], error, is_first=not made)
                at += 1
        except RecordDeserializationError:
            with self._driver.io.lock:
                self._core.fetching.give_back(list(holds[at:]))
            if not made:
                raise
        except BaseException:
            with self._driver.io.lock:
                self._core.fetching.give_back(list(holds))
            raise
        return made

    async def _read_on(
        self, holds: Sequence[Hold], at: int, made: list[ShareRecord[Any, Any]]
    ) -> tuple[int, RecordDeserializationError] | None:
        """Read from here on, beside the event loop if there is one; where and why it ended early."""
        failure: list[tuple[int, RecordDeserializationError]] = []

        def read() -> None:
            for number, hold in enumerate(holds[at:], at):
                try:
                    tp, record = hold.place.tp, hold.record
                    key = deserialized(self._key, "KEY", tp, record, record.key, _COMES_AGAIN)
                    value = deserialized(self._value, "VALUE", tp, record, record.value, _COMES_AGAIN)
                except RecordDeserializationError as error:
                    failure.append((number, error))
                    return
                made.append(ShareRecord._of(hold, key, value, self.acknowledging))

        await self._driver.waiter.offload(read)
        return failure[0] if failure else None

    async def _pass_over(self, hold: Hold, error: RecordDeserializationError, *, is_first: bool) -> None:
        """Handle an unreadable record by poison_policy; raises when the poll has to end before it."""
        # Those before it do not wait for its letter, which may take long.
        if error.is_outage or (self._policy != "skip" and not is_first):
            raise error
        verdict = Verdict.RELEASE if self._policy == "raise" else Verdict.REJECT
        if self._policy == "dead_letter":
            await self._write_letter(hold, error)
        with self._driver.io.lock:
            if hold.stage is Stage.GIVEN:  # else its lock is over, or the session; it comes again
                self._core.fetching.holdings.say(hold, verdict)
                self._core.fetching.send_said()
            self._core.events.append(Note("poison", str(error), {"partition": str(hold.place.tp)}))
        if self._policy == "raise":
            raise error

    async def _write_letter(self, hold: Hold, error: RecordDeserializationError) -> None:
        """Return once the letter is durable. A record that got none comes last: those that are well go on."""
        letters, fetching = self.acknowledging.letters, self._core.fetching
        assert letters is not None, "there is a dead-letter topic"
        with self._driver.io.lock:
            hold.is_worked_on = True
        try:
            await letters.put(hold.place.tp, hold.record.offset, letter_of(error))
        except BaseException:
            with self._driver.io.lock:
                if hold.stage is Stage.GIVEN:
                    fetching.give_back([hold])
                    fetching.ready.rotate(-1)
            raise
        with self._driver.io.lock:
            hold.is_worked_on = False
