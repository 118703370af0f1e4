"""Settings that a share group has of its own."""

import pytest

from partita.broker.config import BrokerConfig, ConfigError
from partita.broker.groups.settings import DELIVERIES, ISOLATION, LOCK, RENEW, RESET, in_force, parsed

CONFIG = BrokerConfig()


@pytest.mark.case("SG-I02", "SG-I03")
@pytest.mark.parametrize(
    "given",
    [
        {"share.record.lock.duration.ms": "14999"},
        {"share.record.lock.duration.ms": "60001"},
        {"share.delivery.count.limit": "1"},
        {"share.delivery.count.limit": "11"},
        {"share.partition.max.record.locks": "99"},
        {"share.session.timeout.ms": "44999"},
        {"share.heartbeat.interval.ms": "4999"},
        {"share.assignment.interval.ms": "15001"},
        {"share.auto.offset.reset": "none"},
        {"share.auto.offset.reset": "by_duration:1h"},
        {"share.auto.offset.reset": "by_duration:-PT1H"},
        {"share.isolation.level": "serializable"},
        {"share.renew.acknowledge.enable": "maybe"},
        {"share.no.such.setting": "1"},
    ],
)
def test_a_setting_is_a_known_one_within_the_brokers_bounds(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        parsed(CONFIG, given)


@pytest.mark.case("SG-I02")
def test_a_session_is_longer_than_the_interval_of_heartbeats() -> None:
    wide = BrokerConfig({"group.share.min.session.timeout.ms": 1, "group.share.max.heartbeat.interval.ms": 60_000})
    with pytest.raises(ConfigError, match="must be greater than"):
        parsed(wide, {"share.session.timeout.ms": "9000", "share.heartbeat.interval.ms": "9000"})


def test_settings_count_before_the_brokers_and_stay_within_its_bounds() -> None:
    own = parsed(CONFIG, {LOCK: "20000", RENEW: "false", RESET: "by_duration:PT1H", ISOLATION: "read_committed"})
    assert [in_force(CONFIG, own, name) for name in (LOCK, RENEW, RESET, ISOLATION, DELIVERIES)] == [
        20_000,
        False,
        "by_duration:PT1H",
        "read_committed",
        5,
    ]
    narrow = BrokerConfig({"group.share.min.record.lock.duration.ms": 25_000})
    assert in_force(narrow, own, LOCK) == 25_000
