import json
from pathlib import Path
from typing import Any

import pytest

from partita.assignors.interface import Subscription, TopicPartition
from partita.assignors.payloads import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from partita.protocol.primitives import MalformedRequest
from support.every_case import every_case

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "vectors" / "consumer-protocol.jsonl").read_text().splitlines()
]
READABLE = [vector for vector in VECTORS if "decoded" in vector]
BROKEN = [vector for vector in VECTORS if "error" in vector]
PLAIN = [vector for vector in VECTORS if "encoded" in vector]


def flat(by_topic: dict[str, list[int]]) -> list[TopicPartition]:
    return [(topic, partition) for topic, partitions in by_topic.items() for partition in partitions]


def user_data(fields: dict[str, Any]) -> bytes | None:
    return None if fields["user_data"] is None else bytes.fromhex(fields["user_data"])


def as_subscription(fields: dict[str, Any]) -> Subscription:
    generation = fields["generation"]
    return Subscription(
        tuple(fields["topics"]),
        user_data(fields),
        flat(fields["owned"]),
        -1 if generation is None else generation,
        fields["rack"],
    )


@pytest.mark.case("CC-104")
@every_case("vector", READABLE, lambda v: f"{v['kind']}-v{v['version']}-{v['case']}")
def test_kafkas_bytes_are_read(vector: dict[str, Any]) -> None:
    wanted = vector["decoded"]
    if vector["kind"] == "subscription":
        assert decode_subscription(bytes.fromhex(vector["hex"])) == as_subscription(wanted)
    else:
        got, data = decode_assignment(bytes.fromhex(vector["hex"]))
        assert sorted(got) == sorted(flat(wanted["partitions"]))
        assert data == user_data(wanted)


@pytest.mark.case("CC-104")
@every_case("vector", PLAIN, lambda v: f"{v['kind']}-v{v['version']}")
def test_our_bytes_are_kafkas(vector: dict[str, Any]) -> None:
    given, version = vector["encoded"], vector["version"]
    if vector["kind"] == "subscription":
        ours = encode_subscription(as_subscription(given), version)
    else:
        ours = encode_assignment(flat(given["partitions"]), user_data(given), version)
    assert ours.hex() == vector["hex"]


@pytest.mark.case("CC-104")
@every_case("vector", BROKEN, lambda v: f"{v['kind']}-{v['case']}")
def test_broken_bytes_are_refused(vector: dict[str, Any]) -> None:
    decode = decode_subscription if vector["kind"] == "subscription" else decode_assignment
    if not vector["hex"] and decode is decode_assignment:
        assert decode(b"") == ([], None)
        return
    with pytest.raises(MalformedRequest):
        decode(bytes.fromhex(vector["hex"]))


@pytest.mark.case("CC-104")
@pytest.mark.parametrize(
    ("version", "hex_bytes"),
    [
        (0, "0000 00000001 00027431 ffffffff"),
        (1, "0001 00000001 00027431 ffffffff 00000001 00027431 00000002 00000000 00000002"),
        (2, "0002 00000001 00027431 ffffffff 00000001 00027431 00000002 00000000 00000002 00000004"),
        (3, "0003 00000001 00027431 ffffffff 00000001 00027431 00000002 00000000 00000002 00000004 00027231"),
    ],
)
def test_the_layout_of_each_subscription_version(version: int, hex_bytes: str) -> None:
    subscription = Subscription(("t1",), None, [("t1", 2), ("t1", 0)], 4, "r1")
    assert encode_subscription(subscription, version) == bytes.fromhex(hex_bytes)


@pytest.mark.case("CC-104")
def test_version_7_is_read_as_3_and_version_minus_1_is_refused() -> None:
    bytes_of_3 = encode_subscription(Subscription(("t1",), b"u", [("t1", 0)], 4, "r1"))
    assert decode_subscription(b"\x00\x07" + bytes_of_3[2:] + b"more") == decode_subscription(bytes_of_3)
    with pytest.raises(MalformedRequest, match="version -1"):
        decode_subscription(b"\xff\xff" + bytes_of_3[2:])
