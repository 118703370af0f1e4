import json
from pathlib import Path
from typing import Any

import pytest

from partita.client_options import PARTITA_SECURITY_OPTIONS
from partita.options import ConfigError
from partita.producer.config import OPTIONS, ProducerConfig


def config(**options: Any) -> ProducerConfig:
    return ProducerConfig.of(bootstrap_servers="localhost:9092", **options)


def test_defaults_are_idempotent_and_acknowledged_by_all() -> None:
    checked = config()
    assert (checked.acks, checked.enable_idempotence, checked.max_in_flight) == (-1, True, 5)
    assert (checked.batch_size, checked.linger_ms, checked.delivery_timeout_ms) == (16_384, 5, 120_000)


def test_a_dict_in_kafkas_spelling_is_accepted() -> None:
    checked = ProducerConfig.of({"bootstrap.servers": "a:1", "linger.ms": "7", "compression.type": "zstd"})
    assert (checked.linger_ms, checked.codec) == (7, 4)


@pytest.mark.parametrize(
    "options", [{"acks": "1"}, {"acks": 0}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}]
)
def test_what_is_at_odds_with_idempotence_switches_it_off_unless_it_was_asked_for(
    options: dict[str, int] | dict[str, str],
) -> None:
    assert config(**options).enable_idempotence is False
    with pytest.raises(ConfigError, match="with enable_idempotence"):
        config(enable_idempotence=True, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linger": 1}, "did you mean 'linger_ms'"),
        ({"acks": "2"}, "acks must be one of all, -1, 0, 1"),
        ({"compression_type": "lzma"}, "compression_type must be one of"),
        ({"batch_size": -1}, "at least 0"),
        ({"compression_type": "gzip", "compression_gzip_level": 0}, "-1 or 1 to 9"),
        ({"delivery_timeout_ms": 10}, "at least linger_ms \\+ request_timeout_ms, which is 30005"),
        ({"transactional_id": " "}, "transactional_id must be a name"),
        ({"transactional_id": "x", "acks": "1"}, "with transactional_id acks must be all, not 1"),
        ({"transactional_id": "x", "retries": 0}, "with transactional_id retries"),
        ({"transactional_id": "x", "max_in_flight_requests_per_connection": 6}, "with transactional_id max_in_flight"),
        ({"transactional_id": "x", "enable_idempotence": False}, "with transactional_id enable_idempotence must be"),
        ({"transaction_timeout_ms": 0}, "at least 1"),
        ({"transaction_two_phase_commit_enable": True}, "two-phase commit is not supported"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism is not set"),
        (
            {"partitioner_class": "murmur3"},
            "must be one of murmur2_random, murmur2, .*, or a function",
        ),
        ({"partitioner_class": 7}, "must be callable"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, int | str] | dict[str, int] | dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**options)


def test_the_delivery_timeout_grows_with_what_it_must_cover() -> None:
    assert config(request_timeout_ms=200_000).delivery_timeout_ms == 200_005


def test_every_option_of_kafka_is_known_with_its_default() -> None:
    vectors = Path(__file__).parents[2] / "vectors" / "configs.json"
    known = {option.dotted: option for option in OPTIONS}
    ours = {"send.buffer.bytes": -1, "receive.buffer.bytes": -1}
    for fact in json.loads(vectors.read_text())["producer"]:
        if fact.get("internal") and fact["name"] not in known:
            continue
        option = known.pop(fact["name"])
        if fact["type"] in ("INT", "LONG", "SHORT", "BOOLEAN", "DOUBLE"):
            assert option.default == ours.get(fact["name"], fact.get("default")), fact["name"]
    assert known.keys() == {option.dotted for option in PARTITA_SECURITY_OPTIONS}, "the rest is documented as ours"
