"""TX-M06: 400 histories of a partition under idempotent and transactional producers, as Kafka took them."""

from __future__ import annotations

import gzip
import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from partita.log.log_config import Durability, LogConfig
from partita.log.partition_log import AppendRefused, PartitionLog
from partita.log.segment import file_name
from partita.log.storage import MemoryStorage
from partita.protocol.error_codes import ErrorCode
from partita.records.batch import ABORT, COMMIT, build_marker
from support.every_case import every_case
from support.log.logs import DIRECTORY, at, batch, open_log

VECTORS = Path(__file__).parents[2] / "vectors"
LARGE = LogConfig(segment_bytes=1 << 30)
CODES = {
    "OutOfOrderSequenceException": ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    "InvalidProducerEpochException": ErrorCode.INVALID_PRODUCER_EPOCH,
    "InvalidTxnStateException": ErrorCode.INVALID_TXN_STATE,
    "TransactionCoordinatorFencedException": ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}
STATE = ("end", "high_watermark", "last_stable_offset", "producers", "aborted")


def load() -> list[dict[str, Any]]:
    with gzip.open(VECTORS / "transaction-partition.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


HISTORIES = load()


def state_of(log: PartitionLog) -> dict[str, Any]:
    """The log in the words of the vectors."""
    producers = [
        {
            "producer_id": producer_id,
            "epoch": known.epoch,
            "last_sequence": known.last_sequence,
            "coordinator_epoch": known.coordinator_epoch,
            "transaction_start": -1 if known.transaction_start is None else known.transaction_start,
        }
        for producer_id, known in sorted(log.producers.producers.items())
    ]
    aborted = [
        {
            "producer_id": entry.producer_id,
            "first": entry.first_offset,
            "last": entry.last_offset,
            "last_stable_offset": entry.last_stable_offset,
        }
        for entry in log.producers.aborted
    ]
    found = (log.log_end_offset, log.high_watermark, log.last_stable_offset, producers, aborted)
    return dict(zip(STATE, found, strict=True))


def run(log: PartitionLog, step: dict[str, Any]) -> dict[str, Any]:
    """Do the step; return its outcome in the words of the vectors."""
    if step["do"] == "high_watermark":
        return {}
    fields = {"producer_id": step["producer_id"], "producer_epoch": step["epoch"]}
    if step["do"] == "marker":
        kind = COMMIT if step["commit"] else ABORT
        written = build_marker(kind, timestamp=0, coordinator_epoch=step["coordinator_epoch"], **fields)
    else:
        values = ["v"] * step["count"]
        written = batch(*values, base_sequence=step["sequence"], is_transactional=step["transactional"], **fields)
    try:
        appended = log.append(written, 0, at(0), transaction_version=step.get("transaction_version", 0))
    except AppendRefused as error:
        return {"refused": error.code}
    duplicate = {"duplicate": True} if appended.is_duplicate else {}
    return {"base_offset": appended.base_offset, **duplicate}


def outcome_in(step: dict[str, Any]) -> dict[str, Any]:
    if "refused" in step:
        return {"refused": CODES[step["refused"]["class"].rpartition(".")[2]]}
    return {name: step[name] for name in ("base_offset", "duplicate") if name in step}


@pytest.mark.case("TX-M06", "TX-H03", "TX-H05", "TX-H06", "TX-I05", "TX-I06", "TX-I08", "TX-J13")
@every_case("history", HISTORIES, lambda history: str(history["seed"]))
def test_every_step_leads_where_it_leads_in_kafka(history: dict[str, Any]) -> None:
    log = open_log(config=LARGE, durability=Durability.SYNC)
    for number, step in enumerate(history["steps"]):
        assert run(log, step) == outcome_in(step), (number, step)
        log.high_watermark = step["high_watermark"]
        assert state_of(log) == {name: step[name] for name in STATE}, (number, step)
    for wanted in history["aborted_in_range"]:  # they begin with the log, whatever "from" says, in the markers' order
        found = log.producers.aborted_between(0, wanted["to"])
        assert [[entry.producer_id, entry.first_offset] for entry in found] == sorted(
            wanted["aborted"], key=itemgetter(1)
        )


@pytest.mark.case("TX-M06")
@every_case("history", HISTORIES, lambda history: str(history["seed"]))
def test_recovery_reads_from_kafkas_batches_what_kafka_reads(history: dict[str, Any]) -> None:
    """KAFKA-6003: what is rebuilt equals what was known before."""
    storage = MemoryStorage()
    storage.make_dir(DIRECTORY)
    file = storage.open(f"{DIRECTORY}/{file_name(0)}", create=True)
    file.append([bytes.fromhex(history["log_hex"])])
    file.close()
    log = open_log(storage, LARGE, was_clean=False)
    log.high_watermark = history["recovered"]["high_watermark"]
    assert state_of(log) == {name: history["recovered"][name] for name in STATE}
