"""Cutting frames out of a byte stream."""

from __future__ import annotations

import struct

import pytest

from partita.net.frames import FrameReceiver
from partita.protocol.primitives import MalformedRequest


def feed(receiver: FrameReceiver, data: bytes, step: int) -> list[bytes]:
    frames = []
    while data:
        room = receiver.buffer()
        count = min(step, len(room), len(data))
        room[:count] = data[:count]
        del room
        data = data[count:]
        frames += [bytes(f) for f in receiver.received(count)]
    return frames


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("step", [1, 3, 7, 4096, 65536, 1 << 20])
def test_frames_come_out_whole_however_they_are_cut(step: int) -> None:
    bodies = [b"1234", b"x" * 100, b"y" * 20_000 if step > 1 else b"y" * 17_000, b"z" * 5, b"w" * 64 * 1024, b"last"]
    assert feed(FrameReceiver(1 << 20), b"".join(map(framed, bodies)), step) == bodies


def test_a_frame_larger_than_the_first_step_grows_with_what_arrives() -> None:
    body = bytes(range(256)) * 40_000
    assert feed(FrameReceiver(1 << 24), framed(body) + framed(b"next"), 1 << 20) == [body, b"next"]


def test_an_announced_length_alone_allocates_little() -> None:
    receiver = FrameReceiver(1 << 30)
    assert feed(receiver, struct.pack(">i", 1 << 30), 4) == []
    assert len(receiver.buffer()) <= 4 << 20


def receive(receiver: FrameReceiver, body: bytes) -> memoryview:
    data = framed(body)
    while True:
        room = receiver.buffer()
        count = min(len(room), len(data))
        room[:count], data = data[:count], data[count:]
        del room
        for frame in receiver.received(count):
            return memoryview(frame)


def test_a_buffer_is_used_again_only_when_nobody_looks_at_its_frame_any_more() -> None:
    receiver = FrameReceiver(1 << 24)
    first = receive(receiver, b"a" * 300_000)
    second = receive(receiver, b"b" * 300_000)
    part = first[10:20]
    buffer = second.obj
    del first, second
    third, fourth = receive(receiver, b"c" * 299_000), receive(receiver, b"d" * 300_000)
    assert third.obj is buffer
    assert (bytes(part), set(third), set(fourth)) == (b"a" * 10, set(b"c"), set(b"d"))
    assert (len(third), len(fourth)) == (299_000, 300_000)


@pytest.mark.parametrize("size", [-1, 0, 3, (1 << 20) + 1, 2**31 - 1])
def test_impossible_lengths_are_refused(size: int) -> None:
    with pytest.raises(MalformedRequest):
        feed(FrameReceiver(1 << 20), struct.pack(">i", size), 4)
