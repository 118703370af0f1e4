"""TX-M02, TX-M04: records of `__transaction_state` as Kafka's coordinator writes and loads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partita.protocol.primitives import MalformedRequest
from partita.transactions.contract import Record
from partita.transactions.log_records import read_record, record_of
from partita.transactions.model import STATES_BY_TEXT, State, Transaction
from support.every_case import every_case

VECTORS = Path(__file__).parents[2] / "vectors"
CASES = [json.loads(line) for line in (VECTORS / "transaction-log-written.jsonl").read_text().splitlines()]
WRITTEN = [case for case in CASES if "given" in case]


def read(transactional_id: str, given: dict[str, Any]) -> Transaction:
    return Transaction(
        transactional_id=transactional_id,
        producer_id=given["producer_id"],
        previous_producer_id=given["previous_producer_id"],
        next_producer_id=given.get("next_producer_id", -1),
        epoch=given["epoch"],
        timeout_ms=given["timeout_ms"],
        state=STATES_BY_TEXT[given["state"]],
        partitions=frozenset((name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in given["partitions"]),
        start_ms=given["start_ms"],
        updated_ms=given["updated_ms"],
        client_version=given["client_version"],
    )


def record_in(case: dict[str, Any]) -> Record:
    return Record(
        bytes.fromhex(case["key_hex"]), None if case["value_hex"] is None else bytes.fromhex(case["value_hex"])
    )


@pytest.mark.case("TX-M02", "TX-M04", "TX-B06", "TX-T01")
@every_case("case", WRITTEN, lambda case: f"v{case['transaction_version']}-{case['given']['state']}")
def test_what_we_write_is_what_kafka_writes(case: dict[str, Any]) -> None:
    transaction, level = read(case["id"], case["given"]), case["transaction_version"]
    if "refused" in case:
        stored = record_of(transaction, level)  # Kafka refuses, and the id stays as it is; we take the next version
        loaded = read_record(stored)
        assert loaded is not None
        assert (stored.value or b"")[:2] == b"\0\1"
        assert loaded.transaction == transaction
        return
    ours, kafkas = record_of(transaction, level), record_in(case)
    assert ours.key == kafkas.key
    assert ours.value is not None
    if ours.value != kafkas.value:  # the order of partitions follows Java's hash sets
        assert kafkas.value is not None
        assert (len(ours.value), read_record(ours)) == (len(kafkas.value), read_record(kafkas))


@pytest.mark.case("TX-M04", "TX-M08", "TX-N12")
@every_case("case", [case for case in CASES if "loaded" in case], lambda case: str(case["what"]))
def test_what_we_load_is_what_kafka_loads(case: dict[str, Any]) -> None:
    wanted = case["loaded"]
    if "fails" in wanted:
        with pytest.raises(MalformedRequest):
            read_record(record_in(case))
        return
    loaded = read_record(record_in(case))
    if "skipped" in wanted:
        assert loaded is None
        return
    assert loaded is not None
    if "removed" in wanted:
        assert loaded == (wanted["removed"], None)
        return
    assert loaded.transaction is not None
    found = replace(loaded.transaction, next_producer_id=-1)  # the vectors do not tell it
    assert (loaded.transactional_id, found) == (wanted["id"], read(wanted["id"], wanted["metadata"]))


@pytest.mark.case("TX-N03")
def test_the_last_epoch_survives_a_load() -> None:
    """KAFKA-20357: a repeated InitProducerId is recognised after a failover."""
    stored = Transaction("t", 7, 60_000, 1, epoch=4, last_epoch=3, state=State.EMPTY)
    loaded = read_record(record_of(stored, 2))
    assert loaded is not None
    assert loaded.transaction == stored


def test_partitions_are_written_by_topic() -> None:
    added = frozenset({("b", 1), ("a", 2), ("a", 0)})
    stored = Transaction("t", 7, 60_000, 1, epoch=4, state=State.ONGOING, partitions=added, start_ms=5)
    loaded = read_record(record_of(stored, 1))
    assert loaded is not None
    assert loaded.transaction == stored
    again = replace(stored, partitions=frozenset(sorted(added, reverse=True)))
    assert record_of(again, 1) == record_of(stored, 1)
