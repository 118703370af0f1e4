"""Memory that is used again: buffers of large frames, and blocks for logs kept in this process."""

from __future__ import annotations

from functools import partial

import pytest

from partita.broker.blocks import fresh_block
from partita.broker.embedded import Broker
from partita.broker.wire.connection import GROWN_BYTES_MAX, Connection
from partita.broker.wire.server import SPARE_BYTES_MAX, Server


@pytest.fixture
def server(broker: Broker) -> Server:
    found = broker.running.servers[1][0]
    assert found is not None
    return found


def test_a_buffer_that_nobody_looks_at_is_used_again(server: Server) -> None:
    buffer = server.take_buffer(100_000)
    view = memoryview(buffer)[:10]
    view.release()
    server.give_back(buffer)
    assert server.take_buffer(90_000) is buffer
    assert len(buffer) == 100_000


def test_a_buffer_whose_bytes_are_still_looked_at_is_used_again_afterwards(server: Server) -> None:
    buffer = server.take_buffer(100_000)
    view = memoryview(buffer)[:10]
    server.give_back(buffer)
    assert server.take_buffer(90_000) is not buffer
    assert len(view) == 10
    view.release()
    assert server.take_buffer(90_000) is buffer


def test_a_spare_buffer_that_is_too_small_is_no_use(server: Server) -> None:
    server.give_back(bytearray(10_000))
    assert len(server.take_buffer(20_000)) == 20_000


def test_very_large_buffers_are_not_kept(server: Server) -> None:
    buffer = bytearray(SPARE_BYTES_MAX + 1)
    server.give_back(buffer)
    assert server.take_buffer(10) is not buffer


@pytest.mark.parametrize("size", [1, 1 << 20, 3 << 20])
def test_a_fresh_block_has_its_size_and_keeps_what_is_written(size: int) -> None:
    block = fresh_block(size)
    block[size - 1 : size] = b"x"
    assert len(block) == size
    assert bytes(memoryview(block)[size - 1 :]) == b"x"


def test_the_buffer_of_a_large_frame_is_copied_only_while_it_is_small(broker: Broker, server: Server) -> None:
    """A frame of 100 MB was copied at each doubling, and the next one of its peer got 100 MB at once."""
    size = 100 << 20

    def lengths(has_delivered: int) -> list[int]:
        connection = Connection(server)
        connection._largest_received = has_delivered
        connection._start_own(size, memoryview(b"begun"))
        seen: list[int] = []
        while not seen or seen[-1] < size:
            own = connection._own
            assert own is not None
            assert own[:5] == b"begun"
            connection._own_filled = len(own)
            seen.append(len(own))
            connection.get_buffer(-1).release()
        return seen

    for delivered in (0, size):
        *copied, whole = broker.run(partial(lengths, delivered))
        assert whole == size
        assert max(copied) <= GROWN_BYTES_MAX


def test_a_lost_connection_calls_all_that_wait_for_it(broker: Broker, server: Server) -> None:
    """Each took itself off the list while it was walked, so every second one was passed over, a parked poll too."""

    def called() -> list[int]:
        connection = Connection(server)
        calls: list[int] = []

        def call(number: int) -> None:
            calls.append(number)
            connection.forget(callbacks[number])

        callbacks = [partial(call, number) for number in range(4)]
        for callback in callbacks:
            connection.on_close(callback)
        connection.connection_lost(None)
        return calls

    assert broker.run(called) == [0, 1, 2, 3]
