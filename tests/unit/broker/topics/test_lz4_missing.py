"""Settings that need the package lz4, where it is missing: refused when they are set, not at the first produce."""

from __future__ import annotations

import sys

import pytest

from partita import Broker
from partita.broker.launch import StartError
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from partita.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.broker.raw import Raw

TOPIC, SET = 2, 0


@pytest.fixture
def without_lz4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lz4", None)


@pytest.mark.usefixtures("without_lz4")
def test_a_topic_is_neither_created_nor_changed_to_it(raw: Raw) -> None:
    configs = [CreatableTopicConfig(name="compression.type", value="lz4")]
    new = CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=configs)
    created = raw.ask(CreateTopicsRequest(topics=[new]), 5).topics[0]
    assert created.error_code == ErrorCode.INVALID_CONFIG
    assert "pip install 'partita[lz4]'" in created.error_message
    assert (
        raw.ask(CreateTopicsRequest(topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]), 5)
        .topics[0]
        .error_code
        == 0
    )
    change = AlterableConfig(name="compression.type", config_operation=SET, value="lz4")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="new", configs=[change])
    changed = raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0]
    assert changed.error_code == ErrorCode.INVALID_CONFIG
    assert "pip install 'partita[lz4]'" in changed.error_message


@pytest.mark.usefixtures("without_lz4")
@pytest.mark.parametrize("option", [{"compression.type": "lz4"}, {"offsets.topic.compression.codec": 3}])
def test_a_broker_does_not_start_with_it(option: dict[str, object]) -> None:
    with pytest.raises(StartError, match="needs the package lz4"), Broker(option):
        pass


def test_where_it_is_installed_it_is_accepted(raw: Raw) -> None:
    configs = [CreatableTopicConfig(name="compression.type", value="lz4")]
    new = CreatableTopic(name="new", num_partitions=1, replication_factor=1, configs=configs)
    assert raw.ask(CreateTopicsRequest(topics=[new]), 5).topics[0].error_code == 0
