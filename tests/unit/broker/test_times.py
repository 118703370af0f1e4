"""Histograms of times, and which errors a response tells."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.broker.counts import HALF_WINDOW_SECONDS, PARTS_MAX, Times, count_errors, longest_of, step_of
from partita.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from partita.protocol.messages.heartbeat import HeartbeatResponse
from partita.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from partita.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from partita.protocol.primitives import Message


def times(*milliseconds: float, instant: int = 0) -> Times:
    found = Times(0.0, lambda: instant)
    for ms in milliseconds:
        found.record(ms / 1000, 1.0)
    return found


@given(st.integers(0, 2**40))
def test_steps_rise_and_a_time_is_at_most_a_sixteenth_below_the_end_of_its_step(us: int) -> None:
    step = step_of(us)
    assert us <= longest_of(step) <= us * 17 / 16
    assert step_of(longest_of(step)) == step
    assert step_of(longest_of(step) + 1) == step + 1


@given(st.lists(st.floats(0, 60_000), min_size=1, max_size=50), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_that_of_the_sorted_times_within_a_sixteenth(given: list[float], share: float) -> None:
    exact = sorted(given)[ceil(share * len(given)) - 1]
    assert exact - 0.002 <= times(*given).percentile_ms(share, 2.0) <= exact * 17 / 16 + 0.002


def test_instant_answers_count_as_no_time() -> None:
    found = times(10.0, 20.0, instant=6)
    assert found.count == 8
    assert found.mean_ms == pytest.approx(3.75)
    assert found.percentile_ms(0.5, 2.0) == 0
    assert found.percentile_ms(0.99, 2.0) == pytest.approx(20, rel=1 / 16)
    assert (times().count, times().mean_ms, times().percentile_ms(0.5, 1.0)) == (0, 0, 0)


def test_percentiles_forget_what_is_past_while_mean_and_maximum_do_not() -> None:
    answered = 0
    found = Times(0.0, lambda: answered)
    answered = 5
    found.record(1.0, 1.0)
    found.record(0.001, HALF_WINDOW_SECONDS + 1)
    assert found.percentile_ms(0.99, HALF_WINDOW_SECONDS + 2) == 1000, "still in the window"
    later = 2 * HALF_WINDOW_SECONDS + 2
    assert found.percentile_ms(0.5, later) == pytest.approx(1, rel=1 / 16), "neither the first one nor the instant five"
    assert found.percentile_ms(0.5, later + 5 * HALF_WINDOW_SECONDS) == 0, "a long pause"
    assert (found.count, found.most) == (7, 1.0)


PARTITIONS = [PartitionData(partition_index=0, error_code=0), PartitionData(partition_index=1, error_code=6)]


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (HeartbeatResponse(error_code=27), {27: 1}),
        (FetchResponse(error_code=0), {0: 1}),
        (FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=PARTITIONS)]), {0: 2, 6: 1}),
        (
            MetadataResponse(
                topics=[
                    MetadataResponseTopic(name="t", error_code=3),
                    MetadataResponseTopic(name="u", partitions=[MetadataResponsePartition(error_code=5)]),
                ]
            ),
            {0: 2, 3: 1, 5: 1},
        ),
        (OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", error_code=16)]), {0: 1, 16: 1}),
        (
            MetadataResponse(topics=[MetadataResponseTopic(error_code=3) for _ in range(PARTS_MAX + 9)]),
            {0: 1, 3: PARTS_MAX},
        ),
    ],
)
def test_codes_of_the_whole_and_of_the_parts_are_counted(response: Message, told: dict[int, int]) -> None:
    """As Kafka's errorCounts, but for the bound."""
    errors: Counter[tuple[int, int]] = Counter()
    count_errors(errors, 1, response)
    assert errors == {(1, code): count for code, count in told.items()}
