"""The heartbeat shortcut: what one asker sent before is answered without decoding, and nobody else's is."""

from __future__ import annotations

import pytest

from partita.broker.wire.memo import DECODE_IT, ENTRIES_MAX, FRAME_BYTES_MAX, Memo
from partita.protocol.primitives import Buffer

REPLIES = {0: (b"<", b" fine>"), 27: (b"<", b" rebalance>")}


class Switch:
    """Whether shortcuts are out of use."""

    active = False


def frame(correlation_id: bytes, body: bytes = b"body") -> bytes:
    return b"hb\0\3" + correlation_id + body


def sent(correlation_id: bytes, body: bytes = b"body") -> bytes:
    content = frame(correlation_id, body)
    return len(content).to_bytes(4, "big") + content


def test_a_frame_that_differs_in_its_correlation_id_only_gets_the_answer_of_now() -> None:
    codes = [0, 27, DECODE_IT]
    recall = Memo(Switch()).recall("User:a", "/1")
    assert recall.reply(sent(b"0001")) is None
    recall.learn(frame(b"0001"), lambda: codes.pop(0), REPLIES)
    assert recall.reply(sent(b"0002")) == b"<0002 fine>"
    assert recall.reply(sent(b"0003")) == b"<0003 rebalance>"
    assert recall.reply(sent(b"0004")) is None, "the handler wants to be asked"
    assert recall.reply(sent(b"0005", b"other")) is None
    assert recall.reply(sent(b"0005")[:-1]) is None


def test_known_frames_at_the_head_of_a_read_are_answered_and_the_rest_is_left() -> None:
    recall = Memo(Switch()).recall("User:a", "/1")
    recall.learn(frame(b"0001"), lambda: 0, REPLIES)
    out: list[Buffer] = []
    received = sent(b"0001") + sent(b"0002") + sent(b"0003", b"other") + sent(b"0004")
    assert recall.replies(received, 0, out) == 2 * len(sent(b"0001"))
    assert b"".join(out) == b"<0001 fine><0002 fine>"
    half = sent(b"0001")[:-2]
    assert recall.replies(half, 0, out) == 0


@pytest.mark.parametrize("other", [("User:b", "/1"), ("User:a", "/2")])
def test_nobody_is_answered_from_anothers_memory(other: tuple[str, str]) -> None:
    memo = Memo(Switch())
    mine = memo.recall("User:a", "/1")
    mine.learn(frame(b"0001"), lambda: 0, REPLIES)
    assert memo.recall("User:a", "/1").reply(sent(b"0002")) is not None, "another connection of the same asker"
    assert memo.recall(*other).reply(sent(b"0002")) is None


def test_a_change_of_rights_empties_the_memory_of_everybody() -> None:
    memo = Memo(Switch())
    askers = [memo.recall("User:a", "/1"), memo.recall("User:b", "/1")]
    for recall in askers:
        recall.learn(frame(b"0001"), lambda: 0, REPLIES)
    memo.clear()
    assert [recall.reply(sent(b"0002")) for recall in askers] == [None, None]


def test_while_faults_are_injected_every_request_is_decoded() -> None:
    switch = Switch()
    recall = Memo(switch).recall("User:a", "/1")
    recall.learn(frame(b"0001"), lambda: 0, REPLIES)
    switch.active = True
    assert recall.reply(sent(b"0002")) is None
    assert recall.replies(sent(b"0002"), 0, []) == 0
    switch.active = False
    assert recall.reply(sent(b"0002")) is not None


def test_what_is_remembered_is_bounded() -> None:
    memo = Memo(Switch())
    recall = memo.recall("User:a", "/1")
    large = b"x" * FRAME_BYTES_MAX
    recall.learn(frame(b"0001", large), lambda: 0, REPLIES)
    assert recall.reply(sent(b"0002", large)) is None, "too large to be remembered"
    bodies = [f"{i:06}".encode() for i in range(ENTRIES_MAX + 1)]
    for body in bodies:
        recall.learn(frame(b"0001", body), lambda: 0, REPLIES)
    known = [body for body in bodies if recall.reply(sent(b"0002", body)) is not None]
    assert known == bodies[ENTRIES_MAX:], "one too many emptied it"
