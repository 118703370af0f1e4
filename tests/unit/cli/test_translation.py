"""Offsets of a mirrored topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.cli.records.mirror import TEXT_CHARACTERS_MAX, Translation


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=30),
    st.integers(0, 5),
    st.integers(0, 120),
)
def test_a_translated_offset_skips_nothing_unread_and_rereads_no_copy_before_it(
    steps: list[tuple[int, int]], first: int, committed: int
) -> None:
    translation, copies = Translation(), {}
    original, copy = first, 10
    for gap, foreign in steps:
        translation.add(original, copy)
        copies[original] = copy
        original, copy = original + gap, copy + foreign
    found = translation.committed(committed)
    if committed < first:
        assert found is None
        return
    assert found is not None
    unread = [copies[offset] for offset in copies if offset >= committed]
    read = [copies[offset] for offset in copies if offset < committed]
    assert found <= min(unread, default=found)
    assert found > max(read, default=-1)


def test_a_stretch_without_gaps_is_one_entry() -> None:
    translation = Translation()
    for offset in range(1000):
        translation.add(5 + offset, offset)
    assert translation.stretches == [(5, 0, 1000)]


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 10**9)), max_size=400))
def test_a_translation_survives_as_text_from_its_newest_stretches_on(stretches: list[tuple[int, int, int]]) -> None:
    translation = Translation(sorted(stretches))
    text = translation.as_text()
    again = Translation.from_text(text)
    assert len(text) <= TEXT_CHARACTERS_MAX
    assert again.stretches == translation.stretches[len(translation.stretches) - len(again.stretches) :]
    assert len(again.stretches) >= min(len(stretches), 40)


@pytest.mark.parametrize("text", [None, "", "spark:q:7", "partita.mirror 2 1:1:1", "partita.mirror 1 x:y"])
def test_metadata_of_others_translates_nothing(text: str | None) -> None:
    assert Translation.from_text(text).stretches == []
