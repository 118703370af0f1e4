"""FindCoordinator, over a socket."""

from __future__ import annotations

import pytest

from partita import Broker
from partita.broker.control.verbs import ControlError
from partita.broker.topics.catalogue import NO_LEADER, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC
from partita.group import partition_for
from partita.option_types import BrokerOptions
from partita.protocol.error_codes import ErrorCode
from partita.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from partita.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from support.broker.raw import Raw


def ask(raw: Raw, version: int, key: str = "g", key_type: int = 0) -> FindCoordinatorResponse:
    answer = raw.ask(FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key]), version)
    assert isinstance(answer, FindCoordinatorResponse)
    return answer


@pytest.mark.case("GC-A09")
def test_the_first_question_makes_the_topic_and_with_kafkas_defaults_gets_not_available() -> None:
    options = BrokerOptions(kafka_defaults=True, offsets_topic_num_partitions=50, offsets_topic_replication_factor=1)
    with Broker(**options) as broker, Raw(broker.port) as raw:
        answer = ask(raw, 1)
        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (15, -1, "", -1)
        assert answer.error_message == "The coordinator is not available."
        topic = broker.run(lambda: broker.cluster.catalogue.get(OFFSETS_TOPIC))
        assert topic is not None
        assert len(topic.partitions) == 50
        assert topic.config.get("cleanup.policy") == ("compact",)
        assert ask(raw, 1).error_code == 0


def test_with_fewer_nodes_than_replicas_nothing_is_made_and_nobody_coordinates() -> None:
    """Sources, 003 row 10: Kafka with one broker and the factor 3 answers COORDINATOR_NOT_AVAILABLE for ever."""
    with Broker(nodes=2, offsets_topic_replication_factor=3) as broker, Raw(broker.port) as raw:
        for _ in range(2):
            assert ask(raw, 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert broker.run(lambda: broker.cluster.catalogue.get(OFFSETS_TOPIC)) is None
        with pytest.raises(ControlError, match="__consumer_offsets needs 3 nodes"):
            broker.control.coordinator("g")


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_the_offsets_topic_has_the_replicas_that_the_setting_names(factor: int) -> None:
    """Sources, 003 row 10. The next node takes over, whatever the factor is: all nodes share one store."""
    with Broker(nodes=3, offsets_topic_replication_factor=factor) as broker, Raw(broker.port) as raw:
        leader = ask(raw, 3).node_id
        topic = broker.run(lambda: broker.cluster.catalogue.get(OFFSETS_TOPIC))
        assert topic is not None
        assert {len(partition.replicas) for partition in topic.partitions} == {factor}
        if leader != 1:
            broker.control.stop_node(leader)
            assert ask(raw, 3).node_id not in (-1, leader)


@pytest.mark.parametrize(
    ("name", "policy"),
    [(OFFSETS_TOPIC, ("compact",)), (TRANSACTION_TOPIC, ("compact",)), (SHARE_STATE_TOPIC, ("delete",))],
)
def test_a_coordinators_topic_that_metadata_creates_has_its_own_settings(
    broker: Broker, raw: Raw, name: str, policy: tuple[str, ...]
) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    assert raw.ask(asked, 9).topics[0].error_code == ErrorCode.NONE
    topic = broker.run(lambda: broker.cluster.catalogue.get(name))
    assert topic is not None
    assert (len(topic.partitions), topic.config.get("cleanup.policy")) == (50, policy)


def test_without_kafkas_defaults_the_first_question_is_answered_at_once(broker: Broker, raw: Raw) -> None:
    answer = ask(raw, 3)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "127.0.0.1", broker.port)


@pytest.mark.case("GC-A10")
def test_a_partition_without_a_leader_has_no_coordinator(broker: Broker, raw: Raw) -> None:
    raw.find("g")
    partition = broker.run(lambda: broker.running.services.groups().partition_of("g"))
    assert partition is not None
    broker.run(lambda: broker.cluster.elect(partition, NO_LEADER))
    assert ask(raw, 2).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.case("GC-A11")
def test_a_dead_leader_is_no_coordinator() -> None:
    with Broker(nodes=2) as broker, Raw(broker.port) as raw:
        raw.find("g")
        broker.control.move_coordinator("g", 2)
        broker.run(lambda: setattr(broker.cluster.nodes[2], "is_alive", False))
        assert ask(raw, 2).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.case("GC-A13")
def test_many_keys_are_answered_one_by_one_in_order() -> None:
    with Broker(nodes=3) as broker, Raw(broker.port) as raw:
        raw.find("g")
        keys = ["test", "my-group", "mykafka-group"]
        lost = broker.run(lambda: broker.running.services.groups().partition_of("my-group"))
        assert lost is not None
        broker.run(lambda: broker.cluster.elect(lost, NO_LEADER))
        answer = raw.ask(FindCoordinatorRequest(coordinator_keys=keys), 4)
        assert [row.key for row in answer.coordinators] == keys
        assert [row.error_code for row in answer.coordinators] == [0, 15, 0]
        topic = broker.cluster.catalogue.by_name[OFFSETS_TOPIC]
        leader = topic.partitions[partition_for("test", 50)].leader
        assert answer.coordinators[0].node_id == leader


@pytest.mark.case("GC-A14")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_unknown_key_type_is_refused(raw: Raw, version: int) -> None:
    answer = ask(raw, version, key_type=9)
    assert (answer.error_code, answer.node_id) == (ErrorCode.INVALID_REQUEST, -1)


@pytest.mark.case("GC-A15")
def test_share_keys_do_not_exist_before_version_6(raw: Raw) -> None:
    assert ask(raw, 5, key_type=2).coordinators[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.case("GC-A17")
def test_success_is_called_none_in_words_up_to_version_3(raw: Raw) -> None:
    assert ask(raw, 2).error_message == "NONE"
    assert ask(raw, 4).coordinators[0].error_message == ""


@pytest.mark.case("GC-A18", "GC-A05")
def test_a_group_nobody_ever_used_has_a_coordinator(raw: Raw) -> None:
    assert ask(raw, 0, key="never used").error_code == 0
    assert ask(raw, 1, key="").error_code == 0


def test_a_question_creates_no_group(broker: Broker, raw: Raw) -> None:
    for number in range(100):
        ask(raw, 4, key=f"g{number}")
    runners = broker.run(lambda: list(broker.running.services.groups().runners.values()))
    assert not any(runner.coordinator.groups for runner in runners)
