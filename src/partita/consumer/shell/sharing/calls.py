"""The calls of a share consumer that never wait: both faces, blocking and asyncio, derive from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, Self

from partita.consumer.errors import IllegalStateError
from partita.consumer.records import K, V
from partita.consumer.sharing.core import ShareCore
from partita.consumer.sharing.holding import VERDICTS
from partita.consumer.sharing.settings import ShareConfig
from partita.consumer.shell import arguments
from partita.consumer.shell.client_driver import ClientDriver, name_of_client, new_member_id
from partita.consumer.shell.io_thread import IoThread
from partita.consumer.shell.sharing import closing
from partita.consumer.shell.sharing.acknowledging import Acknowledging
from partita.consumer.shell.sharing.delivery import ShareDelivery
from partita.consumer.shell.sharing.records import ShareRecord
from partita.consumer.shell.waiting import Waiter
from partita.lazy import later
from partita.net.faces import not_pickled
from partita.now import Clock
from partita.offsets.committable import partition
from partita.offsets.topic_partition import TopicPartition
from partita.references import resolve_options
from partita.wording import Note

if TYPE_CHECKING:
    import pyarrow as pa

    from partita.consumer.shell.sharing import columns
else:
    columns = later("partita.consumer.shell.sharing.columns")

Acknowledgement = Literal["accept", "release", "reject", "renew"]
Config = Mapping[str, Any] | None


def checked(config: Config, options: Mapping[str, Any], key: object, value: object) -> ShareConfig:
    """The options of a new share consumer."""
    given = {"key_deserializer": key, "value_deserializer": value}
    chosen = {name: one for name, one in given.items() if one is not None}
    return ShareConfig.of(resolve_options(config), **resolve_options(options), **chosen)


def driver_of(
    config: ShareConfig, waiter: Waiter, uniform: Callable[[float, float], float], *, strict: bool, clock: Clock | None
) -> ClientDriver[ShareCore]:
    """Core, I/O thread and callbacks of a new share consumer."""
    config.client_id = config.client_id or name_of_client(config)
    core = ShareCore(config, uniform, new_member_id())
    return ClientDriver(config, core, waiter, strict=strict, clock=clock, make_io=IoThread)


class ShareCalls(Generic[K, V]):
    """Calls to subscribe and acknowledge, and to look at known state."""

    __reduce__ = not_pickled

    @classmethod
    def _over(cls, driver: ClientDriver[ShareCore], delivery: ShareDelivery | None = None) -> Self:
        consumer = cls.__new__(cls)
        consumer._start(driver, delivery)
        return consumer

    def _start(self, driver: ClientDriver[ShareCore], delivery: ShareDelivery | None = None) -> None:
        self._driver = driver
        self._core = driver.core
        if delivery is None:
            delivery = ShareDelivery(driver, Acknowledging(driver))
            closing.opened(driver)
        self._delivery = delivery
        self._acknowledging = delivery.acknowledging

    def subscribe(self, topics: Iterable[str] | str) -> None:
        """Take records of these topics, which the members of the group share. Replaces an earlier subscription.

        Joining happens in `poll`. No topics at all: see `unsubscribe`.
        """
        names = arguments.topic_names(topics)
        if not names:
            raise ValueError("subscribe takes at least one topic; unsubscribe() ends a subscription")
        with self._driver.owned(), self._driver.io.lock:
            self._core.membership.subscribe(frozenset(names))
            self._driver.mark_stale()

    def subscription(self) -> set[str]:
        """The topics asked for."""
        with self._driver.owned(), self._driver.io.lock:
            return set(self._core.membership.topics)

    def acknowledge(
        self,
        record: ShareRecord[Any, Any] | tuple[str, int, int] | pa.RecordBatch,
        acknowledgement: Acknowledgement = "accept",
    ) -> None:
        """Say what became of a record: accept, release, reject or renew; of several words the last one counts.

        `record` may be (topic, partition, offset), or a batch of `poll_arrow` or some of its rows. It is sent with the
        next poll or commit. Raises IllegalStateError in implicit mode, and for a record that this consumer does not
        hold.
        """
        if acknowledgement not in VERDICTS:
            raise ValueError(f"a record is acknowledged as {', '.join(VERDICTS)}, not {acknowledgement!r}")
        with self._driver.owned(), self._driver.io.lock:
            if isinstance(record, ShareRecord | tuple):
                self._acknowledging.say(self._held(record), acknowledgement)
                return
            self._acknowledging.need_explicit("a batch")
            for hold in [self._held(place) for place in columns.places(record)]:
                self._acknowledging.say(hold, acknowledgement)

    def keep(self, records: Iterable[ShareRecord[Any, Any]] | pa.RecordBatch) -> None:
        """Renew the locks of these records until each is acknowledged, so that they may outlast polls (explicit mode).

        `records` is the result of a poll, records of it, or a batch of `poll_arrow`. It holds as long as the program
        comes back within max_poll_interval_ms. Raises IllegalStateError for a record that this consumer does not hold.
        """
        self._acknowledging.need_explicit("records later")
        with self._driver.owned(), self._driver.io.lock:
            rows = columns.places(records) if hasattr(records, "schema") else records
            for hold in [self._held(row) for row in rows]:
                self._acknowledging.keep(hold)
            self._driver.step()

    def _held(self, record: ShareRecord[Any, Any] | tuple[str, int, int]) -> Any:
        if isinstance(record, ShareRecord):
            if record._acknowledging is not self._acknowledging:
                raise IllegalStateError(f"{record._hold} is held by another share consumer; acknowledge it there")
            return record._hold
        if len(record) != 3:
            raise TypeError(f"a record of this consumer or (topic, partition, offset) is expected, not {record!r}")
        offset = arguments.whole_number(record[2], "an offset")
        self._acknowledging.need_explicit(f"record {offset} of {record[0]}-{record[1]}")
        return self._core.fetching.holdings.find(partition((record[0], record[1]), "acknowledge"), offset)

    def commit_async(self) -> None:
        """Send what was acknowledged, without waiting; in implicit mode the records of the last poll are accepted.

        `on_acknowledged` hears what came of it.
        """
        with self._driver.owned(), self._driver.io.lock:
            self._core.commit()
            self._driver.step()

    def on_acknowledged(self, callback: Callable[[dict[TopicPartition, list[int]], Any], Any] | None) -> None:
        """Call this inside poll and commit with the offsets whose acknowledgement was answered, and the error or None.

        (Java: setAcknowledgementCommitCallback.)
        """
        if callback is not None and not callable(callback):
            raise TypeError(f"on_acknowledged takes a function of offsets and error, or None, not {callback!r}")
        with self._driver.io.lock:
            self._core.fetching.callback = callback

    def lock_timeout_ms(self) -> int | None:
        """How long a record is locked for the member that got it, as the broker says; None before the first records.

        (Java: acquisitionLockTimeoutMs.)
        """
        return self._core.fetching.lock_ms or None

    def held(self) -> dict[TopicPartition, list[int]]:
        """The offsets of the records that this consumer holds, handed out or not."""
        found: dict[TopicPartition, list[int]] = {}
        with self._driver.io.lock:
            for tp, offset in sorted(self._core.fetching.holdings.all):
                found.setdefault(tp, []).append(offset)
        return found

    def wakeup(self) -> None:
        """Make the current or next waiting call raise WakeupError, once. Any thread and signal handler may call it."""
        self._driver.wakeup()

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in as this user at new connections and when a login is renewed (PLAIN, SCRAM). From any thread."""
        self._driver.config.values["security"].set_login(username, password)

    def on_note(self, heard: Callable[[Note], Any] | None) -> None:
        """Call this with every Note: acknowledgements that failed, poison records, outages."""
        self._driver.on_note = heard


def not_while_pooled(delivery: ShareDelivery) -> None:
    """Raise IllegalStateError if workers take the records."""
    if delivery.is_pooled:
        raise IllegalStateError("workers take the records of this consumer; do not poll it while work() runs")
