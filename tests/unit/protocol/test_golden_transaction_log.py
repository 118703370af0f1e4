"""Keys and values of `__transaction_state`: Kafka's bytes, both ways."""

import json
from pathlib import Path
from typing import Any

from partita.protocol.messages.transaction_log import TransactionLogKey, TransactionLogValue
from partita.protocol.primitives import Message, Reader
from support.every_case import every_case
from support.vectors.schemas import described

VECTORS = Path(__file__).parents[2] / "vectors"
SCHEMAS = {message.schema.name: message for message in described()}
CASES = [json.loads(line) for line in (VECTORS / "transaction-log.jsonl").read_text().splitlines()]


def read(cls: type[Message], hex_bytes: str) -> tuple[int, Message]:
    reader = Reader(bytes.fromhex(hex_bytes))
    version = reader.int16()
    message = cls.read(reader, version)
    reader.finish()
    return version, message


def with_our_tag(case: dict[str, Any]) -> dict[str, Any]:
    """The value's fields as Kafka gives them, and the tag that only Partita writes."""
    fields: dict[str, Any] = case["value"]
    return fields | ({"lastProducerEpoch": -1} if case["value_version"] else {})


def test_there_are_vectors_of_every_version() -> None:
    assert {case["value_version"] for case in CASES} == {0, 1}


@every_case("case", CASES, lambda case: f"v{case['value_version']}-{case['fill']}")
def test_keys_and_values_are_kafkas(case: dict[str, Any]) -> None:
    for cls, hex_bytes, fields in (
        (TransactionLogKey, case["key_hex"], case["key"]),
        (TransactionLogValue, case["value_hex"], with_our_tag(case)),
    ):
        version, message = read(cls, hex_bytes)
        assert message == SCHEMAS[cls.__name__].from_json(fields, version, iter(()))
        if case["fill"] != "tagged":  # unknown tagged fields are not kept
            assert (version.to_bytes(2, "big") + message.encode(version)).hex() == hex_bytes


def test_the_last_epoch_is_kept_in_a_tag_of_our_own() -> None:
    value = TransactionLogValue(producer_id=7, producer_epoch=3, last_producer_epoch=2)
    assert TransactionLogValue.decode(value.encode(1), 1) == value
    assert TransactionLogValue.decode(value.encode(0), 0).last_producer_epoch == -1
