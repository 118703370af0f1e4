"""Array elements of one message: how many there may be, and pauses between them."""

from __future__ import annotations

import pytest

from partita.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest
from partita.protocol.primitives import MalformedRequest, Message, Reader, TooManyElements, Writer
from partita.protocol.reader import PAUSE_AFTER

WIDE = FetchRequest(
    topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=index) for index in range(200)])] * 2
)
KEYS = FindCoordinatorRequest(coordinator_keys=["k"] * 402)
MESSAGES: list[tuple[Message, int]] = [(WIDE, 11), (WIDE, 12), (KEYS, 4)]
ELEMENTS = 402


@pytest.mark.parametrize(("message", "version"), MESSAGES)
def test_more_elements_than_are_allowed_are_refused(message: Message, version: int) -> None:
    """H6: nested arrays count together; where it is written, too."""
    whole = message.encode(version)
    for allowed in (ELEMENTS, ELEMENTS - 1):
        reader, writer = Reader(whole), Writer(allowed)
        reader.allow(allowed)
        if allowed < ELEMENTS:
            with pytest.raises(TooManyElements):
                type(message).read(reader, version)
            with pytest.raises(TooManyElements):
                message.write(writer, version)
        else:
            assert type(message).read(reader, version) == message
            message.write(writer, version)
            assert writer.getvalue() == whole
    assert issubclass(TooManyElements, MalformedRequest)


@pytest.mark.parametrize(("message", "version"), MESSAGES)
def test_there_is_a_pause_after_so_many_elements(message: Message, version: int) -> None:
    """A7: pauses change nothing in what is read and written."""
    whole = message.encode(version)
    pauses: list[int] = []
    reader = Reader(whole)
    reader.pause = lambda: pauses.append(reader.pos)
    assert type(message).read(reader, version) == message
    assert len(pauses) >= ELEMENTS // PAUSE_AFTER
    assert pauses == sorted(pauses)
    written: list[int] = []
    writer = Writer(pause=lambda: written.append(1))
    message.write(writer, version)
    assert writer.getvalue() == whole
    assert len(written) == len(pauses)
