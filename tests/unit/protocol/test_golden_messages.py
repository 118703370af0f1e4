"""Apache Kafka's own bytes for every message we have: each version, each fill."""

import gzip
import json
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from partita.protocol.primitives import MalformedRequest, Reader
from support.every_case import every_case
from support.vectors.schemas import described

VECTORS = Path(__file__).parents[2] / "vectors"
MESSAGES = {message.schema.name: message for message in described()}


def load_cases() -> dict[tuple[str, int], list[dict[str, Any]]]:
    by_message = defaultdict(list)
    with gzip.open(VECTORS / "messages.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            name = case["name"] if case["api"] is None else case["name"] + case["kind"].capitalize()
            if name in MESSAGES:
                by_message[name, case["version"]].append(case)
    return by_message


CASES = load_cases()
EVERY_MESSAGE_AND_VERSION = every_case("name, version", CASES, lambda case: f"{case[0]}-v{case[1]}")


def test_every_version_of_every_api_message_and_header_has_a_vector() -> None:
    wanted = {
        (name, version)
        for name, message in MESSAGES.items()
        if message.schema.kind in ("request", "response", "header")
        for version in message.versions
    }
    assert wanted <= CASES.keys()


@EVERY_MESSAGE_AND_VERSION
def test_kafkas_bytes_are_read_as_kafkas_fields(name: str, version: int) -> None:
    message = MESSAGES[name]
    for case in CASES[name, version]:
        wanted = message.from_json(case["json"], version, iter(case.get("records") or ()))
        assert message.cls.decode(bytes.fromhex(case["hex"]), version) == wanted, case["fill"]


@EVERY_MESSAGE_AND_VERSION
def test_kafkas_fields_are_written_as_kafkas_bytes(name: str, version: int) -> None:
    message = MESSAGES[name]
    for case in CASES[name, version]:
        if case["fill"] != "tagged":  # those hold unknown tagged fields, which we read past and do not keep
            ours = message.from_json(case["json"], version, iter(case.get("records") or ())).encode(version)
            assert ours.hex() == case["hex"], case["fill"]


@EVERY_MESSAGE_AND_VERSION
def test_a_new_message_has_kafkas_defaults(name: str, version: int) -> None:
    for case in CASES[name, version]:
        if case["fill"] == "defaults":
            assert MESSAGES[name].cls().encode(version).hex() == case["hex"]


@EVERY_MESSAGE_AND_VERSION
def test_every_truncation_is_refused(name: str, version: int) -> None:
    for case in CASES[name, version]:
        whole = bytes.fromhex(case["hex"])
        taken = []  # with `pytest.raises` the loop takes a third longer
        for end in range(len(whole)):
            with suppress(MalformedRequest):
                taken.append((end, MESSAGES[name].cls.decode(whole[:end], version)))
        assert not taken, case["fill"]


@EVERY_MESSAGE_AND_VERSION
def test_trailing_bytes_are_refused_unless_a_message_is_read_from_a_longer_buffer(name: str, version: int) -> None:
    case = CASES[name, version][0]
    longer = bytes.fromhex(case["hex"]) + b"\0"
    with pytest.raises(MalformedRequest, match="left over"):
        MESSAGES[name].cls.decode(longer, version)
    reader = Reader(memoryview(longer))
    MESSAGES[name].cls.read(reader, version)
    assert reader.remaining() == 1
