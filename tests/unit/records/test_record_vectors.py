"""Reading and accepting record batches: every answer of Kafka's own classes, all 832 of them."""

from collections.abc import Iterator
from typing import Any

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Buffer
from partita.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    InvalidBatch,
    RecordReader,
    check_crc,
    cut,
    payload_of,
    read_header,
    restamp,
)
from partita.records.control import control_type, coordinator_epoch
from partita.records.header import CODEC_NAMES
from partita.records.legacy import read_legacy
from partita.records.opened.inspect import RecordChecks, check_records
from partita.records.validate import check_produced
from support.every_case import every_case
from support.vectors import record_batches as record_vectors

VECTORS = record_vectors.load()
READABLE = [vector for vector in VECTORS if "hex" in vector]
PRODUCED = [vector for vector in VECTORS if "append" in vector]
TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
CONTROL_TYPES = {0: "ABORT", 1: "COMMIT", 2: "LEADER_CHANGE"}


def name(vector: dict[str, Any]) -> str:
    return f"{vector['id']}-{vector['case']}".replace(" ", "_")


def header_fields(header: BatchHeader) -> dict[str, Any]:
    fields = {
        "magic": header.magic,
        "size": header.size_in_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "next_offset": header.next_offset,
        "crc": header.crc,
        "codec": CODEC_NAMES[header.codec] if header.codec < 5 else header.codec,
        "timestamp_type": TIMESTAMP_TYPES[header.timestamp_type],
        "max_timestamp": header.max_timestamp,
    }
    if header.magic < 2:
        return fields
    return fields | {
        "leader_epoch": header.partition_leader_epoch,
        "base_timestamp": header.base_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "count": header.records_count,
        "delete_horizon_ms": header.delete_horizon_ms,
    }


def control_fields(key: Any, value: Any) -> Iterator[tuple[str, Any]]:
    try:
        kind = control_type(key)
        yield "control_type", CONTROL_TYPES.get(kind, "UNKNOWN")
        if kind in (0, 1):
            yield "coordinator_epoch", coordinator_epoch(value)
    except InvalidBatch:
        yield "control_error", True


def as_hex(value: object) -> str | None:
    assert value is None or isinstance(value, bytes)
    return None if value is None else value.hex()


def read(data: bytes) -> tuple[list[dict[str, Any]], InvalidBatch | None]:
    """What our reader finds, in the vectors' form, and what stopped it."""
    batches: list[dict[str, Any]] = []
    try:
        for magic, entry in cut(data):
            payload: Buffer
            if magic < 2:
                header, payload = read_legacy(entry)
            else:
                header = read_header(entry)
                check_crc(entry)
                payload = payload_of(header, entry)
            records: list[dict[str, Any]] = []
            batches.append(header_fields(header) | {"records": records})
            reader = RecordReader(header, payload)
            while taken := reader.take(7):
                for record in taken:
                    fields: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
                    fields |= {"key": as_hex(record.key), "value": as_hex(record.value)}
                    if record.headers:
                        fields["headers"] = [[key, as_hex(value)] for key, value in record.headers]
                    if header.is_control:
                        fields |= dict(control_fields(record.key, record.value))
                    records.append(fields)
    except InvalidBatch as fault:
        return batches, fault
    return batches, None


def expected(vector: dict[str, Any]) -> list[dict[str, Any]]:
    batches = []
    for batch in vector["batches"]:
        records = []
        for record in batch.get("records", []):
            fields = {key: value for key, value in record.items() if key != "sequence"}
            if "control_error" in fields:
                fields["control_error"] = True
            records.append(fields)
        batches.append(batch | {"records": records})
    return batches


@pytest.mark.case("CC-157", "CC-160", "CC-162")
@every_case("vector", READABLE, name)
def test_reads_what_kafka_reads_and_stops_where_it_stops(vector: dict[str, Any]) -> None:
    found, fault = read(bytes.fromhex(vector["hex"]))
    wanted = expected(vector)
    assert (fault is None) == ("error" not in vector), fault
    if fault is not None:
        assert fault.code is ErrorCode.CORRUPT_MESSAGE
        found, wanted = delivered(found), delivered(wanted)
        if wanted and len(found) < len(wanted) and wanted[-1]["codec"] != "none":
            wanted.pop()  # Kafka streams: it gives out records until the damage; we inflate a batch before
    for batch in wanted:
        if batch["last_offset"] < batch["base_offset"]:
            batch["last_sequence"] = batch["base_sequence"] - 1  # Kafka's own answer is an integer overflow
    assert found == wanted


def delivered(batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Only batches that gave a record: whether a header was seen before its fault is nobody's concern."""
    return [batch for batch in batches if batch["records"]]


def produce(data: bytes) -> tuple[BatchHeader, bytearray] | InvalidBatch:
    """What the broker would append for one partition of a Produce request."""
    try:
        header = check_produced(data)
    except InvalidBatch as refusal:
        return refusal
    batch = bytearray(data[: header.size_in_bytes])
    restamp(batch, 1000, 7)
    check_crc(batch)
    return header, batch


@every_case("vector", [v for v in PRODUCED if v["append"]["accepted"]], name)
def test_accepts_what_kafka_accepts(vector: dict[str, Any]) -> None:
    data, answer = bytes.fromhex(vector["hex"]), vector["append"]
    outcome = produce(data)
    assert not isinstance(outcome, InvalidBatch), outcome
    header, batch = outcome
    if answer["in_place"]:
        assert batch[:21].hex() == answer["first_21_bytes"]
        assert batch[21:] == data[21 : header.size_in_bytes]
        return
    kafkas = bytearray.fromhex(answer["hex"])
    assert batch[HEADER_SIZE:] == kafkas[HEADER_SIZE:]
    if header.max_timestamp != answer["max_timestamp"]:
        kafkas[35:43] = batch[35:43]  # Deviation: a wrong max_timestamp stays, records are not opened
        kafkas[17:21] = batch[17:21]
    assert batch == kafkas


@every_case("vector", [v for v in PRODUCED if not v["append"]["accepted"]], name)
def test_refuses_what_kafka_refuses(vector: dict[str, Any]) -> None:
    outcome = produce(bytes.fromhex(vector["hex"]))
    if isinstance(outcome, InvalidBatch):
        assert outcome.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
        return
    # Deviation: what is wrong lies inside the records, under a right checksum. A reader must find it.
    assert vector["append"]["error"]["stage"] == "offsets"
    assert read(bytes(outcome[1]))[1] is not None


def check_all_records(data: bytes) -> int | InvalidBatch:
    """The largest timestamp that full validation finds, or why it refuses the batch."""
    try:
        header = check_produced(data)
        return check_records(memoryview(data)[: header.size_in_bytes], RecordChecks()).max_timestamp
    except InvalidBatch as refusal:
        return refusal


@every_case("vector", PRODUCED, name)
def test_full_validation_decides_as_kafka_does(vector: dict[str, Any]) -> None:
    """`partita.validate.records=full`: Kafka's verdict, and Kafka's largest timestamp, for every vector."""
    outcome, answer = check_all_records(bytes.fromhex(vector["hex"])), vector["append"]
    if answer["accepted"]:
        assert outcome == answer["max_timestamp"]
    else:
        assert isinstance(outcome, InvalidBatch)


def test_legacy_batches_are_refused() -> None:
    legacy = [v for v in READABLE if v["case"].startswith("legacy") and v["batches"] and "error" not in v]
    assert len(legacy) > 50
    for vector in legacy:
        outcome = produce(bytes.fromhex(vector["hex"]))
        assert isinstance(outcome, InvalidBatch)
        assert outcome.code is ErrorCode.INVALID_RECORD
