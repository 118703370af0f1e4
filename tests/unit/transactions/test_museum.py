"""Every defect of Kafka's transactions (transactions.md 25): a planted fault, a test, or why it cannot be here."""

from __future__ import annotations

from pathlib import Path

from partita.transactions.model import State
from support.every_case import every_case
from support.transactions.world import T0, World

ROOT = Path(__file__).parents[3]
PLANTED = {
    line.split(" ", 3)[1]
    for line in (ROOT / "tools" / "mutants.txt").read_text().splitlines()
    if line.startswith("= KAFKA-")
}
FAULTS = (
    5416, 5610, 6052, 7296, 8710, 8803, 9144, 9600, 9666, 9892, 10080, 10778, 12152, 12153, 13412, 13727, 14402, 14880,
    14884, 14904, 14916, 14920, 15468, 15552, 16352, 16386, 18401, 18660, 19690, 19999, 20357,
)  # fmt: skip
"""Planted by tools/mutants.py, and noticed."""
TESTS = {
    5376: ("tests/support/producer/transaction_stories.py", "a_parked_reader_wakes_with_the_commit"),
    6003: ("tests/unit/log/test_transaction_vectors.py", "KAFKA-6003"),
    6119: ("tests/unit/transactions/test_coordinator.py", "KAFKA-6119"),
    12793: ("tests/conformance/test_transactions_on_kafka.py", "test_a_hanging_transaction_is_found_and_ended"),
    12870: ("tests/unit/producer/test_transactions.py", "KAFKA-12870"),
    13099: ("tests/unit/transactions/test_coordinator.py", "KAFKA-13099"),
    15653: ("tests/unit/broker/transactions/test_coordination.py", "TX-I20"),
    15784: ("tests/unit/broker/transactions/test_coordination.py", "TX-E08"),
    16217: ("tests/support/producer/transaction_stories.py", "close_aborts_what_is_open"),
    19367: ("tests/unit/transactions/test_moves.py", "KAFKA-19367"),
    20090: ("tests/unit/transactions/test_coordinator.py", "KAFKA-20090"),
}
"""The file, and what in it names the defect or holds against it."""
IMPOSSIBLE = {
    9777: "one event loop decides; there is no lock that could be raced for",
    13782: "a partition is added when a batch of its queue leaves, not when the record's partition is chosen",
    14417: "no append of the coordinator times out: it is stored, refused, or the shard moves",
}
OF_4_3_1 = {
    "a marker refused for its size": ("tests/unit/broker/transactions/test_coordination.py", "TX-S01"),
    "a verdict by a neighbour's version": ("tests/unit/broker/transactions/test_coordination.py", "TX-I20"),
    "version 2 at level 0": ("tests/unit/transactions/test_coordinator.py", "TX-T05"),
    "an unreadable record": ("tests/unit/transactions/test_log_records.py", "MalformedRequest"),
}


def test_every_row_has_its_place() -> None:
    rows = [*FAULTS, *TESTS, *IMPOSSIBLE]
    assert len(rows) == len(set(rows)) == 45
    assert {f"KAFKA-{number}" for number in FAULTS} <= PLANTED


@every_case("file, name", [*TESTS.values(), *OF_4_3_1.values()])
def test_the_named_test_is_there(file: str, name: str) -> None:
    assert name in (ROOT / file).read_text()


def test_news_of_markers_that_comes_twice_completes_a_transaction_once() -> None:
    """KAFKA-10080: the second completion came after the next transaction had begun."""
    world = World()
    given = world.init()[1:]
    world.add(given, T0)
    world.holds_markers = True
    world.end(given)
    (order,) = world.orders
    world.holds_appends = True
    for _ in range(2):
        world.take(world.coordinator.markers_done(order.transaction, [T0], world.clock.now()))
    assert len(world.waiting) == 1
    world.append()
    assert [state for state, _ in world.logged()].count("CompleteCommit") == 1


def test_news_of_an_old_decisions_markers_leave_a_newer_transaction_alone() -> None:
    """KAFKA-16352: cleaning up after the older markers removed the newer transaction's, and it was stuck."""
    world = World(level=0)
    given = world.init()[1:]
    world.holds_markers = True
    orders = []
    for _ in range(2):
        world.add(given, T0)
        assert world.end(given) == 0
        (order,) = world.orders
        orders.append(order.transaction)
        if len(orders) == 1:
            world.write_markers()
    world.take(world.coordinator.markers_done(orders[0], [T0], world.clock.now()))
    assert world.known().state is State.PREPARE_COMMIT
    world.write_markers()
    assert world.known().state is State.COMPLETE_COMMIT
