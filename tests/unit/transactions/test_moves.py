"""TX-M05: every move of a transactional id from every state, as Kafka's own class makes it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partita.protocol.error_codes import ErrorCode
from partita.transactions import moves
from partita.transactions.model import STATES_BY_TEXT, State, Transaction

VECTORS = Path(__file__).parents[2] / "vectors"
WALL_MS = 1_750_000_000_000


def load() -> Iterator[dict[str, Any]]:
    with gzip.open(VECTORS / "transaction-moves.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def read(given: dict[str, Any]) -> Transaction:
    """A transaction in the words of the vectors."""
    return Transaction(
        transactional_id="t",
        producer_id=given["producer_id"],
        previous_producer_id=given["previous_producer_id"],
        next_producer_id=given.get("next_producer_id", -1),
        epoch=given["epoch"],
        last_epoch=given["last_epoch"],
        timeout_ms=given["timeout_ms"],
        state=STATES_BY_TEXT[given["state"]],
        partitions=frozenset((name[0], int(name[2:])) for name in given["partitions"]),
        start_ms=given["start_ms"],
        updated_ms=given["updated_ms"],
        client_version=given["client_version"],
    )


def move(given: Transaction, do: dict[str, Any]) -> Transaction | ErrorCode:
    match do["op"]:
        case "fence":
            return moves.fence(given)
        case "bump":
            return moves.bump(given, do["expected_epoch"], do["timeout_ms"], WALL_MS)
        case "rotate":
            return moves.rotate(
                given, do["new_producer_id"], do["timeout_ms"], WALL_MS, epoch_given=do["expected_given"]
            )
        case "add":
            return moves.add(given, {("t", 1)}, do["client_version"], WALL_MS)
        case "commit" | "abort":
            return moves.end(
                given,
                committed=do["op"] == "commit",
                client_version=do["client_version"],
                wall_ms=WALL_MS,
                next_producer_id=do["next_producer_id"],
                nothing_added=do["nothing_added"],
            )
        case "complete":
            return moves.complete(given, WALL_MS)
        case "expire":
            return moves.expire(given)
    raise AssertionError(do)


CASES = list(load())


@pytest.mark.case("TX-M05")
@pytest.mark.parametrize("op", ["fence", "bump", "rotate", "add", "commit", "abort", "complete", "expire"])
def test_moves_lead_where_they_lead_in_kafka(op: str) -> None:
    cases = [case for case in CASES if case["do"]["op"] == op]
    assert len(cases) > 100
    for case in cases:
        given = read(case["given"])
        if "refused" not in case:
            moved = move(given, case["do"])
            assert moved == read(case["record"]), case
        elif case["refused"]["class"].endswith("ProducerFencedException") and given.state.is_idle:
            assert move(given, case["do"]) is ErrorCode.PRODUCER_FENCED, case
        else:
            with pytest.raises(AssertionError):
                assert isinstance(move(given, case["do"]), Transaction), case


def test_every_state_has_the_states_it_can_come_from() -> None:
    assert moves.MAY_BECOME.keys() == set(State)


@pytest.mark.case("TX-N08", "TX-N09")
def test_an_epoch_that_is_used_up_is_followed_by_another_producer_id() -> None:
    """KAFKA-18660, KAFKA-19367: the markers carry the last epoch, the client never sees it."""
    open_ = Transaction("t", 7, 60_000, 1, epoch=32766, state=State.ONGOING, start_ms=1)
    decided = moves.end(open_, committed=True, client_version=2, wall_ms=2, next_producer_id=8)
    assert (decided.producer_id, decided.epoch, decided.next_producer_id) == (7, 32767, 8)
    done = moves.complete(decided, 3)
    assert (done.producer_id, done.epoch, done.previous_producer_id, done.last_epoch) == (8, 0, 7, 32766)
    idle = replace(open_, state=State.EMPTY)
    rotated = moves.rotate(idle, 9, 60_000, 4, epoch_given=True)
    assert (rotated.producer_id, rotated.epoch, rotated.previous_producer_id) == (9, 0, 7)


def test_an_abort_at_the_very_last_epoch_keeps_it() -> None:
    open_ = Transaction("t", 7, 60_000, 1, epoch=32767, state=State.ONGOING, start_ms=1)
    assert moves.end(open_, committed=False, client_version=2, wall_ms=2, next_producer_id=8).epoch == 32767
    assert moves.fence(open_).epoch == 32767
