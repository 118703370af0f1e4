"""What markers say about the rows of a task, and that a digest tells different rows apart."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import UnsupportedVersionError
from partita.net.config import ClientConfig
from partita.net.errors import VersionMismatch
from partita.options import ConfigError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.describe_transactions import DescribedTransaction, DescribeTransactionsResponse
from partita.spark.planning.markers import (
    Digest,
    Duty,
    Marker,
    SinkRefused,
    TaskPlace,
    check_empty,
    check_same,
    duty_of,
)
from partita.spark.settings.options import SinkOptions, parse_sink
from partita.spark.writing.row_digest import with_rows
from partita.spark.writing.sink import TopicArrowWriter, TopicStreamArrowWriter
from partita.spark.writing.task_transaction import TaskTransaction, read_marker

AT_5 = TaskPlace("s", 5, 2)
OWN = Digest(3, 77)
ADVICE = {
    "older": "checkpoint is older",
    "replanned": "this task has no part in it",
    "expired": "set sinkStart=5",
}


@pytest.mark.parametrize(
    ("own", "driver", "starts_with", "outcome"),
    [
        (None, None, None, "expired"),
        (None, None, 5, Duty.WRITE),
        (None, None, 4, "expired"),
        (None, None, 6, "expired"),
        (None, 4, None, Duty.WRITE),
        (4, None, None, Duty.WRITE),
        (2, 4, None, Duty.WRITE),
        (5, 4, None, Duty.COMPARE),
        (5, 5, None, Duty.COMPARE),
        (5, None, None, Duty.COMPARE),
        (4, 5, None, "replanned"),
        (None, 5, 5, "replanned"),
        (6, 5, None, "older"),
        (None, 6, 5, "older"),
        (5, 6, None, "older"),
    ],
)
def test_every_pair_of_markers_has_a_duty(
    own: int | None, driver: int | None, starts_with: int | None, outcome: Duty | str
) -> None:
    markers = (None if own is None else Marker(own, OWN), None if driver is None else Marker(driver))
    if isinstance(outcome, Duty):
        assert duty_of(AT_5, *markers, starts_with=starts_with) is outcome
    else:
        with pytest.raises(SinkRefused, match=f"batch 5, partition 2 of sink 's': .*{ADVICE[outcome]}"):
            duty_of(AT_5, *markers, starts_with=starts_with)


def test_the_first_batch_needs_no_marker() -> None:
    assert duty_of(TaskPlace("s", 0, 0), None, None, starts_with=None) is Duty.WRITE


def test_a_task_without_rows_may_not_have_written_any() -> None:
    check_empty(AT_5, None, None, starts_with=None)
    check_empty(AT_5, Marker(4, OWN), Marker(5), starts_with=None)
    with pytest.raises(SinkRefused, match="3 rows are written already, and the 0 rows"):
        check_empty(AT_5, Marker(5, OWN), None, starts_with=None)
    with pytest.raises(SinkRefused, match="checkpoint is older"):
        check_empty(AT_5, None, Marker(6), starts_with=None)


def test_a_marker_comes_back_as_it_was_committed() -> None:
    for marker in (Marker(0, Digest(0, 0)), Marker(7, Digest(12, (1 << 64) - 1)), Marker(3)):
        assert Marker.of(marker.offset, marker.metadata) == marker
    with pytest.raises(SinkRefused, match="use a new sinkName"):
        Marker.of(1, "somebody else's")


def test_equal_rows_pass_and_others_do_not() -> None:
    check_same(AT_5, Marker(5, OWN), OWN)
    for other in (Digest(2, 77), Digest(3, 78)):
        with pytest.raises(SinkRefused, match="not deterministic"):
            check_same(AT_5, Marker(5, OWN), other)


# Digests

row = st.fixed_dictionaries({
    "key": st.none() | st.binary(max_size=5),
    "value": st.none() | st.binary(max_size=20),
    "partition": st.none() | st.integers(0, 9),
})  # fmt: skip
SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32())])


def digest(rows: list[dict[str, Any]], cut: int | None = None) -> Digest:
    total = Digest()
    for part in (rows[:cut], rows[cut:]) if cut is not None else (rows,):
        total = with_rows(total, pa.RecordBatch.from_pylist(part, SCHEMA))
    return total


@given(st.lists(row, max_size=20), st.randoms(), st.integers(0, 20))
def test_a_digest_knows_no_order_and_no_cuts(rows: list[dict[str, Any]], random: Any, cut: int) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert digest(shuffled, cut) == digest(rows)


@given(st.lists(row, max_size=8), st.lists(row, max_size=8))
def test_other_rows_have_another_digest(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    rows, other_rows = ([repr([row[name] for name in SCHEMA.names]) for row in rows] for rows in (one, other))
    same = sorted(rows) == sorted(other_rows)
    assert (digest(one) == digest(other)) == same


def test_every_column_counts() -> None:
    plain = {"key": pa.array([b"k"]), "value": pa.array(["v"])}
    stamp = pa.array([1], pa.timestamp("us", "UTC"))
    header = pa.array(
        [[{"key": "h", "value": b"1"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    tables = [
        plain,
        plain | {"topic": pa.array(["t"])},
        plain | {"topic": pa.array(["u"])},
        plain | {"timestamp": stamp},
        plain | {"headers": header},
        plain | {"value": pa.array([None], pa.string())},
        {"key": pa.array([b""]), "value": pa.array(["kv"])},
        {"key": pa.array([b"kv"]), "value": pa.array([""])},
    ]
    assert len({with_rows(Digest(), pa.record_batch(columns)) for columns in tables}) == len(tables)
    assert with_rows(Digest(), pa.record_batch(plain | {"other": pa.array([1])})) == with_rows(
        Digest(), pa.record_batch(plain)
    ), "columns that are not written do not count"


def test_a_slice_of_rows_is_hashed_as_itself() -> None:
    rows = pa.record_batch({"value": pa.array([f"{n}" for n in range(100)])})
    assert with_rows(with_rows(Digest(), rows.slice(0, 37)), rows.slice(37)) == with_rows(Digest(), rows)


# Options


def options(**given: str) -> SinkOptions:
    return parse_sink({"kafka.bootstrap.servers": "b:1", "topic": "t", **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exactlyOnce": "true"}, "needs a sinkName"),
        ({"exactlyOnce": "true", "sinkName": " "}, "needs a sinkName"),
        ({"exactlyOnce": "true", "sinkName": "s", "kafka.acks": "1"}, "needs kafka.acks=all"),
        ({"exactlyOnce": "true", "sinkName": "s", "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence"),
        ({"sinkName": "s"}, "belong to exactlyOnce=true"),
        ({"sinkStart": "7"}, "belong to exactlyOnce=true"),
        ({"exactlyOnce": "true", "sinkName": "s", "sinkStart": "new"}, "sinkStart must be"),
    ],
)
def test_options_at_odds_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        options(**given)


def test_only_a_stream_can_write_exactly_once() -> None:
    named = options(exactlyOnce="true", sinkName="s")
    assert (named.sink_name, named.starts_with) == ("s", None)
    with pytest.raises(ConfigError, match="needs a streaming query"):
        TopicArrowWriter(named)
    with pytest.raises(ConfigError, match="needs a streaming query"):
        TopicStreamArrowWriter(named).write(iter([]))
    with pytest.raises(ConfigError, match=r"kafka.transaction.timeout.ms must be a whole number"):
        TopicStreamArrowWriter(options(exactlyOnce="true", sinkName="s", **{"kafka.transaction.timeout.ms": "long"}))


def test_brokers_before_release_2_5_are_refused() -> None:
    """They cannot wait for the offsets of open transactions, so a marker could be missed."""

    class OldConnection:
        def version_for(self, request: object, max_version: int) -> int:
            return 6

    class OldCluster:
        async def coordinator_connection(self, group: str) -> OldConnection:
            return OldConnection()

        async def retry(self, once: Any, timeout_ms: int | None = None) -> Any:
            return await once()

    with pytest.raises(UnsupportedVersionError, match=r"needs brokers of release 2\.5 or later"):
        asyncio.run(read_marker(OldCluster(), "g", timeout_ms=1))  # type: ignore[arg-type]  # what it asks of a cluster


@pytest.mark.parametrize(
    ("told", "is_at_rest"),
    [
        (VersionMismatch("served from release 3.0 on"), False),
        (DescribedTransaction(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), True),
        (DescribedTransaction(transaction_state="CompleteCommit"), True),
        (DescribedTransaction(transaction_state="CompleteAbort"), True),
        (DescribedTransaction(transaction_state="Empty"), False),
        (DescribedTransaction(transaction_state="Ongoing"), False),
        (DescribedTransaction(transaction_state="PrepareCommit"), False),
    ],
)
def test_only_an_id_whose_end_is_in_every_log_is_at_rest(
    told: DescribedTransaction | VersionMismatch, is_at_rest: bool
) -> None:
    """Empty: another attempt has the id and may begin. Older brokers cannot say."""

    class Connection:
        async def send(self, request: object) -> DescribeTransactionsResponse:
            if isinstance(told, VersionMismatch):
                raise told
            return DescribeTransactionsResponse(transaction_states=[told])

    class OneCluster:
        config = ClientConfig()

        async def coordinator_connection(self, transactional_id: str, key_type: int) -> Connection:
            assert (transactional_id, key_type) == (AT_5.name, 1)
            return Connection()

        async def retry(self, once: Any, timeout_ms: int | None = None) -> Any:
            return await once()

    transaction = TaskTransaction(OneCluster(), AT_5.name, timeout_ms=1000, max_block_ms=1)  # type: ignore[arg-type]  # what it asks of a cluster
    assert asyncio.run(transaction.is_at_rest()) is is_at_rest
