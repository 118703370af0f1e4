"""Offsets of a mirrored topic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.cli.records.translation import Translation


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
