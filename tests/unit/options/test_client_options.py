"""Options of the consumer and the producer change what brokers are asked or what calls give (issue 12, decision 0191).

A probe is a small program; what it returns with the option changed differs from what it returns without. What has no
probe yet is named, so that an option cannot be forgotten.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from partita import Broker, Consumer, KafkaError, Producer
from partita.broker.control.fault import Asked
from partita.records.header import iter_batches
from support.broker.options_page import honoured
from support.every_case import every_case

Given = dict[str, Any]
Probe = Callable[[Broker, Given], object]
NUMBERS = count()
TEXT = Path(__file__).read_bytes()[:4_000]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(num_partitions=4, auto_create_topics_enable=True) as running:
        running.produce("seen", *map(str, range(20)), key="k", partition=0)
        yield running


@contextmanager
def heard(broker: Broker, api: str, client: str) -> Iterator[list[Any]]:
    """The requests of a client to one API."""
    found: list[Any] = []

    def hear(asked: Asked) -> None:
        found.append(asked.request)

    fault = broker.control.intercept(api, hear, client_id=client)
    try:
        yield found
    finally:
        broker.control.clear_fault(fault.number)


def new_name() -> str:
    return f"n{next(NUMBERS)}"


# --- the producer -----------------------------------------------------------------------------------------------------


def batches(broker: Broker, given: Given) -> object:
    """Of the batches of three records: what the request says, and what the batches are."""
    name = new_name()
    options: Given = {"client_id": name, "linger_ms": 20, **given}
    options["bootstrap_servers"] = broker.bootstrap
    with heard(broker, "Produce", name) as asked, Producer(**options) as producer:
        for _ in range(3):
            producer.send(name, TEXT, partition=0)
        producer.flush()
    found = []
    for request in asked:
        for part in request.topic_data[0].partition_data:
            for header, _ in iter_batches(part.records):
                found.append((header.codec, header.producer_id >= 0, header.records_count, header.batch_length))
    return {(request.acks, request.timeout_ms, request.transactional_id) for request in asked}, found


def initialised(broker: Broker, given: Given) -> object:
    name = new_name()
    options: Given = {"client_id": name, "transactional_id": "one", "bootstrap_servers": broker.bootstrap, **given}
    with (
        heard(broker, "InitProducerId", name) as asked,
        Producer(**options) as producer,
    ):
        producer.init_transactions()
    return [(request.transactional_id, request.transaction_timeout_ms) for request in asked]


def partitions_of_keys(broker: Broker, given: Given) -> object:
    with Producer(bootstrap_servers=broker.bootstrap, **given) as producer:
        sent = [producer.send("spread", b"v", key=b"%d" % (number % 8)) for number in range(16)]
        by_key = [{future.result(60).partition for future in sent[at::8]} for at in range(8)]
    return {min(found) for found in by_key}


def key_written(broker: Broker, given: Given) -> object:
    name = new_name()
    with Producer(bootstrap_servers=broker.bootstrap, **given) as producer:
        producer.send(name, b"v", key=b"k").result(60)
    return broker.records(name)[0].key


def refused(broker: Broker, given: Given) -> object:
    with Producer(bootstrap_servers=broker.bootstrap, **given) as producer:
        try:
            return producer.send("refused", b"x" * 5_000, partition=0).result(60).partition
        except KafkaError as error:
            return type(error).__name__


def after_an_error(broker: Broker, given: Given) -> object:
    name = new_name()
    broker.produce("again", "x", partition=0)
    broker.control.fail("Produce", "NOT_ENOUGH_REPLICAS", client_id=name)
    with Producer(bootstrap_servers=broker.bootstrap, client_id=name, retry_backoff_ms=1, **given) as producer:
        try:
            return producer.send("again", b"v", partition=0).result(60).partition
        except KafkaError as error:
            return type(error).__name__


def intercepted(broker: Broker, given: Given) -> object:
    name = new_name()
    with Producer(bootstrap_servers=broker.bootstrap, **given) as producer:
        producer.send(name, b"v").result(60)
    return broker.records(name)[0].value


class Shouting:
    """An interceptor that changes values."""

    def on_send(self, record: Any) -> Any:
        return record._replace(value=b"V")

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        """Nothing to do."""


def after_a_silence(api: str) -> Probe:
    """What a send to a new topic comes to while requests of an API wait at the broker."""

    def probe(broker: Broker, given: Given) -> object:
        name = new_name()
        fault = broker.control.hold(api, client_id=name)
        options: Given = {"bootstrap_servers": broker.bootstrap, "client_id": name, "linger_ms": 0, **given}
        with Producer(**options) as producer:
            try:
                return producer.send(name, b"v").result(0.3).partition
            except (KafkaError, TimeoutError) as error:
                return type(error).__name__
            finally:
                broker.control.clear_fault(fault.number)

    return probe


PRODUCER: dict[str, tuple[Probe, Any]] = {
    "acks": (batches, "1"),
    "batch_size": (batches, 10),
    "buffer_memory": (refused, 1_000),
    "client_id": (lambda b, g: sorted(clients(b, Producer, g)), "named"),
    "compression_type": (batches, "gzip"),
    "delivery_timeout_ms": (lambda b, g: after_a_silence("Produce")(b, {"request_timeout_ms": 40, **g}), 50),
    "enable_idempotence": (batches, False),
    "interceptor_classes": (intercepted, [Shouting()]),
    "key_serializer": (key_written, lambda key: b"serialized"),
    "max_block_ms": (after_a_silence("Metadata"), 50),
    "max_request_size": (refused, 4_000),
    "partitioner_class": (partitions_of_keys, lambda topic, key, value, total: 0),
    "request_timeout_ms": (batches, 29_000),
    "retries": (after_an_error, 0),
    "transaction_timeout_ms": (initialised, 50_000),
    "transactional_id": (initialised, "two"),
    "value_serializer": (batches, lambda value: b"serialized"),
}
LEVELS = {
    "compression_gzip_level": ("gzip", 1),
    "compression_lz4_level": ("lz4", 12),
    "compression_zstd_level": ("zstd", -50_000),
}


def clients(broker: Broker, kind: type[Producer] | type[Consumer], given: Given) -> set[str]:
    """The client ids that the broker sees."""
    found: set[str] = set()

    def hear(asked: Asked) -> None:
        found.add(asked.client_id)

    fault = broker.control.intercept("Metadata", hear)
    with kind(bootstrap_servers=broker.bootstrap, **given) as client:
        client.partitions_for("seen")
    broker.control.clear_fault(fault.number)
    return found & {"named"}


@pytest.mark.parametrize("name", PRODUCER)
def test_an_option_of_the_producer_has_its_effect(broker: Broker, name: str) -> None:
    probe, changed = PRODUCER[name]
    assert probe(broker, {name: changed}) != probe(broker, {})


@pytest.mark.parametrize("name", LEVELS)
def test_a_level_of_compression_changes_the_size(broker: Broker, name: str) -> None:
    codec, level = LEVELS[name]
    assert batches(broker, {"compression_type": codec, name: level}) != batches(broker, {"compression_type": codec})


# --- the consumer -----------------------------------------------------------------------------------------------------


def fetched(broker: Broker, given: Given) -> object:
    name = new_name()
    options: Given = {
        "client_id": name,
        "auto_offset_reset": "earliest",
        "bootstrap_servers": broker.bootstrap,
        **given,
    }
    with heard(broker, "Fetch", name) as asked, Consumer(**options) as consumer:
        consumer.assign([("seen", 0)])
        while not consumer.poll(1):
            pass
    first = asked[0]
    return (
        first.max_wait_ms, first.min_bytes, first.max_bytes, first.isolation_level, first.rack_id,
        first.topics[0].partitions[0].partition_max_bytes,
    )  # fmt: skip


def joined(broker: Broker, given: Given) -> object:
    name = new_name()
    options: Given = {"client_id": name, "group_id": f"group-{name}", **given}
    with heard(broker, "JoinGroup", name) as asked, Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:
        consumer.subscribe(["seen"])
        while not consumer.assignment():
            consumer.poll(0.1)
    last = asked[-1] if asked else None
    protocols = [each.name for each in last.protocols] if last else None
    return last and (last.session_timeout_ms, last.rebalance_timeout_ms, last.group_instance_id, protocols)


def polled(broker: Broker, given: Given) -> object:
    with Consumer(bootstrap_servers=broker.bootstrap, **{"auto_offset_reset": "earliest", **given}) as consumer:
        consumer.assign([("seen", 0)])
        for _ in range(5):
            records = consumer.poll(0.1)
            if records:
                return [(record.key, record.value, record.offset) for record in records]
    return []


def committed(broker: Broker, given: Given) -> object:
    name = new_name()
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=name, auto_offset_reset="earliest", **given) as consumer:
        consumer.subscribe(["seen"])
        while not consumer.poll(0.1):
            pass
    return broker.committed(name).get(("seen", 0))


def created(broker: Broker, given: Given) -> object:
    name = new_name()
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=name, **given) as consumer:
        consumer.subscribe([name])
        for _ in range(3):
            consumer.poll(0.1)
    return broker.run(lambda: broker.cluster.catalogue.get(name) is not None)


def matched(broker: Broker, given: Given) -> object:
    name = new_name()
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=name, **given) as consumer:
        consumer.subscribe(pattern="seen|__consumer_offsets")
        while not consumer.assignment():
            consumer.poll(0.1)
        return {tp.topic for tp in consumer.assignment()}


def of_group(broker: Broker, given: Given) -> object:
    options: Given = {"bootstrap_servers": broker.bootstrap, "group_id": "usual", **given}
    with Consumer(**options) as consumer:
        return consumer.group_metadata().group_id


def ends_told(broker: Broker, given: Given) -> object:
    with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", **given) as consumer:
        consumer.assign([("seen", 0)])
        found = [consumer.poll(0.1).ends for _ in range(3)]
    return any(found)


def committed_by_itself(broker: Broker, given: Given) -> object:
    """Whether anything is committed before the consumer closes; each poll behind the first one waits for 30 ms."""
    name = new_name()
    options: Given = {"client_id": name, "group_id": name, "auto_offset_reset": "earliest", **given}
    with heard(broker, "OffsetCommit", name) as asked:
        with Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:
            consumer.subscribe(["seen"])
            while not consumer.poll(0.1):
                pass
            for _ in range(4):
                consumer.poll(0.03)
        return len(asked) > 1


def asked_for_assignor(broker: Broker, given: Given) -> object:
    name = new_name()
    options: Given = {"client_id": name, "group_id": name, "group_protocol": "consumer", **given}
    with heard(broker, "ConsumerGroupHeartbeat", name) as asked:
        with Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:
            consumer.subscribe(["seen"])
            while not consumer.assignment():
                consumer.poll(0.1)
        return asked[0].server_assignor


def broken(data: bytes) -> object:
    raise ValueError("no record can be read")


def poisoned(broker: Broker, given: Given) -> object:
    """What a poll comes to when no value can be read, and where the values went."""
    before = broker.run(lambda: set(broker.cluster.catalogue.by_name))
    options: Given = {"auto_offset_reset": "earliest", "value_deserializer": broken, **given}
    with Consumer(bootstrap_servers=broker.bootstrap, **options) as consumer:
        consumer.assign([("seen", 0)])
        try:
            outcome = [len(consumer.poll(0.1)) for _ in range(2)]
        except KafkaError as error:
            return type(error).__name__
    return outcome, broker.run(lambda: set(broker.cluster.catalogue.by_name)) - before


class Deaf:
    """An interceptor that lets nothing through."""

    def on_consume(self, records: Any) -> Any:
        return type(records)({})


CONSUMER: dict[str, tuple[Probe, Any]] = {
    "allow_auto_create_topics": (created, False),
    "auto_commit_interval_ms": (committed_by_itself, 10),
    "auto_offset_reset": (polled, "latest"),
    "client_id": (lambda b, g: sorted(clients(b, Consumer, g)), "named"),
    "client_rack": (fetched, "r1"),
    "commit_done_only": (committed, True),
    "dead_letter_topic": (
        lambda b, g: poisoned(b, {"poison_policy": "dead_letter", "dead_letter_topic": "dead", **g}),
        "dead-2",
    ),
    "enable_auto_commit": (committed, False),
    "enable_partition_eof": (ends_told, True),
    "exclude_internal_topics": (matched, False),
    "fetch_max_bytes": (fetched, 1_000_000),
    "fetch_max_wait_ms": (fetched, 400),
    "fetch_min_bytes": (fetched, 2),
    "group_id": (of_group, "other"),
    "group_instance_id": (joined, "i1"),
    "group_protocol": (joined, "consumer"),
    "group_remote_assignor": (asked_for_assignor, "range"),
    "interceptor_classes": (polled, [Deaf()]),
    "isolation_level": (fetched, "read_committed"),
    "key_deserializer": (polled, lambda data: "a key"),
    "max_partition_fetch_bytes": (fetched, 1_000_000),
    "max_poll_interval_ms": (joined, 100_000),
    "max_poll_records": (polled, 3),
    "partition_assignment_strategy": (joined, ["roundrobin"]),
    "poison_policy": (poisoned, "skip"),
    "session_timeout_ms": (joined, 30_000),
    "value_deserializer": (polled, lambda data: "a value"),
}


@pytest.mark.parametrize("name", CONSUMER)
def test_an_option_of_the_consumer_has_its_effect(broker: Broker, name: str) -> None:
    probe, changed = CONSUMER[name]
    assert probe(broker, {name: changed}) != probe(broker, {})


# --- both -------------------------------------------------------------------------------------------------------------

CONNECTIONS = "unit/options/test_connection_options.py::"
CORE = "unit/producer/test_producer_core.py::"
CLUSTER = "unit/net/test_cluster.py::"
ELSEWHERE = {
    "bootstrap_servers": "e2e/test_mistakes.py::test_an_admin_client_of_a_wrong_host_says_where_it_tried",
    "connections_max_idle_ms": f"{CONNECTIONS}test_an_idle_connection_is_closed_and_made_again_when_it_is_wanted",
    "enable_ssl_certificate_verification": "unit/net/test_tls.py::test_no_check_of_the_host_name_and_no_check_at_all",
    "metadata_cluster_check_enable": f"{CLUSTER}test_a_broker_is_asked_whether_it_is_the_one_that_is_meant",
    "metadata_max_age_ms": "unit/consumer/test_fetching.py::test_a_preferred_replica_expires",
    "metrics_num_samples": f"{CONNECTIONS}test_the_windows_of_metrics_are_as_many_and_as_long_as_they_were_set",
    "metrics_sample_window_ms": f"{CONNECTIONS}test_the_windows_of_metrics_are_as_many_and_as_long_as_they_were_set",
    "receive_buffer_bytes": f"{CONNECTIONS}test_a_socket_gets_the_buffer_that_was_asked_for",
    "reconnect_backoff_max_ms": "unit/net/test_cluster.py::test_failed_connections_back_off",
    "reconnect_backoff_ms": "unit/net/test_cluster.py::test_failed_connections_back_off",
    "retry_backoff_max_ms": f"{CORE}test_back_off_doubles_up_to_its_limit",
    "retry_backoff_ms": f"{CORE}test_back_off_doubles_up_to_its_limit",
    "security_protocol": f"{CONNECTIONS}test_security_is_handed_on_whole",
    "send_buffer_bytes": f"{CONNECTIONS}test_a_socket_gets_the_buffer_that_was_asked_for",
    "socket_connection_setup_timeout_max_ms":
        f"{CONNECTIONS}test_the_time_to_connect_doubles_with_each_failure_up_to_its_limit",
    "socket_connection_setup_timeout_ms":
        f"{CONNECTIONS}test_the_time_to_connect_doubles_with_each_failure_up_to_its_limit",
}  # fmt: skip
"""What shows in times, sockets and TLS, and the test that shows it."""
PRODUCER_ELSEWHERE = {
    "linger_ms": f"{CORE}test_the_wait_is_the_rest_of_the_linger_time",
    "max_in_flight_requests_per_connection": f"{CORE}test_as_many_requests_are_in_flight_as_the_option_says",
    "client_rack": f"{CORE}test_records_without_key_stay_in_the_rack_if_that_is_wanted",
    "partitioner_rack_aware": f"{CORE}test_records_without_key_stay_in_the_rack_if_that_is_wanted",
    "partitioner_adaptive_partitioning_enable":
        f"{CORE}test_a_partition_with_a_long_queue_is_drawn_less_often_unless_that_is_off",
    "partitioner_ignore_keys": f"{CORE}test_keys_may_be_ignored",
    "transaction_two_phase_commit_enable": "unit/producer/test_producer_config.py::test_wrong_options_are_refused",
}  # fmt: skip
"""What shows in times and under load, and what is refused."""
CONSUMER_ELSEWHERE = {
    "dead_letter_exactly_once": "support/consumer/letter_reader.py::main",
    "check_crcs": "unit/consumer/test_records.py::test_a_broken_checksum_is_raised_until_a_seek",
    "default_api_timeout_ms": "unit/consumer/test_liveness.py::test_a_call_without_timeout_ends_after_the_default_one",
    "fetch_buffer_max_bytes": "unit/consumer/test_fetching.py::test_no_more_is_fetched_than_the_buffer_may_hold",
    "heartbeat_interval_ms": "unit/consumer/test_liveness.py::test_heartbeats_are_sent_as_often_as_the_option_says",
    "progress_timeout_ms": "unit/consumer/test_records.py::test_a_standstill_is_noticed",
    "request_timeout_ms":
        "unit/consumer/test_fetching.py::test_an_unanswered_fetch_is_sent_again_after_the_request_timeout",
}  # fmt: skip
"""The same of the consumer's."""


def test_every_option_has_a_probe_or_a_test_elsewhere() -> None:
    assert honoured("Producer") == PRODUCER.keys() | LEVELS.keys() | ELSEWHERE.keys() | PRODUCER_ELSEWHERE.keys()
    assert honoured("Consumer") == CONSUMER.keys() | ELSEWHERE.keys() | CONSUMER_ELSEWHERE.keys()


@every_case("name, test", [*(ELSEWHERE | PRODUCER_ELSEWHERE | CONSUMER_ELSEWHERE).items()])
def test_a_test_elsewhere_exists_and_sets_the_option(name: str, test: str) -> None:
    file, _, function = test.partition("::")
    source = (Path(__file__).parents[2] / file).read_text()
    (found,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    ]
    first = min(node.lineno for node in (found, *found.decorator_list))
    own = "\n".join(source.splitlines()[first - 1 : found.end_lineno])
    assert name in own
