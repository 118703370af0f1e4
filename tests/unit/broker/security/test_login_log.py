"""The audit log of logins is bounded, escaped and free of secrets; the delay grows with an address's failures."""

from __future__ import annotations

import logging

import pytest

from partita.broker.config import BrokerConfig
from partita.broker.notes import Notes
from partita.broker.security.login_log import HOSTS_MAX, LoginLog
from partita.system_clock import SystemClock
from support.broker.data_plane import QuietConnection


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock) -> tuple[LoginLog, Notes]:
    notes = Notes(SystemClock())
    return LoginLog(BrokerConfig(), notes, clock), notes


def connection(host: str = "/10.0.0.1") -> QuietConnection:
    found = QuietConnection()
    found.client_host = host
    return found


@pytest.mark.case("SE-P09")
def test_ten_thousand_failures_are_a_line_a_second_and_a_growing_delay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "partita.security")
    clock = Clock()
    log, notes = made(clock)
    delays = []
    for _ in range(10_000):
        clock.now += 0.0005
        delays.append(log.failed(connection(), "SASL_SSL", "PLAIN", "alice", "Invalid username or password"))
    assert delays[0] == 0.1
    assert max(delays) == 1.0
    assert len(caplog.records) <= 6
    assert "more since the last line" in caplog.records[-1].getMessage()
    assert len(notes.since()) == len(caplog.records)
    assert log.failed(connection("/10.0.0.2"), "SASL_SSL", "PLAIN", "bob", "x") == 0.1, "others are unharmed"


@pytest.mark.case("SE-P06", "SE-P11")
def test_names_are_escaped_and_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "partita.security")
    log, _ = made(Clock())
    log.failed(connection(), "SASL_SSL", "PLAIN", "a\n2026 ERROR\x1b[31m\u202e" + "x" * 40_000, "no")
    (record,) = caplog.records
    line = record.getMessage()
    assert line.isprintable()
    assert "a\\n2026 ERROR\\x1b[31m\\u202e" in line
    assert len(line) < 500


def test_the_memory_of_addresses_is_bounded() -> None:
    log, _ = made(Clock())
    for number in range(3 * HOSTS_MAX):
        log.failed(connection(f"/10.0.{number >> 8}.{number & 255}"), "X", "PLAIN", "", "no")
    assert len(log._failures) <= HOSTS_MAX
