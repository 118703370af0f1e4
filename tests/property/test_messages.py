"""What always holds for every message: the round trip, and that no bytes can do worse than be refused."""

import gzip
import json
import tracemalloc
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.protocol.framing import encode_request, encode_response, read_request_header, read_response_header
from partita.protocol.primitives import MalformedRequest
from support.vectors.schemas import described

MESSAGES = {message.schema.name: message for message in described()}
EVERY_MESSAGE = pytest.mark.parametrize("name", MESSAGES)
NASTY = [
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x01",
    b"\xff" * 9,
    b"\0",
    b"\x01",
    b"\x80",
]
MEMORY_FACTOR = 400
"""Bytes an object tree may take for each byte of a frame; the densest honest one takes half."""


def golden_bytes() -> dict[str, list[tuple[int, bytes]]]:
    found = defaultdict(list)
    with gzip.open(Path(__file__).parents[1] / "vectors" / "messages.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            name = case["name"] if case["api"] is None else case["name"] + case["kind"].capitalize()
            found[name].append((case["version"], bytes.fromhex(case["hex"])))
    return found


GOLDEN = golden_bytes()


@EVERY_MESSAGE
@settings(max_examples=15)
@given(data=st.data())
def test_what_a_version_can_say_survives_the_round_trip_alone_and_in_its_frame(name: str, data: st.DataObject) -> None:
    message = MESSAGES[name]
    version = data.draw(st.sampled_from(message.versions))
    given_message = data.draw(message.values(version))
    encoded = given_message.encode(version)
    for form in (bytes, bytearray, memoryview):
        assert message.cls.decode(form(encoded), version) == given_message
    if message.api is None:
        return
    key = message.api[0]
    if message.schema.kind == "request":
        frame = b"".join(encode_request(key, version, 7, "me", given_message))
        *header, reader = read_request_header(frame[4:])
        assert header == [key, version, 7, "me"]
    else:
        frame = b"".join(encode_response(key, version, 7, given_message))
        correlation_id, reader = read_response_header(key, version, frame[4:])
        assert correlation_id == 7
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert message.cls.read(reader, version) == given_message
    reader.finish()


def damaged(whole: bytes, dice: Random) -> bytes:
    """The bytes with a few pieces overwritten, inserted or cut out."""
    for _ in range(dice.randint(1, 3)):
        start = dice.randint(0, len(whole))
        piece = dice.choice(NASTY) if dice.random() < 0.5 else dice.randbytes(dice.randint(0, 6))
        whole = whole[:start] + piece + whole[start + dice.randint(0, 6) :]
    return whole


def peak_of_decoding(name: str, found: bytes, version: int) -> int:
    """The most bytes that were allocated at once."""
    tracemalloc.start()
    try:
        MESSAGES[name].cls.decode(found, version)
    except MalformedRequest:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("name", sorted(GOLDEN.keys() & MESSAGES.keys()))
@settings(max_examples=10)
@given(seed=st.integers(0, 1 << 32))
def test_damaged_bytes_are_read_or_refused_and_cost_no_more_memory_than_their_size_allows(name: str, seed: int) -> None:
    """Eight for each seed: Hypothesis takes longer to draw a piece than they take to be read."""
    dice = Random(seed)
    for _ in range(8):
        version, whole = dice.choice(GOLDEN[name])
        found = damaged(whole, dice)
        allowed = 20_000 + MEMORY_FACTOR * len(found)
        # Threads that other tests left in this process are traced too; what decoding needs, it needs every time.
        assert any(peak_of_decoding(name, found, version) < allowed for _ in range(5)), f"{found.hex()} as v{version}"
