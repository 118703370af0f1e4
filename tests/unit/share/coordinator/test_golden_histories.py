"""Apache Kafka's own answers, records and merges of the share coordinator."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partita.share.coordinator.coordinator import ShareConfig, ShareCoordinator
from partita.share.coordinator.log_records import Record
from partita.share.coordinator.merging import merged
from partita.share.coordinator.model import ShareKey, ShareState, StateBatch
from partita.share.coordinator.requests import Delete, Initialize, Outcome, Read, StateRequest, Summarize, Write

VECTORS = Path(__file__).parents[3] / "vectors"


def cases(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(VECTORS / name, "rt") as lines:
        yield from map(json.loads, lines)


def topic_id(text: str) -> bytes:
    return base64.urlsafe_b64decode(f"{text}==")


def batches(rows: list[list[int]]) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(*row) for row in rows)


def request_of(step: dict[str, Any]) -> StateRequest:
    key = ShareKey(step["group"], topic_id(step["topic_id"]), step["partition"])
    match step["do"]:
        case "initialize":
            return Initialize(key, step["state_epoch"], step["start"])
        case "read":
            return Read(key, step["leader_epoch"])
        case "write":
            own = batches(step["batches"])
            return Write(key, step["state_epoch"], step["leader_epoch"], step["start"], step["complete"], own)
        case "delete":
            return Delete(key)
        case _:
            return Summarize(key)


def in_hex(record: Record) -> list[str | None]:
    return [record.key.hex(), None if record.value is None else record.value.hex()]


def is_as_told(state: ShareState | None, step: dict[str, Any]) -> bool:
    if "state" in step:
        assert state is not None
        return bool([state.state_epoch, state.start_offset, [list(one) for one in state.batches]] == step["state"])
    if "summary" in step:
        assert state is not None
        return bool([state.state_epoch, state.leader_epoch, state.start_offset, state.completed] == step["summary"])
    return True


def differences(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    topics = {topic_id(name): count for name, count in case["topics"].items()}
    config = ShareConfig(case["updates_per_snapshot"], case["cold_ms"], is_strict=False)
    coordinator = ShareCoordinator(config, lambda topic: topics.get(topic, 0))
    offset, slack = 0, 0
    for step in case["steps"]:
        if step["do"] == "snapshot_cold":
            outcome, records = Outcome(), sorted(coordinator.cold_snapshots(step["now"]))
            slack = max(slack, len(records) - 1)
        else:
            outcome, decided = coordinator.handle(request_of(step), step["now"])
            records = list(decided)
        for record in records:
            coordinator.replay(record, offset)
            offset += 1
        # The order of cold snapshots in the log is Java's, so an offset among them may be another's.
        pruned = abs((coordinator.prune_below or 0) - (step["prune_below"] or 0)) <= slack
        same = outcome.code == step["error"] and [in_hex(record) for record in records] == step["records"]
        if not (same and pruned and is_as_told(outcome.state, step)):
            yield {"case": case["case"], **step}


@pytest.mark.case("SG-G01", "SG-G02", "SG-G03", "SG-G04", "SG-G05", "SG-G06", "SG-G07", "SG-G10")
def test_every_answer_record_and_prune_point_is_kafkas() -> None:
    assert [found for case in cases("share-coordinator.jsonl.gz") for found in differences(case)] == []


@pytest.mark.case("SG-G09")
def test_every_merge_is_kafkas() -> None:
    different = [
        case
        for case in cases("share-state.jsonl.gz")
        if list(merged(batches(case["so_far"]), batches(case["new"]), case["start"])) != list(batches(case["combined"]))
    ]
    assert different == []
