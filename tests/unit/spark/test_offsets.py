"""The offset JSON: exact form, stable text, round trip."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.spark.planning.offsets import OffsetFormatError, Range, StreamOffset, decode, encode

ID = bytes(range(16))


def test_the_offset_has_one_form_in_json() -> None:
    offset = StreamOffset(
        {("b", 10): Range(5, 9, 2), ("b", 9): Range(0, 0), ("a", 0): Range(1, 2, 0)}, {"a": ID, "gone": ID}, ordinal=3
    )
    assert json.dumps(encode(offset)) == json.dumps(
        {
            "v": 1,
            "t": {"a": {"0": [1, 2, 0]}, "b": {"9": [0, 0, -1], "10": [5, 9, 2]}},
            "i": {"a": "AAECAwQFBgcICQoLDA0ODw"},
            "n": 3,
        }
    )


def test_a_first_offset_without_topic_ids_is_plain() -> None:
    assert encode(StreamOffset({("a", 0): Range(1, 1, 0)})) == {"v": 1, "t": {"a": {"0": [1, 1, 0]}}}


offsets = st.builds(
    StreamOffset,
    st.dictionaries(
        st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 300)),
        st.builds(Range, st.integers(0, 2**62), st.integers(0, 2**62), st.integers(-1, 100)),
        max_size=8,
    ),
    ordinal=st.integers(-1, 5),
    member_epoch=st.none() | st.integers(0, 9),
    shared_records=st.none() | st.integers(0, 9000),
)


@given(offsets)
def test_text_is_the_same_after_any_number_of_round_trips(offset: StreamOffset) -> None:
    text = json.dumps(encode(offset))
    back = decode(json.loads(text))
    assert back == offset
    assert json.dumps(encode(back)) == text
    assert json.dumps(json.loads(text)) == text


@pytest.mark.parametrize("document", [{}, {"v": 2, "t": {}}, {"topic": {"x": 4}}])
def test_a_foreign_offset_says_what_to_do(document: dict[str, object]) -> None:
    with pytest.raises(OffsetFormatError, match=r"new checkpointLocation|damaged"):
        decode(document)


@pytest.mark.parametrize("document", [{"v": 1}, {"v": 1, "t": {"a": [1]}}, {"v": 1, "t": {"a": {"x": [1, 2, 3]}}}])
def test_a_damaged_offset_is_shown(document: dict[str, object]) -> None:
    with pytest.raises(OffsetFormatError, match="damaged"):
        decode(document)
