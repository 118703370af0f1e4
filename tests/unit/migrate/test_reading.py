"""What requests say about progress, pauses, records fetched again and order."""

from __future__ import annotations

import pytest

from partita.migrate.reading import PAUSE_MS, Reading
from partita.offsets.topic_partition import TopicPartition

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def reading() -> Reading:
    return Reading([ONE, OTHER], 1_000)


def test_the_longest_time_without_progress_of_any_partition_is_the_pause(reading: Reading) -> None:
    for offset, now_ms in enumerate((1_100, 1_200, 1_200 + PAUSE_MS), 1):
        reading.fetched(ONE, offset, now_ms)
        reading.fetched(OTHER, offset, 1_000 + 100 * offset)
    found = reading.measured("classic", "a member joins")
    assert (found.longest_ms, found.paused, found.partitions) == (PAUSE_MS, 1, 2)


def test_a_fetch_at_the_same_offset_is_no_progress(reading: Reading) -> None:
    reading.fetched(ONE, 5, 1_100)
    reading.fetched(ONE, 5, 1_200)
    reading.fetched(ONE, 6, 1_500)
    assert reading.measured("classic", "").longest_ms == 400


def test_a_fetch_at_an_earlier_offset_is_of_records_that_are_fetched_again(reading: Reading) -> None:
    reading.fetched(ONE, 50, 1_100)
    reading.fetched(ONE, 30, 1_200)
    reading.fetched(ONE, 60, 1_300)
    assert reading.measured("classic", "").again == 20


def test_records_of_a_share_group_that_are_done_after_a_later_one_are_out_of_order(reading: Reading) -> None:
    reading.acknowledged(ONE, 10, 19, 1_100)
    reading.acknowledged(ONE, 5, 12, 1_200)
    reading.acknowledged(ONE, 20, 29, 1_300)
    found = reading.measured("share", "")
    assert (found.out_of_order, found.again, found.longest_ms) == (8, 0, 100)


def test_a_session_that_ended_early_makes_the_pauses_of_its_partitions_longer(reading: Reading) -> None:
    reading.skip({ONE: 45_000, TopicPartition("another", 0): 60_000})
    reading.fetched(ONE, 1, 1_300)
    reading.fetched(OTHER, 1, 1_100)
    found = reading.measured("classic", "a member crashes")
    assert (found.longest_ms, found.session_ms, found.paused) == (45_300, 45_000, 1)


def test_a_new_beginning_forgets_what_was_measured_and_keeps_the_offsets(reading: Reading) -> None:
    reading.fetched(ONE, 50, 9_000)
    reading.begin(10_000)
    reading.fetched(ONE, 40, 10_050)
    found = reading.measured("classic", "")
    assert (found.longest_ms, found.again) == (50, 10)


def test_every_partition_is_read_since_a_moment_only_if_each_made_progress(reading: Reading) -> None:
    reading.fetched(ONE, 1, 2_000)
    assert not reading.is_read_since(1_500)
    reading.fetched(OTHER, 1, 1_500)
    assert reading.is_read_since(1_500)


def test_other_partitions_do_not_count(reading: Reading) -> None:
    reading.fetched(TopicPartition("another", 0), 5, 60_000)
    reading.acknowledged(TopicPartition("another", 0), 5, 6, 60_000)
    assert reading.measured("classic", "").longest_ms == 0
