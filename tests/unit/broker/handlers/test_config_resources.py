"""Subscriptions to metrics of clients, and levels of loggers, as resources; answers as those of Apache Kafka 4.4.0."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from partita import Broker
from partita.broker.client_metrics import subscriptions
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.alter_configs import AlterableConfig as Replacement
from partita.protocol.messages.alter_configs import AlterConfigsRequest
from partita.protocol.messages.alter_configs import AlterConfigsResource as Replaced
from partita.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from partita.protocol.messages.list_config_resources import ListConfigResourcesRequest
from support.broker.raw import Raw

LOGGER, SUBSCRIPTION = 8, 16
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
BAD = [
    ("metrics", APPEND, "x", ErrorCode.INVALID_CONFIG, "Can't APPEND to key metrics because its type is not LIST."),
    ("nope", SUBTRACT, "x", ErrorCode.INVALID_CONFIG, "Can't SUBTRACT to key nope because its type is not LIST."),
    ("nope", SET, "5", ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: nope"),
    ("metrics", SET, None, ErrorCode.INVALID_REQUEST, "Null value not supported for : metrics"),
    ("metrics", SET, "a,,b", ErrorCode.INVALID_CONFIG, "Configuration 'metrics' values must not be empty."),
    (
        "interval.ms", SET, "abc", ErrorCode.INVALID_CONFIG,
        "Invalid value abc for configuration interval.ms: Not a number of type INT",
    ),
    *(
        (
            "interval.ms", SET, text, ErrorCode.INVALID_REQUEST,
            f"Invalid value {text} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        )
        for text in ("-1", "99", "3600001")
    ),
    *(
        ("match", SET, text, ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
        for text in ("client_id", "client_id=", "=x", "nope=x", "client_id=a=b")
    ),
]  # fmt: skip
GOOD = [
    ("metrics", " a , b ,a", "a,b"),
    ("metrics", "*", "*"),
    ("metrics", "", ""),
    ("interval.ms", "100", "100"),
    ("match", "client_id = a , client_source_port=1", "client_id = a,client_source_port=1"),
]
LEVELS = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
BAD_LEVELS = [
    ("nope", SET, "INFO", ErrorCode.INVALID_CONFIG, "Logger nope does not exist!"),
    (
        "root", SET, "debug", ErrorCode.INVALID_CONFIG,
        f"Cannot set the log level of root to debug as it is not a supported log level. {LEVELS}",
    ),
    ("root", DELETE, None, ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
    (
        "root", APPEND, "INFO", ErrorCode.INVALID_REQUEST,
        "APPEND operation is not allowed for the BROKER_LOGGER resource",
    ),
    (
        "root", 9, "INFO", ErrorCode.INVALID_REQUEST,
        "Unknown operation type 9 is not allowed for the BROKER_LOGGER resource",
    ),
]  # fmt: skip


@pytest.fixture
def raw() -> Iterator[Raw]:
    with Broker() as broker, Raw(broker.port) as connection:
        yield connection


@pytest.fixture
def loggers() -> Iterator[logging.Logger]:
    """The logger above all of Partita's; the levels are put back."""
    found = {name: logging.getLogger(name) for name in ("partita", "partita.broker")}
    before = {name: each.level for name, each in found.items()}
    yield found["partita"]
    for name, each in found.items():
        each.setLevel(before[name])


def alter(
    raw: Raw, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> tuple[int, str | None]:
    configs = [AlterableConfig(name=each, config_operation=how, value=value) for each, how, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    answer = raw.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only), 1).responses[0]
    return answer.error_code, answer.error_message


def replace(raw: Raw, kind: int, name: str, **settings: str) -> tuple[int, str | None]:
    configs = [Replacement(name=each.replace("_", "."), value=value) for each, value in settings.items()]
    request = AlterConfigsRequest(resources=[Replaced(resource_type=kind, resource_name=name, configs=configs)])
    answer = raw.ask(request, 2).responses[0]
    return answer.error_code, answer.error_message


def described(raw: Raw, kind: int, name: str, *keys: str) -> dict[str, tuple[str | None, int]] | str | None:
    """The values with where they come from; the text of a refusal."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    result = raw.ask(DescribeConfigsRequest(resources=[resource]), 4).results[0]
    if result.error_code:
        text: str | None = result.error_message
        return text
    return {row.name: (row.value, row.config_source) for row in result.configs}


def listed(raw: Raw, kind: int, version: int = 1) -> list[str]:
    kinds = [kind] if version else []
    answer = raw.ask(ListConfigResourcesRequest(resource_types=kinds), version)
    return sorted(each.resource_name for each in answer.config_resources)


def test_subscriptions_are_kept_and_described_with_where_each_value_comes_from(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        name = "5a/b c"
        assert alter(raw, SUBSCRIPTION, name, ("metrics", SET, "a.b"), ("interval.ms", SET, "1000")) == (0, None)
        assert alter(raw, SUBSCRIPTION, "not kept", ("interval.ms", SET, "1000"), validate_only=True) == (0, None)
        assert alter(raw, SUBSCRIPTION, "gone", ("interval.ms", SET, "1000")) == (0, None)
        assert replace(raw, SUBSCRIPTION, "gone") == (0, None)
    with Broker(data_dir=str(tmp_path)) as broker, Raw(broker.port) as raw:
        assert listed(raw, SUBSCRIPTION) == listed(raw, SUBSCRIPTION, 0) == [name]
        assert described(raw, SUBSCRIPTION, name) == {
            "interval.ms": ("1000", 7),
            "match": ("", 5),
            "metrics": ("a.b", 7),
        }
        assert described(raw, SUBSCRIPTION, "absent", "interval.ms") == {"interval.ms": ("300000", 5)}
        assert described(raw, SUBSCRIPTION, "") == "Client metrics subscription name must not be empty"
        assert replace(raw, SUBSCRIPTION, name, match="client_id=x") == (0, None)
        assert described(raw, SUBSCRIPTION, name, "metrics", "match") == {
            "metrics": ("", 5),
            "match": ("client_id=x", 7),
        }
        assert replace(raw, SUBSCRIPTION, "") == (ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        assert alter(raw, SUBSCRIPTION, name, ("match", DELETE, None), ("nope", DELETE, None)) == (0, None)
        assert listed(raw, SUBSCRIPTION) == []


def test_settings_of_subscriptions_are_checked_in_kafkas_words(raw: Raw) -> None:
    wrong = {
        (name, text): got
        for name, how, text, code, message in BAD
        if (got := alter(raw, SUBSCRIPTION, "s", (name, how, text))) != (code, message)
    }
    assert not wrong
    assert listed(raw, SUBSCRIPTION) == []
    for name, given, kept in GOOD:
        assert alter(raw, SUBSCRIPTION, "s", (name, SET, given)) == (0, None)
        assert described(raw, SUBSCRIPTION, "s", name) == {name: (kept, 7)}
    code, message = alter(raw, SUBSCRIPTION, "s", ("match", SET, "client_id=["))
    assert (code, str(message)[:44]) == (ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=[")


def test_there_are_at_most_so_many_subscriptions(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "SUBSCRIPTIONS_MAX", 1)
    assert replace(raw, SUBSCRIPTION, "a", metrics="x") == (0, None)
    assert replace(raw, SUBSCRIPTION, "b", metrics="x")[0] == ErrorCode.POLICY_VIOLATION
    assert replace(raw, SUBSCRIPTION, "a", metrics="y") == (0, None)


def test_levels_of_loggers_change_what_is_logged(raw: Raw, loggers: logging.Logger) -> None:
    assert listed(raw, LOGGER) == ["1"]
    assert alter(raw, LOGGER, "1", ("root", SET, "ERROR")) == (0, None)
    assert loggers.level == logging.ERROR
    assert described(raw, LOGGER, "1", "root", "partita.broker") == {
        "partita.broker": ("ERROR", 6),
        "root": ("ERROR", 6),
    }
    assert alter(raw, LOGGER, "1", ("partita.broker", SET, "TRACE"), ("root", SET, "WARN")) == (0, None)
    assert described(raw, LOGGER, "1", "partita.broker") == {"partita.broker": ("TRACE", 6)}
    assert logging.getLogger("partita.broker").isEnabledFor(logging.DEBUG)
    assert alter(raw, LOGGER, "1", ("partita.broker", DELETE, None), validate_only=True) == (0, None)
    assert logging.getLogger("partita.broker").isEnabledFor(logging.DEBUG), "it was only asked whether it may change"
    assert alter(raw, LOGGER, "1", ("partita.broker", DELETE, None)) == (0, None)
    assert not logging.getLogger("partita.broker").isEnabledFor(logging.INFO)


def test_levels_of_loggers_are_checked_in_kafkas_words(raw: Raw, loggers: logging.Logger) -> None:
    before = loggers.level
    for name, how, level, code, message in BAD_LEVELS:
        assert alter(raw, LOGGER, "1", ("partita.broker", SET, "FATAL"), (name, how, level)) == (code, message)
    assert loggers.level == before
    assert logging.getLogger("partita.broker").level != logging.CRITICAL
    for name in ("", "x"):
        expected = (ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        assert alter(raw, LOGGER, name, ("root", SET, "INFO")) == expected
    assert alter(raw, LOGGER, "7", ("root", SET, "INFO"))[1] == "Unexpected node id. Expected 1, but received 7"
    assert described(raw, LOGGER, "") == "Broker id must not be empty"
    assert described(raw, LOGGER, "x") == "Broker id must be an integer, but it is: x"
    assert described(raw, LOGGER, "7") == "Unexpected broker id, expected 1 but received 7"
    assert replace(raw, LOGGER, "1", root="INFO")[1] == "Unknown resource type 8"
