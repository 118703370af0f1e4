"""Records of KIP-848 groups, byte for byte Kafka's, both ways; and what a replay makes of any order of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from partita.group.contract import Record
from partita.group.records import consumer_log as log
from partita.group.records.consumer_group import ConsumerGroup, MemberState
from partita.group.records.hard_state import HardState
from partita.protocol.primitives import MalformedRequest
from support.group.consumers import World

VECTORS = Path(__file__).parents[3] / "vectors"
LINES = [
    line
    for name in ("group-log-written.jsonl", "group-log.jsonl")
    for line in map(json.loads, (VECTORS / name).read_text().splitlines())
    if line.get("key_id") in log.KINDS
]
WRITTEN = [line for line in LINES if "what" in line and line["value_hex"] is not None]


def record_of(line: dict[str, Any]) -> Record:
    value = line["value_hex"]
    return Record(bytes.fromhex(line["key_hex"]), None if value is None else bytes.fromhex(value))


def rewritten(group: ConsumerGroup, kind: int) -> Record:
    """What we would write of the one thing that the group knows."""
    member = next(iter(group.members.values()), None)
    match kind:
        case log.EPOCH_KEY:
            return log.epoch_record(group.group_id, group.epoch, group.metadata_hash)
        case log.TARGET_EPOCH_KEY:
            return log.target_epoch_record(group.group_id, group.assignment_epoch, group.assigned_ms)
        case log.TARGET_KEY:
            ((member_id, target),) = group.targets.items()
            return log.target_record(group.group_id, member_id, target)
        case log.REGEX_KEY:
            ((regex, resolved),) = group.regexes.items()
            return log.regex_record(group.group_id, regex, resolved)
        case log.MEMBER_KEY:
            assert member is not None
            return log.member_record(group.group_id, member)
        case log.ASSIGNMENT_KEY:
            assert member is not None
            return log.assignment_record(group.group_id, member)
    raise AssertionError(f"kind {kind}")


@pytest.mark.parametrize("line", WRITTEN, ids=lambda line: line["what"])
def test_what_kafka_writes_is_read_and_written_again_as_it_was(line: dict[str, Any]) -> None:
    hard = HardState()
    hard.replay(record_of(line))
    (group,) = hard.consumer_groups.values()
    assert rewritten(group, line["key_id"]) == record_of(line)


def test_there_are_written_vectors_of_every_kind() -> None:
    assert {line["key_id"] for line in WRITTEN} == log.KINDS - {log.PARTITION_METADATA_KEY}


def test_every_vector_is_replayed_or_refused_as_a_whole() -> None:
    refused = 0
    for line in LINES:
        hard = HardState()
        try:
            hard.replay(record_of(line))
        except MalformedRequest:
            refused += 1
            assert line.get("outcome"), line
    assert len(LINES) > 70


def test_tombstones_of_what_is_not_there_make_no_group() -> None:
    hard = HardState()
    for line in LINES:
        hard.replay(Record(bytes.fromhex(line["key_hex"]), None))
    assert not hard.consumer_groups


def test_a_compacted_log_gives_the_same_state_in_any_order_of_its_keys() -> None:
    world = World({"t": 4, "order-1": 1})
    world.join("a", regex="order.*", rack="r")
    world.join("b", instance="i")
    world.settle()
    world.join("c")
    world.beat("c", -1)
    last = {record.key: record for record in world.log}
    for order in (list(last.values()), list(reversed(last.values()))):
        mirror = HardState()
        for record in order:
            mirror.replay(record)
        assert mirror == world.coordinator.hard_state
        assert mirror.consumer_groups["g"].owners == world.group.owners


def test_a_state_of_a_newer_release_is_kept_until_the_member_owns_nothing() -> None:
    world = World({"t": 1})
    world.join("a")
    written = world.log[-1]
    assert written.value is not None
    foreign = Record(written.key, written.value[:10] + b"\x09" + written.value[11:])
    hard = HardState()
    hard.replay(foreign)
    assert hard.consumer_groups["g"].members["a"].state is MemberState.UNKNOWN
