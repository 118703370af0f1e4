"""400 histories of a share partition, as Kafka's SharePartition went through them: every answer, write and state."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.share.partition.acquiring import Wish
from partita.share.partition.model import Acknowledgement, Limits, LogBatch, Run, StateBatch, Stored, Write
from partita.share.partition.share_partition import SharePartition
from support.share.merging import merge

VECTORS = Path(__file__).parents[2] / "vectors"
EXCEPTIONS = {
    ErrorCode.INVALID_RECORD_STATE: "InvalidRecordStateException",
    ErrorCode.INVALID_REQUEST: "InvalidRequestException",
}
REFUSED = "CoordinatorNotAvailableException"
BETTER = {
    1037: "what is done with below the start is forgotten at once",
    1248: "what is done with below the start is forgotten at once",
    1289: "what is done with below the start is forgotten at once",
    1177: "the start never goes back",
    1339: "a gap below the log start is no place to fetch from",
}
"""Histories that go on otherwise than Kafka's, each from one step on."""


class Player:
    """One history, played on our share partition."""

    def __init__(self, history: dict[str, Any]) -> None:
        limits = Limits(history["delivery_count_limit"], history["max_record_locks"], history["lock_ms"])
        self.limits = limits
        self.hides_aborted = history["read_committed"]
        self.stored = Stored(history["start"])
        self.log: list[LogBatch] = []
        self.now_ms = 0
        self.reload()

    def reload(self, step: dict[str, Any] | None = None) -> None:
        self.partition = SharePartition(self.stored, lambda: self.limits)

    def play(self, step: dict[str, Any]) -> dict[str, Any]:
        """Do one step; return what Kafka's step says, by the same names."""
        answer = getattr(self, step["do"])(step)
        for written in step.get("written", []):
            if not written.get("refused"):
                new = [StateBatch(*row) for row in written["batches"]]
                self.stored = Stored(written["start"], merge(self.stored.batches, new, written["start"]))
        flight = self.partition.flight
        return {
            **(answer or {"written": {}}),
            "start": flight.start,
            "end": flight.end,
            "next": self.partition.next_fetch_offset,
            "can_acquire": self.partition.can_acquire,
            "complete": flight.completed,
            "batches": [
                [
                    b.first,
                    b.last,
                    [[r.state, r.delivery_count, r.member] for r in b.runs for _ in range(r.first, r.last + 1)],
                ]
                for b in flight.batches
            ],
        }

    def append(self, step: dict[str, Any]) -> None:
        for first, last, *kind in step["log"]:
            self.log.append(LogBatch(first, last, kind == ["aborted"] and self.hides_aborted))

    def acquire(self, step: dict[str, Any]) -> dict[str, Any]:
        if "fetch_offset" not in step:
            assert not self.partition.can_acquire
            return {"acquired": [], "written": {}}
        offset = self.partition.next_fetch_offset
        read = [batch for batch in self.log if batch.last >= offset][: step["read_batches"]]
        wish = Wish(step["member"], step["mode"] == 1, step["max_records"], step["batch_size"])
        acquired = self.partition.acquire(wish, read, offset, self.now_ms)
        return {"fetch_offset": offset, "acquired": [list(each) for each in acquired], "written": {}}

    def acknowledge(self, step: dict[str, Any]) -> dict[str, Any]:
        verdicts = [Acknowledgement(first, last, tuple(types)) for first, last, types in step["acks"]]
        outcome = self.partition.acknowledge(step["member"], verdicts, self.now_ms)
        if isinstance(outcome, ErrorCode):
            return {"error": EXCEPTIONS[outcome], "written": {}}
        is_refused = any(written.get("refused") for written in step.get("written", []))
        return {"error": REFUSED if is_refused else None, **self.settle(outcome, is_refused=is_refused)}

    def release(self, step: dict[str, Any]) -> dict[str, Any]:
        return {"error": None, **self.settle(self.partition.release(step["member"]))}

    def advance(self, step: dict[str, Any]) -> dict[str, Any]:
        self.now_ms += step["ms"]
        return self.settle(self.partition.expire(self.now_ms))

    def log_start(self, step: dict[str, Any]) -> None:
        self.partition.log_start_moved(step["offset"])

    def settle(self, write: Write | None, *, is_refused: bool = False) -> dict[str, Any]:
        if write is None:
            return {"written": {}}
        if is_refused:
            self.partition.refused(write)
        else:
            self.partition.stored(write)
        return {
            "written": per_offset(write.batches), "written_start": write.start, "written_complete": write.completed
        }  # fmt: skip


def per_record(run: Run) -> list[list[Any]]:
    return [[run.state, run.delivery_count, run.member]] * (run.last - run.first + 1)


def per_offset(batches: list[Any]) -> dict[int, tuple[int, int]]:
    return {offset: (state, count) for first, last, state, count in batches for offset in range(first, last + 1)}


def expected(step: dict[str, Any]) -> dict[str, Any]:
    """Kafka's step, per offset: Kafka writes once for each lock that ends, we write once for all."""
    writes = step.get("written", [])
    one = {"written_start": writes[0]["start"], "written_complete": writes[0]["complete"]} if len(writes) == 1 else {}
    batches = [
        [first, last, rest[0] if isinstance(rest[0], list) else [rest] * (last - first + 1)]
        for first, last, *rest in step["batches"]
    ]
    return {**step, **one, "written": per_offset([row for w in writes for row in w["batches"]]), "batches": batches}


def first_difference(history: dict[str, Any]) -> str | None:
    player = Player(history)
    for number, step in enumerate(history["steps"]):
        if "defect" in step:
            ours = player.acknowledge(step)
            return None if ours["error"] == "InvalidRecordStateException" else f"step {number}: {ours}, not 121"
        wanted = expected(step)
        ours = player.play(step)
        differs = {key: (ours[key], wanted[key]) for key in ours if key in wanted and ours[key] != wanted[key]}
        if differs:
            return f"step {number} ({step['do']}): ours and Kafka's {differs}"
    return None


@pytest.mark.case("SG-E24", *[f"SG-E{number}" for number in range(25, 100)], "SG-F18")
def test_every_history_is_kafkas() -> None:
    with gzip.open(VECTORS / "share-partition.jsonl.gz", "rt") as lines:
        histories = [json.loads(line) for line in lines]
    differences = {history["case"]: found for history in histories if (found := first_difference(history))}
    assert len(histories) == 400
    assert differences.keys() == BETTER.keys(), "\n".join(f"{case}: {text}" for case, text in differences.items())
