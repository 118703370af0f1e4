"""Rates over windows and buckets of tokens, with times that the test gives. (Kafka: Rate, TokenBucket)"""

from __future__ import annotations

from partita.security.meters import RateMeter, TokenBucket


def test_nothing_used_is_no_reason_to_wait() -> None:
    assert RateMeter().throttle_ms(1, 0) == 0


def test_a_burst_of_ten_seconds_worth_is_allowed_at_once() -> None:
    meter = RateMeter()
    meter.record(1000, 0)
    assert meter.throttle_ms(100, 0) == 0
    meter.record(100, 0)
    assert meter.throttle_ms(100, 0) == 1000


def test_waiting_as_long_as_told_brings_the_rate_down_to_the_limit() -> None:
    meter = RateMeter()
    for second in range(20):
        meter.record(150, second * 1000)
    wait = meter.throttle_ms(100, 19_000)
    assert wait > 0
    assert meter.throttle_ms(100, 19_000 + wait) == 0


def test_what_is_older_than_the_windows_is_forgotten() -> None:
    meter = RateMeter()
    meter.record(1_000_000, 0)
    assert meter.throttle_ms(1, 10_999) > 0
    assert meter.throttle_ms(1, 11_000) == 0


def test_the_rate_that_a_limit_lets_through_is_the_limit() -> None:
    """SE-M13, in pure time: who uses as much as it may over five minutes uses the limit, within a fifth."""
    meter, now, used = RateMeter(), 0.0, 0
    while now < 300_000:
        meter.record(5_000, now)
        used += 5_000
        now += 1 + meter.throttle_ms(1_000, now)
    assert 0.8 < used / 300 / 1_000 < 1.2


def test_a_bucket_goes_into_debt_once_and_fills_up_again() -> None:
    bucket = TokenBucket()
    assert bucket.take(20, 1.0, 0)
    assert bucket.throttle_ms(1.0, 0) == 9_000
    assert not bucket.take(1, 1.0, 8_000)
    assert bucket.take(1, 1.0, 9_000)
    assert bucket.throttle_ms(1.0, 10_000) == 0
    assert bucket.take(11, 1.0, 10_000_000)
    assert bucket.throttle_ms(1.0, 10_000_000) == 0
