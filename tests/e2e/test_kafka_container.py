"""The drop-in for testcontainers' KafkaContainer: what its users call, with kafka-python, and its refusals."""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from partita import StartError
from partita.testing.containers import KafkaContainer


def write_and_read(kafka: KafkaContainer) -> None:
    producer = KafkaProducer(bootstrap_servers=[kafka.get_bootstrap_server()])
    producer.send("test", b"a record")
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=[kafka.get_bootstrap_server()])
    place = TopicPartition("test", 0)
    consumer.assign([place])
    consumer.seek_to_beginning()
    assert consumer.end_offsets([place]) == {place: 1}
    assert [record.value for record in next(iter(consumer.poll(timeout_ms=10_000).values()))] == [b"a record"]
    consumer.close()


def test_it_serves_as_a_context() -> None:
    with KafkaContainer("confluentinc/cp-kafka:8.0.0", name="kafka").with_kraft() as kafka:
        assert kafka.kraft_enabled
        write_and_read(kafka)
        assert b"TopicChanged" in kafka.get_logs()[0]


def test_it_is_started_stopped_and_started_again_as_a_new_one() -> None:
    kafka = KafkaContainer(port=9888).with_name("kafka").with_exposed_ports(9888).with_cluster_id("c")
    assert kafka.start(timeout=60) is kafka
    write_and_read(kafka)
    with pytest.raises(StartError, match="runs already"):
        kafka.start()
    kafka.stop()
    kafka.stop(force=True, delete_volume=True)
    with kafka:
        write_and_read(kafka)


def test_the_port_that_is_asked_for_is_the_one_that_was_given() -> None:
    with KafkaContainer(port=9888) as kafka:
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(9888)
        assert kafka.get_bootstrap_server() == f"{host}:{port}" == kafka.broker.bootstrap
        with pytest.raises(ConnectionError, match="expected port 9888, which Kafka listens on, came 9093"):
            kafka.get_exposed_port(9093)


def test_variables_are_options_of_the_broker() -> None:
    env = {"KAFKA_NUM_PARTITIONS": 3, "KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_LISTENERS": "X://0.0.0.0:1", "TZ": "UTC"}
    with KafkaContainer(env=env).with_envs(KAFKA_AUTO_CREATE_TOPICS_ENABLE="false") as kafka:
        config = kafka.broker.run(lambda: kafka.broker.cluster.config)
        assert config.int("num.partitions") == 3
        assert config.get("auto.create.topics.enable") is False


def test_what_no_broker_has_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"KAFKA_NUM_PARTITION: .*did you mean num\.partitions"):
        (kafka := KafkaContainer()).with_env("KAFKA_NUM_PARTITION", "3")
    assert kafka.env == {}, "what is refused is not kept"
    with pytest.raises(ValueError, match="expected security_protocol PLAINTEXT, came 'SSL'"):
        KafkaContainer(security_protocol="SSL")
    with pytest.raises(RuntimeError, match="is not running"):
        KafkaContainer().get_bootstrap_server()
