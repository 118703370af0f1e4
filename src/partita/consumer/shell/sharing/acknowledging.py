"""Acknowledging single records: calls on a record, the end of its block, dead letters."""

from __future__ import annotations

from typing import Any

from partita.consumer.errors import IllegalStateError
from partita.consumer.sharing.core import ShareCore
from partita.consumer.sharing.holding import VERDICTS, Hold, Stage, Verdict
from partita.consumer.shell.client_driver import ClientDriver
from partita.consumer.shell.dead_letters import Letter, LetterBox, where_from
from partita.wording import Note


class Acknowledging:
    """Shared by the calls of a consumer and its records; takes the core's lock for single steps."""

    def __init__(self, driver: ClientDriver[ShareCore]) -> None:
        values = driver.config.values
        self._driver = driver
        self._core = driver.core
        topic = values["dead_letter_topic"]
        self.letters: LetterBox | None = LetterBox(topic, driver) if topic else None
        self._last_delivery: int = values["dead_letter_deliveries"]

    def say(self, hold: Hold, name: str) -> None:
        """Note an acknowledgement, which is sent with the next poll or commit."""
        if name not in VERDICTS:
            raise ValueError(f"a record is acknowledged as {', '.join(VERDICTS)}, not {name!r}")
        self.need_explicit(f"{hold} as {name}")
        with self._driver.io.lock:
            self._core.fetching.holdings.say(hold, VERDICTS[name])

    def need_explicit(self, what: str) -> None:
        """Raise IllegalStateError in implicit mode."""
        if not self._core.config.is_explicit:
            raise IllegalStateError(
                f"acknowledging {what} needs share_acknowledgement_mode='explicit'; in implicit mode the next poll "
                "accepts the records of the last one"
            )

    def begin(self, hold: Hold) -> None:
        """A block works on the record: its lock is renewed until the block ends."""
        self.need_explicit(f"{hold} by a block")
        with self._driver.io.lock:
            self.keep(hold)
            self._driver.io.step()

    def keep(self, hold: Hold) -> None:
        """Renew the lock of this record, which the next poll leaves alone. Called with the lock held."""
        if hold.stage is not Stage.GIVEN or hold.verdict is not None or hold.is_worked_on:
            state = "another block works on it" if hold.is_worked_on else f"it is {hold.stage.value}"
            raise IllegalStateError(f"{hold} cannot be worked on: {state}; a record is worked on once")
        hold.is_worked_on = True

    def end_here(self, hold: Hold, error: BaseException | None, rejected: tuple[type[Exception], ...]) -> bool:
        """The block has ended; blocks for a dead letter. True if the exception ends here."""
        reason = self._reason_to_bury(hold, error, rejected)
        if reason and self.letters is not None:
            try:
                self.letters.put_here(hold.place.tp, hold.record.offset, _letter(hold, reason))
            except BaseException as failure:
                self.finish(hold, failure)
                raise
        return self.finish(hold, error, rejected, is_buried=bool(reason))

    async def end(self, hold: Hold, error: BaseException | None, rejected: tuple[type[Exception], ...]) -> bool:
        """`end_here` without blocking an event loop."""
        reason = self._reason_to_bury(hold, error, rejected)
        if reason and self.letters is not None:
            try:
                await self._driver.waiter.shielded(self._bury(hold, reason))
            except BaseException as failure:
                self.finish(hold, failure)
                raise
        return self.finish(hold, error, rejected, is_buried=bool(reason))

    async def bury(self, hold: Hold, reason: str) -> None:
        """Have the record durable in the dead-letter topic, then reject it."""
        if self.letters is None:
            raise IllegalStateError("dead_letter needs a dead_letter_topic; give the share consumer one")
        await self._driver.waiter.shielded(self._bury(hold, reason))
        with self._driver.io.lock:
            self._core.fetching.holdings.say(hold, Verdict.REJECT)

    async def _bury(self, hold: Hold, reason: str) -> None:
        assert self.letters is not None, "there is a dead-letter topic"
        await self.letters.put(hold.place.tp, hold.record.offset, _letter(hold, reason))

    def _reason_to_bury(self, hold: Hold, error: BaseException | None, rejected: tuple[type[Exception], ...]) -> str:
        """Why the record is given up for good; empty if it is not."""
        if hold.stage is not Stage.GIVEN or hold.verdict is not None or not isinstance(error, Exception):
            return ""
        if isinstance(error, rejected):
            return repr(error)
        if self.letters is not None and hold.delivery_count >= self._last_delivery:
            return f"delivery {hold.delivery_count} failed: {error!r}"
        return ""

    def finish(
        self,
        hold: Hold,
        error: BaseException | None,
        rejected: tuple[type[Exception], ...] = (),
        *,
        is_buried: bool = False,
    ) -> bool:
        """Say what follows from the end of a block or a handler, and have it sent. True if the exception ends here."""
        with self._driver.io.lock:
            hold.is_worked_on = False
            if hold.stage is Stage.GIVEN:  # else its lock is over, or the consumer is closed
                if hold.verdict is None:
                    said = Verdict.ACCEPT if error is None else Verdict.REJECT if is_buried else Verdict.RELEASE
                    self._core.fetching.holdings.say(hold, said)
                self._core.fetching.send_said()
            if is_buried:
                where = f"; a copy is in {self.letters.topic}" if self.letters is not None else ""
                self._core.events.append(Note("record_rejected", f"{hold} is rejected: {error!r}{where}"))
            self._driver.io.step()
        return error is not None and isinstance(error, rejected)

    def close(self) -> None:
        """Close the producer of the dead letters, if there is one."""
        if self.letters is not None:
            self.letters.close()


def _letter(hold: Hold, reason: str) -> Letter:
    raw: Any = hold.record
    place = where_from(hold.place.tp, hold.record.offset, reason)
    return Letter(raw.key, raw.value, [*raw.headers, *place])
