"""The heartbeat shortcut: what one asker sent before is answered without decoding, and nobody else's is."""

from __future__ import annotations

from collections import Counter

import pytest

from partita.broker.counts import Tally
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
    recall.learn(frame(b"0001"), lambda: codes.pop(0), REPLIES, Tally(12, Counter()))
    assert recall.reply(sent(b"0002")) == b"<0002 fine>"
    assert recall.reply(sent(b"0003")) == b"<0003 rebalance>"
    assert recall.reply(sent(b"0004")) is None, "the handler wants to be asked"
    assert recall.reply(sent(b"0005", b"other")) is None
    assert recall.reply(sent(b"0005")[:-1]) is None


def test_known_frames_at_the_head_of_a_read_are_answered_and_the_rest_is_left() -> None:
    recall = Memo(Switch()).recall("User:a", "/1")
    recall.learn(frame(b"0001"), lambda: 0, REPLIES, Tally(12, Counter()))
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
    mine.learn(frame(b"0001"), lambda: 0, REPLIES, Tally(12, Counter()))
    assert memo.recall("User:a", "/1").reply(sent(b"0002")) is not None, "another connection of the same asker"
    assert memo.recall(*other).reply(sent(b"0002")) is None


def test_a_change_of_rights_empties_the_memory_of_everybody() -> None:
    memo = Memo(Switch())
    askers = [memo.recall("User:a", "/1"), memo.recall("User:b", "/1")]
    for recall in askers:
        recall.learn(frame(b"0001"), lambda: 0, REPLIES, Tally(12, Counter()))
    memo.clear()
    assert [recall.reply(sent(b"0002")) for recall in askers] == [None, None]


def test_while_faults_are_injected_every_request_is_decoded() -> None:
    switch = Switch()
    recall = Memo(switch).recall("User:a", "/1")
    recall.learn(frame(b"0001"), lambda: 0, REPLIES, Tally(12, Counter()))
    switch.active = True
    assert recall.reply(sent(b"0002")) is None
    assert recall.replies(sent(b"0002"), 0, []) == 0
    switch.active = False
    assert recall.reply(sent(b"0002")) is not None


def test_what_is_remembered_is_bounded() -> None:
    memo = Memo(Switch())
    recall = memo.recall("User:a", "/1")
    large = b"x" * FRAME_BYTES_MAX
    recall.learn(frame(b"0001", large), lambda: 0, REPLIES, Tally(12, Counter()))
    assert recall.reply(sent(b"0002", large)) is None, "too large to be remembered"
    bodies = [f"{i:06}".encode() for i in range(ENTRIES_MAX + 1)]
    for body in bodies:
        recall.learn(frame(b"0001", body), lambda: 0, REPLIES, Tally(12, Counter()))
    known = [body for body in bodies if recall.reply(sent(b"0002", body)) is not None]
    assert known == bodies[ENTRIES_MAX:], "one too many emptied it"


@pytest.mark.parametrize(("code", "words"), [(0, b"fine"), (27, b"rebalance")])
def test_frames_that_came_together_are_looked_up_once_and_counted_one_by_one(code: int, words: bytes) -> None:
    """Issue 18: heartbeats 1 x 200; each run of equal requests asks its handler once."""
    asked: list[int] = []
    recall = Memo(Switch()).recall("User:a", "/1")
    errors: Counter[tuple[int, int]] = Counter()
    tally = Tally(12, errors)

    def answer() -> int:
        asked.append(code)
        return code

    for body in (b"body", b"another one"):
        recall.learn(frame(b"0001", body), answer, REPLIES, tally)
    bodies = [b"body", b"body", b"another one", b"body", b"bodies", b"body"]
    received = b"".join(sent(b"%04d" % number, body) for number, body in enumerate(bodies))
    out: list[Buffer] = []
    assert recall.replies(received, 0, out) == len(b"".join(sent(b"0000", body) for body in bodies[:4]))
    assert b"".join(out) == b"".join(b"<%04d %s>" % (number, words) for number in range(4))
    assert (len(asked), tally.count) == (3, 4)
    assert errors == ({(12, code): 4, (12, 0): -4} if code else {})
