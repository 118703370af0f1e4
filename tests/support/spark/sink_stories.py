"""The failure table of the sink that writes exactly once, each row told with the sink's own tasks and no Spark.

A story takes a bootstrap address of Apache Kafka or of our own broker. Tasks are called as Spark calls them; a worker
that is killed is a link whose calls stop working.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from partita import Admin
from partita.errors import FatalTransactionError, KafkaError
from partita.offsets.topic_partition import GroupMetadata
from partita.spark.cluster.broker_link import BrokerLink, link_to
from partita.spark.planning.markers import SinkRefused, TaskPlace
from partita.spark.settings.options import SinkOptions, parse_sink
from partita.spark.writing.exactly_once import batch_is_complete, write_once
from partita.spark.writing.rows_out import RowsWritten
from support.producer.transaction_stories import fresh, producer_of, seen, topic_of

Story = Callable[[str], None]


class Killed(BaseException):
    """What a killed worker does: nothing more."""


class DyingLink(BrokerLink):
    """Works for some calls, then never again. `is_lost`: the last one is carried out, and nobody hears its answer."""

    def __init__(self, link: BrokerLink, calls: int, *, is_lost: bool = False) -> None:
        self._link = link
        self.cluster = link.cluster
        self._left = calls
        self._is_lost = is_lost

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """As the link, while it lives."""
        self._left -= 1
        if self._left >= 0:
            return self._link.submit(work)
        if self._left == -1 and self._is_lost:
            self._link.submit(work).result()
        else:
            work.close()
        raise Killed


class Sink:
    """A sink of its own: one topic of two partitions, one name."""

    def __init__(self, bootstrap: str, **options: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic_of(bootstrap, 2)
        self.name = fresh("sink")
        self.options = self.with_options(**options)
        self.link = link_to(self.options.client)

    def with_options(self, **options: str) -> SinkOptions:
        plain = {"kafka.bootstrap.servers": self.bootstrap, "topic": self.topic, "kafka.retry.backoff.ms": "20"}
        return parse_sink({**plain, "exactlyOnce": "true", "sinkName": self.name, **options})

    def task(
        self,
        batch: int,
        values: Iterable[str] | Iterator[pa.RecordBatch],
        partition: int = 0,
        link: BrokerLink | None = None,
        options: SinkOptions | None = None,
    ) -> RowsWritten:
        """One attempt of a task."""
        rows = values if isinstance(values, Iterator) else iter([table(values)])
        return write_once(link or self.link, options or self.options, TaskPlace(self.name, batch, partition), rows)

    def complete(self, batch: int) -> None:
        """Spark's call on the driver when all tasks of a batch have answered."""
        batch_is_complete(self.link, self.options, batch, iter([None]))

    def seen(self) -> list[str]:
        return seen(self.bootstrap, self.topic, partitions=2)


def table(values: Iterable[str]) -> pa.RecordBatch:
    given = list(values)
    return pa.record_batch({"value": pa.array(given, pa.string()), "key": pa.array(given, pa.string())})


def killed_at_every_step(bootstrap: str) -> None:
    """A task that dies before a step, or behind it unheard, is repeated: every row once. (EndTxn's answer included)"""
    sink = Sink(bootstrap)
    expected: list[str] = []
    batch = 0
    for is_lost in (False, True):
        for calls in range(40):
            values = [f"{batch}-{n}" for n in range(3)]
            rows = iter([table(values[:1]), table(values[1:])])
            expected += values
            with suppress(Killed):
                sink.task(batch, rows, link=DyingLink(sink.link, calls, is_lost=is_lost))
                calls = -1
            assert sink.task(batch, values).rows == 3
            sink.complete(batch)
            batch += 1
            if calls < 0:
                break
        else:
            raise AssertionError("a task has no end")
    assert sink.seen() == sorted(expected)


def a_speculative_copy_beside(bootstrap: str) -> None:
    """Whoever takes the id later wins; the other one fails, and its repetition finds the marker."""
    sink = Sink(bootstrap)
    second: list[RowsWritten] = []

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(["a"])
        second.append(sink.task(0, ["a", "b"]))
        yield table(["b"])

    with pytest.raises((FatalTransactionError, KafkaError)):
        sink.task(0, rows())
    assert [written.rows for written in second] == [2]
    assert sink.task(0, ["a", "b"]).rows == 2
    assert sink.seen() == ["a", "b"]


def copies_at_the_same_time(bootstrap: str) -> None:
    """Six copies of a task race: at least one says that the rows are written, and they are there once."""
    sink = Sink(bootstrap)
    done: list[RowsWritten] = []

    def run() -> None:
        with suppress(KafkaError, TimeoutError):
            done.append(sink.task(0, [f"{n}" for n in range(50)]))

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sink.task(0, [f"{n}" for n in range(50)]).rows == 50
    assert sink.seen() == sorted(f"{n}" for n in range(50))


def a_zombie_of_an_old_run(bootstrap: str) -> None:
    """It is fenced by newer attempts; one that wakes later reads that its batch is over, and stops."""
    sink = Sink(bootstrap)
    sink.task(0, ["0"])
    sink.complete(0)

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(["1"])
        sink.task(1, ["1"])
        sink.complete(1)
        sink.task(2, ["2"])
        yield table([])

    with pytest.raises(KafkaError):
        sink.task(1, rows())
    with pytest.raises(SinkRefused, match="batch 2 is written already"):
        sink.task(1, ["1"])
    assert sink.seen() == ["0", "1", "2"]


def a_driver_that_dies(bootstrap: str) -> None:
    """In the middle of a batch, behind its tasks, behind the sink's commit: the replay doubles nothing."""
    sink = Sink(bootstrap)
    sink.task(0, ["a"], partition=0)
    for _ in range(2):
        assert sink.task(0, ["a"], partition=0).rows == 1
        assert sink.task(0, ["b"], partition=1).rows == 1
    sink.complete(0)
    assert sink.task(0, ["a"], partition=0).rows == 1
    assert sink.task(0, ["b"], partition=1).rows == 1
    sink.complete(0)
    assert sink.task(1, ["c"], partition=1).rows == 1
    sink.complete(1)
    assert sink.seen() == ["a", "b", "c"]


def an_older_checkpoint(bootstrap: str) -> None:
    """A query that begins again on a sink that is further is refused before it writes, by its tasks and its driver."""
    sink = Sink(bootstrap)
    for batch in range(3):
        sink.task(batch, [f"{batch}"])
        sink.complete(batch)
    with pytest.raises(SinkRefused, match="checkpoint is older"):
        sink.task(0, ["0"])
    with pytest.raises(SinkRefused, match="checkpoint is older"):
        sink.task(1, ["new"], partition=7)
    with pytest.raises(SinkRefused, match="checkpoint is older"):
        sink.complete(0)
    assert sink.seen() == ["0", "1", "2"]


def a_batch_that_was_replanned(bootstrap: str) -> None:
    """Equal rows are passed over in any order and any cut, others are written, and unequal ones fail the query."""
    sink = Sink(bootstrap)
    sink.task(0, ["a", "b", "c"], partition=0)
    assert sink.task(0, iter([table(["c", "a"]), table(["b"])]), partition=0).rows == 3
    assert sink.task(0, ["d"], partition=1).rows == 1
    for other in (["a", "b"], ["a", "b", "x"], ["a", "b", "c", "c"], []):
        with pytest.raises(SinkRefused, match="3 rows are written already"):
            sink.task(0, other, partition=0)
    assert sink.task(0, [], partition=2).rows == 0
    sink.complete(0)
    with pytest.raises(SinkRefused, match="the batch is complete, and this task has no part in it"):
        sink.task(0, ["e"], partition=2)
    assert sink.seen() == ["a", "b", "c", "d"]


def markers_that_expired(bootstrap: str) -> None:
    """Without any marker a later batch is refused, unless the user says that the sink begins with this very one."""
    sink = Sink(bootstrap)
    sink.task(0, ["a"])
    sink.complete(0)
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.delete_groups([f"partita-{sink.name}-0", f"partita-{sink.name}"])
    with pytest.raises(SinkRefused, match="set sinkStart=1"):
        sink.task(1, ["b"])
    assert sink.task(1, ["b"], options=sink.with_options(sinkStart="1")).rows == 1
    assert sink.task(2, ["c"]).rows == 1
    assert sink.seen() == ["a", "b", "c"]


def a_task_that_fails(bootstrap: str) -> None:
    """Its transaction is aborted at once: nobody has to wait for the timeout."""
    sink = Sink(bootstrap)

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(["a"])
        yield table(["b"])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sink.task(0, rows())
    with Admin(bootstrap_servers=bootstrap) as admin:
        (told,) = admin.describe_transactions(f"partita-{sink.name}-0")
    assert told.state in ("PrepareAbort", "CompleteAbort", "Empty")
    sink.task(0, ["a", "b"])
    assert sink.seen() == ["a", "b"]


def an_attempt_without_rows(bootstrap: str) -> None:
    """It ends a killed attempt that holds the marker back, and agrees only with a task that wrote nothing."""
    sink = Sink(bootstrap)
    for calls in range(3, 40):
        with suppress(Killed):
            sink.task(0, ["a"], link=DyingLink(sink.link, calls))
            break
        assert sink.task(0, []).rows == 0
    with pytest.raises(SinkRefused, match="1 rows are written already, and the 0 rows"):
        sink.task(0, [])
    assert sink.seen() == ["a"]


def a_first_marker_on_its_way(bootstrap: str) -> None:
    """Rows and first marker of another attempt are pending: a task without rows ends it, or knows that it is done."""
    sink = Sink(bootstrap)
    unnamed = parse_sink({"kafka.bootstrap.servers": bootstrap, "exactlyOnce": "true", "sinkName": sink.name})
    for partition, options in enumerate((sink.options, unnamed)):
        name = TaskPlace(sink.name, 0, partition).name
        with producer_of(bootstrap, name) as zombie:
            zombie.begin_transaction()
            zombie.send(sink.topic, "a")
            zombie.send_offsets_to_transaction({(sink.topic, 0): 1}, GroupMetadata(name))
            assert sink.task(0, [], partition, options=options).rows == 0
            with pytest.raises(KafkaError):
                zombie.commit_transaction()
        assert sink.task(0, [], partition, options=options).rows == 0
    assert sink.seen() == []


def rows_that_name_their_topics(bootstrap: str) -> None:
    """The marker follows the first topic; the newest one counts."""
    sink = Sink(bootstrap)
    other = topic_of(bootstrap)
    options = parse_sink({"kafka.bootstrap.servers": bootstrap, "exactlyOnce": "true", "sinkName": sink.name})

    def rows(topics: list[str]) -> Iterator[pa.RecordBatch]:
        return iter([pa.record_batch({"topic": topics, "value": [f"to {t}" for t in topics]})])

    for batch, topics in enumerate(([sink.topic, other], [other], [sink.topic])):
        for _ in range(2):
            written = sink.task(batch, rows(topics), options=options)
            assert written.rows == len(topics)
        batch_is_complete(sink.link, options, batch, iter([written.topic]))
    assert sink.seen() == [f"to {sink.topic}"] * 2
    assert seen(bootstrap, other) == [f"to {other}"] * 2


STORIES: tuple[Story, ...] = (
    killed_at_every_step,
    a_speculative_copy_beside,
    copies_at_the_same_time,
    a_zombie_of_an_old_run,
    a_driver_that_dies,
    an_older_checkpoint,
    a_batch_that_was_replanned,
    markers_that_expired,
    a_task_that_fails,
    an_attempt_without_rows,
    a_first_marker_on_its_way,
    rows_that_name_their_topics,
)


def a_task_that_is_too_slow(bootstrap: str) -> None:
    """The broker aborts it, its commit fails, and the repetition writes. For a cluster that looks every second."""
    sink = Sink(bootstrap, **{"kafka.transaction.timeout.ms": "500"})

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(["a"])
        yield table(["b"])
        while admin.describe_transactions(f"partita-{sink.name}-0")[0].state != "CompleteAbort":
            pass
        yield table(["c"])

    with Admin(bootstrap_servers=bootstrap) as admin, pytest.raises(KafkaError):
        sink.task(0, rows())
    assert sink.task(0, ["a", "b", "c"]).rows == 3
    assert sink.seen() == ["a", "b", "c"]


def a_broker_that_restarts(bootstrap: str, restart: Callable[[], object]) -> None:
    """In the middle of a task: the task goes on, or its repetition writes. Every row is there once."""
    sink = Sink(bootstrap)

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(["a"])
        yield table(["b"])
        restart()
        yield table(["c"])

    with suppress(KafkaError):
        sink.task(0, rows())
    assert sink.task(0, ["a", "b", "c"]).rows == 3
    sink.complete(0)
    assert sink.seen() == ["a", "b", "c"]
