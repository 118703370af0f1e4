"""The stored state of a share partition in words."""

from partita.cli.groups.deliveries import seen
from partita.share.coordinator.model import ShareState, StateBatch


def state(*batches: StateBatch) -> ShareState:
    return ShareState(1, 1, 0, 10, 0, batches, 0, 0)


def test_records_are_given_with_their_delivery_counts() -> None:
    part = seen("orders", 0, state(StateBatch(10, 11, 2, 1), StateBatch(17, 17, 0, 4), StateBatch(18, 20, 4, 5)))
    assert part.waits_at == 12
    assert part.sentences == [
        "record 17 of orders-0 was delivered 4 times, not done",
        "records 18 to 20 of orders-0 were delivered 5 times, given up",
        "orders-0 waits at record 12; 3 later records are done",
    ]


def test_what_is_done_in_order_holds_up_nothing() -> None:
    part = seen("orders", 0, state(StateBatch(10, 11, 2, 1), StateBatch(12, 12, 2, 2)))
    assert (part.waits_at, part.sentences) == (13, [])
    assert seen("orders", 0, state(StateBatch(11, 11, 2, 1))).sentences == [
        "orders-0 waits at record 10; 1 later record is done"
    ]
